package remote_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/memtox/memtox/internal/remote"
)

const planted = "sk-planted/9f3b7c1d5e+\"x??>~~>" // its base64 differs between the two alphabets

// However a secret is printed, logged or encoded, its value does not show.
func TestSecretNeverShows(t *testing.T) {
	s := remote.NewSecret(planted)
	type holder struct {
		Key remote.Secret
		Ptr *remote.Secret
	}
	h := holder{s, &s}
	hidden := struct{ key remote.Secret }{s}
	client := remote.New(remote.Options{Redact: remote.Redactor{}.With(s)})
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v", "%10.3s"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", h)
		fmt.Fprintf(&out, verb+"\n", hidden)
		fmt.Fprintf(&out, verb+"\n", client)
	}
	j, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(j)
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "key", s, "holder", h)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", s, "holder", h)
	fmt.Fprint(&out, errors.Join(fmt.Errorf("with %v", s)))
	if strings.Contains(out.String(), "planted") || strings.Contains(out.String(), fmt.Sprintf("%x", planted[:6])) {
		t.Errorf("the secret shows:\n%s", out.String())
	}
	if s.Reveal() != planted {
		t.Error("Reveal does not give the value")
	}
}

// Whatever form a server sends a key back in, it is removed.
func TestRedactor(t *testing.T) {
	r := remote.Redactor{}.With(remote.NewSecret(planted))
	inJSON, _ := json.Marshal("key " + planted)
	for _, text := range []string{
		planted, "Bearer " + planted + ".", string(inJSON), url.QueryEscape(planted), url.PathEscape(planted),
		base64.StdEncoding.EncodeToString([]byte(planted)), base64.URLEncoding.EncodeToString([]byte(planted)),
		strings.ReplaceAll(string(inJSON), "/", `\/`),
	} {
		if got := r.String(text); strings.Contains(got, "9f3b7c") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%q becomes %q", text, got)
		}
		if got := string(r.Bytes([]byte(text))); got != r.String(text) {
			t.Errorf("%q becomes %q as bytes", text, got)
		}
	}
	// Placeholders are no secrets: removing them would change what models say.
	p := remote.Redactor{}.With(remote.NewSecret("x"), remote.NewSecret("ollama"), remote.NewSecret("lm-studio"),
		remote.NewSecret("not-needed"), remote.Secret{})
	if got := p.String("ollama x lm-studio not-needed"); got != "ollama x lm-studio not-needed" {
		t.Errorf("placeholders were removed: %q", got)
	}
}

// What fails on the way holds no key, whoever repeats it.
func TestErrorsHoldNoKey(t *testing.T) {
	c := remote.New(remote.Options{Attempts: 1, Transport: fake(func(r *http.Request) (int, map[string]string, string,
		error) {
		if strings.Contains(r.URL.Path, "broken") {
			return 0, nil, "", fmt.Errorf("cannot send %q", r.Header.Get("Authorization"))
		}
		return 401, nil, fmt.Sprintf(`{"error":{"message":%q}}`, "wrong: "+r.Header.Get("Authorization")), nil
	})})
	c.Guard(remote.NewSecret(planted))
	rt := remote.Authorized(c, remote.NewSecret(planted))
	for _, path := range []string{"/refused", "/broken", "/" + url.PathEscape(planted)} {
		_, err := get(t.Context(), rt, "http://model.example"+path)
		if err == nil {
			t.Fatal("no error")
		}
		e, _ := errors.AsType[*remote.Error](err)
		if all := fmt.Sprintf("%v %+v %#v %v", err, err, err, e.Err) + e.Text; strings.Contains(all, "9f3b7c") {
			t.Errorf("%s: the error holds the key: %s", path, all)
		}
	}
}

func TestKey(t *testing.T) {
	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	files := func(name string) ([]byte, error) {
		switch name {
		case "good":
			return []byte("  sk-file \n"), nil
		case "two":
			return []byte("a\nb"), nil
		case "huge":
			return make([]byte, 1<<20), nil
		}
		return nil, fs.ErrNotExist
	}
	for _, test := range []struct {
		file     string
		env      []string
		want     string
		from     string
		mistaken string
	}{
		{"", []string{"B", "sk-env"}, "sk-env", "environment variable B", ""},
		{"", []string{"A", "", "B", " sk-env\n"}, "sk-env", "environment variable B", ""},
		{"", nil, "", "", ""},
		{"good", []string{"B", "sk-env"}, "sk-file", "file good", ""},
		{"none", []string{"B", "sk-env"}, "", "", "there is no file"},
		{"two", nil, "", "", "one line"},
		{"huge", nil, "", "", "one line"},
		{"", []string{"A", "sk-\x1b[2J"}, "", "", "printable"},
	} {
		s, from, err := remote.Key(env(test.env...), files, test.file, "A", "B")
		if test.mistaken != "" {
			if err == nil || !strings.Contains(err.Error(), test.mistaken) || strings.Contains(err.Error(), "sk-") {
				t.Errorf("%+v: error %v", test, err)
			}
			continue
		}
		if err != nil || s.Reveal() != test.want || from != test.from {
			t.Errorf("%+v: %q from %q, error %v", test, s.Reveal(), from, err)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://localhost:8000/v1": "http://localhost:8000/v1", "https://api.example/v1/": "https://api.example/v1",
		"http://user:sk-secret@h/v1": "", "ftp://h": "", "localhost:8000": "", "http://h/v1?key=sk-secret": "",
		"http://h/#sk-secret": "", ":// sk-secret": "", "http://": "",
	} {
		u, err := remote.BaseURL(in)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is taken as %v", in, u)
		case want == "" && strings.Contains(err.Error(), "sk-secret"):
			t.Errorf("%q: the error repeats a secret: %v", in, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q becomes %v, error %v", in, u, err)
		}
	}
}
