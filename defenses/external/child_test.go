package external_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/keyword"
)

// The test binary is the external guard: `BINARY guard MODE …`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "guard" {
		child(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

// command is the spec of a guard that this binary plays.
func command(t testing.TB, mode string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "'" + self + "' guard " + mode + " " + strings.Join(args, " ")
}

func child(mode string, args []string) {
	switch mode {
	case "serve": // a defense of ours behind the protocol
		var d defenses.Defense = keyword.New(keyword.Strict)
		if args[0] == "guard" {
			var err error
			if d, err = guard.New(guard.Options{}); err != nil {
				panic(err)
			}
		}
		s := &serve.Server{Identity: defenses.Identity{Name: args[0], Version: "1"}, Open: d.Open}
		if err := s.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "serve-slowly": // answers trials side by side, in any order
		var n atomic.Int64
		d := defenses.Func(func(ctx context.Context, v memory.View) (memory.Gate, error) { return slow{n: &n}, nil })
		s := &serve.Server{Identity: defenses.Identity{Name: "slow"}, Open: d.Open}
		if err := s.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
	case "env":
		fmt.Fprintf(os.Stderr, "handed %s\n", strings.Join(os.Environ(), " "))
		os.Exit(7)
	default:
		bad(mode)
	}
}

// slow blocks every write whose text is that of an odd number, after a time that
// makes the answers overtake each other.
type slow struct {
	memory.Open
	n *atomic.Int64
}

func (s slow) Write(_ context.Context, p memory.Proposal) (v memory.Verdict, err error) {
	time.Sleep(time.Duration(10-s.n.Add(1)%10) * time.Millisecond)
	if strings.HasSuffix(p.Record.Text, "odd") {
		v.Action = memory.Block
	}
	return v, nil
}

// bad plays a guard that answers hello and then breaks in its own way. All that
// it says of a write is block, so that anything that is scored shows.
func bad(mode string) {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	say := func(format string, args ...any) {
		fmt.Fprintf(out, format+"\n", args...)
		out.Flush()
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q struct {
			ID uint64
			Op string
		}
		if err := json.Unmarshal(line, &q); err != nil {
			os.Exit(9)
		}
		if q.Op == "hello" {
			switch mode {
			case "deaf":
				time.Sleep(time.Hour)
			case "nameless":
				say(`{"id":%d}`, q.ID)
				continue
			}
			say(`{"id":%d,"name":"bad","version":"1","ops":["write"],"extra":{"ignored":[1,2]}}`, q.ID)
			continue
		}
		block := fmt.Sprintf(`{"id":%d,"action":"block"}`, q.ID)
		switch mode {
		case "sleep":
			time.Sleep(time.Hour)
		case "die":
			fmt.Fprintln(os.Stderr, "Traceback: the model file is missing")
			os.Exit(3)
		case "die-after": // it answers, then it ends
			say("%s", block)
			os.Exit(0)
		case "flood": // answers to everybody, for ever
			for i := uint64(1); ; i++ {
				fmt.Fprintf(out, "{\"id\":%d,\"action\":\"block\"}\n", q.ID+i)
			}
		case "early": // the answer to a question that will come
			say(`{"id":%d,"action":"block"}`, q.ID+1)
		case "twice":
			say("%s", block)
			time.Sleep(2 * time.Millisecond)
			say("%s", block)
		case "long":
			junk := bytes.Repeat([]byte("x"), 1<<20)
			for range 100 {
				if _, err := os.Stdout.Write(junk); err != nil {
					os.Exit(0)
				}
			}
			time.Sleep(time.Hour)
		case "garbage":
			say("BLOCK")
		case "no-action":
			say(`{"id":%d}`, q.ID)
		case "twice-said":
			say(`{"id":%d,"action":"allow","action":"block"}`, q.ID)
		case "other-case":
			say(`{"id":%d,"action":"allow","ACTION":"block"}`, q.ID)
		case "strange-action":
			say(`{"id":%d,"action":"BLOCKED!"}`, q.ID)
		case "redact-nothing":
			say(`{"id":%d,"action":"redact"}`, q.ID)
		case "error":
			say(`{"id":%d,"error":"out of memory \u001b[31m","action":"block"}`, q.ID)
		case "closes-stdout":
			os.Stdout.Close()
			time.Sleep(time.Hour)
		case "half":
			fmt.Fprintf(out, `{"id":%d,"action":"bl`, q.ID)
			out.Flush()
			os.Exit(0)
		}
	}
}
