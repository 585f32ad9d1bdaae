//go:build unix

package pending_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
)

const childStore = "MEMTOX_TEST_KILLED_LIST"

func TestMain(m *testing.M) {
	if path := os.Getenv(childStore); path != "" {
		fmt.Fprintln(os.Stderr, askForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func keysOf(path string) (*signed.Keyring, error) {
	secret, err := os.ReadFile(path + ".key")
	if err != nil {
		return nil, err
	}
	return signed.NewKeyring(signed.Key{ID: "k", Secret: secret})
}

// askForEver asks about one call after another, each until it passes, and says what it was
// told. Every other call somebody approves at once.
func askForEver(path string) error {
	keys, err := keysOf(path)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	l := pending.New(s, pending.Options{Keys: keys, Most: 1 << 20})
	for n := 0; ; n++ {
		c := transfer(fmt.Sprintf("%d-%d", os.Getpid(), n))
		a, err := l.Ask(ctx, c)
		if err != nil {
			return err
		}
		fmt.Println(a.State, a.ID, c.Args[1].Value)
		if n%2 == 0 {
			continue
		}
		if _, err := l.Approve(ctx, a.ID, dana); err != nil {
			return err
		}
		fmt.Println("approved", a.ID, c.Args[1].Value)
		if a, err = l.Ask(ctx, c); err != nil {
			return err
		}
		fmt.Println(a.State, a.ID, c.Args[1].Value)
	}
}

// A process that is killed at any moment loses nothing that it told of, and nothing that
// it said had passed passes again.
func TestKilledWhileItAsks(t *testing.T) {
	kills := 3
	if os.Getenv("MEMTOX_LONG") == "1" {
		kills = 60
	}
	path := filepath.Join(t.TempDir(), "held.db")
	if err := os.WriteFile(path+".key", []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{} // by account, what was said last
	ids := map[string]string{}
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childStore+"="+path)
		child.Stderr = os.Stderr
		pipe, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		least := 4 + rand.IntN(40)
		lines := bufio.NewScanner(pipe)
		for n := 0; lines.Scan(); n++ {
			f := strings.Fields(lines.Text())
			if len(f) != 3 {
				break // cut off
			}
			told[f[2]], ids[f[2]] = f[0], f[1]
			if n == least {
				time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { child.Process.Kill() })
			}
		}
		child.Wait()
	}
	keys, err := keysOf(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := pending.New(s, pending.Options{Keys: keys, Most: 1 << 20})
	counts := map[string]int{}
	for account, said := range told {
		a, err := l.Ask(ctx, transfer(account))
		if err != nil {
			t.Fatal(err)
		}
		same := a.ID == ids[account]
		counts[said]++
		switch {
		case said == "waits" && (same && (a.State == pending.Waits || a.State == pending.Passes)):
		case said == "approved" && (a.State == pending.Passes && same || a.State == pending.Waits && !same):
			// It passed and was killed before it said so, or it passes now.
		case said == "passes" && a.State == pending.Waits && !same:
		default:
			t.Errorf("%s: it said %s as %s, now %s as %s", account, said, ids[account], a.State, a.ID)
		}
	}
	if counts["waits"] == 0 || counts["passes"] == 0 {
		t.Errorf("too little happened: %v", counts)
	}
}
