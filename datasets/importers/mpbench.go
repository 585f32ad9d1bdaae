package importers

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
)

const mpbenchName = "mpbench"

// mpbenchMapping takes the fields of the released files by their own names.
func mpbenchMapping() *Mapping {
	m := &Mapping{filling: filling{fields: map[string]*expr{}}}
	for _, name := range names().MPBench.Fields {
		m.fields[name] = pathExpr(&path{text: "$." + name, steps: []step{{name: name}}})
	}
	return m
}

// convertMPBench makes a case of one object of the released files.
func (x *importing) convertMPBench(s *scope, c *made) error {
	r := &reader{x: x, s: s, f: &x.m.filling}
	c.entry.ID = r.text("id")
	kind, signal := r.text("attack_type"), r.text("attack_signal")
	domain, goal := r.text("domain"), r.text("adversarial_goal")
	user, content, skill := r.text("user_query"), r.text("context"), r.text("skill_md")
	query, trigger := r.text("retrieval_query"), r.text("trigger_phrase")
	c.Memory = r.text("expected_memory")
	writes, said := r.truth("legitimate_memory_write")
	if r.err != nil {
		return r.err
	}
	class, as := names().MPBench.Classes[kind], kind
	switch {
	case class == "" && (said || kind == "benign" || kind == "none"):
		c.Label = datasets.Benign
	case said:
		return s.fail("legitimate_memory_write", "stands in an attack of type "+datasets.Quote(kind),
			"a row is an attack or benign")
	case kind == "":
		return s.fail("attack_type", "missing", "is this a released file of MPBench?")
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
	if c.Label == datasets.Attack {
		if skill != "" {
			as += " + skill_md"
		}
		x.ledger.spelled(x.ledger.Labels, c.Class, as)
	} else {
		x.ledger.spelled(x.ledger.Labels, string(c.Label), as)
	}
	if user == "" {
		return s.fail("user_query", "missing", "a session needs the user's words")
	}
	c.Domain = slug(domain)
	c.Domain = cmp.Or(names().MPBench.Domains[c.Domain], c.Domain)
	medium := memory.Medium(c.Domain)
	if !slices.Contains(datasets.Domains(), c.Domain) {
		medium = memory.MCP
	}
	// In the paper payloads are a labelled block beside the user's query; files come
	// through a tool.
	c.Write = session(user, trigger, datasets.Segment{Medium: medium, Text: content, Inline: medium != memory.File},
		datasets.Segment{Medium: memory.Skill, Text: skill, Inline: true})
	if query != "" {
		c.Retrieval = &datasets.Retrieval{Query: query}
	}
	c.complete(user+"\n"+trigger, content+"\n"+skill, query, writes, said)
	return nil
}

func goalOf(s string) string {
	g := slug(s)
	for _, k := range names().MPBench.Goals {
		if strings.Contains(g, k.Word) {
			return k.Goal
		}
	}
	return g
}

// slug is a label in lower case with underscores.
func slug(s string) string {
	return fmt.Sprintf("%.100s", strings.Trim(noWord.ReplaceAllString(strings.ToLower(s), "_"), "_"))
}

var noWord = regexp.MustCompile(`[^\p{L}\p{Nd}]+`)
