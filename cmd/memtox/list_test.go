package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// What comes from files and peers stays inert in JSON too: a terminal obeys more
// than what JSON must escape.
func TestPrintedJSONIsInert(t *testing.T) {
	var out strings.Builder
	hostile := "a\u009b31mb\u202ec\u2066d\x7fe\U000e0041f"
	if err := printJSON(&Env{Stdout: &out}, map[string]string{"text": hostile}); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%U is printed raw", r)
		}
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["text"] != hostile {
		t.Errorf("%q comes back as %q: %v", hostile, back["text"], err)
	}
}
