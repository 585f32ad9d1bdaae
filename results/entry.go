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

// Names in a run directory. Numbered files belong together by their number: the
// rows of journal-N become trials-N, decisions-N and transcripts/index-N, and
// their transcripts stand in transcripts/part-N.
const (
	runFile         = "run.json"
	manifestFile    = "manifest.json"
	manifestPrefix  = "manifest-"
	jsonSuffix      = ".json"
	lockFile        = "lock"
	trialsFile      = "trials.parquet"
	decisionsFile   = "decisions.parquet"
	transcriptsDir  = "transcripts"
	indexFile       = transcriptsDir + "/index.parquet"
	tmpSuffix       = ".tmp"
	journalPrefix   = "journal-"
	trialsPrefix    = "trials-"
	decisionsPrefix = "decisions-"
	indexPrefix     = "index-"
	partPrefix      = "part-"
	parquetSuffix   = ".parquet"
	partSuffix      = ".jsonl.zst"
)

func journalName(n int) string   { return fmt.Sprintf("%s%06d", journalPrefix, n) }
func trialsPart(n int) string    { return fmt.Sprintf("%s%06d%s", trialsPrefix, n, parquetSuffix) }
func decisionsPart(n int) string { return fmt.Sprintf("%s%06d%s", decisionsPrefix, n, parquetSuffix) }
func manifestPart(n int) string  { return fmt.Sprintf("%s%06d%s", manifestPrefix, n, jsonSuffix) }
func indexPart(n int) string {
	return fmt.Sprintf("%s/%s%06d%s", transcriptsDir, indexPrefix, n, parquetSuffix)
}
func transcriptPart(n int) string {
	return fmt.Sprintf("%s/%s%06d%s", transcriptsDir, partPrefix, n, partSuffix)
}
func in(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }

// number is the number in a name such as trials-000003.parquet.
func number(name, prefix, suffix string) (int, bool) {
	s, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	if s, ok = strings.CutSuffix(s, suffix); !ok || len(s) < 6 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}
