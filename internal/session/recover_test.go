package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// killed runs a plan, copies its journal as a kill would leave it as soon as that holds
// enough, and gives both directories when the run has come to its end. Unless the plan
// counts its requests, that is then.
func killed(t *testing.T, enough func(held) bool, args ...string) (whole, cut string, journal held) {
	t.Helper()
	whole, cut = filepath.Join(t.TempDir(), "whole"), t.TempDir()
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		_, _, err := measured(t, ctx, append(quick(args...), "--out", whole)...)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			t.Fatalf("the run ended with too little in its journal: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		data, err := os.ReadFile(filepath.Join(whole, "journal.pitot"))
		if err != nil || len(data) < 3 {
			continue // it has not begun
		}
		// A kill may tear the last frame.
		if err := os.WriteFile(filepath.Join(cut, "journal.pitot"), data[:len(data)-3], 0o644); err != nil {
			t.Fatal(err)
		}
		if journal = heldIn(cut); enough(journal) {
			break
		}
	}
	if !slices.Contains(args, "--requests") {
		cancel()
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return whole, cut, journal
}

// held is what a journal holds: how many requests that are over, how many with events
// that are not, and when the last event came.
type held struct {
	rows, begun int
	last        time.Duration
}

func heldIn(dir string) (h held) {
	begun := map[int64]bool{}
	for f, err := range record.Frames(dir) {
		if err != nil {
			break // where it is torn
		}
		for _, c := range f.Chunks {
			begun[c.Request] = true
			h.last = max(h.last, time.Duration(c.T))
		}
		for i := range f.Rows {
			delete(begun, f.Rows[i].ID)
			h.rows++
		}
	}
	h.begun = len(begun)
	return h
}

// dueIn counts the rows that were due in a window.
func dueIn(rows []record.Row, t0, t1 int64) (n int) {
	for _, r := range rows {
		if r.Due >= t0 && r.Due < t1 {
			n++
		}
	}
	return n
}

// recovered finishes a killed run, and again from its Parquet files.
func recovered(t *testing.T, dir string) result.Point {
	t.Helper()
	run, err := Finish(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if !run.Recovered || len(run.Points) != 1 {
		t.Fatalf("recovered %v, %d points", run.Recovered, len(run.Points))
	}
	accounted(t, run)
	again, err := Finish(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run, again); d != "" {
		t.Errorf("finished again:\n%s", d)
	}
	p := run.Points[0]
	t0, t1 := spanOf(p)
	found := map[record.Outcome]int{}
	for _, r := range rowsOf(t, dir)[0] {
		if r.Due >= t0 && r.Due < t1 {
			found[r.Outcome]++
		}
	}
	for outcome, n := range map[record.Outcome]int{record.OK: p.Requests.OK, record.Failed: p.Requests.Failed, record.Cut: p.Requests.Cut, record.Unsent: p.Requests.Unsent} {
		if found[outcome] != n {
			t.Errorf("%d requests %s in the records, %d in the result", found[outcome], outcome, n)
		}
	}
	return p
}

func spanOf(p result.Point) (t0, t1 int64) {
	t0 = int64(math.Round(p.Seconds.Warmup * 1e9))
	return t0, t0 + int64(math.Round(p.Seconds.Window*1e9))
}

func TestKilledOpenLoop(t *testing.T) {
	t.Parallel()
	whole, cut, journal := killed(t, func(h held) bool { return h.rows >= 40 && h.begun >= 4 && h.last > 500*time.Millisecond },
		"mock:fixed?itl=20ms", "--rate", "100", "--duration", "50s", "--no-probe", "--model", "m")
	p := recovered(t, cut)
	t0, t1 := spanOf(p)
	all := rowsOf(t, whole)[0]
	if want := dueIn(all, t0, t1); p.Requests.Due != want {
		t.Errorf("%d due, the whole run says %d", p.Requests.Due, want)
	}
	if p.Requests.OK < 5 || p.Requests.Cut < 3 {
		t.Errorf("%+v", p.Requests)
	}
	// Every complete request is there, as it was.
	complete := 0
	for _, r := range rowsOf(t, cut)[0] {
		if r.Outcome == record.Cut {
			continue // it was under way
		}
		complete++
		if d := cmp.Diff(all[r.ID], r); d != "" {
			t.Errorf("request %d:\n%s", r.ID, d)
		}
	}
	if complete != journal.rows {
		t.Errorf("%d complete requests, the journal had %d", complete, journal.rows)
	}
	if p.Seconds.Window >= 50 || p.Seconds.Window < .2 {
		t.Errorf("%+v", p.Seconds)
	}
}

func TestKilledWithACap(t *testing.T) {
	t.Parallel()
	whole, cut, _ := killed(t, func(h held) bool { return h.rows > 0 && h.last > 600*time.Millisecond },
		"mock:fixed?itl=20ms", "--rate", "100", "--max-in-flight", "4", "--duration", "50s", "--no-probe", "--model", "m")
	p := recovered(t, cut)
	t0, t1 := spanOf(p)
	if want := dueIn(rowsOf(t, whole)[0], t0, t1); p.Requests.Due != want {
		t.Errorf("%d due, the whole run says %d", p.Requests.Due, want)
	}
	if p.Requests.Cut > 4 || p.Requests.Unsent < 10 {
		t.Errorf("%+v", p.Requests)
	}
}

func TestKilledClosedLoop(t *testing.T) {
	t.Parallel()
	whole, cut, _ := killed(t, func(h held) bool { return h.rows >= 40 },
		"mock:fixed?itl=9ms", "--concurrency", "5", "--duration", "50s", "--no-probe", "--model", "m")
	p := recovered(t, cut)
	t0, t1 := spanOf(p)
	want := dueIn(rowsOf(t, whole)[0], t0, t1)
	if d := p.Requests.Due - want; d < -5 || d > 5 {
		t.Errorf("%d due, the whole run says %d", p.Requests.Due, want)
	}
	if p.Requests.OK < 5 || p.Requests.Cut > 5 {
		t.Errorf("%+v", p.Requests)
	}
}

// remainsOf writes a journal without an end and gives the rows made for what
// was under way.
func remainsOf(t *testing.T, s metrics.Setup, last int64, chunks []record.Chunk, rows ...record.Row) ([]record.Row, int64) {
	t.Helper()
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		j.Chunk(c)
	}
	for i := range rows {
		j.Done(&rows[i])
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return gatherRemains(dir, 0, []int32{everyone}, nil)[0].underWay(0, s, 7, last, func(int64) bool { return true })
}

// What is left of a point comes behind its last record and before the next
// point's, and before an error.
func TestCompleted(t *testing.T) {
	row := func(id int64) []record.Row { return []record.Row{{ID: id}} }
	damage := errors.New("damage")
	frames := func(yield func(record.Frame, error) bool) {
		for _, f := range []record.Frame{{Point: 0, Rows: row(0)}, {Point: 1, Marks: []record.Mark{{Name: "point"}}}, {Point: 0, Rows: row(1)}, {Point: 2, Rows: row(2)}} {
			if !yield(f, nil) {
				return
			}
		}
		yield(record.Frame{}, damage)
	}
	var got []string
	var last error
	for f, err := range completeFrames(frames, map[int32][]record.Frame{0: {{Rows: row(7)}}, 1: nil, 2: {{Point: 2, Rows: row(8)}}}) {
		if last = err; err != nil {
			break
		}
		for _, r := range f.Rows {
			got = append(got, fmt.Sprintf("%d of point %d", r.ID, f.Point))
		}
	}
	if d := cmp.Diff([]string{"0 of point 0", "1 of point 0", "7 of point 0", "2 of point 2", "8 of point 2"}, got); d != "" || last != damage {
		t.Errorf("%v\n%s", last, d)
	}
}

func TestUnderWayInAClosedLoop(t *testing.T) {
	done := func(id, due int64) record.Row { return record.Row{ID: id, Due: due, Done: due + 10, Stream: true} }
	chunks := []record.Chunk{{Request: 4, T: 130}, {Request: 7, T: 170}, {Request: 7, T: 180}}
	got, t1 := remainsOf(t, metrics.Setup{T0: 50, T1: 1000}, 200, chunks, done(0, 5), done(1, 100), done(3, 120), done(5, 140))
	type fact struct{ ID, Due, First, Done int64 }
	var facts []fact
	for _, r := range got {
		if r.Outcome != record.Cut || r.Error != record.ErrInterrupted || !r.Stream || r.Sent != record.Unset {
			t.Errorf("%+v", r)
		}
		facts = append(facts, fact{r.ID, r.Due, r.FirstToken, r.Done})
	}
	// 2 was due before 3; 4 before its first token; 6 and 7 before 7's.
	if d := cmp.Diff([]fact{{2, 120, -1, 200}, {4, 130, -1, 200}, {6, 170, -1, 200}, {7, 170, -1, 200}}, facts); d != "" {
		t.Error(d)
	}
	if t1 != 171 {
		t.Errorf("the window ends at %d", t1)
	}
}

func TestUnderWayInAnOpenLoop(t *testing.T) {
	rate := 1e9 / 10. // one every 10 ns
	s := metrics.Setup{T0: 20, T1: 1000, Load: result.Load{Rate: &rate, Arrival: "constant"}}
	done := func(id int64) record.Row { return record.Row{ID: id, Due: 10 * id, Done: 10*id + 15, Stream: true} }
	chunks := []record.Chunk{{Request: 2, T: 31, Kind: record.Reasoning}, {Request: 2, T: 44}}
	rows, t1 := remainsOf(t, s, 55, chunks, done(0), done(1), done(3))
	if t1 != 55 || len(rows) != 3 {
		t.Fatalf("%d rows until %d", len(rows), t1)
	}
	r := rows[0]
	if r.ID != 2 || r.Due != 20 || r.FirstToken != 31 || r.FirstAnswer != 44 || r.LastToken != 44 || r.Chunks != 2 || r.Done != 55 {
		t.Errorf("%+v", r)
	}
	if rows[1].ID != 4 || rows[2].ID != 5 || rows[2].Due != 50 || rows[2].FirstToken != record.Unset {
		t.Errorf("%+v", rows[1:])
	}
	// Rows that are not of that schedule: nothing is made up from it.
	if _, t1 := remainsOf(t, s, 55, nil, record.Row{ID: 0, Due: 3, Done: 20}); t1 != 20 {
		t.Errorf("the window ends at %d", t1) // its begin: nothing is known in it
	}
}

func TestFinishWithoutARun(t *testing.T) {
	for name, write := range map[string]func(dir string) error{
		"empty": func(string) error { return nil },
		"garbage": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "journal.pitot"), []byte("what is this?"), 0o644)
		},
		"no load": func(dir string) error {
			j, err := record.Create(dir)
			if err != nil {
				return err
			}
			return j.Close()
		},
	} {
		dir := t.TempDir()
		if err := write(dir); err != nil {
			t.Fatal(err)
		}
		if run, err := Finish(dir, func(string) {}); err == nil {
			t.Errorf("%s: %+v", name, run)
		}
	}
	if _, err := Finish(filepath.Join(t.TempDir(), "none"), func(string) {}); err == nil {
		t.Error("a directory that is not there")
	}
}

