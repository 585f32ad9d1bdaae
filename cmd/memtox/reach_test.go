package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/memtox/memtox/harness/queue"
	"github.com/memtox/memtox/results"
)

// trap is what a stranger would have memtox do: whatever is started makes a file, and
// whatever is asked is counted, a mere connection too.
type trap struct {
	*console
	url, address, marker string
	connections          atomic.Int64
}

func newTrap(t *testing.T) *trap {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are a Unix's")
	}
	p := &trap{console: newConsole(t)}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.connections.Add(1)
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	p.url, p.address, p.marker = s.URL, strings.TrimPrefix(s.URL, "http://"), filepath.Join(p.dir, "marker")
	p.getenv = func(name string) string { return map[string]string{"OPENAI_API_KEY": "key-of-the-victim"}[name] }
	p.write("evil.yaml", "chain:\n  - exec:touch "+p.marker+"\n")
	p.write("victims.key", "another-key\n")
	return p
}

// sprung says what was done since it was asked last.
func (p *trap) sprung() string {
	var did []string
	if os.Remove(p.marker) == nil {
		did = append(did, "a program was started")
	}
	if n := p.connections.Swap(0); n > 0 {
		did = append(did, fmt.Sprintf("%d connections were made", n))
	}
	if os.Remove(filepath.Join(p.dir, "written")) == nil {
		did = append(did, "a file was written")
	}
	return strings.Join(did, ", ")
}

// attacks are settings with which a run, or what is announced as one, reaches out.
// acts says whether they do where the command line names the same; the others are
// refused for being named at all.
func (p *trap) attacks() map[string]attackBySettings {
	program, model, key := "exec:touch "+p.marker, p.url+"/v1", "victims.key"
	return map[string]attackBySettings{
		"exec guard":            {map[string]any{"defense": []string{"none", "x=" + program}}, true},
		"exec guard at a place": {map[string]any{"defense": []string{"x=" + program + "@write"}}, true},
		"exec guard in a chain": {map[string]any{"defense": []string{"chain:" + filepath.Join(p.dir, "evil.yaml")}}, true},
		"http guard":            {map[string]any{"defense": []string{"keyword", "x=" + p.url}}, true},
		"judge as a guard":      {map[string]any{"defense": []string{"judge:openai:m"}, "defense_base_url": model}, true},
		"swept program":         {map[string]any{"sweep": []string{program + ".z=1|2"}}, false},
		"exec agent":            {map[string]any{"agent": []string{"x=" + program}}, true},
		"http agent":            {map[string]any{"agent": []string{"hermes", p.url}}, true},
		"model":                 {map[string]any{"model": "openai:m", "base_url": model}, true},
		"model of ollama":       {map[string]any{"model": "ollama:m", "base_url": p.url}, true},
		"model with a key file": {map[string]any{"model": "openai:m", "base_url": model, "key_file": "victims.key"}, true},
		"judge": {map[string]any{"judge": "llm:openai:m", "judge_base_url": model,
			"judge_key_file": key}, true},
		"model that is recorded": {map[string]any{"model": "openai:m", "base_url": model, "record": "written"}, true},
		"record alone":           {map[string]any{"record": "written"}, false},
		"replay":                 {map[string]any{"replay": "victims.key"}, false},
		"key file alone":         {map[string]any{"key_file": "victims.key"}, false},
		"variables":              {map[string]any{"pass_env": []string{"OPENAI_API_KEY"}}, false},
		"file of another host":   {map[string]any{"dataset": `\\` + p.address + `\share\cases.jsonl`}, false},
		"policy of another host": {map[string]any{"defense": []string{"guard://" + p.address + "/share/policy.yaml"}}, false},
	}
}

type attackBySettings struct {
	settings map[string]any
	acts     bool
}

