package text

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

func TestGetBuildsOnce(t *testing.T) {
	m := New[int](1 << 20)
	n := 0
	build := func(s string) (int, int) { n++; return len(s), 8 }
	for range 3 {
		if got := m.Get("hello", build); got != 5 {
			t.Fatalf("Get = %d, want 5", got)
		}
	}
	if n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestGetForgetsWhatIsNotUsed(t *testing.T) {
	m := New[int](16 << 10)
	built := 0
	build := func(s string) (int, int) { built++; return 0, 100 }
	for i := range 10_000 {
		m.Get(strconv.Itoa(i), build)
	}
	kept := 0
	for i := range m.shard {
		kept += len(m.shard[i].young) + len(m.shard[i].old)
	}
	if kept == 0 || kept > 400 {
		t.Errorf("%d values of 10,000 kept within 16 KiB of about 104 bytes each", kept)
	}
}

func TestGetFromManyGoroutines(t *testing.T) {
	m := New[string](4 << 10)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2_000 {
				s := strconv.Itoa(i % 300)
				if got := m.Get(s, func(s string) (string, int) { return "v" + s, 50 }); got != "v"+s {
					t.Errorf("Get(%q) = %q", s, got)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkGet(b *testing.B) {
	m := New[int](1 << 20)
	s := "The billing contact of Norvik Print is dana@norvik.example and nobody else."
	for b.Loop() {
		m.Get(s, func(string) (int, int) { return 1, 8 })
	}
}

// A part that is kept does not keep the text that it was cut from.
func TestPartsAreCopies(t *testing.T) {
	m := NewOfParts[string](1 << 20)
	long := strings.Repeat("x", 1000)
	part := long[10:20]
	got := m.Get(part, func(s string) (string, int) { return s, 0 })
	if got != part || unsafe.StringData(got) == unsafe.StringData(part) {
		t.Errorf("the part is kept in its document")
	}
}

// Long texts are told apart also where they differ between the pieces that are hashed.
func TestLongTextsThatDifferInTheMiddle(t *testing.T) {
	m := New[string](1 << 20)
	build := func(s string) (string, int) { return s, 0 }
	long := strings.Repeat("a long text ", 400)
	for at := range len(long) {
		other := long[:at] + "X" + long[at+1:]
		for _, s := range []string{long, other, long} {
			if got := m.Get(s, build); got != s {
				t.Fatalf("another text was given for one that differs at byte %d", at)
			}
		}
	}
	for i := range m.shard {
		if m.shard[i].bytes > 2*len(long)*len(m.shard[i].young) {
			t.Errorf("shard %d counts %d bytes for %d texts", i, m.shard[i].bytes, len(m.shard[i].young))
		}
	}
}
