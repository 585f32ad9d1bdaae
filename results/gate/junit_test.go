package gate_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
)

// element is what the schema of JUnit reports allows and demands of an element:
// the subset that the JUnit readers of CI services share.
type element struct {
	must, may []string // attributes
	children  []string
	text      bool
}

var junitSchema = map[string]element{
	"testsuites": {must: []string{"name", "tests", "failures", "errors"}, children: []string{"testsuite"}},
	"testsuite": {must: []string{"name", "tests", "failures", "errors", "skipped"},
		children: []string{"properties", "testcase"}},
	"properties": {children: []string{"property"}},
	"property":   {must: []string{"name", "value"}},
	"testcase": {must: []string{"classname", "name"}, may: []string{"time"},
		children: []string{"failure", "error", "system-out"}},
	"failure":    {must: []string{"message", "type"}, text: true},
	"error":      {must: []string{"message", "type"}, text: true},
	"system-out": {text: true},
}

// checkJUnit validates a report: well formed, no other element or attribute,
// counts that are numbers and agree with the elements.
func checkJUnit(t *testing.T, b []byte) {
	t.Helper()
	if err := validJUnit(b); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

func validJUnit(b []byte) error {
	d := xml.NewDecoder(bytes.NewReader(b))
	var path []string
	seen := map[string]int{}
	counts := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch x := token.(type) {
		case xml.StartElement:
			name := x.Name.Local
			e, ok := junitSchema[name]
			if !ok {
				return fmt.Errorf("element %s is not in the schema", name)
			}
			if len(path) == 0 && name != "testsuites" || len(path) > 0 &&
				!slices.Contains(junitSchema[path[len(path)-1]].children, name) {
				return fmt.Errorf("element %s in %v", name, path)
			}
			path = append(path, name)
			seen[name]++
			have := []string{}
			for _, a := range x.Attr {
				have = append(have, a.Name.Local)
				if !slices.Contains(e.must, a.Name.Local) && !slices.Contains(e.may, a.Name.Local) {
					return fmt.Errorf("attribute %s of %s is not in the schema", a.Name.Local, name)
				}
				if slices.Contains([]string{"tests", "failures", "errors", "skipped"}, a.Name.Local) {
					n, err := strconv.Atoi(a.Value)
					if err != nil || n < 0 {
						return fmt.Errorf("%s of %s is %q", a.Name.Local, name, a.Value)
					}
					counts[a.Name.Local] = n
				}
			}
			for _, m := range e.must {
				if !slices.Contains(have, m) {
					return fmt.Errorf("%s has no attribute %s", name, m)
				}
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if len(path) > 0 && !junitSchema[path[len(path)-1]].text && len(bytes.TrimSpace(x)) > 0 {
				return fmt.Errorf("text in %v", path)
			}
		}
	}
	if counts["tests"] != seen["testcase"] || counts["failures"] != seen["failure"] || counts["errors"] != seen["error"] ||
		counts["skipped"] != 0 {
		return fmt.Errorf("the counts %v are not those of the elements %v", counts, seen)
	}
	return nil
}
