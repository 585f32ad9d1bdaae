// Package model is what a session loop asks of a language model, and no more
// than a chat protocol can carry: messages with roles, tools with typed
// parameters, a seed; text, tool calls and usage come back.
//
// Nothing here tells a model which phase of a trial it is in, where a text came
// from, or what is being measured. Whatever a model is to know stands in the
// messages.
package model

import (
	"context"
	"time"
)

// Role is who speaks in a message.
type Role string

// The roles of a chat protocol.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one turn of the conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Calls are the tool calls of an assistant message.
	Calls []Call `json:"calls,omitempty"`
	// CallID and Name say which call a tool message answers.
	CallID string `json:"call_id,omitempty"`
	Name   string `json:"name,omitempty"`
}

// Call is one tool call that a model makes.
type Call struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Args are in the order of the tool's parameters. Values that are not
	// strings stand here as their JSON text.
	Args []Arg `json:"args,omitempty"`
}

// Arg is one argument of a call.
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Get returns the value of an argument, or "".
func (c Call) Get(name string) string {
	for _, a := range c.Args {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Param is one parameter of a tool. Every parameter is a string on the wire
// unless Type says otherwise.
type Param struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"` // JSON Schema type; "" is string
	// JSON Schema format or one of ours: email, uri, account, command, path, …
	Format   string   `json:"format,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	Required bool     `json:"required,omitempty"`
}

// Refused is an argument for which a call was not carried out. The result of a call that
// the action gate refused is JSON with success: false and a list of them, refused, where
// the gate names arguments.
type Refused struct {
	Argument string `json:"argument"`
	Value    string `json:"value,omitempty"` // of a list the item
}

// Tool is something that a model may call.
type Tool struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Params      []Param `json:"params,omitempty"`
}

// Request asks for the next turn.
type Request struct {
	Messages []Message
	Tools    []Tool
	Seed     int64
	// MaxTokens bounds the answer; 0 is the model's own default.
	MaxTokens int
}

// Usage is what one reply cost. Estimated says that the server gave no counts
// and they were reckoned from the text.
type Usage struct {
	Prompt     int
	Completion int
	Estimated  bool
	Calls      int           // requests that were sent, retries included
	Took       time.Duration // wall time of the model
}

// Add adds the cost of another reply.
func (u *Usage) Add(v Usage) {
	u.Prompt += v.Prompt
	u.Completion += v.Completion
	u.Estimated = u.Estimated || v.Estimated
	u.Calls += v.Calls
	u.Took += v.Took
}

// Reply is a model's turn: text, tool calls, or both.
type Reply struct {
	Text  string
	Calls []Call
	Usage Usage
	// Exchanges are the requests behind the reply, where any left this process.
	Exchanges []Exchange
}

// Exchange is one request as it was sent and the answer as it came, without secrets, and
// what it took. A long one is cut.
type Exchange struct {
	Sent, Answered string
	Usage
}

// Model answers the next turn. It is safe for concurrent use. The error of a
// model is an error of its trial.
type Model interface {
	Next(context.Context, Request) (Reply, error)
}

// Namer is a Model that can say what it is, for run.json and tables.
type Namer interface {
	// Name is how a person asks for the model, for instance
	// "reference:cautious".
	Name() string
	// IsLLM is false for the reference model, and every output says so.
	IsLLM() bool
	// Deterministic says that the same request always gets the same reply.
	Deterministic() bool
}

// Tokens estimates how many tokens a text has: four bytes each, the usual rule
// for English. It is used wherever no server counts them.
func Tokens(s string) int { return (len(s) + 3) / 4 }
