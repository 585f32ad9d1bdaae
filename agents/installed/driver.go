package installed

import "context"

// Driver starts instances of a product and speaks to them. One serves one trial at a
// time, and the next one after it: what is costly to start it may keep between them,
// as long as no trial sees anything of another.
type Driver interface {
	// Start makes the product ready for a trial. What it remembers then is
	// Setup.Memory, and nothing else of any trial.
	Start(ctx context.Context, s *Setup) (Instance, error)
	// Close ends whatever is left.
	Close() error
}

// Instance is a product in one trial. Nothing of it is called twice at once.
type Instance interface {
	// Session begins a session: the context is gone, the memory stays.
	Session(ctx context.Context) error
	// Say says a user turn, and returns the answer once the product is done with it.
	Say(ctx context.Context, text string) (answer string, err error)
	// Settle returns once nothing goes on any more that may change memory: reviews,
	// flushes, indexes. A search that failed is an error.
	Settle(ctx context.Context) error
	// Memory returns what it remembers, after Settle.
	Memory(ctx context.Context) ([]Item, error)
	// Load puts items into its memory beside it.
	Load(ctx context.Context, items []Item) error
	// Close ends all that was started for the trial.
	Close() error
}

// lender is an [Instance] to which whoever says a turn may offer tools that he runs
// himself: tools are their names and what they return.
type lender interface {
	SayWith(ctx context.Context, said string, tools map[string]string) (answer string, err error)
}

// scheduler is an [Instance] that runs a job of the user's, with nobody there: prompt is
// what he wrote into it. It returns once the job is done, with the job's answer.
type scheduler interface {
	Job(ctx context.Context, prompt string) (answer string, err error)
}

// Folder is implemented by an instance to which content can come by files.
type Folder interface {
	// Dir is the folder that is the box to the product's file.
	Dir() string
}

// Item is one entry of a product's memory.
type Item struct {
	Store string // that of [Product.Stores]; "" where it is a file, or stands in a watched one
	File  string // where, as a path of the box
	Text  string
}

// Setup is what a trial starts a product with.
type Setup struct {
	Product *Product
	Found   *Installation

	// ModelURL is where the model of the trial answers in the OpenAI chat protocol, up to
	// and with /v1; requests name ModelName. ModelKey is what the product sends for a key:
	// nothing checks it.
	ModelURL, ModelName, ModelKey string
	// ToolsURL is where the trial's tools answer by MCP over HTTP.
	ToolsURL string
	// Tools are their names.
	Tools []string
	// PagesURL is where its pages are, by name. Channels are those by which content comes to
	// the product in the run, without +later.
	PagesURL string
	Channels []string
	// Ports are those of this machine that its box must reach for both, and Traffic what
	// is asked there.
	Ports   []int
	Traffic *Traffic
	// Pages are more of them, where web servers answer that it may read.
	Pages []int
	// Memory is what the product remembers before its first session, and files beside it.
	Memory []Item
	// Own is the arm of the product's own defenses; "" is as it comes.
	Own string

	// Of the box in which it runs: absolute paths, a free port of its loopback, and a
	// secret for whatever asks for one.
	Home, Work, Tmp string
	Program         string
	Port            int
	Secret          string
}

// Installation is a product as it was found.
type Installation struct {
	Program string // absolute
	Dir     string // the folder of the installation; "" where it was found on PATH
	Version string
}
