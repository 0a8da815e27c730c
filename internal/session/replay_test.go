package session

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/target"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// recorded is a row of a trace, read with nothing of what is tested.
type recorded struct {
	at            int64
	input, output int32
	blocks        []int64
}

func recordedIn(t testing.TB, path string) (rows []recorded) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data[0] == '{' {
		for line := range bytes.Lines(data) {
			var r struct {
				Timestamp     int64
				Input_length  int32
				Output_length int32
				Hash_ids      []int64
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, recorded{r.Timestamp * 1e6, r.Input_length, r.Output_length, r.Hash_ids})
		}
		return rows
	}
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		at, err := time.Parse("2006-01-02 15:04:05.0000000", l[0])
		if err != nil {
			t.Fatal(err)
		}
		in, _ := strconv.Atoi(l[1])
		out, _ := strconv.Atoi(l[2])
		rows = append(rows, recorded{at.UnixNano(), int32(in), int32(out), nil})
	}
	return rows
}

const traces = "../workload/testdata/"

// The requests of a trace are due at its times, to the nanosecond, with its lengths, also
// behind a warm-up, which is its end; --rate stretches the times; a run of the plan that was
// kept asks the same.
func TestTraceIsReplayed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulated requests are slow under the race detector")
	}
	for name, args := range map[string][]string{
		"mooncake_head100.jsonl": nil,
		"azure_conv_head200.csv": {"--warmup", "0s"},
	} {
		rows := recordedIn(t, traces+name)
		n := strconv.Itoa(len(rows))
		run, dir := mustMeasure(t, append([]string{"sim:fixed", "--workload", traces + name, "--requests", n, "--seed", "3"}, args...)...)
		p := run.Points[0]
		got := rowsOf(t, dir)[0]
		t0 := int64(p.Seconds.Warmup * 1e9)
		got = slices.DeleteFunc(got, func(r record.Row) bool { return r.Due < t0 })
		if p.Requests.Due != len(rows) || len(got) < len(rows) {
			t.Fatalf("%s: %d due of %d", name, p.Requests.Due, len(rows))
		}
		for i, want := range rows {
			if r := got[i]; r.Due-t0 != want.at-rows[0].at || r.InputPlanned != want.input || r.OutputPlanned != want.output {
				t.Fatalf("%s: row %d is due at %d for %d and %d tokens, want %+v", name, i, r.Due-t0, r.InputPlanned, r.OutputPlanned, want)
			}
		}
		_, again := mustMeasure(t, "--config", dir+"/config.yaml", "sim:fixed", "--out", t.TempDir()+"/again")
		second := slices.DeleteFunc(rowsOf(t, again)[0], func(r record.Row) bool { return r.Due < t0 })
		for i := range rows {
			if second[i].Due != got[i].Due || second[i].InputPlanned != got[i].InputPlanned {
				t.Fatalf("%s: row %d differs when it is done again", name, i)
			}
		}
	}
	rows := recordedIn(t, traces+"azure_conv_head200.csv")
	own := float64(len(rows)-1) / float64(rows[len(rows)-1].at-rows[0].at) * 1e9
	_, dir := mustMeasure(t, "sim:fixed", "--workload", traces+"azure_conv_head200.csv", "--rate", strconv.FormatFloat(2*own, 'g', -1, 64), "--requests", "200", "--warmup", "0s", "--seed", "3")
	for i, r := range rowsOf(t, dir)[0][:200] {
		if d := 2*r.Due - (rows[i].at - rows[0].at); d < -2 || d > 2 {
			t.Fatalf("row %d at twice the rate is due at %d of %d", i, r.Due, rows[i].at-rows[0].at)
		}
	}
}

