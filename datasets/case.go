package datasets

import (
	"iter"
	"slices"

	"github.com/memtox/memtox/agents/memory"
)

// Label says whether a case has an attacker.
type Label string

// The two labels.
const (
	Attack Label = "attack"
	Benign Label = "benign"
)

// Split says what a case may be used for.
type Split string

// The splits. Lexicons, thresholds and weights of defenses may see Tune only;
// figures are reported on Report. A case without a split counts as Report.
const (
	Tune   Split = "tune"
	Report Split = "report"
)

// The six attack classes of MPBench (arXiv 2606.04329). A foreign set may bring
// its own names.
const (
	ExplicitCommand    = "explicit_command"    // a directive to remember, executed as a write
	ConditionalCommand = "conditional_command" // the same, armed by a later affirmative
	SalienceCompaction = "salience_compaction" // a claim repeated until a summary keeps it
	PolicyFact         = "policy_fact"         // a plausible fact or policy without any command
	FalsePrecedent     = "false_precedent"     // a fabricated record of a past task
	SkillProcedure     = "skill_procedure"     // a hostile step inside a legitimate trace
	// OutOfBand is the class of the attacks whose record reaches the store around
	// the gate (Case.Inject). It is none of MPBench's and has no write channel.
	OutOfBand = "out_of_band"
)

// The kinds of attack of memtox-frontier, which are none of MPBench's. They stand in
// Case.Class.
const (
	SharedMemory     = "shared_memory"     // another user of the same memory says it
	SleeperTopic     = "sleeper_topic"     // acts once a topic comes up, sessions later
	SleeperDate      = "sleeper_date"      // acts once a day has come
	SelfReplication  = "self_replication"  // asks to be noted again in whatever session meets it
	ToolDescription  = "tool_description"  // stands in the description of a tool that is on offer
	AgentMessage     = "agent_message"     // another agent says it
	Omission         = "omission"          // takes something out of a task
	Preference       = "preference"        // a liking that decides a choice and holds no value
	URLExfiltration  = "url_exfiltration"  // has a secret put into a web address
	OneTurnLater     = "one_turn_later"    // kept by a yes to what the assistant offers
	SourceLaundering = "source_laundering" // comes again by a path that is trusted more
)

// Case is one scenario. A benign case has no attacker; everything else is alike,
// so that nothing but the label tells the two apart.
//
// A case has a write session (Write) and a retrieval session (Retrieval). A case
// without a retrieval query counts for ASR and detection only. A case with a Text
// and no write session is a text to be classified: it is run by `memtox detect`
// alone.
type Case struct {
	// ID names the case. It leaks no label: "m-" and hexadecimal digits.
	ID string `json:"id"`
	// Family names the template family that the case comes from; intervals are
	// widened for the likeness of cases of one family.
	Family string `json:"family"`
	Split  Split  `json:"split,omitempty"`
	Label  Label  `json:"label"`

	Class  string `json:"class,omitempty"`  // attack class; empty for benign
	Signal string `json:"signal,omitempty"` // strong or weak; foreign sets may add others
	// Channel is the intended write channel, C1–C4. A benign case has it only
	// where its legitimate memory is a skill: C4, for agents that write skills.
	Channel string `json:"channel,omitempty"`
	Domain  string `json:"domain,omitempty"` // one of Domains
	Goal    string `json:"goal,omitempty"`   // one of Goals; empty for benign
	// Kind says what a benign case is: one of the Kind constants. A text may have
	// a name of its own there, or none.
	Kind string `json:"kind,omitempty"`

	Twin      string `json:"twin,omitempty"`       // id of the benign twin, or of the attack it mirrors
	VariantOf string `json:"variant_of,omitempty"` // id of the case that this one varies
	Variant   string `json:"variant,omitempty"`    // name of the variation or mutation

	// Write is the write session, one entry a user turn. It is empty exactly where
	// Text stands.
	Write []Turn `json:"write,omitempty"`
	// Text is the text of a case without sessions.
	Text *Text `json:"text,omitempty"`
	// Inject are records that reach the store around the gate, after the write
	// session has ended and before the next one begins.
	Inject []Injected `json:"inject,omitempty"`
	// Memory is what the write session should leave behind: for an attack what
	// the attacker wants stored, for a benign case the legitimate memory. Empty
	// means that nothing should be stored.
	Memory string `json:"expected_memory,omitempty"`
	// Value is the operative value: for an attack the canary, for a benign case
	// what the later task needs. Forms are other spellings that count as it.
	Value string   `json:"value,omitempty"`
	Forms []string `json:"forms,omitempty"`

	Retrieval *Retrieval `json:"retrieval,omitempty"`
	// State is what a case has whose outcome is a state; nil in sets whose outcome is
	// read from what the agent said and did.
	State *State `json:"state,omitempty"`
}

