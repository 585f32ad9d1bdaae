package remote

import (
	"errors"
	"fmt"
	"strings"
)

// Words splits a command into words as a shell does, and does nothing else that
// a shell does: single quotes keep everything, double quotes keep all but a
// backslash before " or \, a backslash keeps the next character. Variables,
// wildcards, pipes and redirections mean nothing: who wants them writes
// sh -c '…'.
func Words(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false // within a word, which may be empty: ''
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == 0:
			return nil, errors.New("the command holds a NUL character")
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		case c == '\'':
			end := strings.IndexByte(command[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("the single quote at character %d is not closed", i+1)
			}
			word.WriteString(command[i+1 : i+1+end])
			i, in = i+1+end, true
		case c == '"':
			start := i
			for i++; ; i++ {
				if i >= len(command) {
					return nil, fmt.Errorf("the double quote at character %d is not closed", start+1)
				}
				if command[i] == '"' {
					break
				}
				if command[i] == '\\' && i+1 < len(command) && (command[i+1] == '"' || command[i+1] == '\\') {
					i++
				}
				word.WriteByte(command[i])
			}
			in = true
		case c == '\\':
			if i+1 == len(command) {
				return nil, errors.New("the command ends in a backslash")
			}
			i++
			word.WriteByte(command[i])
			in = true
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("it names no program: write exec:PROGRAM ARGUMENT …")
	}
	return words, nil
}
