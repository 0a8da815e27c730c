package session

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// workersJournal is a journal of one worker with so many requests; window is the mark of how its
// share ended, nil for none.
func workersJournal(t *testing.T, rank int32, requests int64, window *marks.Window) (string, *record.Journal) {
	t.Helper()
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.SetWorker(rank)
	j.SetPoint(0)
	for id := range requests {
		r := record.BlankRow()
		r.ID, r.Due, r.Done = id, id*10, id*10+5
		j.Done(&r)
	}
	if window != nil {
		writeMark(j, marks.NameWindow, 0, marks.Encode(window))
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	return dir, j
}

// A worker's journal takes the place of what had come home only where it can be read, tells
// what a window's end has to tell, and has no less.
func TestWorkersJournalIsReadThrough(t *testing.T) {
	t0 := int64(1)
	for name, test := range map[string]struct {
		window *marks.Window
		home   int
		wrong  string
	}{
		"whole":          {&marks.Window{T0: &t0, T1: 50, Workers: []result.Worker{{Rank: 1}}}, 3, ""},
		"cut off":        {nil, 3, ""},
		"without begin":  {&marks.Window{T1: 50, Workers: []result.Worker{{Rank: 1}}}, 3, "does not say"},
		"without worker": {&marks.Window{T0: &t0, T1: 50}, 3, "does not say"},
		"less than home": {nil, 4, "less than the 4"},
	} {
		dir, j := workersJournal(t, 1, 3, test.window)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		own, err := readThrough(dir, 0, 1, recordCount{rows: test.home}, loadgen.Never)
		if test.wrong == "" && (err != nil || own.has.rows != 3) || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %+v, %v", name, own, err)
		}
	}
}

// A mock ends with the process that has it. What its workers recorded of it from then on is not
// what a server did: answers count, and what failed is what was under way when the run was killed.
func TestMockEndsWithItsCoordinator(t *testing.T) {
	host, _ := os.Hostname()
	for _, kind := range []string{config.KindMock, config.KindServer} {
		dir, members := t.TempDir(), []marks.Member{}
		j, err := record.Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := rundir.WriteNew(dir, rundir.Config, nil); err != nil { // which is what holds it
			t.Fatal(err)
		}
		writeMark(j, marks.NameRun, 0, marks.EncodeHead(&result.Run{Schema: result.Schema, Started: "2026-11-20T23:48:00Z", Workload: json.RawMessage(`{"kind":"random","sampling":{}}`), Target: result.Target{Kind: kind}}))
		writeMark(j, marks.NamePoint, 0, marks.Encode(&metrics.Setup{T1: loadgen.Never, Sharing: 2, Stamps: "kernel"}))
		for rank := range int32(2) {
			own := t.TempDir()
			w, err := record.Create(own)
			if err != nil {
				t.Fatal(err)
			}
			w.SetWorker(rank)
			w.SetPoint(0)
			for k := range int64(5) { // every tenth of a second one is answered; the coordinator dies behind the second
				r := record.BlankRow()
				r.ID, r.Outcome = 2*k+int64(rank), record.OK
				r.Due, r.Done = r.ID*50e6, r.ID*50e6+20e6
				r.Sent, r.FirstToken, r.LastToken = r.Due, r.Done, r.Done
				if k > 2 {
					r.Outcome, r.Error, r.FirstToken, r.LastToken = record.Failed, record.ErrConnect, record.Unset, record.Unset
				}
				w.Done(&r)
				if k < 2 {
					j.AddFrame(&record.Frame{Worker: rank, Rows: []record.Row{r}})
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			members = append(members, marks.Member{Worker: result.Worker{Rank: len(members), Host: host, CPUs: 3, AheadBound: .02}, Dir: own})
		}
		writeMark(j, marks.NameCrew, 0, marks.Encode(marks.Crew{Run: "r", Workers: members}))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := Finish(dir, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		p := &got.Points[0]
		refused := p.Requests.Errors[record.ErrConnect]
		if refused > 0 != (kind == config.KindServer) || p.Requests.OK < 5 {
			t.Errorf("%s: %+v", kind, p.Requests)
		}
		if len(p.Workers) != 2 || p.Workers[1].Rank != 1 || p.Workers[1].Host != host || p.Workers[0].CPUs != 3 || p.Workers[1].AheadBound != .02 || p.Workers[0].Requests == 0 {
			t.Errorf("%s: %+v", kind, p.Workers)
		}
	}
}

// A worker that hangs holds its journal for ever: the wait for it ends, and of it the run has
// what had come home. One that can be collected is.
func TestWorkerThatHangs(t *testing.T) {
	host, _ := os.Hostname()
	hangs, held := workersJournal(t, 0, 3, nil)
	defer held.Close()
	ended, closed := workersJournal(t, 1, 3, nil)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	writeMark(j, marks.NameRun, 0, marks.EncodeHead(&result.Run{Schema: result.Schema, Started: "2026-11-20T23:48:00Z", Workload: json.RawMessage(`{"kind":"random","sampling":{}}`)}))
	writeMark(j, marks.NamePoint, 0, marks.Encode(&metrics.Setup{T1: loadgen.Never, Sharing: 2}))
	writeMark(j, marks.NameCrew, 0, marks.Encode(marks.Crew{Run: "r", Workers: []marks.Member{{Worker: result.Worker{Host: host}, Dir: hangs}, {Worker: result.Worker{Rank: 1, Host: host}, Dir: ended}}}))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var shown []string
	if err := waitForWorkers(context.Background(), dir, time.Millisecond, func(line string) { shown = append(shown, line) }); err != nil || len(shown) != 1 {
		t.Errorf("%q, %v", shown, err)
	}
	says, err := collectJournals(context.Background(), dir, nil)
	if err != nil || len(says) != 2 || !strings.Contains(says[0], "worker 0 ("+hangs+") still records") || !strings.HasPrefix(says[1], "collected the journals of 1 of 2 workers") {
		t.Errorf("%q, %v", says, err)
	}
	if n := homeRecords(dir, 0); n[0].rows != 0 || n[1].rows != 3 {
		t.Errorf("the run has %+v", n)
	}
}
