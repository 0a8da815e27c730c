// Package prom writes metrics in Prometheus' text format: counters, gauges and
// histograms, those that a web framework counts of its requests, and those of
// the process.
package prom

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Page is a page of metrics in Prometheus' text format, as the Python client
// writes it: labels in the order of their names, floats as Python has them,
// and with each counter and histogram when it was created.
type Page struct {
	Labels  map[string]string // of all series that are written from now on
	Created float64           // when counters began, Unix seconds
	// Joined has it written as the client joins the metrics of several processes: without
	// times of creation, without families that have no series, and the sum of a histogram first.
	Joined bool
	b      []byte
}

// NewPage is an empty page of counters that began at a Unix time in seconds.
func NewPage(created float64) *Page {
	return &Page{Created: created, Labels: map[string]string{}, b: make([]byte, 0, 64<<10)}
}

// Bytes returns the page written so far.
func (p *Page) Bytes() []byte { return p.b }

// Series is one line of a family: its own labels, and its value.
type Series struct {
	Value  float64
	Labels []string // name, value, …
}

// WriteHead begins a family: what it is called, its type and its help.
func (p *Page) WriteHead(name, kind, help string) {
	p.b = append(append(append(append(p.b, "# HELP "...), name...), ' '), help...)
	p.b = append(append(append(append(p.b, "\n# TYPE "...), name...), ' '), kind...)
	p.b = append(p.b, '\n')
}

// Line writes one series. labels are name, value, …
func (p *Page) Line(name string, labels []string, value float64) {
	all := maps.Clone(p.Labels)
	if all == nil {
		all = map[string]string{}
	}
	for i := 0; i+1 < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	p.b = append(p.b, name...)
	for i, label := range slices.Sorted(maps.Keys(all)) {
		p.b = append(p.b, "{,"[min(i, 1)])
		p.b = append(append(append(p.b, label...), `="`...), escape.Replace(all[label])...)
		p.b = append(p.b, '"')
	}
	if len(all) > 0 {
		p.b = append(p.b, '}')
	}
	p.b = append(append(p.b, ' '), FormatFloat(value)...)
	p.b = append(p.b, '\n')
}

// escape is for the values of labels.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// WriteGauge writes a family of values that go up and down.
func (p *Page) WriteGauge(name, help string, all ...Series) {
	if p.Joined && len(all) == 0 {
		return
	}
	p.WriteHead(name, "gauge", help)
	for _, s := range all {
		p.Line(name, s.Labels, s.Value)
	}
}

// WriteCounter writes a family of counts, with when they began.
func (p *Page) WriteCounter(name, help string, all ...Series) {
	if p.Joined && len(all) == 0 {
		return
	}
	p.WriteHead(name+"_total", "counter", help)
	for _, s := range all {
		p.Line(name+"_total", s.Labels, s.Value)
	}
	if p.Joined {
		return
	}
	p.WriteHead(name+"_created", "gauge", help)
	for _, s := range all {
		p.Line(name+"_created", s.Labels, p.Created)
	}
}

// Distribution is one histogram of a family, and its own labels.
type Distribution struct {
	*Histogram
	Labels []string // name, value, …
}

// WriteHistogram writes a family of histograms, with when they began.
func (p *Page) WriteHistogram(name, help string, limits []float64, all ...Distribution) {
	if p.Joined && len(all) == 0 {
		return
	}
	p.WriteHead(name, "histogram", help)
	for _, h := range all {
		p.writeBuckets(name, h.Labels, limits, h.Histogram)
	}
	if p.Joined {
		return
	}
	p.WriteHead(name+"_created", "gauge", help)
	for _, h := range all {
		p.Line(name+"_created", h.Labels, p.Created)
	}
}

// writeBuckets writes the lines of one histogram.
func (p *Page) writeBuckets(name string, labels []string, limits []float64, h *Histogram) {
	if p.Joined {
		p.Line(name+"_sum", labels, h.sum)
	}
	sum := int64(0)
	for i, limit := range limits {
		sum += h.counts[i]
		p.Line(name+"_bucket", append([]string{"le", FormatFloat(limit)}, labels...), float64(sum))
	}
	p.Line(name+"_bucket", append([]string{"le", "+Inf"}, labels...), float64(h.n))
	p.Line(name+"_count", labels, float64(h.n))
	if !p.Joined {
		p.Line(name+"_sum", labels, h.sum)
	}
}

// FormatFloat is v as the Python client writes it (floatToGoString of
// prometheus_client): the shortest form, with an exponent from 10^6 on.
func FormatFloat(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	dot := strings.IndexByte(s, '.')
	if v > 0 && dot > 6 {
		mantissa := strings.TrimRight(s[:1]+"."+s[1:dot]+s[dot+1:], "0.")
		return mantissa + "e+0" + strconv.Itoa(dot-1)
	}
	return s
}
