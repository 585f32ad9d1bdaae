package harness

import (
	_ "embed"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/internal/settings"
)

//go:embed settings.yaml
var settingsYAML []byte

// Settings are the keys of a [Config], in the order in which they are documented.
var Settings = sync.OnceValue(func() *settings.Table {
	address := settings.Special{Check: withoutKey("keys come from the environment, key_file, judge_key_file or " +
		"embeddings_key_file")}
	queue := settings.Special{Check: withoutKey("put the token into MEMTOX_QUEUE_TOKEN, or name its file with --set " +
		"queue_token_file=FILE")}
	specs := settings.Special{Split: defenses.SplitList, Check: checkSpec}
	return settings.New(Config{}, settingsYAML, false, map[string]settings.Special{
		"agent": specs, "defense": specs, "base_url": address, "judge_base_url": address,
		"embeddings_base_url": address, "defense_base_url": address,
		"queue": queue, "listen": queue, "shard": {Check: plainShard},
	})
})

// Load reads an experiment file into c. Keys that the file does not name keep their
// values. file is how errors call it.
func (c *Config) Load(file string, data []byte) error { return Settings().Load(file, data, c) }

// Set changes one setting by key=value.
func (c *Config) Set(assignment string) error { return Settings().Set("--set", assignment, c) }

// Differences lists the settings that affect outcomes and differ.
func Differences(theirs, ours Config) []settings.Difference {
	return Settings().Differences(&theirs, &ours)
}

// Default returns a setting's default as text.
func Default(s settings.Key) string {
	c := DefaultConfig()
	return s.Of(&c).String()
}

// Schema returns the JSON Schema of an experiment file, for editors.
func Schema() []byte {
	c := DefaultConfig()
	return Settings().Schema("memtox experiment", "Settings of `memtox run -f FILE`.", &c)
}

// MarshalJSON writes the settings under their keys, in their order.
func (c Config) MarshalJSON() ([]byte, error) { return Settings().Encode(&c) }

// UnmarshalJSON reads what MarshalJSON wrote, over the defaults.
func (c *Config) UnmarshalJSON(b []byte) error {
	*c = DefaultConfig()
	return Settings().Decode(b, c)
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

// withoutKey refuses addresses, several between commas, with a key in one. Settings
// stand in run.json, in the announcement of a queue and in errors.
func withoutKey(hint string) func(string) (string, error) {
	return func(list string) (string, error) {
		if slices.ContainsFunc(strings.Split(list, ","), holdsKey) {
			return list, &settings.Problem{What: keyInAddress, Hint: hint}
		}
		return list, nil
	}
}

// checkSpec refuses a defense or an agent whose address holds a key.
func checkSpec(item string) (string, error) {
	kind, address := "", item
	if s, err := defenses.Parse(item); err == nil {
		kind, address = s.Kind, s.Argument
	} else if head, rest, ok := strings.Cut(item, ":"); ok {
		kind, address = head[strings.LastIndexByte(head, '=')+1:], rest
	}
	if (kind == "http" || kind == "https") && holdsKey(plainQuery(address)) {
		return item, &settings.Problem{What: kind + ": " + keyInAddress,
			Hint: "a guard's token belongs into " + external.TokenVariable + ", an agent gets none"}
	}
	return item, nil
}

// plainShard writes a shard as it is counted, from 1.
func plainShard(s string) (string, error) {
	part, err := parseShard(strings.TrimSpace(s))
	if err != nil || part.count == 0 {
		return "", err
	}
	return fmt.Sprintf("%d/%d", part.index, part.count), nil
}
