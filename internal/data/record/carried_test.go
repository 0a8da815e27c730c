package record

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/data/rundir"
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
	j.Sample(Sample{Point: 1, T: 5, Source: SourceClient, Name: CPUShare, Value: .25})
	j.Mark(Mark{Point: 1, Name: "point", Data: []byte("{}")})
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(from, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end := j.Written()
	for _, most := range []int{1, 300 << 10, 1 << 20} {
		into := t.TempDir()
		sum, err := Create(into)
		if err != nil {
			t.Fatal(err)
		}
		sum.SetPoint(1)
		var pieces []byte
		for at := int64(0); ; {
			piece, err := Sealed(file, at, end, most)
			if err != nil {
				t.Fatal(err)
			}
			if piece == nil {
				break
			}
			at, pieces = at+int64(len(piece)), append(pieces, piece...)
			for f, err := range Carried(piece) {
				if err != nil {
					t.Fatal(err)
				}
				sum.Take(&f)
			}
			for _, bad := range [][]byte{piece[:len(piece)-1], piece[1:], flipped(piece, len(piece)/2)} {
				var last error
				for _, err := range Carried(bad) {
					last = err
				}
				if last == nil {
					t.Errorf("a damaged piece of %d bytes passes", len(bad))
				}
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
	if err := j.Close(); err != nil {
		t.Fatal(err)
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
