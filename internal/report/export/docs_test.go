package export

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

var columnLine = regexp.MustCompile(`(?m)^\| ([a-z0-9_]+) \| ([A-Z0-9]+) \|`)

// docs/reference/files.md has every column of every file, with its type, in its order.
func TestDocsHaveEveryColumn(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/files.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		for _, m := range columnLine.FindAllStringSubmatch(body, -1) {
			documented[head] = append(documented[head], m[1]+" "+m[2])
		}
	}
	run, dir := sampleRun(t)
	table := filepath.Join(t.TempDir(), "table.parquet")
	ofSessions := filepath.Join(t.TempDir(), "sessions.parquet")
	if err := errors.Join((Export{"parquet", table}).Write(run, dir), (Export{"parquet-sessions", ofSessions}).Write(run, dir)); err != nil {
		t.Fatal(err)
	}
	for head, path := range map[string]string{
		"requests.parquet": filepath.Join(dir, "requests.parquet"), "chunks.parquet": filepath.Join(dir, "chunks.parquet"),
		"telemetry.parquet": filepath.Join(dir, "telemetry.parquet"), "One table with the latencies in it": table,
		"One table of conversations": ofSessions,
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		var columns []string
		for _, c := range f.Root().Columns() {
			kind := c.Type().Kind().String()
			if c.Type().String() == "STRING" {
				kind = "STRING"
			}
			columns = append(columns, fmt.Sprintf("%s %s", c.Name(), kind))
		}
		if d := cmp.Diff(columns, documented[head]); d != "" {
			t.Errorf("%s: the file (-) and docs/reference/files.md (+) differ:\n%s", head, d)
		}
	}
}

var update = flag.Bool("update", false, "write docs/reference/files.md anew")

// The tables of requests and of sessions are explained by what their columns say of
// themselves.
func TestDocsExplainTheTables(t *testing.T) {
	explain(t, "columns", requestColumns())
	explain(t, "sessions", sessionColumns())
}

func explain[T any](t *testing.T, section string, list []column[T]) {
	const path = "../../../docs/reference/files.md"
	var b strings.Builder
	b.WriteString("| column | type | |\n|---|---|---|\n")
	for _, c := range list {
		kind := map[reflect.Kind]string{reflect.String: "STRING", reflect.Bool: "BOOLEAN", reflect.Int32: "INT32", reflect.Int64: "INT64", reflect.Float64: "DOUBLE"}[reflect.TypeOf(c.kind).Kind()]
		b.WriteString(strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s |\n", c.name, kind, c.about), "|  |", "| |"))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- " + section + " -->\n"
	before, rest, begun := strings.Cut(string(text), begin)
	has, after, ended := strings.Cut(rest, "<!-- end -->\n")
	if !begun || !ended {
		t.Fatalf("docs/reference/files.md has no section %s", section)
	}
	if *update {
		has = b.String()
		if err := os.WriteFile(path, []byte(before+begin+has+"<!-- end -->\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(b.String(), has); d != "" {
		t.Errorf("docs/reference/files.md is not what the columns say (go test -update writes it):\n%s", d)
	}
}

// docs/reference/formats.md has every format.
func TestDocsHaveEveryFormat(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		if !strings.Contains(string(text), "| `"+f.Name+"` |") {
			t.Errorf("docs/reference/formats.md has no %s", f.Name)
		}
	}
}
