package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/summary"
)

// Formats are those that [Write] knows.
func Formats() []string { return []string{"table", "json", "markdown"} }

// Write writes what a command found: v as indented JSON, or what say puts on paper, for a
// terminal or as Markdown.
func Write(w io.Writer, format string, v any, say func(*Paper) error) error {
	switch format {
	case "json":
		return writeJSON(w, v, "  ")
	case "table", "markdown":
		p := Paper{markdown: format == "markdown"}
		if err := say(&p); err != nil {
			return err
		}
		_, err := w.Write(append(bytes.TrimRight(p.text.Bytes(), "\n"), '\n'))
		return err
	}
	return &settings.Problem{What: fmt.Sprintf("unknown format %q", format), Hint: "one of " + strings.Join(Formats(), ", ")}
}

// Summary prints the summary of a run, or of `memtox detect`: as a table (a run's on one
// screen, unless the options ask for all), as json (one object on one line) or as markdown.
func Summary(w io.Writer, s *summary.Summary, format string, o Options) error {
	if format == "json" {
		return writeJSON(w, s, "")
	}
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	o.Width = max(o.Width, minWidth)
	return Write(w, format, nil, func(p *Paper) error {
		p.options = o
		switch {
		case s.Texts != nil:
			ofTexts(p, s)
		case p.markdown || o.Full:
			ofRun(p, s)
		default:
			screen(p, s)
		}
		return nil
	})
}

func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	_, err := w.Write(inert.JSON(b.Bytes()))
	return err
}

// Paper takes what a person reads: headings, paragraphs, lists and tables. What texts
// hold is inert. Lines and tables have any width where the options name none.
type Paper struct {
	text     bytes.Buffer
	markdown bool
	options  Options
}

// Markdown reports whether the paper is Markdown rather than for a terminal.
func (p *Paper) Markdown() bool { return p.markdown }

func (p *Paper) line(mark, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if p.markdown {
		s = mark + inert.Markdown(s)
	} else {
		s = p.wrapped(s)
	}
	p.text.WriteString(s + "\n")
}

func (p *Paper) wrapped(s string) string {
	if p.options.Width == 0 {
		return inert.Text(s)
	}
	return wrap(inert.Text(s), p.options.Width)
}

// Gap leaves a line empty, never two.
func (p *Paper) Gap() {
	if b := p.text.Bytes(); len(b) > 0 && !bytes.HasSuffix(b, []byte("\n\n")) {
		p.text.WriteByte('\n')
	}
}

// Heading begins a part of a level, 1 for the whole.
func (p *Paper) Heading(level int, format string, args ...any) {
	p.Gap()
	p.line(strings.Repeat("#", level)+" ", format, args...)
	p.Gap()
}

// Item says a line of a list, Under one of a list within.
func (p *Paper) Item(format string, args ...any) { p.line("- ", format, args...) }

// Under says a line that belongs to the item before.
func (p *Paper) Under(format string, args ...any) {
	if !p.markdown {
		p.text.WriteString("    ")
	}
	p.line("  - ", format, args...)
}

// Say says a line: in Markdown a paragraph, with a gap behind.
func (p *Paper) Say(format string, args ...any) {
	p.line("", format, args...)
	if p.markdown {
		p.Gap()
	}
}

// Hang says lines that stand indent columns from the left, behind a label in the first of
// them, for a terminal of so many columns.
func (p *Paper) Hang(label string, indent, width int, lines ...string) {
	for _, line := range lines {
		for l := range strings.SplitSeq(wrap(inert.Text(line), width-indent), "\n") {
			fmt.Fprintf(&p.text, "%-*s%s\n", indent, inert.Text(label), l)
			label = ""
		}
	}
}

// Note says a paragraph that stands out.
func (p *Paper) Note(format string, args ...any) {
	p.line("> ", format, args...)
	p.Gap()
}

// Table writes a table under its title, with a gap behind.
func (p *Paper) Table(t *Table) {
	if p.markdown {
		if t.Title != "" {
			p.Heading(3, "%s", t.Title)
		}
		p.text.WriteString(t.markdown())
		p.Gap()
		return
	}
	parts := []Table{clean(*t, inert.Text)}
	if p.options.Width > 0 {
		parts = split(parts[0], p.options.Width)
	}
	for _, part := range parts {
		if t.Title != "" {
			p.text.WriteString(bold(p.wrapped(part.Title), p.options) + "\n")
		}
		p.text.WriteString(draw(part, p.options))
		p.Gap()
	}
}
