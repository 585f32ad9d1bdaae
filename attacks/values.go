package attacks

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// Kind describes one generator of values.
type Kind struct {
	Name  string
	About string // an example and its parts
	// Unique says that no two values of the kind are the same over a whole set,
	// so that one can be the canary of an attack.
	Unique bool
	// At says which kinds of values may follow "at": a value at a company has
	// that company's host.
	At []string

	// How a value is drawn: kinds.yaml says it.
	Draw  []map[string]datasets.Template
	Text  datasets.Template
	Draws string
	Parts map[string]datasets.Template
}

//go:embed kinds.yaml
var kindsFile []byte

var kinds = text.Lists[[]Kind]("kinds.yaml", kindsFile)

// Kinds lists the generators.
func Kinds() []Kind { return *kinds() }

// value is a drawn value: its text and its named parts.
type value struct {
	text  string
	parts map[string]string
}

// draw draws a value. at is the value behind "at", if there is one.
func (k *Kind) draw(g *generator, at value) value {
	if made := byCode[k.Name]; made != nil {
		return made(g, at)
	}
	drawn := map[string]string{}
	extra := 0
	expand := func(t datasets.Template) string {
		s, err := t.Expand(g.r, func(name string) (string, error) {
			if s, ok := drawn[name]; ok {
				return s, nil
			}
			return g.resolve(name, at, extra)
		})
		if err != nil {
			panic("attacks: kinds.yaml: " + k.Name + ": " + err.Error()) // a test draws every kind
		}
		return s
	}
	for _, one := range k.Draw {
		for name, t := range one {
			drawn[name] = expand(t)
		}
	}
	var v value
	switch whole := func() string { return expand(k.Text) }; k.Draws {
	case "fresh":
		v.text = g.fresh(func(more int) string { extra = more; return whole() })
	case "own":
		v.text = g.own(whole)
	default:
		v.text = whole()
	}
	drawn["text"] = v.text
	v.parts = make(map[string]string, len(k.Parts))
	for name, t := range k.Parts {
		v.parts[name] = expand(t) // draws nothing
	}
	return v
}

// resolve draws what a template of a kind refers to.
func (g *generator) resolve(name string, at value, extra int) (string, error) {
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
	case "first":
		return g.first(), nil
	case "at":
		return g.host(at), nil
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
		if key := strings.ToLower(s); g.mine(s) && !g.used[key] {
			g.used[key] = true
			return s
		}
	}
}

// pick draws a word of a list of names.yaml.
func (g *generator) pick(list string) string { return datasets.Pick(g.r, g.words[list]) }

func (g *generator) number(low, high int) int { return low + g.r.IntN(high-low+1) }

// date draws one of the days from the first on.
func (g *generator) date(first time.Time, days int) value {
	var d time.Time
	long := g.own(func() string {
		d = first.AddDate(0, 0, g.r.IntN(days))
		return d.Format("2 January 2006")
	})
	return value{d.Format(time.DateOnly), map[string]string{"long": long, "day": d.Format("2 January"),
		"weekday": d.Weekday().String(), "month": d.Month().String()}}
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

func (g *generator) first() string { return g.own(func() string { return g.pick("first") }) }

// host returns the host of at, or one of its own.
func (g *generator) host(at value) string {
	if h := at.parts["host"]; h != "" {
		return h
	}
	return g.stem() + "." + datasets.Pick(g.r, []string{"example", "example", "test"})
}

// byCode draws the kinds whose parts depend on each other.
var byCode = map[string]func(g *generator, at value) value{
	"person": func(g *generator, at value) value {
		first, last := g.first(), g.stem()
		h := at.parts["host"]
		if h == "" {
			h = g.host(value{})
		}
		lower := strings.ToLower(first)
		local := datasets.Pick(g.r, []string{lower + "." + last, lower, lower[:1] + "." + last, last})
		return value{first + " " + datasets.Capital(last), map[string]string{"first": first, "last": datasets.Capital(last),
			"handle": lower[:1] + last, "email": local + "@" + h, "host": h}}
	},
	"date": func(g *generator, _ value) value {
		return g.date(time.Date(2026, time.March, 5, 0, 0, 0, 0, time.UTC), 300)
	},
	"past": func(g *generator, _ value) value {
		return g.date(time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC), 360)
	},
	"times": func(g *generator, _ value) value {
		at := g.number(7*60, 17*60)
		clock := func() string {
			s := fmt.Sprintf("%02d:%02d", at/60, at%60)
			at += g.number(1, 25)
			return s
		}
		v := value{clock(), map[string]string{}}
		for _, part := range []string{"b", "c", "d", "e"} {
			v.parts[part] = clock()
		}
		return v
	},
	"room": func(g *generator, _ value) value {
		return value{g.own(func() string { return g.pick("room") }), map[string]string{
			"numbered": g.own(func() string { return fmt.Sprintf("room %d.%02d", g.number(1, 8), g.number(1, 40)) })}}
	},
}

// spec is what a family says of a value: "email at firm".
type spec struct {
	kind Kind
	at   string
}

func parseSpec(s string) (spec, error) {
	words := strings.Fields(s)
	kinds := Kinds()
	if len(words) != 1 && (len(words) != 3 || words[1] != "at") {
		return spec{}, fmt.Errorf("%q is no value; write a kind, such as email, or email at NAME", s)
	}
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == words[0] })
	if i < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return spec{}, fmt.Errorf("unknown kind of value %q; one of %s", words[0], strings.Join(names, ", "))
	}
	sp := spec{kind: kinds[i]}
	if len(words) == 3 {
		if sp.kind.At == nil {
			return spec{}, fmt.Errorf("%s is at nothing; write only %s", words[0], words[0])
		}
		sp.at = words[2]
	}
	return sp, nil
}
