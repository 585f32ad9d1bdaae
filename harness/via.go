package harness

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

// vias say by which of the channels the content of each case comes: those of a stratum take
// turns in the order in which a limit draws them, so that any sample has of each. A twin has
// that of its attack.
func vias(set *datasets.Set, cases []int, c *Config) map[string]string {
	if len(c.Via) < 2 || c.ViaEach {
		return nil
	}
	out := map[string]string{}
	strata, _ := strataOf(set, cases, c.Seed)
	for first, name := range slices.Sorted(maps.Keys(strata)) {
		for rank, p := range strata[name] {
			for _, i := range p.cases {
				out[set.Cases[i].ID] = c.Via[(first+rank)%len(c.Via)]
			}
		}
	}
	for _, i := range cases {
		if k := &set.Cases[i]; k.Label == datasets.Attack && k.Twin != "" {
			out[k.Twin] = out[k.ID]
		}
	}
	return out
}

// Via is the channel by which the content of a case comes to the agent of an arm; "" where
// that is no installed product, or the case has none.
func (x *Experiment) via(k *datasets.Case, arm *Arm) string {
	if !arm.Profile.Installed {
		return ""
	}
	pieces, inline := 0, 0
	for _, t := range k.Write {
		for _, s := range t.Segments {
			if s.Medium == memory.Tool {
				continue
			}
			if pieces++; s.Inline {
				inline++
			}
		}
	}
	via := cmp.Or(arm.Life.Via, x.Plan.via[cmp.Or(k.VariantOf, k.ID)])
	if via == "" && len(x.Config.Via) > 0 {
		via = x.Config.Via[0]
	}
	switch {
	case pieces == 0:
		return ""
	case pieces == inline && cmp.Or(via, external.ByMCP) == external.ByMCP:
		return external.ByUser // handed over beside his words
	}
	return cmp.Or(via, external.ByMCP)
}

// brought are the turns of a write session whose content comes by a channel.
func brought(turns []agents.Turn, via string) []agents.Turn {
	if via == "" || via == external.ByMCP {
		return turns
	}
	out := slices.Clone(turns)
	for i := range out {
		out[i].Via = via
	}
	return out
}

// ownChannels refuses channels for agents that are no installed products.
func (c *Config) ownChannels(profiles []*agents.Profile) error {
	for _, p := range profiles {
		if !p.Installed && (c.ViaEach || slices.ContainsFunc(c.Via, func(v string) bool { return v != external.ByMCP })) {
			return &settings.Problem{Where: "--via", What: "content comes to " + p.Name + " by memtox's tools alone, not by " +
				strings.Join(c.Via, ", "), Hint: "name installed products (docs/installed.md)"}
		}
	}
	return nil
}
