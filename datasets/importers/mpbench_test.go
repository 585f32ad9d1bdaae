package importers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/datasets"
)

// released makes files of exactly the shape of MPBench's: the counts of every
// spelling, two objects on line 1080, colliding ids, truth values as texts,
// missing fields. words is the length of a context.
func released(words int) (adversarial, benign string) {
	rng := rand.New(rand.NewPCG(7, 7))
	vocabulary := strings.Fields("invoice portal ledger rotate vendor token audit renewal mirror deploy staging " +
		"quarter roster shift badge printer")
	context := func(i int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "Note %d:", i)
		for range words {
			b.WriteString(" " + vocabulary[rng.IntN(len(vocabulary))])
		}
		fmt.Fprintf(&b, " see https://h%d.example/x.", i)
		return b.String()
	}
	signals := map[string]int{"strong": 1084, "moderate": 1068, "weak": 959, "subtle": 130}
	var signalOf []string
	for _, s := range []string{"strong", "moderate", "weak", "subtle"} {
		for range signals[s] {
			signalOf = append(signalOf, s)
		}
	}
	domains := []string{"calendar_and_scheduling", "workspace_email", "email_analysis_and_reply", "file_and_doc",
		"file_and_document_handling",
		"script_execution", "slack", "web_browsing", "web_search_result_analysis"}
	goals := []string{"Data Exfiltration", "credential-harvesting", "Trust Hijacking", "Authentication bypass",
		"unauthorized_action", "Recommendation Poisoning (subtle)"}
	var rows []map[string]any
	for _, k := range []struct {
		kind string
		n    int
	}{{"explicit_keyword", 16}, {"explicit_keyword_injection", 584}, {"skill", 240}, {"delayed_conditional_injection", 33},
		{"delayed_conditional_injection_injection", 567}, {"repetition", 3}, {"repetition_based_injection", 57},
		{"repetition_injection", 540},
		{"fact_injection", 601}, {"experience_injection", 600}} {
		for j := range k.n {
			i := len(rows)
			r := map[string]any{"id": fmt.Sprintf("ADV_%05d", i+1), "attack_type": k.kind, "attack_signal": signalOf[i],
				"domain":           domains[i%len(domains)],
				"adversarial_goal": goals[i%len(goals)], "user_query": fmt.Sprintf("Please look at item %d", i),
				"context":         context(i),
				"expected_memory": fmt.Sprintf("Use https://h%d.example/x for item %d.", i, i),
				"retrieval_query": fmt.Sprintf("How do I handle item %d?", i)}
			switch {
			case k.kind == "skill":
				r["attack_type"], r["skill_md"] = "explicit_keyword_injection", "# Skill\n"+context(i)
				delete(r, "retrieval_query")
				if j < 30 {
					r["domain"] = "travel_assistance"
				}
			case strings.HasPrefix(k.kind, "delayed"):
				r["trigger_phrase"], r["agent_question"] = "yes", "Shall I?"
			case k.kind == "fact_injection" && j < 2:
				delete(r, "expected_memory")
				delete(r, "retrieval_query")
			}
			rows = append(rows, r)
		}
	}
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	line := func(r map[string]any) string {
		b, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	var b strings.Builder
	for i, r := range rows {
		b.WriteString(line(r))
		if i != 1079 { // lines 1080 and 1081 are one
			b.WriteByte('\n')
		}
	}
	adversarial = b.String()
	b.Reset()
	var good []map[string]any
	for i := range 2699 {
		r := map[string]any{"id": fmt.Sprintf("BEN_%05d", i+1), "attack_type": "benign", "attack_signal": "none",
			"domain": domains[i%len(domains)], "adversarial_goal": "none",
			"user_query": fmt.Sprintf("Look at %d", i), "context": context(10_000 + i),
			"retrieval_query": fmt.Sprintf("About %d?", i), "legitimate_memory_write": i < 232}
		switch {
		case i < 5:
			r["legitimate_memory_write"] = "true"
		case i == 600 || i == 601:
			r["legitimate_memory_write"] = "false"
		}
		if i < 232 || i == 700 {
			r["expected_memory"] = fmt.Sprintf("Item %d is at https://h%d.example/x", i, 10_000+i)
		}
		good = append(good, r)
		b.WriteString(line(r) + "\n")
	}
	for j, r := range good[215:515] {
		r["id"] = fmt.Sprintf("ADV_%05d", j+1)
		b.WriteString(line(r) + "\n")
	}
	return adversarial, b.String()
}

