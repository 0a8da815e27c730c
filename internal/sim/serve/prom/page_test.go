package prom

import "testing"

func TestFloat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.25: "0.25", 123456: "123456.0", 1e6: "1e+06", 1234567: "1.234567e+06",
		1.795254128542094e9: "1.795254128542094e+09", 3.05e-5: "3.05e-05", 2097152: "2.097152e+06",
	} {
		if got := FormatFloat(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

// Labels come in the order of their names, with their values escaped, and what
// all series have stands in each.
func TestPage(t *testing.T) {
	p := NewPage(1.5)
	p.Labels["model"] = "a\"b\\\n"
	p.WriteCounter("c", "Counted.", Series{Value: 2, Labels: []string{"z", "1", "a", "2"}})
	var h Histogram
	limits := []float64{1, 10}
	for _, v := range []float64{1, 2, 11} {
		h.Observe(limits, v)
	}
	p.WriteHistogram("h", "Spread.", limits, Distribution{Histogram: &h})
	const want = `# HELP c_total Counted.
# TYPE c_total counter
c_total{a="2",model="a\"b\\\n",z="1"} 2.0
# HELP c_created Counted.
# TYPE c_created gauge
c_created{a="2",model="a\"b\\\n",z="1"} 1.5
# HELP h Spread.
# TYPE h histogram
h_bucket{le="1.0",model="a\"b\\\n"} 1.0
h_bucket{le="10.0",model="a\"b\\\n"} 2.0
h_bucket{le="+Inf",model="a\"b\\\n"} 3.0
h_count{model="a\"b\\\n"} 3.0
h_sum{model="a\"b\\\n"} 14.0
# HELP h_created Spread.
# TYPE h_created gauge
h_created{model="a\"b\\\n"} 1.5
`
	if got := string(p.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A section has its families in order, a series of every source after the other, and none of a
// name that a source does not have.
func TestLayout(t *testing.T) {
	l := ParseLayout("buckets few 1 10\n[a]\ngauge g What it is.\n\tx kind=own\n\t2 kind=fixed\n[b]\nhistogram/few h Spread.\n\ty\n")
	p := NewPage(0)
	p.Joined = true
	h := &Histogram{}
	h.Observe(l.Buckets["few"], 5)
	p.WriteSection(l, "a", Source{Labels: []string{"i", "0"}, Values: map[string]float64{"x": 7}}, Source{Labels: []string{"kind", "mine"}})
	p.WriteSection(l, "b", Source{Histograms: map[string]*Histogram{"y": h}}, Source{})
	const want = `# HELP g What it is.
# TYPE g gauge
g{i="0",kind="own"} 7.0
g{i="0",kind="fixed"} 2.0
g{kind="mine"} 2.0
# HELP h Spread.
# TYPE h histogram
h_sum 5.0
h_bucket{le="1.0"} 0.0
h_bucket{le="10.0"} 1.0
h_bucket{le="+Inf"} 1.0
h_count 1.0
`
	if got := string(p.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
