package contradiction

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"strconv"
	"testing"
)

// wordIs compares lexicon entries, so a word that a rule names and the lexicon
// lacks would never match.
func TestRulesNameKnownWords(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		f, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "wordIs" {
				return true
			}
			for _, a := range call.Args {
				if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == gotoken.STRING {
					w, _ := strconv.Unquote(lit.Value)
					seen++
					if lexicon()[w] == nil {
						t.Errorf("a rule names %q, which is not in lexicon.txt", w)
					}
				}
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("no rules found")
	}
}

func TestForms(t *testing.T) {
	for form, lemma := range map[string]string{"stopped": "stop", "opened": "open", "carries": "carry", "kept": "keep",
		"written": "write",
		"teaches": "teach", "goes": "go", "preferred": "prefer", "lying": "lie", "using": "use", "left": "leave",
		"found": "find"} {
		if e := lexicon()[form]; e == nil || e.lemma != lemma {
			t.Errorf("%s: %+v, want %s", form, e, lemma)
		}
	}
	for noun, verb := range map[string]string{"owner": "own", "manager": "manage", "leader": "lead", "director": "direct",
		"editor": "edit", "phone": "telephone", "passcode": "password"} {
		if a, b := lexicon()[noun], lexicon()[verb]; a == nil || b == nil || a.stem != b.stem {
			t.Errorf("%s and %s name different slots", noun, verb)
		}
	}
}
