package metrics

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

func find(t *testing.T, checks []result.Check, name string) result.Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			if known := slices.ContainsFunc(result.CheckKinds(), func(k result.CheckKind) bool { return k.Name == name && k.Unit == c.Unit }); !known {
				t.Errorf("a check that is in no list: %+v", c)
			}
			if c.Value == nil && c.Case == "" || c.Limit == nil && name != result.CheckGone {
				t.Errorf("check without numbers: %+v", c)
			}
			return c
		}
	}
	t.Errorf("no check %q", name)
	return result.Check{}
}

// plain is n answers of 50 ms and 10 ms gaps, one a millisecond.
func plain(n int) []record.Frame {
	var out []record.Frame
	for i := range int64(n) {
		out = append(out, answer{id: i, due: i, stamps: []int64{i + 50, i + 60, i + 70}, usage: 3, first: 1}.frame())
	}
	return out
}

func TestCleanRunIsValid(t *testing.T) {
	s := window(10)
	s.Planned, s.Exact, s.Cold = 1000, true, true
	frames := plain(1000)
	for i := range frames {
		frames[i].Rows[0].OutputPlanned, frames[i].Rows[0].CachedTokens = 3, 0
	}
	frames = append(frames, record.Frame{Samples: []record.Sample{{T: 1, Source: record.SourceClient, Name: record.CPUShare, Value: .3}}})
	p := fold(s, frames...).Point()
	for _, c := range p.Checks {
		if c.Status != result.Pass {
			t.Errorf("%+v", c)
		}
	}
	if p.Verdict != result.Valid || len(p.Checks) < 16 {
		t.Errorf("%s with %d checks", p.Verdict, len(p.Checks))
	}
}

