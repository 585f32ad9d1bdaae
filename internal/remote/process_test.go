package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "noisy" { // megabytes of complaints, a secret among them
		for i := range 20000 {
			fmt.Fprintf(os.Stderr, "complaint %d: the key is %s and the weather is bad, and so on and so forth\n", i,
				os.Getenv("THE_KEY"))
		}
		os.Exit(5)
	}
	if len(os.Args) > 1 && os.Args[1] == "deaf" { // reads nothing, says nothing
		time.Sleep(time.Hour)
	}
	goleak.VerifyTestMain(m)
}

func TestWords(t *testing.T) {
	for command, want := range map[string][]string{
		`python3 guard.py`: {"python3", "guard.py"}, "  a\t b\n": {"a", "b"},
		`a 'b c' "d e" f\ g`: {"a", "b c", "d e", "f g"},
		`a '' ""`:            {"a", "", ""}, `a"b"'c'd`: {"abcd"}, `"a\"b\\c\d"`: {`a"b\c\d`},
		`sh -c 'echo "$HOME" | wc'`: {"sh", "-c", `echo "$HOME" | wc`},
		`a $HOME *.py ; b`:          {"a", "$HOME", "*.py", ";", "b"},
	} {
		if got, err := Words(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", command, got, err, want)
		}
	}
	for _, bad := range []string{"", "  ", `''`, `a 'b`, `a "b`, `a\`, "a\x00b"} {
		if got, err := Words(bad); err == nil {
			t.Errorf("%q is read as %q", bad, got)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"a b", `'a' "b" \c`, `"`, `\`, "a'b\"c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := Words(s)
		if err != nil {
			return
		}
		// Quoted again, they are the same words.
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		if again, err := Words(strings.Join(quoted, " ")); err != nil || !slices.Equal(words, again) {
			t.Errorf("%q is %q, and quoted %q, %v", s, words, again, err)
		}
	})
}

func self(t *testing.T, mode string) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "'" + name + "' " + mode
}

func TestComplaintsAreBoundedAndHoldNoSecret(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const key = "sk-0123456789abcdef"
	env, redact, err := Environment(func(n string) (string, bool) { return key, n == "THE_KEY" }, []string{"THE_KEY"})
	if err != nil || !slices.Equal(env, []string{"THE_KEY=" + key}) {
		t.Fatal(env, err)
	}
	c, err := Start(ProcessOptions{Command: self(t, "noisy"), Env: env, Redact: redact,
		Line: func([]byte) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	c.Close(time.Second)
	if s := c.Stderr(); strings.Contains(s, "sk-0123") || strings.Contains(s, "abcdef") || len(s) > 2*tailBytes ||
		!strings.Contains(s, "complaint 19999") {
		t.Errorf("%d bytes are kept: …%s", len(s), s[max(0, len(s)-200):])
	}
	if msg := c.Err().Error(); strings.Contains(msg, "sk-0123") || !strings.Contains(msg, "exit status 5") ||
		!strings.Contains(msg, "complaint 19999") {
		t.Error(msg)
	}
}

func TestSendingDoesNotWaitForThoseWhoDoNotRead(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c, err := Start(ProcessOptions{Command: self(t, "deaf"), Line: func([]byte) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	line := []byte(strings.Repeat("x", 1<<16))
	for err == nil {
		err = c.Send(ctx, slices.Clone(line))
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not read") {
		t.Error(err)
	}
	c.Close(0)
	if err := c.Send(context.Background(), line); err == nil {
		t.Error("a line was sent to a program that was ended")
	}
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	if _, err := Start(ProcessOptions{Command: "/no/such/program"}); err == nil ||
		!strings.Contains(err.Error(), "/no/such/program") {
		t.Error(err)
	}
}
