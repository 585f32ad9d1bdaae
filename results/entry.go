package results

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Entry is one finished trial with its decisions in order.
type Entry struct {
	Trial     Trial
	Decisions []Decision

	at place
}

// HasTranscript reports whether the trial left a transcript.
func (e *Entry) HasTranscript() bool { return e.at.length > 0 }

var errBadRecord = errors.New("a journal record is not what its length and checksum say")

// Names in a run directory.
const (
	runFile        = "run.json"
	manifestFile   = "manifest.json"
	lockFile       = "lock"
	trialsFile     = "trials.parquet"
	decisionsFile  = "decisions.parquet"
	transcriptsDir = "transcripts"
	indexFile      = transcriptsDir + "/index.parquet"
	tmpSuffix      = ".tmp"
)

// series are files that are numbered from 1 on: what the prefix and the suffix of
// their names are. Files of several series belong together by their number.
type series struct{ prefix, suffix string }

// The rows of a journal become a part: trials, decisions, an index of their transcripts
// and a manifest. The transcripts themselves stay where they are.
var (
	journals      = series{"journal-", ""}
	trialParts    = series{"trials-", ".parquet"}
	decisionParts = series{"decisions-", ".parquet"}
	manifestParts = series{"manifest-", ".json"}
	indexParts    = series{transcriptsDir + "/index-", ".parquet"}
	texts         = series{transcriptsDir + "/part-", ".jsonl.zst"}
)

// working are the series that a finished run no longer needs.
var working = []series{journals, trialParts, decisionParts, manifestParts, indexParts}

func (s series) name(n int) string { return fmt.Sprintf("%s%06d%s", s.prefix, n, s.suffix) }

// number is the number in a name such as trials-000003.parquet.
func (s series) number(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, s.prefix)
	if ok {
		digits, ok = strings.CutSuffix(digits, s.suffix)
	}
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && len(digits) >= 6
}

func in(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