// With a count of requests the window ends where the next one is due, also
// when the run was killed long after.
func TestKilledWhileDrainingACount(t *testing.T) {
	t.Parallel()
	whole, cut, _ := killed(t, func(h held) bool { return h.begun >= 20 && h.last > 800*time.Millisecond },
		"mock:fixed?itl=100ms", "--rate", "100", "--requests", "20", "--output", "30", "--no-probe", "--model", "m")
	p := recovered(t, cut)
	data, err := os.ReadFile(filepath.Join(whole, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run result.Run
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	if want := run.Points[0]; p.Seconds.Window != want.Seconds.Window || p.Requests.Due != 20 || want.Requests.Due != 20 || want.Requests.OK != 20 {
		t.Errorf("%+v, %+v; the whole run says %+v, %+v", p.Seconds, p.Requests, want.Seconds, want.Requests)
	}
	if p.Requests.Cut == 0 {
		t.Errorf("nothing was under way: %+v", p.Requests)
	}
}

func TestUnderWayWithACount(t *testing.T) {
	rate := 1e9 / 10. // one every 10 ns
	done := func(id, due int64) record.Row { return record.Row{ID: id, Due: due, Done: due + 5, Stream: true} }
	open := metrics.Setup{T0: 20, T1: loadgen.Never, Requests: 3, Load: result.Load{Rate: &rate, Arrival: "constant"}}
	closed := metrics.Setup{T0: 20, T1: loadgen.Never, Requests: 3}
	for name, c := range map[string]struct {
		setup  metrics.Setup
		last   int64
		rows   []record.Row
		t1     int64
		cohort int
	}{
		"open, draining":       {open, 95, []record.Row{done(0, 0), done(2, 20)}, 50, 3},
		"open, not full":       {open, 45, []record.Row{done(0, 0), done(2, 20)}, 45, 3},
		"closed, draining":     {closed, 95, []record.Row{done(0, 3), done(1, 25), done(3, 31), done(4, 48), done(6, 60)}, 48, 3},
		"closed, not full yet": {closed, 95, []record.Row{done(0, 3), done(1, 25), done(2, 31)}, 32, 2},
	} {
		left, t1 := remainsOf(t, c.setup, c.last, nil, c.rows...)
		if n := dueIn(append(left, c.rows...), c.setup.T0, t1); t1 != c.t1 || n != c.cohort {
			t.Errorf("%s: the window ends at %d with %d due, want %d with %d", name, t1, n, c.t1, c.cohort)
		}
	}
}

// A journal that says that records are missing gives the same verdict as the
// run whose disk was full.
func TestRecordsLostBeforeTheEnd(t *testing.T) {
	for name, lost := range map[string]bool{"killed": false, "disk full": true} {
		dir := t.TempDir()
		j, err := record.Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		writeMark(j, marks.NameRun, 0, marks.EncodeHead(&result.Run{Schema: result.Schema, Started: "2026-11-20T23:48:00Z", Workload: json.RawMessage(`{"kind":"random","sampling":{}}`)}))
		writeMark(j, marks.NamePoint, 0, marks.Encode(&metrics.Setup{T1: 1e9}))
		r := record.BlankRow()
		r.Due, r.Sent, r.FirstToken, r.LastToken, r.Done, r.Stream = 0, 0, 5e6, 9e6, 9e6, true
		j.Done(&r)
		if lost {
			j.AddMark(record.Mark{Name: record.LostMark}) // as the journal itself does
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		run, err := Finish(dir, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if p := run.Points[0]; !run.Recovered || p.Requests.OK != 1 || (run.Verdict == result.Invalid) != lost || (p.Verdict == result.Invalid) != lost {
			t.Errorf("%s: %s, %+v", name, run.Verdict, p.Checks)
		}
		again, err := Finish(dir, func(string) {}) // from the Parquet files
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(run, again); d != "" {
			t.Errorf("%s: finished again:\n%s", name, d)
		}
	}
}

// Whether a run is still going on is known before any of it is read.
func TestLiveRunIsNotRead(t *testing.T) {
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := os.WriteFile(filepath.Join(dir, "journal.pitot"), []byte("what is this? no record has come."), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Finish(dir, func(string) {}); !errors.Is(err, rundir.ErrLive) {
		t.Errorf("finish of a live run: %v", err)
	}
}

// More users than requests who all begin at once: no window to speak of.
func TestMoreUsersThanRequests(t *testing.T) {
	run, _ := mustMeasure(t, quick("sim:fixed", "--concurrency", "8", "--requests", "3", "--warmup", "0s")...)
	p := run.Points[0]
	if p.Throughput.RequestsPerS != nil || p.Throughput.DuePerS != nil || p.Throughput.Why.IsNone() || p.Requests.OK != 3 {
		t.Errorf("%+v, %+v", p.Throughput, p.Requests)
	}
	for _, c := range p.Checks {
		if c.Name == "window" && c.Status != "flag" {
			t.Errorf("%+v", c)
		}
	}
}
