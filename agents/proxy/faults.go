package proxy

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/settings"
)

// Fault is a way in which an answer goes wrong.
type Fault uint8

// The faults.
const (
	NoFault       Fault = iota
	Cut                 // the connection breaks in the middle of the answer
	Truncated           // the answer is complete as HTTP, but its JSON or stream is not
	MalformedCall       // a tool call whose arguments are not JSON
	TooMany             // 429 with Retry-After
	ServerError         // 500
	Endless             // an answer that never ends
	Hang                // no answer at all
	BadRequest          // 400: the only one that no retry mends
	faults              // how many there are
)

var faultNames = [faults]string{"none", "cut", "truncate", "malformed", "429", "500", "endless", "hang", "400"}

// String returns the name by which a person asks for the fault.
func (f Fault) String() string { return faultNames[f] }

// Faults are the shares, from 0 to 1, of chat requests that go wrong in each
// way; together at most 1.
type Faults [faults]float64

// ParseFaults reads a list such as "cut=0.05,429=0.1", or "all=0.05": that share
// of each fault which trying again mends. "" is none.
func ParseFaults(s string) (Faults, error) {
	var f Faults
	if s == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		share, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return f, fmt.Errorf("reading the faults: %q is not NAME=SHARE, for instance cut=0.05", part)
		}
		if name == "all" {
			for k := Cut; k <= Hang; k++ {
				f[k] = share
			}
			continue
		}
		k := slices.Index(faultNames[:], name)
		if k <= int(NoFault) {
			return f, fmt.Errorf("reading the faults: %w",
				settings.Unknown("", "fault", name, append([]string{"all"}, faultNames[1:]...)))
		}
		f[k] = share
	}
	return f, f.check()
}

func (f Faults) check() error {
	sum := 0.0
	for k, share := range f {
		if !(share >= 0 && share <= 1) || share > 0 && k == int(NoFault) {
			return fmt.Errorf("the share %v of fault %s is not between 0 and 1", share, Fault(k))
		}
		sum += share
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("the faults' shares add up to %.3g; they are at most 1 together", sum)
	}
	return nil
}

// Stats count what a server did.
type Stats struct {
	Requests int64         // chat requests that reached the model or a fault
	Limited  int64         // refused by the rate limit
	Faults   [faults]int64 // by fault; NoFault counts the good answers
}

// chaos draws faults: from the seed, the content of the request, and how often
// it came before.
type chaos struct {
	opts *Options
	mu   sync.Mutex
	seen map[uint64]uint64
	s    Stats
}

// maxSeen bounds the requests that are told apart; then counting starts anew.
const maxSeen = 1 << 16

func (c *chaos) draw(body []byte) Fault {
	if c.opts.Faults == (Faults{}) {
		return NoFault
	}
	h := fnv.New64a()
	_, _ = h.Write(body)
	key := h.Sum64()
	c.mu.Lock()
	if c.seen == nil || len(c.seen) >= maxSeen {
		c.seen = map[uint64]uint64{}
	}
	c.seen[key]++
	n := c.seen[key]
	c.mu.Unlock()
	var nth [8]byte
	binary.LittleEndian.PutUint64(nth[:], n)
	_, _ = h.Write(nth[:])
	u := rand.New(rand.NewPCG(c.opts.Seed, h.Sum64())).Float64()
	for k, share := range c.opts.Faults {
		if u < share {
			return Fault(k)
		}
		u -= share
	}
	return NoFault
}

func (c *chaos) count(f Fault) {
	c.mu.Lock()
	c.s.Requests++
	c.s.Faults[f]++
	c.mu.Unlock()
}

func (c *chaos) limited() {
	c.mu.Lock()
	c.s.Limited++
	c.mu.Unlock()
}
