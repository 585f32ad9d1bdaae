package seal

import (
	"encoding/json"
	"fmt"
)

// MarshalJSON implements [json.Marshaler].
func (s MemgarSibling) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.Position, s.Hash}) }

// UnmarshalJSON implements [json.Unmarshaler].
func (s *MemgarSibling) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a sibling is [position, hash], not %d values", len(pair))
	}
	if err := json.Unmarshal(pair[0], &s.Position); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &s.Hash)
}
