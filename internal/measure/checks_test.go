package measure

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
)

func find(t *testing.T, checks []result.Check, name string) result.Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			if c.Value == "" || c.Limit == "" || c.Advice == "" {
				t.Errorf("check without words: %+v", c)
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
		if c.Status != pass {
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
				fr[0].Samples = append(fr[0].Samples, record.Sample{Source: record.SourceServer, Name: record.ProcessStart, Value: v})
			}
		}
	}
	for _, c := range []struct {
		check, status string
		spoil         func([]record.Frame, *Setup)
	}{
		{"client cpu", flag, sample(record.CPUShare, .7)},
		{"client cpu", bad, sample(record.CPUShare, .95)},
		{"clock steps", flag, sample(record.ClockStep, .004)},
		{"recording", bad, sample(record.RecordErrors, 1)},
		{"recording", bad, func(fr []record.Frame, _ *Setup) { fr[0].Marks = []record.Mark{{Name: record.RecordErrors}} }},
		{"send lag", pass, lag(ms / 2)},
		{"send lag", flag, lag(3 * ms / 2)},
		{"send lag", bad, lag(6 * ms)},
		{"accounting", bad, func(_ []record.Frame, s *Setup) { s.Planned = 1001 }},
		{"accounting", bad, every(500, func(r *record.Row) { r.ID = 0 })},
		{"prompt lengths", flag, every(50, func(r *record.Row) { r.PromptTokens = 102 })},
		{"prompt lengths", pass, every(1, func(r *record.Row) { r.PromptTokens = 101 })},
		{"output lengths", flag, func(fr []record.Frame, s *Setup) {
			s.Exact = true
			every(1, func(r *record.Row) { r.OutputPlanned = 4 })(fr, s)
		}},
		{"output lengths", pass, func(fr []record.Frame, s *Setup) { // an answer that was ended early is told as such
			s.Exact = true
			every(1, func(r *record.Row) { r.OutputPlanned, r.Finish = 4, "stop" })(fr, s)
		}},
		{"early stops", flag, func(fr []record.Frame, s *Setup) {
			s.Exact = true
			every(50, func(r *record.Row) { r.OutputPlanned, r.Finish = 4, "stop" })(fr, s)
		}},
		{"early stops", pass, func(fr []record.Frame, s *Setup) { // it ends at the length that was asked for
			s.Exact = true
			every(1, func(r *record.Row) { r.OutputPlanned, r.Finish = 3, "stop" })(fr, s)
		}},
		{"gc pauses", flag, sample(record.Pause, .02)},
		{"gc pauses", pass, sample(record.Pause, .002)},
		{"gc pauses", flag, func(fr []record.Frame, _ *Setup) { // in the last second of the window
			fr[0].Samples = []record.Sample{{T: 10_800 * ms, Source: record.SourceClient, Name: record.Pause, Value: .02}}
		}},
		{"gc pauses", pass, func(fr []record.Frame, s *Setup) { // before the window, and after it
			s.T0 += 5 * ms
			fr[0].Samples = []record.Sample{{T: 5 * ms, Source: record.SourceClient, Name: record.Pause, Value: .02},
				{T: 6 * ms, Source: record.SourceClient, Name: record.Pause}, {T: 11_100 * ms, Source: record.SourceClient, Name: record.Pause, Value: .02}}
		}},
		{"connects", pass, every(1, func(r *record.Row) { r.Ready += ms / 2 })},
		{"connects", flag, every(50, func(r *record.Row) { r.Ready, r.Sent = r.Ready+3*ms, r.Sent+3*ms })},
		{"server restarts", flag, starts(1700000000, 1700000042.5)},
		{"server restarts", pass, starts(1700000000.01, 1700000000.02)},
		{"server restarts", pass, every(100, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrReset })},
		{"server restarts", flag, func(fr []record.Frame, _ *Setup) { breakAt(fr, 500*ms, 0) }},
		{"server restarts", pass, func(fr []record.Frame, _ *Setup) { breakAt(fr, 500*ms, 1) }}, // one lives on
		{"Little's law", pass, every(1, func(r *record.Row) { r.Done += ms / 2 })},
		{"Little's law", flag, every(1, func(r *record.Row) { r.Done += 30 * ms })},
		{"arrivals", pass, every(1, func(r *record.Row) { r.Sent += ms / 2 })},
		{"arrivals", flag, every(1, func(r *record.Row) { r.Ready, r.Sent = r.Ready+25*ms, r.Sent+25*ms })},
		{"resets", flag, every(500, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrReset })},
		{"errors", flag, every(50, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrServer })},
		{"own errors", bad, every(900, func(r *record.Row) { r.Outcome, r.Error = record.Failed, record.ErrBug })},
		{"retransmits", flag, every(50, func(r *record.Row) { r.Retransmits = 2 })},
		{"retries", flag, every(50, func(r *record.Row) { r.Retried = 1 })},
		{"stamps", flag, func(_ []record.Frame, s *Setup) { s.Stamps = "user" }},
		{"stamps", flag, every(1, func(r *record.Row) { r.Arrivals, r.UserStamps = 3, 1 })},
		{"window", flag, every(900, func(r *record.Row) { r.LastToken = 6000 * ms })},
		{"hidden reasoning", flag, every(900, func(r *record.Row) { r.HiddenTokens = 1 })},
		{"prefix cache", flag, func(fr []record.Frame, s *Setup) {
			s.Cold = true
			every(2, func(r *record.Row) { r.CachedTokens = 16 })(fr, s)
		}},
		{"repeated prompts", flag, func(_ []record.Frame, s *Setup) { s.Prompts = 999 }},
		{"repeated prompts", pass, func(_ []record.Frame, s *Setup) { s.Prompts = 1000 }},
		{"merged chunks", flag, every(100, func(r *record.Row) { r.Merged = 1 })},
		{"token counts", flag, func(fr []record.Frame, _ *Setup) {
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
		if (c.status == bad) != (p.Verdict == result.Invalid) {
			t.Errorf("%s %s gives %s", c.check, c.status, p.Verdict)
		}
	}
}

