package attacks

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// kind is a generator of values, as kinds.yaml describes it.
type kind struct {
	Draw  []map[string]datasets.Template // drawn before the text, in this order
	Text  datasets.Template
	Draws string // once; own, until the split owns it; fresh, until the set has none such
}

//go:embed kinds.yaml
var kindsFile []byte

// kinds are the generators by the type of value that they make.
var kinds = text.Lists[map[world.Type]kind]("kinds.yaml", kindsFile)

// isMade reports whether values of a type can be made up.
func isMade(of world.Type) bool {
	_, ok := (*kinds())[of]
	return ok || of == "date"
}

// draw draws a value of a type.
func (g *generator) draw(of world.Type) string {
	if of == "date" {
		return g.date()
	}
	k := (*kinds())[of]
	drawn := map[string]string{}
	extra := 0
	expand := func(t datasets.Template) string {
		s, err := t.Expand(g.r, func(name string) (string, error) {
			if s, ok := drawn[name]; ok {
				return s, nil
			}
			return g.resolve(name, extra)
		})
		if err != nil {
			panic(fmt.Sprintf("attacks: kinds.yaml: %s: %v", of, err)) // a test draws every kind
		}
		return s
	}
	for _, one := range k.Draw {
		for name, t := range one {
			drawn[name] = expand(t)
		}
	}
	switch k.Draws {
	case "fresh":
		return g.fresh(func(more int) string { extra = more; return expand(k.Text) })
	case "own":
		return g.own(func() string { return expand(k.Text) })
	}
	return expand(k.Text)
}

// resolve draws what a template of a kind refers to.
func (g *generator) resolve(name string, extra int) (string, error) {
	if m := numberRef.FindStringSubmatch(name); m != nil {
		low, _ := strconv.Atoi(m[2])
		high, _ := strconv.Atoi(m[3])
		switch m[1] {
		case "d":
			return g.digits(low), nil
		case "n":
			return strconv.Itoa(g.number(low, high)), nil
		}
		return fmt.Sprintf("%02d", g.number(low, high)), nil
	}
	switch name {
	case "stem":
		return g.stem(), nil
	case "at":
		return g.stem() + "." + datasets.Pick(g.r, []string{"example", "example", "test"}), nil
	case "minute":
		return fmt.Sprintf("%02d", 5*g.r.IntN(12)), nil
	case "letters3":
		return strings.ToUpper((g.pick("onset") + g.pick("coda") + "xq")[:3]), nil
	case "letters4":
		return strings.ToUpper((g.pick("onset") + g.pick("coda") + g.pick("onset") + "xz")[:4]), nil
	case "extra":
		if extra == 0 {
			return "", nil
		}
		return fmt.Sprint("-", g.number(2, 9<<extra)), nil
	}
	if g.words[name] == nil {
		return "", fmt.Errorf("nothing is called {%s}", name)
	}
	return g.pick(name), nil
}

var numberRef = regexp.MustCompile(`^([dnp])(\d+)(?:_(\d+))?$`)

//go:embed names.yaml
var namesFile []byte

// wordLists are words that the generators put together, by what they are.
type wordLists map[string][]string

var namesLists = text.Lists[wordLists]("names.yaml", namesFile)

func lists() wordLists { return *namesLists() }

// registry knows every unique value that was drawn for a set.
type registry map[string]bool

// generator draws values for one case.
type generator struct {
	r     *datasets.Rand
	split datasets.Split
	used  registry
	words wordLists
	here  map[string]bool // what this case has: two people of it have two names
}

// mine reports whether a name belongs to the generator's split. Half of all
// names, by hash, belong to each, so nothing needs to be kept apart by hand.
func (g *generator) mine(s string) bool {
	return (text.Hash(strings.ToLower(s))>>7&1 == 1) == (g.split == datasets.Tune)
}

// own draws until the split owns the result, and as long as there is hope until
// the case does not have it yet.
func (g *generator) own(draw func() string) string {
	for try := 0; ; try++ {
		if s := draw(); g.mine(s) && (!g.here[s] || try > 1000) {
			if g.here == nil {
				g.here = make(map[string]bool)
			}
			g.here[s] = true
			return s
		}
	}
}

// fresh draws until the result is new to the set and the split owns it. The
// name spaces hold many times what a set needs; extra makes the word longer if
// one is nearly full.
func (g *generator) fresh(draw func(extra int) string) string {
	for try := 0; ; try++ {
		s := draw(try / 64)
		if key := strings.ToLower(s); g.mine(s) && !g.used[key] && !coarse.MatchString(key) {
			g.used[key] = true
			return s
		}
	}
}

// pick draws a word of a list of names.yaml.
func (g *generator) pick(list string) string { return datasets.Pick(g.r, g.words[list]) }

func (g *generator) number(low, high int) int { return low + g.r.IntN(high-low+1) }

// date draws one of the 300 days from 5 March 2026 on.
func (g *generator) date() string {
	var d time.Time
	g.own(func() string {
		d = time.Date(2026, time.March, 5+g.r.IntN(300), 0, 0, 0, 0, time.UTC)
		return d.Format("2 January 2006")
	})
	return d.Format(time.DateOnly)
}

func (g *generator) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + g.r.IntN(10))
	}
	return string(b)
}

// stem is a made-up name that no other value of the set has.
func (g *generator) stem() string {
	return g.fresh(func(extra int) string {
		s := g.pick("onset") + g.pick("nucleus") + g.pick("coda")
		for range extra {
			s += g.pick("nucleus") + g.pick("coda")
		}
		return s + g.pick("ending")
	})
}

// coarse are syllables that no value is to have.
var coarse = regexp.MustCompile(`fuc|shit|cunt|cock|dic?k|tit|wank|piss|arse|ass[a-z]|slut|twat|whor|rap[ei]|cum|clit|` +
	`fag|nig|nazi|kike|coon|sex|porn|poo|turd|bitch|hell$`)

func (g *generator) first() string { return g.own(func() string { return g.pick("first") }) }
