package gate

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/export"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// Formats are the formats that a result can be written in.
func Formats() []string { return slices.Concat(render.Formats(), []string{"junit", "sarif", "github"}) }

// Home is where memtox lives.
const Home = "https://github.com/memtox/memtox"

// Write writes the result in a format. version is that of memtox; file is what
// findings without a place of their own are pinned to.
func (r *Result) Write(w io.Writer, format, version, file string) error {
	switch format {
	case "junit":
		return r.junit(w)
	case "sarif":
		return r.sarif(w, version, file)
	case "github":
		return r.annotations(w)
	}
	return render.Write(w, format, r, r.say)
}

// Verdict is the outcome in a line.
func (r *Result) Verdict() string {
	n := func(o stats.Outcome) string { return fmt.Sprintf("%d %s", r.Count(o), o) }
	checks := "checks"
	if len(r.Checks) == 1 {
		checks = "check"
	}
	return fmt.Sprintf("%s: %d %s: %s, %s, %s", strings.ToUpper(string(r.Outcome)), len(r.Checks), checks, n(stats.Pass),
		n(stats.Fail), n(stats.Inconclusive))
}

func (r *Result) say(p *render.Paper) error {
	if p.Markdown() {
		mark := map[stats.Outcome]string{stats.Pass: "✅", stats.Fail: "❌", stats.Inconclusive: "⚠️"}
		p.Heading(2, "%s memtox gate: %s", mark[r.Outcome], r.Verdict())
	}
	p.Item("%s: %s", r.Run.Name, r.Run.About())
	if r.Baseline != "" {
		p.Item("baseline: %s", r.Baseline)
	}
	p.Gap()
	if p.Markdown() {
		t := &render.Table{Header: []string{"outcome", "check", "required", "measured", "bounds", "why"}}
		for _, c := range r.Checks {
			t.Add(string(c.Outcome), c.Name, c.Require, c.Measured, c.Bound, c.Why)
		}
		p.Table(t)
	} else {
		p.Hang("", 0, width, "Each check and what it requires; below it what was measured, its bounds, and what they decide.")
		for _, c := range r.Checks {
			found := strings.TrimSpace(c.Measured + " " + c.Bound)
			if c.Why != "" {
				found += ": " + c.Why
			}
			p.Hang(string(c.Outcome), len(stats.Inconclusive)+2, width, c.Name+" "+c.Require, found)
		}
		p.Gap()
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		listed := c.Changed
		if p.Markdown() { // the summary of a job has a limited size
			listed = listed[:min(len(listed), mostListed)]
		}
		for _, s := range c.worse(listed) {
			p.Item("%s", s)
		}
		if more := len(c.Changed) - len(listed); more > 0 {
			p.Item("… and %d more", more)
		}
	}
	if p.Markdown() {
		p.Gap()
	}
	how := fmt.Sprintf("a check passes where its one-sided %g%% bound meets the requirement and fails where its "+
		"one-sided %.4g%% bound breaks it, so that a good run goes red in at most %.3g%% of cases over all %d checks that "+
		"chance can decide; between the two it is inconclusive.",
		100*r.Confidence, 100*r.FailConfidence, 100*(1-r.Confidence), r.Statistical)
	say := func(s string) { p.Hang("", 0, width, s) }
	if p.Markdown() {
		say = func(s string) { p.Say("%s", s) }
	}
	say(how)
	for _, n := range r.Notes {
		say("note: " + n)
	}
	if !p.Markdown() {
		p.Gap()
		say(r.Verdict())
	}
	return nil
}

// width is that of what a terminal shows of checks, in columns. Lines of changed cases
// stay whole: they are looked for rather than read.
const width = 100

// mostListed bounds how many changed cases Markdown lists.
const mostListed = 50

// worse says in which classes a check failed, and which cases changed.
func (c *Check) worse(changed []compare.Deviation) []string {
	var out []string
	for _, x := range c.Regressed {
		out = append(out, "regressed: "+x.Text)
	}
	for _, k := range changed {
		out = append(out, changedText(c, k))
	}
	return out
}

func changedText(c *Check, k compare.Deviation) string {
	s := "changed: " + c.Agent + "/" + c.Defense + " " + k.Case
	if k.Epoch > 0 {
		s += fmt.Sprintf(" epoch %d", k.Epoch)
	}
	s += " (" + k.Class + "): "
	if len(k.What) == 0 {
		return s + "other decisions, same rates"
	}
	return s + strings.Join(k.What, ", ")
}

