package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/config"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/target"
)

// planned decodes a command line.
func planned(t testing.TB, args ...string) *config.Plan {
	t.Helper()
	p, rest, err := config.Decode(config.VerbRun, args, nil)
	if err != nil || len(rest) > 1 {
		t.Fatal(err, rest)
	}
	return &p
}

// quick is a small load on a small target, but for what args say.
func quick(args ...string) []string {
	for _, d := range [][2]string{{"--input", "32"}, {"--output", "6"}, {"--warmup", "60ms"}, {"--duration", "300ms"}, {"--seed", "7"}} {
		if !slices.Contains(args, d[0]) && !(d[0] == "--duration" && slices.Contains(args, "--requests")) {
			args = append(args, d[0], d[1])
		}
	}
	if strings.HasSuffix(args[0], ":fixed") {
		args[0] += "?ttft=5ms&itl=1ms"
	}
	return args
}

// measured runs a plan into a directory of its own.
func measured(t testing.TB, ctx context.Context, args ...string) (*result.Run, string, error) {
	t.Helper()
	p := planned(t, args...)
	if p.Out == "" {
		p.Out = filepath.Join(t.TempDir(), "run")
	}
	r := Runner{Command: []string{"pitot", "run"}}
	run, dir, err := r.Run(ctx, p)
	return run, dir, err
}

// interruptedWhen runs a plan that is interrupted as soon as its progress is such.
func interruptedWhen(t *testing.T, such func(Status) bool, args ...string) (*result.Run, string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := Runner{Progress: watching(func(s Status) {
		if such(s) {
			cancel()
		}
	})}
	return r.Run(ctx, planned(t, append(args, "--out", filepath.Join(t.TempDir(), "run"))...))
}

func mustMeasure(t testing.TB, args ...string) (*result.Run, string) {
	t.Helper()
	run, dir, err := measured(t, t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return run, dir
}

// rowsOf reads all rows of a run, by point and id.
func rowsOf(t testing.TB, dir string) map[int32][]record.Row {
	t.Helper()
	rows := map[int32][]record.Row{}
	for f, err := range record.Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		rows[f.Point] = append(rows[f.Point], f.Rows...)
	}
	for _, rs := range rows {
		slices.SortFunc(rs, func(a, b record.Row) int { return int(a.ID - b.ID) })
	}
	return rows
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// accounted looks at the sum that must hold in every point.
func accounted(t testing.TB, run *result.Run) {
	t.Helper()
	for i, p := range run.Points {
		r := p.Requests
		if r.Due != r.OK+r.Failed+r.Cut+r.Unsent {
			t.Errorf("point %d: %+v does not add up", i, r)
		}
	}
}

func TestRunDirectory(t *testing.T) {
	t.Parallel()
	run, dir := mustMeasure(t, quick("mock:fixed", "--rate", "150")...)
	want := []string{"chunks.parquet", "config.yaml", "marks.json", "requests.parquet", "run.json", "telemetry.parquet"}
	if d := cmp.Diff(want, files(t, dir)); d != "" {
		t.Error(d)
	}
	if len(run.Points) != 1 || run.Recovered || run.Interrupted {
		t.Fatalf("%+v", run)
	}
	accounted(t, run)
	p := run.Points[0]
	if p.Outcome != "ok" || p.Requests.OK < 20 || p.Requests.OK != p.Requests.Due {
		t.Errorf("%s, %+v", p.Outcome, p.Requests)
	}
	if p.Seconds.Window != .3 || p.Seconds.Warmup != .06 {
		t.Errorf("%+v", p.Seconds)
	}
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stored result.Run
	if err := json.Unmarshal(data, &stored); err != nil || stored.Schema != result.Schema || stored.Seed != 7 {
		t.Errorf("%v, %+v", err, stored)
	}
	for id, r := range rowsOf(t, dir)[0] {
		if r.ID != int64(id) || r.Due > r.Eligible || r.Eligible > r.Ready || r.Outcome == record.OK && r.Ready > r.Sent {
			t.Errorf("request %d: %+v", id, r)
		}
		if r.Outcome == record.OK && (r.PromptTokens != 32 || r.CompletionTokens != 6) {
			t.Errorf("request %d: %d + %d tokens", id, r.PromptTokens, r.CompletionTokens)
		}
	}
	// What is there is not overwritten.
	if _, _, err := measured(t, t.Context(), quick("mock:fixed", "--rate", "150", "--out", dir)...); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v", err)
	}
	// And it can be shown again.
	again, err := Finish(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run, again); d != "" {
		t.Errorf("finished again:\n%s", d)
	}
}

