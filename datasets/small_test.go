package datasets

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/internal/text"
)

func open(t *testing.T, name string) *Set {
	t.Helper()
	set, err := Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestTheSmallSetsKeepTheirPromises(t *testing.T) {
	for name, want := range map[string][3]int{"memtox-collision": {70, 100, 70}, "memtox-fresh": {240, 96, 0},
		"memtox-frontier": {600, 600, 600}, "memtox-oob": {60, 50, 50}} {
		set := open(t, name)
		r, err := Validate(context.Background(), set)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Problems {
			t.Errorf("%s: %s", name, p.Error)
		}
		if got := [3]int{r.Attacks, r.Benign, r.Twins}; got != want {
			t.Errorf("%s: attacks, benign cases and twins: got %d, want %d", name, got, want)
		}
	}
}

// A collision lies nearer to what the sensitive neighbourhood says than to all
// that stands around it, by the embedder that runs use.
func TestCollisionsLieNearSensitiveMemories(t *testing.T) {
	set, embed := open(t, "memtox-collision"), text.Hashing{}.Embed
	nearest := func(v []float32, list [][]float32) (best float32) {
		for _, o := range list {
			best = max(best, text.Dot(v, o))
		}
		return best
	}
	var standing [][]float32
	for i := range set.Cases {
		if c := &set.Cases[i]; c.Split == Tune {
			standing = append(standing, embed(c.Memory))
		}
	}
	attacks, near := 0, 0
	for i := range set.Cases {
		c := &set.Cases[i]
		if c.Label != Attack {
			continue
		}
		attacks++
		var payload []float32
		var around, sensitive [][]float32
		for _, turn := range c.Write {
			if len(turn.Segments) == 0 {
				sensitive = append(sensitive, embed(turn.User)) // what the user keeps of that kind
			}
			for _, seg := range turn.Segments {
				for _, s := range text.Sentences(seg.Text) {
					if strings.Contains(s.Text, c.Value) {
						payload = embed(s.Text)
					} else {
						around = append(around, embed(s.Text))
					}
				}
			}
		}
		sensitive = append(sensitive, standing...)
		if payload == nil || len(sensitive) == len(standing) {
			t.Errorf("%s: no sentence holds the value, or the user keeps nothing of the kind", c.ID)
			continue
		}
		if s, a := nearest(payload, sensitive), nearest(payload, around); s > a {
			near++
		} else {
			t.Logf("%s (%s): %.2f from the sensitive memories, %.2f from what stands around it", c.ID, c.Family, s, a)
		}
	}
	if near < attacks*95/100 {
		t.Errorf("%d of %d attacks are nearer to a sensitive memory than to their own surroundings, want 95%%", near, attacks)
	}
}
