package metrics

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/telemetry"
)

// What the server told becomes one value of the point: of counters what they grew by
// around the window, of gauges what they were within it.
func TestServerValues(t *testing.T) {
	signal := func(field string, how metric.Combine, from, per telemetry.Signal) metric.Signal {
		return metric.Signal{Metric: &metric.Metric{Name: metric.Name(field), Key: "server." + field, Of: metric.Server},
			From: from, Per: per, Combine: how, Scale: 2}
	}
	signals := []metric.Signal{
		signal("grew", metric.Growth, "counter", ""),
		signal("each", metric.Ratio, "counter", "other"),
		signal("mean", metric.Average, "gauge", ""),
		signal("most", metric.Most, "gauge", ""),
		signal("least", metric.Least, "gauge", ""),
		signal("never", metric.Growth, "unheard", ""),
	}
	sampleAt := func(s int64, name string, x float64) record.Sample {
		return record.Sample{T: s * 1e9, Source: record.SourceServer, Name: name, Value: x}
	}
	for name, c := range map[string]struct {
		samples []record.Sample
		want    map[string]float64
	}{
		"nothing":            {nil, nil},
		"before and after":   {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(0, "other", 1), sampleAt(0, "gauge", 7), sampleAt(30, "counter", 11), sampleAt(30, "other", 4), sampleAt(30, "gauge", 9)}, map[string]float64{"grew": 4, "each": 4}},
		"interpolated":       {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(9, "counter", 6), sampleAt(11, "counter", 8), sampleAt(15, "counter", 9), sampleAt(19, "counter", 10), sampleAt(21, "counter", 90)}, map[string]float64{"grew": 86}},
		"in another order":   {[]record.Sample{sampleAt(21, "counter", 90), sampleAt(10, "counter", 7), sampleAt(20, "counter", 10), sampleAt(0, "counter", 5)}, map[string]float64{"grew": 6}},
		"a gauge":            {[]record.Sample{sampleAt(0, "gauge", 100), sampleAt(11, "gauge", 1), sampleAt(12, "gauge", 5), sampleAt(20, "gauge", 100)}, map[string]float64{"mean": 6, "most": 10, "least": 2}},
		"only before":        {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(12, "counter", 6)}, nil},
		"only after":         {[]record.Sample{sampleAt(12, "counter", 5), sampleAt(30, "counter", 6)}, nil},
		"it fell":            {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(30, "counter", 4)}, nil},
		"nothing to divide":  {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(0, "other", 1), sampleAt(30, "counter", 5), sampleAt(30, "other", 1)}, map[string]float64{"grew": 0}},
		"another process":    {[]record.Sample{sampleAt(0, metric.ProcessStart, 100), sampleAt(0, "counter", 5), sampleAt(30, "counter", 9), sampleAt(30, metric.ProcessStart, 150)}, nil},
		"the same process":   {[]record.Sample{sampleAt(0, metric.ProcessStart, 100), sampleAt(0, "counter", 5), sampleAt(30, "counter", 11), sampleAt(30, metric.ProcessStart, 100)}, map[string]float64{"grew": 4}},
		"no numbers":         {[]record.Sample{sampleAt(0, "counter", math.NaN()), sampleAt(30, "counter", math.Inf(1)), sampleAt(11, "gauge", math.NaN())}, nil},
		"beyond all numbers": {[]record.Sample{sampleAt(11, "gauge", math.MaxFloat64), sampleAt(12, "gauge", math.MaxFloat64)}, nil},
		"of another source":  {[]record.Sample{{Source: record.SourceClient, Name: "counter", Value: 1}, {T: 30e9, Source: record.SourceClient, Name: "counter", Value: 2}}, nil},
	} {
		f := NewFold(Setup{T0: 10e9, T1: 20e9, Signals: signals})
		f.Add(record.Frame{Samples: c.samples})
		if got := f.Point().Server; !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The server's count of requests is held against what was sent: more is other traffic,
// fewer than were answered is another count. What failed may have been counted or not.
func TestServedRequests(t *testing.T) {
	frames := plain(1000)
	for i := range 50 { // sent, and not answered
		frames[i].Rows[0].Outcome, frames[i].Rows[0].Error = record.Failed, record.ErrReset
	}
	counts := func(before, after float64) record.Frame {
		return record.Frame{Samples: []record.Sample{
			{Source: record.SourceServer, Name: string(telemetry.Requests), Value: before},
			{T: 60e9, Source: record.SourceServer, Name: string(telemetry.Requests), Value: after},
		}}
	}
	for _, c := range []struct {
		counted float64
		status  result.Status
		finds   string
	}{
		{1000, result.Pass, ""}, {950, result.Pass, ""}, {1010, result.Pass, ""}, {1011, result.Flag, result.CaseForeign},
		{2000, result.Flag, result.CaseForeign}, {940, result.Pass, ""}, {939, result.Flag, result.CaseFewer}, {0, result.Flag, result.CaseFewer},
	} {
		p := fold(window(10), append(slices.Clone(frames), counts(70, 70+c.counted))...).Point()
		if got := find(t, p.Checks, result.CheckServed); got.Status != c.status || got.Case != c.finds || got.Detail["counted"] != c.counted || got.Detail["sent"] != 1000 || got.Detail["answered"] != 950 {
			t.Errorf("%v counted: %+v", c.counted, got)
		}
	}
	two := slices.Clone(frames)
	for i := range two { // engines count each choice
		two[i].Rows = slices.Clone(two[i].Rows)
		two[i].Rows[0].Choices = 2
	}
	if got := find(t, fold(window(10), append(two, counts(0, 1900))...).Point().Checks, result.CheckServed); got.Status != result.Pass {
		t.Errorf("two choices: %+v", got)
	}
	for name, samples := range map[string]record.Frame{"not told": {}, "it began anew": counts(70, 60), "told once": {Samples: counts(0, 5).Samples[:1]}} {
		if slices.ContainsFunc(fold(window(10), append(slices.Clone(frames), samples)...).Point().Checks, func(c result.Check) bool { return c.Name == result.CheckServed }) {
			t.Errorf("%s: judged", name)
		}
	}
}
