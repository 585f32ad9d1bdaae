package memory

import "slices"

// Class is where a text first came from, in order of trust: a greater class is
// trusted more. The zero value is External, so that an origin nobody set is the
// least trusted one.
type Class uint8

// The four source classes.
const (
	External Class = iota // tool output, web page, mail, file, MCP response
	Agent                 // written by the agent itself
	User                  // said by the user
	System                // the operator: system prompt, built-in constraints
)

// Medium is how a segment reached the agent.
type Medium string

// The media of the built-in cases. A foreign set may bring others.
const (
	Chat     Medium = "chat" // the conversation with the user
	Web      Medium = "web"
	Email    Medium = "email"
	File     Medium = "file"
	Slack    Medium = "slack"
	Calendar Medium = "calendar"
	MCP      Medium = "mcp"
	Script   Medium = "script" // output of a script or terminal
	Skill    Medium = "skill"
	Tool     Medium = "tool"  // the description of a tool that a server offers
	Peer     Medium = "agent" // a message of another agent
)

// Origin says where a text first came from. The harness sets it when the text
// enters the context; nothing that a text or a model says can change it.
type Origin struct {
	Class  Class  `json:"class"`
	Medium Medium `json:"medium,omitempty"`
	// Source names the sender, page, path or channel, as far as it is known.
	Source string `json:"source,omitempty"`
}

// Less reports whether o is trusted less than p.
func (o Origin) Less(p Origin) bool { return o.Class < p.Class }

// Segment is one piece of context with its origin.
type Segment struct {
	ID     int    `json:"id"` // counts up within a trial, from 1
	Turn   int    `json:"turn"`
	Origin Origin `json:"origin"`
	Text   string `json:"text"`
}

// Link is one thing that a record derives from: a segment or another record.
type Link struct {
	Segment int    `json:"segment,omitempty"`
	Record  string `json:"record,omitempty"`
	Origin  Origin `json:"origin"`
}

// Lineage is everything that a record derives from. Memory computes it.
type Lineage []Link

// Least returns the least trusted origin of the lineage, or def if it is empty.
func (l Lineage) Least(def Origin) Origin {
	if len(l) == 0 {
		return def
	}
	return slices.MinFunc(l, func(a, b Link) int { return int(a.Origin.Class) - int(b.Origin.Class) }).Origin
}
