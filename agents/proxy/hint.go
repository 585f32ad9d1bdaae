package proxy

import (
	"fmt"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// contentBytes is from how many bytes on a tool's result is taken for content rather than
// for an answer such as "done".
const contentBytes = 40

// hint says once that the reference model takes nothing from what a harness shows it as
// content: the tool is none that it knows to read, or the result has no heading.
func (s *Server) hint(messages []model.Message) {
	if s.opts.Hint == nil {
		return
	}
	name := ""
	for i := range messages {
		m := &messages[i]
		if m.Role != model.ToolRole || len(m.Content) < contentBytes {
			continue
		}
		t := world.Find(m.Name)
		if t != nil && reference.Labelled(m.Content) {
			return
		}
		if t == nil || t.Medium != "" {
			name = m.Name
		}
	}
	if name == "" {
		return
	}
	s.hinted.Do(func() {
		var known []string
		for _, t := range world.Tools() {
			if t.Medium != "" {
				known = append(known, fmt.Sprintf("%s (%s: …)", t.Name, t.Heading[0]))
			}
		}
		s.opts.Hint(fmt.Sprintf("of what the tool %q returned the reference model stores nothing: content is what one of these "+
			"tools returns, under its heading and an empty line: %s", text.Clip(name, 60), strings.Join(known, ", ")))
	})
}
