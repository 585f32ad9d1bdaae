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
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing/fstest" // a file system in memory
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
	shared, err := pages(ctx, here, filepath.Join(tmp, "man"))
	if err != nil {
		return err
	}
	for _, f := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		if shared[f], err = os.ReadFile(f); err != nil {
			return err
		}
	}
	var sums []string
	publish := func(name string, data []byte) error {
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name))
		return os.WriteFile(filepath.Join(out, name), data, 0o644)
	}
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
		bom, err := materials(bin, b, version, at)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("memtox_%s_%s_%s", strings.TrimPrefix(version, "v"), goos, arch)
		exe, pack, suffix := "memtox", tarball, ".tar.gz"
		if goos == "windows" {
			exe, pack, suffix = "memtox.exe", zipped, ".zip"
		}
		files := fstest.MapFS{name + "/" + exe: {Data: b, Mode: 0o755, ModTime: at}}
		for n, data := range shared {
			files[name+"/"+n] = &fstest.MapFile{Data: data, Mode: 0o644, ModTime: at}
		}
		archive, err := pack(files)
		if err := errors.Join(err, publish(name+suffix, archive), publish(name+".cdx.json", bom)); err != nil {
			return err
		}
		fmt.Println(name + suffix)
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644)
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

// pages are the man pages and the completions; dir is a new folder for the former.
func pages(ctx context.Context, memtox, dir string) (map[string][]byte, error) {
	if out, err := exec.CommandContext(ctx, memtox, "man", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("writing the man pages: %w\n%s", err, out)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range list {
		if out["man/man1/"+e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	for shell, suffix := range map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"} {
		b, err := exec.CommandContext(ctx, memtox, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("writing the completion for %s: %w", shell, err)
		}
		out["completions/memtox."+suffix] = b
	}
	return out, nil
}

func tarball(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	err = errors.Join(t.AddFS(files), t.Close(), z.Close())
	return b.Bytes(), err
}

func zipped(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err := errors.Join(z.AddFS(files), z.Close())
	return b.Bytes(), err
}

// materials is the bill of materials of a binary in CycloneDX 1.5, from what the
// linker wrote into it.
func materials(bin string, data []byte, version string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", bin, err)
	}
	component := func(kind, name, version string) map[string]any {
		return map[string]any{"type": kind, "name": name, "version": version, "purl": "pkg:golang/" + name + "@" + version}
	}
	self := component("application", info.Main.Path, version)
	self["hashes"] = []any{map[string]string{"alg": "SHA-256", "content": fmt.Sprintf("%x", sha256.Sum256(data))}}
	std := component("library", "std", strings.TrimPrefix(info.GoVersion, "go"))
	std["version"] = info.GoVersion
	list := []any{std}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		list = append(list, component("library", d.Path, d.Version))
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"timestamp": at.Format(time.RFC3339), "component": self},
		"components": list,
	}, "", "  ")
}
