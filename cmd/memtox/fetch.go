package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets/importers"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
)

func newDatasetsFetch(env *Env, c *cobra.Command) action {
	var names, about []string
	for _, s := range importers.Sources() {
		names = append(names, s.Name)
		where := "downloaded"
		if s.Offline != "" {
			where = "only with --from"
		}
		about = append(about, fmt.Sprintf("  %-10s %s (%s at %.7s, %s; %s)", s.Name, s.About, s.Repository, s.Commit,
			s.Licence, where))
	}
	c.Long = strings.Replace(c.Long, "SETS", strings.Join(about, "\n"), 1)
	dir := c.Flags().StringP("output", "o", ".", "the `folder` to put the files in")
	from := c.Flags().String("from", "", "a `folder` that has the files: nothing is downloaded")
	mirror := c.Flags().String("mirror", "", "a `URL` that has the repositories' files under OWNER/NAME/COMMIT/PATH, "+
		"instead of GitHub")
	c.ValidArgsFunction = cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	return func(ctx context.Context, args []string) error {
		s, known := importers.Find(args[0])
		if !known {
			return settings.Unknown("", "set", args[0], names)
		}
		o := importers.Options{Base: *mirror,
			Say: func(line string) { fmt.Fprintf(env.Stderr, "memtox: %s\n", inert.Text(line)) }}
		if *from != "" {
			o.From = env.path(*from)
		}
		if s.Offline != "" && *from == "" {
			return &settings.Problem{What: s.Name + " cannot be downloaded: " + s.Offline,
				Hint: "with " + s.Files[0].Name + " in a folder: --from DIR"}
		}
		paths, err := importers.Fetch(ctx, s, env.path(*dir), o)
		var mismatch *importers.MismatchError
		switch {
		case errors.Is(err, fs.ErrNotExist) && *from != "", errors.As(err, &mismatch):
			return &settings.Problem{Err: err}
		case err != nil:
			return err
		}
		var files []string
		for _, p := range paths {
			files = append(files, inert.Shell(filepath.Join(*dir, filepath.Base(p))))
		}
		_, err = fmt.Fprintf(env.Stdout, "%s is there (%s). Next: memtox datasets import %s %s -o %s.jsonl\n", s.Name,
			s.Licence, s.Format, strings.Join(files, " "), s.Name)
		return err
	}
}
