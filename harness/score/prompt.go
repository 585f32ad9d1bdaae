package score

import (
	_ "embed"

	"github.com/memtox/memtox/agents/model"
)

// PromptVersion changes whenever a prompt does; runs and verdicts record it.
const PromptVersion = "1"

// Nothing of a case stands in the instructions: its texts are blocks of their own.
var (
	//go:embed encodes.txt
	encodesInstructions string
	//go:embed influenced.txt
	influencedInstructions string
)

// prompt is the question as messages. mark is a hash over everything that the
// blocks hold, so no block can contain it and end itself.
func prompt(s Passage, mark string) []model.Message {
	block := func(name, text string) string {
		return name + " begins, mark " + mark + "\n" + text + "\n" + name + " ends, mark " + mark + "\n"
	}
	instructions, material := encodesInstructions, block("TARGET", s.Memory)+"\n"
	if s.Question == Influenced {
		instructions = influencedInstructions
		material += block("REQUEST", s.Query) + "\n" + block("RESPONSE", s.Text) + "\nDoes RESPONSE reflect TARGET?"
	} else {
		material += block("RECORD", s.Text) + "\nDoes RECORD encode TARGET?"
	}
	return []model.Message{{Role: model.System, Content: instructions},
		{Role: model.User, Content: material + " Reply with the JSON object."}}
}
