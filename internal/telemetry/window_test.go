package telemetry

import (
	"math"
	"math/rand/v2"
	"testing"
)

const second = int64(1e9)

// What is not told is not known, which is another thing than 0.
func TestNotKnownIsNotZero(t *testing.T) {
	var s Samples
	w := s.WindowOf(0, 10*second)
	if _, ok := w.Gauge(Running); ok {
		t.Error("a gauge of nothing")
	}
	if _, ok := w.Growth(Preemptions); ok {
		t.Error("a counter of nothing")
	}
	if _, ok := w.Ratio(QueueSum, QueueCount); ok {
		t.Error("a mean of nothing")
	}
	s.Add("server", Running, 5*second, 0)
	s.Add("server", Preemptions, 0, 7)
	s.Add("server", Preemptions, 10*second, 7)
	w = s.WindowOf(0, 10*second)
	if g, ok := w.Gauge(Running); !ok || g.N != 1 || g.Mean != 0 || g.Max != 0 {
		t.Errorf("a gauge of 0: %+v %v", g, ok)
	}
	if x, ok := w.Growth(Preemptions); !ok || x != 0 {
		t.Errorf("a counter that stood still: %v %v", x, ok)
	}
}

// Gauges are those of the samples within [t0, t1), with percentiles as exact order
// statistics.
func TestGauges(t *testing.T) {
	var s Samples
	for i := range int64(200) { // in no order
		at := (i * 37) % 200
		s.Add("server", Waiting, at*second, float64(at))
	}
	w := s.WindowOf(50*second, 150*second)
	want := Distribution{N: 100, Mean: 99.5, Min: 50, P50: 99, P95: 144, Max: 149}
	if g, _ := w.Gauge(Waiting); g != want {
		t.Errorf("%+v, want %+v", g, want)
	}
	if w.Seconds() != 100 || len(w.Sources) != 1 {
		t.Errorf("%v s, %q", w.Seconds(), w.Sources)
	}
}

// A counter is interpolated to the ends of the window, wherever they lie between two
// samples, and is not known beyond the samples.
func TestCountersAreInterpolated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rate := 1 + 100*rng.Float64()
		var s Samples
		at := int64(0)
		for at < 60*second {
			s.Add("server", OutputTokens, at, 1e6+rate*float64(at)/1e9)
			at += int64(rng.Float64() * 2e9)
		}
		s.Add("server", OutputTokens, 60*second, 1e6+rate*60)
		t0 := int64(rng.Float64() * 30e9)
		t1 := t0 + int64(rng.Float64()*30e9)
		w := s.WindowOf(t0, t1)
		want := rate * float64(t1-t0) / 1e9
		if x, ok := w.Growth(OutputTokens); !ok || math.Abs(x-want) > 1e-6 {
			t.Fatalf("[%d, %d): %v, %v, want %v", t0, t1, x, ok, want)
		}
		if x, ok := w.Rate(OutputTokens); t1-t0 > second && (!ok || math.Abs(x-rate) > 1e-3) {
			t.Fatalf("rate %v, want %v", x, rate)
		}
	}
	var s Samples
	s.Add("server", OutputTokens, 10*second, 5)
	s.Add("server", OutputTokens, 20*second, 15)
	for _, c := range []struct {
		t0, t1 int64
		ok     bool
	}{{9 * second, 20 * second, false}, {10 * second, 21 * second, false}, {10*second - slack, 20*second + slack, true}, {12 * second, 13 * second, true}} {
		w := s.WindowOf(c.t0, c.t1)
		if _, ok := w.Growth(OutputTokens); ok != c.ok {
			t.Errorf("[%d, %d): known is %v", c.t0, c.t1, ok)
		}
	}
}

