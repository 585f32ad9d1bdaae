package model

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// RawCall is a tool call as a protocol brought it: Args is JSON, still unread.
type RawCall struct {
	ID, Name string
	Args     []byte
}

// Answer is one answer of a protocol.
type Answer struct {
	Text  string
	Calls []RawCall
	// Prompt and Completion are the server's counts of tokens; both 0 where it
	// gave none.
	Prompt, Completion int
	// Cached is how many tokens of the prompt the server had in its cache, where it
	// says so; some servers leave them out of Prompt.
	Cached int
	// Context is the server's context in tokens; 0 where it is not known.
	Context int
	// Sent and Came are the bodies of the request and of the answer.
	Sent, Came []byte
	// Filtered says that the provider's content filter cut the answer.
	Filtered bool
}

// Settings are how a model is talked to, whatever the protocol.
type Settings struct {
	// Fenced uses the fenced-JSON protocol instead of the server's tool calls.
	Fenced bool
	// StripThinking removes a leading <think>…</think> from the answer, for
	// servers that leave a model's reasoning in its text.
	StripThinking bool
	Price         remote.Price
	// MaxTokens bounds answers where the request does not; 0 leaves it to the
	// server.
	MaxTokens int
}

// expectedReply is how many tokens an answer is expected to take where nothing
// bounds it, for the limits.
const expectedReply = 256

// maxCorrected is how much of a malformed call the model is shown again.
const maxCorrected = 4 << 10

// maxExchange is how much of a request and of an answer is kept, in bytes.
const maxExchange = 256 << 10

// Chat sends one request by a protocol. A [*remote.Error] of kind Malformed is a call
// that the server itself could not read.
type Chat func(context.Context, Request) (Answer, error)

// Converse is one turn of a model: it sends the request, reads the calls of the
// answer, and where one cannot be read asks the model once to make it again. The
// reply's usage is right even beside an error.
func Converse(ctx context.Context, name string, req Request, s Settings, red remote.Redactor, chat Chat) (Reply,
	error) {
	if req.MaxTokens == 0 {
		req.MaxTokens = s.MaxTokens
	}
	var reply Reply
	for corrected := false; ; corrected = true {
		sent := req
		if s.Fenced {
			sent = Fenced(req)
		}
		var took Usage
		answer, err := attempt(ctx, name, sent, s, chat, &took)
		reply.Usage.Add(took)
		if len(answer.Sent) > 0 {
			reply.Exchanges = append(reply.Exchanges, Exchange{red.String(text.Clip(string(answer.Sent), maxExchange)),
				red.String(text.Clip(string(answer.Came), maxExchange)), took})
		}
		if e, ok := errors.AsType[*remote.Error](err); ok {
			// Decoding may have brought out what escapes had hidden.
			if e.Text = red.String(e.Text); e.Err != nil && red.String(e.Err.Error()) != e.Err.Error() {
				e.Err = errors.New(red.String(e.Err.Error()))
			}
		}
		if err == nil && answer.Filtered {
			err = &remote.Error{Kind: remote.Filtered, Text: text.Clip(red.String(answer.Text), remote.MaxErrorText),
				Err: errors.New("the provider's content filter cut the answer")}
		}
		if err == nil {
			said, ended := answer.Text, true
			if s.StripThinking {
				if said, ended = stripThinking(said); !ended {
					return reply, remote.Spoilt(remote.CutAnswer, "the answer ends within the model's thinking")
				}
			}
			calls := answer.Calls
			if s.Fenced && len(req.Tools) > 0 {
				said, calls, err = ParseFenced(req.Tools, said)
			}
			if err == nil {
				reply.Calls, err = readCalls(req.Tools, calls)
			}
			if err == nil {
				reply.Text = red.String(said)
				for i := range reply.Calls {
					c := &reply.Calls[i]
					c.ID, c.Name = red.String(c.ID), red.String(c.Name)
					for j := range c.Args {
						c.Args[j].Value = red.String(c.Args[j].Value)
					}
				}
				return reply, nil
			}
			err = &remote.Error{Kind: remote.Malformed, Err: err,
				Text: text.Clip(red.String(spelled(answer)), remote.MaxErrorText), Attempts: reply.Usage.Calls}
		}
		reply.Calls = nil
		bad, ok := errors.AsType[*remote.Error](err)
		if !ok || bad.Kind != remote.Malformed || corrected {
			return reply, err
		}
		// The call goes back as text: a server that reads the arguments of past
		// calls would refuse the request. Where the server could not read it, only
		// its complaint is known.
		said, why := bad.Text, "it is malformed"
		switch {
		case bad.Status != 0:
			said, why = "(a tool call)", text.Clip(bad.Text, 300)
		case bad.Err != nil:
			why = text.Clip(bad.Err.Error(), 300)
		}
		req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)],
			Message{Role: Assistant, Content: text.Clip(cmp.Or(said, "(a tool call)"), maxCorrected)},
			Message{Role: User, Content: "Your tool call could not be read: " + why +
				". Make it again, with the arguments as one JSON object."})
	}
}

