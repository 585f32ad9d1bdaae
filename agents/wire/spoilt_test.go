package wire_test

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/wire"
)

// A prompt that the server cut is found by the server's own count; a whole one never
// seems to be cut, whatever the tokenizer makes of it.
func TestACutPromptIsFound(t *testing.T) {
	prose := strings.Repeat("the mail of Brandt says so ", 200) // 1,200 words, 5,400 bytes
	for name, test := range map[string]struct {
		text   string
		answer wire.Answer
		cut    bool
	}{
		"four bytes a token":                      {prose, wire.Answer{Prompt: 1350}, false},
		"a token a word":                          {prose, wire.Answer{Prompt: 1200}, false},
		"words joined":                            {prose, wire.Answer{Prompt: 800}, false},
		"a token a byte":                          {prose, wire.Answer{Prompt: 5400}, false},
		"a third of it":                           {prose, wire.Answer{Prompt: 400}, true},
		"a third of it, the rest cached":          {prose, wire.Answer{Prompt: 400, Cached: 900}, false},
		"counts what is new only":                 {prose, wire.Answer{Prompt: 9}, false},
		"no count":                                {prose, wire.Answer{}, false},
		"no white space":                          {strings.Repeat("词", 4000), wire.Answer{Prompt: 70}, false},
		"all of the context":                      {prose, wire.Answer{Prompt: 1024, Context: 1024}, true},
		"the context is larger":                   {prose, wire.Answer{Prompt: 1350, Context: 8192}, false},
		"short, and counted with a long template": {"Hi", wire.Answer{Prompt: 2000}, false},
	} {
		chat := func(context.Context, model.Request) (wire.Answer, error) {
			a := test.answer
			a.Text = "Noted."
			return a, nil
		}
		req := model.Request{Messages: []model.Message{{Role: model.User, Content: test.text}}}
		r, err := wire.Converse(t.Context(), "m", req, wire.Settings{}, wire.Redactor{}, chat)
		if k, known := wire.KindOf(err); known != test.cut || known && k != wire.CutPrompt {
			t.Errorf("%s: %v", name, err)
		}
		if r.Usage.Prompt < test.answer.Prompt {
			t.Errorf("%s: the tokens are not counted: %+v", name, r.Usage)
		}
	}
}
