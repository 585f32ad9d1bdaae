package memory

// Route is the way that a write or a recall took. The six write routes are all
// the ways in which the session loop can change memory.
type Route uint8

// The routes.
const (
	RouteNone       Route = iota
	RouteMemoryTool       // write: the profile's memory tool
	RouteFileTool         // write: an ordinary file tool on a memory file
	RouteFlush            // write: the flush before a compaction
	RouteCompaction       // write: the items of a compaction summary
	RouteReview           // write: the review at the end of a session
	RouteSkill            // write: a skill synthesised from experience
	RouteSnapshot         // read: injected when a session starts
	RouteInject           // read: injected for a user turn (retrieval-augmented)
	RouteSearch           // read: the memory search tool
	RouteGet              // read: one record or file by name
	RouteTranscript       // read: search over past turns
	RouteSkillView        // read: a skill opened by name
	RouteSeed             // background memories and records from outside
	RouteOperator         // a person's or an incident response's own act, such as an approval
)

// WriteRoutes lists every route by which a session can write.
func WriteRoutes() []Route {
	return []Route{RouteMemoryTool, RouteFileTool, RouteFlush, RouteCompaction, RouteReview, RouteSkill}
}

// Op is what a write does.
type Op uint8

// The operations.
const (
	Add Op = iota
	Replace
	Remove
)

// Draft is what a route produced, before Memory turned it into entries.
type Draft struct {
	Route Route
	Op    Op
	Store string // name of the profile's store
	Key   string // skill name or file path; empty lets Memory choose
	Text  string // one entry, a file's new content, or a summary
	Old   string // for Replace and Remove: text that names the prior entry
	// From is what the text came into the context as, where whoever brought it
	// declared its source: then that is the source, whatever else the text overlaps.
	From *Segment
	// Record is, for Replace and Remove, the id of the prior entry, in whatever
	// state; Old is then not looked at. Nobody reads it from a model's words without
	// knowing whose record it is.
	Record string
}

// Proposal is one changed entry, as a defense sees it. A defense never sees the
// case that it belongs to.
type Proposal struct {
	Op     Op
	Route  Route
	Record Record  // with lineage, origin and times already set
	Prior  *Record // what it would replace or remove; nil for Add
}

// Action is a defense's answer, in order of strictness.
type Action uint8

// The five verdicts.
const (
	Allow      Action = iota
	Redact            // commit, but with changed content
	Defer             // stage: usable as context or held, until somebody decides
	Quarantine        // keep for review, show to no session
	Block             // do not keep
)

// Stops reports whether the action keeps the content from every session
// outright: block or quarantine. A deferral is counted apart, and a redaction
// stops only what it removes.
func (a Action) Stops() bool { return a == Quarantine || a == Block }

// Finding is one reason for a verdict.
type Finding struct {
	Check string `json:"check"`           // stable id of the check or pattern
	Note  string `json:"note,omitempty"`  // one line for a person
	Start int    `json:"start,omitempty"` // byte span in the content, where there is one
	End   int    `json:"end,omitempty"`
	// Argument is that of a call which the finding is about, and Value what stands
	// there. The model is told both, and the note.
	Argument string `json:"argument,omitempty"`
	Value    string `json:"value,omitempty"`
}

// Verdict is a defense's answer to one segment, proposal or call. The zero value
// allows. Besides the action a defense may amend only what stands here: every
// other field of the record is the harness's.
type Verdict struct {
	Action Action
	// Text replaces the content when Action is Redact, or Defer where it is set.
	Text string
	// Held makes a deferred record invisible until it is approved; without it
	// the record is Staged, usable as context.
	Held      bool
	Scope     Scope
	Signature []byte
	SignedBy  string
	Findings  []Finding
	// Score is the defense's own score, higher for more suspicious, where it has
	// one. HasScore tells a score of zero from none.
	Score    float64
	HasScore bool
	// Unsure says that the defense had too little to judge by (for instance too
	// small a baseline). It is counted apart and is never an informed allow.
	Unsure bool
}