//go:embed junit.xml
var junitText string

var junit = template.Must(template.New("junit").Funcs(template.FuncMap{"inert": inert.Text,
	"dotless": func(s string) string { return strings.ReplaceAll(inert.Text(s), ".", "_") }}).Parse(junitText))

// junit writes a test case a check. What is inconclusive is an error: services
// show skipped tests as green.
func (r *Result) junit(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	return junit.Execute(w, r)
}

// Details is everything that is known of a check, a line each.
func (c *Check) Details() string {
	lines := append([]string{"required: " + c.Require, "measured: " + c.Measured, "bounds: " + c.Bound, "why: " + c.Why},
		c.worse(c.Changed)...)
	for i := range lines {
		lines[i] = inert.Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

// sarif writes a finding for every regressed class of a failed check, or for the
// check where it is about no class, and one for every undecided check.
func (r *Result) sarif(w io.Writer, version, file string) error {
	rules := []export.Rule{
		{ID: "memtox/limit", Short: "A figure breaks a limit of the gate.",
			Help: "See which defense let it through: memtox compare RUN --show changed, and the transcripts of the run."},
		{ID: "memtox/baseline", Short: "A figure is worse than the baseline by more than the margin.",
			Help: "See which cases changed: memtox compare BASELINE RUN --show changed."},
		{ID: "memtox/replay", Short: "Cases did not end as in the baseline.",
			Help: "If the change is wanted, write the baseline anew: memtox gate RUN --write-baseline FILE."},
		{ID: "memtox/inconclusive", Short: "A check of the gate could not be decided.",
			Help: "Run more cases, mend trials that were not scored, or move the limit."},
	}
	var list []export.Finding
	for i := range r.Checks {
		c := &r.Checks[i]
		f := export.Finding{Rule: "memtox/" + c.Kind, Level: export.Error,
			Message: fmt.Sprintf("%s: %s; required %s. %s.", c.Name, c.Measured, c.Require, c.Why),
			Name:    c.Agent + "/" + c.Defense, File: file,
			Properties: map[string]any{"metric": c.Metric, "measured": c.Measured, "bounds": c.Bound}}
		if c.Class != "" {
			f.Name += "/" + c.Class
		}
		if at, line := c.place(); at != "" {
			f.File, f.Line = at, line
		}
		// The figures are not part of the identity: a finding stays the same one
		// while its numbers move.
		f.Identity = []string{c.Kind, r.Run.Dataset, c.Agent, c.Defense, c.Class, c.Metric, c.Require}
		switch {
		case c.Outcome == stats.Pass:
			continue
		case c.Outcome == stats.Inconclusive:
			f.Rule, f.Level = "memtox/inconclusive", export.Warning
			f.Identity = append([]string{"inconclusive"}, f.Identity...)
		case len(c.Regressed) > 0:
			for _, x := range c.Regressed {
				y := f
				y.Message, y.Name = x.Text, f.Name+"/"+x.Class
				y.Identity = []string{c.Kind, r.Run.Dataset, c.Agent, c.Defense, x.Class, c.Metric, c.Require}
				list = append(list, y)
			}
			continue
		}
		list = append(list, f)
	}
	return export.WriteSARIF(w, export.Tool{Name: "memtox gate", Version: version, URI: Home}, rules, list)
}

var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotations writes workflow commands, which GitHub shows beside a job. Only
// this function begins a line with two colons, and what is not a pass has one.
func (r *Result) annotations(w io.Writer) error {
	var b strings.Builder
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Outcome == stats.Pass {
			continue
		}
		level := "error"
		if c.Outcome == stats.Inconclusive {
			level = "warning"
		}
		place := ""
		if file, line := c.place(); file != "" {
			place = fmt.Sprintf("file=%s,line=%d,", commandProperty.Replace(inert.Text(file)), line)
		}
		text := fmt.Sprintf("%s; required %s. %s.", c.Measured, c.Require, c.Why)
		for _, x := range c.Regressed {
			text += " " + x.Text + "."
		}
		fmt.Fprintf(&b, "::%s %stitle=%s::%s\n", level, place, commandProperty.Replace(inert.Text("memtox gate: "+c.Name)),
			commandData.Replace(inert.Text(text)))
	}
	if len(r.Checks) == 0 {
		b.WriteString("::warning title=memtox gate::there was nothing to check\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
