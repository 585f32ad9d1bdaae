package memory

// Kind says how a store turns a draft into entries and how it is shown.
type Kind uint8

// The kinds of stores.
const (
	Entries Kind = iota // a list of entries
	Notes               // a file that is read and written by lines
	Skills              // one entry a skill, named by its key
)

// StoreSpec describes one store of a profile.
type StoreSpec struct {
	Name string
	// Title is how the prompt names the store: a file name, mostly.
	Title string
	Kind  Kind
	// Limit bounds the characters of all visible entries; a write that would go
	// beyond it is rejected with the entries shown. 0 is no limit.
	Limit int
}

// RecallSpec is how a profile ranks records: a weighted sum of cosine
// similarity and of BM25, scaled to the best candidate of the query.
type RecallSpec struct {
	Vector, BM25 float64
	K            int     // how many records a search returns
	Floor        float64 // least score of a candidate
	// ChunkTokens cuts past turns before they can be searched; 0 leaves them
	// whole.
	ChunkTokens int `yaml:"chunk_tokens"`
}
