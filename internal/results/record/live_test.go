package record

import (
	"errors"
	"testing"

	"pitot/internal/results/rundir"
)

func TestLiveJournalIsNotFinished(t *testing.T) {
	dir := t.TempDir()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.Done(&Row{ID: 1})
	if err := Finish(dir, Frames(dir), func(Frame) {}); !errors.Is(err, rundir.ErrLive) {
		t.Errorf("finish of a live journal: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Finish(dir, Frames(dir), func(Frame) {}); err != nil {
		t.Errorf("finish of a closed journal: %v", err)
	}
}
