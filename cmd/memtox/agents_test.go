package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestAProductThatIsNotThere(t *testing.T) {
	c := newConsole(t)
	home := t.TempDir()
	c.getenv = func(name string) string { return map[string]string{"HOME": home, "PATH": home}[name] }
	if code := c.run("agents", "doctor", "hermes"); code != BadNews || !strings.Contains(c.out.String(),
		"memtox agents install hermes runs python3 -m venv "+home) {
		t.Errorf("doctor: exit code %d: %s", code, c.out.String())
	}
	if code := c.run("agents", "doctor", "hermse"); code != Usage ||
		!strings.Contains(c.err.String(), `did you mean "hermes"?`) {
		t.Errorf("doctor of a mistyped name: exit code %d: %s", code, c.err.String())
	}
	if runtime.GOOS == "windows" {
		t.Skip("paths look otherwise there")
	}
	at := filepath.Join(c.dir, "here")
	want := "python3 -m venv " + at + "/venv\n" +
		at + "/venv/bin/python -m pip install 'hermes-agent[mcp,acp,homeassistant]==0.19.0'\n"
	if out := c.must("agents", "install", "hermes", "--show", "--dir", "here"); out != want {
		t.Errorf("install shows\n%s, not\n%s", out, want)
	}
	if out := c.must("agents", "install", "hermes", "--show"); !strings.Contains(out, home+"/") {
		t.Errorf("without a folder it installs to\n%s", out)
	}
}

func TestAgreementOfTwoAgents(t *testing.T) {
	c := newConsole(t)
	c.must("run", "--agent", "hermes,rag,mem0", "--defense", "none,provenance", "--model", "reference:naive",
		"--limit", "60", "--out", "r")
	c.must("run", "--dataset", "memtox-smoke", "--agent", "rag", "--defense", "none", "--model", "reference:naive", "--out", "other")
	for _, k := range []struct {
		args string
		code Code
		says string
	}{
		{"r hermes rag --least 0.01", Done, "A is hermes, B is rag"},
		{"r hermes mem0 --least 1", BadNews, "below: agreement of"},
		{"r hermes rag --format json", Done, `"differ": [`},
		{"r hermes rag --beside r --least 0.01", Done, "A is hermes, B is rag"},
		{"r hermes rag --beside other", Usage, "other cases"},
		{"r hermse rag", Usage, `did you mean "hermes"?`},
		{"r hermes rag --least 2", Usage, "--least"},
		{"r hermes", Usage, "a run directory and two of its agents"},
		{"r hermes rag rag", Usage, "three arguments"},
	} {
		code := c.run(append([]string{"agents", "agree"}, strings.Fields(k.args)...)...)
		if code != k.code || !strings.Contains(c.out.String()+c.err.String(), k.says) {
			t.Errorf("agents agree %s: exit code %d, not %d: %s%s", k.args, code, k.code, c.out.String(), c.err.String())
		}
	}
}
