package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/results/reproduce"
)

// memgarMerkle asks memgar's tree, as its code behaves, for what its
// documentation says of it.
func memgarMerkle(ctx context.Context) (map[string]reproduce.Measurement, error) {
	const million = 1_000_000
	entries := make([]seal.MemgarEntry, million)
	for i := range entries {
		h := sha256.Sum256(fmt.Append(nil, "content-", i))
		entries[i] = seal.MemgarEntry{ID: fmt.Sprintf("e%d", i), ContentHash: hex.EncodeToString(h[:])}
	}
	out := map[string]reproduce.Measurement{}
	say := func(figure, text string) { out[figure] = reproduce.Measurement{Text: text} }
	yes := func(figure string, is bool) {
		text := "no"
		if is {
			text = "yes"
		}
		say(figure, text)
	}

	full := seal.NewMemgar(entries)
	proof, ok := full.Prove("e777777")
	if !ok {
		return nil, fmt.Errorf("memgar's tree has no entry %q", "e777777")
	}
	say("siblings of a proof in 1000000 entries", strconv.Itoa(len(proof.Siblings)))
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	root := full.Root()
	rand.New(rand.NewPCG(1, 7)).Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	yes("root does not depend on the order of insertion", seal.NewMemgar(entries).Root() == root)

	odd := seal.NewMemgar(entries[:3])
	orphans := 0
	for _, e := range entries[:3] {
		p, _ := odd.Prove(e.ID)
		if p.Siblings[0].Hash == p.LeafHash && p.Siblings[0].Position == 1 {
			orphans++
		}
	}
	yes("orphan of an odd level is paired with itself", orphans == 1)

	empty := seal.NewMemgar(nil).Root()
	if empty == "" {
		empty = "empty"
	}
	say("root of an empty snapshot", empty)

	id := proof.EntryID
	expect := seal.MemgarExpect{EntryID: &id, Root: &root}
	genuine, err := proof.Verify(expect)
	if err != nil {
		return nil, fmt.Errorf("verifying a proof: %w", err)
	}
	proof.ContentHash = entries[0].ContentHash
	if entries[0].ID == id {
		proof.ContentHash = entries[1].ContentHash
	}
	altered, err := proof.Verify(expect)
	if err != nil {
		return nil, fmt.Errorf("verifying the proof of an altered entry: %w", err)
	}
	yes("an altered entry fails its proof", genuine && !altered)
	return out, nil
}
