package contradiction

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// valueKind says what a value is, so that only values of which one excludes the
// other are held against each other.
type valueKind uint8

const (
	phraseOf valueKind = iota // plain words
	nameOf                    // capitalised words
	quantity                  // a number, with a unit or without
	clock                     // a time of day
	weekday                   //
	date                      // with a month, or all digits
	address                   // mail address, URL, host, path, number plate, account: letters with digits or @ and dots
	choice                    // one of a closed group: a colour, yes and no
)

// value is an object made comparable.
type value struct {
	kind   valueKind
	norm   string  // folded, without articles and punctuation at the ends
	number float64 // of a quantity, in its base unit; of a clock, minutes
	unit   string  // base unit of a quantity: "s", "byte", "m", "euro"; or the noun that is counted
	group  int     // of a choice
}

// maxValue bounds the bytes of a value that are kept and compared.
const maxValue = 256

var fillers = [...]string{"about ", "around ", "roughly ", "approximately ", "exactly ", "only ", "just ", "up to ",
	"at most ",
	"at least ", "the ", "a ", "an ", "our ", "my ", "their ", "its ", "his ", "her "}

func normal(s string) string {
	s = strings.Trim(text.Fold(text.Cut(s, maxValue)), " .,;:!\"'`*")
	for again := true; again; {
		again = false
		for _, p := range fillers {
			if rest, ok := strings.CutPrefix(s, p); ok {
				s, again = rest, true
			}
		}
	}
	return s
}

//go:embed measures.yaml
var measuresYAML []byte

var measures = text.Lists[struct {
	Units    map[string]map[float64][]string
	Numerals map[string]float64
	Times    text.Words // nouns that name a time
}]("measures.yaml", measuresYAML)

// unit is a base unit, and how much of it something is.
type unit struct {
	base   string
	factor float64
}

// units are all units by their names.
var units = sync.OnceValue(func() map[string]unit {
	m := map[string]unit{}
	for base, of := range measures().Units {
		for factor, names := range of {
			for _, n := range names {
				m[n] = unit{base, factor}
			}
		}
	}
	return m
})

// parseValue reads an object.
func parseValue(s string) value {
	v := value{norm: normal(s)}
	if v.norm == "" {
		return v
	}
	if m, ok := clockTime(v.norm); ok {
		v.kind, v.number = clock, m
		return v
	}
	fields := strings.Fields(v.norm)
	lex := lexicon()
	first := lex[strings.Trim(fields[0], ",.")]
	has := func(c class) bool {
		for _, f := range fields[:min(len(fields), 5)] {
			if e := lex[strings.Trim(f, ",.")]; e != nil && e.classes&c != 0 {
				return true
			}
		}
		return false
	}
	switch {
	case has(cMonth) && strings.ContainsAny(v.norm, "0123456789") || numericDate(fields[0]):
		v.kind = date
	case has(cWeekday):
		v.kind = weekday
	case v.parseQuantity(fields):
	case len(fields) == 1 && first != nil && first.group != 0:
		v.kind, v.group = choice, first.group
	case strings.ContainsAny(fields[0], "@/") || strings.ContainsAny(v.norm, "0123456789") ||
		strings.Contains(strings.Trim(fields[0], "."), "."):
		v.kind = address
	case capitalised(s):
		v.kind = nameOf
	}
	return v
}

// parseQuantity reads "12,400 euros", "30 s", "25 MB", "€ 18", "five people".
func (v *value) parseQuantity(fields []string) bool {
	f := fields[0]
	if u, ok := units()[f]; ok && len(fields) > 1 && (f == "€" || f == "$" || f == "£" || f == "eur" || f == "usd" ||
		f == "chf" || f == "gbp") {
		if n, ok := parseNumber(fields[1]); ok {
			v.kind, v.number, v.unit = quantity, n, u.base
			return true
		}
	}
	for _, sign := range [...]string{"€", "$", "£"} { // "€18"
		if rest, ok := strings.CutPrefix(f, sign); ok {
			if n, ok := parseNumber(rest); ok {
				v.kind, v.number, v.unit = quantity, n, units()[sign].base
				return true
			}
		}
	}
	if len(f) >= 9 && digits(f) || len(f) > 1 && f[0] == '0' && digits(f) {
		return false // an account, a telephone number
	}
	digitsEnd := 0
	for digitsEnd < len(f) && strings.IndexByte("0123456789.,-+'", f[digitsEnd]) >= 0 {
		digitsEnd++
	}
	n, ok := parseNumber(f[:digitsEnd])
	unit := f[digitsEnd:]
	rest := fields[1:]
	if !ok {
		if n, ok = measures().Numerals[f]; !ok {
			return false
		}
		unit = ""
	}
	if unit == "" && len(rest) > 0 {
		unit, rest = strings.Trim(rest[0], ",.;"), rest[1:]
		if unit == "hundred" || unit == "thousand" || unit == "million" {
			n *= map[string]float64{"hundred": 100, "thousand": 1000, "million": 1e6}[unit]
			unit = ""
			if len(rest) > 0 {
				unit, rest = rest[0], rest[1:]
			}
		}
	} else if unit != "" {
		if _, known := units()[unit]; !known {
			return false // "4711-b": a code
		}
	}
	if _, more := parseNumber(unit); more || len(unit) > 0 && strings.ContainsAny(unit, "0123456789") {
		return false // "020 5550 118": a telephone number
	}
	v.kind, v.number, v.unit = quantity, n, unit
	if u, ok := units()[unit]; ok {
		v.number, v.unit = n*u.factor, u.base
	} else if unit != "" {
		v.unit = text.Stem(unit)
	}
	if len(rest) > 0 && !(rest[0] == "a" || rest[0] == "per" || rest[0] == "an" || rest[0] == "each" || rest[0] == "of") {
		v.unit += " " + text.Stem(rest[0]) // "12 m long" is not "3 m wide"
	}
	return true
}

