package agents

import (
	"github.com/memtox/memtox/agents/memory"
)

// Profile says how an agent uses memory. It is data; the one loop runs it. A
// profile brings no defense of its own: the scan that a product ships is an arm.
//
// Counts of turns, iterations and messages are those of the product at a window
// of 131,072 tokens; [Profile.Scale] brings them to the run's window.
type Profile struct {
	Name    string
	Version string // changes whenever prompts or tools change
	About   string // one line for `memtox agents list`

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
	SkillIndex bool
	// Inject is how many records are injected for each user turn; 0 is none.
	Inject int
	// Wraps are the media whose content stands in untrusted delimiters, if it
	// has at least WrapMin characters.
	Wraps   []memory.Medium
	WrapMin int

	// CompactAt and FlushAt are shares of the window; 0 is never.
	CompactAt, FlushAt float64
	// KeepMessages is how many of the newest messages a compaction keeps.
	KeepMessages int
	// SummaryStore keeps the items of a compaction summary where later sessions
	// can find them; empty keeps the summary in its own session only.
	SummaryStore string
	// FlushPrompt asks the agent to store what matters before a compaction.
	FlushPrompt string

	// A review follows a session of at least ReviewTurns user turns or
	// ReviewIterations rounds of tool calls; 0 is never.
	ReviewTurns, ReviewIterations int
	ReviewSteps                   int // most rounds of the review itself

	// Transcripts says that past turns can be searched.
	Transcripts bool
	// WritesSkills says that the agent turns experience into skills (C4).
	WritesSkills bool
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

// Profiles returns the built-in profiles. Figures are those of the products'
// documentation (hermes, openclaw) and of the sandbox article (rag); windows
// under 40,000 tokens take openclaw's flush and compaction at a quarter and
// three eighths of the window.
func Profiles() []*Profile {
	return []*Profile{
		{
			Name: "hermes", Version: "1",
			About: "two small stores injected as a frozen snapshot, compaction, a review that writes memory and skills (C1–C4)",
			Stores: []memory.StoreSpec{
				{Name: "memory", Title: "MEMORY.md", Kind: memory.Entries, Limit: 2200},
				{Name: "user", Title: "USER.md", Kind: memory.Entries, Limit: 1375},
				{Name: "skills", Title: "skills", Kind: memory.Skills},
				{Name: "sessions", Title: "sessions", Kind: memory.Entries},
			},
			Recall:       memory.RecallSpec{BM25: 1, K: 5, ChunkTokens: 400},
			Instructions: hermesInstructions,
			Tools:        []string{"memory", "session_search", "skill_manage"},
			Snapshot:     []string{"memory", "user"},
			SkillIndex:   true,
			Wraps:        []memory.Medium{memory.Web, memory.MCP}, WrapMin: 32,
			CompactAt: 0.50, KeepMessages: 20, SummaryStore: "sessions",
			ReviewTurns: 10, ReviewIterations: 10, ReviewSteps: 16,
			Transcripts: true, WritesSkills: true,
		},
		{
			Name: "openclaw", Version: "1",
			About: "a curated file injected, daily notes behind a search tool, a flush before compaction (C1–C3)",
			Stores: []memory.StoreSpec{
				{Name: "memory", Title: "MEMORY.md", Kind: memory.Notes, Limit: 12_000},
				{Name: "notes", Title: "memory/", Kind: memory.Notes, Limit: 60_000},
			},
			Recall:       memory.RecallSpec{Vector: 0.7, BM25: 0.3, K: 6, Floor: 0.35},
			Instructions: openclawInstructions,
			Tools:        []string{"memory_search", "memory_get", "write_file", "edit_file"},
			Snapshot:     []string{"memory"},
			CompactAt:    3. / 8, FlushAt: 1. / 4, KeepMessages: 6, FlushPrompt: flushPrompt,
		},
		{
			Name: "rag", Version: "1",
			About: "records ranked by similarity alone and injected for every turn, the plain pattern of the sandbox article",
			Stores: []memory.StoreSpec{
				{Name: "memory", Title: "memories", Kind: memory.Entries},
			},
			Recall:       memory.RecallSpec{Vector: 1, K: 4},
			Instructions: ragInstructions,
			Tools:        []string{"add_memory", "search_memories"},
			Inject:       4,
			CompactAt:    0.75, FlushAt: 0.5, KeepMessages: 20, FlushPrompt: ragFlushPrompt,
		},
	}
}
