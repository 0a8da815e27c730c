package metrics

import (
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

func TestHost(t *testing.T) {
	for _, c := range []struct {
		about                             string
		others, stolen, waited, throttled float64 // waited below 0: not told
		want                              result.Status
		is                                string // its case
	}{
		{"idle", .01, 0, .02, 0, "pass", ""},
		{"others have a core, one is free", .5, 0, .03, 0, "pass", ""},
		{"it waits for itself", .02, 0, .9, 0, "pass", ""},
		{"others have the cores", .8, 0, .9, 0, "flag", ""},
		{"the same, and no pressure is told", .8, 0, -1, 0, "flag", ""},
		{"a hypervisor takes", .01, .05, .1, 0, "flag", ""},
		{"a container's limit", .01, 0, .1, .1, "flag", result.CaseThrottled},
	} {
		s, frames := window(10), plain(1000)
		add := func(name string, v float64) {
			// What lies outside of the window counts for nothing.
			for _, x := range []record.Sample{{T: s.T0 + 1, Value: v}, {T: s.T1 - 1, Value: v}, {T: s.T1 + 1e9, Value: 1}} {
				x.Source, x.Name = record.SourceHost, name
				frames[0].Samples = append(frames[0].Samples, x)
			}
		}
		add(record.OthersShare, c.others)
		add(record.StolenShare, c.stolen)
		add(record.ThrottledShare, c.throttled)
		if c.waited >= 0 {
			add(record.WaitedShare, c.waited)
		}
		p := fold(s, frames...).Point()
		got := find(t, p.Checks, "host")
		if got.Status != c.want || got.Case != c.is {
			t.Errorf("%s: %+v, want %s", c.about, got, c.want)
		}
		lag := find(t, p.Checks, "send lag")
		if blamed := lag.Case == result.CaseHost; blamed != (c.want == result.Flag) {
			t.Errorf("%s: the cause of send lag: %+v", c.about, lag)
		}
	}
	if p := fold(window(10), plain(1000)...).Point(); hasCheck(p.Checks, "host") {
		t.Error("a machine that tells nothing is checked")
	}
}

func hasCheck(checks []result.Check, name string) bool {
	for _, c := range checks {
		if c.Name == name {
			return true
		}
	}
	return false
}
