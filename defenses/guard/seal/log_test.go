package seal_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/defenses/guard/seal"
)

func entry(i int64) *seal.Entry {
	return &seal.Entry{Number: i, ID: fmt.Sprintf("s%d", i), Name: "before the batch", Reason: "session start",
		Time:     time.Date(2026, 3, 1, 9, int(i%60), 0, 0, time.UTC),
		Sequence: uint64(10 * i), History: seal.Chain(seal.Hash{}, fmt.Append(nil, i)), Size: uint64(i),
		Root: value(fmt.Sprint(i))}
}

func fill(t testing.TB, n int64) *seal.Log {
	t.Helper()
	l := seal.NewLog(0, &seal.MemoryHashes{})
	for i := range n {
		if err := l.Append(entry(i)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func checkpoint(t testing.TB, l *seal.Log, n int64) seal.Checkpoint {
	t.Helper()
	root, err := l.Root(n)
	if err != nil {
		t.Fatal(err)
	}
	return seal.Checkpoint{Origin: "memory of ada", Size: n, Root: root}
}

func TestALogProvesEachSnapshotAndEachPrefix(t *testing.T) {
	for n := range int64(20) {
		l := fill(t, n)
		now := checkpoint(t, l, n)
		for i := range n {
			proof, err := l.ProveEntry(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := seal.CheckEntry(entry(i), proof, n, now.Root); err != nil {
				t.Error(err)
			}
			bad := map[string]func() error{
				"changed": func() error { e := entry(i); e.Root[0] ^= 1; return seal.CheckEntry(e, proof, n, now.Root) },
				"renamed": func() error { e := entry(i); e.Name = "x"; return seal.CheckEntry(e, proof, n, now.Root) },
				"moved":   func() error { e := entry(i); e.Number++; return seal.CheckEntry(e, proof, n, now.Root) },
				"longer": func() error {
					return seal.CheckEntry(entry(i), append(slices.Clone(proof), seal.Hash{}), n, now.Root)
				},
				"another size": func() error { return seal.CheckEntry(entry(i), proof, n+16, now.Root) },
				"too small":    func() error { return seal.CheckEntry(entry(i), proof, i, now.Root) },
			}
			if len(proof) > 0 {
				bad["shorter"] = func() error { return seal.CheckEntry(entry(i), proof[1:], n, now.Root) }
			}
			for name, check := range bad {
				if err := check(); !errors.Is(err, seal.ErrProof) {
					t.Errorf("snapshot %d of %d, %s: %v", i, n, name, err)
				}
			}
		}
		for m := range n + 1 {
			proof, err := l.ProveConsistency(m)
			if err != nil {
				t.Fatal(err)
			}
			old := checkpoint(t, l, m)
			if err := seal.CheckConsistency(proof, old, now); err != nil {
				t.Errorf("%d in %d: %v", m, n, err)
			}
			if err := seal.CheckConsistency(append(slices.Clone(proof), seal.Hash{1}), old, now); !errors.Is(err,
				seal.ErrProof) {
				t.Errorf("%d in %d, a hash more: %v", m, n, err)
			}
			if m > 0 {
				old.Root[5] ^= 1
				if err := seal.CheckConsistency(proof, old, now); !errors.Is(err, seal.ErrProof) {
					t.Errorf("%d in %d, another past: %v", m, n, err)
				}
			}
		}
	}
}

func TestALogThatWasCutOrRewrittenIsNotConsistent(t *testing.T) {
	kept := checkpoint(t, fill(t, 9), 9)
	cut := fill(t, 7)
	if err := seal.CheckConsistency(nil, kept, checkpoint(t, cut, 7)); !errors.Is(err, seal.ErrProof) ||
		!strings.Contains(err.Error(), "cut") {
		t.Error(err)
	}
	// One snapshot deleted, others added: as long as before, and not the same.
	rewritten := seal.NewLog(0, &seal.MemoryHashes{})
	for i := range int64(12) {
		e := entry(i)
		if i >= 4 {
			e = entry(i + 1)
			e.Number = i
		}
		if err := rewritten.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	proof, err := rewritten.ProveConsistency(9)
	if err != nil {
		t.Fatal(err)
	}
	if err := seal.CheckConsistency(proof, kept, checkpoint(t, rewritten, 12)); !errors.Is(err, seal.ErrProof) {
		t.Error(err)
	}
	other := kept
	other.Origin = "memory of bob"
	if err := seal.CheckConsistency(nil, kept, other); !errors.Is(err, seal.ErrProof) {
		t.Error(err)
	}
}

func TestALogTakesOnlyTheNextSnapshot(t *testing.T) {
	l := fill(t, 3)
	for _, i := range []int64{2, 4, -1} {
		if err := l.Append(entry(i)); err == nil {
			t.Errorf("number %d behind three was taken", i)
		}
	}
	for _, n := range []int64{-1, 4} {
		if _, err := l.Root(n); err == nil {
			t.Error(n)
		}
		if _, err := l.ProveEntry(n); err == nil {
			t.Error(n)
		}
		if _, err := l.ProveConsistency(n); err == nil {
			t.Error(n)
		}
	}
}

func TestAnEntryHasOneForm(t *testing.T) {
	e := entry(3)
	e.Time = e.Time.In(time.FixedZone("east", 3600)) // the same instant
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := entry(3).Encode(); string(want) != string(data) {
		t.Errorf("%s, in UTC %s", data, want)
	}
	got, err := seal.ParseEntry(data)
	if err != nil || !got.Time.Equal(e.Time) || got.Root != e.Root {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{strings.Replace(string(data), "Z", "+00:00", 1),
		strings.Replace(string(data), "T09", "T10", 1) + "x",
		strings.Replace(string(data), "Z", "+01:00", 1), strings.Replace(string(data), `"number":3`, `"number":-3`, 1)} {
		if got, err := seal.ParseEntry([]byte(bad)); err == nil {
			t.Errorf("%s: read as %+v", bad, got)
		}
	}
	e.Name = "\xff"
	if _, err := e.Encode(); err == nil {
		t.Error("a name that is no text was written")
	}
}

func TestAChainHangsOnEveryEntryAndTheirOrder(t *testing.T) {
	seen := map[seal.Hash]string{}
	for _, journal := range []string{"", "a", "b", "a b", "b a", "ab", "a b c"} {
		var h seal.Hash
		for _, e := range strings.Fields(journal) {
			h = seal.Chain(h, []byte(e))
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", journal, other)
		}
		seen[h] = journal
	}
}

func keys(t testing.TB, name string) (note.Signer, note.Verifier) {
	t.Helper()
	s, v, err := seal.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, verifier, err := seal.ParseSigner(s)
	if err != nil {
		t.Fatal(err)
	}
	if public, err := note.NewVerifier(v); err != nil || public.KeyHash() != verifier.KeyHash() {
		t.Fatalf("%v: the verifier's key is not the one that was generated", err)
	}
	return signer, verifier
}

func TestACheckpointNeedsItsSignature(t *testing.T) {
	signer, verifier := keys(t, "memtox.test/ada")
	other, _ := keys(t, "memtox.test/ada")
	c := checkpoint(t, fill(t, 5), 5)
	signed, err := c.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := seal.OpenCheckpoint(signed, verifier); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	text, signature, _ := strings.Cut(string(signed), "\n\n")
	byOther, err := c.Sign(other)
	if err != nil {
		t.Fatal(err)
	}
	_, otherSignature, _ := strings.Cut(string(byOther), "\n\n")
	for name, bad := range map[string]string{
		"stripped signature":         text + "\n",
		"stripped to the blank line": text + "\n\n",
		"another key's":              string(byOther),
		"a second signature":         string(signed) + otherSignature,
		"another size":               strings.Replace(string(signed), "\n5\n", "\n6\n", 1),
		"another origin":             "x" + string(signed),
		"a line more":                text + "\nx\n\n" + signature,
		"nothing":                    "",
	} {
		if c, err := seal.OpenCheckpoint([]byte(bad), verifier); !errors.Is(err, seal.ErrSignature) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	// A signature has 68 bytes, so its base64 ends in "=" and two bits before
	// that are spare.
	body := strings.TrimSuffix(string(signed), "=\n")
	spare := body[:len(body)-1] + string(rune(body[len(body)-1]+1)) + "=\n"
	if c, err := seal.OpenCheckpoint([]byte(spare), verifier); err == nil {
		t.Errorf("read with other spare bits: %+v", c)
	}
	// What the right key signed, and is no checkpoint.
	for _, body := range []string{"o\n5\n", "o\n05\n" + strings.Repeat("A", 43) + "=\n",
		"o\n-1\n" + strings.Repeat("A", 43) + "=\n", "o\n5\nAAAA\n", "\n5\n" + strings.Repeat("A", 43) + "=\n", "o\nx\ny\n",
		"o\n5\n" + strings.Repeat("A", 43) + "=\nmore\n"} {
		signed, err := note.Sign(&note.Note{Text: body}, signer)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := seal.OpenCheckpoint(signed, verifier); err == nil {
			t.Errorf("%q was read as %+v", body, c)
		}
	}
	for _, bad := range []seal.Checkpoint{{Origin: "", Size: 1}, {Origin: "a\nb"}, {Origin: "a", Size: -1}} {
		if _, err := bad.Sign(signer); err == nil {
			t.Errorf("%+v was signed", bad)
		}
	}
}

func FuzzOpenCheckpoint(f *testing.F) {
	signer, verifier := keys(f, "memtox.test/ada")
	c := seal.Checkpoint{Origin: "o", Size: 5}
	signed, err := c.Sign(signer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add([]byte("o\n5\nAAAA\n\n— memtox.test/ada AAAA\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Only the key's owner can make it open.
		if got, err := seal.OpenCheckpoint(data, verifier); err == nil && (got != c || string(data) != string(signed)) {
			t.Fatalf("%q opened as %+v", data, got)
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	for i := range int64(3) {
		data, err := entry(i).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := seal.ParseEntry(data)
		if err != nil {
			return
		}
		if again, err := e.Encode(); err != nil || string(again) != string(data) {
			t.Fatalf("read %q, writes %q: %v", data, again, err)
		}
	})
}