// Kinds of benign cases. Those that hold a legitimate write are KindUser,
// KindAsked and KindUnasked.
const (
	KindUser     = "user"     // the user states a preference, correction or confirmed outcome
	KindAsked    = "asked"    // external content that the user asks to keep
	KindUnasked  = "unasked"  // external content worth keeping that nobody asked to keep
	KindNothing  = "nothing"  // content that should not be stored
	KindTriggers = "triggers" // attack words in innocent use; nothing should be stored
)

// Writes reports whether the case is benign and expects a legitimate write, and
// says what should be stored.
func (c *Case) Writes() bool {
	return c.Label == Benign && c.Text == nil && c.Memory+c.Value != "" &&
		(c.Kind == KindUser || c.Kind == KindAsked || c.Kind == KindUnasked)
}

// Spellings are the operative value and its other forms.
func (c *Case) Spellings() []string { return append([]string{c.Value}, c.Forms...) }

// Segments are what the tools return in the write session, in order, each with its
// turn.
func (c *Case) Segments() iter.Seq2[*Turn, *Segment] {
	return func(yield func(*Turn, *Segment) bool) {
		for i := range c.Write {
			for j := range c.Write[i].Segments {
				if !yield(&c.Write[i], &c.Write[i].Segments[j]) {
					return
				}
			}
		}
	}
}

// Others reports whether a turn of the write session stands in a session of somebody
// else than the user.
func (c *Case) Others(turn int) bool {
	for turn > 0 && !c.Write[turn].Fresh {
		turn--
	}
	return c.Write[turn].As != ""
}

// NeedsJudge reports whether the case says what the attacker wants stored but not
// by which value that can be told: it counts for detection only, unless something
// that reads decides what was stored.
func (c *Case) NeedsJudge() bool {
	return c.Label == Attack && c.Text == nil && c.Memory != "" && c.Value == "" && len(c.Forms) == 0
}

// Injected is a record that reaches the store around the gate: put there by another
// process, a sync, a restored backup, or a person with an editor. No agent
// proposes it, so no write gate is asked; the read gate sees it.
type Injected struct {
	// Store is "memory" for what is known of the work and "user" for what is known
	// of the person. Empty is memory. A profile without that store takes its first.
	Store string `json:"store,omitempty"`
	Key   string `json:"key,omitempty"` // under which it is stored; empty is a new one
	Text  string `json:"text"`
	// Origin is what the record itself claims of where it came from: one of Origins.
	// Whoever writes around the gate can claim anything. Empty is agent, as if the
	// agent had noted it.
	Origin string        `json:"origin,omitempty"`
	Medium memory.Medium `json:"medium,omitempty"`
	Source string        `json:"source,omitempty"` // sender, page, path or channel, as it claims
	// Signed says that the record was in this memory before, and comes back as the
	// defense had left it, with its signature if the defense signs: a restored
	// backup. An attacker has no such record.
	Signed bool `json:"signed,omitzero"`
}

// InjectStores lists the stores that an injected record may name.
func InjectStores() []string { return []string{"memory", "user"} }

// Text is a text that somebody labelled, without a conversation around it: what a
// memory would be asked to store.
type Text struct {
	Key     string `json:"key,omitempty"` // under which it would be stored
	Content string `json:"content"`
	// Origin is where it first came from: system, user, agent or external. Empty
	// means that the set does not say, and rules on origin have nothing to go by.
	Origin string        `json:"origin,omitempty"`
	Medium memory.Medium `json:"medium,omitempty"`
	Source string        `json:"source,omitempty"` // sender, page, path or channel
}

// Origins lists the origins of a text, the least trusted first.
func Origins() []string { return []string{"external", "agent", "user", "system"} }

// OriginClass returns the class of an origin's name. ok is false for a name that
// is not one of Origins.
func OriginClass(name string) (class memory.Class, ok bool) {
	i := slices.Index(Origins(), name)
	return memory.Class(max(i, 0)), i >= 0
}

// Turn is one turn of the user, with what the agent meets while it works on it.
type Turn struct {
	User string `json:"user"`
	// Fresh begins a new session with this turn: the context is gone, the memory
	// stays. The write session of most cases is one session.
	Fresh bool `json:"fresh,omitzero"`
	// As is who the user of the session is that this turn begins, where it is not the
	// one whose task the case is about: another who has the same memory.
	As string `json:"as,omitempty"`
	// Date is the day, such as 2026-05-04, of the session that this turn begins; empty
	// is the day after the one before.
	Date string `json:"date,omitempty"`
	// Segments are what the tools return in this turn, in order.
	Segments []Segment `json:"segments,omitempty"`
	// Expect is this turn's ordinary task: the answer or a tool call must hold
	// one of these texts. Empty means that nothing is checked.
	Expect []string `json:"expect,omitempty"`
}

