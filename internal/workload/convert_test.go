package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// converted is a file in another format, and what was lost.
func converted(t fataler, dir, path, to string) (string, Losses) {
	t.Helper()
	var b bytes.Buffer
	_, lost, err := Convert(&b, path, to)
	if err != nil {
		t.Fatalf("%s of %s: %v", to, path, err)
	}
	out := filepath.Join(dir, to)
	if err := os.WriteFile(out, b.Bytes(), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	return out, lost
}

// columnsOf is what there is in a trace: times since the first.
func columnsOf(t fataler, path string) *Trace {
	t.Helper()
	got, err := ReadTrace(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for i := len(got.At) - 1; i >= 0; i-- {
		got.At[i] -= got.At[0]
	}
	got.Format, got.Unit, got.Unsorted = "", "", 0
	return got
}

// What both formats can hold is the same when it is read back.
func TestConvertTrace(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "rows")
		timed, blocks, sessions := rapid.Bool().Draw(t, "timed"), rapid.Bool().Draw(t, "blocks"), rapid.Bool().Draw(t, "sessions")
		var b strings.Builder
		at := rapid.Int64Range(0, 1e12).Draw(t, "first")
		for range n {
			at += rapid.Int64Range(0, 1e6).Draw(t, "gap")
			in := rapid.IntRange(1, 3000).Draw(t, "input")
			o := map[string]any{"input_length": in, "output_length": rapid.IntRange(1, 500).Draw(t, "output")}
			if timed {
				o["timestamp"] = at
			}
			if sessions {
				o["session_id"] = rapid.StringMatching(`[a-z "]{1,5}x`).Draw(t, "session")
			}
			if blocks {
				ids := make([]int64, (in+511)/512)
				for i := range ids {
					ids[i] = rapid.Int64Range(0, 1e15).Draw(t, "id")
				}
				o["hash_ids"] = ids
			}
			line, _ := json.Marshal(o)
			b.Write(append(line, '\n'))
		}
		path := filepath.Join(dir, "trace")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		want := columnsOf(t, path)
		for _, to := range []string{"pitot", "aiperf", "mooncake", "timed_trace"} {
			out, lost := converted(t, dir, path, to)
			got, want := columnsOf(t, out), *want
			if sessions && (to == "mooncake" || to == "timed_trace") {
				want.Clients = nil
				if !slices.ContainsFunc(lost, func(s string) bool { return strings.Contains(s, "no clients") }) {
					t.Fatalf("%s: clients are lost in silence: %v", to, lost)
				}
			}
			if d := cmp.Diff(&want, got); d != "" {
				t.Fatalf("%s: %s\n%s", to, d, b.String())
			}
			// And on to another.
			back, _ := converted(t, dir, out, "pitot")
			if d := cmp.Diff(&want, columnsOf(t, back)); d != "" {
				t.Fatalf("%s and back: %s", to, d)
			}
		}
	})
}

