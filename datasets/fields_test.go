package datasets

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page of case files has a row for every field that the decoder knows, in its
// order, and for no other.
func TestThePageOfCaseFilesNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	got := make(map[string][]string)
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, m := range row.FindAllStringSubmatch(body, -1) {
			got[title] = append(got[title], m[1])
		}
	}
	want := map[string][]string{}
	for title, v := range map[string]any{"A case": Case{}, "A turn (`write`)": Turn{}, "A segment (`segments`)": Segment{},
		"A record around the gate (`inject`)": Injected{}, "A text case (`text`)": Text{},
		"The retrieval session (`retrieval`)": Retrieval{}, "The outcome as a state (`state`)": State{}, "A slot (`slots`)": Slot{}} {
		want[title] = fieldNames(reflect.TypeOf(v))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	example := string(page)[strings.Index(string(page), "```json\n")+len("```json\n"):]
	if _, err := decodeCase(example[:strings.Index(example, "\n```")]); err != nil {
		t.Errorf("the example is no case: %v", err)
	}
}
