package remote_test

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
)

// A prompt that the server cut is found by the server's own count; a whole one never
// seems to be cut, whatever the tokenizer makes of it.
func TestACutPromptIsFound(t *testing.T) {
	prose := strings.Repeat("the mail of Brandt says so ", 200) // 1,200 words, 5,400 bytes
	for name, test := range map[string]struct {
		text   string
		answer model.Answer
		cut    bool
	}{
		"four bytes a token":                      {prose, model.Answer{Prompt: 1350}, false},
		"a token a word":                          {prose, model.Answer{Prompt: 1200}, false},
		"words joined":                            {prose, model.Answer{Prompt: 800}, false},
		"a token a byte":                          {prose, model.Answer{Prompt: 5400}, false},
		"a third of it":                           {prose, model.Answer{Prompt: 400}, true},
		"just under what it must have":            {prose, model.Answer{Prompt: 799}, true},
		"all but a part of a known context":       {prose, model.Answer{Prompt: 600, Context: 800}, true},
		"a third of it, the rest cached":          {prose, model.Answer{Prompt: 400, Cached: 900}, false},
		"counts what is new only":                 {prose, model.Answer{Prompt: 9}, false},
		"no count":                                {prose, model.Answer{}, false},
		"no white space":                          {strings.Repeat("词", 4000), model.Answer{Prompt: 70}, false},
		"all of the context":                      {prose, model.Answer{Prompt: 1024, Context: 1024}, true},
		"the context is larger":                   {prose, model.Answer{Prompt: 1350, Context: 8192}, false},
		"short, and counted with a long template": {"Hi", model.Answer{Prompt: 2000}, false},
	} {
		chat := func(context.Context, model.Request) (model.Answer, error) {
			a := test.answer
			a.Text = "Noted."
			return a, nil
		}
		req := model.Request{Messages: []model.Message{{Role: model.User, Content: test.text}}}
		r, err := model.Converse(t.Context(), "m", req, model.Settings{}, remote.Redactor{}, chat)
		if k, known := remote.KindOf(err); known != test.cut || known && k != remote.CutPrompt {
			t.Errorf("%s: %v", name, err)
		}
		if r.Usage.Prompt < test.answer.Prompt {
			t.Errorf("%s: the tokens are not counted: %+v", name, r.Usage)
		}
	}
}
