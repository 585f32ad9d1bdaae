package attacks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/datasets"
)

// maxFamilyFile is the largest family file, in bytes.
const maxFamilyFile = 1 << 20

// ownSeed compiles families that belong to no built-in set.
const ownSeed = 1

// What a family file has, and what it has besides since outcomes are states.
var (
	isFamily = regexp.MustCompile(`(?m)^family:`)
	isState  = regexp.MustCompile(`(?m)^(solve|asks):`)
)

// Open opens a set by name or file, as [datasets.Open] does, and besides that a
// family file, or a folder of them, whose cases it compiles. Such a set is held to
// the rules of the built-in ones.
func Open(ctx context.Context, nameOrFile string) (*datasets.Set, error) {
	if _, err := os.Stat(nameOrFile); err != nil || slices.Contains(datasets.Names(), nameOrFile) {
		return datasets.Open(ctx, nameOrFile)
	}
	families, err := Load(nameOrFile)
	if err != nil {
		return nil, err
	}
	if families == nil {
		return datasets.Open(ctx, nameOrFile)
	}
	cases, err := Compile(families, ownSeed)
	if err != nil {
		return nil, err
	}
	set, err := datasets.NewSet(name(nameOrFile), cases)
	if err == nil {
		set.Builtin = true
	}
	return set, err
}

// Load reads a family file, or every one of a folder and of its folders tune and
// report; nil where the path names neither.
func Load(path string) ([]*Family, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if st.IsDir() {
		files = nil
		for _, under := range []string{"*.yaml", "tune/*.yaml", "report/*.yaml"} {
			more, err := filepath.Glob(filepath.Join(path, under))
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
		if files == nil {
			return nil, &datasets.Error{File: path, What: "no family file is there, nor in its folders tune and report",
				Remedy: "name a set, a file of cases, a family file or a folder of families"}
		}
	}
	var out []*Family
	var errs []error
	stands := map[string]string{} // in which file a family is
	for _, file := range files {
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() || st.Size() > maxFamilyFile ||
			filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".yml" {
			return nil, nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !isFamily.Match(data) {
			return nil, nil
		}
		if !isState.Match(data) {
			return nil, &datasets.Error{File: file, Line: 1, Column: 1, What: "the family has neither solve: nor asks:",
				Remedy: "say by which calls its task is done; 'memtox datasets new' writes a family to begin with"}
		}
		f, err := Parse(file, splitOf(file), data)
		if other := stands[name(file)]; err == nil && other != "" {
			err = &datasets.Error{File: file, Line: 1, Column: 1, What: "the family is in " + datasets.Quote(other) + " already",
				Remedy: "rename one of the two files"}
		}
		stands[name(file)] = file
		errs = append(errs, err)
		out = append(out, f)
	}
	return out, errors.Join(errs...)
}

// splitOf is the split of a family file: the folder tune or report that it is in.
// A file elsewhere has none.
func splitOf(file string) datasets.Split {
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	split := datasets.Split(filepath.Base(filepath.Dir(file)))
	if split != datasets.Tune && split != datasets.Report {
		return ""
	}
	return split
}

// name is a file's name without what it ends in: that of its family.
func name(file string) string {
	return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
}
