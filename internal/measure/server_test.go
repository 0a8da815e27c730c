package measure

import (
	"maps"
	"math"
	"testing"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
)

// What the server told becomes one value of the point: of counters what they grew by
// around the window, of gauges what they were within it.
func TestServerValues(t *testing.T) {
	signal := func(field string, how metric.Combine, from, per string) metric.Signal {
		return metric.Signal{Metric: &metric.Metric{Name: metric.Name(field), Key: "server." + field, Of: metric.Server},
			From: metric.Source{Record: from}, Per: metric.Source{Record: per}, Combine: how, Scale: 2}
	}
	signals := []metric.Signal{
		{From: metric.Source{Record: metric.ProcessStart}},
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
		"nothing":             {nil, nil},
		"before and after":    {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(0, "other", 1), sampleAt(0, "gauge", 7), sampleAt(30, "counter", 11), sampleAt(30, "other", 4), sampleAt(30, "gauge", 9)}, map[string]float64{"grew": 12, "each": 4}},
		"close to the window": {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(9, "counter", 6), sampleAt(10, "counter", 7), sampleAt(15, "counter", 8), sampleAt(20, "counter", 10), sampleAt(21, "counter", 90)}, map[string]float64{"grew": 6}},
		"in another order":    {[]record.Sample{sampleAt(21, "counter", 90), sampleAt(10, "counter", 7), sampleAt(20, "counter", 10), sampleAt(0, "counter", 5)}, map[string]float64{"grew": 6}},
		"a gauge":             {[]record.Sample{sampleAt(0, "gauge", 100), sampleAt(11, "gauge", 1), sampleAt(12, "gauge", 5), sampleAt(20, "gauge", 100)}, map[string]float64{"mean": 6, "most": 10, "least": 2}},
		"only before":         {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(12, "counter", 6)}, nil},
		"only after":          {[]record.Sample{sampleAt(12, "counter", 5), sampleAt(30, "counter", 6)}, nil},
		"it fell":             {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(30, "counter", 4)}, nil},
		"nothing to divide":   {[]record.Sample{sampleAt(0, "counter", 5), sampleAt(0, "other", 1), sampleAt(30, "counter", 5), sampleAt(30, "other", 1)}, map[string]float64{"grew": 0}},
		"another process":     {[]record.Sample{sampleAt(0, metric.ProcessStart, 100), sampleAt(0, "counter", 5), sampleAt(30, "counter", 9), sampleAt(30, metric.ProcessStart, 150)}, nil},
		"the same process":    {[]record.Sample{sampleAt(0, metric.ProcessStart, 100), sampleAt(0, "counter", 5), sampleAt(30, "counter", 9), sampleAt(30, metric.ProcessStart, 100)}, map[string]float64{"grew": 8}},
		"no numbers":          {[]record.Sample{sampleAt(0, "counter", math.NaN()), sampleAt(30, "counter", math.Inf(1)), sampleAt(11, "gauge", math.NaN())}, nil},
		"beyond all numbers":  {[]record.Sample{sampleAt(11, "gauge", math.MaxFloat64), sampleAt(12, "gauge", math.MaxFloat64)}, nil},
		"of another source":   {[]record.Sample{{Source: record.SourceClient, Name: "counter", Value: 1}, {T: 30e9, Source: record.SourceClient, Name: "counter", Value: 2}}, nil},
	} {
		f := NewFold(Setup{T0: 10e9, T1: 20e9, Signals: signals})
		f.Add(record.Frame{Samples: c.samples})
		if got := f.Point().Server; !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