// asked is what a seed decides.
type asked struct {
	ID, Due       int64
	Input, Output int32
}

func askedIn(rows []record.Row, n int) (out []asked) {
	for _, r := range rows[:min(n, len(rows))] {
		out = append(out, asked{r.ID, r.Due, r.InputPlanned, r.OutputPlanned})
	}
	return out
}

func TestConfigAsksTheSame(t *testing.T) {
	t.Parallel()
	_, first := mustMeasure(t, quick("mock:fixed", "--rate", "100", "--input", "uniform(20,60)", "--output", "uniform(1,9)")...)
	_, second := mustMeasure(t, "--config", filepath.Join(first, "config.yaml"))
	a, b := rowsOf(t, first)[0], rowsOf(t, second)[0]
	n := min(len(a), len(b))
	if n < 25 {
		t.Fatalf("%d and %d rows", len(a), len(b))
	}
	if d := cmp.Diff(askedIn(a, n), askedIn(b, n)); d != "" {
		t.Error(d)
	}
}

func TestRepeatIsFresh(t *testing.T) {
	run, dir := mustMeasure(t, quick("sim:fixed?jitter=0.3", "--rate", "100", "--output", "uniform(1,9)", "--repeat", "2")...)
	if len(run.Points) != 2 {
		t.Fatalf("%d points", len(run.Points))
	}
	accounted(t, run)
	rows := rowsOf(t, dir)
	if cmp.Equal(askedIn(rows[0], 20), askedIn(rows[1], 20)) {
		t.Error("the repeat asks the same")
	}
	first := func(rs []record.Row) (v []int64) {
		for _, r := range rs[:20] {
			v = append(v, r.FirstToken-r.Sent)
		}
		return v
	}
	if cmp.Equal(first(rows[0]), first(rows[1])) {
		t.Error("the repeat has the same jitter")
	}
	for _, p := range run.Points {
		if p.Requests.Due < 15 || p.Outcome != "ok" {
			t.Errorf("%+v", p.Requests)
		}
	}
}

func TestRepeatOnSockets(t *testing.T) {
	t.Parallel()
	run, dir := mustMeasure(t, quick("mock:fixed", "--concurrency", "3", "--requests", "20", "--repeat", "2")...)
	accounted(t, run)
	if len(run.Points) != 2 {
		t.Fatalf("%d points", len(run.Points))
	}
	for i, p := range run.Points {
		if p.Requests.Due != 20 || p.Requests.OK != 20 {
			t.Errorf("point %d: %+v", i, p.Requests)
		}
	}
	if rows := rowsOf(t, dir); len(rows[0]) < 20 || len(rows[1]) < 20 {
		t.Errorf("%d and %d rows", len(rows[0]), len(rows[1]))
	}
}

func TestSim(t *testing.T) {
	once := func() *result.Run {
		run, _ := mustMeasure(t, quick("sim:fixed?ttft=35ms&itl=8ms", "--rate", "20", "--duration", "60s", "--output", "32")...)
		return run
	}
	run := once()
	p := run.Points[0]
	if p.Requests.Due < 1000 || p.Requests.OK != p.Requests.Due || run.Verdict == result.Invalid {
		t.Errorf("%s, %+v", run.Verdict, p.Requests)
	}
	if s := p.Metrics.SummaryOf(metric.TTFT); s == nil || s.P50 == nil || *s.P50 != 35 {
		t.Errorf("TTFT %+v", s)
	}
	if d := cmp.Diff(p, once().Points[0]); d != "" {
		t.Errorf("another time:\n%s", d)
	}
	if _, _, err := measured(t, t.Context(), quick("sim:fixed?ttft=0s&itl=0s", "--concurrency", "2")...); err == nil {
		t.Error("a target that takes no time stops virtual time")
	}
	requests, _ := mustMeasure(t, quick("sim:fixed", "--concurrency", "8", "--requests", "21", "--warmup", "0s")...)
	if due := requests.Points[0].Requests.Due; due != 21 {
		t.Errorf("%d due, want 21", due)
	}
}

// twinned is a plan against the engine's model.
func twinned(args ...string) []string { return append(args, "--seed", "7") }

