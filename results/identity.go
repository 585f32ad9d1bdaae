package results

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/wire"
)

// TrialID returns the id of a trial: the first 64 bits, in hexadecimal, of
// SHA-256 over exactly what makes it the trial that it is. spec is the canonical
// text of the defense's settings, so that two defenses of one name differ.
func TrialID(caseID, agent, defense, spec, model string, epoch int) string {
	b := make([]byte, 0, 256)
	b = append(b, "memtox trial 1\x00"...)
	for _, s := range [...]string{caseID, agent, defense, spec, model} {
		b = wire.AppendField(b, s)
	}
	b = binary.AppendVarint(b, int64(epoch))
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}

// OutcomeDigest returns the digest of what happened in a trial: the first 128
// bits, in hexadecimal, of SHA-256 over dataset, case, agent and epoch, the
// status, the funnel flags, the outcomes by state and the sequence of verdicts (session, gate, route,
// operation, action and state of every decision, in order). Neither the trial's
// id nor the names of model and defense are in it, nor anything that a clock or
// a host could change, so equal runs have equal digests, and so have two
// defenses that decide alike.
func OutcomeDigest(t *Trial, ds []Decision) string {
	var room [4 << 10]byte
	b := append(room[:0], "memtox outcome 1\x00"...)
	for _, s := range [...]string{t.Dataset, t.Case, t.Agent, t.Status, t.WrittenRoute, t.WrittenChannel} {
		b = wire.AppendField(b, s)
	}
	b = binary.AppendVarint(b, int64(t.Epoch))
	for _, f := range [...]bool{t.Proposed, t.Written, t.Held, t.Exposed, t.Acted, t.Asserted, t.Influenced,
		t.InfluencedUnwritten} {
		b = append(b, bit(f))
	}
	for _, f := range [...]*bool{t.Detected, t.DetectedInput, t.DetectedWrite, t.DetectedRead, t.Deferred, t.LegitStopped,
		t.LegitDeferred, t.LegitSurvived, t.LaterTaskDone, t.Utility, t.OtherTaskDone, t.OwnTaskDone, t.MemoriesSurvived,
		t.UtilityUnderAttack} {
		b = append(b, optional(f))
	}
	if t.Situation != "" {
		for _, f := range [...]*bool{t.Right, t.Harm, t.Wrong, t.Done, t.Idle, &t.Declined} {
			b = append(b, optional(f))
		}
		b = binary.AppendVarint(b, int64(t.Asked))
	}
	if t.Question {
		for _, f := range [...]*bool{t.Answered, t.Misled, t.Told} {
			b = append(b, optional(f))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(ds)))
	for i := range ds {
		d := &ds[i]
		b = binary.AppendVarint(b, int64(d.Session))
		for _, s := range [...]string{d.Gate, d.Route, d.Op, d.Action, d.State} {
			b = wire.AppendField(b, s)
		}
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

// idNumber is the trial id as a number. ok is false where it is not 16 lower
// case hexadecimal digits.
func idNumber(id string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(id, 16, 64)
	return n, err == nil && len(id) == 16 && id == strings.ToLower(id)
}

func badID(id string) error {
	return fmt.Errorf("trial id %q is not 16 lower-case hexadecimal digits: make it with TrialID", id)
}
