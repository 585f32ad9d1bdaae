package agents

import (
	"bytes"
	_ "embed"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/settings"
)

//go:embed prompts.yaml
var promptsYAML []byte

// prompts are those that all profiles share; [Profile] has its own.
var prompts = sync.OnceValue(func() (p struct {
	Policies         map[string]string // retention policies, by name
	Compact, Summary string
}) {
	if err := settings.Decode("agents/prompts.yaml", promptsYAML, &p); err != nil {
		panic(err) // it is part of the program
	}
	return p
})

// wrap writes content from outside in the profile's untrusted delimiters. The
// content cannot close them: its own delimiters are broken up.
func wrap(b *bytes.Buffer, source, content string) {
	b.WriteString("<untrusted source=\"" + unquoted.Replace(source) + "\">\n")
	if strings.Contains(content, "untrusted") {
		content = unwrapped.Replace(content)
	}
	b.WriteString(content)
	b.WriteString("\n</untrusted>")
}

var (
	unwrapped = strings.NewReplacer("<untrusted", "< untrusted", "</untrusted", "</ untrusted")
	unquoted  = strings.NewReplacer(`"`, "'", "\n", " ", "<", " ", ">", " ")
)
