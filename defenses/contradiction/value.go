package contradiction

import (
	"strings"

	"github.com/memtox/memtox/agents/memory/text"
)

// sameValue reports whether two objects are the same value in another dress:
// case, punctuation, articles.
func sameValue(a, b string) bool { return normal(a) == normal(b) }

func normal(s string) string {
	s = text.Fold(s)
	for _, p := range []string{"up to ", "the ", "a ", "an ", "our "} {
		s = strings.TrimPrefix(s, p)
	}
	return strings.Trim(s, " .,;:!\"'")
}
