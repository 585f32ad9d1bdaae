package harness

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/external"

	"github.com/memtox/memtox/internal/settings"
)

// Setting describes one setting of [Config].
type Setting struct {
	Key     string   // in experiment files and --set
	Flag    string   // the command-line flag, without dashes; empty where there is none
	Arg     string   // what the value stands for in help texts
	Doc     string   // one or two sentences; `…` marks code
	Choices []string // the values that it may have, or each of its list's; nil is open
	// Min and Max bound a number; both 0 is unbounded.
	Min, Max int
	// Affects says that the setting changes what is run. Such a setting must be
	// the same when a run is resumed.
	Affects bool
	// Reach says what the setting can make memtox do, and with that whether it may
	// come from a run.
	Reach Reach

	at func(*Config) Value
	// builtin reports a value, or one of a list, that stays within this process and
	// machine, of a setting that need not; nil is none but the empty one.
	builtin func(string) bool
}

// Value reads and changes one setting. It has the methods of a flag's value.
type Value interface {
	String() string
	// Set takes the text of a flag or of --set.
	Set(string) error
	// SetList takes the items of a YAML sequence.
	SetList([]string) error
	// Type names the type: string, integer, number, boolean, list or duration.
	Type() string
	// JSON returns the value as it stands in run.json.
	JSON() any
}

// Of returns the setting's value in a Config. Changing it changes the Config,
// after the value was checked against the setting's choices and bounds.
func (s Setting) Of(c *Config) Value { return checked{s.at(c), s} }

// Default returns the setting's default as text.
func (s Setting) Default() string {
	c := DefaultConfig()
	return s.at(&c).String()
}

// FindSetting returns the setting of a key.
func FindSetting(key string) (Setting, bool) {
	all := Settings()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return all[i], true
}

// Keys lists the keys of all settings.
func Keys() []string {
	var keys []string
	for _, s := range Settings() {
		keys = append(keys, s.Key)
	}
	return keys
}

// Set changes one setting by key=value.
func (c *Config) Set(assignment string) error {
	key, value, ok := strings.Cut(assignment, "=")
	if !ok {
		return &settings.Problem{Where: "--set", What: fmt.Sprintf("%q is not key=value", assignment), Hint: "for instance --set window=4096"}
	}
	s, ok := FindSetting(strings.TrimSpace(key))
	if !ok {
		return settings.Unknown("--set", "key", key, Keys())
	}
	if err := s.Of(c).Set(value); err != nil {
		return settings.Placed("--set "+s.Key, err)
	}
	return nil
}

// copy gives the setting in c the value that it has in from.
func (s Setting) copy(c, from *Config) {
	reflect.ValueOf(s.at(c)).Elem().Set(reflect.ValueOf(s.at(from)).Elem())
}

// Difference is one setting that differs between two runs.
type Difference struct{ Key, Theirs, Ours string }

// Differences lists the settings that affect outcomes and differ.
func Differences(theirs, ours Config) []Difference {
	var out []Difference
	for _, s := range Settings() {
		if a, b := s.at(&theirs).String(), s.at(&ours).String(); s.Affects && a != b {
			out = append(out, Difference{s.Key, a, b})
		}
	}
	return out
}

// MarshalJSON writes the settings under their keys, in their order.
func (c Config) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, s := range Settings() {
		if i > 0 {
			b = append(b, ',')
		}
		v, err := json.Marshal(s.at(&c).JSON())
		if err != nil {
			return nil, fmt.Errorf("encoding setting %s: %w", s.Key, err)
		}
		b = append(append(append(b, '"'), s.Key...), '"', ':')
		b = append(b, v...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. Keys that this version does not
// know are an error, for a run with a setting that is not understood is not the
// same run.
func (c *Config) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("reading settings: %w", err)
	}
	*c = DefaultConfig()
	for _, s := range Settings() {
		v, ok := raw[s.Key]
		if !ok {
			continue
		}
		delete(raw, s.Key)
		var list []string
		if s.at(c).Type() == "list" {
			if err := json.Unmarshal(v, &list); err != nil {
				return fmt.Errorf("reading setting %s: %w", s.Key, err)
			}
			if err := s.at(c).SetList(list); err != nil {
				return fmt.Errorf("reading setting %s: %w", s.Key, err)
			}
			continue
		}
		text := string(v)
		if text[0] == '"' {
			if err := json.Unmarshal(v, &text); err != nil {
				return fmt.Errorf("reading setting %s: %w", s.Key, err)
			}
		}
		if err := s.at(c).Set(text); err != nil {
			return fmt.Errorf("reading setting %s: %w", s.Key, err)
		}
	}
	for key := range raw {
		return fmt.Errorf("reading settings: unknown key %q: the run was made by another version", key)
	}
	return nil
}

