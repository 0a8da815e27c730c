package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A room says of itself, in front of its package clause, what it is and what it
// has no part in. The first is in ARCHITECTURE.md too; the second is held here.

// denial is what a room can say that it has no part in.
type denial struct {
	imports []string // that it must not have
	calls   []string // of the standard library
	goes    bool     // nor a go statement
}

func denials() map[string]denial {
	clock := denial{imports: []string{"pitot/internal/clock"}, calls: []string{
		"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick",
	}}
	socket := denial{imports: []string{"net", "pitot/internal/client/stamp"}}
	return map[string]denial{
		"clock": clock, "time": clock, "wall time": clock,
		"socket": socket, "sockets": socket,
		"file":      {imports: []string{"os", "io/fs"}},
		"I/O":       {imports: []string{"os", "io/fs", "net", "net/http", "syscall", "golang.org/x/sys/unix"}},
		"HTTP":      {imports: []string{"net/http", "pitot/internal/client"}},
		"goroutine": {goes: true},
		"model":     {imports: []string{"pitot/internal/sim/catalogue"}},
		"hardware":  {imports: []string{"pitot/internal/sim/catalogue", "pitot/internal/sim/deploy"}},
	}
}

var (
	denied  = regexp.MustCompile(`\b[Ii]t (?:has|does|knows) (?:no|neither) ([^.:;]+?)(?:, (?:so|which|since)\b|[.:;]|$)`)
	between = regexp.MustCompile(`,? (?:and|or|nor)(?: no)? |, (?:no )?`)
)

// deniedIn lists what the comment of a package denies.
func deniedIn(doc string) (list []string) {
	for _, m := range denied.FindAllStringSubmatch(strings.Join(strings.Fields(doc), " "), -1) {
		list = append(list, between.Split(m[1], -1)...)
	}
	return list
}

// sourceOf gives the files of a package, its tests aside, and its comment.
func sourceOf(t *testing.T, dir string) (files []*ast.File, doc string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files, doc = append(files, f), doc+f.Doc.Text()
	}
	return files, doc
}

// Every room says what it is, and has no part in what it says that it has none in.
func TestRoomsAreWhatTheySay(t *testing.T) {
	known := denials()
	for _, r := range rooms() {
		parsed, doc := sourceOf(t, r.dir())
		if r.dir() != r.name && !strings.HasPrefix(doc, "Package "+filepath.Base(r.name)+" ") {
			t.Errorf("%s says nothing of itself", r.name)
		}
		for _, word := range deniedIn(doc) {
			d, ok := known[word]
			if !ok {
				t.Errorf("%s says that it has no %q, which no test can hold", r.name, word)
			}
			for _, f := range parsed {
				for _, what := range d.brokenBy(f) {
					t.Errorf("%s says that it has no %s, and has %s", r.name, word, what)
				}
			}
		}
	}
}

// A pure room says so.
func TestPureRoomsSaySo(t *testing.T) {
	for _, name := range pure() {
		_, doc := sourceOf(t, "internal/"+name)
		words := deniedIn(doc)
		if !slices.Contains(words, "clock") || !slices.Contains(words, "I/O") && !(slices.Contains(words, "file") && slices.Contains(words, "socket")) {
			t.Errorf("%s is pure, and denies only %q", name, words)
		}
	}
}

// brokenBy lists what of a file is denied.
func (d denial) brokenBy(f *ast.File) (list []string) {
	for _, s := range f.Imports {
		path, _ := strconv.Unquote(s.Path.Value)
		if slices.ContainsFunc(d.imports, func(no string) bool { return path == no }) {
			list = append(list, path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if d.goes {
				list = append(list, "a go statement")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if call := x.Name + "." + n.Sel.Name; slices.Contains(d.calls, call) {
					list = append(list, call)
				}
			}
		}
		return true
	})
	return list
}

func TestDenials(t *testing.T) {
	for doc, want := range map[string]string{
		"Package x is x. It has no clock, no socket and\nno file: so it is.":  "[clock socket file]",
		"Package x is x; it knows neither sockets nor time, so that it is x.": "[sockets time]",
		"Package x knows no model. It does no I/O.":                           "[I/O]",
	} {
		if got := fmt.Sprint(deniedIn(doc)); got != want {
			t.Errorf("%s: %s, want %s", doc, got, want)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport (\"net/http\"; \"time\")\nfunc f() { go f(); time.Now(); http.Get(\"\") }", 0)
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"clock": "[time.Now]", "HTTP": "[net/http]", "goroutine": "[a go statement]", "file": "[]"} {
		if got := fmt.Sprint(denials()[word].brokenBy(f)); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// A file or a room that a document names in backquotes is there.
var named = regexp.MustCompile("`([a-z][a-zA-Z0-9_./-]*)`")

// ARCHITECTURE.md has a row for each room but those of single engines, which sim/engines
// lists, and what it and CONTRIBUTING.md name is there.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	there := func(path string) bool {
		_, err := os.Stat(filepath.Join("..", path))
		return err == nil
	}
	seen := map[string]bool{}
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join("..", document))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			before := "" // the directory of the name before it in the line
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				name := strings.TrimSuffix(m[1], "/")
				seen[name] = true
				if strings.HasPrefix(name, "testing/") || !strings.Contains(name, "/") && !strings.HasSuffix(name, ".go") {
					continue // a word, or the standard library's
				}
				from := slices.IndexFunc([]string{"", "internal", before}, func(dir string) bool { return there(filepath.Join(dir, name)) })
				switch {
				case from < 0:
					t.Errorf("%s: %s is not there", document, m[1])
				case from < 2 && strings.Contains(name, "/"):
					before = []string{"", "internal"}[from] + "/" + name
					if strings.Contains(filepath.Base(name), ".") {
						before = filepath.Dir(before)
					}
				}
			}
		}
	}
	for _, r := range rooms() {
		if r.dir() != r.name && !seen[r.name] && filepath.Dir(r.name) != "sim/engine" {
			t.Errorf("ARCHITECTURE.md has no row for %s", r.name)
		}
	}
}