// The same seed gives the same bytes.
func TestTwinInVirtualTime(t *testing.T) {
	once := func() (*result.Run, string) {
		return mustMeasure(t, twinned("sim:llama-3.1-8b@rtx4090?max_num_seqs=32", "--rate", "3", "--duration", "10m", "--output", "64", "--prefix", "512", "--prefix-share", "0.5")...)
	}
	run, dir := once()
	p := run.Points[0]
	if p.Requests.Due < 1000 || p.Requests.OK != p.Requests.Due || run.Verdict == result.Invalid {
		t.Errorf("%s, %+v", run.Verdict, p.Requests)
	}
	// Weights take 14.9 ms to read: no token can be faster.
	if s := p.Metrics.SummaryOf(metric.TPOT); s == nil || *s.Min < 14.9 || *s.P50 > 60 {
		t.Errorf("TPOT %+v", s)
	}
	hits := 0
	for _, r := range rowsOf(t, dir)[0] {
		if r.CachedTokens > 0 {
			hits++
		}
	}
	if share := float64(hits) / float64(p.Requests.Due); share < 0.4 || share > 0.6 {
		t.Errorf("%.2f of the requests hit the prefix cache, want about half", share)
	}
	again, other := once()
	if d := cmp.Diff(p, again.Points[0]); d != "" {
		t.Errorf("another time:\n%s", d)
	}
	for _, name := range []string{"requests.parquet", "chunks.parquet"} {
		a, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(other, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs another time (%v)", name, err)
		}
	}
}

// A request that the model cannot take is refused as by the server.
func TestTwinRefusesTooLong(t *testing.T) {
	run, dir := mustMeasure(t, twinned("sim:llama-3.1-8b@rtx4090?max_model_len=1000", "--concurrency", "2", "--requests", "10", "--input", "uniform(480,1480)", "--output", "10")...)
	p := run.Points[0].Requests
	if p.Failed == 0 || p.OK == 0 || p.Errors[record.ErrContextLength] != p.Failed {
		t.Errorf("%+v", p)
	}
	for _, r := range rowsOf(t, dir)[0] {
		if (r.InputPlanned+10 > 1000) != (r.Outcome == record.Failed) {
			t.Errorf("%d tokens: %s", r.InputPlanned, r.Outcome)
		}
	}
}

func TestInterruptedRunKeepsWhatItMeasured(t *testing.T) {
	t.Parallel()
	run, dir, err := interruptedWhen(t, func(s Status) bool { return s.OK >= 30 && s.At > s.T0+200*time.Millisecond },
		quick("mock:fixed?itl=10ms", "--rate", "100", "--duration", "60s", "--no-probe", "--model", "m")...)
	if err != nil {
		t.Fatal(err)
	}
	accounted(t, run)
	p := run.Points[0]
	if !run.Interrupted || run.Recovered || p.Requests.OK < 10 || p.Requests.Cut+p.Requests.Unsent == 0 {
		t.Errorf("interrupted %v, recovered %v, %+v", run.Interrupted, run.Recovered, p.Requests)
	}
	if p.Seconds.Window > 50 || p.Seconds.Window < .1 {
		t.Errorf("window %v s", p.Seconds.Window)
	}
	if run.Verdict == result.Invalid && p.Requests.Errors[record.ErrBug] > 0 {
		t.Errorf("%+v", p.Checks)
	}
	if slices.Contains(files(t, dir), "journal.pitot") {
		t.Error("the journal is still there")
	}
}

func TestInterruptedInWarmup(t *testing.T) {
	t.Parallel()
	run, _, err := interruptedWhen(t, func(s Status) bool { return s.OK > 0 }, quick("mock:fixed", "--rate", "50", "--warmup", "60s", "--no-probe", "--model", "m")...)
	if err != nil {
		t.Fatal(err)
	}
	p := run.Points[0]
	if !run.Interrupted || p.Requests.Due != 0 || p.Seconds.Window != 0 {
		t.Errorf("%+v %+v", p.Seconds, p.Requests)
	}
}

// An interruption while the target is asked is no fault of the target.
func TestInterruptedWhileProbing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(100*time.Millisecond, cancel)
	_, _, err := measured(t, ctx, quick("mock:fixed?ttft=5s", "--rate", "50")...)
	var target *target.Error
	if err == nil || errors.As(err, &target) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A file's prompts count the same tokens in virtual time as over a socket.
func TestFilePromptsInBothWorlds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prompts.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("What is the time now, and how long is this line of words about nothing?\n", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	var mean []float64
	for _, target := range []string{"sim:fixed", "mock:fixed"} {
		run, _ := mustMeasure(t, target+"?ttft=5ms&itl=1ms", "--workload", file, "--requests", "20", "--rate", "100", "--output", "4", "--warmup", "50ms", "--seed", "7")
		mean = append(mean, *run.Points[0].Metrics.SummaryOf(metric.InputTokens).Mean)
	}
	if mean[0] != mean[1] || mean[0] < 15 {
		t.Errorf("%v input tokens in virtual time, %v over a socket", mean[0], mean[1])
	}
}
