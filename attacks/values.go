package attacks

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

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
	At   []string
	draw func(g *generator, at value) value
}

// value is a drawn value: its text and its named parts.
type value struct {
	text  string
	parts map[string]string
}

//go:embed names.yaml
var namesFile []byte

type wordLists struct {
	First, Onset, Nucleus, Coda, Ending, Trade, Product, Role, Sub, Noun, Verb, City, Room []string
}

var lists = sync.OnceValue(func() (w wordLists) {
	if err := yaml.Unmarshal(namesFile, &w); err != nil {
		panic("attacks: names.yaml: " + err.Error())
	}
	return w
})

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

func (g *generator) pick(list []string) string { return datasets.Pick(g.r, list) }

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
		s := g.pick(g.words.Onset) + g.pick(g.words.Nucleus) + g.pick(g.words.Coda)
		for range extra {
			s += g.pick(g.words.Nucleus) + g.pick(g.words.Coda)
		}
		return s + g.pick(g.words.Ending)
	})
}

func (g *generator) first() string { return g.own(func() string { return g.pick(g.words.First) }) }

// host returns the host of at, or one of its own.
func (g *generator) host(at value) string {
	if h := at.parts["host"]; h != "" {
		return h
	}
	return g.stem() + "." + g.pick([]string{"example", "example", "test"})
}

func plain(s string) value { return value{text: s} }

// Kinds lists the generators.
func Kinds() []Kind {
	hosted := []string{"company", "host", "person", "product"}
	return []Kind{
		{"person", "Dana Tolwick; .first .last .handle (dtolwick) .email .host", true, []string{"company", "host"}, person},
		{"company", "Norvik Freight; .short (Norvik) .slug (norvik) .host (norvik.example)", true, nil,
			func(g *generator, _ value) value {
				s := g.stem()
				return value{datasets.Capital(s) + " " + g.pick(g.words.Trade),
					map[string]string{"short": datasets.Capital(s), "slug": s, "host": s + ".example"}}
			}},
		{"product", "Norvik Board; .short .slug .host", true, nil, func(g *generator, _ value) value {
			s := g.stem()
			return value{datasets.Capital(s) + " " + g.pick(g.words.Product),
				map[string]string{"short": datasets.Capital(s), "slug": s, "host": s + ".example"}}
		}},
		{"project", "Norvik; .slug", true, nil, func(g *generator, _ value) value {
			s := g.stem()
			return value{datasets.Capital(s), map[string]string{"slug": s}}
		}},
		{"host", "relay.norvik.example; .host", true, hosted, func(g *generator, at value) value {
			h := g.fresh(func(extra int) string {
				sub := g.pick(g.words.Sub)
				if extra > 0 {
					sub += fmt.Sprint("-", g.number(2, 9<<extra))
				}
				return sub + "." + g.host(at)
			})
			return value{h, map[string]string{"host": h}}
		}},
		{"email", "intake@norvik.example; .host", true, hosted, func(g *generator, at value) value {
			h := g.host(at)
			return value{g.fresh(func(extra int) string {
				s := g.pick(g.words.Role)
				if extra > 0 || g.r.IntN(4) == 0 {
					s += g.pick([]string{".", "-"}) + g.pick(g.words.Noun)
				}
				return s + "@" + h
			}), map[string]string{"host": h}}
		}},
		{"url", "https://portal.norvik.example/visit; .host", true, hosted, func(g *generator, at value) value {
			h := g.host(at)
			return value{g.fresh(func(extra int) string {
				s := "https://" + g.pick(g.words.Sub) + "." + h
				if extra > 0 || g.r.IntN(3) > 0 {
					s += "/" + g.pick(g.words.Noun)
				}
				if extra > 0 || g.r.IntN(4) == 0 {
					s += fmt.Sprintf("/%s-%d", g.pick(g.words.Verb), g.number(10, 99))
				}
				return s
			}), map[string]string{"host": h}}
		}},
		{"account", "ZZ41NRVK0044710032, with a country code that no bank has", true, nil, func(g *generator, _ value) value {
			return plain(g.fresh(func(int) string {
				return "ZZ" + g.digits(2) + strings.ToUpper((g.pick(g.words.Onset) + g.pick(g.words.Coda) + g.pick(g.words.Onset) +
					"xz")[:4]) + g.digits(10)
			}))
		}},
		{"amount", "1284.50 EUR", true, nil, func(g *generator, _ value) value {
			return plain(g.fresh(func(extra int) string {
				return fmt.Sprintf("%d.%02d EUR", g.number(40, 9900+extra*100_000), g.r.IntN(100))
			}))
		}},
		{"command", "norvikctl sync --to depot-41, without back-quotes", true, nil, command},
		{"path", "/srv/norvik/roster.csv; .name (roster.csv)", true, nil, func(g *generator, _ value) value {
			name := g.pick(g.words.Noun) + "." + g.pick([]string{"csv", "conf", "md", "yaml", "txt", "json", "xlsx", "pdf"})
			s := g.stem()
			top := g.pick([]string{"/srv", "/opt", "/data", "shared", "~/work", "/mnt"})
			return value{top + "/" + s + "/" + name, map[string]string{"name": name}}
		}},
		{"file", "norvik-roster.xlsx", true, nil, func(g *generator, _ value) value {
			return plain(g.stem() + "-" + g.pick(g.words.Noun) + "." +
				g.pick([]string{"xlsx", "pdf", "docx", "csv", "md", "pptx"}))
		}},
		{"package", "norvik-index", true, nil, func(g *generator, _ value) value {
			return plain(g.stem() + "-" + g.pick(g.words.Noun))
		}},
		{"setting", "roster.mirror=norvik-7", true, nil, func(g *generator, _ value) value {
			return plain(fmt.Sprintf("%s%s%s=%s-%d", g.pick(g.words.Noun), g.pick([]string{".", "_"}), g.pick(g.words.Noun),
				g.stem(), g.number(2, 99)))
		}},
		{"code", "NRV-48213", true, nil, func(g *generator, _ value) value {
			return plain(g.fresh(func(extra int) string {
				return strings.ToUpper((g.pick(g.words.Onset) + g.pick(g.words.Coda) + "xq")[:3]) + "-" + g.digits(5+extra)
			}))
		}},
		{"phone", "+999 41 2207 318, with a country code that nobody has", true, nil, func(g *generator, _ value) value {
			return plain(g.fresh(func(int) string { return "+999 " + g.digits(2) + " " + g.digits(4) + " " + g.digits(3) }))
		}},
		{"channel", "#norvik-roster", true, nil, func(g *generator, _ value) value {
			s, n := g.stem(), g.pick(g.words.Noun)
			if g.r.IntN(2) == 0 {
				s, n = n, s
			}
			return plain("#" + s + "-" + n)
		}},
		{"first", "Dana, a first name", false, nil, func(g *generator, _ value) value { return plain(g.first()) }},
		{"date", "2026-05-14; .long (14 May 2026) .day (14 May) .weekday .month: later than every session", false, nil,
			func(g *generator, _ value) value {
				return g.date(time.Date(2026, time.March, 5, 0, 0, 0, 0, time.UTC), 300)
			}},
		{"past", "2025-05-14; the same parts: within the year before the sessions, for what is over", false, nil,
			func(g *generator, _ value) value {
				return g.date(time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC), 360)
			}},
		{"time", "14:35", false, nil, func(g *generator, _ value) value {
			return plain(g.own(func() string { return fmt.Sprintf("%02d:%02d", g.number(7, 19), 5*g.r.IntN(12)) }))
		}},
		{"times", "08:05; .b .c .d .e, each a few minutes after the one before: a log or a chat", false, nil,
			func(g *generator, _ value) value {
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
			}},
		{"number", "37", false, nil, func(g *generator, _ value) value {
			return plain(g.own(func() string { return fmt.Sprint(g.number(12, 480)) }))
		}},
		{"room", "Heron; .numbered (room 4.12)", false, nil, func(g *generator, _ value) value {
			return value{g.own(func() string { return g.pick(g.words.Room) }), map[string]string{
				"numbered": g.own(func() string { return fmt.Sprintf("room %d.%02d", g.number(1, 8), g.number(1, 40)) })}}
		}},
		{"city", "Bergen", false, nil, func(g *generator, _ value) value {
			return plain(g.own(func() string { return g.pick(g.words.City) }))
		}},
		{"noun", "roster, a word for names of things", false, nil, func(g *generator, _ value) value {
			return plain(g.own(func() string { return g.pick(g.words.Noun) }))
		}},
	}
}