// Every check is explained in the document, and no other.
func TestEveryCheckIsExplained(t *testing.T) {
	read := func(path, pattern string) (names []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return names
	}
	const named = `(?:check(?:Share|Count)\(|Check\{Name: )"([^"]+)"`
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, path := range sources {
		if !strings.HasSuffix(path, "_test.go") {
			code = append(code, read(path, named)...)
		}
	}
	_, list, _ := strings.Cut(strings.Join(read("../../docs/trust.md", `(?m)^\| ([^|]+?) *\|`), "\n"), "check\n-----\n")
	document := strings.Split(list, "\n")
	for _, name := range code {
		if !slices.Contains(document, name) {
			t.Errorf("docs/trust.md does not explain the check %q", name)
		}
	}
	end := slices.Index(document, "utilisation") // the next table
	if end < 0 {
		end = len(document)
	}
	for _, name := range document[:end] {
		if !slices.Contains(code, name) {
			t.Errorf("docs/trust.md explains %q, which is no check", name)
		}
	}
	if end < 30 {
		t.Errorf("%d checks are explained", end)
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
		f.Add(failed(i, i, 5, record.ErrServer))
	}
	p := f.Point()
	if p.Outcome != "failing" || p.Verdict == result.Invalid || p.Metrics.Of(metric.TTFT) != nil || p.Metrics.Undefined["ttft_ms"] == "" {
		t.Errorf("%s, %s, %v", p.Outcome, p.Verdict, p.Metrics.Undefined)
	}
}

// Prompts of a given seed may be known to the server from an earlier run; only
// its count of cached tokens could tell.
func TestGivenSeedWithoutCachedTokens(t *testing.T) {
	for name, c := range map[string]struct {
		cold, seeded, told bool
		status             string // "": no check
	}{
		"fresh prompts":            {true, false, false, ""},
		"seed given":               {true, true, false, flag},
		"seed given, server tells": {true, true, true, pass},
		"prefixes are shared":      {false, true, false, ""},
	} {
		s, frames := window(10), plain(100)
		s.Cold, s.Seeded = c.cold, c.seeded
		if c.told {
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
		lag, wait    int64 // ms: of every request, of those that were cut
		share        int   // one in so many was cut
		status, says string
	}{
		"p99, lag small beside it":  {15, 1000, 50, bad, "that of p99 cannot be judged"}, // p50 shifts
		"p99, nothing shifts":       {0, 1000, 50, pass, "shift of p50 0 ms; that of p99 cannot be judged"},
		"all, lag small beside it":  {15, 1000, 1, pass, "that of p50 and p99 cannot be judged"},
		"all, lag may shift it all": {30, 1000, 1, flag, "at most 30 ms"},
		"none":                      {0, 1000, 1 << 30, pass, ", shift 0 ms"},
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
		if got.Status != c.status || !strings.Contains(got.Value, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
