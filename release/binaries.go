package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goToolchain compiles the programs. Another version of Go gives other bytes. A go command of
// another version fetches this one.
const goToolchain = "go1.26.8"

// platform is a system and an architecture, with the names that the formats have for it.
type platform struct {
	os, arch  string
	wheel     string // tags of Python's wheels
	npm       [2]string
	rpm, brew string
}

// platforms are those of a release. Static programs run with glibc and musl. Go 1.26 needs macOS 12.
var platforms = []platform{
	{"linux", "amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", [2]string{"linux", "x64"}, "x86_64", "on_linux on_intel"},
	{"linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", [2]string{"linux", "arm64"}, "aarch64", "on_linux on_arm"},
	{"darwin", "amd64", "macosx_12_0_x86_64", [2]string{"darwin", "x64"}, "", "on_macos on_intel"},
	{"darwin", "arm64", "macosx_12_0_arm64", [2]string{"darwin", "arm64"}, "", "on_macos on_arm"},
	{"windows", "amd64", "win_amd64", [2]string{"win32", "x64"}, "", ""},
	{"windows", "arm64", "win_arm64", [2]string{"win32", "arm64"}, "", ""},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// executable returns the file name of a program.
func (p platform) executable(name string) string {
	if p.os == "windows" {
		return name + ".exe"
	}
	return name
}

func allPlatforms() (names []string) {
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return names
}

// program is a compiled program for one platform.
type program struct {
	platform
	name string // pitot or pitot-fleet
	data []byte
}

// fileName returns the name of the program's file without the ending.
func (p *program) fileName(v version) string {
	return fmt.Sprintf("%s-%s-%s-%s", p.name, v.full, p.os, p.arch)
}

// version is the version of a release, in the forms that the formats want.
type version struct {
	full   string // as Go has it: v0.1.0, v0.1.0-rc.1, v0.0.0-20260102150405-5e5792741b96, +dirty
	commit string
}

// number returns the version without v, for names and labels.
func (v version) number() string { return strings.TrimPrefix(v.full, "v") }

// parts splits the version: 0.1.0, what follows a hyphen, and whether the checkout had changes.
func (v version) parts() (base, pre string, dirty bool) {
	rest, dirty := strings.CutSuffix(v.number(), "+dirty")
	base, pre, _ = strings.Cut(rest, "-")
	return base, pre, dirty
}

// python returns the version as PEP 440 wants it.
func (v version) python() string {
	base, pre, dirty := v.parts()
	local := ""
	if stamp, commit, ok := strings.Cut(pre, "-"); ok { // a pseudo-version
		base, local = base+".dev"+stamp, "g"+commit
	} else if pre != "" { // alpha.1, beta.1, rc.1
		base += strings.NewReplacer("alpha", "a", "beta", "b", ".", "").Replace(pre)
	}
	if dirty {
		local = strings.TrimPrefix(local+".dirty", ".")
	}
	if local != "" {
		return base + "+" + local
	}
	return base
}

// npm returns the version as npm wants it: what follows a plus would be dropped.
func (v version) npm() string {
	base, pre, dirty := v.parts()
	if dirty {
		pre = strings.TrimPrefix(pre+".dirty", ".")
	}
	return strings.TrimSuffix(base+"-"+pre, "-")
}

// system returns the version for deb and rpm: a tilde sorts before the version itself.
func (v version) system() string {
	base, pre, dirty := v.parts()
	if pre != "" {
		base += "~" + strings.ReplaceAll(pre, "-", ".")
	}
	if dirty {
		base += "+dirty"
	}
	return base
}

// tag returns the tag of the image.
func (v version) tag() string { return strings.ReplaceAll(v.number(), "+", "-") }

// newRelease reads the version, the time of the commit, and the documents of a checkout.
func newRelease(root string) (*release, error) {
	r := &release{root: root}
	git := func(args ...string) (string, error) {
		return output(root, []string{"TZ=UTC"}, append([]string{"git"}, args...)...)
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("read commit: %w", err)
	}
	stamp, err := git("show", "-s", "--format=%ct")
	if err != nil {
		return nil, fmt.Errorf("read time of commit: %w", err)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read time of commit: %w", err)
	}
	r.modified = time.Unix(seconds, 0).UTC()
	r.version = version{commit: commit}
	r.version.full, err = git("describe", "--tags", "--exact-match", "--match", "v*")
	if err != nil { // no tag
		r.version.full = fmt.Sprintf("v0.0.0-%s-%.12s", r.modified.Format("20060102150405"), commit)
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	if changes != "" {
		r.version.full += "+dirty"
		r.version.commit += "-dirty"
	}
	if r.licence, err = os.ReadFile(filepath.Join(root, "LICENSE")); err != nil {
		return nil, fmt.Errorf("read licence: %w", err)
	}
	if r.readme, err = os.ReadFile(filepath.Join(root, "README.md")); err != nil {
		return nil, fmt.Errorf("read readme: %w", err)
	}
	return r, nil
}

// output runs a command and returns what it prints, without the last newline.
func output(dir string, environment []string, command ...string) (string, error) {
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("run %s: %w: %s", strings.Join(command, " "), err, bytes.TrimSpace(exit.Stderr))
	} else if err != nil {
		return "", fmt.Errorf("run %s: %w", strings.Join(command, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// goEnvironment returns the settings of the go command. Of the builder's own, only those count
// that say how modules are downloaded.
func goEnvironment(root string) ([]string, error) {
	text, err := output(root, nil, "go", "env", "-json", "GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOSUMDB", "GONOPROXY")
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return nil, fmt.Errorf("read go env: %w", err)
	}
	environment := []string{
		"GOENV=off", "GOTOOLCHAIN=" + goToolchain, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
		"GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0",
	}
	for name, value := range settings {
		environment = append(environment, name+"="+value)
	}
	return environment, nil
}

// compile compiles both programs for the platforms.
func (r *release) compile(names []string, log io.Writer) error {
	for _, name := range names {
		if !slices.Contains(allPlatforms(), name) {
			return fmt.Errorf("read -platforms: unknown %q, known: %s", name, strings.Join(allPlatforms(), ", "))
		}
	}
	environment, err := goEnvironment(r.root)
	if err != nil {
		return fmt.Errorf("read settings of go: %w", err)
	}
	dir, err := os.MkdirTemp("", "pitot-release-")
	if err != nil {
		return fmt.Errorf("make folder for binaries: %w", err)
	}
	defer os.RemoveAll(dir)
	link := fmt.Sprintf("-s -w -buildid= -X pitot/internal/cli.releaseVersion=%s -X pitot/internal/cli.releaseCommit=%s", r.version.full, r.version.commit)
	fmt.Fprintf(log, "pitot %s, commit %s\n", r.version.full, r.version.commit)
	for _, p := range platforms {
		if !slices.Contains(names, p.String()) {
			continue
		}
		for _, name := range []string{"pitot", "pitot-fleet"} {
			path := filepath.Join(dir, name)
			_, err := output(r.root, append(environment, "GOOS="+p.os, "GOARCH="+p.arch),
				"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", path, "./cmd/"+name)
			if err != nil {
				return fmt.Errorf("compile for %s: %w", p, err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read program: %w", err)
			}
			r.programs = append(r.programs, &program{p, name, data})
			fmt.Fprintf(log, "%11d  compiled %s for %s\n", len(data), name, p)
		}
	}
	return nil
}

// makeBinaries adds the programs themselves.
func (r *release) makeBinaries() error {
	for _, p := range r.programs {
		r.add(p.executable(p.fileName(r.version)), 0o755, p.data)
	}
	return nil
}

// makeArchives adds an archive of each program, with the licence and the readme.
func (r *release) makeArchives() error {
	for _, p := range r.programs {
		content := []file{{p.executable(p.name), 0o755, p.data}, {"LICENSE", 0o644, r.licence}, {"README.md", 0o644, r.readme}}
		pack, ending := packTar, ".tar.gz"
		if p.os == "windows" {
			pack, ending = packZip, ".zip"
		}
		data, err := pack(content, r.modified)
		if err != nil {
			return fmt.Errorf("pack %s: %w", p.fileName(r.version), err)
		}
		r.add(p.fileName(r.version)+ending, 0o644, data)
	}
	return nil
}

// packTar returns files as a .tar.gz that belongs to root.
func packTar(files []file, modified time.Time) ([]byte, error) {
	var entries []tar.Header
	contents := map[string][]byte{}
	for _, f := range files {
		entries = append(entries, tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: int64(f.mode)})
		contents[f.name] = f.data
	}
	parts, err := tarParts(entries, contents, modified)
	if err != nil {
		return nil, err
	}
	return gzipParts(parts, modified)
}

// tarParts returns a tar file in parts. A large file is a part of its own, that is compressed once.
func tarParts(entries []tar.Header, contents map[string][]byte, modified time.Time) ([][]byte, error) {
	var parts parts
	w := tar.NewWriter(&parts)
	for _, header := range entries {
		header.ModTime, header.Format = modified, tar.FormatUSTAR
		header.Size = int64(len(contents[header.Name]))
		if err := w.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("write header of %s: %w", header.Name, err)
		}
		if _, err := w.Write(contents[header.Name]); err != nil {
			return nil, fmt.Errorf("write %s: %w", header.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end archive: %w", err)
	}
	return parts.all, nil
}

// parts collects what is written. A large write is a part of its own.
type parts struct {
	all  [][]byte
	open bool // whether the last part may grow
}

func (p *parts) Write(data []byte) (int, error) {
	if large := len(data) >= chunkSize; large || !p.open {
		p.all = append(p.all, nil)
		p.open = !large
	}
	last := &p.all[len(p.all)-1]
	*last = append(*last, data...)
	return len(data), nil
}

// packZip returns files as a zip file with the modes of Unix.
func packZip(files []file, modified time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	for _, f := range files {
		packed, err := compressParts([][]byte{f.data})
		if err != nil {
			return nil, err
		}
		header := &zip.FileHeader{
			Name: f.name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(f.data),
			CompressedSize64: uint64(len(packed)), UncompressedSize64: uint64(len(f.data)),
			CreatorVersion: 3<<8 | 20, ReaderVersion: 20, // Unix, with deflate
			ExternalAttrs: (0o100000 | uint32(f.mode)) << 16,
			//lint:ignore SA1019 CreateRaw writes these as they are, and not Modified
			ModifiedDate: uint16((modified.Year()-1980)<<9 | int(modified.Month())<<5 | modified.Day()),
			//lint:ignore SA1019 as above
			ModifiedTime: uint16(modified.Hour()<<11 | modified.Minute()<<5 | modified.Second()/2),
		}
		entry, err := w.CreateRaw(header)
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", f.name, err)
		}
		if _, err := entry.Write(packed); err != nil {
			return nil, fmt.Errorf("add %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end zip: %w", err)
	}
	return buffer.Bytes(), nil
}
