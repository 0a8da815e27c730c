package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

// rowsOf are the rows of a file as JSON, a line each.
func rowsOf(t testing.TB, file []byte) string {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows := f.All(); ; {
		row, err := rows.Next()
		if err == io.EOF {
			return strings.Join(lines, "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
}

// rowsByLibrary are the same as another reader has them.
func rowsByLibrary(t testing.TB, file []byte) string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	reader := parquet.NewGenericReader[any](f)
	defer reader.Close()
	var lines []string
	for {
		rows := make([]any, 10)
		n, err := reader.Read(rows)
		for _, row := range rows[:n] {
			line, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		if err == io.EOF {
			return strings.Join(lines, "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func testFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join("testdata", "*.parquet"))
	if err != nil || len(paths) < 10 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Files that pyarrow and DuckDB wrote, of all types, encodings and compressions: those of one
// table are read alike, and as another reader has them.
func TestReadsOthersFiles(t *testing.T) {
	fix := regexp.MustCompile(`"fix":"[^"]*",`) // DuckDB has no such type
	files := testFiles(t)
	table := fix.ReplaceAllString(rowsOf(t, files["none.parquet"]), "")
	for name, file := range files {
		got := rowsOf(t, file)
		switch name {
		case "other.parquet", "int96.parquet": // which the library has otherwise
			continue
		case "types.parquet", "streams.parquet", "checksums.parquet", "checksums2.parquet":
		default:
			if d := cmp.Diff(table, fix.ReplaceAllString(got, "")); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
		switch name {
		case "gzip.parquet", "brotli.parquet", "lz4.parquet", "encodings.parquet": // the library reads runs of booleans that may be null otherwise than they are
		default:
			if d := cmp.Diff(rowsByLibrary(t, file), got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// What JSON has no number for is null, maps of lists are maps of lists, and times are integers
// whichever type they have.
func TestReadsTypes(t *testing.T) {
	for name, want := range map[string]string{
		"other.parquet": `{"f16":1.5,"mapi":{"1":"a"},"mapls":{"k":[1,2]},"nan":null,"u64":1}
{"f16":-2,"mapi":{},"mapls":{},"nan":null,"u64":9223372036854775813}
{"f16":null,"mapi":null,"mapls":null,"nan":1,"u64":null}`,
		"int96.parquet": `{"ts":1704067200123456789}
{"ts":0}
{"ts":null}`,
	} {
		if d := cmp.Diff(want, rowsOf(t, testFiles(t)[name])); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// drawFile draws columns and writes values to them: a file, and its rows as JSON.
func drawFile(t *rapid.T) (file []byte, want string) {
	columns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Column {
		return Column{Kind: rapid.SampledFrom([]Kind{Bool, Int, Long, Double, Text}).Draw(t, "kind"), Optional: rapid.Bool().Draw(t, "optional")}
	}), 1, 5).Draw(t, "columns")
	for i := range columns {
		columns[i].Name = string(rune('a' + i))
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, "x", "pitot test", columns, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	few := rapid.Bool().Draw(t, "few")
	n := rapid.IntRange(0, 700).Draw(t, "rows")
	random := rapid.Uint64().Draw(t, "seed")
	next := func(n uint64) uint64 {
		random = random*6364136223846793005 + 1442695040888963407
		return random >> 33 % n
	}
	for range n {
		row := map[string]any{}
		for i, c := range columns {
			to := w.Column(i)
			if c.Optional && next(3) == 0 {
				to.Null()
				row[c.Name] = nil
				continue
			}
			x := int64(next(5))
			if !few {
				x = int64(next(1<<31)) << next(33)
				if next(2) == 0 {
					x = -x
				}
			}
			switch c.Kind {
			case Bool:
				to.Bool(x%2 == 0)
				row[c.Name] = x%2 == 0
			case Int:
				to.Int(int32(x))
				row[c.Name] = int32(x)
			case Long:
				to.Long(x)
				row[c.Name] = x
			case Double:
				to.Double(float64(x) / 3)
				row[c.Name] = float64(x) / 3
			default:
				text := strings.Repeat(fmt.Sprint(x), int(next(40)))
				to.Text([]byte(text))
				row[c.Name] = text
			}
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
		if next(200) == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), strings.Join(lines, "\n")
}

// What is written is read again, here and by another reader; and the bounds of pages hold.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		file, want := drawFile(rt)
		if d := cmp.Diff(want, rowsOf(t, file)); d != "" {
			rt.Fatal(d)
		}
		if d := cmp.Diff(want, rowsByLibrary(t, file)); d != "" {
			rt.Fatalf("by the library: %s", d)
		}
	})
}

// A column of many different long texts keeps them once its dictionary is full.
func TestFullDictionary(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, "x", "pitot test", []Column{{Name: "a", Kind: Text, Optional: true}, {Name: "b", Kind: Double}}, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for group := range 2 {
		for i := range 3000 {
			w.Column(1).Double(math.NaN())
			if i%10 == 0 {
				w.Column(0).Null()
				continue
			}
			want++
			w.Column(0).Text([]byte(fmt.Sprintf("%d-%d-%s", group, i, strings.Repeat("x", 900))))
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	rows, got := f.All(), 0
	for i := 0; ; i++ {
		row, err := rows.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := row["a"].(string); ok {
			got++
			if !strings.HasPrefix(text, fmt.Sprintf("%d-%d-", i/3000, i%3000)) {
				t.Fatalf("row %d is %s", i, text[:20])
			}
		}
	}
	if got != want {
		t.Errorf("%d texts of %d", got, want)
	}
	reader := parquet.NewReader(bytes.NewReader(out.Bytes()))
	defer reader.Close()
	row := make([]parquet.Row, 7000)
	if n, err := reader.ReadRows(row); n != 6000 || err != nil && err != io.EOF {
		t.Error(n, err)
	}
	if c := f.meta.RowGroups[0].Columns; c[1].ColumnIndexLength != 0 || c[0].ColumnIndexLength == 0 || string(c[0].MetaData.Statistics.MinValue[:4]) != "0-1-" {
		t.Error("bounds of numbers that have none, or none of texts")
	}
}

// Whatever a file holds, it is read or refused: nothing panics, hangs, or takes memory that the
// file gives no reason for.
func FuzzOpen(f *testing.F) {
	for _, file := range testFiles(f) {
		f.Add(file)
	}
	for _, h := range hostileFiles() {
		f.Add(h.file)
	}
	f.Fuzz(func(t *testing.T, file []byte) { readAll(file) })
}

func readAll(b []byte) (n int, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return 0, err
	}
	rows := f.All()
	for ; n < 10_000; n++ {
		if _, err := rows.Next(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// A damaged file gives an error or other values; a cut one an error.
func TestDamaged(t *testing.T) {
	for name, file := range testFiles(t) {
		for i := 0; i < len(file); i += len(file)/50 + 1 {
			if _, err := readAll(file[:i]); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s, cut at %d: %v", name, i, err)
			}
			bad := bytes.Clone(file)
			bad[i] ^= 0x55
			_, _ = readAll(bad)
			bad[i] = 0xff
			_, _ = readAll(bad)
		}
	}
}