// forge makes the run directory that a stranger would, from a run that ended: the same
// with other settings; half of it, or all.
func (p *trap) forge(from, to string, settings map[string]any, whole bool) {
	p.t.Helper()
	r, err := results.OpenReader(filepath.Join(p.dir, from))
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	run := *r.Run()
	run.Settings = maps.Clone(run.Settings)
	maps.Copy(run.Settings, settings)
	j, err := results.Create(filepath.Join(p.dir, to), &run, results.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	if !whole {
		if err := j.Close(); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	for e, err := range r.Entries(results.Everything) {
		if err == nil {
			err = j.Append(&e.Trial, e.Decisions, nil)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	if _, err := j.Finish(func(*results.Entry) error { return nil }); err != nil {
		p.t.Fatal(err)
	}
}

// words are the flags that a refusal says to add, as a shell reads them.
func (p *trap) words() []string {
	_, hint, ok := strings.Cut(p.err.String(), "if you know it and want it, add ")
	if !ok {
		p.t.Fatalf("no remedy is given: %s", p.err.String())
	}
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+strings.TrimSuffix(strings.TrimSpace(hint), ")")).Output()
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// refused runs a command that must do nothing and say which settings it was told of.
func (p *trap) refused(a attackBySettings, args ...string) {
	p.t.Helper()
	code := p.run(args...)
	if did := p.sprung(); code != Usage || did != "" {
		p.t.Errorf("memtox %q: exit code %d; %s\n%s", args, code, did, p.err.String())
	}
	for key := range a.settings {
		if !strings.Contains(p.err.String(), key+" is ") {
			p.t.Errorf("memtox %q: %s is not named: %s", args, key, p.err.String())
		}
	}
}

const smallRun = "--dataset memtox-smoke --limit 4 --agent hermes --defense none"

func TestARunDirectoryHasNothingStartedOrAsked(t *testing.T) {
	p := newTrap(t)
	p.must(append([]string{"run", "--out", "base"}, strings.Fields(smallRun)...)...)
	n, all := 0, map[string]any{}
	for name, a := range p.attacks() {
		t.Run(name, func(t *testing.T) {
			p.t = t
			whole, half := fmt.Sprintf("whole%d", n), fmt.Sprintf("half%d", n)
			n++
			maps.Copy(all, a.settings)
			p.forge("base", whole, a.settings, true)
			p.forge("base", half, a.settings, false)
			p.must("run", "--resume", "--out", whole) // it is printed
			if did := p.sprung(); did != "" {
				t.Errorf("printing it: %s", did)
			}
			p.refused(a, "run", "--resume", "--out", half)
			words := p.words()
			// Whoever names the same himself has it done.
			p.run(append([]string{"run", "--resume", "--out", half}, words...)...)
			if did := p.sprung(); a.acts != (did != "") || strings.Contains(p.err.String(), "only where its own command line") {
				t.Errorf("with %q: done: %q; %s", words, did, p.err.String())
			}
		})
	}
	p.t = t
	// Whatever else takes a run directory.
	judge := httptest.NewServer(http.NotFoundHandler()) // the user's own
	defer judge.Close()
	all["model"], all["base_url"] = "openai:m", p.url+"/v1"
	delete(all, "dataset") // rejudge reads the cases
	p.forge("base", "whole", all, true)
	for _, args := range []string{"report whole --output page.html", "compare base whole",
		"gate whole --require none.end_to_end>=0.01",
		"export whole", "merge whole -o merged", "reproduce mpbench-table2 --run whole",
		"rejudge whole -o judged --judge llm:openai:m --base-url " + judge.URL + "/v1"} {
		// What is put together or judged anew is held against its plan first.
		held := strings.HasPrefix(args, "merge") || strings.HasPrefix(args, "rejudge")
		if code := p.run(strings.Fields(args)...); code == Failed || code == Usage && !held {
			t.Errorf("%s: exit code %d: %s", args, code, p.err.String())
		}
		if did := p.sprung(); did != "" {
			t.Errorf("%s: %s", args, did)
		}
	}
	// The judge is not where the run had its model, unless one says so.
	p.refused(attackBySettings{}, "rejudge", "whole", "--judge", "llm:openai:m", "-o", "other")
	p.forge("base", "half", all, false)
	p.refused(attackBySettings{}, "detect", "--out", "half")
	p.refused(attackBySettings{}, "rejudge", "half", "--judge", "llm:openai:m", "-o", "other")
}

// What belongs to a process is not taken from a run, and it goes on without.
func TestARunGoesOnWithoutTheQueueOfAnotherProcess(t *testing.T) {
	p := newTrap(t)
	p.must(append([]string{"run", "--out", "base"}, strings.Fields(smallRun)...)...)
	p.forge("base", "half", map[string]any{"queue": "nats://" + p.address, "queue_token_file": "victims.key",
		"listen": p.address, "out": "elsewhere"}, false)
	p.must("run", "--resume", "--out", "half")
	if did := p.sprung(); did != "" || !absent(filepath.Join(p.dir, "elsewhere")) {
		t.Error(did)
	}
}

// No digest of ours is that of a device, and nobody waits for its end.
func TestWhatIsNoFileIsNotRead(t *testing.T) {
	p := newTrap(t)
	p.must(append([]string{"run", "--out", "base"}, strings.Fields(smallRun)...)...)
	if err := os.Symlink("/dev/zero", filepath.Join(p.dir, "zero.yaml")); err != nil {
		t.Fatal(err)
	}
	p.write("long.yaml", "")
	if err := os.Truncate(filepath.Join(p.dir, "long.yaml"), 1<<40); err != nil {
		t.Skip("no file with holes can be made here: ", err)
	}
	for i, c := range []struct {
		settings map[string]any
		want     string
	}{
		{map[string]any{"defense": []string{"guard:zero.yaml"}}, "no regular file"},
		{map[string]any{"dataset": "/dev/zero"}, "no regular file"},
		{map[string]any{"defense": []string{"guard:long.yaml"}}, "larger than"},
	} {
		half := fmt.Sprint("half", i)
		p.forge("base", half, c.settings, false)
		code := p.run("run", "--resume", "--out", half)
		if s := p.err.String(); code != Usage || !strings.Contains(s, c.want) {
			t.Errorf("%v: exit code %d: %s", c.settings, code, s)
		}
	}
}

func TestAnAttackDirectoryHasNothingStartedOrAsked(t *testing.T) {
	p := newTrap(t)
	small := strings.Fields("attack --dataset memtox-smoke --limit 1 --agent hermes --defense none --budget 1 --out")
	p.must(append(small, "base")...)
	journal, err := os.ReadFile(filepath.Join(p.dir, "base", "attack.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(journal), "\n")
	for name, a := range p.attacks() {
		var line struct {
			Settings map[string]any `json:"settings"`
		}
		if err := json.Unmarshal([]byte(first), &line); err != nil {
			t.Fatal(err)
		}
		maps.Copy(line.Settings["config"].(map[string]any), a.settings)
		b, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(b)) // as the writer of the directory can
		p.write("base/attack.jsonl", string(b[:len(b)-1])+`,"sha256":"`+sum+"\"}\n"+rest)
		code := p.run(append(small, "base", "--resume")...)
		// Settings that decide nothing differ without a word; then the next line tells.
		if did := p.sprung(); code != Usage && code != Failed || did != "" {
			t.Errorf("%s: exit code %d; %s\n%s", name, code, did, p.err.String())
		}
	}
}

// Nothing in the directory of an attack leads elsewhere: no file outside is written,
// and nobody waits for a pipe.
func TestAnAttackDirectoryLeadsNowhere(t *testing.T) {
	p := newTrap(t)
	small := strings.Fields("attack --dataset memtox-smoke --limit 12 --agent hermes --defense keyword --budget 20 --out")
	p.must(append(small, "base")...)
	journal, err := os.ReadFile(filepath.Join(p.dir, "base", "attack.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// Of an attack that is not finished: without the digests of what it ends in.
	journal = journal[:bytes.LastIndexByte(journal[:len(journal)-1], '\n')+1]
	winners, err := os.ReadDir(filepath.Join(p.dir, "base", "winners"))
	if err != nil || len(winners) == 0 {
		t.Fatal("the attack has no winners", err)
	}
	const precious = "no line of it ends"
	for name, c := range map[string]struct {
		at, to string // a link in the directory
		code   Code
	}{
		"journal":   {"attack.jsonl", "precious", Failed},
		"new":       {"attack.jsonl", "absent", Failed},
		"pipe":      {"attack.jsonl", "", Failed},
		"winners":   {"winners", "folder", Failed},
		"winner":    {"winners/" + winners[0].Name(), "precious", Failed},
		"result":    {"attack.json.tmp", "precious", Done},
		"result is": {"attack.json", "precious", Done},
	} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			p.write("precious", precious)
			dir, folder := filepath.Join(p.dir, "half"), filepath.Join(p.dir, "folder")
			at := filepath.Join(dir, filepath.FromSlash(c.at))
			if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(folder), os.MkdirAll(filepath.Dir(at), 0o777),
				os.Mkdir(folder, 0o777)); err != nil {
				t.Fatal(err)
			}
			p.write("half/attack.jsonl", string(journal))
			if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			err := os.Symlink(filepath.Join(p.dir, c.to), at)
			if c.to == "" {
				err = errors.Join(os.Remove(at), exec.Command("mkfifo", at).Run())
			}
			if err != nil {
				t.Fatal(err)
			}
			if code := p.run(append(small, "half", "--resume")...); code != c.code {
				t.Errorf("exit code %d: %s", code, p.err.String())
			}
			b, err := os.ReadFile(filepath.Join(p.dir, "precious"))
			if err != nil || string(b) != precious || !absent(filepath.Join(p.dir, "absent")) {
				t.Errorf("a file outside was written: %q, %v", b, err)
			}
			if in, err := os.ReadDir(folder); err != nil || len(in) > 0 {
				t.Errorf("a folder outside was written: %v, %v", in, err)
			}
		})
	}
}

// announce puts a run on a queue as its coordinator would.
func announce(t *testing.T, url, name string, run *results.Run, settings map[string]any) {
	t.Helper()
	r := *run
	r.Settings = maps.Clone(run.Settings)
	maps.Copy(r.Settings, settings)
	record, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	delete(r.Settings, "resolved")
	plain, err := json.Marshal(r.Settings)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "memtox-" + name})
	if err != nil {
		t.Fatal(err)
	}
	a := queue.Announcement{RunID: r.ID, Version: versionString(), Settings: plain, Record: record, Planned: r.Planned}
	b, err := json.Marshal(a)
	if err == nil {
		_, err = kv.Put(t.Context(), "run", b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnAnnouncementHasNothingStartedOrAsked(t *testing.T) {
	p := newTrap(t)
	p.must(append([]string{"run", "--out", "base"}, strings.Fields(smallRun)...)...)
	run, err := results.ReadRun(filepath.Join(p.dir, "base"))
	if err != nil {
		t.Fatal(err)
	}
	_, url := p.queueServer("127.0.0.1:0")
	n := 0
	for name, a := range p.attacks() {
		t.Run(name, func(t *testing.T) {
			p.t = t
			n++
			queue := fmt.Sprint("q", n)
			announce(t, url, queue, run, a.settings)
			worker := []string{"worker", "--queue", url, "--wait", "10s", "--set", "queue_name=" + queue}
			p.refused(a, worker...)
			words := p.words()
			// A file that says other things names nothing.
			p.write("other.yaml", "limit: 4\n")
			p.refused(a, append(worker, "-f", "other.yaml")...)
			// Whoever names the same himself has it done. What is announced has no
			// trials: the worker refuses for what became of the settings.
			if code := p.run(append(worker, words...)...); code == Done {
				t.Error("a worker takes part in what cannot be")
			}
			if did := p.sprung(); a.acts != (did != "") || strings.Contains(p.err.String(), "only where its own command line") {
				t.Errorf("with %q: done: %q; %s", words, did, p.err.String())
			}
		})
	}
}

// A server names others to its clients, and they are not asked: they would be sent
// the token.
func TestServersThatAServerNamesAreNotAsked(t *testing.T) {
	p := newTrap(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.11.0\",\"proto\":1,\"max_payload\":1048576,"+
				"\"headers\":true,\"jetstream\":true,\"connect_urls\":[%q]}\r\n", p.address)
			b := make([]byte, 4096)
			_, _ = conn.Read(b)
			fmt.Fprint(conn, "PONG\r\n")
			conn.Close() // the client looks for another
		}
	}()
	p.run("worker", "--queue", "nats://"+l.Addr().String(), "--wait", "2s")
	if did := p.sprung(); did != "" {
		t.Error(did)
	}
}

// A loopback server without a token of the user's has one of its own, which a local
// stranger cannot read, and which nothing prints.
func TestAServerOnLoopbackHasATokenOfItsOwn(t *testing.T) {
	t.Parallel() // it waits more than it works
	c := newConsole(t)
	want := spreadCases(c, 1)
	// What a directory of a stranger's may hold: his token, where ours will be.
	if err := os.MkdirAll(filepath.Join(c.dir, "spread", "queue.tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	c.write("spread/queue.tmp/token", "token-of-a-stranger\n")
	r, err := results.ReadRun(filepath.Join(c.dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	writeRunJSON(t, filepath.Join(c.dir, "spread"), r)
	run := c.spawn("run", "--resume", "--listen", "127.0.0.1:0", "--out", "spread")
	join := workersJoin(t, run)
	path := regexp.MustCompile(`queue_token_file=(.*)`).FindStringSubmatch(join[len(join)-1])[1]
	token, err := os.ReadFile(path)
	if err != nil || len(strings.TrimSpace(string(token))) < 26 || strings.Contains(string(token), "stranger") {
		t.Fatalf("the token is %q, %v", token, err)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if st, err := os.Lstat(p); runtime.GOOS != "windows" && (err != nil || st.Mode().Perm() != want) {
			t.Errorf("%s: mode %v, %v; want %v", p, st.Mode().Perm(), err, want)
		}
	}
	for name, o := range map[string]nats.Option{"nobody": nats.Name("x"),
		"the stranger": nats.Token("token-of-a-stranger"),
		"a guesser":    nats.Token("")} {
		if nc, err := nats.Connect(join[2], o); err == nil {
			nc.Close()
			t.Errorf("%s was let in", name)
		}
	}
	if code := c.run("worker", "--queue", join[2], "--wait", "1s"); code != Usage {
		t.Errorf("a worker without the token: exit code %d: %s", code, c.err.String())
	}
	worker := c.spawn(join...)
	run.ends(t)
	worker.ends(t)
	sameRows(t, want, filepath.Join(c.dir, "spread"))
	if text := run.text() + worker.text(); strings.Contains(text, strings.TrimSpace(string(token))) {
		t.Errorf("the token is printed:\n%s", text)
	}
	if !absent(path) {
		t.Error("the token outlives the run")
	}
}

// What is printed when a run stops is a command that goes on with it, flags and all.
func TestTheCommandThatIsPrintedGoesOn(t *testing.T) {
	p := newTrap(t)
	p.write("agent.sh", `while IFS= read -r l; do
  i=${l#*:}; i=${i%%,*}
  case $l in
  *'"op":"turn"'*) r='"answer":"Noted."' ;;
  *'"op":"dump"'*) r='"memories":[]' ;;
  *) r='"name":"a","version":"1","done":true' ;;
  esac
  echo "{\"id\":$i,$r}"
done
`)
	args := strings.Fields("run --dataset memtox-smoke --limit 12 --defense none --shard 1/2 --out part")
	args = append(args, "--set", "pass_env=OPENAI_API_KEY")
	p.must(append(args, "--agent", "x=exec:sh agent.sh 'an argument'")...)
	if code := p.run("merge", "part", "-o", "whole run"); code != Inconclusive {
		t.Fatalf("exit code %d: %s", code, p.err.String())
	}
	_, command, _ := strings.Cut(p.err.String(), "run them with: memtox ")
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+strings.TrimSpace(command)).Output()
	if err != nil {
		t.Fatal(err)
	}
	p.must(strings.Split(strings.TrimSpace(string(out)), "\n")...)
	if code := p.run("run", "--resume", "--out", "whole run"); code != Done {
		t.Errorf("printing it: exit code %d: %s", code, p.err.String())
	}
}

// What only reads runs cannot start a program, and knows neither agents, defenses nor
// models.
func TestPackagesThatReadRunsCannotReachOut(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../results/...").Output()
	if err != nil {
		t.Skip(err)
	}
	ours := regexp.MustCompile(`^github.com/memtox/memtox/(agents|defenses|harness|datasets)(/|$)`)
	for _, p := range strings.Fields(string(out)) {
		if p == "os/exec" || ours.MatchString(p) {
			t.Errorf("the packages under results import %s", p)
		}
	}
}

// writeRunJSON makes the directory of a run of which nothing else is there.
func writeRunJSON(t *testing.T, dir string, r *results.Run) {
	t.Helper()
	other := dir + ".new"
	j, err := results.Create(other, r, results.Options{})
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Rename(filepath.Join(other, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
