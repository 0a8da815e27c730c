package session

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/slo"
	"pitot/internal/workload"
)

// A load that is counted violates what one does that is recorded, request by request; its
// rows are all that is kept.
func TestCountIsAsRecorded(t *testing.T) {
	objective, err := slo.Parse("p90 ttft<45ms, p90 tpot<9ms, p90 e2e<700ms, p90 ttfa<45ms")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := objective.SplitClaims()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []config.Load{{Rate: 12, Requests: 400}, {Concurrency: 9, Requests: 300}} {
		p := config.Default()
		p.Spec, p.Out, p.Seed, p.SeedSet = "sim:llama-3.1-8b@h100", filepath.Join(t.TempDir(), "run"), 5, true
		p.Input, p.Ask.Output = lengths(t, "uniform(100,900)"), lengths(t, "uniform(20,120)")
		s := open(t, &p)
		l := pointSpec(s, PointSpec{Load: of})
		recorded, err := s.Measure(context.Background(), l)
		if err != nil {
			t.Fatal(err)
		}
		s.counted = -firstCounted // the same arrivals and prompts
		l.Counted = true
		counted, err := s.Measure(context.Background(), l)
		if err != nil {
			t.Fatal(err)
		}
		want, got := recorded.CountViolations(claims, 10), counted.CountViolations(claims, 10)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if slices.Contains(want.Of, 0) || slices.Max(want.Of) == want.N {
			t.Errorf("limits that tell nothing: %d of %d", want.Of, want.N)
		}
		if counted.Extent != recorded.Extent || counted.Stability != recorded.Stability || counted.Index != Unrecorded {
			t.Errorf("%+v and %+v, %s and %s", counted.Extent, recorded.Extent, counted.Stability, recorded.Stability)
		}
		run, err := s.Close(false, nil)
		if err != nil || len(run.Points) != 1 {
			t.Errorf("%d points: %v", len(run.Points), err)
		}
	}
}

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
		frames, err := kept.frameIterator()
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

func lengths(t *testing.T, s string) workload.Lengths {
	t.Helper()
	l, err := workload.ParseLengths(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
