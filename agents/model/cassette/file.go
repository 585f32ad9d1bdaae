package cassette

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/memtox/memtox/internal/remote"
)

const (
	format  = 1        // of the file; another is refused
	maxLine = 64 << 20 // bytes of one exchange
	// window is how far back an exchange can be like an earlier one. The turns of
	// a conversation are, and some hundred conversations run at once.
	window = 8 << 20
)

// head is the first line of a file.
type head struct {
	Cassette int `json:"memtox_cassette"`
}

// exchange is one line.
type exchange struct {
	Trial string          `json:"trial,omitempty"`
	Hash  string          `json:"hash"`
	N     int             `json:"n"` // which time the trial made this request, from 1
	Op    string          `json:"op"`
	Body  json.RawMessage `json:"body,omitempty"` // canonical; a string where it is not JSON

	Status   int        `json:"status,omitempty"`
	Type     string     `json:"type,omitempty"`   // content type
	Answer   string     `json:"answer,omitempty"` // the whole body
	Binary   []byte     `json:"binary,omitempty"` // the body, where it is not UTF-8
	Chunks   [][2]int64 `json:"chunks,omitempty"` // of a stream: bytes, µs since it was asked
	Error    *failure   `json:"error,omitempty"`  // in the place of an answer
	Attempts int        `json:"attempts"`
	Took     int64      `json:"took_us"`
	Waited   int64      `json:"waited_us,omitempty"`
}

// failure is a request that got no answer in the end.
type failure struct {
	Kind   string `json:"kind"`
	Status int    `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// scan calls f for each line behind the first. torn says that the file ends
// within a line or a frame, as a killed process leaves it; all lines before were
// read.
func scan(path string, f func(line []byte) error) (torn bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if st, err := file.Stat(); err == nil && st.Size() == 0 {
		return true, nil
	}
	z, err := zstd.NewReader(bufio.NewReaderSize(file, 1<<20), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(2*window), zstd.WithDecoderMaxMemory(1<<40))
	if err != nil {
		return false, err
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(make([]byte, 1<<20), maxLine)
	lines.Split(remote.WholeLines(&torn))
	n := 0
	for ; lines.Scan(); n++ {
		if n > 0 {
			if err := f(lines.Bytes()); err != nil {
				return false, fmt.Errorf("line %d: %w", n+1, err)
			}
			continue
		}
		var h head
		if json.Unmarshal(lines.Bytes(), &h) != nil || h.Cassette == 0 {
			return false, errors.New("it is not a cassette")
		}
		if h.Cassette != format {
			return false, fmt.Errorf("it has format %d; this memtox reads format %d", h.Cassette, format)
		}
	}
	switch err := lines.Err(); {
	case err == nil:
		return torn, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return true, nil
	case errors.Is(err, bufio.ErrTooLong):
		return false, fmt.Errorf("line %d is longer than %d MB", n+1, maxLine>>20)
	case n == 0:
		return false, fmt.Errorf("it is not a cassette: %w", err)
	default:
		return false, fmt.Errorf("it is damaged after line %d: %w", n, err)
	}
}

// tape appends lines to a file.
type tape struct {
	file *os.File
	z    *zstd.Encoder
}

func openTape(path string, flag int) (*tape, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|flag, 0o644)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(window))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &tape{file, z}, nil
}

// startTape makes a file that is not there.
func startTape(path string) (*tape, error) {
	t, err := openTape(path, os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	if err := t.append(fmt.Appendf(nil, `{"memtox_cassette":%d}`+"\n", format)); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// append writes a line and hands it to the system, which keeps it if the process
// is killed.
func (t *tape) append(line []byte) error {
	if _, err := t.z.Write(line); err != nil {
		return err
	}
	return t.z.Flush()
}

func (t *tape) close() error {
	return errors.Join(t.z.Close(), t.file.Sync(), t.file.Close())
}
