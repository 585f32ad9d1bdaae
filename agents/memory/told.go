package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memtox/memtox/agents/model"
)

// Told says what became of what was not done, in words that fit the verdict.
func (v Verdict) Told() string {
	id := "policy"
	if len(v.Findings) > 0 {
		id = v.Findings[0].Check
	}
	if v.Action == Defer {
		return fmt.Sprintf("Put off until somebody approves: matched %s.", id)
	}
	return fmt.Sprintf("Content blocked: matched %s. Rephrase the entry.", id)
}

// Refusal tells the model which arguments of a call the action gate refused, and why.
func Refusal(v Verdict) string {
	out := struct {
		Success bool            `json:"success"`
		Error   string          `json:"error"`
		Refused []model.Refused `json:"refused,omitempty"`
	}{}
	var why []string
	for _, f := range v.Findings {
		if f.Argument == "" {
			continue
		}
		out.Refused = append(out.Refused, model.Refused{Argument: f.Argument, Value: f.Value})
		why = append(why, f.Argument+": "+f.Note)
	}
	if out.Error = "not allowed: " + strings.Join(why, "; "); why == nil {
		out.Error = "not allowed: " + v.Told()
	}
	b, _ := json.Marshal(out)
	return string(b)
}

// Failure tells the model that a call did nothing, and why.
func Failure(why string) string {
	b, _ := json.Marshal(struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}{false, why})
	return string(b)
}
