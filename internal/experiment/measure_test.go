package experiment

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/results/result"
	"pitot/internal/session"
)

// lines is a view that counts what is measured, and may do something when a part begins.
type lines struct {
	parts int
	begin func(part int)
}

func (*lines) ShowLine(string)       {}
func (*lines) Update(session.Status) {}
func (v *lines) About(string) {
	v.parts++
	if v.begin != nil {
		v.begin(v.parts)
	}
}

func measured(t *testing.T, ctx context.Context, source, dir string, v *lines) *Record {
	t.Helper()
	p, err := Parse("small.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	x, err := Measure(ctx, p, []byte(source), dir, result.Version{Version: "test"}, v)
	if err != nil {
		t.Fatal(err)
	}
	return x.Record()
}

// decided is what a record says, but for when and where it was measured.
func decided(t *testing.T, r *Record) string {
	t.Helper()
	c := *r
	c.Sittings, c.Repeat, c.Machine, c.Next, c.Void = nil, nil, nil, nil, nil
	if c.Limiter != nil {
		l := *c.Limiter
		l.Run, c.Limiter = "", &l
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An experiment that is stopped under way, or whose budget is spent, and one that is killed, go on
// to the record of one that was not; what is there is not measured again, what is planned otherwise
// is put away.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	snapshot, first := filepath.Join(dir, "snapshot"), 0
	v := &lines{begin: func(part int) {
		if part == 4 { // what a kill would leave
			if err := os.CopyFS(snapshot, os.DirFS(whole)); err != nil {
				t.Error(err)
			}
		}
	}}
	r := measured(t, t.Context(), small, whole, v)
	if r.Answer != AnswerUndecided && r.Answer != AnswerAccepted || r.Launches.Blocks != 2 || len(r.Hypotheses) != 3 || r.Hypotheses[2].Outcome != Held || r.Standings[0].Carries == nil {
		t.Errorf("%+v", r)
	}
	first = v.parts
	want := decided(t, r)

	v = &lines{}
	if got := decided(t, measured(t, t.Context(), small, snapshot, v)); got != want {
		t.Errorf("after a kill\n%s\nand without\n%s", got, want)
	}
	if v.parts != first-3 {
		t.Errorf("%d parts of %d were measured after 3", v.parts, first)
	}

	// Stopped while a part is measured, again and again.
	stopped := filepath.Join(dir, "stopped")
	v = &lines{}
	r = measured(t, t.Context(), small+"budget: {time: 1s}\n", stopped, v)
	if v.parts != 2 || r.Answer != AnswerUndecided || r.Sittings[len(r.Sittings)-1].Why.Code != result.SittingBudget {
		t.Errorf("a budget for one launch: %d parts, %s, %+v", v.parts, r.Answer, r.Sittings)
	}
	for n := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		v := &lines{begin: func(part int) {
			if part == n+1 {
				cancel()
			}
		}}
		p, err := Parse("small.yaml", []byte(small))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Measure(ctx, p, []byte(small), stopped, result.Version{}, v); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if got := decided(t, measured(t, t.Context(), small, stopped, &lines{})); got != want {
		t.Errorf("after three stops\n%s\nand without\n%s", got, want)
	}

	// Nothing is left to be measured; a changed row is measured anew, and the old one kept.
	v = &lines{}
	if measured(t, t.Context(), small, whole, v); v.parts != 0 {
		t.Errorf("%d parts were measured again", v.parts)
	}
	v = &lines{}
	r = measured(t, t.Context(), strings.Replace(small, "  A:\n", "  A: {requests: 10}\n", 1), whole, v)
	if v.parts != 4 || len(r.Void) != 4 {
		t.Errorf("%d parts, %v", v.parts, r.Void)
	}
	kept, err := os.ReadDir(filepath.Join(whole, void))
	if err != nil || len(kept) != 4 {
		t.Errorf("%d kept, %v", len(kept), err)
	}
}

// Two processes do not measure one experiment, and what is no experiment is left alone.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	p, _ := Parse("small.yaml", []byte(small))
	_, release, err := openState(filepath.Join(dir, "x"), p)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openState(filepath.Join(dir, "x"), p); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Error(err)
	}
	release()
	if _, release, err = openState(filepath.Join(dir, "x"), p); err != nil {
		t.Error(err)
	} else {
		release()
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openState(dir, p); err == nil || !strings.Contains(err.Error(), "holds no experiment") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x", stateFile), []byte(`{"schema":"pitot.experiment/v9"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(filepath.Join(dir, "x")); err == nil || !strings.Contains(err.Error(), "does not know") {
		t.Error(err)
	}
}
