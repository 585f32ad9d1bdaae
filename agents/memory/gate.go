package memory

import (
	"context"
	"fmt"
	"time"
)

// Query is what a recall asks for. Its intent is the defense's own reading.
type Query struct {
	Route     Route
	Text      string // the user's or the agent's words
	Said      string // the user's words of the turn, "" where nobody knows them
	Principal string // who asks
	K         int    // how many records fit; 0 is no limit
}

// Candidate is a record that a recall found, with its relevance.
type Candidate struct {
	Record Record
	Score  float64 // relevance to the query, by the profile's recall
}

// Decision is a defense's answer about one candidate: a verdict on showing it, of
// which Held and the signature say nothing. The zero value shows the record as it is;
// the stored record keeps its own text.
type Decision struct {
	Verdict
	// Rank orders the results: lower first, equal ranks by relevance.
	Rank int
	// Attribute shows the record in the prompt with its source ("The mail from
	// … says: …") rather than as the agent's own knowledge.
	Attribute bool
}

// Role says what a tool argument is for.
type Role string

// The roles of arguments. Up to Amount they decide what an action does to the
// world; the others only say what it carries.
const (
	Destination Role = "destination" // URL, host, channel, account
	Recipient   Role = "recipient"
	Command     Role = "command"
	Credential  Role = "credential"
	Grant       Role = "grant" // who gets access, or to what
	Amount      Role = "amount"
	Content     Role = "content"
	Other       Role = "other"
)

// Arg is one argument of a tool call.
type Arg struct {
	Name  string
	Value string
	Role  Role
	// Type is the kind of value that the tool wants here, "" where it does not say.
	Type string
	// Optional says that the tool does its work without it, and List that it is one
	// item of a list: each has an Arg of its own.
	Optional, List bool
	Lineage        Lineage // where the value came from
}

// Call is a tool call that acts on the world.
type Call struct {
	Tool  string
	Args  []Arg
	Query Query
}

// Change is what a commit did.
type Change struct {
	Op     Op
	Route  Route
	Record Record
	Prior  *Record
}

// Gate is one trial's instance of a defense. Memory calls it from one goroutine
// at a time. State that it keeps follows Committed, never its own verdicts: a
// later gate of a chain may refuse what this one allowed. An error is an error
// of the trial, never a verdict.
type Gate interface {
	// Input screens a segment before it enters the context.
	Input(context.Context, Segment) (Verdict, error)
	// Write screens one proposal.
	Write(context.Context, Proposal) (Verdict, error)
	// Read screens every candidate of a recall, before the cut to K. It returns
	// one decision a candidate, in the order of the candidates.
	Read(context.Context, Query, []Candidate) ([]Decision, error)
	// Act screens a tool call; any action but Allow vetoes it.
	Act(context.Context, Call) (Verdict, error)
	// Seed is given the background memories before the first session, to sign
	// and learn from them. It returns them amended, and does not keep the list.
	Seed(context.Context, []Record) ([]Record, error)
	// Committed is told of every change that really happened.
	Committed(Change)
	// Answered is told whether the user agreed to a call that he was shown because the
	// gate deferred it.
	Answered(c Call, agreed bool)
}

// Open is a Gate that lets everything pass. Defenses embed it and override what
// they screen.
type Open struct{}

// Input allows.
func (Open) Input(context.Context, Segment) (Verdict, error) { return Verdict{}, nil }

// Write allows.
func (Open) Write(context.Context, Proposal) (Verdict, error) { return Verdict{}, nil }

// Read allows every candidate.
func (Open) Read(_ context.Context, _ Query, c []Candidate) ([]Decision, error) {
	return make([]Decision, len(c)), nil
}

// Act allows.
func (Open) Act(context.Context, Call) (Verdict, error) { return Verdict{}, nil }

// Seed returns the records as they are.
func (Open) Seed(_ context.Context, r []Record) ([]Record, error) { return r, nil }

// Committed ignores the change.
func (Open) Committed(Change) {}

// Answered ignores the answer.
func (Open) Answered(Call, bool) {}

// View is all that a defense may know of its trial: a clock, a seed, an opaque
// counter and a read-only look at the store. It carries nothing of the case.
type View interface {
	// Now is the trial's own clock; defenses must use no other.
	Now() time.Time
	// Seed is for defenses that need randomness.
	Seed() uint64
	// Trial is an opaque counter, for external guards that need a name.
	Trial() uint64
	// Principal is whose memory this is.
	Principal() string
	// Len is the number of stored records in every state.
	Len() int
	// Get returns a stored record by id.
	Get(id string) (Record, bool)
	// ByKey returns the current record of a store's key.
	ByKey(store, key string) (Record, bool)
	// Each visits every stored record in the order of commits until yield
	// returns false.
	Each(yield func(Record) bool)
	Desk
}

// Reader is a tool that finds rows of one of the user's own tables by their name.
type Reader struct {
	Tool  string
	Finds []string // the types of the values that a row holds, but for its name
}

// Row is a row of a table: its name, and what else it holds.
type Row struct {
	Name  string
	Cells []Cell
}

// Cell is a value of a row.
type Cell struct{ Column, Type, Value string }

// Desk is where a session works, as far as a defense may look there.
type Desk interface {
	// Readers are the agent's tools that find rows of the user's own tables, which
	// are true. There may be none.
	Readers() []Reader
	// Look returns the rows that one of them finds by a name or a part of it. Each
	// call counts as the defense's cost.
	Look(ctx context.Context, tool, name string) ([]Row, error)
}

// Moment says at which gate an event happened.
type Moment uint8

// The gates.
const (
	AtInput Moment = iota
	AtWrite
	AtRead
	AtAct
)

// Event is one gate call, as told to an observer: what was asked, what the
// defense answered, how long it took.
type Event struct {
	Moment Moment
	// Message is how many messages the session had, as [Memory.Mark] was told:
	// what was judged is part of the message to come.
	Message  int
	Route    Route
	Op       Op
	Took     time.Duration // inside the gate alone, without Wire
	Wire     time.Duration // on the way to a defense in another process and back
	Segment  *Segment      // AtInput
	Proposal *Proposal     // AtWrite
	Verdict  Verdict       // AtInput, AtWrite, AtAct
	// Committed is the record as it was stored (AtWrite), or nil.
	Committed  *Record
	Query      Query       // AtRead, AtAct
	Candidates []Candidate // AtRead
	Decisions  []Decision  // AtRead, one a candidate
	Call       *Call       // AtAct
}

// Observer is told of every gate call. Memory calls it from one goroutine. The event
// stands until it returns.
type Observer func(*Event)

// Nowhere is a [Desk] at which nothing can be looked up.
type Nowhere struct{}

// Readers implements [Desk].
func (Nowhere) Readers() []Reader { return nil }

// Look implements [Desk].
func (Nowhere) Look(_ context.Context, tool, _ string) ([]Row, error) {
	return nil, fmt.Errorf("there is no tool %q to look anything up with", tool)
}
