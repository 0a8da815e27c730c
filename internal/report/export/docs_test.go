package export

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

var columnLine = regexp.MustCompile(`(?m)^\| ([a-z0-9_]+) \| ([A-Z0-9]+) \|`)

// docs/data.md has every column of every file, with its type, in its order.
func TestDocsHaveEveryColumn(t *testing.T) {
	text, err := os.ReadFile("../../../docs/data.md")
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
	if err := (Export{"parquet", table}).Write(run, dir); err != nil {
		t.Fatal(err)
	}
	for head, path := range map[string]string{
		"requests.parquet": filepath.Join(dir, "requests.parquet"), "chunks.parquet": filepath.Join(dir, "chunks.parquet"),
		"telemetry.parquet": filepath.Join(dir, "telemetry.parquet"), "One table with the latencies in it": table,
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
			t.Errorf("%s: the file (-) and docs/data.md (+) differ:\n%s", head, d)
		}
	}
}

// docs/formats.md has every format.
func TestDocsHaveEveryFormat(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		if !strings.Contains(string(text), "| `"+f.Name+"` |") {
			t.Errorf("docs/formats.md has no %s", f.Name)
		}
	}
}
