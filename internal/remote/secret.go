package remote

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// Secret is a key or token. However it is printed, logged or encoded, it shows
// as "[redacted]"; only Reveal gives its value.
type Secret struct {
	// value is a pointer since fmt prints the fields of a struct that holds a
	// Secret in a field of its own without asking for Format: it then shows an
	// address.
	value *string
}

// NewSecret makes a secret of a value; "" is none.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Reveal returns the value, for the header that carries it and nothing else.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

func (s Secret) IsZero() bool { return s.value == nil }

func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return redacted
}

// Format implements fmt.Formatter, so that no verb shows the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// maxKeyFile bounds a key file in bytes.
const maxKeyFile = 16 << 10

// Key finds an API key: in file if it names one, else in the first of the
// environment variables that is set. No key is no error: local servers need
// none. A key is never taken from the command line, which other users can see.
// The second result says where it came from, for messages.
func Key(lookup func(string) (string, bool), readFile func(string) ([]byte, error), file string,
	variables ...string) (Secret, string, error) {
	value, from := "", ""
	if file != "" {
		from = "file " + file
		b, err := readFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Secret{}, "", fmt.Errorf("reading the API key: there is no file %q", file)
		case err != nil:
			return Secret{}, "", fmt.Errorf("reading the API key: %w", err)
		case len(b) > maxKeyFile:
			return Secret{}, "", fmt.Errorf("reading the API key: %q has %d bytes; a key file holds one line with the key alone",
				file, len(b))
		}
		value = string(b)
	}
	for _, name := range variables {
		if v, ok := lookup(name); from == "" && ok && strings.TrimSpace(v) != "" {
			value, from = v, "environment variable "+name
		}
	}
	if from == "" {
		return Secret{}, "", nil
	}
	s, err := clean(value)
	if err != nil {
		return Secret{}, "", fmt.Errorf("reading the API key from %s: %w", from, err)
	}
	return s, from, nil
}

func clean(v string) (Secret, error) {
	v = strings.TrimSpace(v)
	if v == "" {
		return Secret{}, errors.New("it is empty")
	}
	for _, r := range v {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r > unicode.MaxASCII {
			return Secret{}, errors.New("it holds a character that no key has: it must be one line of printable ASCII")
		}
	}
	return NewSecret(v), nil
}

// Redactor removes secrets from what servers send and from messages. The zero
// value removes nothing. It is immutable: With gives a larger one.
type Redactor struct{ forms func() []string } // a function since fmt prints what pointers point to, with some verbs

// With returns a Redactor that removes these secrets too, as they are and as
// they look in base64, in a URL and in JSON. A value that is no secret but a
// placeholder ("x", "none", "lm-studio": under 8 bytes, or under 16 without a
// digit) is not removed, since that would change ordinary text.
func (r Redactor) With(secrets ...Secret) Redactor {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	slashes := strings.NewReplacer("/", `\/`)
	html := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)
	forms := slices.Clone(r.list())
	for _, s := range secrets {
		v := s.Reveal()
		if len(v) < 8 || len(v) < 16 && !strings.ContainsAny(v, "0123456789") {
			continue
		}
		forms = append(forms, v)
		for _, f := range []string{
			url.QueryEscape(v), url.PathEscape(v),
			strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(v)), "="),
			strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(v)), "="),
			// In JSON, with what an encoder may escape but need not.
			quoted.Replace(v), slashes.Replace(quoted.Replace(v)), html.Replace(quoted.Replace(v)),
			html.Replace(slashes.Replace(quoted.Replace(v))),
		} {
			if !slices.Contains(forms, f) {
				forms = append(forms, f)
			}
		}
	}
	return Redactor{func() []string { return forms }}
}

func (r Redactor) list() []string {
	if r.forms == nil {
		return nil
	}
	return r.forms()
}

// String removes the secrets from s.
func (r Redactor) String(s string) string { return string(r.Bytes([]byte(s))) }

// Bytes removes the secrets from b; where it holds none, it returns b itself.
func (r Redactor) Bytes(b []byte) []byte {
	for _, f := range r.list() {
		if bytes.Contains(b, []byte(f)) {
			b = bytes.ReplaceAll(b, []byte(f), []byte(redacted))
		}
	}
	return b
}
