package model_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
)

var pay = []model.Tool{{Name: "transfer_money", Description: "Pay.", Params: []model.Param{
	{Name: "recipient", Format: "name"}, {Name: "account", Description: "IBAN or number", Format: "account",
		Required: true},
	{Name: "amount", Type: "number"}, {Name: "mode", Enum: []string{"now", "later"}}}}}

func TestSchema(t *testing.T) {
	want := `{"type":"object","properties":{"recipient":{"type":"string","description":"[format: name]"},` +
		`"account":{"type":"string","description":"IBAN or number [format: account]"},"amount":{"type":"number"},` +
		`"mode":{"type":"string","enum":["now","later"]}},"required":["account"]}`
	if got := string(model.Schema(pay[0])); got != want {
		t.Errorf("schema\n%s, want\n%s", got, want)
	}
	if got := string(model.Schema(model.Tool{})); got != `{"type":"object","properties":{}}` {
		t.Errorf("schema of no parameters: %s", got)
	}
}

func TestToolsAreReadAsTheyWereWritten(t *testing.T) {
	tools := append([]model.Tool{{Name: "a", Description: "Send <b>.", Params: []model.Param{{Name: "x"}}}}, pay...)
	back, err := model.ParseTools(model.EncodeTools(tools))
	if diff := cmp.Diff(tools, back, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("read back (%v):\n%s", err, diff)
	}
}

func TestParseArgs(t *testing.T) {
	for raw, want := range map[string]string{ // "" is an error
		`{"mode":"now","account":"DE89","recipient":"Dana"}`: `recipient=Dana account=DE89 mode=now`,
		`{"amount":12.50,"account":"1"}`:                     `account=1 amount=12.50`,
		// Digits beyond what a float holds survive.
		`{"account":12345678901234567890123,"amount":1e400}`: `account=12345678901234567890123 amount=1e400`,
		`{"account":{"iban" : ["DE89", null]}}`:              `account={"iban":["DE89",null]}`,
		`{"account":true,"mode":null}`:                       `account=true`,
		`{"zeta":"1","account":"2","alpha":"3"}`:             `account=2 zeta=1 alpha=3`,
		`{"account":"1","account":"2"}`:                      `account=2`,
		`{"account":"\u0041\ud83d\ude00"}`:                   "account=A\U0001F600",
		`"{\"account\":\"1\"}"`:                              `account=1`,
		``:                                                   `-`,
		`null`:                                               `-`,
		`{}`:                                                 `-`,
		` { } `:                                              `-`,
		`""`:                                                 `-`,
		`{"account":"1"`:                                     ``,
		`{"account":"1"}}`:                                   ``,
		`{"account":"1"}{}`:                                  ``,
		`["account"]`:                                        ``,
		`"account"`:                                          ``,
		`12`:                                                 ``,
		`{"account":}`:                                       ``,
		"{\"account\":\"\x00\"}":                             ``,
		strings.Repeat(`{"a":`, 20000):                       ``,
		strings.Repeat(`[`, 200000):                          ``,
	} {
		args, err := model.ParseArgs(pay, "transfer_money", []byte(raw))
		if want == "" {
			if err == nil {
				t.Errorf("%.60q is read as %v", raw, args)
			}
			continue
		}
		var got []string
		for _, a := range args {
			got = append(got, a.Name+"="+a.Value)
		}
		if want == "-" {
			want = ""
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, error %v; want %q", raw, got, err, want)
		}
	}
}

func TestParseArgsNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Custom(func(t *rapid.T) []byte {
			return []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{`{`, `}`, `[`, `]`, `"a"`, `:`, `,`, `null`, `1`,
				`"`, `\u`, ` `})).Draw(t, "pieces"), ""))
		})).Draw(t, "raw")
		args, err := model.ParseArgs(pay, "transfer_money", raw)
		if err == nil && len(args) > 0 && !json.Valid(raw) {
			t.Fatalf("%q is not JSON, and is read as %v", raw, args)
		}
		_, _, _ = model.ParseFenced(pay, string(raw))
		_, _ = model.ParseTools(raw)
	})
}