// A counter that fell began anew: what it grew by is not known where that lies within
// the window, nor where the process says that it began anew.
func TestResets(t *testing.T) {
	at := func(values ...float64) *Samples {
		var s Samples
		for i, x := range values {
			s.Add("server", Requests, int64(i)*second, x)
		}
		return &s
	}
	w := at(5, 6, 0, 1, 2).WindowOf(0, 4*second)
	if x, ok := w.Growth(Requests); ok {
		t.Errorf("it fell within: %v", x)
	}
	w = at(5, 6, 0, 1, 2).WindowOf(2*second, 4*second)
	if x, ok := w.Growth(Requests); !ok || x != 2 {
		t.Errorf("it fell before: %v %v", x, ok)
	}
	s := at(5, 6, 7, 8, 9)
	s.Add("server", ProcessStart, 0, 100)
	s.Add("server", ProcessStart, 4*second, 200)
	w = s.WindowOf(0, 4*second)
	if x, ok := w.Growth(Requests); ok || len(w.Restarts) != 1 {
		t.Errorf("another process: %v, %q", x, w.Restarts)
	}
	if x, ok := s.TotalGrowth(Requests, 0); ok {
		t.Errorf("another process, in total: %v", x)
	}
	s = at(5, 6, 7)
	s.Add("server", ProcessStart, 0, 100.1)
	s.Add("server", ProcessStart, 2*second, 100.2)
	w = s.WindowOf(0, 2*second)
	if x, ok := w.Growth(Requests); !ok || x != 2 {
		t.Errorf("the same process: %v %v", x, ok)
	}
	if x, ok := s.TotalGrowth(Requests, 2*second); !ok || x != 2 {
		t.Errorf("in total: %v %v", x, ok)
	}
	if x, ok := s.TotalGrowth(Requests, 3*second); ok {
		t.Errorf("in total of a load that was not over: %v", x)
	}
}

// Several replicas are one server: what is counted is added up, the fullest cache
// stands for all, and one that does not know leaves the whole unknown.
func TestSeveralSources(t *testing.T) {
	var s Samples
	for i := range int64(11) {
		s.Add("a", Running, i*second, 3)
		s.Add("a", KVUse, i*second, .5)
		s.Add("a", Requests, i*second, float64(i))
		if i%2 == 0 {
			s.Add("b", Running, i*second+second/2, float64(i))
			s.Add("b", KVUse, i*second+second/2, .9)
		}
		s.Add("b", Requests, i*second, 2*float64(i))
	}
	w := s.WindowOf(2*second, 10*second)
	if g, _ := w.Gauge(Running); g.N != 8 || g.Min != 3 || g.Max != 11 { // b told 0 at 0.5 s
		t.Errorf("running: %+v", g)
	}
	if g, _ := w.Gauge(KVUse); g.Max != .9 || g.Min != .9 {
		t.Errorf("KV: %+v", g)
	}
	if x, ok := w.Growth(Requests); !ok || x != 24 {
		t.Errorf("requests: %v %v", x, ok)
	}
	s.Add("c", Requests, 9*second, 1)
	w = s.WindowOf(2*second, 10*second)
	if x, ok := w.Growth(Requests); ok {
		t.Errorf("with one that does not know: %v", x)
	}
	if got := s.SamplesBetween(Running, 2*second, 4*second); len(got) != 2 || got[0] != (Sample{2 * second, 3}) || got[1] != (Sample{3 * second, 5}) {
		t.Errorf("between: %v", got)
	}
}

// Whatever is told, a summary has numbers, and none that is greater than the largest.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, int64(0), int64(5))
	f.Fuzz(func(t *testing.T, data []byte, t0, t1 int64) {
		var s Samples
		for i := 0; i+4 < len(data); i += 5 {
			d := definitions[int(data[i])%len(definitions)]
			x := float64(int8(data[i+3])) * math.Pow(10, float64(int8(data[i+4])))
			s.Add(string(rune('a'+data[i+1]%3)), d.Signal, int64(int8(data[i+2])), x)
		}
		w := s.WindowOf(t0, t1)
		for signal, g := range w.Gauges {
			for _, x := range []float64{g.Mean, g.Min, g.P50, g.P95, g.Max} {
				if !isNumber(x) {
					t.Errorf("%s: %+v", signal, g)
				}
			}
			if g.N < 1 || g.Min > g.P50 || g.P50 > g.P95 || g.P95 > g.Max {
				t.Errorf("%s: %+v", signal, g)
			}
		}
		for signal, x := range w.Counters {
			if !isNumber(x) || x < 0 {
				t.Errorf("%s grew by %v", signal, x)
			}
		}
		for signal, x := range w.Facts {
			if !isNumber(x) {
				t.Errorf("%s is %v", signal, x)
			}
		}
	})
}