// attempt sends one request and books what it took.
func attempt(ctx context.Context, name string, req Request, s Settings, chat Chat, u *Usage) (Answer, error) {
	prompt := 0
	for _, m := range req.Messages {
		prompt += 4 + Tokens(m.Content)
		for _, c := range m.Calls {
			for _, a := range c.Args {
				prompt += Tokens(a.Value)
			}
		}
	}
	call := &remote.Call{Model: name, Prompt: prompt, Reply: cmp.Or(req.MaxTokens, expectedReply), Price: s.Price}
	began := time.Now()
	answer, err := chat(remote.WithCall(ctx, call), req)
	u.Calls += call.Attempts
	if call.Took > 0 {
		u.Took += call.Took
	} else {
		u.Took += time.Since(began)
	}
	estimated := answer.Prompt+answer.Completion == 0
	if estimated {
		u.Estimated = true
		if call.Attempts > 0 {
			answer.Prompt = prompt
		}
		if err == nil {
			answer.Completion = Tokens(answer.Text)
			for _, c := range answer.Calls {
				answer.Completion += Tokens(c.Name) + (len(c.Args)+3)/4
			}
		}
	}
	u.Prompt += answer.Prompt
	u.Completion += answer.Completion
	call.Settle(answer.Prompt, answer.Completion)
	if err == nil && !estimated {
		err = checkPrompt(req, &answer)
	}
	return answer, err
}

// leastPrompt is the least count of tokens that is held against a prompt: no
// context is smaller, and what a server keeps of a prompt fills its context. A
// smaller count is of another thing, for instance of what no cache held.
const leastPrompt = 64

// checkPrompt reports a prompt of which the server read a part only, by the server's own
// count. Other tokenizers than the one that is guessed at must not seem to cut: so
// the bound counts words, the stretches without white space. Every tokenizer in use
// makes one token of a word at least, but for a few that join frequent words and
// save up to a third: fewer than two tokens of three words come of no whole prompt, and
// a context of fewer holds none. What has no white space (Chinese, encoded data) counts
// for next to nothing, and is not found to be cut.
func checkPrompt(req Request, a *Answer) error {
	if a.Context > 0 && a.Prompt >= a.Context {
		return remote.Spoilt(remote.CutPrompt, "the prompt took %d tokens, all of the server's context of %d", a.Prompt,
			a.Context)
	}
	words := 0
	for _, m := range req.Messages {
		words += len(strings.Fields(m.Content))
	}
	least := words * 2 / 3
	if a.Context > 0 && least >= a.Context {
		return remote.Spoilt(remote.CutPrompt, "the prompt has %d words, and the server's context holds %d tokens", words,
			a.Context)
	}
	if n := a.Prompt + a.Cached; n >= leastPrompt && n < least {
		return remote.Spoilt(remote.CutPrompt, "the server counts %d tokens in a prompt of %d words", n, words)
	}
	return nil
}

func readCalls(tools []Tool, raw []RawCall) ([]Call, error) {
	var out []Call
	for _, r := range raw {
		args, err := ParseArgs(tools, r.Name, r.Args)
		if err != nil {
			return nil, err
		}
		if r.Name == "" {
			return nil, errors.New("it names no tool")
		}
		out = append(out, Call{ID: r.ID, Name: r.Name, Args: args})
	}
	return out, nil
}

// spelled is an answer as text, for its error and for the model to see again.
func spelled(a Answer) string {
	var b strings.Builder
	b.WriteString(a.Text)
	for _, c := range a.Calls {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.Name + " " + string(c.Args))
	}
	return b.String()
}

// stripThinking returns what follows the thinking, and whether that has an end.
func stripThinking(s string) (string, bool) {
	t := strings.TrimLeft(s, " \r\n\t")
	if !strings.HasPrefix(t, "<think>") {
		return s, true
	}
	_, after, ok := strings.Cut(t, "</think>")
	return strings.TrimLeft(after, " \r\n\t"), ok
}

// maxCount is more than any context holds: a count beyond it is none.
const maxCount = 1e9

// Count reads a count of tokens as a server gives it. Absent and null are 0.
func Count(raw []byte) (int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64) // refuses the quotes of a string
	if err != nil || !(n >= 0 && n <= maxCount) || n != math.Trunc(n) {
		return 0, remote.Spoilt(remote.BadUsage, "%s is no count of tokens", remote.Inert(string(raw), 60))
	}
	return int(n), nil
}
