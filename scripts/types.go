//go:build ignore

// Types tells whether the program and its tests compile on other platforms, by checking
// their types: it compiles nothing, which of all that they import takes minutes.
//
//	go run scripts/types.go windows/amd64 darwin/arm64
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	for _, platform := range os.Args[1:] {
		system, processor, _ := strings.Cut(platform, "/")
		checked, err := check(system, processor)
		if err != nil {
			fmt.Fprintf(os.Stderr, "check types on %s: %v\n", platform, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages and tests\n", platform, checked)
	}
}

// listed is a package as the go command lists it, or one with its tests.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // paths in the files that mean another package
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

// check tells how many packages of this module have no error of types there. Of those that
// they import declarations alone are looked at.
func check(system, processor string) (checked int, err error) {
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/...", "./internal/...")
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := list.Start(); err != nil {
		return 0, err
	}
	files, known := token.NewFileSet(), importer{"unsafe": types.Unsafe}
	var failed []error
	for packages := json.NewDecoder(out); ; { // what a package imports comes before it
		var p listed
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // built in, or generated
			continue
		}
		own := p.Module != nil && p.Module.Main
		config := types.Config{
			Importer:         known.of(p),
			Sizes:            types.SizesFor("gc", processor),
			IgnoreFuncBodies: !own,
			Error:            func(err error) { failed = append(failed, err) },
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			config.GoVersion = "go" + p.Module.GoVersion
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return 0, err
			}
			parsed = append(parsed, f)
		}
		path, _, _ := strings.Cut(p.ImportPath, " ")                    // "a [a.test]" is a with its tests
		known[p.ImportPath], _ = config.Check(path, files, parsed, nil) // errors are in failed
		if own {
			checked++
		}
	}
	return checked, errors.Join(append(failed, list.Wait())...)
}

// importer has the packages that were checked, by the path that the go command lists them under.
type importer map[string]*types.Package

func (known importer) Import(path string) (*types.Package, error) {
	if p := known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed before what imports it", path)
}

// of gives what a package means by the paths in its files.
func (known importer) of(p listed) types.Importer { return mapped{known, p.ImportMap} }

type mapped struct {
	known importer
	paths map[string]string
}

func (m mapped) Import(path string) (*types.Package, error) {
	if means, ok := m.paths[path]; ok {
		path = means
	}
	return m.known.Import(path)
}