// Prompts are the same, with what is sent along, wherever there is a place for them.
func TestConvertPrompts(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 9 {
		fmt.Fprintf(&b, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q %d \"<é>\"\n"}],"max_tokens":%d,"top_p":0.5}`+"\n", i, i+1)
	}
	path := written(t, b.String())
	want := lines(t, open(t, path, FileOptions{}))
	for _, to := range []string{"pitot", "openai"} {
		out, lost := converted(t, dir, path, to)
		if got := lines(t, open(t, out, FileOptions{})); !slices.Equal(got, want) || lost != nil {
			t.Errorf("%s: %q, want %q; lost %q", to, got, want, lost)
		}
	}
	out, lost := converted(t, dir, path, "mooncake")
	got := columnsOf(t, out)
	if got.Requests() != 9 || got.Output[3] != 4 || len(lost) != 2 || !strings.Contains(lost[0], "no text") {
		t.Errorf("%+v, %q", got, lost)
	}
	// In the order of the file.
	first, err := os.ReadFile(filepath.Join(dir, "pitot"))
	if err != nil || !strings.Contains(strings.Split(string(first), "\n")[1], "q 0") {
		t.Errorf("%.300s", first)
	}
}

// What cannot be kept is said; a trace becomes prompts of its lengths that share what it says.
func TestConvertLosses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ from, to, lost string }{
		{"azure_conv_head200.csv", "openai", "OpenAI JSONL has no times: 200 due times left out"},
		{"azure_conv_head200.csv", "mooncake", "Mooncake's trace has whole milliseconds: "},
		{"azure_conv_head200.csv", "timed_trace", ""},
		{"mooncake_head100.jsonl", "timed_trace", "its reader needs 512 tokens"},
		{"mooncake_head100.jsonl", "pitot", ""},
		{"bailian_format_example.jsonl", "mooncake", "its reader needs 16 tokens"},
		{"ragpulse/0_trace_head20.jsonl", "pitot", "components"},
	} {
		_, lost := converted(t, dir, filepath.Join("testdata", c.from), c.to)
		if text := strings.Join(lost, "\n"); c.lost == "" && lost != nil || !strings.Contains(text, c.lost) {
			t.Errorf("%s to %s: lost %q, want %q", c.from, c.to, text, c.lost)
		}
	}
	out, _ := converted(t, dir, filepath.Join("testdata", "mooncake_head100.jsonl"), "openai")
	f := open(t, out, FileOptions{InOrder: true})
	a, b := requestAt(t, f, 0).Messages[0].Segments[0].Text, requestAt(t, f, 1).Messages[0].Segments[0].Text
	if n := len(strings.Fields(a)); n != 6758 || a[:2000] != b[:2000] {
		t.Errorf("%d words, and the first block is not shared", n)
	}
	if _, _, err := Convert(&bytes.Buffer{}, "testdata/mooncake_head100.jsonl", "moncake"); err == nil || !strings.Contains(fmt.Sprint(err), "no format") {
		t.Errorf("%v", err)
	}
}

// Pitot's own format is read as it was written, whichever version wrote it.
func TestRequestsV1(t *testing.T) {
	lengths := `{"schema":"pitot.requests/v1","holds":"lengths","block_tokens":64}
{"due_ns":0,"input_tokens":100,"output_tokens":5,"blocks":[1,2],"client":"a"}
{"due_ns":1500000001,"input_tokens":65,"output_tokens":6,"blocks":[1,3]}
`
	rows, err := openRows(written(t, lengths))
	if err != nil || rows.block != 64 || rows.Len() != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	defer rows.file.Close()
	at := make([]int64, 2)
	if rows.Times(at, 0); at[1] != 1500000001 {
		t.Errorf("due at %d", at)
	}
	prompts := `{"schema":"pitot.requests/v1","holds":"prompts"}
{"due_ns":5,"output_tokens":7,"messages":[{"role":"user","content":"q"}],"body":{"top_p":0.5}}
`
	if got := lines(t, open(t, written(t, prompts), FileOptions{})); !slices.Equal(got, []string{`user: q; 7; {"top_p":0.5}`}) {
		t.Errorf("%q", got)
	}
}

// Whatever is in a file, what can be read of it is written in each format or refused with a
// reason, and Pitot's own holds as many requests.
func FuzzConvert(f *testing.F) {
	for _, name := range []string{"mooncake_head100.jsonl", "burstgpt_v3_rows_example.csv", "sharegpt_sample.json", "bailian_format_example.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 600)])
	}
	f.Add([]byte(`{"schema":"pitot.requests/v1","holds":"prompts"}` + "\n" + `{"messages":[{"role":"user","content":"q"}],"body":[]}`))
	f.Add([]byte(`{"schema":"pitot.requests/v1","holds":"lengths","block_tokens":-1}` + "\n" + `{"due_ns":1,"input_tokens":5,"blocks":[1]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "in")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := ReadTrace(path)
		for _, to := range ConvertTo() {
			if to == "openai" && err == nil && (trace.Input == nil || slices.Max(trace.Input) > 1e4) {
				continue // millions of words take their time
			}
			var b bytes.Buffer
			n, _, err := Convert(&b, path, to)
			if err != nil || to != "pitot" || n == 0 {
				continue
			}
			own := filepath.Join(dir, "own")
			if err := os.WriteFile(own, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if again, _, err := Convert(&bytes.Buffer{}, own, "pitot"); err != nil || again != n {
				t.Fatalf("%q: %d requests, then %d: %v\n%s", data, n, again, err, b.Bytes())
			}
		}
	})
}
