package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/memtox/memtox/internal/remote"
)

// Unfence takes the fence off a reply that is one fenced block and nothing else,
// and white space off any reply.
func Unfence(reply string) string {
	s := strings.TrimSpace(reply)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		rest = strings.TrimPrefix(rest, "json")
		if body, ok := strings.CutSuffix(rest, "```"); ok {
			return strings.TrimSpace(body)
		}
	}
	return s
}

// OneObject decodes a reply that is one JSON object and nothing else, fenced or
// not. Members that v does not know are passed over; one that stands there twice
// is an error, for it says two things.
func OneObject(reply string, v any) error {
	s := Unfence(reply)
	if !strings.HasPrefix(s, "{") {
		return errors.New("the reply is no JSON object")
	}
	if err := json.Unmarshal([]byte(s), v); err != nil { // refuses what follows the object
		return fmt.Errorf("the reply is not one JSON object: %w", err)
	}
	if err := remote.Once([]byte(s), nil, nil); err != nil {
		return fmt.Errorf("the reply says something twice: %w", err)
	}
	return nil
}