// checked is a Value that keeps to its setting's choices and bounds.
type checked struct {
	Value
	s Setting
}

func (v checked) Set(text string) error {
	before := v.keep()
	if err := v.Value.Set(text); err != nil {
		return err
	}
	return v.check(before)
}

func (v checked) SetList(items []string) error {
	before := v.keep()
	if err := v.Value.SetList(items); err != nil {
		return err
	}
	return v.check(before)
}

// keep returns a function that puts the present value back.
func (v checked) keep() func() {
	switch p := v.Value.(type) {
	case *listValue:
		old := *p
		return func() { *p = old }
	case *specsValue:
		old := *p
		return func() { *p = old }
	default:
		old := v.String()
		return func() { _ = v.Value.Set(old) }
	}
}

func (v checked) check(restore func()) error {
	var values []string
	switch p := v.Value.(type) {
	case *listValue:
		values = *p
	case *intValue:
		if n := int(*p); (v.s.Min != 0 || v.s.Max != 0) && (n < v.s.Min || n > v.s.Max) {
			restore()
			return &settings.Problem{What: fmt.Sprintf("%d is out of range", n), Hint: fmt.Sprintf("at least %d, at most %d", v.s.Min, v.s.Max)}
		}
		return nil
	case *numberValue:
		if f := float64(*p); (v.s.Min != 0 || v.s.Max != 0) && (f < float64(v.s.Min) || f > float64(v.s.Max)) {
			restore()
			return &settings.Problem{What: fmt.Sprintf("%v is out of range", f), Hint: fmt.Sprintf("at least %d, at most %d", v.s.Min, v.s.Max)}
		}
		return nil
	default:
		values = []string{v.String()}
	}
	if v.s.Choices == nil {
		return nil
	}
	for _, x := range values {
		if !slices.Contains(v.s.Choices, x) {
			restore()
			return settings.Unknown("", v.s.Key, x, v.s.Choices)
		}
	}
	return nil
}

// errNoList is what a scalar setting says to a sequence.
func errNoList(kind string) error {
	return &settings.Problem{What: "a list stands where one " + kind + " belongs"}
}

type stringValue string

func (v *stringValue) String() string         { return string(*v) }
func (v *stringValue) Set(s string) error     { *v = stringValue(s); return nil }
func (v *stringValue) SetList([]string) error { return errNoList("value") }
func (v *stringValue) Type() string           { return "string" }
func (v *stringValue) JSON() any              { return string(*v) }

// addressValue is where a model's server is, queueValue that of a queue. Settings
// stand in run.json, in the announcement of a queue and in errors, so that an address
// with a key in it is refused.
type (
	addressValue string
	queueValue   string
)

func (v *addressValue) String() string         { return string(*v) }
func (v *addressValue) SetList([]string) error { return errNoList("value") }
func (v *addressValue) Type() string           { return "string" }
func (v *addressValue) JSON() any              { return string(*v) }

func (v *addressValue) Set(s string) error {
	if holdsKey(s) {
		return &settings.Problem{What: keyInAddress, Hint: "keys come from the environment, key_file or judge_key_file"}
	}
	*v = addressValue(s)
	return nil
}

func (v *queueValue) String() string         { return string(*v) }
func (v *queueValue) SetList([]string) error { return errNoList("value") }
func (v *queueValue) Type() string           { return "string" }
func (v *queueValue) JSON() any              { return string(*v) }

func (v *queueValue) Set(s string) error {
	if slices.ContainsFunc(strings.Split(s, ","), holdsKey) { // a queue may have several servers
		return &settings.Problem{What: keyInAddress,
			Hint: "put the token into MEMTOX_QUEUE_TOKEN, or name its file with --set queue_token_file=FILE"}
	}
	*v = queueValue(s)
	return nil
}

const keyInAddress = "the address holds a user, a token, a password or a query that may be one"

// holdsKey reports whether an address holds what may be a secret.
func holdsKey(address string) bool {
	if !strings.Contains(address, "//") {
		address = "//" + address
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return strings.ContainsAny(address, "@?")
	}
	return u.User != nil || u.RawQuery != "" || u.Fragment != ""
}

// secretName is in the names of the parameters that hold a secret.
var secretName = regexp.MustCompile(`(?i)key|token|secret|pass|pwd|auth|sig|cred|code|session`)

// plainQuery takes out of an address a query without a secret: that of a service that
// is told by it what to do.
func plainQuery(address string) string {
	head, query, ok := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if !ok || err != nil || strings.Contains(query, "#") {
		return address
	}
	for name, list := range values {
		if secretName.MatchString(name) || slices.ContainsFunc(list, func(v string) bool { return len(v) > 16 }) {
			return address
		}
	}
	return head
}

type intValue int

