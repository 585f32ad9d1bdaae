package datasets

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v4"
)

//go:generate go test ../attacks -run TestSetsAreWhatTheirFamiliesCompileTo -update

// setFiles holds the built-in sets, sets/NAME/VERSION each: what set.yaml says of
// it, and the cases, compiled from template families or as a person wrote them.
// The families themselves stay out of the program.
//
//go:embed sets/*/*/*.yaml sets/*/*/cases.*
var setFiles embed.FS

// Builtin describes a set that is part of memtox.
type Builtin struct {
	Name    string `yaml:"-"`
	Version string `yaml:"-"`
	About   string // one line
	Seed    uint64 // with which its families are compiled: no name of one set turns up in another
	// Draft is a version that the set's name does not stand for yet, and that may change.
	Draft bool

	folder string
}

// Builtins lists the built-in sets by name. Listing reads none of their cases.
func Builtins() []Builtin { return slices.Clone(builtins()) }

var builtins = sync.OnceValue(func() (list []Builtin) {
	cards, err := fs.Glob(setFiles, "sets/*/*/set.yaml")
	for _, card := range cards {
		folder := path.Dir(card)
		b := Builtin{Name: path.Base(path.Dir(folder)), Version: path.Base(folder), folder: folder}
		var data []byte
		if data, err = setFiles.ReadFile(card); err == nil {
			err = yaml.Unmarshal(data, &b)
		}
		if err != nil {
			break
		}
		list = append(list, b)
	}
	if err != nil {
		panic("datasets: " + err.Error()) // a test lists them all
	}
	return list
})

// builtin finds a set by its name, which is that of its newest version, or by name and
// version, as in memtox-bench@v1.
func builtin(name string) (Builtin, bool) {
	for _, b := range slices.Backward(builtins()) {
		if name == b.Name && !b.Draft || name == b.Name+"@"+b.Version {
			return b, true
		}
	}
	return Builtin{}, false
}

// At names a built-in set in the version in which something was made of it: a name
// stands for the newest. Any other name or file is returned as it is.
func At(name, version string) string {
	if now, ok := builtin(name); ok && now.Name == name && now.Version != version {
		if _, ok := builtin(name + "@" + version); ok {
			return name + "@" + version
		}
	}
	return name
}

// Full names a built-in set with its version, which is the newest where the name has
// none. Any other name is returned as it is.
func Full(name string) string {
	if b, ok := builtin(name); ok {
		return b.Name + "@" + b.Version
	}
	return name
}

// Names lists the names of the built-in sets.
func Names() []string {
	var names []string
	for _, b := range builtins() {
		names = append(names, b.Name)
	}
	return slices.Compact(names)
}

// open reads the set. The cases in YAML are those of all files of its folder, in
// the order of the files' names.
func (b Builtin) open(ctx context.Context) (*Set, error) {
	s := &Set{Name: b.Name, Version: b.Version, Builtin: true, file: b.Name}
	packed, err := setFiles.ReadFile(b.folder + "/cases.jsonl.zst")
	switch {
	case err == nil:
		err = s.unpack(ctx, packed, b.folder)
	case errors.Is(err, fs.ErrNotExist):
		err = s.readFolder(ctx, b.folder)
	}
	if err == nil {
		s, err = s.finish()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the built-in set %s: %w", b.Name, err)
	}
	return s, nil
}

func (s *Set) readFolder(ctx context.Context, folder string) error {
	files, err := fs.Glob(setFiles, folder+"/*.yaml")
	for _, file := range files {
		if path.Base(file) == "set.yaml" {
			continue
		}
		data, err := setFiles.ReadFile(file)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := s.readYAML(bytes.NewReader(data)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return err
}

// unpack reads compiled cases and holds them to the checksum beside them, which is
// that of the canonical lines and so the digest of the set.
func (s *Set) unpack(ctx context.Context, packed []byte, folder string) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		return err
	}
	checksum, err := setFiles.ReadFile(folder + "/cases.sha256")
	if err != nil {
		return err
	}
	s.SHA256, _, _ = strings.Cut(string(checksum), " ")
	if got := sum(data); got != s.SHA256 {
		return fmt.Errorf("the cases have SHA-256 %s, the checksum beside them says %s; run go generate ./datasets", got,
			s.SHA256)
	}
	return s.readLines(ctx, bytes.NewReader(data))
}
