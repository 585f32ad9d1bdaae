package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/internal/text"
)

// Kind says what may be done about an error.
type Kind uint8

// The kinds of errors. RateLimited and Transient are tried again until the
// retries are used up; an Error of these kinds says that they were.
const (
	Fatal       Kind = iota // trying again would not help: wrong key, no such model, a request that the server refuses
	RateLimited             // the server has asked to slow down
	Transient               // network trouble, a server error, an answer that was cut or does not end
	Malformed               // the model's tool call could not be read, twice
	Filtered                // the provider's content filter refused the request or the answer
	CapReached              // a cap of the run is used up: nothing more is sent
	NotRecorded             // a replay was asked for something that the cassette does not hold
	NoAnswer                // the server's answer holds none: no choice, no message, neither content nor calls
	CutAnswer               // the answer ended before its end, at a bound on tokens for the most part
	BadUsage                // the server's counts of tokens are none
	BrokenCall              // the server mangled a tool call, where Malformed is the model's own fault
	CutPrompt               // the server read less of the prompt than was sent
	GivenUp                 // a server, a guard or an agent that nothing more is expected of
)

// kinds have a name and, where the kind alone says it, a hint at what would mend it.
var kinds = [...]struct{ name, hint string }{
	Fatal:       {name: "fatal"},
	RateLimited: {name: "rate limit"},
	Transient:   {name: "transient"},
	Malformed:   {name: "malformed tool call"},
	Filtered:    {name: "filtered"},
	CapReached:  {"cap", "raise the cap and resume the run"},
	NotRecorded: {"not recorded", "replay with the settings, the cases and the version of the recording, or record again"},
	NoAnswer:    {"no answer", "see what the server's log says of the request; memtox doctor tries the model"},
	CutAnswer:   {"cut answer", "if it ran into a bound on tokens, raise reply_tokens or the server's own bound"},
	BadUsage:    {"wrong usage", "update the server, or the gateway before it"},
	BrokenCall:  {"broken tool call", "see what the server's log says of the request; memtox doctor tries the model"},
	GivenUp:     {name: "given up"},
	CutPrompt: {"cut prompt", "give the server a larger context, or the run a smaller one with --set window=N; " +
		"if it counts only what its prompt cache did not hold, turn that cache off"},
}

// String returns the kind's name as rows and messages have it.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return "kind " + strconv.Itoa(int(k))
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, bool) {
	i := slices.IndexFunc(kinds[:], func(k struct{ name, hint string }) bool { return k.name == s })
	return Kind(max(0, i)), i >= 0
}

// Retryable reports whether another attempt could help. An overloaded gateway
// answers with nothing now and then, and with an answer a moment later. Not so the
// other kinds of spoilt answers: at temperature 0 the same answer runs into the same
// bound, a parser mangles the same call, and a server that counts wrongly goes on to;
// another attempt would only be paid for.
func (k Kind) Retryable() bool { return k == RateLimited || k == Transient || k == NoAnswer }

// Spoilt is an answer that came and counts as none.
func Spoilt(k Kind, format string, args ...any) *Error {
	for i, a := range args { // what Go says of a wrong type names our types
		if bad, ok := a.(*json.UnmarshalTypeError); ok {
			args[i] = fmt.Errorf("%s is a %s", cmp.Or(bad.Field, "it"), bad.Value)
		}
	}
	return &Error{Kind: k, Err: fmt.Errorf(format, args...), Hint: kinds[k].hint}
}

// Error is why a model did not answer. Its text holds no secret and no control
// character, whatever the server sent.
type Error struct {
	Kind     Kind
	Op       string        // for instance "POST /v1/chat/completions"
	Server   string        // for instance "http://127.0.0.1:8080", without user, password or query
	Status   int           // of the last answer; 0 is none
	After    time.Duration // how long the server asked to wait; 0 where it named no time
	Attempts int           // requests that were sent
	Waited   time.Duration // in queues and between attempts
	Text     string        // what the server, or a malformed model, said; at most maxErrorText bytes
	Hint     string        // what would mend it
	Err      error         // the cause, where it is not the server's answer
}

// maxErrorText bounds the server's or the model's own words in an error.
const MaxErrorText = 64 << 10

// lasting are the kinds whose names say nothing to a person: their messages tell a failure
// for good from one that another try may mend.
var lasting = map[Kind]string{Fatal: " for good", Transient: " for now"}

// Failed says that a model failed: for good, as with a wrong key, or for now. The kinds of
// errors in summaries are told by these words.
func Failed(err error) string {
	how := ""
	if k, known := KindOf(err); known {
		how = lasting[k]
	}
	return "the model failed" + how + ": " + err.Error()
}

func (e *Error) Error() string {
	var parts []string
	if lasting[e.Kind] == "" {
		parts = append(parts, e.Kind.String())
	}
	if e.Op != "" {
		method, path, _ := strings.Cut(e.Op, " ")
		parts = append(parts, method+" "+e.Server+path)
	}
	if e.Status != 0 {
		status := fmt.Sprintf("status %d", e.Status)
		if e.After > 0 {
			status += fmt.Sprintf(", retry after %v", e.After)
		}
		parts = append(parts, status)
	}
	if e.Err != nil {
		parts = append(parts, Inert(e.Err.Error(), 300))
	}
	if e.Text != "" {
		parts = append(parts, strconv.Quote(text.Clip(e.Text, 300)))
	}
	if parts == nil {
		parts = append(parts, "there was no answer")
	}
	var b strings.Builder
	b.WriteString(strings.Join(parts, ": "))
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (after %d attempts)", e.Attempts)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first [Error] in err's tree.
func KindOf(err error) (Kind, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind, true
	}
	return 0, false
}

// StopsRun reports whether err means that the run as a whole has to stop, to be
// resumed later: a cap is used up, or somebody whom every further trial would need is
// given up.
func StopsRun(err error) bool {
	k, ok := KindOf(err)
	return ok && (k == CapReached || k == GivenUp)
}

// Inert shows control characters instead of sending them.
func Inert(s string, n int) string {
	q := strconv.Quote(text.Clip(s, n))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
