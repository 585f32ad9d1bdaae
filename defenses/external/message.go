package external

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/remote"
)

// Protocol is the version that a hello offers. A guard that needs another one
// answers with an error.
const Protocol = 1

// The operations of a [Request].
const (
	Hello     = "hello"     // who are you? Asked first, and again at any time
	Open      = "open"      // a trial begins
	Seed      = "seed"      // the memories that are there before, to sign and to learn from
	Input     = "input"     // may this segment enter the context?
	Write     = "write"     // may this record be stored?
	Read      = "read"      // which of these records may enter the prompt?
	Act       = "act"       // may this tool call go ahead?
	Committed = "committed" // this change really happened
	Close     = "close"     // the trial is over
)

// Ops lists the operations that a guard may say it answers, in the order of a
// trial.
func Ops() []string {
	return []string{Open, Seed, Input, Write, Read, Act, Committed, Close}
}

// Record is one memory entry on the wire.
type Record struct {
	wire
	SourceClass string `json:"source_class,omitempty"` // where there is no origin
}

// wire is a [memory.Record] under the names of the protocol.
type wire struct {
	ID    string `json:"record,omitempty"` // counts up within the trial
	Key   string `json:"key,omitempty"`
	Store string `json:"store,omitempty"`
	Text  string `json:"value"` // the content

	Origin    memory.Origin  `json:"origin"`
	Lineage   memory.Lineage `json:"lineage,omitempty"`
	Principal string         `json:"principal,omitempty"`
	Asked     bool           `json:"asked,omitempty"`

	Created   time.Time    `json:"created,omitzero"`
	ValidFrom time.Time    `json:"valid_from,omitzero"`
	ValidTo   time.Time    `json:"valid_to,omitzero"`
	Version   int          `json:"version,omitempty"`
	Parent    string       `json:"parent,omitempty"`
	State     memory.State `json:"state,omitzero"` // left out while live
	Scope     memory.Scope `json:"scope,omitempty"`
	Signature []byte       `json:"signature,omitempty"` // base64
	SignedBy  string       `json:"signed_by,omitempty"`
	Intents   []string     `json:"intents,omitempty"`
	Trust     *float64     `json:"trust,omitempty"`
}

type Candidate struct {
	Record
	Relevance float64 `json:"relevance"`
}

type Arg struct {
	Name     string         `json:"name"`
	Value    string         `json:"value"`
	Role     memory.Role    `json:"role,omitempty"`
	Type     string         `json:"type,omitempty"`
	Optional bool           `json:"optional,omitempty"`
	List     bool           `json:"list,omitempty"`
	Lineage  memory.Lineage `json:"lineage,omitempty"`
}

// Request is one question to a guard: one line of JSON, or the body of a POST.
// Fields that an operation does not need are left out.
type Request struct {
	ID uint64 `json:"id"` // the answer repeats it
	Op string `json:"op"`

	Protocol int `json:"protocol,omitempty"` // hello

	Trial     uint64     `json:"trial,omitempty"`     // a number that counts trials up; all but hello
	Now       *time.Time `json:"now,omitempty"`       // the trial's own clock
	Principal string     `json:"principal,omitempty"` // whose memory it is; read, act: who asks
	Seed      uint64     `json:"seed,omitempty,string"`
	// Pass is a secret of the client's. A trial that was opened with one answers to
	// it alone, and trials that were opened with the same one share a memory: what
	// was signed in one of them is right in the others.
	Pass string `json:"pass,omitempty"`
	// Owner is the token of whom the guard belongs to (open): they may seed records
	// unseen and speak for the operator. In a trial without a pass each message shows it.
	Owner string `json:"owner,omitempty"`

	Route  memory.Route `json:"route,omitempty"`  // way of the write or the recall
	Change string       `json:"change,omitempty"` // write, committed: add, replace or remove
	// The record of a write or commit. input has value, source_class and origin of
	// it.
	*Record
	Prior *Record `json:"prior,omitempty"` // write, committed: what it replaces or removes
	// Around says that a record was put into the store beside the gate.
	Around bool `json:"around,omitempty"`

	Segment int `json:"segment,omitempty"` // input: its id within the trial
	Turn    int `json:"turn,omitempty"`

	Query      string       `json:"query,omitempty"` // read, act: the words that are asked by
	Said       string       `json:"said,omitempty"`  // read: the user's words, where query is the agent's
	QueryRoute memory.Route `json:"query_route,omitempty"`
	K          int          `json:"k,omitempty"`
	Candidates []Candidate  `json:"candidates,omitempty"` // read

	Tool string `json:"tool,omitempty"` // act
	Args []Arg  `json:"args,omitempty"`

	Records []Record `json:"records,omitempty"` // seed
}

