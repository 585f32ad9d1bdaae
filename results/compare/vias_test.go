package compare

import (
	"fmt"
	"testing"
)

// A run whose rows name more channels than there are lays none at another's door.
func TestMoreChannelsThanThereAre(t *testing.T) {
	var table Table
	for i := range 600 {
		name := fmt.Sprint("via-", i)
		want := name
		if i >= 255 {
			want = furtherVias
		}
		k := table.via(name)
		if got := table.vias[k]; got != want {
			t.Fatalf("channel %d is %q, not %q", i, got, want)
		}
	}
}