func TestChecks(t *testing.T) {
	sample := func(name string, v float64) func([]record.Frame, *Setup) {
		return func(fr []record.Frame, _ *Setup) {
			fr[0].Samples = []record.Sample{{T: 5, Source: record.SourceClient, Name: name, Value: v}}
		}
	}
	every := func(n int, change func(*record.Row)) func([]record.Frame, *Setup) {
		return func(fr []record.Frame, _ *Setup) {
			for i := 0; i < len(fr); i += n {
				change(&fr[i].Rows[0])
			}
		}
	}
	lag := func(d int64) func([]record.Frame, *Setup) {
		return every(1, func(r *record.Row) { r.Sent += d })
	}
	starts := func(at ...float64) func([]record.Frame, *Setup) {
		return func(fr []record.Frame, _ *Setup) {
			for _, v := range at {
				fr[0].Samples = append(fr[0].Samples, record.Sample{Source: record.SourceServer, Name: metric.ProcessStart, Value: v})
			}
		}
	}
	for _, c := range []struct {
		check  string
		status result.Status
		spoil  func([]record.Frame, *Setup)
	}{
		{"client cpu", result.Flag, sample(record.CPUShare, .7)},
		{"client cpu", result.Fail, sample(record.CPUShare, .95)},
		{"clock steps", result.Flag, sample(record.ClockStep, .004)},
		{"recording", result.Fail, sample(record.RecordErrors, 1)},
		{"recording", result.Fail, func(fr []record.Frame, _ *Setup) { fr[0].Marks = []record.Mark{{Name: record.RecordErrors}} }},
		{"send lag", result.Pass, lag(ms / 2)},
		{"send lag", result.Flag, lag(3 * ms / 2)},
		{"send lag", result.Fail, lag(6 * ms)},
		{"accounting", result.Fail, func(_ []record.Frame, s *Setup) { s.Planned = 1001 }},
		{"accounting", result.Fail, every(500, func(r *record.Row) { r.ID = 0 })},
		{"prompt lengths", result.Flag, every(50, func(r *record.Row) { r.PromptTokens = 102 })},
		{"prompt lengths", result.Pass, every(1, func(r *record.Row) { r.PromptTokens = 101 })},
		{"output lengths", result.Flag, func(fr []record.Frame, s *Setup) {
			s.Exact = true
			every(1, func(r *record.Row) { r.OutputPlanned = 4 })(fr, s)
		}},
		{"output lengths", result.Flag, func(fr []record.Frame, s *Setup) {
			s.Exact = true
			every(50, func(r *record.Row) { r.OutputPlanned, r.Finish = 4, "stop" })(fr, s)
		}},
		{"output lengths", result.Pass, func(fr []record.Frame, s *Setup) { // they end at the requested length
			s.Exact = true
			every(1, func(r *record.Row) { r.OutputPlanned, r.Finish = 3, "stop" })(fr, s)
		}},
		{"finish reasons", result.Flag, every(900, func(r *record.Row) { r.Finish = "max_time_reached" })},
		{"gc pauses", result.Flag, sample(record.Pause, .02)},
		{"gc pauses", result.Pass, sample(record.Pause, .002)},
		{"gc pauses", result.Flag, func(fr []record.Frame, _ *Setup) { // in the last second of the window
			fr[0].Samples = []record.Sample{{T: 10_800 * ms, Source: record.SourceClient, Name: record.Pause, Value: .02}}
		}},
		{"gc pauses", result.Pass, func(fr []record.Frame, s *Setup) { // before the window, and after it
			s.T0 += 5 * ms
			fr[0].Samples = []record.Sample{{T: 5 * ms, Source: record.SourceClient, Name: record.Pause, Value: .02},
				{T: 6 * ms, Source: record.SourceClient, Name: record.Pause}, {T: 11_100 * ms, Source: record.SourceClient, Name: record.Pause, Value: .02}}
		}},
		{"connects", result.Pass, every(1, func(r *record.Row) { r.Ready += ms / 2 })},
		{"connects", result.Flag, every(50, func(r *record.Row) { r.Ready, r.Sent = r.Ready+3*ms, r.Sent+3*ms })},
		{"server restarts", result.Flag, starts(1700000000, 1700000042.5)},
		{"server restarts", result.Pass, starts(1700000000.01, 1700000000.02)},
		{"server restarts", result.Pass, every(100, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrReset })},
		{"server restarts", result.Flag, func(fr []record.Frame, _ *Setup) { breakAt(fr, 500*ms, 0) }},
		{"server restarts", result.Pass, func(fr []record.Frame, _ *Setup) { breakAt(fr, 500*ms, 1) }}, // one lives on
		{"Little's law", result.Pass, every(1, func(r *record.Row) { r.Done += ms / 2 })},
		{"Little's law", result.Flag, every(1, func(r *record.Row) { r.Done += 30 * ms })},
		{"arrivals", result.Pass, every(1, func(r *record.Row) { r.Sent += ms / 2 })},
		{"arrivals", result.Flag, every(1, func(r *record.Row) { r.Ready, r.Sent = r.Ready+25*ms, r.Sent+25*ms })},
		{"resets", result.Flag, every(500, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrReset })},
		{"errors", result.Flag, every(50, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ServerError(500) })},
		{"own errors", result.Fail, every(900, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrBug })},
		{"retransmits", result.Flag, every(50, func(r *record.Row) { r.Retransmits = 2 })},
		{"retries", result.Flag, every(50, func(r *record.Row) { r.Retried = 1 })},
		{"stamps", result.Flag, func(_ []record.Frame, s *Setup) { s.Stamps = "user" }},
		{"stamps", result.Flag, every(1, func(r *record.Row) { r.Arrivals, r.UserStamps = 3, 1 })},
		{"window", result.Flag, every(900, func(r *record.Row) { r.LastToken = 6000 * ms })},
		{"hidden reasoning", result.Flag, every(900, func(r *record.Row) { r.HiddenTokens = 1 })},
		{"prefix cache", result.Flag, func(fr []record.Frame, s *Setup) {
			s.Cold = true
			every(2, func(r *record.Row) { r.CachedTokens = 16 })(fr, s)
		}},
		{"repeated prompts", result.Flag, func(_ []record.Frame, s *Setup) { s.Prompts = 999 }},
		{"repeated prompts", result.Pass, func(_ []record.Frame, s *Setup) { s.Prompts = 1000 }},
		{"merged chunks", result.Flag, every(100, func(r *record.Row) { r.Merged = 1 })},
		{"token counts", result.Flag, func(fr []record.Frame, _ *Setup) {
			for i := range fr {
				for j := range fr[i].Chunks {
					fr[i].Chunks[j].Tokens = 2
				}
			}
		}},
	} {
		s, frames := window(10), plain(1000)
		c.spoil(frames, &s)
		p := fold(s, frames...).Point()
		if got := find(t, p.Checks, c.check); got.Status != c.status {
			t.Errorf("%+v, want %s", got, c.status)
		}
		if (c.status == result.Fail) != (p.Verdict == result.Invalid) {
			t.Errorf("%s %s gives %s", c.check, c.status, p.Verdict)
		}
	}
}

