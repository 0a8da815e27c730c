package run

import (
	"slices"
	"testing"

	"pitot/internal/data/record"
)

// Records that do not fit into memory come back from the disk as they were, and
// leave nothing behind.
func TestKeptRecords(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	kept := &keptRecords{point: 3, size: keptInMemory - 10*chunkSize}
	for i := range int64(40) {
		kept.Chunk(record.Chunk{Request: i, T: 1000 * i})
		row := record.BlankRow()
		row.ID = i
		kept.Done(&row)
	}
	if kept.journal == nil {
		t.Fatal("all stayed in memory")
	}
	for range 2 {
		frames, err := kept.records()
		if err != nil {
			t.Fatal(err)
		}
		var chunks, rows []int64
		for f, err := range frames {
			if err != nil || f.Point != 3 {
				t.Fatal(f.Point, err)
			}
			for _, c := range f.Chunks {
				chunks = append(chunks, c.Request)
			}
			for i := range f.Rows {
				rows = append(rows, f.Rows[i].ID)
			}
		}
		want := make([]int64, 40)
		for i := range want {
			want[i] = int64(i)
		}
		if !slices.Equal(chunks, want) || !slices.Equal(rows, want) {
			t.Errorf("%v, %v", chunks, rows)
		}
	}
	dir := kept.dir
	kept.remove()
	if exists(dir) {
		t.Error("the directory is still there")
	}
}
