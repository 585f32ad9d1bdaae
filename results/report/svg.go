package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/inert"
)

// svg is a drawing under construction, in units of about one CSS pixel. Every
// text and attribute that it is given is escaped; the shapes carry classes, and
// the style sheet gives them colours that fit a light and a dark page.
type svg struct {
	b    strings.Builder
	w, h float64
}

// newSVG begins a drawing of a size. id is unique on the page; title and desc
// are what a screen reader says.
func newSVG(id, title, desc string, w, h float64) *svg {
	s := &svg{w: w, h: h}
	class := "wide"
	if w < plotWidth/2+60 {
		class = "half"
	}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="%s-t %s-d">`,
		class, num(w), num(h), num(w), num(h), id, id)
	fmt.Fprintf(&s.b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, esc(title), id, esc(desc))
	return s
}

func (s *svg) done() template.HTML {
	s.b.WriteString("</svg>")
	return template.HTML(s.b.String()) // texts were escaped as they came
}

func (s *svg) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, num(x), num(y), num(max(w, 0)),
		num(max(h, 0)))
}

// cell is a rectangle of a colour of its own.
func (s *svg) cell(fill string, x, y, w, h float64) {
	fmt.Fprintf(&s.b, `<rect fill="%s" x="%s" y="%s" width="%s" height="%s"/>`, fill, num(x), num(y), num(w), num(h))
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&s.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

func (s *svg) circle(class string, x, y, r float64) {
	fmt.Fprintf(&s.b, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, num(x), num(y), num(r))
}

// path draws through points; closed joins the last to the first.
func (s *svg) path(class string, closed bool, xy ...float64) {
	fmt.Fprintf(&s.b, `<path class="%s" d="`, class)
	for i := 0; i+1 < len(xy); i += 2 {
		c := "L"
		if i == 0 {
			c = "M"
		}
		s.b.WriteString(c + num(xy[i]) + " " + num(xy[i+1]))
	}
	if closed {
		s.b.WriteString("Z")
	}
	s.b.WriteString(`"/>`)
}

// The places of a text relative to its point.
const (
	left   = "start"
	middle = "middle"
	right  = "end"
)

func (s *svg) text(class, anchor string, x, y float64, t string) {
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, num(x), num(y), esc(t))
}

// textOn is a text of a colour of its own.
func (s *svg) textOn(fill, anchor string, x, y float64, t string) {
	fmt.Fprintf(&s.b, `<text class="on" fill="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, fill, anchor, num(x), num(y),
		esc(t))
}

// clipped is a text that is cut to a width, with the whole of it as a tooltip.
func (s *svg) clipped(class, anchor string, x, y, width float64, t string) {
	short := clip(t, width)
	if short == inert.Text(t) {
		s.text(class, anchor, x, y, t)
		return
	}
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="%s" x="%s" y="%s"><title>%s</title>%s</text>`, class, anchor, num(x),
		num(y), esc(t), esc(short))
}

// turned is a text that rises to the right.
func (s *svg) turned(class string, x, y float64, t string) {
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="start" transform="translate(%s %s) rotate(-38)">%s</text>`, class,
		num(x), num(y), esc(t))
}

// upright is a text along a vertical axis.
func (s *svg) upright(class string, x, y float64, t string) {
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="middle" transform="translate(%s %s) rotate(-90)">%s</text>`, class,
		num(x), num(y), esc(t))
}

// charWidth is how wide a character of a label is at most, on average, in the
// fonts of the style sheet.
const charWidth = 7.4

// textWidth is about how wide a label is drawn.
func textWidth(t string) float64 {
	n := 0.0
	for _, r := range inert.Text(t) {
		if r >= 0x1100 { // wide scripts
			n++
		}
		n++
	}
	return n * charWidth
}

// clip cuts a label to a width.
func clip(t string, width float64) string {
	t = inert.Text(t)
	if textWidth(t) <= width {
		return t
	}
	out, used := []rune{}, charWidth // of the ellipsis
	for _, r := range t {
		used += textWidth(string(r))
		if used > width {
			break
		}
		out = append(out, r)
	}
	return string(out) + "…"
}

func esc(t string) string { return html.EscapeString(inert.Text(t)) }

// num writes a coordinate with one decimal: enough for the eye, and a short
// page.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}
