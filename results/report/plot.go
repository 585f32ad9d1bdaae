package report

import (
	_ "embed"
	"html/template"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/inert"
)

//go:embed plots.svg
var plotText string

var plots = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("plots").Funcs(template.FuncMap{"shown": inert.Text}).Parse(plotText)) // not at the start of every command
})

// px is a place or a length in CSS pixels.
type px float64

// String writes one decimal: enough for the eye, and a short page.
func (p px) String() string { return strconv.FormatFloat(math.Round(float64(p)*10)/10, 'f', -1, 64) }

// canvas is what every drawing has. ID is unique on the page; a screen reader says
// Title and Desc.
type canvas struct {
	ID, Title, Desc string
	Width, Height   px
}

// plotWidth is that of every drawing: it fits a phone without scrolling.
const plotWidth px = 372

// draw fills a template of plots.svg, which escapes what texts hold.
func draw(name string, data any) template.HTML {
	var b strings.Builder
	if err := plots().ExecuteTemplate(&b, name, data); err != nil {
		panic(err) // a mistake in plots.svg
	}
	return template.HTML(b.String())
}

// line is the path through points, as the attribute d has it.
func line(xy ...px) string {
	var b strings.Builder
	for i := 0; i+1 < len(xy); i += 2 {
		b.WriteString("L" + xy[i].String() + " " + xy[i+1].String())
	}
	return strings.Replace(b.String(), "L", "M", 1)
}

// spot is a text at a place of an axis.
type spot struct {
	At   px
	Text string
}

// label is a text that may be cut; then Whole is its tooltip.
type label struct{ Text, Whole string }

func labelOf(t string, width px) *label {
	t = inert.Text(t)
	l := &label{Text: clip(t, width)}
	if l.Text != t {
		l.Whole = t
	}
	return l
}

// textWidth is about how wide a label is drawn.
func textWidth(t string) px {
	const charWidth = 7.4 // at most, on average, in the fonts of the style sheet
	n := 0
	for _, r := range inert.Text(t) {
		if r >= 0x1100 { // wide scripts
			n++
		}
		n++
	}
	return px(n) * charWidth
}

// clip cuts a label to a width.
func clip(t string, width px) string {
	t = inert.Text(t)
	if textWidth(t) <= width {
		return t
	}
	out, used := "", textWidth("…")
	for _, r := range t {
		if used += textWidth(string(r)); used > width {
			break
		}
		out += string(r)
	}
	return out + "…"
}
