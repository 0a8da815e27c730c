package run

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/load"
	"pitot/internal/measure"
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
		mark(j, marks.NameWindow, 0, window.Encode())
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
		"whole":          {&marks.Window{T0: &t0, T1: 50, Workers: []marks.Worker{{Rank: 1}}}, 3, ""},
		"cut off":        {nil, 3, ""},
		"without begin":  {&marks.Window{T1: 50, Workers: []marks.Worker{{Rank: 1}}}, 3, "does not say"},
		"without worker": {&marks.Window{T0: &t0, T1: 50}, 3, "does not say"},
		"less than home": {nil, 4, "less than the 4"},
	} {
		dir, j := workersJournal(t, 1, 3, test.window)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		own, err := readThrough(dir, 0, 1, recordCount{rows: test.home})
		if test.wrong == "" && (err != nil || own.has.rows != 3) || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %+v, %v", name, own, err)
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
	mark(j, marks.NameRun, 0, marks.EncodeHead(&result.Run{Schema: result.Schema, Started: "2026-11-20T23:48:00Z", Workload: json.RawMessage(`{"kind":"random","sampling":{}}`)}))
	mark(j, marks.NamePoint, 0, pointMark(&measure.Setup{T1: load.Never, Sharing: 2}).Encode())
	mark(j, marks.NameCrew, 0, marks.Crew{Run: "r", Workers: []marks.Member{{Host: host, Dir: hangs}, {Host: host, Dir: ended}}}.Encode())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var shown []string
	if err := waitForWorkers(context.Background(), dir, time.Millisecond, func(line string) { shown = append(shown, line) }); err != nil || len(shown) != 1 {
		t.Errorf("%q, %v", shown, err)
	}
	says, err := collect(context.Background(), dir, nil)
	if err != nil || len(says) != 2 || !strings.Contains(says[0], "worker 0 ("+hangs+") still records") || !strings.HasPrefix(says[1], "collected the journals of 1 of 2 workers") {
		t.Errorf("%q, %v", says, err)
	}
	if n := homeRecords(dir, 0); n[0].rows != 0 || n[1].rows != 3 {
		t.Errorf("the run has %+v", n)
	}
}