// What the fenced protocol writes, it reads.
func TestFencedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var calls []model.Call
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			c := model.Call{Name: pay[0].Name}
			for _, p := range pay[0].Params {
				if p.Type == "" && rapid.Bool().Draw(t, "has") {
					c.Args = append(c.Args, model.Arg{Name: p.Name,
						Value: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"```", "\n```\n", "```tool_call\n{}\n```"})).Draw(t,
							"value")})
				}
			}
			calls = append(calls, c)
		}
		text := rapid.SampledFrom([]string{"", "Let me do that.", "See:\n```python\nprint(1)\n```"}).Draw(t, "text")
		said := text
		for _, c := range calls {
			said += "\n" + model.FencedCall(pay, c)
		}
		rest, raw, err := model.ParseFenced(pay, said)
		if err != nil || rest != text {
			t.Fatalf("text %q, error %v, of %q", rest, err, said)
		}
		var got []model.Call
		for _, r := range raw {
			args, err := model.ParseArgs(pay, r.Name, r.Args)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, model.Call{Name: r.Name, Args: args})
		}
		if diff := cmp.Diff(calls, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestParseFenced(t *testing.T) {
	for said, want := range map[string]string{ // text|calls, or ! for an error
		"Hello.": "Hello.|",
		"```json\n{\"name\":\"transfer_money\",\"arguments\":{\"account\":\"1\"}}\n```":              `|transfer_money {"account":"1"}`,
		"```tool_call\n{\"name\":\"transfer_money\",\"parameters\":{\"account\":\"1\"}}\n```\nDone.": `Done.|transfer_money {"account":"1"}`,
		"```tool_call\n[{\"name\":\"a\",\"arguments\":{}},{\"name\":\"b\",\"arguments\":{}}]\n```":   `|a {}, b {}`,
		"```tool_call\n{\"name\":\"a\",\"arguments\":{}}\n{\"name\":\"b\",\"arguments\":{}}\n```":    `|a {}, b {}`,
		// cut before its end
		"```tool_call\n{\"name\":\"a\",\"arguments\":{}}":    `|a {}`,
		"```json\n{\"name\":\"Dana\",\"arguments\":{}}\n```": "```json\n{\"name\":\"Dana\",\"arguments\":{}}\n```|",
		"```json\n{\"a\": 1}\n```":                           "```json\n{\"a\": 1}\n```|",
		"```\nplain\n```":                                    "```\nplain\n```|",
		"The format is ```tool_call {}``` as you said.": "The format is ```tool_call {}``` as " +
			"you said.|",
		"```tool_call\n{\"name\":\"a\",\"arguments\":{\n```": "!",
		"```tool_call\n```":                                                         "!",
		"```tool_call\n{\"arguments\":{}}\n```":                                     "!",
		"```tool_call\ntransfer_money(account=1)\n```":                              "!",
		"```tool_call\n\"transfer_money\"\n```":                                     "!",
		"```TOOL_CALL\r\n{\"name\":\"a\",\"arguments\":{}}\r\n```\r\n":              `|a {}`,
		"   ```tool_call\n   {\"name\":\"a\",\"arguments\":{}}\n   ```":             `|a {}`,
		"```tool_call\n{\"name\":\"a\",\"arguments\":\"{\\\"account\\\":1}\"}\n```": `|a "{\"account\":1}"`,
	} {
		rest, calls, err := model.ParseFenced(pay, said)
		var list []string
		for _, c := range calls {
			list = append(list, c.Name+" "+string(c.Args))
		}
		got := rest + "|" + strings.Join(list, ", ")
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%q\n gives %q (%v)\n want  %q", said, got, err, want)
		}
	}
}

// A fenced request needs nothing but alternating roles, and holds all there was.
func TestFencedRequest(t *testing.T) {
	req := model.Request{Tools: pay, Messages: []model.Message{
		{Role: model.System, Content: "Be good."}, {Role: model.User, Content: "Pay Dana and Eve."},
		{Role: model.Assistant, Content: "Yes.", Calls: []model.Call{{ID: "1", Name: "transfer_money",
			Args: []model.Arg{{Name: "account", Value: "DE89"}, {Name: "amount", Value: "5"}}},
			{ID: "2", Name: "transfer_money"}}},
		{Role: model.ToolRole, CallID: "1", Name: "transfer_money", Content: "paid"},
		{Role: model.ToolRole, CallID: "2", Name: "transfer_money", Content: "no account"},
		{Role: model.User, Content: "And?"}}}
	before, _ := json.Marshal(req)
	got := model.Fenced(req)
	if after, _ := json.Marshal(req); string(after) != string(before) {
		t.Error("the request itself was changed")
	}
	if len(got.Tools) != 0 || len(got.Messages) != 4 {
		t.Fatalf("%d tools and %d messages, want 0 and 4: %+v", len(got.Tools), len(got.Messages), got.Messages)
	}
	for i, want := range []struct {
		role model.Role
		has  []string
	}{
		{model.System, []string{"Be good.", "transfer_money: Pay.", `"required":["account"]`, "```tool_call"}},
		{model.User, []string{"Pay Dana and Eve."}},
		{model.Assistant, []string{"Yes.\n\n```tool_call\n{\"name\": \"transfer_money\", \"arguments\": " +
			"{\"account\":\"DE89\",\"amount\":5}}\n```"}},
		{model.User, []string{"Result of transfer_money:\npaid\n\nResult of transfer_money:\nno account\n\nAnd?"}},
	} {
		m := got.Messages[i]
		if m.Role != want.role || len(m.Calls) > 0 || m.CallID != "" {
			t.Errorf("message %d is %+v", i, m)
		}
		for _, h := range want.has {
			if !strings.Contains(m.Content, h) {
				t.Errorf("message %d lacks %q: %s", i, h, m.Content)
			}
		}
	}
}

