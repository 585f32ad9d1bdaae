package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// jsonLines scans a value a line. A line that is none is scanned as text, and said.
func (s *scanner) jsonLines(data []byte) {
	line := 0
	for l := range bytes.Lines(data) {
		if line++; s.ctx.Err() != nil {
			return
		}
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		at := line
		if err := s.values(l, func(int64) int { return at }); err != nil {
			s.fail("line " + strconv.Itoa(line) + " cannot be read as JSON and was scanned as plain text: " + err.Error())
			entry(s, l, "", "", func(int) int { return at }, nil)
		}
	}
}

// json scans every string of a file, names included.
func (s *scanner) json(data []byte) {
	line, counted := 1, int64(0)
	err := s.values(data, func(offset int64) int {
		line += bytes.Count(data[counted:offset], []byte{'\n'})
		counted = offset
		return line
	})
	if err != nil && s.ctx.Err() == nil {
		s.fail("it cannot be read as JSON and was scanned as plain text: " + err.Error())
		s.text(data)
	}
}

// What a decoder keeps in memory is bounded: how deep it stands, and a text or number.
const (
	maxDepth   = 200_000
	maxLiteral = 16 << 20
	maxName    = 64 // of a name in a place
)

// unbounded says where JSON goes beyond the bounds, and how; "" where it does not. It
// need not be JSON.
func unbounded(data []byte) (at int64, why string) {
	depth, begin, inText := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case i-begin > maxLiteral:
			return int64(begin), fmt.Sprintf("a text or a number is longer than %d bytes", maxLiteral)
		case inText && b == '\\':
			i++
		case b == '"':
			inText, begin = !inText, i
		case inText:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return int64(i), fmt.Sprintf("it is nested deeper than %d levels", maxDepth)
			}
			begin = i
		case b == '}' || b == ']':
			depth--
			begin = i
		case b <= ' ' || b == ',' || b == ':':
			begin = i
		}
	}
	return 0, ""
}

// step is where a decoder stands: in an object or an array, and at which member.
type step struct {
	object bool
	name   string
	n      int
	value  bool // in an object: the next token is a value
}

// values scans the strings of one JSON value after another. It keeps no tree, so
// that depth costs little.
func (s *scanner) values(data []byte, line func(offset int64) int) error {
	if at, why := unbounded(data); why != "" {
		return errors.New("line " + strconv.Itoa(line(at)) + ": " + why)
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	d.UseNumber()
	var path []step
	for s.ctx.Err() == nil {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(path) == 0 {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if c, ok := t.(json.Delim); ok {
			if c == '{' || c == '[' {
				path = append(path, step{object: c == '{'})
				continue
			}
			path = path[:len(path)-1] // the decoder has checked that they match
			advance(path)
			continue
		}
		text, isText := t.(string)
		at := func(int) int { return line(d.InputOffset()) }
		if n := len(path); n > 0 && path[n-1].object && !path[n-1].value {
			path[n-1].name, path[n-1].value = strings.Clone(text[:min(len(text), maxName)]), true
			entry(s, "", text, pointer(path), at, nil)
			continue
		}
		if isText {
			entry(s, text, "", pointer(path), at, nil)
		}
		advance(path)
	}
	return s.ctx.Err()
}

func advance(path []step) {
	if n := len(path); n > 0 {
		path[n-1].n++
		path[n-1].value = false
	}
}

// pointer is the path as a JSON pointer (RFC 6901), cut in the middle where it is
// deep.
func pointer(path []step) string {
	const most = 8
	var b strings.Builder
	for i := range path {
		if len(path) > 2*most && i == most {
			b.WriteString("/…")
		}
		if len(path) > 2*most && i >= most && i < len(path)-most {
			continue
		}
		b.WriteByte('/')
		if path[i].object {
			b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(path[i].name, "")))
		} else {
			b.WriteString(strconv.Itoa(path[i].n))
		}
	}
	return b.String()
}
