package text

import (
	"slices"
	"sync"
)

// Analysis is everything that is known of one text. Each part is worked out
// when it is first asked for, once, whoever asks; what the methods return is
// shared and must not be changed. Any number of goroutines may use it.
type Analysis struct {
	text     string
	embedder Embedder
	folded   lazy[Folded]
	odd      lazy[Oddities]
	decoded  lazy[[]Decoded]
	tokens   lazy[[]Token]
	sents    lazy[[]Sentence]
	values   lazy[[]Value]
	stems    lazy[[]string]
	vector   lazy[[]float32]
	shingles lazy[[]uint64]
	sketch   lazy[Signature]
}

type lazy[T any] struct {
	once  sync.Once
	value T
}

func (l *lazy[T]) get(f func() T) T {
	l.once.Do(func() { l.value = f() })
	return l.value
}

// ShingleWords is how many words a shingle of an Analysis holds.
const ShingleWords = 3

// Analyse returns the analysis of s with Hashing as its embedder.
func Analyse(s string) *Analysis { return AnalyseWith(s, Hashing{}) }

// AnalyseWith returns the analysis of s with vectors by e.
func AnalyseWith(s string, e Embedder) *Analysis { return &Analysis{text: s, embedder: e} }

// Text is the text as it was given.
func (a *Analysis) Text() string { return a.text }

// Folded is the folded text; see Fold.
func (a *Analysis) Folded() string { return a.Map().Text }

// Map is the folded text with the way back to the original.
func (a *Analysis) Map() Folded {
	return a.folded.get(func() Folded { return FoldMap(a.text) })
}

// Oddities is what Scan finds in the text.
func (a *Analysis) Oddities() Oddities {
	return a.odd.get(func() Oddities { return Scan(a.text) })
}

// Decoded is what Decode finds in the text.
func (a *Analysis) Decoded() []Decoded {
	return a.decoded.get(func() []Decoded { return Decode(a.text) })
}

// Tokens are the tokens of the folded text; their spans are in Folded.
func (a *Analysis) Tokens() []Token {
	return a.tokens.get(func() []Token { return Tokens(a.Folded()) })
}

// Sentences are the sentences of the original text; their spans are in it.
func (a *Analysis) Sentences() []Sentence {
	return a.sents.get(func() []Sentence { return Sentences(a.text) })
}

// Values are the values of the original text; their spans are in it.
func (a *Analysis) Values() []Value {
	return a.values.get(func() []Value { return Values(a.text) })
}

// Stems is the sorted set of the stems of the text's words, without stopwords.
func (a *Analysis) Stems() []string {
	return a.stems.get(func() []string {
		var stems []string
		for _, t := range a.Tokens() {
			if !IsStopword(t.Text) {
				stems = append(stems, Stem(t.Text))
			}
		}
		slices.Sort(stems)
		return slices.Compact(stems)
	})
}

// HasStem reports whether the text holds a word with this stem.
func (a *Analysis) HasStem(stem string) bool {
	_, ok := slices.BinarySearch(a.Stems(), stem)
	return ok
}

// Embedding is the vector of the text.
func (a *Analysis) Embedding() []float32 {
	return a.vector.get(func() []float32 { return a.embedder.Embed(a.text) })
}

// Shingles are the text's shingles of ShingleWords words.
func (a *Analysis) Shingles() []uint64 {
	return a.shingles.get(func() []uint64 { return Shingles(a.Folded(), ShingleWords) })
}

// Sketch is the MinHash signature of the shingles.
func (a *Analysis) Sketch() Signature {
	return a.sketch.get(func() Signature { return MinHash(a.Shingles()) })
}
