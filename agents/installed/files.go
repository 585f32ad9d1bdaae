package installed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"

	"go.yaml.in/yaml/v4"
)

// fill makes texts of a product's file, which are templates over the setup.
func (s *Setup) fill(text string) (string, error) {
	t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	}, "has": slices.Contains[[]string]}).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, s)
	return b.String(), err
}

// Command is the command line that starts the product, and its environment.
func (s *Setup) Command() (args, env []string, err error) {
	for _, text := range s.Product.Run {
		arg, err := s.fill(text)
		if err != nil {
			return nil, nil, fmt.Errorf("the command of %s: %w", s.Product.Name, err)
		}
		args = append(args, arg)
	}
	env = []string{"PATH=" + s.Found.path(), "USER=memtox", "LOGNAME=memtox"}
	for name, text := range s.Product.Env {
		value, err := s.fill(text)
		if err != nil {
			return nil, nil, fmt.Errorf("the variable %s of %s: %w", name, s.Product.Name, err)
		}
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return args, env, nil
}

// Write writes the product's files, as its own file has them, into the box at dir.
func (s *Setup) Write(dir string) error {
	for name, text := range s.Product.Files {
		content, err := s.fill(text)
		if err == nil {
			content, err = lay(content, s.Product.over[name])
		}
		if err == nil {
			err = write(dir, name, content)
		}
		if err != nil {
			return fmt.Errorf("writing %s of %s: %w", name, s.Product.Name, err)
		}
	}
	return nil
}

// With is the product with settings laid over its files, by path: a mapping over one of
// YAML or JSON, a text behind any other. It has more stores too.
func (p *Product) With(over map[string]any, stores []Store) *Product {
	out := *p
	out.over, out.Stores = over, slices.Concat(p.Stores, stores)
	return &out
}

// lay lays settings over a file's content.
func lay(content string, over any) (string, error) {
	switch over := over.(type) {
	case nil:
		return content, nil
	case string:
		return strings.TrimRight(content, "\n") + "\n" + over, nil
	case map[string]any:
		var under map[string]any
		if err := yaml.Load([]byte(content), &under); err != nil { // JSON is YAML too
			return "", err
		}
		b, err := json.MarshalIndent(merge(under, over), "", "  ")
		return string(b), err
	}
	return "", fmt.Errorf("a %T cannot be laid over it", over)
}

// merge is a mapping with another laid over it: mappings of one key are merged.
func merge(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		a, ok := out[k].(map[string]any)
		if b, both := v.(map[string]any); ok && both {
			v = merge(a, b)
		}
		out[k] = v
	}
	return out
}

// write writes a file below dir. What a product left there may be a link to a file of the
// user's: a path does not lead out of dir.
func write(dir, name, content string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	name = filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return root.WriteFile(name, []byte(content), 0o600)
}

// maxFile bounds what is read of a product's file.
const maxFile = 4 << 20

// read reads a file below dir that a product wrote, "" if there is none. Links do not lead
// out of dir, and a pipe nowhere.
func read(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", cmp.Or(err, fmt.Errorf("%s is no regular file", name))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// split are the entries of a store's file.
func (s *Store) split(content string) (out []string) {
	entries := []string{content}
	if s.Separator != "" {
		entries = strings.Split(content, s.Separator)
	}
	for _, e := range entries {
		if e = strings.TrimPrefix(strings.TrimSpace(e), s.Mark); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// Remember puts items into the stores' files of the box at dir, behind what stands there.
// An item of no store is a file, and takes the place of what stands there.
func (p *Product) Remember(dir string, items []Item) error {
	for _, item := range items {
		if item.Store != "" {
			continue
		}
		if err := write(dir, item.File, item.Text); err != nil {
			return fmt.Errorf("writing %s: %w", item.File, err)
		}
	}
	for i := range p.Stores {
		s := &p.Stores[i]
		var fresh []string
		for _, item := range items {
			if item.Store == s.Name {
				fresh = append(fresh, s.Mark+item.Text)
			}
		}
		if len(fresh) == 0 {
			continue
		}
		content, err := read(dir, s.File)
		if err == nil {
			if content = strings.TrimSpace(content); content != "" {
				fresh = slices.Insert(fresh, 0, content)
			}
			err = write(dir, s.File, strings.Join(fresh, s.Separator))
		}
		if err != nil {
			return fmt.Errorf("writing %s of %s: %w", s.File, p.Name, err)
		}
	}
	return nil
}

// Picture is the memory of a product as it was at some time: entries of its stores, and
// its watched files.
type Picture struct {
	Items   []Item
	watched map[string]string // by path
}

// Look reads the memory of a product in the box at dir. Of the watched files that the
// picture before, which may be nil, has not, each is an item, and of the others those lines
// that it has not.
func (p *Product) Look(dir string, before *Picture) (*Picture, error) {
	out := &Picture{watched: map[string]string{}}
	fail := func(err error) error { return fmt.Errorf("reading the memory of %s: %w", p.Name, err) }
	for i := range p.Stores {
		s := &p.Stores[i]
		files, err := match(dir, s.File)
		if err != nil {
			return nil, fail(err)
		}
		for _, file := range files {
			content, err := read(dir, file)
			if err != nil {
				return nil, fail(err)
			}
			for _, e := range s.split(content) {
				out.Items = append(out.Items, Item{Store: s.Name, File: file, Text: e})
			}
		}
	}
	for _, pattern := range p.Watched {
		files, err := match(dir, pattern)
		if err != nil {
			return nil, fail(err)
		}
		for _, file := range files {
			content, err := read(dir, file)
			if err != nil {
				return nil, fail(err)
			}
			out.watched[file] = content
			if before == nil {
				continue
			}
			old, there := before.watched[file]
			if !there && strings.TrimSpace(content) != "" {
				out.Items = append(out.Items, Item{File: file, Text: strings.TrimSpace(content)})
				continue
			}
			was := strings.Split(old, "\n")
			var fresh []string
			for line := range strings.SplitSeq(content, "\n") {
				if strings.TrimSpace(line) != "" && !slices.Contains(was, line) {
					fresh = append(fresh, line)
				}
			}
			if len(fresh) > 0 {
				out.Items = append(out.Items, Item{File: file, Text: strings.Join(fresh, "\n")})
			}
		}
	}
	return out, nil
}

// match are the files of the box at dir whose paths match a pattern, in order.
func match(dir, pattern string) (out []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := root.Lstat(filepath.FromSlash(pattern)); err != nil {
			return nil, nil
		}
		return []string{pattern}, nil
	}
	fixed, _, _ := strings.Cut(pattern, "*")
	from := strings.TrimSuffix(fixed[:strings.LastIndexByte(fixed, '/')+1], "/")
	err = fs.WalkDir(root.FS(), cmp.Or(from, "."), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if matches(pattern, path) {
			out = append(out, path)
		}
		return nil
	})
	return out, err
}

// matches reports whether a path matches a glob in which ** is any number of folders.
func matches(pattern, path string) bool {
	want, rest, more := strings.Cut(pattern, "/")
	if want == "**" {
		for {
			if !more || matches(rest, path) {
				return true
			}
			_, below, ok := strings.Cut(path, "/")
			if !ok {
				return false
			}
			path = below
		}
	}
	have, below, deeper := strings.Cut(path, "/")
	if ok, err := filepath.Match(want, have); err != nil || !ok || more != deeper {
		return false
	}
	return !more || matches(rest, below)
}
