package results

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func message() (Trial, []Decision) {
	score, yes := 0.25, true
	return Trial{ID: "00000000000000ff", Index: 7, Dataset: "d", Case: "c", Status: Scored, Detected: &yes, Digest: "x",
			WallUS: 12},
		[]Decision{{Trial: "00000000000000ff", Index: 7, Gate: GateWrite, Score: &score, Reasons: "a;b"},
			{Trial: "00000000000000ff", Index: 7, Seq: 1}}
}

func TestMessagesCarryTheWholeRow(t *testing.T) {
	row, ds := message()
	var e Entry
	if err := ParseMessage(AppendMessage(nil, &row, ds), &e); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e.Trial, row) || !reflect.DeepEqual(e.Decisions, ds) {
		t.Errorf("%+v", e)
	}
}

func FuzzParseMessage(f *testing.F) {
	row, ds := message()
	b := AppendMessage(nil, &row, ds)
	f.Add(b)
	f.Add(b[:20])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Entry
		err := ParseMessage(b, &e)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("%v is no ErrMessage", err)
			}
			return
		}
		again := AppendMessage(nil, &e.Trial, e.Decisions)
		var e2 Entry
		if err := ParseMessage(again, &e2); err != nil || !bytes.Equal(AppendMessage(nil, &e2.Trial, e2.Decisions), again) {
			t.Fatalf("it does not come back: %v", err)
		}
	})
}
