package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/rundir"
)

// workerJournal is the journal of one of several workers: two requests, which have the
// ids that those of the others have.
func workerJournal(worker int32) []byte {
	var w frameWriter
	b := newBatch()
	b.reset(part{2, worker})
	b.addMark(Mark{Point: 2, Name: "window", Data: []byte(`{}`)})
	for i := range int64(4) {
		t := 1000*i + int64(worker)
		b.addChunk(Chunk{Request: i / 2, T: t, Earliest: t, Tokens: 1, Bytes: 4 + worker})
	}
	b.addSample(Sample{Point: 2, T: 10, Source: SourceClient, Name: CPUShare, Value: .5 + float64(worker)})
	data := w.append(nil, b)
	b.reset(part{2, worker})
	for i := range int64(2) {
		r := BlankRow()
		r.ID, r.Point, r.Due, r.Done, r.Chunks, r.Stream = i, 2, 100*int64(worker), 5000, 2, true
		b.addRow(&r)
	}
	return w.append(data, b)
}

func framesOf(t *testing.T, dir string) (frames []Frame) {
	t.Helper()
	for f, err := range Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		f.Chunks, f.Rows, f.Samples = slices.Clone(f.Chunks), slices.Clone(f.Rows), slices.Clone(f.Samples)
		f.Marks = slices.Clone(f.Marks)
		frames = append(frames, f)
	}
	return frames
}

// The records of several workers of one point are told apart, however they are
// mingled: as frames, in Parquet, and joined to requests.
func TestWorkers(t *testing.T) {
	var mingled []Frame
	for worker := range int32(3) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, rundir.Journal), workerJournal(worker), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, f := range framesOf(t, dir) {
			if f.Worker != worker || f.Point != 2 {
				t.Fatalf("worker %d, point %d", f.Worker, f.Point)
			}
			mingled = append(mingled, f)
		}
	}
	slices.SortStableFunc(mingled, func(a, b Frame) int { return len(a.Rows) - len(b.Rows) }) // all chunks, then all rows
	dir := t.TempDir()
	if err := WriteParquet(dir, func(yield func(Frame, error) bool) {
		for _, f := range mingled {
			if !yield(f, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	ids := map[int64]int{}
	l, err := openLines(dir, rundir.Requests, requestFields)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for {
		r, err := l.peek()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			break
		}
		ids[r.ID]++
		l.dropRow()
	}
	if len(ids) != 6 || ids[0] != 1 || ids[1<<workerShift] != 1 || ids[2<<workerShift+1] != 1 {
		t.Errorf("ids %v", ids)
	}
	for name, frames := range map[string][]Frame{"frames": mingled, "parquet": framesOf(t, dir)} {
		var of int32
		var got []string
		join := Join[[]Chunk]{
			Chunk: func(s *[]Chunk, c *Chunk) { *s = append(*s, *c) },
			Row: func(r *Row, s *[]Chunk) {
				for _, c := range *s {
					if c.Bytes != 4+of || r.Due != 100*int64(of) || c.Request != r.ID {
						t.Errorf("%s: request %d of worker %d has chunk %+v", name, r.ID, of, c)
					}
				}
				got = append(got, fmt.Sprintf("%d/%d:%d", of, r.ID, len(*s)))
			},
			Reset: func(s *[]Chunk) { *s = (*s)[:0] },
		}
		marks, samples := 0, 0
		for i := range frames {
			f := &frames[i]
			of = f.Worker
			join.Add(f)
			marks += len(f.Marks)
			for _, s := range f.Samples {
				if s.Value != .5+float64(of) {
					t.Errorf("%s: sample %+v of worker %d", name, s, of)
				}
				samples++
			}
		}
		slices.Sort(got)
		if want := []string{"0/0:2", "0/1:2", "1/0:2", "1/1:2", "2/0:2", "2/1:2"}; !slices.Equal(got, want) || marks != 3 || samples != 3 {
			t.Errorf("%s: requests with their chunks %v, %d marks, %d samples", name, got, marks, samples)
		}
	}
}

// A journal of a worker that was kept is read as one of today.
func TestGoldenWorkers(t *testing.T) {
	const golden = "../testdata"
	fresh := t.TempDir()
	if err := os.WriteFile(filepath.Join(fresh, rundir.Journal), workerJournal(5), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(framesOf(t, filepath.Join(golden, "worker")), framesOf(t, fresh)); d != "" {
		t.Errorf("the journal that was kept (-) and one of today (+):\n%s", d)
	}
	for dir, worker := range map[string]int32{"run": 0, "killed-run": 0, "worker": 5} {
		rows := 0
		for _, f := range framesOf(t, filepath.Join(golden, dir)) {
			if rows += len(f.Rows); f.Worker != worker {
				t.Errorf("%s: worker %d", dir, f.Worker)
			}
		}
		if rows == 0 {
			t.Errorf("%s has no rows", dir)
		}
	}
}