// Behind a socket prompts have as many tokens as their rows say, as the server counts them.
func TestReplayOnSockets(t *testing.T) {
	rows := recordedIn(t, traces+"azure_conv_head200.csv")
	_, dir := mustMeasure(t, "mock:fixed?ttft=1ms&itl=0s", "--workload", traces+"azure_conv_head200.csv", "--concurrency", "2", "--requests", "20", "--warmup", "0s", "--seed", "3")
	n := 0
	for _, r := range rowsOf(t, dir)[0] {
		if want := rows[int(r.ID)%len(rows)]; r.Outcome == record.OK {
			if n++; r.PromptTokens != want.input || r.CompletionTokens != want.output {
				t.Errorf("request %d: %d tokens in and %d out, want %+v", r.ID, r.PromptTokens, r.CompletionTokens, want)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d answers", n)
	}
}

// A server with room for all finds of each prompt, asked one after the other, what the ids of
// its blocks say were there before: those in front of the first that was not, but for the
// last token of a prompt, which is always computed.
func TestReplayHits(t *testing.T) {
	if testing.Short() {
		t.Skip("simulated requests are slow under the race detector")
	}
	rows := recordedIn(t, traces+"mooncake_head100.jsonl")[:60]
	_, dir := mustMeasure(t, "sim:llama-3.2-1b@h200?block_size=16&max_model_len=131072", "--workload", traces+"mooncake_head100.jsonl", "--concurrency", "1", "--requests", "60", "--warmup", "0s", "--seed", "3")
	seen := map[int64]bool{}
	for i, r := range rowsOf(t, dir)[0][:60] {
		lead := 0
		for lead < len(rows[i].blocks) && seen[rows[i].blocks[lead]] {
			lead++
		}
		for _, id := range rows[i].blocks {
			seen[id] = true
		}
		if want := min(int32(lead)*512, rows[i].input-1) / 16 * 16; r.CachedTokens != want {
			t.Fatalf("request %d had %d tokens of the cache, want %d of %d", i, r.CachedTokens, want, rows[i].input)
		}
	}
}

// Prompts that have times come at these, each at its own, also where the warm-up is the end of the
// file, and the times of a file are told that others take the place of.
func TestPromptsComeAtTheirTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prompts.jsonl")
	var b strings.Builder
	due := []int64{0, 300, 350, 900, 1600, 1700}
	for _, i := range []int{3, 0, 5, 1, 4, 2} { // as many tokens as place in time
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"text_input\":\"prompt %d\",\"output_length\":%d}\n", 5000+due[i], i, i+1)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, warmup := range []string{"0s", "1s", "1900ms"} {
		run, dir := mustMeasure(t, "sim:fixed", "--workload", path, "--requests", "6", "--warmup", warmup, "--seed", "3")
		t0 := int64(run.Points[0].Seconds.Warmup * 1e9)
		seen := 0
		for _, r := range rowsOf(t, dir)[0] {
			if r.Due < t0 || r.Due >= t0+1700e6+1 {
				continue
			}
			seen++
			if i := slices.Index(due, (r.Due-t0)/1e6); i < 0 || r.OutputPlanned != int32(i+1) {
				t.Errorf("--warmup %s: at %d ms an answer of %d tokens is asked for", warmup, (r.Due-t0)/1e6, r.OutputPlanned)
			}
		}
		if seen != 6 {
			t.Errorf("--warmup %s: %d of 6 requests", warmup, seen)
		}
	}
	for _, c := range []struct {
		args []string
		told bool
	}{
		{[]string{"--rate", "5"}, true},
		{[]string{"--concurrency", "2"}, true},
		{nil, false},
		{[]string{"--rate", "5", "--arrival", "trace(" + path + ")"}, false},
		{[]string{"--rate", "5", "--arrival", "constant"}, true},
	} {
		p := planned(t, append([]string{"sim:fixed", "--workload", path}, c.args...)...)
		if got := LintTimes(p); (len(got) > 0) != c.told {
			t.Errorf("%v: %v", c.args, got)
		}
	}
}

// The turns of a trace's sessions come behind the answers before them.
func TestTurnsOfATrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(`{"session_id":"a","timestamp":0,"input_length":30,"output_length":4}
{"session_id":"a","delay":200,"input_length":70,"output_length":6}
{"session_id":"b","timestamp":1000,"input_length":20,"output_length":2}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	run, dir := mustMeasure(t, "sim:fixed?ttft=50ms&itl=10ms", "--workload", path, "--duration", "900ms", "--warmup", "0s", "--seed", "3")
	rows := rowsOf(t, dir)[0]
	if run.Points[0].Requests.Due != 2 || len(rows) < 2 || rows[0].InputPlanned != 30 || rows[1].InputPlanned != 70 || rows[1].Due != rows[0].Done+200e6 || rows[1].OutputPlanned != 6 {
		t.Errorf("%d due: %+v", run.Points[0].Requests.Due, rows)
	}
}

// What a file has that changes its requests and is not used is told before the load, of classes
// too.
func TestLintOfFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("a large file is slow to read under the race detector")
	}
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	prompts := file("prompts.jsonl", "{\"prompt\":\"a\",\"suffix\":\"z\"}\n{\"prompt\":\"b\"}\n")
	large := file("large.jsonl", "{\"prompt\":\"a\",\"suffix\":\"z\"}\n{\"prompt\":\""+strings.Repeat("b ", mostRead/2)+"\"}\n")
	row := `{"timestamp":0,"input_length":5,"output_length":2,"priority":1}` + "\n"
	trace := file("trace.jsonl", row+row)
	largeTrace := file("large-trace.jsonl", row+strings.Repeat(" ", mostRead)+"\n"+row)
	mix := file("mix.yaml", "version: 1\nclasses:\n  - name: one\n    share: 0.5\n    workload: "+prompts+"\n  - name: two\n    share: 0.5\n    workload: "+trace+"\n")
	for path, want := range map[string]string{
		prompts:    "a field of 1 record is not used: suffix",
		large:      "a field of 1 record is not used: suffix",
		largeTrace: "a field of 2 records is not used: priority",
		trace:      "a field of 2 records is not used: priority",
		mix:        "class one: a field of 1 record is not used: suffix\nclass two: a field of 2 records is not used: priority",
	} {
		p := planned(t, "sim:fixed", "--workload", path, "--rate", "5")
		found := Lint(t.Context(), p, &target.Target{Kind: config.KindSim, Options: api.Options{Vocab: token.Universal()}})
		var unused []string
		for _, f := range found {
			if f.Name == workload.LintUnused {
				unused = append(unused, f.Text)
			}
		}
		if got := strings.Join(unused, "\n"); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