// Judgement is what a guard says of one segment, record or call.
type Judgement struct {
	Action string `json:"action,omitempty"` // allow, redact, defer, quarantine or block
	// Detectors are the ids of the checks that spoke, Reasons a line on each for
	// a person, Spans where in the value (bytes).
	Detectors []string `json:"detectors,omitempty"`
	Reasons   []string `json:"reasons,omitempty"`
	Spans     [][2]int `json:"spans,omitempty"`
	// Refused are the argument and the value that each is about, of a call.
	Refused [][2]string `json:"refused,omitempty"`
	Score   *float64    `json:"score,omitempty"` // higher for more suspicious
	Value   *string     `json:"value,omitempty"` // redact: what stands in the value's place
	Held    bool        `json:"held,omitempty"`  // defer: no session sees it until somebody approves
	// Pending is the number under which a person decides about it; once they have agreed,
	// the same question is answered with allow.
	Pending string `json:"pending,omitempty"`

	Scope     memory.Scope `json:"scope,omitempty"`
	Signature []byte       `json:"signature,omitempty"`
	SignedBy  string       `json:"signed_by,omitempty"`
	Unsure    bool         `json:"unsure,omitempty"`

	Rank      int  `json:"rank,omitempty"`      // read: lower first
	Attribute bool `json:"attribute,omitempty"` // read: shown with its source
}

// Answer is a guard's answer to one request. Unknown fields are ignored.
type Answer struct {
	ID uint64 `json:"id"`
	Judgement
	Decisions []Judgement `json:"decisions,omitempty"` // read: one a candidate, in their order
	Records   []Judgement `json:"records,omitempty"`   // seed: scope, signature and signed_by of each record
	// TookUS is how long the guard itself took, in microseconds. What is left of
	// the time until its answer came is the wire's.
	TookUS float64 `json:"took_us,omitempty"`
	// Error says that the guard could not judge: an error of the trial.
	Error string `json:"error,omitempty"`

	// The answer to hello.
	Name          string          `json:"name,omitempty"`
	Version       string          `json:"version,omitempty"`
	Configuration json.RawMessage `json:"configuration,omitempty"` // any JSON; recorded with the run
	Ops           []string        `json:"ops,omitempty"`           // what it wants to be asked; without it, write alone
}

// readAnswer reads an answer. One in which a field stands twice, be it in other
// letters' case, is refused: which of the two counts is for nobody to guess.
func readAnswer(b []byte) (*Answer, error) {
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, err
	}
	// what a guard says in fields of its own is its own affair
	if err := remote.Once(b, answerFields, judgements); err != nil {
		return nil, err
	}
	return &a, nil
}

// ReadRequest reads a question. It is nil where there is none; one with a field that
// stands twice, or is unknown, comes with an error to answer it by.
func ReadRequest(b []byte) (*Request, error) {
	q := new(Request)
	switch err := json.Unmarshal(b, q); {
	case err != nil && q.ID == 0: // nobody could be answered
		return nil, err
	case err != nil:
		return &Request{ID: q.ID}, err
	}
	return q, remote.Exact(b, requestFields)
}

// requestFields are the fields of a [Request] and of what is in it.
var requestFields = remote.Fields(reflect.TypeFor[Request]())

var answerFields = remote.Fields(reflect.TypeFor[Answer]())

// judgements are the fields of an [Answer] that hold lists of [Judgement].
var judgements = []string{"decisions", "records"}

// Bounds of what a guard may say beside its verdict. More is cut off; a verdict
// never is.
const (
	maxFindings  = 32
	maxCheck     = 128  // bytes of a detector's id
	maxNote      = 1000 // bytes of a reason
	maxSignature = 4096
	maxIdentity  = 16 << 10 // bytes of a configuration
)

// RecordOf is a record in the words of the protocol; nil is none.
func RecordOf(r *memory.Record) *Record {
	if r == nil {
		return nil
	}
	return &Record{wire(*r), r.Origin.Class.String()}
}

// Memory is the record as a gate sees it.
func (r *Record) Memory() (memory.Record, error) {
	out := memory.Record(r.wire)
	if r.SourceClass != "" && r.Origin == (memory.Origin{}) {
		if err := out.Origin.Class.UnmarshalText([]byte(r.SourceClass)); err != nil {
			return out, fmt.Errorf("source_class: %w", err)
		}
	}
	return out, nil
}