// parseNumber reads a number with commas, points or apostrophes between thousands.
func parseNumber(s string) (float64, bool) {
	if s == "" || s[0] < '0' && s[0] != '-' && s[0] != '+' || s[len(s)-1] > '9' || len(s) > 24 {
		return 0, false
	}
	t := strings.ReplaceAll(s, "'", "")
	comma, point := strings.LastIndexByte(t, ','), strings.LastIndexByte(t, '.')
	switch {
	case comma >= 0 && point >= 0 && comma < point:
		t = strings.ReplaceAll(t, ",", "")
	case comma >= 0 && point >= 0:
		t = strings.Replace(strings.ReplaceAll(t, ".", ""), ",", ".", 1)
	case comma >= 0 && len(t)-comma == 4:
		t = strings.ReplaceAll(t, ",", "")
	case comma >= 0:
		t = strings.Replace(t, ",", ".", 1)
	}
	n, err := strconv.ParseFloat(t, 64)
	return n, err == nil
}

// clockTime reads "15:00", "3 pm", "3:30pm", "noon" as minutes of the day.
func clockTime(s string) (float64, bool) {
	switch s {
	case "noon", "midday", "12 noon":
		return 720, true
	case "midnight":
		return 0, true
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, " o'clock"), " h")
	add := 0.0
	twelve := false
	for _, suffix := range [...]string{"p.m", "pm", "a.m", "am"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s, twelve = strings.TrimRight(rest, " "), true
			if suffix[0] == 'p' {
				add = 720
			}
			break
		}
	}
	h, m, colon := strings.Cut(s, ":")
	if !digits(h) || len(h) > 2 || colon && (len(m) != 2 || !digits(m)) || !colon && !twelve {
		return 0, false
	}
	hour, _ := strconv.Atoi(h)
	minute, _ := strconv.Atoi("0" + m)
	if hour > 24 || minute > 59 || twelve && (hour > 12 || hour == 0) {
		return 0, false
	}
	if twelve && hour == 12 {
		hour = 0
	}
	return float64(hour*60+minute) + add, true
}

func numericDate(s string) bool {
	return len(s) >= 8 && len(s) <= 10 && s[0] >= '0' && s[0] <= '9' &&
		(strings.Count(s, "-") == 2 || strings.Count(s, "/") == 2 ||
			strings.Count(s, ".") == 2 && !strings.ContainsAny(s, ":"))
}

func capitalised(s string) bool {
	s = strings.TrimLeft(s, " \"'“«")
	return s != "" && s[0] >= 'A' && s[0] <= 'Z' || len(s) > 1 && s[0] >= 0xC3
}

// equal reports whether two values are one, in whatever notation, or one refines
// the other without bringing in another address or number.
func (v *value) equal(w *value) bool {
	if v.norm == w.norm {
		return true
	}
	if v.kind == w.kind {
		switch v.kind {
		case clock:
			return v.number == w.number
		case quantity:
			if v.unit == w.unit || v.unit == "" || w.unit == "" {
				return v.number == w.number
			}
			return false
		case address:
			if compact(v.norm) == compact(w.norm) {
				return true
			}
		}
	}
	long, short := v, w
	if len(long.norm) < len(short.norm) {
		long, short = w, v
	}
	return refines(long.norm, short.norm)
}

// compact drops what notations of numbers differ by.
func compact(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -()+", r) {
			return -1
		}
		return r
	}, strings.TrimSuffix(s, "/"))
}

// refines reports whether every word of short stands in long, and what long says
// besides names no number, address or host: "Leeds" and "Leeds, near the river".
func refines(long, short string) bool {
	rest := strings.Fields(long)
	for _, w := range strings.Fields(short) {
		k := -1
		for i, r := range rest {
			if strings.Trim(r, ",.;()") == strings.Trim(w, ",.;()") {
				k = i
				break
			}
		}
		if k < 0 {
			return false
		}
		rest = append(rest[:k], rest[k+1:]...)
	}
	for _, r := range rest {
		if strings.ContainsAny(r, "@/0123456789") || strings.Contains(strings.Trim(r, ".,"), ".") || r == "not" || r == "or" {
			return false
		}
	}
	return true
}

// excludes reports whether a thing that has value v cannot have w. functional
// says that the slot has one value whatever it is.
func (v *value) excludes(w *value, functional bool) bool {
	if v.kind != w.kind {
		return functional && !(v.temporal() && w.temporal())
	}
	switch v.kind {
	case quantity:
		return v.unit == w.unit || functional
	case choice:
		return v.group == w.group
	case phraseOf:
		return functional
	case nameOf:
		return functional
	}
	return true
}

func (v *value) temporal() bool { return v.kind == clock || v.kind == weekday || v.kind == date }
