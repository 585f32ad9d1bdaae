package text

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Cache keeps the analyses of texts by their content, so that the same text
// in many arms is analysed once. It is a value that a run creates and shares;
// any number of goroutines may use it. What it keeps is bounded in bytes:
// texts that were not asked for lately go first. Whether a text is in the
// cache never changes a result, only how long it takes.
type Cache struct {
	embedder Embedder
	seed     maphash.Seed // picks shards only: results do not depend on it
	shards   [cacheShards]cacheShard
}

const cacheShards = 32

type cacheShard struct {
	mu     sync.RWMutex
	recent map[string]*Analysis // asked for since the last turn
	before map[string]*Analysis // the generation before; goes at the next turn
	size   int                  // bytes of recent
	limit  int                  // bytes of one generation

	hits, misses atomic.Int64
	_            [64]byte // no two shards in one cache line
}

// DefaultCacheBytes is enough for the texts of some ten thousand cases.
const DefaultCacheBytes = 256 << 20

// NewCache returns a cache of at most about maxBytes (DefaultCacheBytes if it
// is 0 or less), whose analyses have vectors by e (Hashing if nil).
func NewCache(maxBytes int, e Embedder) *Cache {
	if maxBytes <= 0 {
		maxBytes = DefaultCacheBytes
	}
	if e == nil {
		e = Hashing{}
	}
	c := &Cache{embedder: e, seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].limit = max(1, maxBytes/cacheShards/2)
	}
	return c
}

// analysisBytes is what the analysis of n bytes of text takes when every part
// of it has been asked for: a token of six bytes of text takes forty, a value
// or sentence of thirty the same, the fold map four a byte.
func analysisBytes(n int) int {
	return int(unsafe.Sizeof(Analysis{})) + 4*HashDim + 24*n
}

// Get returns the analysis of s. A text too large for the cache gets an
// analysis of its own that is not kept. A nil Cache keeps nothing.
func (c *Cache) Get(s string) *Analysis {
	if c == nil {
		return Analyse(s)
	}
	sh := &c.shards[maphash.String(c.seed, s)%cacheShards]
	sh.mu.RLock()
	a := sh.recent[s]
	sh.mu.RUnlock()
	if a != nil {
		sh.hits.Add(1)
		return a
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	if a = sh.recent[s]; a != nil {
		sh.hits.Add(1)
		return a
	}
	if a = sh.before[s]; a != nil {
		sh.hits.Add(1)
		delete(sh.before, s)
	} else {
		sh.misses.Add(1)
		// A text may be a piece of something much larger: keep only it.
		a = AnalyseWith(strings.Clone(s), c.embedder)
	}
	n := analysisBytes(len(s))
	if n > sh.limit {
		return a
	}
	if sh.size+n > sh.limit {
		sh.recent, sh.before, sh.size = nil, sh.recent, 0
	}
	if sh.recent == nil {
		sh.recent = map[string]*Analysis{}
	}
	sh.recent[a.text] = a
	sh.size += n
	return a
}

// CacheStats counts what a cache did.
type CacheStats struct {
	Hits, Misses int64
	Texts        int // kept now
}

// Stats counts over all of the cache's life.
func (c *Cache) Stats() CacheStats {
	var st CacheStats
	if c == nil {
		return st
	}
	for i := range c.shards {
		sh := &c.shards[i]
		st.Hits += sh.hits.Load()
		st.Misses += sh.misses.Load()
		sh.mu.RLock()
		st.Texts += len(sh.recent) + len(sh.before)
		sh.mu.RUnlock()
	}
	return st
}
