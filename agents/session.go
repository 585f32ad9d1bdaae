package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
)

// Turn is one turn of the user and what the sandbox returns while the agent
// works on it.
type Turn struct {
	User     string
	Incoming []Incoming
	// Fresh begins a new session with this turn: the context is gone, the memory
	// stays.
	Fresh bool
	// As is who the user of the session is that this turn begins; "" is the one whose
	// agent it is. At is when it begins at the earliest.
	As string
	At time.Time
	// Via is the channel by which an installed agent gets what the turn brings, such as file or
	// page+later; "" is by the sandbox's tools. Where is what the user says of where it is.
	Via, Where string
}

// Opens has the memory serve the session that the turn begins.
func (t *Turn) Opens(mem *memory.Memory) {
	mem.As(t.As)
	mem.Until(t.At)
}

// Incoming is one piece of external content.
type Incoming struct {
	Origin memory.Origin
	Title  string
	Text   string
	Inline bool // handed over as a labelled block beside the user's words
}

// ActionCall is a tool call that changes the world. Without an [Office] the sandbox
// only records it.
type ActionCall struct {
	Turn   int
	Call   model.Call
	Result int  // place among the session's messages of what the model was told
	Vetoed bool // the action gate refused it, or the user did
	// Shown says that the action gate had the user asked, and Declined that he said no.
	Shown, Declined bool
}

// Office is the world of tables in which a session works, and the user whom it
// can ask.
type Office struct {
	World *world.State
	Desks []string // whose tools are on offer
	// Answer is what the user says to a question, and Agrees whether he says yes to
	// a call that he is shown.
	Answer func(question string) string
	Agrees func(model.Call) bool
	// Questions are how many the user heard, calls that he was shown among them.
	Questions int
	// Looks are how often a defense looked into the tables.
	Looks int
}

// maxQuestions is how many questions of a session the user answers.
const maxQuestions = 3

// Outcome is what one session did.
type Outcome struct {
	// Answers are the agent's final answers, one a user turn.
	Answers []string
	// Actions are all action calls, vetoed ones included.
	Actions []ActionCall
	// Recalled are the records that entered a prompt, as they stood there.
	Recalled []Shown
	// Messages is the whole conversation as the model saw it, compacted parts
	// included.
	Messages []model.Message
	// Asides are the stretches of Messages that nobody but the profile asked for:
	// flushes, compactions and reviews, each from one place up to another.
	Asides [][2]int
	// Segments are the segments that entered the context.
	Segments []Taken
	// Asked are the calls of a model outside the process, each with the place of its
	// answer among the messages.
	Asked []Asked
	// Counters.
	ModelCalls, ToolCalls, Flushes, Compactions, Reviews int
	// EmptyAnswers are replies without text and call.
	EmptyAnswers int
	Usage        model.Usage
}

// again is an empty outcome in the room of one that is done with, which may be nil.
func (o *Outcome) again() *Outcome {
	if o == nil {
		return &Outcome{}
	}
	*o = Outcome{Answers: o.Answers[:0], Actions: o.Actions[:0], Recalled: o.Recalled[:0], Messages: o.Messages[:0],
		Asides: o.Asides[:0], Segments: o.Segments[:0]}
	if cap(o.Messages)+cap(o.Recalled)+cap(o.Segments) > 1<<10 { // one huge session should not be remembered
		*o = Outcome{}
	}
	return o
}

// Asked is what one answer of the model took.
type Asked struct {
	Message   int
	Exchanges []model.Exchange
}

// Place is where a text stands in a session: from one byte up to another of the
// message at a place among its messages. It is empty where no message holds it.
type Place struct{ Message, From, To int }

// Taken is one segment as it entered the context.
type Taken struct {
	memory.Segment
	Place
}

// Shown is one record as it entered a prompt.
type Shown struct {
	Place
	Route      memory.Route
	Record     string // its id
	Origin     memory.Origin
	Text       string // what the prompt held
	Attributed bool
}

// Readers implements [memory.Desk].
func (o *Office) Readers() []memory.Reader {
	var out []memory.Reader
	for _, t := range world.Offer(o.Desks) {
		if !t.Own() {
			continue
		}
		r := memory.Reader{Tool: t.Name}
		for _, c := range world.FindTable(t.Table).Columns[1:] {
			r.Finds = append(r.Finds, string(c.Type))
		}
		out = append(out, r)
	}
	return out
}

// Look implements [memory.Desk].
func (o *Office) Look(_ context.Context, tool, name string) ([]memory.Row, error) {
	t := world.Find(tool)
	if t == nil || !t.Own() {
		return nil, fmt.Errorf("there is no tool %q that looks into a table of the user's own", tool)
	}
	o.Looks++
	columns := world.FindTable(t.Table).Columns
	var out []memory.Row
	for row := range o.World.Named(t, name) {
		r := memory.Row{Name: row[columns[0].Name]}
		for _, c := range columns[1:] {
			if v := row[c.Name]; v != "" {
				r.Cells = append(r.Cells, memory.Cell{Column: c.Name, Type: string(c.Type), Value: v})
			}
		}
		out = append(out, r)
	}
	return out, nil
}
