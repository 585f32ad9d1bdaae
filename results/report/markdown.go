package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Markdown writes the page without its plots, in GitHub's dialect.
func (r *Report) Markdown(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	status, banners := r.lead()
	fmt.Fprintf(out, "# memtox report\n\nRun %s, memtox %s, started %s\n\n%s\n", inline(r.run.ID), inline(r.run.Version), r.run.Started.UTC().Format("2006-01-02 15:04 UTC"), inline(status))
	for _, b := range banners {
		fmt.Fprintf(out, "\n> %s\n", inline(b))
	}
	for _, s := range r.sections() {
		fmt.Fprintf(out, "\n## %s\n", s.Title)
		for _, n := range s.Notes {
			fmt.Fprintf(out, "\n%s\n", inline(n))
		}
		for _, f := range s.Figures {
			fmt.Fprintf(out, "\n%s\n\n", inline(f.Caption))
			f.Table.markdown(out)
		}
	}
	if ws := r.warnings(); len(ws) > 0 {
		fmt.Fprint(out, "\n## Warnings\n\n")
		for _, w := range ws {
			fmt.Fprintf(out, "- %s\n", inline(w))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the report of run %s: %w", r.run.ID, err)
	}
	return nil
}

func (t *table) markdown(w io.Writer) {
	line := func(cells []string) {
		for _, c := range cells {
			fmt.Fprint(w, "| ", inline(c), " ")
		}
		fmt.Fprint(w, "|\n")
	}
	line(t.Head)
	for i := range t.Head {
		fmt.Fprint(w, map[bool]string{true: "|---", false: "|--:"}[i < t.Labels])
	}
	fmt.Fprint(w, "|\n")
	for _, r := range t.Rows {
		line(r)
	}
}

// inline is a text that Markdown shows as it is, on one line: nothing in it is a
// link, an image, markup or a cell's end.
func inline(t string) string {
	t = shown(t)
	if !strings.ContainsAny(t, "\\`*_{}[]<>#|!~&@:") {
		return t
	}
	var b strings.Builder
	for i, r := range t {
		switch r {
		case '<':
			b.WriteString("&lt;")
			continue
		case '>':
			b.WriteString("&gt;")
			continue
		case '&':
			b.WriteString("&amp;")
			continue
		case '@': // would notify somebody of that name
			b.WriteString("&#64;")
			continue
		case ':': // would make a link of a bare address
			if strings.HasPrefix(t[i:], "://") {
				b.WriteString("&#58;")
				continue
			}
		case '_': // means nothing within a word
			if i > 0 && i+1 < len(t) && word(t[i-1]) && word(t[i+1]) {
				b.WriteByte('_')
				continue
			}
			b.WriteByte('\\')
		case '\\', '`', '*', '{', '}', '|', '~', '#', '!':
			b.WriteByte('\\')
		case '[', ']':
			// An interval needs no escape: it is followed by no target.
			if !strings.Contains(t, "](") && !strings.Contains(t, "][") && !strings.Contains(t, "]:") {
				b.WriteRune(r)
				continue
			}
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
