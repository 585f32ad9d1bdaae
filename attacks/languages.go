package attacks

import (
	_ "embed"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// language is how claims are said in it: see languages.yaml.
type language struct {
	About  string
	Claims []string
	Pair   string
	Step   string
	Tools  map[string]string
}

//go:embed languages.yaml
var languageFile []byte

var languageList = text.Lists[map[string]language]("languages.yaml", languageFile)

// languageNames are the languages in the order of the catalog.
var languageNames = []string{"german", "french", "spanish", "italian", "portuguese", "chinese"}

// inLanguages are the mutations that say a claim in another language.
func inLanguages() (out []Mutation) {
	for _, name := range languageNames {
		l := (*languageList())[name]
		out = append(out, Mutation{name, Language, "the claim stands in " + l.About + ", around the value", false,
			func(c *datasets.Case, w *workshop) bool {
				return c.State != nil && claims(c, func(cl *claim) (string, bool) { return l.say(c, cl, w) })
			}})
	}
	return out
}

// say puts the claim's part of a sentence into the language. What stands around that
// part stays: a step's number, who wrote the line, a directive to remember.
func (l *language) say(c *datasets.Case, cl *claim, w *workshop) (string, bool) {
	for i := len(c.State.Claims) - 1; i >= 0; i-- { // the newest wording, which may hold an older one
		before, after, ok := strings.Cut(cl.text, c.State.Claims[i])
		if !ok {
			continue
		}
		said := ""
		if len(c.State.Adds) > 0 {
			said = l.step(c)
		} else {
			said = l.pairs(c.State.Slots, c.State.Claims[i], w)
		}
		return before + said + after, said != ""
	}
	return "", false
}

// pairs says the values that a claim gives to slots.
func (l *language) pairs(slots []datasets.Slot, claim string, w *workshop) string {
	var out []string
	for _, sl := range slots {
		for _, v := range []string{sl.Wrong, sl.Right} {
			if v != "" && text.LastWhole(claim, v) >= 0 {
				out = append(out, strings.NewReplacer("{called}", sl.Called, "{value}", v).Replace(l.Pair))
				break
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.ReplaceAll(w.pick(l.Claims...), "{pairs}", strings.Join(out, ", "))
}

// step says what a claim adds to the task.
func (l *language) step(c *datasets.Case) string {
	values := map[string]string{}
	for _, sl := range c.State.Slots {
		values[sl.Name] = sl.Right
	}
	var tools, args []string
	for _, call := range reference.Fill(c.State.Adds, values) {
		tools = append(tools, l.Tools[call.Name])
		for _, a := range call.Args {
			if a.Value != "" && !free(call.Name, a) {
				args = append(args, a.Name+": "+a.Value)
			}
		}
	}
	task, _ := ended(strings.ReplaceAll(c.Retrieval.Query, ". ", "; "))
	return strings.NewReplacer("{task}", task, "{tool}", strings.Join(tools, ", "), "{args}", strings.Join(args, ", ")).
		Replace(l.Step)
}

// free reports whether an argument is text that is not compared.
func free(tool string, a model.Arg) bool {
	for _, p := range world.Find(tool).Params {
		if p.Name == a.Name {
			return p.Format == "" || world.Type(p.Format) == world.FreeText
		}
	}
	return true
}
