package harness

import (
	"errors"
	"fmt"
	"testing"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results/summary"
)

// Every kind of error that a model can have is told from its row's reason. What ends the
// run stands in no row.
func TestTheSummaryKnowsEveryKindOfError(t *testing.T) {
	for k := remote.Fatal; ; k++ {
		if _, known := remote.ParseKind(k.String()); !known {
			break
		}
		if remote.StopsRun(&remote.Error{Kind: k}) {
			continue
		}
		for _, e := range []*remote.Error{{Kind: k}, {Kind: k, Err: errors.New("x")}, {Kind: k, Hint: "x"},
			{Kind: k, Attempts: 3}} {
			why := reason(fmt.Errorf("write session: turn 1: %w", &agents.ModelError{Err: e}))
			if got := summary.ErrorKind(why); got != k.String() {
				t.Errorf("%q is of kind %q, want %q", why, got, k)
			}
		}
	}
}
