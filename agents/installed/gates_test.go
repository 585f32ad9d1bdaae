package installed

import "testing"

// A path stands for a memory file however a model writes it.
func TestMemoryFiles(t *testing.T) {
	for product, paths := range map[string]map[string]string{
		"hermes": {"/box/1/home/.hermes/memories/MEMORY.md": "memory", ".hermes/memories/USER.md": "user",
			"/box/1/desk/a/b/AGENTS.md": "memory", "AGENTS.md": "memory", "/home/.hermes/skills/x/SKILL.md": "memory",
			"notes.md": "", "MEMORY.md.txt": "", "": ""},
		"openclaw": {"MEMORY.md": "memory", "./memory.md": "memory", "/box/1/desk/USER.md": "user", `C:\work\MEMORY.md`: "memory",
			"memory/2026-03-02.md": "notes", "memory/a/b.md": "notes", "SOUL.md": "memory", "report.md": ""},
	} {
		of := Find(product).memoryFile()
		for path, want := range paths {
			if got := of(path); got != want {
				t.Errorf("%s: %q is of the store %q, want %q", product, path, got, want)
			}
		}
	}
}
