package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/memtox/memtox/internal/text"
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
	return distinctMembers(s)
}

// distinctMembers refuses an object with two members of one name, whatever its
// case: encoding/json would take the last.
func distinctMembers(object string) error {
	d := json.NewDecoder(strings.NewReader(object))
	seen, depth, key := map[string]bool{}, 0, false
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the reply is not one JSON object: %w", err)
		}
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
			key = depth == 1
			continue
		case string:
			if key {
				name := strings.ToLower(t)
				if seen[name] {
					return fmt.Errorf("the reply has the member %q twice", text.Clip(name, 40))
				}
				seen[name] = true
				key = false
				continue
			}
		}
		key = depth == 1
	}
}
