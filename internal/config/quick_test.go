package config

import (
	"testing"
	"time"
)

// pitot quick is a sweep over users, with its own lengths and budget unless the user gives others.
func TestDecodeQuick(t *testing.T) {
	p, consent, args, err := DecodeQuick([]string{"http://localhost:8000", "--output", "32", "--yes"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Over != OverConcurrency || p.Input.String() != "256" || p.Budget != 30*time.Second || !consent.Yes || len(args) != 1 {
		t.Errorf("%+v %+v %v", p.Search, consent, args)
	}
	sweep, _, err := Decode(VerbSweep, []string{"http://localhost:8000", "--over", "concurrency", "--points", "8", "--input", "256", "--output", "32", "--budget", "30s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(p.YAML(VerbSweep)), string(sweep.YAML(VerbSweep)); got != want {
		t.Errorf("the sweep's config is\n%s\nwant\n%s", got, want)
	}
}
