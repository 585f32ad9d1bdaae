package agents

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/settings"
)

// Profile says how an agent uses memory. It is data (profiles/NAME.yaml); the one
// loop runs it. A profile brings no defense of its own: the scan that a product
// ships is an arm. That of one version of a product is as that comes, with its scan.
//
// Counts of turns, iterations and messages are those of the product at a window
// of 131,072 tokens; [Profile.Scale] brings them to the run's window.
type Profile struct {
	Name    string `yaml:"-"`
	Version string // changes whenever prompts or tools change
	About   string // one line for `memtox agents list`
	Product string // whose version it is a reading of, as in agents/installed; "" is no version of one
	// Installed says that it is a product, to which content can come by channels of its own.
	Installed bool `yaml:"-"`

	Stores []memory.StoreSpec
	Recall memory.RecallSpec

	// Instructions is the system prompt, in our own words. The retention policy
	// and the injected memory follow it.
	Instructions string
	// Tools are the memory tools, by name; the sandbox's tools come on top.
	Tools []string

	// Snapshot are the stores that are injected when the session starts, frozen
	// for the session.
	Snapshot []string
	// SkillIndex lists the names of the stored skills in the prompt.
	SkillIndex bool `yaml:"skill_index"`
	// Classed are the stores whose files the product classes by where they come from. A
	// file that is written to in a turn that saw what came from outside is untrusted from
	// then on, with all that it holds: it is not injected, and searches label it. A search
	// looks through these stores.
	Classed []string
	// Inject is how many records are injected for each user turn; 0 is none.
	Inject int
	// Wraps are the media whose content stands in untrusted delimiters, if it
	// has at least WrapMin characters.
	Wraps   []memory.Medium
	WrapMin int `yaml:"wrap_min"`

	// CompactAt and FlushAt are shares of the window; 0 is never.
	CompactAt float64 `yaml:"compact_at"`
	FlushAt   float64 `yaml:"flush_at"`
	// KeepMessages is how many of the newest messages a compaction keeps.
	KeepMessages int `yaml:"keep_messages"`
	// SummaryStore keeps the items of a compaction summary where later sessions
	// can find them; empty keeps the summary in its own session only.
	SummaryStore string `yaml:"summary_store"`
	// FlushPrompt asks the agent to store what matters before a compaction.
	FlushPrompt string `yaml:"flush_prompt"`

	// A review follows a session of at least ReviewTurns user turns or
	// ReviewIterations rounds of tool calls; 0 is never.
	ReviewTurns      int `yaml:"review_turns"`
	ReviewIterations int `yaml:"review_iterations"`
	ReviewSteps      int `yaml:"review_steps"` // most rounds of the review itself
	// ReviewPrompt asks the agent to store what matters at the end of a session.
	ReviewPrompt string `yaml:"review_prompt"`

	// ExtractPrompt has the agent say the facts of each exchange, a line each; they are only
	// ever added, to its first store. "" is no such thing. It is shown what was said, never
	// what tools returned.
	ExtractPrompt string `yaml:"extract_prompt"`
	// ExtractContext is how many messages before the exchange are shown for context, each cut
	// to 300 bytes, and Neighbours how many memories that are like it: a fact equal to one of
	// these is dropped.
	ExtractContext int `yaml:"extract_context"`
	Neighbours     int

	// Undated shows memories without the day on which they were noted.
	Undated bool
	// Transcripts says that past turns can be searched.
	Transcripts bool
	// WritesSkills says that the agent turns experience into skills (C4).
	WritesSkills bool `yaml:"writes_skills"`

	// Heads are what stands over the block in which the prompt shows a store, by its name,
	// between two lines; {used}, {limit} and {percent} are of its characters. A store
	// without one is shown as the loop does.
	Heads map[string]string
	// Threats are what the product refuses to store, and shows a placeholder for.
	Threats []memory.Threat
	// Own are the arms in which the product's own defenses are other than as it comes, by
	// name.
	Own map[string]Switch
}

// Switch is an arm of a product's own defenses.
type Switch struct {
	About   string // what is other than as it comes
	Nothing string // or why there is nothing to switch
	// Approval has every write wait for a person, who is not there in a trial.
	Approval bool
	// Without are memory tools that are gone then, and Unclassed has no file classed.
	Without   []string
	Unclassed bool
}

// CheckOwn finds what is wrong with the arms of a product's own defenses.
func CheckOwn(own map[string]Switch) error {
	for name, s := range own {
		if name != memory.ProductOn && name != memory.ProductOff || (s.About == "") == (s.Nothing == "") {
			return fmt.Errorf("own has %s and %s, each of which says what it does, or that there is nothing", memory.ProductOn,
				memory.ProductOff)
		}
	}
	return nil
}

// In is the profile as an arm has it: itself, where that changes nothing but its stores.
func (p *Profile) In(defense string) *Profile {
	own := p.Own[defense]
	if len(own.Without) == 0 && !own.Unclassed {
		return p
	}
	in := *p
	in.Tools = slices.DeleteFunc(slices.Clone(p.Tools), func(t string) bool { return slices.Contains(own.Without, t) })
	if own.Unclassed {
		in.Classed = nil
	}
	return &in
}