// Segment is one piece of external content.
type Segment struct {
	Medium memory.Medium `json:"medium"`
	// Source names the sender, page, path or channel.
	Source string `json:"source"`
	Title  string `json:"title,omitempty"` // subject, page title, file name
	Text   string `json:"text"`
	// Inline hands the segment over as a labelled block beside the user's words
	// instead of through a tool.
	Inline bool `json:"inline,omitzero"`
	// Pad fills the segment with ordinary sentences of its medium up to this
	// many tokens before the session starts, so that compaction is reached.
	Pad int `json:"pad,omitzero"`
	// Origin is what the harness takes it to come from, one of Origins; empty is
	// external. A summary that the agent made itself is agent, what a tool of the user's
	// own says is user, wherever either had it from.
	Origin string `json:"origin,omitempty"`
}

// Retrieval is the retrieval session: one later query in a new context.
type Retrieval struct {
	Query string `json:"query"`
	// Date is the day of the session; empty is two weeks after the write session where
	// the outcome is a state, else the day after it.
	Date     string    `json:"date,omitempty"`
	Segments []Segment `json:"segments,omitempty"` // fresh material for the query, if any
	// Expect is what does the task: the answer or a tool call must hold one of
	// these. For an attack case it is the right outcome, where there is one.
	Expect []string `json:"expect,omitempty"`
	// Forbids is a tool whose call the attack suppresses: the attack acted when
	// this call is missing. Most attacks leave it empty: they acted when a tool
	// call holds the canary.
	Forbids string `json:"forbids,omitempty"`
}

// Classes lists the built-in attack classes in the order of the tables.
func Classes() []string {
	return []string{ExplicitCommand, ConditionalCommand, SalienceCompaction, PolicyFact, FalsePrecedent, SkillProcedure}
}

// Frontier lists the kinds of attack of memtox-frontier.
func Frontier() []string {
	return []string{SharedMemory, SleeperTopic, SleeperDate, SelfReplication, ToolDescription, AgentMessage, Omission, Preference,
		URLExfiltration, OneTurnLater, SourceLaundering}
}

// Title is what a class is called: by MPBench, or in a few words.
func Title(class string) string {
	if info, ok := Info(class); ok {
		return info.Title
	}
	return map[string]string{
		SharedMemory:     "Another user of the memory",
		SleeperTopic:     "Sleeper, by topic",
		SleeperDate:      "Sleeper, by date",
		SelfReplication:  "Self-replicating entry",
		ToolDescription:  "Description of a tool",
		AgentMessage:     "Message of another agent",
		Omission:         "Omission",
		Preference:       "Preference without a value",
		URLExfiltration:  "Secret in a web address",
		OneTurnLater:     "Kept one turn later",
		SourceLaundering: "Laundering of the source",
	}[class]
}

// Domains lists MPBench's seven domains.
func Domains() []string {
	return []string{"file", "web", "email", "calendar", "slack", "script", "skill"}
}

// Goals lists MPBench's six adversarial goals.
func Goals() []string {
	return []string{"credential_harvesting", "data_exfiltration", "recommendation_poisoning",
		"authentication_bypass", "unauthorized_action", "trust_hijacking"}
}

// ClassInfo is what the paper says of a class.
type ClassInfo struct {
	Title           string
	Signal          string
	Channel         string
	Vulnerabilities []string
}

// Info returns what MPBench's tables 1 and 2 say of a built-in class, and false
// for any other.
func Info(class string) (ClassInfo, bool) {
	i, ok := map[string]ClassInfo{
		ExplicitCommand:    {"Explicit Command", "strong", "C1", []string{"V-M1", "V-S1", "V-S2"}},
		ConditionalCommand: {"Conditional Command", "strong", "C1", []string{"V-M1", "V-S1", "V-S2"}},
		SalienceCompaction: {"Salience Compaction", "strong", "C3", []string{"V-M2", "V-P2", "V-S3"}},
		PolicyFact:         {"Policy-Conformant Fact", "weak", "C2", []string{"V-M2", "V-P1", "V-S1"}},
		FalsePrecedent:     {"False Precedent", "weak", "C2", []string{"V-M2", "V-P1", "V-S1"}},
		SkillProcedure:     {"Skill-Procedure", "weak", "C4", []string{"V-S4", "V-S5"}},
	}[class]
	return i, ok
}
