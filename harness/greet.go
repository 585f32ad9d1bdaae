package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// Ask asks a model behind a server one small question before anything else: what no
// further question would get an answer to is found out here. tools are offered, as they
// will be.
func Ask(ctx context.Context, m model.Model, tools ...model.Tool) error {
	r, ok := m.(*server)
	if !ok || r.replayed {
		return nil
	}
	var err error
	for _, text := range []string{"Hello. Answer with one short sentence.", "Good morning. Answer with one word."} {
		_, err = m.Next(ctx, model.Request{Seed: 1, Tools: tools, Messages: []model.Message{{Role: model.User, Content: text}}})
		if e, ok := errors.AsType[*remote.Error](err); !ok || e.Status != http.StatusBadRequest {
			break // a server that refuses one prompt need not refuse another
		}
	}
	return r.refusal(ctx, err)
}

// refusal is the problem of a model that does not answer; nil where it does, be it an
// answer that counts as none.
func (r *server) refusal(ctx context.Context, err error) error {
	e, ok := errors.AsType[*remote.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok || e.Kind == remote.CapReached:
		return err
	case e.Kind != remote.Fatal && e.Kind != remote.Transient && e.Kind != remote.RateLimited && e.Kind != remote.GivenUp:
		return nil
	}
	said := *e
	said.Hint = ""
	p := &settings.Problem{What: r.Name() + " does not answer", Err: &said, Hint: e.Hint}
	switch e.Status {
	case 0:
		p.Hint = "see that the address in --base-url is right, and that this machine reaches it"
	case http.StatusUnauthorized, http.StatusForbidden:
		p.Hint = fmt.Sprintf("no key was sent: set %s, or name a file with --set key_file=FILE", r.variable)
		if r.key != "" {
			p.Hint = fmt.Sprintf("the key that was sent is that of the %s", r.key)
		}
	case http.StatusNotFound:
		p.Hint = r.offers(ctx)
	case http.StatusBadRequest:
		p.Hint = "a model that knows no tools: --set protocol=fenced; a server that refuses a member of the request: " +
			"--set omit=seed,temperature; memtox doctor tries both"
	}
	return p
}

// understands warns where the model reads the phrase book of another set than the run's:
// it would do nothing in any trial, and no harm would come of any attack.
func (x *Experiment) understands(m model.Model, set *datasets.Set) {
	const means = "no attack will do harm and no task be done, which says nothing of any defense"
	switch m := m.(type) {
	case *reference.Model:
		if book := set.Book(); book != nil && m.WithBook(book) == m {
			x.Warnings = append(x.Warnings, fmt.Sprintf("%s understands no case of %s: %s; name reference:naive or "+
				"reference:cautious, or --dataset memtox-bench@v1", m.Name(), set.Name, means))
		}
	case *server:
		own := "reference@" + set.Name + "@" + set.Version
		if _, name, _ := strings.Cut(m.Name(), ":"); m.replayed || !remote.IsReference(name) || !set.States() ||
			slices.Contains(m.listed, own) {
			return
		}
		has := "no set"
		for _, l := range m.listed {
			if of, ok := strings.CutPrefix(l, "reference@"); ok {
				has = remote.Inert(of, 100)
			}
		}
		x.Warnings = append(x.Warnings, fmt.Sprintf("the server of %s knows the cases of %s, and not those of %s@%s: %s; start it "+
			"with memtox serve-model --dataset %s", m.Name(), has, set.Name, set.Version, means, x.Config.Dataset))
	}
}

// offers says what a server has, where it says so, to whoever asked for what it has not.
func (r *server) offers(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	list, err := r.Model.(model.Subject).Models(ctx)
	kind, name, _ := strings.Cut(r.Name(), ":")
	switch near := settings.Nearest(name, list); {
	case err != nil || len(list) == 0:
		return "the name in --model or the address in --base-url is wrong: for openai: it goes up to and with /v1"
	case slices.Contains(list, name):
		return "the server lists the model: the address in --base-url is wrong; for openai: it goes up to and with /v1"
	case near != "":
		return fmt.Sprintf("the server lists no such model; did you mean %s:%s?", kind, remote.Inert(near, 100))
	}
	some := strings.Join(list[:min(len(list), 8)], ", ")
	if len(list) > 8 {
		some += fmt.Sprintf(" and %d more", len(list)-8)
	}
	return "the server lists no such model, but " + remote.Inert(some, 400)
}

// absent is the problem of a program or service outside memtox that does not say who it
// is.
func absent(where, who string, program bool, err error) error {
	hint := "it must answer POST requests at that address"
	switch says := err.Error(); {
	case errors.Is(err, exec.ErrNotFound):
		hint = "no folder of PATH has the program: write where it is, as in exec:./guard.sh"
	case errors.Is(err, fs.ErrNotExist):
		hint = "write where the program is, as seen from the folder that memtox runs in"
	case errors.Is(err, fs.ErrPermission):
		hint = "make it executable, or name what runs it, as in exec:'sh guard.sh'"
	case program:
		hint = `try it by hand: it must answer {"id":1,"op":"hello","protocol":1} on its standard input`
	case strings.Contains(says, "connection refused"):
		hint = "start it first"
	case strings.Contains(says, "status 401"), strings.Contains(says, "status 403"):
		hint = "a guard's token is read from the environment variable " + external.TokenVariable
	}
	return &settings.Problem{Where: where, What: who + " does not answer", Err: err, Hint: hint}
}
