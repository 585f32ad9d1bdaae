// Command site renders the pages of the repository as a static site: HTML that
// loads nothing and needs no server. Only search.html runs a script, its own.
//
//	go run ./scripts/site -o site
//
// docs/README.md is the first page and the navigation: its headings are the
// groups, its links the pages. Links between pages are rewritten, links to other
// files of the repository lead to where it is published. A broken link, an
// anchor that no heading has, raw HTML and a picture that is no PNG file of the
// repository are errors, with file and line; so is a page that the index does not name.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("o", "site", "the folder that the site is written to; files of the same names are replaced")
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "site: %q is no argument: give the folder as -o\n", flag.Arg(0))
		os.Exit(2)
	}
	files, err := build(os.DirFS(*root))
	if err == nil {
		err = write(*out, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s: open %s\n", len(files), *out, filepath.Join(*out, "index.html"))
}

func write(out string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
