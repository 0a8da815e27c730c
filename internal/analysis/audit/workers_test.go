package audit

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/session"
	"pitot/internal/sim/serve"
)

// Each worker is held against the truth by its own clock's origin, and the one that is off by
// most is named, although all together are hardly off.
func TestWorkersAgainstTheTruth(t *testing.T) {
	const ms = int64(1e6)
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	origins := []int64{1_000 * ms, 1_002 * ms} // the second began 2 ms late
	late := []int64{0, 3 * ms}                 // and stamps what it reads 3 ms late
	for id := range int64(400) {
		worker := int32(id % 2)
		if id%8 == 1 {
			worker = 0 // five of eight are the first's
		}
		sent := 100*ms + id*ms
		f := record.Frame{Worker: worker}
		arrived := origins[worker] + sent
		truth := serve.Truth{ID: fmt.Sprint(id), RequestID: fmt.Sprintf("pitot-7-%d", id), Status: 200, ArrivalNS: arrived, OutputTokens: 3}
		r := record.BlankRow()
		r.ID, r.Due, r.Sent, r.Outcome, r.Stream, r.Chunks = id, sent, sent, record.OK, true, 3
		for k := range int64(3) {
			emit := arrived + 50*ms + 10*ms*k
			at := emit - origins[worker] + late[worker]
			truth.EmitNS = append(truth.EmitNS, emit)
			f.Chunks = append(f.Chunks, record.Chunk{Request: id, T: at, Earliest: at, Tokens: 1})
			if k == 0 {
				r.FirstEvent, r.FirstToken, r.FirstAnswer = at, at, at
			}
			r.LastToken, r.Done, truth.DoneNS = at, at, emit
		}
		f.Rows = []record.Row{r}
		j.AddFrame(&f)
		line, _ := json.Marshal(truth)
		fmt.Fprintf(log, "%s\n", line)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	log.Close()
	l := new(Level)
	pt := &result.Point{Seconds: result.Seconds{Warmup: 0, Window: 1}, Workers: []result.Worker{{Rank: 0, Ahead: -.001, AheadBound: .02}, {Rank: 1, Ahead: .03, AheadBound: .02}}}
	spent := session.Spent{Origin: origins[0], CPU: time.Second, Wall: time.Second, Workers: []session.Spent{{Origin: origins[0], CPU: time.Second / 4}, {Origin: origins[1], CPU: time.Second / 2}}}
	if err := l.compareRecords(pt, dir, log.Name(), spent); err != nil {
		t.Fatal(err)
	}
	if len(l.Workers) != 2 {
		t.Fatalf("%+v", l.Workers)
	}
	for rank, w := range l.Workers {
		want := float64(late[rank] / ms)
		if math.Abs(*w.TTFTError.Mean-want) > 1e-9 || math.Abs(*w.ChunkError.P50-want) > 1e-9 || w.Reported.Gap == nil || math.Abs(*w.Reported.Gap.P50-10) > 1e-6 {
			t.Errorf("worker %d: TTFT off by %v, chunks by %v, gaps %+v", rank, *w.TTFTError.Mean, *w.ChunkError.P50, w.Reported.Gap)
		}
		if w.Start != time.Duration(origins[rank]-origins[0]) || w.Bound != .02 {
			t.Errorf("worker %d: %+v", rank, w)
		}
	}
	if w, f := l.WorstWorker(); w == nil || w.Rank != 1 || f.Name != "mean TTFT" && f.Name != "p99 TTFT" {
		t.Errorf("the worst is %+v, %+v", w, f)
	}
	if x := l.LargestError(); math.Abs(x-3) > 1e-9 || math.Abs(*l.TTFTError.Mean-3*3./8) > 1e-9 {
		t.Errorf("off by %v at most, all by %v on average", x, *l.TTFTError.Mean)
	}
	if l.Workers[1].CPUPerChunk != time.Second/2/450 {
		t.Errorf("%v a chunk", l.Workers[1].CPUPerChunk)
	}
}
