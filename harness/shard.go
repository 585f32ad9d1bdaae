package harness

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/settings"
)

// shard is a part of a plan: every trial whose id, taken as a number, leaves the
// same rest. Ids are hashes, so shards are alike in size and in what they hold,
// and which shard a trial belongs to depends on nothing but the trial.
type shard struct{ index, count int } // index counts from 1; count 0 is the whole plan

// parseShard reads "i/n". The empty string is the whole plan. "i+1/n" is for those
// who count from 0 and cannot add: an indexed job of Kubernetes in an image
// without a shell, a matrix of a CI system.
func parseShard(s string) (shard, error) {
	if s == "" {
		return shard{}, nil
	}
	is, ns, ok := strings.Cut(s, "/")
	is, next := strings.CutSuffix(is, "+1")
	i, err1 := strconv.Atoi(is)
	if next {
		i++
	}
	n, err2 := strconv.Atoi(ns)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 1 || i > n || n > 1<<20 {
		return shard{}, &settings.Problem{What: fmt.Sprintf("%q is no shard", s),
			Hint: "i/n with i from 1 to n, for instance 2/5; from a counter that begins with 0, 1+1/5"}
	}
	return shard{i, n}, nil
}

// holds reports whether a trial belongs to the shard.
func (s shard) holds(id string) bool {
	if s.count == 0 {
		return true
	}
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		panic(fmt.Sprintf("trial id %q: %v", id, err)) // results.TrialID writes 16 hexadecimal digits
	}
	return int(n%uint64(s.count))+1 == s.index
}
