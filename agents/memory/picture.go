package memory

// Picture is a store as somebody was told of it: of a [View] the part that shows
// records. The zero value is an empty store.
type Picture struct {
	Records []Record // in the order of first commits

	byID  map[string]int
	byKey map[storeKey]int // the newest record of a key that is not retired
}

// Put stores a record, or replaces the one with its id, which it returns.
func (p *Picture) Put(r Record) (old Record, replaced bool) {
	if p.byID == nil {
		p.byID, p.byKey = make(map[string]int), make(map[storeKey]int)
	}
	i, known := p.byID[r.ID]
	if known {
		old, p.Records[i] = p.Records[i], r
	} else {
		i = len(p.Records)
		p.Records = append(p.Records, r)
		p.byID[r.ID] = i
	}
	k := storeKey{r.Store, r.Key}
	if r.State != Retired {
		p.byKey[k] = i
	} else if at, ok := p.byKey[k]; ok && at == i {
		delete(p.byKey, k)
	}
	return old, known
}

// Len is the number of records.
func (p *Picture) Len() int { return len(p.Records) }

// Get returns a record by id.
func (p *Picture) Get(id string) (r Record, ok bool) {
	i, ok := p.byID[id]
	if ok {
		r = p.Records[i]
	}
	return r, ok
}

// ByKey returns the current record of a store's key.
func (p *Picture) ByKey(store, key string) (r Record, ok bool) {
	i, ok := p.byKey[storeKey{store, key}]
	if ok {
		r = p.Records[i]
	}
	return r, ok
}

// Each visits every record until yield returns false.
func (p *Picture) Each(yield func(Record) bool) {
	for _, r := range p.Records {
		if !yield(r) {
			return
		}
	}
}