// A turn that fails at first: what is asked again, what is counted.
func TestConverse(t *testing.T) {
	req := model.Request{Tools: pay, Messages: []model.Message{{Role: model.User, Content: "Pay Dana."}}}
	bad := model.Answer{Text: "Sure.", Calls: []model.RawCall{{Name: "transfer_money", Args: []byte(`{"account": "DE8`)}},
		Prompt: 10, Completion: 5}
	good := model.Answer{Calls: []model.RawCall{{ID: "c", Name: "transfer_money", Args: []byte(`{"account":"DE89"}`)}},
		Prompt: 20, Completion: 6}
	run := func(s model.Settings, answers ...model.Answer) (model.Reply, []model.Request, error) {
		var asked []model.Request
		r, err := model.Converse(context.Background(), "m", req, s, remote.Redactor{},
			func(ctx context.Context, q model.Request) (model.Answer, error) {
				asked = append(asked, q)
				remote.CallOf(ctx).Attempts = 2
				return answers[len(asked)-1], nil
			})
		return r, asked, err
	}
	t.Run("corrected", func(t *testing.T) {
		r, asked, err := run(model.Settings{}, bad, good)
		want := model.Reply{Calls: []model.Call{{ID: "c", Name: "transfer_money",
			Args: []model.Arg{{Name: "account", Value: "DE89"}}}}, Usage: model.Usage{Prompt: 30, Completion: 11, Calls: 4}}
		r.Usage.Took = 0
		if diff := cmp.Diff(want, r); err != nil || diff != "" {
			t.Errorf("error %v\n%s", err, diff)
		}
		if len(asked) != 2 || len(asked[1].Messages) != 3 {
			t.Fatalf("asked %+v", asked)
		}
		again := asked[1].Messages
		if !strings.Contains(again[1].Content, `{"account": "DE8`) ||
			!strings.Contains(again[2].Content, "could not be read") || again[2].Role != model.User {
			t.Errorf("the correction is %+v", again[1:])
		}
		if len(req.Messages) != 1 {
			t.Error("the request itself was changed")
		}
	})
	t.Run("malformed twice", func(t *testing.T) {
		r, asked, err := run(model.Settings{}, bad, bad, good)
		if k, _ := remote.KindOf(err); k != remote.Malformed || len(asked) != 2 {
			t.Fatalf("error %v after %d requests", err, len(asked))
		}
		if e := err.(*remote.Error); !strings.Contains(e.Text, `Sure.`) ||
			!strings.Contains(e.Text, `transfer_money {"account": "DE8`) {
			t.Errorf("the call's text is not kept: %q", e.Text)
		}
		if r.Usage.Calls != 4 || r.Usage.Prompt != 20 || r.Text != "" || r.Calls != nil {
			t.Errorf("reply beside the error: %+v", r)
		}
	})
	t.Run("fenced", func(t *testing.T) {
		r, asked, err := run(model.Settings{Fenced: true},
			model.Answer{Text: "```tool_call\n{\"name\": \"transfer_money\"\n```"},
			model.Answer{Text: "I pay.\n```tool_call\n{\"name\":\"transfer_money\",\"arguments\":{\"account\":\"DE89\"}}\n```"})
		if err != nil || r.Text != "I pay." || len(r.Calls) != 1 || r.Calls[0].Get("account") != "DE89" ||
			!r.Usage.Estimated {
			t.Errorf("reply %+v, error %v", r, err)
		}
		for _, q := range asked {
			if len(q.Tools) > 0 {
				t.Errorf("tools were sent: %+v", q.Tools)
			}
		}
	})
	t.Run("filtered", func(t *testing.T) {
		_, asked, err := run(model.Settings{}, model.Answer{Text: "I", Filtered: true})
		if k, _ := remote.KindOf(err); k != remote.Filtered || len(asked) != 1 {
			t.Errorf("error %v after %d requests", err, len(asked))
		}
	})
	t.Run("thinking", func(t *testing.T) {
		for said, want := range map[string]string{"<think>\nThey want <b>.\n</think>\n\nHello.": "Hello.",
			"Hello <think>x</think>": "Hello <think>x</think>"} {
			if r, _, err := run(model.Settings{StripThinking: true}, model.Answer{Text: said}); err != nil || r.Text != want {
				t.Errorf("%q becomes %q (%v), want %q", said, r.Text, err, want)
			}
		}
		if r, _, err := run(model.Settings{StripThinking: true}, model.Answer{Text: "<think>cut"}); err == nil ||
			!strings.Contains(err.Error(), "cut answer") {
			t.Errorf("thinking without an end is the answer %q (%v)", r.Text, err)
		}
		if r, _, _ := run(model.Settings{}, model.Answer{Text: "<think>x</think>y"}); r.Text != "<think>x</think>y" {
			t.Errorf("thinking was removed unasked: %q", r.Text)
		}
	})
}