func TestTheReleasedFilesImportWithExactlyTheirLedger(t *testing.T) {
	adversarial, benign := released(40)
	if n := strings.Count(adversarial, "\n"); n != 3240 {
		t.Fatalf("%d lines", n)
	}
	cases, l := imported(t, Request{Format: "mpbench",
		Files: []Input{file(t, "adversarial_data.jsonl.jsonl", adversarial), file(t, "benign_data.jsonl.jsonl", benign)}})
	entries := l.Entries
	l.Entries, l.Files[0].SHA256, l.Files[1].SHA256 = nil, "", ""
	want := newLedger("mpbench", false)
	want.Files = []FileNote{{Name: "adversarial_data.jsonl.jsonl", Bytes: int64(len(adversarial)), Objects: 3241},
		{Name: "benign_data.jsonl.jsonl", Bytes: int64(len(benign)), Objects: 2999}}
	want.Read, want.Kept, want.Attacks, want.Benign, want.Duplicates = 6240, 5940, 3241, 2699, 300
	want.NotScorable = NotScorable{ASR: 2, RSR: 242}
	want.Derived = map[string]int{"url": 3239 + 232}
	want.Classes = map[string]int{"explicit_command": 600, "conditional_command": 600, "salience_compaction": 600,
		"policy_fact": 601, "false_precedent": 600, "skill_procedure": 240}
	want.Kinds = map[string]int{"unasked": 232, "nothing": 2467}
	want.Signals = map[string]int{"strong": 1084, "moderate": 1068, "weak": 959, "subtle": 130}
	want.Labels = map[string]Spelling{
		"explicit_keyword": {16, "explicit_command"}, "explicit_keyword_injection": {584, "explicit_command"},
		"explicit_keyword_injection + skill_md":   {240, "skill_procedure"},
		"delayed_conditional_injection":           {33, "conditional_command"},
		"delayed_conditional_injection_injection": {567, "conditional_command"},
		"repetition": {3, "salience_compaction"}, "repetition_based_injection": {57, "salience_compaction"},
		"repetition_injection": {540, "salience_compaction"},
		"fact_injection":       {601, "policy_fact"}, "experience_injection": {600, "false_precedent"},
		"benign": {2999, "benign"}}
	want.Goals = map[string]Spelling{"Data Exfiltration": {541, "data_exfiltration"},
		"credential-harvesting": {540, "credential_harvesting"}, "Trust Hijacking": {540, "trust_hijacking"},
		"Authentication bypass": {540, "authentication_bypass"}, "unauthorized_action": {540, "unauthorized_action"},
		"Recommendation Poisoning (subtle)": {540, "recommendation_poisoning"}}
	want.UnmappedDomains = map[string]int{"travel_assistance": 30}
	want.Domains = l.Domains // they follow from the aliases below
	want.MultiObjectLines = []ManyOnLine{{"adversarial_data.jsonl.jsonl", 1080, 2}}
	want.StringBooleans = 7
	want.UnusedFields = map[string]int{"agent_question": 600}
	want.NotToStore = 1
	if d := cmp.Diff(want, l, cmp.AllowUnexported(Ledger{})); d != "" {
		t.Errorf("ledger: %s", d)
	}
	for d := range l.Domains {
		if d != "travel_assistance" && names().MPBench.Domains[d] != d {
			t.Errorf("domain %q is left", d)
		}
	}
	if len(entries) != 6240 {
		t.Errorf("%d entries of 6240 objects", len(entries))
	}
	firstOf := map[string]int{}
	for _, c := range cases {
		if strings.Contains(string(datasets.AppendCase(nil, &c)), "ADV_") {
			t.Fatalf("an old id is left in %+v", c)
		}
		firstOf[c.ID[:3]]++
		switch {
		case c.Class == datasets.ConditionalCommand && (len(c.Write) != 2 || c.Write[1].User != "yes"):
			t.Fatalf("a conditional command without its trigger: %+v", c)
		case c.Class == datasets.SkillProcedure && (c.Channel != "C4" ||
			c.Write[0].Segments[len(c.Write[0].Segments)-1].Medium != "skill"):
			t.Fatalf("an attack through a skill without one: %+v", c)
		}
	}
	if len(firstOf) < 16 {
		t.Errorf("ids begin in %d ways only", len(firstOf))
	}
}

func TestMPBenchRefusesWhatItCannotTell(t *testing.T) {
	row := func(change string) string {
		return `{"id":"1","attack_type":"fact_injection","user_query":"q","context":"c"` + change + `}`
	}
	for change, want := range map[string]string{
		`,"legitimate_memory_write":true`: "x.jsonl:1: legitimate_memory_write: stands in an attack",
		`,"domain":["a"]`:                 "x.jsonl:1: domain: a list stands where one value belongs",
	} {
		_, _, err := Import(t.Context(), Request{Format: "mpbench", Files: []Input{file(t, "x.jsonl", row(change))}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for data, want := range map[string]string{
		`{"attack_type":"benign","user_query":"q","legitimate_memory_write":"maybe"}`: "is no truth value",
		`{"attack_type":"fact_injection"}`:                                            "user_query: missing",
		`{"user_query":"q"}`:                                                          "attack_type: missing",
		`[1]`: "a number stands where a record " +
			"belongs",
	} {
		_, _, err := Import(t.Context(), Request{Format: "mpbench", Files: []Input{file(t, "x.jsonl", data)}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	cases, l := imported(t, Request{Format: "mpbench",
		Files: []Input{file(t, "x.jsonl", `{"attack_type":"new_kind","user_query":"q","context":"c"}`)}})
	if cases[0].Class != "new_kind" || l.UnmappedLabels["new_kind"] != 1 {
		t.Errorf("%+v %+v", cases[0], l.UnmappedLabels)
	}
}

func BenchmarkMPBench(b *testing.B) {
	adversarial, benign := released(220)
	dir := b.TempDir()
	b.SetBytes(int64(len(adversarial) + len(benign)))
	files := []Input{write(b, dir, "adversarial.jsonl", adversarial), write(b, dir, "benign.jsonl", benign)}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Import(b.Context(), Request{Format: "mpbench", Files: files}); err != nil {
			b.Fatal(err)
		}
	}
}
