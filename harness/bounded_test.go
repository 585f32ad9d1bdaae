package harness

import (
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
)

// A trial that takes more than it may is not scored and says which bound it met; one
// within the bounds is what it is without.
func TestATrialBeyondItsBoundsIsNotScored(t *testing.T) {
	settings := []string{"dataset=memtox-smoke", "agent=hermes", "defense=none", "limit=10", "transcripts=none"}
	_, free := runAll(t, Builtin(), settings...)
	for _, test := range []struct{ bound, why string }{
		{"trial_messages=1", "more messages than trial_messages (1) allows"},
		{"trial_tokens=2", "more than trial_tokens (2) allows"},
		{"trial_timeout=1ns", "longer than trial_timeout (1ns) allows"},
		{"trial_messages=1000", ""},
		{"trial_tokens=1000000", ""},
	} {
		_, out := runAll(t, Builtin(), append(settings, test.bound)...)
		for _, r := range out.trials() {
			switch want := free.entries[r.ID].Trial; {
			case want.Status == results.Excluded:
			case test.why == "" && r.Digest != want.Digest:
				t.Errorf("%s: %s differs: %s", test.bound, r.Case, r.Reason)
			case test.why != "" && (r.Status != results.Error || !strings.Contains(r.Reason, test.why)):
				t.Errorf("%s: %s is %s: %q", test.bound, r.Case, r.Status, r.Reason)
			}
		}
	}
}
