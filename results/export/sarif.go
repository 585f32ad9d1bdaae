package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
)

// Schema is where the schema of the format stands.
const Schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// Tool is what found.
type Tool struct {
	Name    string
	Version string // empty where it has none
	URI     string // its home; may be empty
}

// Rule is a kind of finding.
type Rule struct {
	ID    string // stable: services group by it
	Short string // what it is about, in a sentence
	Help  string // what a reader can do about it; may be empty
}

// Finding is one result.
type Finding struct {
	Rule    string // id of a rule
	Level   Level
	Message string
	// File is a path, relative to where the results are read, or absolute; Line
	// is from 1, 0 for the whole file. Services want a file for every finding.
	File string
	Line int
	// Name says what it is about where that is not a place in a file, as in
	// hermes/guard/policy_fact.
	Name string
	// Identity is what makes a finding the one that it is: equal in every run in
	// which the same thing is found. It becomes the fingerprint.
	Identity []string
	// Properties are figures for programs. Keys are the caller's own.
	Properties map[string]any
}

// FingerprintKey is the name, with its version, under which the fingerprint
// stands.
const FingerprintKey = "memtoxIdentity/v1"

// Fingerprint returns the hash of an identity, as 64 hexadecimal digits.
func Fingerprint(identity []string) string {
	var b strings.Builder
	for _, s := range identity {
		fmt.Fprintf(&b, "%d:%s", len(s), s)
	}
	h := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(h[:])
}

type message struct {
	Text string `json:"text"`
}

type driver struct {
	Name           string `json:"name"`
	Version        string `json:"version,omitempty"`
	InformationURI string `json:"informationUri,omitempty"`
	Rules          []rule `json:"rules"`
}

type rule struct {
	ID               string   `json:"id"`
	ShortDescription message  `json:"shortDescription"`
	Help             *message `json:"help,omitempty"`
}

type result struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           int               `json:"ruleIndex"`
	Level               Level             `json:"level"`
	Message             message           `json:"message"`
	Locations           []location        `json:"locations,omitempty"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
	Properties          map[string]any    `json:"properties,omitempty"`
}

type location struct {
	Physical map[string]any      `json:"physicalLocation,omitempty"`
	Logical  []map[string]string `json:"logicalLocations,omitempty"`
}

// WriteSARIF writes a log of one run. No finding is fine: it says that nothing was
// found. A finding of an unknown rule is an error.
func WriteSARIF(w io.Writer, tool Tool, rules []Rule, findings []Finding) error {
	d := driver{Name: inert.Text(tool.Name), Version: inert.Text(tool.Version), InformationURI: tool.URI, Rules: []rule{}}
	for _, r := range rules {
		x := rule{ID: inert.Text(r.ID), ShortDescription: message{plain(r.Short)}}
		if r.Help != "" {
			x.Help = &message{plain(r.Help)}
		}
		d.Rules = append(d.Rules, x)
	}
	list := []result{}
	for _, f := range findings {
		at := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.Rule })
		if at < 0 {
			return fmt.Errorf("writing SARIF: a finding is of rule %q, which is not among the rules", f.Rule)
		}
		r := result{RuleID: d.Rules[at].ID, RuleIndex: at, Level: f.Level, Message: message{plain(f.Message)},
			PartialFingerprints: map[string]string{FingerprintKey: Fingerprint(f.Identity)}, Properties: f.Properties}
		var l location
		if f.File != "" {
			l.Physical = map[string]any{"artifactLocation": map[string]string{"uri": reference(f.File)}}
			if f.Line > 0 {
				l.Physical["region"] = map[string]int{"startLine": f.Line}
			}
		}
		if f.Name != "" {
			l.Logical = []map[string]string{{"fullyQualifiedName": inert.Text(f.Name)}}
		}
		if l.Physical != nil || l.Logical != nil {
			r.Locations = []location{l}
		}
		list = append(list, r)
	}
	b, err := json.MarshalIndent(map[string]any{
		"$schema": Schema, "version": "2.1.0",
		"runs": []any{map[string]any{"tool": map[string]any{"driver": d}, "columnKind": "unicodeCodePoints",
			"results": list}},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	_, err = w.Write(append(inert.JSON(b), '\n'))
	return err
}

// plain makes a text a message string: braces are doubled because single ones
// hold placeholders, and "](" is parted because it makes an embedded link.
func plain(s string) string {
	return strings.NewReplacer("{", "{{", "}", "}}", "](", "] (").Replace(inert.Text(s))
}

// reference is a path as a URI reference.
func reference(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return u.String()
}
