package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/rundir"
)

// Frames that are carried piece by piece from a worker's journal and taken by another are
// there as they were written, whatever the size of the pieces; pieces that are damaged or
// cut short are an error.
func TestCarried(t *testing.T) {
	from := t.TempDir()
	j, err := Create(from)
	if err != nil {
		t.Fatal(err)
	}
	j.SetWorker(3)
	j.SetPoint(1)
	for i := range int64(60_000) {
		j.Chunk(Chunk{Request: i / 100, T: i * 1000, Earliest: i * 1000, Tokens: 1, Bytes: 4})
		if i%100 == 99 {
			r := BlankRow()
			r.ID, r.Done = i/100, i*1000
			j.Done(&r)
		}
	}
	j.AddSample(Sample{Point: 1, T: 5, Source: SourceClient, Name: CPUShare, Value: .25})
	j.AddMark(Mark{Point: 1, Name: "point", Data: []byte("{}")})
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(from, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end := j.WrittenBytes()
	for _, most := range []int{1, 300 << 10, 1 << 20} {
		into := t.TempDir()
		sum, err := Create(into)
		if err != nil {
			t.Fatal(err)
		}
		sum.SetPoint(1)
		var pieces []byte
		for at := int64(0); ; {
			piece, err := ReadSealed(file, at, end, most)
			if err != nil {
				t.Fatal(err)
			}
			if piece == nil {
				break
			}
			at, pieces = at+int64(len(piece)), append(pieces, piece...)
			alone := t.TempDir()
			if err := os.WriteFile(filepath.Join(alone, rundir.Journal), piece, 0o644); err != nil {
				t.Fatal(err)
			}
			held := records(t, alone)
			var rows []Row
			chunks := int64(0)
			if err := sum.TakeCarried(piece, 1, func(r []Row, n int64) { rows, chunks = append(rows, r...), chunks+n }); err != nil {
				t.Fatal(err)
			}
			if chunks != int64(len(held.Chunks)) || !cmp.Equal(rows, held.Rows) {
				t.Errorf("%d chunks and %d rows are told of, %d and %d are there", chunks, len(rows), len(held.Chunks), len(held.Rows))
			}
			if err := sum.TakeCarried(piece, 2, func([]Row, int64) { t.Error("records of another point") }); err != nil {
				t.Fatal(err)
			}
			for _, bad := range [][]byte{piece[:len(piece)-1], piece[1:], flipped(piece, len(piece)/2)} {
				none, err := Create(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				if err := none.TakeCarried(bad, 1, func([]Row, int64) {}); err == nil {
					t.Errorf("a damaged piece of %d bytes passes", len(bad))
				}
				_ = none.Close()
			}
		}
		if err := sum.Close(); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(filepath.Join(from, rundir.Journal))
		if err != nil || !bytes.Equal(pieces, whole) {
			t.Errorf("pieces of %d: %d bytes of %d, %v", most, len(pieces), len(whole), err)
		}
		if d := cmp.Diff(records(t, from), records(t, into)); d != "" {
			t.Errorf("pieces of %d, the worker's (-) and what was taken (+):\n%s", most, d)
		}
	}
	first, err := ReadSealed(file, 0, end, 1)
	if err != nil {
		t.Fatal(err)
	}
	torn := int64(len(first)) + 30
	if got, err := ReadSealed(file, 0, torn, 1<<20); err != nil || !bytes.Equal(got, first) {
		t.Errorf("before a frame that is cut short: %d bytes of %d, %v", len(got), len(first), err)
	}
	if _, err := ReadSealed(file, int64(len(first)), torn, 1); err == nil {
		t.Error("a frame that is cut short passes")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Many small frames at once, more than may wait for the disk, are all taken; what marks the
// worker's journal has for itself stays there, and that records are missing is told.
func TestCarriedAtOnce(t *testing.T) {
	from, into := t.TempDir(), t.TempDir()
	j, err := Create(from)
	if err != nil {
		t.Fatal(err)
	}
	j.SetWorker(2)
	const n = 2*queueLimit + 3
	for i := range int64(n) {
		j.Chunk(Chunk{Request: i, T: i, Earliest: i, Tokens: 1})
		switch i {
		case 7:
			j.AddMark(Mark{Name: "point", Data: []byte("{}")})
		case 9:
			j.AddMark(Mark{Name: LostMark})
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	frames, err := os.ReadFile(filepath.Join(from, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Create(into)
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.TakeCarried(frames, 0, func([]Row, int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sum.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, f := range framesOf(t, into) {
		for _, m := range f.Marks {
			told = append(told, m.Name)
		}
	}
	if got := records(t, into); len(got.Chunks) != n || got.Worker != 2 || !slices.Equal(told, []string{LostMark}) {
		t.Errorf("%d chunks of worker %d, marks %v", len(got.Chunks), got.Worker, told)
	}
}

// The plan is written again as often where frames are taken whole as where they are taken apart.
func TestCarriedPlan(t *testing.T) {
	from := t.TempDir()
	worker, err := Create(from)
	if err != nil {
		t.Fatal(err)
	}
	worker.SetWorker(1)
	worker.Chunk(Chunk{Tokens: 1})
	if err := worker.Close(); err != nil {
		t.Fatal(err)
	}
	piece, err := os.ReadFile(filepath.Join(from, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	for name, take := range map[string]func(*Journal) error{
		"whole": func(j *Journal) error { return j.TakeCarried(piece, 0, func([]Row, int64) {}) },
		"apart": func(j *Journal) error {
			for _, f := range framesOf(t, from) {
				j.AddFrame(&f)
			}
			return nil
		},
	} {
		into := t.TempDir()
		j, err := Create(into)
		if err != nil {
			t.Fatal(err)
		}
		j.AddPlan(Mark{Name: "point", Data: []byte("{}")})
		for range 40 {
			j.mu.Lock()
			j.since = j.since.Add(-firstPause / 2)
			j.mu.Unlock()
			if err := errors.Join(take(j), j.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		plans, chunks := 0, 0
		for _, f := range framesOf(t, into) {
			plans, chunks = plans+len(f.Marks), chunks+len(f.Chunks)
		}
		if plans != 5 || chunks != 40 { // at the start, and after 1, 3, 7 and 15 of 20 s
			t.Errorf("taken %s: the plan is there %d times, with %d chunks", name, plans, chunks)
		}
	}
}

func flipped(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i] ^= 4
	return b
}

// records are those of a run directory, without marks, all in one frame.
func records(t *testing.T, dir string) (all Frame) {
	for _, f := range framesOf(t, dir) {
		all.Point, all.Worker = f.Point, f.Worker
		all.Chunks, all.Rows, all.Samples = append(all.Chunks, f.Chunks...), append(all.Rows, f.Rows...), append(all.Samples, f.Samples...)
	}
	return all
}
