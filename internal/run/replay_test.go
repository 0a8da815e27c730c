package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pitot/internal/data/record"
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
	_, dir := mustMeasure(t, "mock:fixed", "--workload", traces+"azure_conv_head200.csv", "--concurrency", "2", "--requests", "20", "--warmup", "0s", "--ttft", "1ms", "--itl", "0s", "--seed", "3")
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
