package wire_test

import (
	"math"
	"testing"
	"time"

	"github.com/memtox/memtox/internal/wire"
)

func TestWhatIsAppendedIsTaken(t *testing.T) {
	when := time.Date(2026, 3, 2, 9, 0, 0, 7, time.FixedZone("", 3600))
	b := wire.AppendTime(wire.AppendField(wire.AppendField(nil, "größe"), []byte{}), when)
	b = wire.AppendTime(b, time.Time{})
	r := wire.Reader{Rest: b}
	if one, two := string(r.Field()), r.Field(); one != "größe" || len(two) != 0 {
		t.Errorf("the fields are %q and %q", one, two)
	}
	if got := r.Time(); !got.Equal(when) || got.Location() != time.UTC {
		t.Errorf("the time is %v", got)
	}
	if got := r.Time(); !got.IsZero() || r.Err != nil || len(r.Rest) > 0 {
		t.Errorf("the zero time is %v, with %d bytes behind it: %v", got, len(r.Rest), r.Err)
	}
	if r.Byte() != 0 || r.Err == nil || r.Varint() != 0 {
		t.Error("something is taken from behind the end")
	}
}

func TestWhatIsClaimedIsNotBelieved(t *testing.T) {
	for name, b := range map[string][]byte{
		"a length beyond the end":        {200, 1, 'a'},
		"a length that is cut":           {200},
		"a length that overflows":        {255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
		"a length longer than it may be": {129, 0, 'a'},
	} {
		r := wire.Reader{Rest: b}
		if f := r.Field(); f != nil || r.Err == nil {
			t.Errorf("%s: %q, %v", name, f, r.Err)
		}
	}
	if r := (wire.Reader{Rest: []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}}); r.Varint() != math.MinInt64 {
		t.Error("the least number is another")
	}
}
