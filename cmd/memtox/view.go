package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/report"
	"github.com/memtox/memtox/results/view"
)

func newView(env *Env, c *cobra.Command) action {
	port := c.Flags().Uint16("port", 0, "Listen on this `PORT` of the loopback interface; 0 takes a free one")
	show := c.Flags().Bool("open", false, "Open the page in the browser")
	trial := c.Flags().String("trial", "", "Open at the trial with this `ID`")
	bundle := c.Flags().String("bundle", "", "Write the pages into the new folder `DIR` instead of serving them")
	return func(ctx context.Context, args []string) error {
		dir := append(args, "runs")[0]
		runs, err := view.NewRuns(env.path(dir))
		if err != nil {
			return err
		}
		defer runs.Close()
		if *bundle != "" {
			if err := writeBundle(ctx, env, runs, dir, *bundle); err != nil || !*show {
				return err
			}
			page, err := filepath.Abs(filepath.Join(env.path(*bundle), "index.html"))
			if err != nil {
				return err
			}
			return openPage(page)
		}
		l, err := view.Listen(int(*port))
		if err != nil {
			return &settings.Problem{Where: "--port", Err: err, Hint: "leave it out to take a free one"}
		}
		defer context.AfterFunc(ctx, func() { l.Close() })()
		s := view.NewServer(runs)
		s.Trial = *trial
		if _, err := fmt.Fprintf(env.Stdout, "%s\n", s.URL(l.Addr())); err != nil {
			return fmt.Errorf("printing the address: %w", err)
		}
		if *show {
			remove, err := openAddress(s.URL(l.Addr()))
			defer remove()
			if err != nil {
				env.say("%v: open that address in a browser on this machine", err)
			}
		}
		env.say("open that address in a browser on this machine; interrupt to stop")
		return s.Serve(l)
	}
}

// writeBundle writes the pages of runs, with their reports.
func writeBundle(ctx context.Context, env *Env, runs *view.Runs, dir, to string) error {
	last := time.Now()
	err := runs.Bundle(env.path(to), func(key string, n int) (name string, err error) {
		name = fmt.Sprintf("report-%d.html", n)
		return name, readRun(filepath.Join(env.path(dir), filepath.FromSlash(key)), func(r *results.Reader) error {
			rep, err := report.Read(ctx, r, report.Options{Summary: summaryOptions(0),
				Viewer: "index.html#/trial?" + url.Values{"run": {key}}.Encode()})
			if err != nil {
				return err
			}
			return env.output(filepath.Join(to, name), rep.HTML)
		})
	}, func(trials int64) error {
		if time.Since(last) > 5*time.Second {
			last = time.Now()
			env.say("%d trials are in the bundle", trials)
		}
		return context.Cause(ctx)
	})
	if errors.Is(err, fs.ErrExist) {
		return &settings.Problem{Where: "--bundle", What: to, Err: errors.New("the folder is not empty"),
			Hint: "name a new one"}
	}
	if err != nil {
		return fmt.Errorf("writing the bundle %s: %w", to, err)
	}
	env.say("the pages are in %s: open %s in a browser, or put the folder on any web host", to, filepath.Join(to, "index.html"))
	return nil
}

// openAddress opens an address in the browser by a file that leads to it: other users of
// this machine can read the arguments of a program, and the address has a token. remove
// removes the file.
func openAddress(address string) (remove func(), err error) {
	f, err := os.CreateTemp("", "memtox-view-*.html") // for this user alone
	if err != nil {
		return func() {}, err
	}
	remove = func() { os.Remove(f.Name()) }
	_, err = fmt.Fprintf(f, "<!DOCTYPE html><title>memtox view</title><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
		html.EscapeString(address))
	if err = errors.Join(err, f.Close()); err != nil {
		return remove, err
	}
	return remove, openPage(f.Name())
}

// openPage has the system open a file in the browser.
func openPage(path string) error {
	command := map[string]string{"darwin": "open", "windows": "rundll32 url.dll,FileProtocolHandler"}[runtime.GOOS]
	if command == "" {
		command = "xdg-open"
	}
	argv := append(strings.Fields(command), path)
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("opening a browser: %w", err)
	}
	go cmd.Wait() // it may stay as long as the browser
	return nil
}
