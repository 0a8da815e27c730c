package experiment

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A stored experiment is read whole.
func TestGolden(t *testing.T) {
	dir := filepath.Join("testdata", "v1")
	data, err := os.ReadFile(filepath.Join(dir, RecordJSON))
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(Record)); err != nil {
		t.Errorf("a stored field is gone: %v", err)
	}
	r, err := ReadRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Answer != AnswerAccepted || r.Accepted != Baseline || len(r.Standings) != 2 || len(r.Lines) == 0 || r.BeginTime() == "" || r.Headroom == nil || r.Distance == nil {
		t.Errorf("%+v", r)
	}
	if s := CompareRecords(dir, r, r); s.Worse+s.Better != 0 || len(s.Lines) == 0 {
		t.Errorf("%+v", s)
	}
	if p, _, err := PlanOfRecord(filepath.Join(dir, RecordJSON)); err != nil || p.Launches != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	s, err := readState(dir)
	if err != nil || s == nil || s.Seed != 1 || len(s.Sittings) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	newer := t.TempDir()
	data, err = os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(newer, stateFile), bytes.Replace(data, []byte("/v1"), []byte("/v2"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(newer); err == nil || !strings.Contains(err.Error(), `is of version "pitot.experiment/v2", which this program does not know`) {
		t.Errorf("%v", err)
	}
}
