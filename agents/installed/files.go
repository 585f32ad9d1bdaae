package installed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// fill makes texts of a product's file, which are templates over the setup.
func (s *Setup) fill(text string) (string, error) {
	t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	}}).Parse(text)
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
			err = write(filepath.Join(dir, filepath.FromSlash(name)), content)
		}
		if err != nil {
			return fmt.Errorf("writing %s of %s: %w", name, s.Product.Name, err)
		}
	}
	return nil
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// maxFile bounds what is read of a product's file.
const maxFile = 4 << 20

// read reads a file that a product wrote: a link may lead anywhere, and a pipe nowhere.
func read(path string) (string, error) {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
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
func (p *Product) Remember(dir string, items []Item) error {
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
		path := filepath.Join(dir, filepath.FromSlash(s.File))
		content, err := read(path)
		if err == nil {
			if content = strings.TrimSpace(content); content != "" {
				fresh = slices.Insert(fresh, 0, content)
			}
			err = write(path, strings.Join(fresh, s.Separator))
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
			content, err := read(filepath.Join(dir, filepath.FromSlash(file)))
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
			content, err := read(filepath.Join(dir, filepath.FromSlash(file)))
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
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(pattern))); err != nil {
			return nil, nil
		}
		return []string{pattern}, nil
	}
	fixed, _, _ := strings.Cut(pattern, "*")
	root := filepath.FromSlash(fixed[:strings.LastIndexByte(fixed, '/')+1])
	err = filepath.WalkDir(filepath.Join(dir, root), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil && matches(pattern, filepath.ToSlash(rel)) {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
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