// Under are the stores of the profile in an arm.
func (p *Profile) Under(defense string) []memory.StoreSpec {
	own, ok := p.Own[defense]
	if len(p.Threats) == 0 && !ok {
		return p.Stores
	}
	out := slices.Clone(p.Stores)
	for i := range out {
		out[i].Approval = own.Approval
		if out[i].Kind != memory.Skills {
			out[i].Refuses = p.Threats
		}
	}
	return out
}

// Switches says what an arm of the product's own defenses does in the profile; the error
// says why there is no such arm.
func (p *Profile) Switches(defense string) (string, error) {
	s := p.Own[defense]
	switch {
	case s.Nothing != "":
		return "", errors.New(s.Nothing)
	case s.About == "":
		return "", errors.New("it has no defenses of its own that can be switched")
	}
	return s.About, nil
}

// Scaled are a profile's counts at a run's window. Rows record them.
type Scaled struct {
	Window           int // tokens
	CompactTokens    int
	FlushTokens      int
	ReviewTurns      int
	ReviewIterations int
	KeepMessages     int
}

const fullWindow = 131_072 // tokens, for which the profiles' counts are stated

// Scale brings the profile's counts to a window: in proportion, but not below
// one turn, two iterations and four messages.
func (p *Profile) Scale(window int) Scaled {
	scale := func(n, least int) int {
		if n == 0 {
			return 0
		}
		return max(least, n*window/fullWindow)
	}
	return Scaled{
		Window:           window,
		CompactTokens:    int(p.CompactAt * float64(window)),
		FlushTokens:      int(p.FlushAt * float64(window)),
		ReviewTurns:      scale(p.ReviewTurns, 1),
		ReviewIterations: scale(p.ReviewIterations, 2),
		KeepMessages:     scale(p.KeepMessages, 4),
	}
}

// StoreFor is the profile's store of that name, or its first.
func (p *Profile) StoreFor(name string) string {
	for _, s := range p.Stores {
		if s.Name == name {
			return name
		}
	}
	return p.Stores[0].Name
}

// Applies reports whether a write channel exists in the profile: C4 needs an
// agent that writes skills.
func (p *Profile) Applies(channel string) bool { return channel != "C4" || p.WritesSkills }

//go:embed profiles/*.yaml
var profileFiles embed.FS

// Profiles returns the built-in profiles: a file each, named after its profile.
// What is wrong with one of them is a fault of the program.
var profiles = sync.OnceValue(func() []Profile {
	files, err := fs.Glob(profileFiles, "profiles/*.yaml")
	var out []Profile
	for _, file := range files {
		p := Profile{Name: strings.TrimSuffix(path.Base(file), ".yaml")}
		data, e := profileFiles.ReadFile(file)
		err = errors.Join(err, e, settings.Decode("agents/"+file, data, &p))
		if e := p.check(); e != nil {
			err = errors.Join(err, fmt.Errorf("agents/%s: %w", file, e))
		}
		out = append(out, p)
	}
	if err != nil {
		panic(err)
	}
	return out
})

// check finds what the loop would stumble over.
func (p *Profile) check() error {
	switch {
	case p.Version == "" || p.About == "" || p.Instructions == "" || len(p.Stores) == 0:
		return errors.New("it needs a version, a line about it, instructions and a store")
	case (p.FlushAt > 0) != (p.FlushPrompt != ""):
		return errors.New("flush_at and flush_prompt go together")
	case (p.ReviewTurns+p.ReviewIterations > 0) != (p.ReviewPrompt != ""):
		return errors.New("review_turns or review_iterations, and review_prompt, go together")
	case (p.Neighbours+p.ExtractContext > 0) != (p.ExtractPrompt != ""):
		return errors.New("extract_context or neighbours, and extract_prompt, go together")
	}
	if err := CheckOwn(p.Own); err != nil {
		return err
	}
	for arm, own := range p.Own {
		for _, name := range own.Without {
			if !slices.Contains(p.Tools, name) {
				return fmt.Errorf("%s is without the tool %q, which is none of its tools", arm, name)
			}
		}
	}
	stores := slices.Concat(p.Snapshot, p.Classed)
	if p.SkillIndex {
		stores = append(stores, "skills")
	}
	if p.SummaryStore != "" {
		stores = append(stores, p.SummaryStore)
	}
	for _, name := range p.Tools {
		t := world.Find(name)
		if t == nil || !t.Memory() {
			return fmt.Errorf("%q is no memory tool of agents/world/tools.yaml", name)
		}
		stores = append(stores, t.Stores...)
	}
	for _, name := range stores {
		if !slices.ContainsFunc(p.Stores, func(s memory.StoreSpec) bool { return s.Name == name }) {
			return fmt.Errorf("what it snapshots, indexes or does with its tools needs a store %q", name)
		}
	}
	return nil
}

// Profiles returns the built-in profiles in the order of their names.
func Profiles() []*Profile {
	var out []*Profile
	for _, p := range profiles() {
		out = append(out, &p)
	}
	return out
}
