package view

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
)

// blockTrials of a run stand in one file of a bundle: few files, and each loads at once.
const blockTrials = 64

// bundlePolicy is [door.Policy] for files: a page may load those beside it, as scripts alone,
// under names that its own script checks.
const bundlePolicy = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types memtox-bundle"

// Bundle writes the pages of all runs into a folder, which it makes: a site that any host
// of files serves, and that opens from the disk. What was read stands in base64, packed:
// no text of a run can be a script. report, if it is not nil, writes a run's report to a
// file of the folder and returns its name; say is told of every block, and
// ends it with an error.
func (r *Runs) Bundle(dir string, report func(key string, n int) (string, error), say func(trials int64) error) error {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return fmt.Errorf("%s is not empty: %w", dir, fs.ErrExist)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o777); err != nil {
		return err
	}
	list, err := r.List()
	if err != nil {
		return err
	}
	b := bundle{dir: dir, say: say, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), failed: make(chan error, 1)}
	for n := range list {
		if list[n].Error != "" {
			continue
		}
		if err := b.run(r, &list[n], n); err != nil {
			return errors.Join(fmt.Errorf("bundling the run %s: %w", list[n].Key, err), b.wait())
		}
		if report == nil {
			continue
		}
		if list[n].Report, err = report(list[n].Key, n); err != nil {
			return errors.Join(err, b.wait())
		}
	}
	b.put("runs", map[string]any{"runs": list, "block": blockTrials})
	if err := b.wait(); err != nil {
		return err
	}
	for _, name := range []string{"app.js", "style.css", "favicon.svg", "index.html"} { // the page last
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // the folder is embedded
		}
		if name == "index.html" {
			text = []byte(strings.NewReplacer("<html lang=\"en\" data-tabs>\n<head>", "<html lang=\"en\" data-bundle>\n<head>\n"+
				`<meta http-equiv="Content-Security-Policy" content="`+bundlePolicy+`">`,
				`<script src="door.js" defer></script>`+"\n", "").Replace(string(text)))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "heat.css"), []byte(render.HeatStyle), 0o666)
}

// bundle packs and writes files on all processors.
type bundle struct {
	dir    string
	say    func(int64) error
	slots  chan struct{}
	failed chan error // the first
}

// put writes a file of data.
func (b *bundle) put(name string, v any) {
	plain, err := json.Marshal(v)
	b.slots <- struct{}{}
	go func() {
		defer func() { <-b.slots }()
		var packed bytes.Buffer
		if err == nil {
			z := gzip.NewWriter(&packed)
			z.Write(plain)
			err = z.Close()
		}
		if err == nil {
			text := `memtoxData("` + base64.StdEncoding.EncodeToString(packed.Bytes()) + "\");\n"
			err = os.WriteFile(filepath.Join(b.dir, "data", name+".js"), []byte(text), 0o666)
		}
		if err != nil {
			select {
			case b.failed <- err:
			default:
			}
		}
	}()
}

// wait returns the first error once all is written.
func (b *bundle) wait() error {
	for range cap(b.slots) {
		b.slots <- struct{}{}
	}
	for range cap(b.slots) {
		<-b.slots
	}
	select {
	case err := <-b.failed:
		return err
	default:
		return nil
	}
}

func (b *bundle) run(r *Runs, info *RunInfo, n int) error {
	o, err := r.open(info.Key)
	if err != nil {
		return err
	}
	f, err := o.figures()
	if err != nil {
		return err
	}
	name := func(what any) string { return fmt.Sprintf("%d-%v", n, what) }
	b.put(name("figures"), f)
	rows, err := results.OpenReader(o.dir)
	if err != nil {
		return err
	}
	defer rows.Close()
	t, err := readTable(rows)
	if err != nil {
		return err
	}
	b.put(name("table"), t.sent(info.Key, 1))
	texts, err := results.OpenReader(o.dir) // a reader does one thing at a time
	if err != nil {
		return err
	}
	defer texts.Close()
	block, done := newPool(), int64(0)
	flush := func() error {
		b.put(name((done-1)/blockTrials), block)
		block = newPool()
		return b.say(done)
	}
	for e, err := range rows.Entries(results.Everything) {
		if err != nil {
			return err
		}
		text, err := texts.Transcript(e.Trial.ID)
		page, err := json.Marshal(pageOf(e, text, err))
		if err != nil {
			return err
		}
		block.add(e.Trial.ID, page)
		if done++; done%blockTrials == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(block.Pages) > 0 {
		return flush()
	}
	return nil
}

// pool is pages whose longer texts stand once: those of a case are the same in every arm.
type pool struct {
	Texts []json.RawMessage          `json:"texts"`
	Pages map[string]json.RawMessage `json:"pages"`
	place map[string]int
}

func newPool() *pool { return &pool{Pages: map[string]json.RawMessage{}, place: map[string]int{}} }

// leastPooled is the length from which a text stands apart.
const leastPooled = 40

// add puts {"$":N} in the place of long texts. Members of a page have no such name.
func (p *pool) add(id string, page []byte) {
	var out []byte
	for {
		from := bytes.IndexByte(page, '"')
		if from < 0 {
			p.Pages[id] = append(out, page...)
			return
		}
		to := from + 1
		for page[to] != '"' {
			if page[to] == '\\' {
				to++
			}
			to++
		}
		to++
		text := page[from:to]
		out = append(out, page[:from]...)
		if page = page[to:]; len(text) < leastPooled || page[0] == ':' {
			out = append(out, text...)
			continue
		}
		n, known := p.place[string(text)]
		if !known {
			n = len(p.Texts)
			p.place[string(text)] = n
			p.Texts = append(p.Texts, slices.Clone(text))
		}
		out = strconv.AppendInt(append(out, `{"$":`...), int64(n), 10)
		out = append(out, '}')
	}
}
