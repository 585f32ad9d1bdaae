package gate

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/export"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// Formats are the formats that a result can be written in.
func Formats() []string { return []string{"table", "json", "markdown", "junit", "sarif", "github"} }

// Home is where memtox lives.
const Home = "https://github.com/memtox/memtox"

// Write writes the result in a format. version is that of memtox; file is what
// findings without a place of their own are pinned to.
func (r *Result) Write(w io.Writer, format, version, file string) error {
	var b bytes.Buffer
	var err error
	switch format {
	case "table":
		err = r.text(&b)
	case "json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	case "markdown":
		err = r.markdown(&b)
	case "junit":
		err = r.junit(&b)
	case "sarif":
		err = r.sarif(&b, version, file)
	case "github":
		r.annotations(&b)
	default:
		return problem("--format", "one of "+strings.Join(Formats(), ", "), "unknown format %q", format)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(inert.JSON(b.Bytes())) // the other formats are inert already
	return err
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

func (r *Result) about() []string {
	model := r.Run.Model
	if model == compare.NoModel {
		model = "none (texts, no agent)"
	} else if !r.Run.LLM {
		model += ", which is not an LLM"
	}
	out := []string{fmt.Sprintf("%s: %s, split %s, model %s, %d trials", r.Run.Name, r.Run.Dataset, r.Run.Split, model,
		r.Run.Trials)}
	if r.Baseline != "" {
		out = append(out, "baseline: "+r.Baseline)
	}
	return out
}

func (r *Result) rules() string {
	return fmt.Sprintf("a check passes where its one-sided %g%% bound meets the requirement and fails where its "+
		"one-sided %.4g%% bound breaks it, so that a good run goes red in at most %.3g%% of cases over all %d checks that "+
		"chance can decide; between the two it is inconclusive.",
		100*r.Confidence, 100*r.FailConfidence, 100*(1-r.Confidence), r.Statistical)
}

func (r *Result) grid() *render.Table {
	g := &render.Table{Header: []string{"outcome", "check", "required", "measured", "bounds", "why"}}
	for i := range r.Checks {
		c := &r.Checks[i]
		g.Add(string(c.Outcome), c.Name, c.Require, c.Measured, c.Bound, c.Why)
	}
	return g
}

func (r *Result) text(w io.Writer) error {
	for _, s := range r.about() {
		fmt.Fprintln(w, inert.Text(s))
	}
	fmt.Fprintln(w)
	if err := r.grid().Text(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i := range r.Checks {
		c := &r.Checks[i]
		for _, x := range c.Regressed {
			fmt.Fprintln(w, inert.Text("regressed: "+x.Text))
		}
		for _, k := range c.Changed {
			fmt.Fprintln(w, inert.Text(changedText(c, k)))
		}
	}
	fmt.Fprintln(w, inert.Text(r.rules()))
	for _, n := range r.Notes {
		fmt.Fprintln(w, inert.Text("note: "+n))
	}
	_, err := fmt.Fprintln(w, "\n"+r.Verdict())
	return err
}

func changedText(c *Check, k Changed) string {
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

// mostListed bounds how many changed cases a summary lists: the summary of a job
// has a limited size.
const mostListed = 50

func (r *Result) markdown(w io.Writer) error {
	mark := map[stats.Outcome]string{stats.Pass: "✅", stats.Fail: "❌", stats.Inconclusive: "⚠️"}
	fmt.Fprintf(w, "## %s memtox gate: %s\n\n", mark[r.Outcome], inert.Markdown(r.Verdict()))
	for _, s := range r.about() {
		fmt.Fprintf(w, "- %s\n", inert.Markdown(s))
	}
	fmt.Fprintln(w)
	if err := r.grid().Markdown(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i := range r.Checks {
		c := &r.Checks[i]
		for _, x := range c.Regressed {
			fmt.Fprintf(w, "- regressed: %s\n", inert.Markdown(x.Text))
		}
		for j, k := range c.Changed {
			if j == mostListed {
				fmt.Fprintf(w, "- … and %d more\n", len(c.Changed)-j)
				break
			}
			fmt.Fprintf(w, "- %s\n", inert.Markdown(changedText(c, k)))
		}
	}
	fmt.Fprintf(w, "\n%s\n", inert.Markdown(r.rules()))
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\n%s\n", inert.Markdown("note: "+n))
	}
	return nil
}

// The elements of a JUnit report that services read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes a test case a check. What is inconclusive is an error: services
// show skipped tests as green.
func (r *Result) junit(w io.Writer) error {
	s := junitSuite{Name: "memtox gate", Tests: len(r.Checks), Failures: r.Count(stats.Fail),
		Errors: r.Count(stats.Inconclusive)}
	for _, p := range [][2]string{{"run", r.Run.Name}, {"run_id", r.Run.ID}, {"dataset", r.Run.Dataset},
		{"model", r.Run.Model}, {"outcome", string(r.Outcome)}} {
		s.Properties = append(s.Properties, junitProperty{p[0], inert.Text(p[1])})
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		k := junitCase{Class: inert.Text(strings.ReplaceAll(c.Agent, ".", "_") + "." +
			strings.ReplaceAll(c.Defense, ".", "_")), Name: inert.Text(c.Name + " " + c.Require)}
		text := c.details()
		switch c.Outcome {
		case stats.Pass:
			k.Out = text
		case stats.Fail:
			k.Failure = &junitProblem{inert.Text(c.Measured + ": " + c.Why), string(c.Outcome), text}
		default:
			k.Error = &junitProblem{inert.Text(c.Measured + ": " + c.Why), string(c.Outcome), text}
		}
		s.Cases = append(s.Cases, k)
	}
	if len(r.Checks) == 0 {
		s.Tests, s.Errors = 1, 1
		s.Cases = []junitCase{{Class: "memtox.gate", Name: "checks",
			Error: &junitProblem{"there was nothing to check", string(stats.Inconclusive), ""}}}
	}
	out := junitSuites{Name: s.Name, Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Suites: []junitSuite{s}}
	b, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	return err
}

// details is everything that is known of a check, a line each.
func (c *Check) details() string {
	lines := []string{"required: " + c.Require, "measured: " + c.Measured, "bounds: " + c.Bound, "why: " + c.Why}
	for _, x := range c.Regressed {
		lines = append(lines, "regressed: "+x.Text)
	}
	for _, k := range c.Changed {
		lines = append(lines, changedText(c, k))
	}
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
		if c.requirement != nil {
			if at, line := c.requirement.File(); at != "" {
				f.File, f.Line = at, line
			}
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
func (r *Result) annotations(w io.Writer) {
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
		if c.requirement != nil {
			if file, line := c.requirement.File(); file != "" {
				place = fmt.Sprintf("file=%s,line=%d,", commandProperty.Replace(inert.Text(file)), line)
			}
		}
		text := fmt.Sprintf("%s; required %s. %s.", c.Measured, c.Require, c.Why)
		for _, x := range c.Regressed {
			text += " " + x.Text + "."
		}
		fmt.Fprintf(w, "::%s %stitle=%s::%s\n", level, place, commandProperty.Replace(inert.Text("memtox gate: "+c.Name)),
			commandData.Replace(inert.Text(text)))
	}
	if len(r.Checks) == 0 {
		fmt.Fprintln(w, "::warning title=memtox gate::there was nothing to check")
	}
}
