package importers

import (
	"context"
	"crypto/sha1" // git's own hash of a file, beside its size
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/internal/remote"
)

type Source struct {
	Name       string
	About      string // one line
	Repository string // owner/name on GitHub
	Commit     string
	Licence    string
	Format     string // with which `datasets import` reads the files
	Files      []File
	// Offline says why the files cannot be downloaded; empty where they can.
	Offline string
}

type File struct {
	Name string
	Path string // in the repository; empty where it is none of its files
	Size int64  // bytes
	Blob string // git's hash of the file: SHA-1 over "blob SIZE\0" and the content
}

//go:embed sources.yaml
var sourcesFile []byte

// Sources lists the sets that can be fetched.
func Sources() (list []Source) {
	if err := yaml.Unmarshal(sourcesFile, &list); err != nil {
		panic("importers: sources.yaml: " + err.Error()) // a test lists them
	}
	return list
}

func Find(name string) (Source, bool) {
	for _, s := range Sources() {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}

// GitHub is where files of public repositories are: base/OWNER/NAME/COMMIT/PATH.
const GitHub = "https://raw.githubusercontent.com"

// Options say where files come from.
type Options struct {
	// From is a folder that has the files; nothing is downloaded.
	From string
	// Base replaces GitHub, for a mirror with the same paths.
	Base string
	// Client makes the requests; nil is one with timeouts.
	Client *http.Client
	// Attempts is how often a broken download is taken up again; 0 is 5.
	Attempts int
	// Pause is how long to wait before the first repetition, and twice as long
	// before each further one; 0 is a second.
	Pause time.Duration
	// Say is told what happens, a line at a time; nil is nobody.
	Say func(string)
}

// MismatchError is a file that is not the published one.
type MismatchError struct{ File, What string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%q is not the published file: %s", e.File, e.What)
}

// Fetch puts the files of a source into a folder and returns their paths. Files
// that are there already and right are left alone. What is not right is never left
// under a file's name.
func Fetch(ctx context.Context, s Source, dir string, o Options) ([]string, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Base == "" {
		o.Base = GitHub
	}
	if o.Attempts == 0 {
		o.Attempts = 5
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.Client == nil {
		o.Client = client()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for %s: %w", s.Name, err)
	}
	var out []string
	for _, f := range s.Files {
		to := filepath.Join(dir, f.Name)
		out = append(out, to)
		switch err := f.check(to); {
		case err == nil:
			o.Say(f.Name + ": already there, size and hash are right")
			continue
		case !errors.Is(err, fs.ErrNotExist):
			var m *MismatchError
			if !errors.As(err, &m) {
				return nil, err
			}
			return nil, fmt.Errorf("%w; move it away, or choose another folder", err)
		}
		part := to + ".part"
		var err error
		switch {
		case o.From != "":
			err = copyFile(filepath.Join(o.From, f.Name), part, f.Size)
		case s.Offline != "":
			return nil, fmt.Errorf("fetching %s: it cannot be downloaded: %s; with the file in a folder: --from DIR", s.Name,
				s.Offline)
		default:
			err = f.download(ctx, strings.TrimRight(o.Base, "/")+"/"+s.Repository+"/"+s.Commit+"/"+f.Path, part, o)
		}
		if err != nil {
			return nil, fmt.Errorf("fetching %s: %w", f.Name, err)
		}
		if err := f.check(part); err != nil {
			_ = os.Remove(part)
			return nil, fmt.Errorf("fetching %s: %w", f.Name, err)
		}
		if err := os.Rename(part, to); err != nil {
			return nil, fmt.Errorf("fetching %s: %w", f.Name, err)
		}
		o.Say(fmt.Sprintf("%s: %d bytes, size and hash are right", f.Name, f.Size))
	}
	return out, nil
}

// client waits for a server, but not for ever, and follows no redirection to
// anything but HTTPS.
func client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) > 5 {
			return fmt.Errorf("redirected to %s", r.URL.Redacted())
		}
		return nil
	}}
}

// check holds a file to its size and hash.
func (f File) check(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return fmt.Errorf("reading %q: %w", path, err)
	}
	if st.Size() != f.Size {
		return &MismatchError{path, fmt.Sprintf("it has %d bytes, not %d", st.Size(), f.Size)}
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	if _, err := io.Copy(h, file); err != nil {
		return fmt.Errorf("reading %q: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != f.Blob {
		return &MismatchError{path, "its git blob hash is " + got + ", not " + f.Blob}
	}
	return nil
}

func copyFile(from, to string, size int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, size+1))
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// finalError is one that another attempt would meet again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// download gets a file, and goes on where an earlier attempt ended.
func (f File) download(ctx context.Context, url, part string, o Options) error {
	pause := o.Pause
	for attempt := 1; ; attempt++ {
		err := f.attempt(ctx, url, part, o)
		var final finalError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &final) || attempt >= o.Attempts:
			return fmt.Errorf("%w (what came is kept in %s and used by the next attempt; with the files in a folder: --from DIR)", err, filepath.Base(part))
		}
		o.Say(fmt.Sprintf("%s: %v; trying again in %s (%d of %d)", f.Name, err, pause, attempt, o.Attempts-1))
		if err := remote.Sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// attempt asks for what is missing and appends it.
func (f File) attempt(ctx context.Context, url, part string, o Options) (err error) {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return finalError{err}
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	st, err := out.Stat()
	if err != nil {
		return finalError{err}
	}
	have := st.Size()
	restart := func() error {
		have = 0
		return out.Truncate(0)
	}
	switch {
	case have == f.Size:
		return nil
	case have > f.Size:
		if err := restart(); err != nil {
			return finalError{err}
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return finalError{err}
	}
	req.Header.Set("Accept-Encoding", "identity") // a range of what is compressed is no range of the file
	if have > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(have, 10)+"-")
		o.Say(fmt.Sprintf("%s: going on at byte %d of %d", f.Name, have, f.Size))
	}
	resp, err := o.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(have, 10)+"-"):
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusPartialContent,
		resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		if err := restart(); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the server answers %s to a range", resp.Status)
		}
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return fmt.Errorf("the server answers %s", resp.Status)
	default:
		return finalError{fmt.Errorf("the server answers %s for %s", resp.Status, url)}
	}
	n, err := io.Copy(out, io.LimitReader(resp.Body, f.Size-have+1))
	if err != nil {
		return fmt.Errorf("the download broke off at byte %d of %d: %w", have+n, f.Size, err)
	}
	if have+n < f.Size {
		return fmt.Errorf("the download ended at byte %d of %d", have+n, f.Size)
	}
	return nil
}
