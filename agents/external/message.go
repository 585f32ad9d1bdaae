package external

import "encoding/json"

// The operations of a [Message].
const (
	Hello   = "hello"   // who are you?
	Reset   = "reset"   // forget everything; your memory is now this
	Load    = "load"    // these came into your memory beside you
	Session = "session" // a new session: the context is gone, the memory stays
	Turn    = "turn"    // the user says something
	Result  = "result"  // of the tool that you called
	Verdict = "verdict" // on the write that you proposed
	Shown   = "shown"   // what of your recall may enter the prompt
	End     = "end"     // the session is over: store what you still want to store
	Dump    = "dump"    // what do you remember?
)

// Memory is one entry of the agent's memory. ID is the agent's own, except in
// reset and load, which say by which id recalls are asked about.
type Memory struct {
	ID    string `json:"id,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value"`
	Store string `json:"-"` // of an installed product; "" is its first
}

// Server says where the model of the run answers.
type Server struct {
	BaseURL string `json:"base_url"` // of an OpenAI-compatible server, up to and with /v1
	Name    string `json:"name"`
}

// Message is one line to the agent, or the body of a POST.
type Message struct {
	ID    uint64 `json:"id"` // the reply repeats it
	Op    string `json:"op"`
	Trial uint64 `json:"trial,omitempty"` // counts up; a service tells trials apart by it

	Protocol int             `json:"protocol,omitempty"` // hello
	Memories []Memory        `json:"memories,omitempty"` // reset, load, shown
	Tools    json.RawMessage `json:"tools,omitempty"`    // reset: as in an OpenAI chat request
	Model    *Server         `json:"model,omitempty"`    // reset
	Own      string          `json:"-"`                  // reset: the arm of an installed product's own defenses
	Number   int             `json:"number,omitempty"`   // session
	Today    string          `json:"today,omitempty"`    // session: the date
	User     string          `json:"user,omitempty"`     // turn
	Content  string          `json:"content,omitempty"`  // result

	Action  string   `json:"action,omitempty"` // verdict
	Value   string   `json:"value,omitempty"`  // verdict: what may be stored
	Record  string   `json:"record,omitempty"` // verdict: the id that recalls are asked about by
	Reasons []string `json:"reasons,omitempty"`
}

type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // an object, or the text of one
}

type Write struct {
	Change string `json:"change,omitempty"` // add (as without it), replace or remove
	Key    string `json:"key,omitempty"`
	Value  string `json:"value,omitempty"`
	Old    string `json:"old,omitempty"`   // replace, remove: a part of the entry that is meant
	Route  string `json:"route,omitempty"` // memory_tool, file_tool, flush, compaction, review or skill
}

// Recall asks whether memories may enter the prompt.
type Recall struct {
	Query   string   `json:"query,omitempty"`
	Records []string `json:"records"`
}

// Reply is what the agent answers. During a turn or at the end of a session it is
// one of Call, Write and Recall, each of which is answered in turn, until it is the
// Answer or Done.
type Reply struct {
	ID     uint64  `json:"id"`
	Call   *Call   `json:"call,omitempty"`
	Write  *Write  `json:"write,omitempty"`
	Recall *Recall `json:"recall,omitempty"`
	Answer *string `json:"answer,omitempty"`
	Done   bool    `json:"done,omitempty"`

	Memories *[]Memory `json:"memories,omitempty"` // the answer to dump

	Name    string `json:"name,omitempty"` // the answer to hello
	Version string `json:"version,omitempty"`
	Skills  bool   `json:"skills,omitempty"` // it turns experience into skills (C4)

	Error string `json:"error,omitempty"`

	size int // bytes on the wire
}
