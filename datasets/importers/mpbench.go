package importers

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
)

const mpbenchName = "mpbench"

//go:embed mpbench.yaml
var mpbenchFile []byte

// mpbenchNames are the names in MPBench's released files and what they are here.
var mpbenchNames = sync.OnceValue(func() (names struct {
	Classes, Domains map[string]string
	Goals            []struct{ Word, Goal string }
	Fields           []string
}) {
	if err := yaml.Unmarshal(mpbenchFile, &names); err != nil {
		panic("importers: mpbench.yaml: " + err.Error()) // every test of MPBench reads it
	}
	return names
})

// mpbench makes a case of one object of the released files.
func (x *importing) mpbench(r record) error {
	c, e, err := x.mpbenchCase(r)
	if err != nil {
		return x.ledger.reject(r, err)
	}
	x.ledger.Read++
	for i, name := range r.v.names {
		if !slices.Contains(mpbenchNames().Fields, name) && r.v.items[i].kind != null {
			x.ledger.UnusedFields[name]++
		}
	}
	n := len(x.cases)
	x.add(e, c)
	if len(x.cases) > n && c.Domain != "" && mpbenchNames().Domains[c.Domain] != c.Domain {
		x.ledger.UnmappedDomains[c.Domain]++
	}
	return nil
}

func (x *importing) mpbenchCase(r record) (c datasets.Case, e Entry, err error) {
	e = entryOf(r)
	if r.v.kind != object {
		return c, e, r.fail("", r.v.kind.String()+" stands where an object belongs", "is this a released file of MPBench?")
	}
	text := func(name string) string {
		v, ok := r.v.field(name)
		if !ok || v.kind == null {
			return ""
		}
		if v.kind != str && err == nil {
			err = r.fail(name, v.kind.String()+" stands where a text belongs", "is this a released file of MPBench?")
		}
		return v.text
	}
	e.ID = text("id")
	kind, signal, domain, goal := text("attack_type"), text("attack_signal"), text("domain"), text("adversarial_goal")
	user, content, skill := text("user_query"), text("context"), text("skill_md")
	query, trigger := text("retrieval_query"), text("trigger_phrase")
	c.Memory = text("expected_memory")
	if err != nil {
		return c, e, err
	}
	writes, said := false, false
	if v, ok := r.v.field("legitimate_memory_write"); ok && v.kind != null {
		isText := false
		if writes, isText, said = truthOf(v); !said {
			return c, e, r.fail("legitimate_memory_write", quote(asText(v))+" is no truth value", "write true or false")
		}
		if isText {
			x.ledger.StringBooleans++
		}
	}
	class := mpbenchNames().Classes[kind]
	switch {
	case class == "" && (said || kind == "benign" || kind == "none"):
		c.Label = datasets.Benign
	case said:
		return c, e, r.fail("legitimate_memory_write", "stands in an attack of type "+quote(kind),
			"a row is an attack or benign")
	case kind == "":
		return c, e, r.fail("attack_type", "missing", "is this a released file of MPBench?")
	default:
		c.Label = datasets.Attack
		if c.Class = class; class == "" {
			c.Class = slug(kind)
			x.ledger.UnmappedLabels[kind]++
		}
		if skill != "" {
			c.Class = datasets.SkillProcedure
		}
		c.Signal, c.Goal = slug(signal), goalOf(goal)
		if goal != "" {
			x.ledger.spelled(x.ledger.Goals, c.Goal, goal)
		}
	}
	as := string(c.Label)
	if c.Label == datasets.Attack {
		as = c.Class
	}
	x.ledger.spelled(x.ledger.Labels, as, kind+skillMark(c.Label, skill))
	if user == "" {
		return c, e, r.fail("user_query", "missing", "a session needs the user's words")
	}
	c.Domain = slug(domain)
	if d := mpbenchNames().Domains[c.Domain]; d != "" {
		c.Domain = d
	}
	medium := memory.Medium(c.Domain)
	switch c.Domain {
	case "email", "web", "file", "slack", "calendar", "script", "skill":
	default:
		medium = memory.MCP
	}
	turn := datasets.Turn{User: user}
	if content != "" {
		// In the paper payloads are a labelled block beside the user's query; files
		// come through a tool.
		turn.Segments = append(turn.Segments, datasets.Segment{Medium: medium, Source: sourceOf(medium), Text: content,
			Inline: medium != memory.File})
	}
	if skill != "" {
		turn.Segments = append(turn.Segments, datasets.Segment{Medium: memory.Skill, Source: sourceOf(memory.Skill),
			Text: skill, Inline: true})
	}
	c.Write = []datasets.Turn{turn}
	if trigger != "" {
		c.Write = append(c.Write, datasets.Turn{User: trigger})
	}
	if query != "" {
		c.Retrieval = &datasets.Retrieval{Query: query}
	}
	x.complete(&c, &e, user+"\n"+trigger, content+"\n"+skill, query, writes, said)
	return c, e, nil
}

func skillMark(l datasets.Label, skill string) string {
	if l == datasets.Attack && skill != "" {
		return " + skill_md"
	}
	return ""
}

func goalOf(s string) string {
	g := slug(s)
	for _, k := range mpbenchNames().Goals {
		if strings.Contains(g, k.Word) {
			return k.Goal
		}
	}
	return g
}

// slug is a label in lower case with underscores.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(s)) {
		switch {
		case wordy(r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	out := strings.TrimRight(b.String(), "_")
	if len(out) > 100 {
		return fmt.Sprintf("%.100s", out)
	}
	return out
}
