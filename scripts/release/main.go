// Command release builds what is published of a version: for each platform an
// archive with the static binary, the licence, the README, man pages and shell
// completions; a bill of materials; and the checksums of all of them.
//
//	go run ./scripts/release -version v1.2.3 -out dist
//
// The same commit gives the same bytes, on whatever machine: paths are trimmed, the
// build id is empty, and every time in an archive is that of the commit
// (SOURCE_DATE_EPOCH, else the one that git names).
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those that are published.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	version := flag.String("version", "", "the version, such as v1.2.3")
	out := flag.String("out", "dist", "where the archives go")
	targets := flag.String("platforms", platforms, "what to build for, as OS/ARCH,...")
	flag.Parse()
	if err := release(context.Background(), *version, *out, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func release(ctx context.Context, version, out string, targets []string) error {
	if !semver.MatchString(version) {
		return fmt.Errorf("-version: %q is no version such as v1.2.3", version)
	}
	at, err := commitTime(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	// Man pages and completions come from the commands themselves, by a binary
	// that runs here.
	here := filepath.Join(tmp, "here")
	if err := build(ctx, version, runtime.GOOS, runtime.GOARCH, here); err != nil {
		return err
	}
	shared, err := pages(ctx, here, tmp)
	if err != nil {
		return err
	}
	for _, f := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		shared = append(shared, file{f, b, 0o644})
	}
	var made []string
	for _, t := range targets {
		goos, arch, ok := strings.Cut(t, "/")
		if !ok {
			return fmt.Errorf("-platforms: %q is not OS/ARCH", t)
		}
		bin := filepath.Join(tmp, goos+"-"+arch)
		if err := build(ctx, version, goos, arch, bin); err != nil {
			return err
		}
		b, err := os.ReadFile(bin)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("memtox_%s_%s_%s", strings.TrimPrefix(version, "v"), goos, arch)
		exe, pack, suffix := "memtox", tarball, ".tar.gz"
		if goos == "windows" {
			exe, pack, suffix = "memtox.exe", zipped, ".zip"
		}
		files := append([]file{{exe, b, 0o755}}, shared...)
		slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
		archive, err := pack(name, files, at)
		if err != nil {
			return err
		}
		bom, err := materials(bin, version, at)
		if err != nil {
			return err
		}
		for n, data := range map[string][]byte{name + suffix: archive, name + ".cdx.json": bom} {
			if err := os.WriteFile(filepath.Join(out, n), data, 0o644); err != nil {
				return err
			}
			made = append(made, n)
		}
		fmt.Println(name + suffix)
	}
	return checksums(out, made)
}

// commitTime is the time that stands in the archives.
func commitTime(ctx context.Context) (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		b, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("asking git for the time of the commit (or set SOURCE_DATE_EPOCH): %w", err)
		}
		epoch = strings.TrimSpace(string(b))
	}
	n, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time of the commit: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func build(ctx context.Context, version, goos, arch, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X main.version="+version, "-o", to, "./cmd/memtox")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1",
		"GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building for %s/%s: %w\n%s", goos, arch, err, out)
	}
	return nil
}

type file struct {
	name string
	data []byte
	mode int64
}

// pages are the man pages and the completions.
func pages(ctx context.Context, memtox, tmp string) ([]file, error) {
	dir := filepath.Join(tmp, "man")
	if out, err := exec.CommandContext(ctx, memtox, "man", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("writing the man pages: %w\n%s", err, out)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{"man/man1/" + e.Name(), b, 0o644})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		b, err := exec.CommandContext(ctx, memtox, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("writing the completion for %s: %w", shell, err)
		}
		out = append(out, file{"completions/memtox." + map[string]string{"powershell": "ps1"}[shell] +
			map[bool]string{true: shell}[shell != "powershell"], b, 0o644})
	}
	return out, nil
}

func tarball(name string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name + "/" + f.name, Size: int64(len(f.data)),
			Mode: f.mode, ModTime: at, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

func zipped(name string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: name + "/" + f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

// materials is the bill of materials of a binary in CycloneDX 1.5, from what the
// linker wrote into it.
func materials(bin, version string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", bin, err)
	}
	type hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	b, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	self := component{"application", info.Main.Path, version, "pkg:golang/" + info.Main.Path + "@" + version,
		[]hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(b))}}}
	list := []component{{Type: "library", Name: "std", Version: info.GoVersion,
		PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		list = append(list, component{Type: "library", Name: d.Path, Version: d.Version,
			PURL: "pkg:golang/" + d.Path + "@" + d.Version})
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"timestamp": at.Format(time.RFC3339), "component": self},
		"components": list,
	}, "", "  ")
}

// checksums writes SHA256SUMS, as sha256sum -c reads it.
func checksums(dir string, names []string) error {
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		f, err := os.Open(filepath.Join(dir, n))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), n)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
