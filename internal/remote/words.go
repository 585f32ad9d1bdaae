package remote

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kballard/go-shellquote"
)

// Words splits a command into words as a shell does, and does nothing else that
// a shell does. Variables, wildcards, pipes and redirections mean nothing: who wants
// them writes sh -c '…'.
func Words(command string) ([]string, error) {
	if strings.ContainsRune(command, 0) {
		return nil, errors.New("the command holds a NUL character")
	}
	words, err := shellquote.Split(command)
	if err != nil {
		return nil, fmt.Errorf("the command cannot be split into words: %w", err)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("it names no program: write exec:PROGRAM ARGUMENT …")
	}
	return words, nil
}
