package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A password in an address must not reach run.json, the queue, a log or a message.
func TestAnAddressWithAKeyIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	const secret, run = "hunter2secret", "run --defense none --limit 1 --out r"
	for _, address := range []string{"nats://joe:" + secret + "@127.0.0.1:1",
		"nats://" + secret + "@127.0.0.1:1", secret + "@127.0.0.1:1",
		"tls://127.0.0.1:1,nats://" + secret + "@127.0.0.1:2",
		"nats://127.0.0.1:1?token=" + secret, "nats://joe:" + secret + "%zz@127.0.0.1:1"} {
		for _, command := range []string{run, "worker --wait 1ms", "queue status", "queue drain --format json", "plan"} {
			refused(t, secret, "MEMTOX_QUEUE_TOKEN", "queue", address, command)
		}
	}
	refused(t, secret, "queue_token_file", "listen", secret+"@127.0.0.1:0", run)
	for _, key := range []string{"base_url", "judge_base_url", "defense_base_url"} {
		for _, address := range []string{"http://joe:" + secret + "@127.0.0.1:1/v1", "https://" + secret + "@127.0.0.1:1",
			"http://127.0.0.1:1/v1?key=" + secret,
			"joe:" + secret + "@127.0.0.1:1", "http://joe:" + secret + "/x@127.0.0.1:1"} {
			for _, command := range []string{run, run + " --model openai:x", "plan", "doctor --model openai:x"} {
				refused(t, secret, "key_file", key, address, command)
			}
		}
	}
	for _, key := range []string{"agent", "defense"} {
		for _, address := range []string{"http://joe:" + secret + "@127.0.0.1:1/x", "far=https://" + secret + "@127.0.0.1:1",
			"http:http://127.0.0.1:1/x?key=" + secret,
			"b d=http://" + secret + "@127.0.0.1:1"} {
			refused(t, secret, "MEMTOX_GUARD_TOKEN", key, address, "run --limit 1 --out r")
		}
	}
	// A guard that a chain names.
	c := newConsole(t)
	c.write("chain.yaml", "version: 1\nchain:\n  - keyword\n  - http://joe:"+secret+"@127.0.0.1:1/x\n")
	code := c.run("run", "--defense", "chain:chain.yaml", "--limit", "1", "--out", "r")
	if code != Usage || strings.Contains(c.out.String()+c.err.String(), secret) {
		t.Errorf("a chain: exit code %d: %s%s", code, c.out.String(), c.err.String())
	}
}

// refused gives a command a setting in each way that there is.
func refused(t *testing.T, secret, remedy, key, address, command string) {
	t.Helper()
	for _, how := range []string{"flag", "--set", "file", "file twice"} {
		c := newConsole(t)
		args := strings.Fields(command)
		quoted := "'" + address + "'"
		switch how {
		case "flag":
			if !slices.Contains([]string{"queue", "listen", "base_url", "agent", "defense"}, key) {
				continue
			}
			args = append(args, "--"+strings.ReplaceAll(key, "_", "-")+"="+address)
		case "--set":
			args = append(args, "--set", key+"="+address)
		case "file":
			c.write("x.yaml", key+": "+quoted+"\n")
			args = append(args, "-f", "x.yaml")
		case "file twice":
			c.write("x.yaml", key+": ["+quoted+", "+quoted+"]\n")
			args = append(args, "-f", "x.yaml")
		}
		code := c.run(args...)
		if all := c.out.String() + c.err.String(); code != Usage || strings.Contains(all, secret) ||
			!strings.Contains(all, remedy) && !strings.Contains(all, "unknown flag") &&
				!strings.Contains(all, "a list stands where") {
			t.Errorf("%s: %s by %s: exit code %d: %s", command, key, how, code, all)
		}
		err := filepath.WalkDir(c.dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "x.yaml" {
				return err
			}
			b, err := os.ReadFile(p)
			if strings.Contains(string(b), secret) {
				t.Errorf("%s: %s by %s: %s holds the secret", command, key, how, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
