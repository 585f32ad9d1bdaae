package installed_test

import (
	"slices"
	"testing"

	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/agents/proxy/gate"
)

func TestProducts(t *testing.T) {
	if !slices.Contains(installed.Names(), "hermes") {
		t.Fatalf("there are the products %v, and no hermes", installed.Names())
	}
	p := installed.Find("hermes")
	if got := p.Version.Pattern.FindStringSubmatch("Hermes Agent v0.19.0 (2026.7.20)"); len(got) != 2 || got[1] != "0.19.0" {
		t.Errorf("the version of hermes is read as %q", got)
	}
	if said, is := p.User("Review the conversation above and save …"); said != "" || is != "review" {
		t.Errorf("a review's prompt is taken for the user's: %q, %q", said, is)
	}
	if said, is := p.User("Pay the invoice."); said != "Pay the invoice." || is != "" {
		t.Errorf("the user's words are taken for %q, %q", said, is)
	}
	if tool := p.Tool("skill_manage"); tool == nil || tool.Does != gate.Stores || tool.Ops["add"] != "create" {
		t.Errorf("skill_manage is %+v", tool)
	}
}