// breakAt has the connections break of all requests under way at a time, but
// for the last few of them.
func breakAt(frames []record.Frame, at int64, but int) {
	for _, f := range slices.Backward(frames) {
		r := &f.Rows[0]
		if r.Sent >= at || r.Done < at {
			continue
		}
		if but--; but < 0 {
			r.Outcome, r.Error, r.Done = record.Failed, record.ErrReset, at+r.ID%7*1000
		}
	}
}

// A server that answers nothing is a result, not an invalid measurement.
func TestFailingServerIsNotInvalid(t *testing.T) {
	f := NewFold(window(10))
	for i := range int64(1000) {
		f.Add(failed(i, i, 5, record.ServerError(500)))
	}
	p := f.Point()
	if p.Outcome != "failing" || p.Verdict == result.Invalid || p.Metrics.SummaryOf(metric.TTFT) != nil || p.Metrics.Undefined["ttft_ms"].IsNone() {
		t.Errorf("%s, %s, %v", p.Outcome, p.Verdict, p.Metrics.Undefined)
	}
}

// Prompts of a given seed may be known to the server from an earlier run; only
// its count of cached tokens could tell.
func TestGivenSeedWithoutCachedTokens(t *testing.T) {
	for name, c := range map[string]struct {
		cold, seeded, announced bool
		status                  result.Status // "": no check
	}{
		"fresh prompts":            {true, false, false, ""},
		"seed given":               {true, true, false, result.Flag},
		"seed given, server tells": {true, true, true, result.Pass},
		"prefixes are shared":      {false, true, false, ""},
	} {
		s, frames := window(10), plain(100)
		s.Cold, s.Seeded = c.cold, c.seeded
		if c.announced {
			for i := range frames {
				frames[i].Rows[0].CachedTokens = 0
			}
		}
		checks := fold(s, frames...).Point().Checks
		if c.status != "" {
			if got := find(t, checks, "prefix cache"); got.Status != c.status {
				t.Errorf("%s: %+v", name, got)
			}
		} else if slices.ContainsFunc(checks, func(c result.Check) bool { return c.Name == "prefix cache" }) {
			t.Errorf("%s: checked", name)
		}
	}
}

// A percentile that is only known to be larger cannot be compared; but no
// percentile shifts by more than the largest lag.
func TestLagOfCensoredPercentiles(t *testing.T) {
	for name, c := range map[string]struct {
		lag, wait int64 // ms: of every request, of those that were cut
		share     int   // one in so many was cut
		status    result.Status
		detail    string // what was counted
	}{
		"p99, lag small beside it":  {15, 1000, 50, result.Fail, "lag_max lag_p99 shift_p50"}, // p50 shifts
		"p99, nothing shifts":       {0, 1000, 50, result.Pass, "lag_max lag_p99 shift_p50"},
		"all, lag small beside it":  {15, 1000, 1, result.Pass, "lag_max lag_p99"},
		"all, lag may shift it all": {30, 1000, 1, result.Flag, "lag_max lag_p99"},
		"none":                      {0, 1000, 1 << 30, result.Pass, "lag_p99 shift_p50 shift_p99"},
	} {
		frames := plain(1000)
		for i := range frames {
			r := &frames[i].Rows[0]
			r.Sent += c.lag * ms
			if (i+1)%c.share == 0 {
				frames[i] = cut(r.ID, r.Due/ms, c.wait)
				frames[i].Rows[0].Sent += c.lag * ms
			}
		}
		got := find(t, fold(window(10), frames...).Point().Checks, "send lag")
		if counted := strings.Join(slices.Sorted(maps.Keys(got.Detail)), " "); got.Status != c.status || counted != c.detail {
			t.Errorf("%s: %+v", name, got)
		}
		if x, open := got.Detail["lag_max"]; open && x != float64(c.lag) || got.Value != nil && *got.Value != float64(c.lag) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Some servers tell of cached tokens only where there were some: the others had none.
func TestShareThatWasCached(t *testing.T) {
	s, frames := window(10), plain(100)
	for i := range frames {
		frames[i].Rows[0].PromptTokens, frames[i].Rows[0].CachedTokens = 100, record.Unset
		if i%4 == 0 {
			frames[i].Rows[0].CachedTokens = 80
		}
	}
	if x := fold(s, frames...).Point().Window["cached_share"]; x < 0.19 || x > 0.21 {
		t.Errorf("%g", x)
	}
	for i := range frames {
		frames[i].Rows[0].CachedTokens = record.Unset
	}
	if x, announced := fold(s, frames...).Point().Window["cached_share"]; announced {
		t.Errorf("nobody told, and it is %g", x)
	}
}
