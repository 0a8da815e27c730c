// Command release builds the files of a release. The same commit gives the same bytes on every
// machine. It publishes nothing.
//
//	cd release && go run . [-out DIR] [-platforms linux/amd64,…] [-only wheel,deb,…]
//
// The default is every kind of file for every platform, in the folder dist of the checkout.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// home is the address of the project. Files of a release are below it.
const home = "https://pitot.example"

const (
	summary = "Load-test LLM servers, and check the measurement"
	licence = "Apache-2.0"
	// packageName is the name for pip and npm, where another project has the name pitot.
	packageName = "pitot-llm"
	checksums   = "SHA256SUMS"
)

func main() {
	flags := flag.NewFlagSet("release", flag.ExitOnError)
	out := flags.String("out", "", "write the files to this folder (default dist in the checkout)")
	platforms := flags.String("platforms", strings.Join(allPlatforms(), ","), "build for these systems and architectures")
	only := flags.String("only", strings.Join(allKinds(), ","), "write these kinds of files")
	_ = flags.Parse(os.Args[1:])
	err := func() error {
		if flags.NArg() > 0 {
			return fmt.Errorf("read arguments: unexpected %q", flags.Arg(0))
		}
		root, err := output("", nil, "git", "rev-parse", "--show-toplevel")
		if err != nil {
			return fmt.Errorf("find checkout: %w", err)
		}
		return build(root, cmp.Or(*out, filepath.Join(root, "dist")), *platforms, *only, os.Stdout)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one build of the programs and the files made of them.
type release struct {
	root     string // the checkout
	version  version
	modified time.Time // of all files: when the commit was made
	programs []*program
	licence  []byte
	readme   []byte
	files    []file // in the order of their making
}

// file is a file of the release. Its name has slashes.
type file struct {
	name string
	mode os.FileMode
	data []byte
}

// kinds are the kinds of files, by the name that -only has for them.
var kinds = []struct {
	name string
	make func(*release) error
}{
	{"binary", (*release).makeBinaries},
	{"archive", (*release).makeArchives},
	{"brew", (*release).makeFormula}, // after the archives, whose checksums it has
	{"wheel", (*release).makeWheels},
	{"npm", (*release).makeNPM},
	{"deb", func(r *release) error { return r.makePackages("deb") }},
	{"rpm", func(r *release) error { return r.makePackages("rpm") }},
	{"image", (*release).makeImages},
	{"kubernetes", (*release).makeManifests},
	{"sbom", (*release).makeSBOMs},
}

func allKinds() (names []string) {
	for _, kind := range kinds {
		names = append(names, kind.name)
	}
	return names
}

// build builds a checkout and writes the files to out, and their names and sizes to log.
func build(root, out, platforms, only string, log io.Writer) error {
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.Contains(allKinds(), name) {
			return fmt.Errorf("read -only: unknown kind %q, known: %s", name, strings.Join(allKinds(), ", "))
		}
	}
	r, err := newRelease(root)
	if err != nil {
		return err
	}
	if err := r.compile(strings.Split(platforms, ","), log); err != nil {
		return err
	}
	for _, kind := range kinds {
		if slices.Contains(wanted, kind.name) {
			if err := kind.make(r); err != nil {
				return fmt.Errorf("make %s: %w", kind.name, err)
			}
		}
	}
	return r.write(out, log)
}

func (r *release) add(name string, mode os.FileMode, data []byte) {
	r.files = append(r.files, file{name, mode, data})
}

// write writes the files and their checksums. It removes the files of an earlier release first.
func (r *release) write(out string, log io.Writer) error {
	if err := removeEarlier(out); err != nil {
		return err
	}
	slices.SortFunc(r.files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	var sums strings.Builder
	for _, f := range r.files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
		fmt.Fprintf(log, "%11d  %s\n", len(f.data), f.name)
	}
	for _, f := range append(r.files, file{checksums, 0o644, []byte(sums.String())}) {
		path := filepath.Join(out, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if err := os.Chtimes(path, r.modified, r.modified); err != nil {
			return fmt.Errorf("set time of %s: %w", f.name, err)
		}
	}
	return nil
}

// removeEarlier removes the files that the checksums in a folder name, and the checksums.
func removeEarlier(out string) error {
	data, err := os.ReadFile(filepath.Join(out, checksums))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read checksums: %w", err)
	}
	names := []string{checksums}
	for line := range strings.Lines(string(data)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && filepath.IsLocal(name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(out, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove earlier release: %w", err)
		}
	}
	return nil
}
