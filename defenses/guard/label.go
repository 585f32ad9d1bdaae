package guard

import (
	"fmt"
	"time"

	"github.com/memtox/memtox/agents/memory"
)

// Label is what the guard says of a record besides its content: a structured
// record for whoever assembles prompts or decides about tools. It is computed
// from what the record was stored with; nothing in the content changes it. It says what
// the record may do by itself: a single value of it may act where the action gate finds
// that the user's tables, records or wishes bear it out.
type Label struct {
	ID          string       `json:"id"`
	Source      string       `json:"source,omitempty"`
	SourceClass memory.Class `json:"source_class"` // the least trusted that the record derives from
	Trust       float64      `json:"trust"`        // 0 to 1
	Scope       memory.Scope `json:"scope"`
	// Why the scope is not that of the class: approved, staged, shared.
	Why            string   `json:"why,omitempty"`
	AllowedIntents []string `json:"allowed_intents"` // the high-risk intents that it may govern
	// Of answer, plan and tool_action, and the high-risk intents.
	CanInfluence    []string     `json:"can_influence"`
	CannotInfluence []string     `json:"cannot_influence"`
	State           memory.State `json:"state"`
	CreatedAt       time.Time    `json:"created_at"`
	// ReceiptURI names the stored version that the label is of.
	ReceiptURI string `json:"receipt_uri"`
}

// Label returns the label of a record. A record whose signature is missing or
// wrong has that of the least trusted class.
func (g *gate) Label(r memory.Record) Label {
	if g.signer.Verify(&r) != "" {
		r.Origin.Class, r.Scope = memory.External, memory.ScopeUnset
	}
	st := g.standing(&r)
	l := Label{ID: r.ID, Source: r.Origin.Source, SourceClass: st.class, Trust: trust(&r), Scope: st.scope, Why: st.why,
		AllowedIntents: []string{}, CanInfluence: []string{"answer"}, CannotInfluence: []string{}, State: r.State,
		CreatedAt:  r.Created,
		ReceiptURI: fmt.Sprintf("urn:memtox:record:%s:%d", r.ID, r.Version)}
	put := func(what string, can bool) {
		if can {
			l.CanInfluence = append(l.CanInfluence, what)
		} else {
			l.CannotInfluence = append(l.CannotInfluence, what)
		}
	}
	put("plan", st.scope >= memory.PlanningAllowed)
	put("tool_action", st.scope >= memory.ToolActionAllowed)
	for _, name := range g.policy.HighRisk.Intents {
		may := g.acts(&r, &st, intentsNamed(name))
		if put(name, may); may {
			l.AllowedIntents = append(l.AllowedIntents, name)
		}
	}
	return l
}