func (v *intValue) String() string { return strconv.Itoa(int(*v)) }

func (v *intValue) Set(s string) error {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return &settings.Problem{What: fmt.Sprintf("%q is not a whole number", s)}
	}
	*v = intValue(n)
	return nil
}

func (v *intValue) SetList([]string) error { return errNoList("number") }
func (v *intValue) Type() string           { return "integer" }
func (v *intValue) JSON() any              { return int(*v) }

type seedValue uint64

func (v *seedValue) String() string { return strconv.FormatUint(uint64(*v), 10) }

func (v *seedValue) Set(s string) error {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return &settings.Problem{What: fmt.Sprintf("%q is not a whole number from 0 to 18446744073709551615", s)}
	}
	*v = seedValue(n)
	return nil
}

func (v *seedValue) SetList([]string) error { return errNoList("number") }
func (v *seedValue) Type() string           { return "integer" }
func (v *seedValue) JSON() any              { return uint64(*v) }

type durationValue time.Duration

func (v *durationValue) String() string { return time.Duration(*v).String() }

func (v *durationValue) Set(s string) error {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return &settings.Problem{What: fmt.Sprintf("%q is not a duration", s), Hint: "for instance 500ms or 2s"}
	}
	*v = durationValue(d)
	return nil
}

func (v *durationValue) SetList([]string) error { return errNoList("duration") }
func (v *durationValue) Type() string           { return "duration" }
func (v *durationValue) JSON() any              { return time.Duration(*v).String() }

// numberValue is a number with a fraction, or without.
type numberValue float64

func (v *numberValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

func (v *numberValue) Set(s string) error {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return &settings.Problem{What: fmt.Sprintf("%q is not a number", s)}
	}
	*v = numberValue(f)
	return nil
}

func (v *numberValue) SetList([]string) error { return errNoList("number") }
func (v *numberValue) Type() string           { return "number" }
func (v *numberValue) JSON() any              { return float64(*v) }

type boolValue bool

func (v *boolValue) String() string { return strconv.FormatBool(bool(*v)) }

func (v *boolValue) Set(s string) error {
	switch strings.TrimSpace(s) {
	case "true":
		*v = true
	case "false":
		*v = false
	default:
		return &settings.Problem{What: fmt.Sprintf("%q is not true or false", s)}
	}
	return nil
}

func (v *boolValue) SetList([]string) error { return errNoList("value") }
func (v *boolValue) Type() string           { return "boolean" }
func (v *boolValue) JSON() any              { return bool(*v) }

// listValue is a list of names, given as text with commas or as a sequence.
type listValue []string

func (v *listValue) String() string { return strings.Join(*v, ",") }

func (v *listValue) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		*v = nil
		return nil
	}
	return v.SetList(strings.Split(s, ","))
}

func (v *listValue) SetList(items []string) error {
	list, err := distinct(items)
	if err != nil {
		return err
	}
	*v = list
	return nil
}

func (v *listValue) Type() string { return "list" }
func (v *listValue) JSON() any    { return orEmpty(*v) }

// specsValue is a list of defenses or agents. What follows exec:, http: or judge: is
// one command, address or model, and may hold commas. An address holds no key.
type specsValue []string

func (v *specsValue) String() string { return strings.Join(*v, ",") }

func (v *specsValue) Set(s string) error { return v.SetList(defenses.SplitList(s)) }

func (v *specsValue) SetList(items []string) error {
	for _, item := range items {
		kind, address := "", item
		if s, err := defenses.Parse(item); err == nil {
			kind, address = s.Kind, s.Argument
		} else if head, rest, ok := strings.Cut(item, ":"); ok {
			kind, address = head[strings.LastIndexByte(head, '=')+1:], rest
		}
		if (kind == "http" || kind == "https") && holdsKey(plainQuery(address)) {
			return &settings.Problem{What: kind + ": " + keyInAddress,
				Hint: "a guard's token belongs into " + external.TokenVariable + ", an agent gets none"}
		}
	}
	list, err := distinct(items)
	if err != nil {
		return err
	}
	*v = list
	return nil
}

func (v *specsValue) Type() string { return "list" }
func (v *specsValue) JSON() any    { return orEmpty(*v) }

// distinct trims the items of a list and refuses empty and double ones.
func distinct(items []string) ([]string, error) {
	if len(items) == 0 {
		return nil, nil
	}
	out := make([]string, 0, len(items))
	for _, s := range items {
		if s = strings.TrimSpace(s); s == "" {
			return nil, &settings.Problem{What: "an empty name stands in the list"}
		}
		if slices.Contains(out, s) {
			return nil, &settings.Problem{What: fmt.Sprintf("%q stands in the list twice", s)}
		}
		out = append(out, s)
	}
	return out, nil
}

func orEmpty(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
