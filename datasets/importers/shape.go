package importers

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

// shape says how a part of a case is made that has parts itself: a turn, a segment, a
// record around the gate, the later session. It has the fields of a case file.
type shape struct {
	// whole is a path to what has the form of a case file already.
	whole *expr
	// each makes an item of everything that stands there, and where chooses.
	each   *expr
	where  []condition
	of     reflect.Type
	exprs  map[string]*expr
	shapes map[string][]*shape
}

// shapes are the fields of a case that have parts, and what these are.
var shapes = map[string]reflect.Type{"write": reflect.TypeFor[datasets.Turn](), "inject": reflect.TypeFor[datasets.Injected](),
	"retrieval": reflect.TypeFor[datasets.Retrieval]()}

// mains are the fields without which there is no such part: where the record has none, the
// part is left out.
var mains = map[reflect.Type]string{shapes["write"]: "user", shapes["inject"]: "text", shapes["retrieval"]: "query",
	reflect.TypeFor[datasets.Segment](): "text"}

// parseShapes reads a list of parts, or one that stands by itself. An empty list is not nil.
func parseShapes(n settings.Node, of reflect.Type) (out []*shape, err error) {
	out = []*shape{}
	nodes := []settings.Node{n}
	if n.IsSequence() {
		if nodes, err = n.Items(); err != nil {
			return nil, err
		}
	}
	for _, n := range nodes {
		s, err := parseShape(n, of)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func parseShape(n settings.Node, of reflect.Type) (*shape, error) {
	s := &shape{of: of, exprs: map[string]*expr{}, shapes: map[string][]*shape{}}
	types := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		types[name] = f.Type
	}
	main := mains[of]
	if _, _, err := n.Scalar(); err == nil {
		if s.whole, err = parseExpr(n, 0); err == nil && s.whole.literal {
			err = n.Errorf("a text stands where fields belong: write `%s: $.path`, or a path to what has the form of a case file", main)
		}
		return s, err
	}
	err := n.Each(func(e settings.Entry) (err error) {
		switch t, ok := types[e.Key]; {
		case e.Key == "each":
			var p *path
			if p, err = pathOf(e.Value, "$@"); err == nil {
				s.each = pathExpr(p)
			}
		case e.Key == "where":
			s.where, err = conditions(e.Value)
		case !ok:
			err = settings.Unknown(e.At.Place(), "key", e.Key,
				append(slices.Sorted(maps.Keys(types)), "each", "where"))
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			s.shapes[e.Key], err = parseShapes(e.Value, t.Elem())
		default:
			s.exprs[e.Key], err = parseExpr(e.Value, 0)
		}
		return err
	})
	if err == nil && s.exprs[main] == nil {
		err = n.Errorf("lacks %s: say where it stands, as in `%s: $.path`", main, main)
	}
	return s, err
}

// use is an expression of a mapping and where it stands.
type use struct {
	at string
	*expr
	bound bool // an each: around it says what @ is
	must  bool // at least one record should have it
}

func (s *shape) uses(at string, bound bool, yield func(use)) {
	if s.whole != nil {
		yield(use{at, s.whole, bound, !bound})
	}
	if s.each != nil {
		yield(use{at + ".each", s.each, bound, !bound})
		bound = true
	}
	for _, c := range s.where {
		yield(use{at + ".where", c.of, bound, false})
	}
	for name, e := range s.exprs {
		yield(use{at + "." + name, e, bound, !bound && s.where == nil})
	}
	for name, all := range s.shapes {
		for _, one := range all {
			one.uses(at+"."+name, bound, yield)
		}
	}
}

func (r *reader) parts(of []*shape, at string) *value {
	out := &value{kind: list}
	for _, s := range of {
		here := func() string { return at + "[" + strconv.Itoa(len(out.items)) + "]" }
		add := func() {
			if keep, err := takes(s.where, r.s); err != nil {
				r.fail(here(), err.Error(), "mend the record or the condition")
			} else if v, ok := r.part(s, here(), keep); ok {
				out.items = append(out.items, *v)
			}
		}
		switch {
		case s.whole != nil:
			if v, ok := r.eval(s.whole, here()); ok && v.kind == list {
				out.items = append(out.items, v.items...)
			} else if ok {
				out.items = append(out.items, *v)
			}
		case s.each == nil:
			add()
		default:
			items, ok := r.eval(s.each, here())
			if ok && items.kind != list && items.kind != object {
				r.fail(here(), items.kind.String()+" stands at "+s.each.paths[0].text, "name a list or an object of items")
			}
			outer := r.s
			for i := 0; ok && r.err == nil && i < len(items.items); i++ {
				in := *outer
				in.item, in.itemKey = &items.items[i], items.nameOf(i)
				r.s = &in
				add()
			}
			r.s = outer
		}
	}
	return out
}

// part makes one part. ok is false where the record has none.
func (r *reader) part(s *shape, at string, keep bool) (out *value, ok bool) {
	if !keep {
		return nil, false
	}
	out = &value{kind: object}
	put := func(name string, v *value) {
		out.names, out.items = append(out.names, name), append(out.items, *v)
	}
	main := mains[s.of]
	for f := range s.of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := at + "." + name
		e := s.exprs[name]
		switch {
		case s.shapes[name] != nil:
			if v := r.parts(s.shapes[name], field); len(v.items) > 0 {
				put(name, v)
			}
		case e == nil:
			if name == "medium" && main == "text" && s.of != shapes["inject"] {
				put(name, textOf(string(memory.MCP)))
			}
		case f.Type.Kind() == reflect.Bool:
			if yes, ok := r.truthOf(e, field); ok && yes {
				put(name, &value{kind: boolean, text: "true"})
			}
		case f.Type.Kind() == reflect.Int:
			if t := r.textOf(e, name, field); t != "" {
				if _, err := strconv.ParseUint(t, 10, 31); err != nil {
					r.fail(field, datasets.Quote(t)+" is no whole number from 0 to 2147483647", "mend the record or the mapping")
				}
				put(name, &value{kind: number, text: t})
			}
		case f.Type.Kind() == reflect.Slice:
			if texts := r.textsOf(e, field); len(texts) > 0 {
				v := &value{kind: list}
				for _, t := range texts {
					v.items = append(v.items, *textOf(t))
				}
				put(name, v)
			}
		case name == main:
			var isJSON bool
			var t string
			if t, isJSON, ok = r.contentOf(e, field); ok {
				put(name, textOf(t))
				if isJSON {
					r.x.ledger.JSONTexts++
				}
			}
		default:
			if t := r.textOf(e, name, field); t != "" {
				put(name, textOf(t))
			}
		}
	}
	if _, segments := out.field("segments"); !ok && segments {
		r.fail(at+"."+main, "missing, while segments are there", "say what the user says there: `[$.path, \"Go on.\"]` is the second "+
			"where the first is missing")
	}
	return out, ok && r.err == nil
}
