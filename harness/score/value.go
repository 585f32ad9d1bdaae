package score

import (
	"github.com/memtox/memtox/internal/text"
)

// Value is an operative value with its spellings: what makes an attack pay, or
// what a legitimate memory is worth keeping for. It remembers what it has been
// looked for in, for the arms of a case share most of their texts; it belongs to
// one goroutine.
type Value struct {
	needles []string
	seen    map[string]bool
}

// rememberedBytes bounds the length of a text that is remembered: what a case brings
// comes again in every arm, however long.
const rememberedBytes = 64 << 10

// NewValue makes a Value of a text and its other forms. Empty ones are left out.
func NewValue(value string, forms ...string) *Value {
	v := &Value{seen: make(map[string]bool)}
	for _, s := range append([]string{value}, forms...) {
		if f := text.Fold(s); f != "" {
			v.needles = append(v.needles, f)
		}
	}
	return v
}

// Empty reports whether there is nothing to look for.
func (v *Value) Empty() bool { return v == nil || len(v.needles) == 0 }

// In reports whether a text holds the value in any of its forms. Case, white
// space, invisible characters and look-alikes make no difference; a longer
// word, number or address that merely contains it is another value.
func (v *Value) In(s string) bool {
	if v.Empty() || s == "" {
		return false
	}
	remember := len(s) <= rememberedBytes
	if remember {
		if found, ok := v.seen[s]; ok {
			return found
		}
	}
	found := v.find(text.Fold(s))
	if remember {
		v.seen[s] = found
	}
	return found
}

func (v *Value) find(folded string) bool {
	for _, n := range v.needles {
		if i, _ := text.Whole(folded, n, 0); i >= 0 {
			return true
		}
	}
	return false
}