func person(g *generator, at value) value {
	first, last := g.first(), g.stem()
	h := at.parts["host"]
	if h == "" {
		h = g.host(value{})
	}
	lower := strings.ToLower(first)
	email := g.pick([]string{lower + "." + last, lower, lower[:1] + "." + last, last}) + "@" + h
	return value{first + " " + datasets.Capital(last), map[string]string{"first": first, "last": datasets.Capital(last),
		"handle": lower[:1] + last, "email": email, "host": h}}
}

func command(g *generator, _ value) value {
	s, n, v := g.stem(), g.pick(g.words.Noun), g.pick(g.words.Verb)
	form := g.pick([]string{
		"%[1]sctl %[3]s --to %[2]s-%[4]d",
		"%[1]s %[3]s %[2]s --level %[4]d",
		"./scripts/%[1]s-%[3]s.sh --%[2]s %[4]d",
		"make %[1]s-%[3]s JOBS=%[4]d",
		"rsync -a %[2]s/ backup@%[1]s.example:/in/%[4]d",
		"curl -fsS https://get.%[1]s.example/%[2]s.sh -o /tmp/%[2]s-%[4]d.sh",
		"python3 tools/%[1]s_%[3]s.py --%[2]s %[4]d",
		"scp %[2]s.tar %[1]s.example:/srv/%[4]d",
	})
	return plain(fmt.Sprintf(form, s, n, v, g.number(2, 98)))
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
