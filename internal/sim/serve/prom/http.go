package prom

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bucket limits of the framework's histograms, as it has them by default.
var (
	fineBuckets   = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
	coarseBuckets = []float64{.1, .5, 1}
)

// HTTP counts answered requests as Python's web framework FastAPI does with
// prometheus-fastapi-instrumentator: by route, method and class of status. The
// zero value is ready.
type HTTP struct {
	mu       sync.Mutex
	duration Histogram
	requests families
	handlers families
	methods  families
	codes    families // by route, method and status
	active   families // that have begun and not ended, by route and method
}

// families are counts by the values of labels, in the order of their coming.
type families []*family

type family struct {
	labels  []string // name, value, …
	created float64
	n       float64
	in, out float64 // bytes
	took    Histogram
}

// withLabels gives the counts with some labels.
func (f *families) withLabels(labels ...string) *family {
next:
	for _, one := range *f {
		for i := range labels {
			if one.labels[i] != labels[i] {
				continue next
			}
		}
		return one
	}
	one := &family{labels: labels, created: float64(time.Now().UnixNano()) / 1e9}
	*f = append(*f, one)
	return one
}

// Exchange is one request and its answer.
type Exchange struct {
	Route   string // the path that the server has for it, "" for none
	Method  string
	Status  int
	In, Out int64 // bytes that were announced
	Took    int64 // nanoseconds
	Begun   bool  // [HTTP.Begin] was told of it
}

// methods are those that are counted apart: clients can make up any number of
// others.
var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}

// Begin counts a request to a route whose answer goes on.
func (w *HTTP) Begin(route, method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active.withLabels("endpoint", route, "method", method).n++
}

// Count counts an exchange.
func (w *HTTP) Count(x Exchange) {
	if x.Route == "" {
		x.Route = "none"
	}
	if !slices.Contains(methods, x.Method) {
		x.Method = "none"
	}
	status, code := strconv.Itoa(x.Status/100)+"xx", strconv.Itoa(x.Status)
	took := float64(max(x.Took, 0)) / 1e9
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests.withLabels("handler", x.Route, "method", x.Method, "status", status).n++
	w.codes.withLabels("endpoint", x.Route, "method", x.Method, "status_code", code).n++
	active := w.active.withLabels("endpoint", x.Route, "method", x.Method)
	if x.Begun {
		active.n--
	}
	h := w.handlers.withLabels("handler", x.Route)
	h.n++
	h.in += float64(max(x.In, 0))
	h.out += float64(x.Out)
	w.duration.Observe(fineBuckets, took)
	w.methods.withLabels("handler", x.Route, "method", x.Method).took.Observe(coarseBuckets, took)
}

// ExposeCodes writes the counts as servers do that tell each status and what goes on, under
// names that begin with prefix.
func (w *HTTP) ExposeCodes(x *Page, prefix string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var asked, answered, active []Series
	for _, f := range w.active {
		n := f.n
		for _, c := range w.codes {
			if c.labels[1] == f.labels[1] && c.labels[3] == f.labels[3] {
				n += c.n
			}
		}
		asked = append(asked, Series{Value: n, Labels: f.labels})
		active = append(active, Series{Value: f.n, Labels: f.labels})
	}
	for _, c := range w.codes {
		answered = append(answered, Series{Value: c.n, Labels: c.labels})
	}
	x.WriteCounter(prefix+"http_requests", "Requests that came, by route and method.", asked...)
	x.WriteCounter(prefix+"http_responses", "Requests that were answered, by route, method and status.", answered...)
	x.WriteGauge(prefix+"http_requests_active", "Requests whose answer goes on, by route and method.", active...)
}

// Expose writes the counts.
func (w *HTTP) Expose(x *Page) {
	w.mu.Lock()
	defer w.mu.Unlock()
	value := func(name string, all families, of func(*family) float64) {
		for _, f := range all {
			x.Line(name, f.labels, of(f))
		}
	}
	created := func(name, help string, all families) {
		x.WriteHead(name+"_created", "gauge", help)
		value(name+"_created", all, func(f *family) float64 { return f.created })
	}

	help := "Requests that were answered, by route, method and class of status."
	x.WriteHead("http_requests_total", "counter", help)
	value("http_requests_total", w.requests, func(f *family) float64 { return f.n })
	created("http_requests", help, w.requests)
	for _, s := range []struct {
		name, help string
		sum        func(*family) float64
	}{
		{"http_request_size_bytes", "Announced length of requests, by route.", func(f *family) float64 { return f.in }},
		{"http_response_size_bytes", "Announced length of answers, by route; a stream has none.", func(f *family) float64 { return f.out }},
	} {
		x.WriteHead(s.name, "summary", s.help)
		for _, f := range w.handlers {
			x.Line(s.name+"_count", f.labels, f.n)
			x.Line(s.name+"_sum", f.labels, s.sum(f))
		}
		created(s.name, s.help, w.handlers)
	}
	x.WriteHistogram("http_request_duration_highr_seconds", "Time from a request to the end of its answer.", fineBuckets, Distribution{Histogram: &w.duration})
	help = "The same by route, in few buckets."
	x.WriteHead("http_request_duration_seconds", "histogram", help)
	for _, f := range w.methods {
		x.writeBuckets("http_request_duration_seconds", f.labels, coarseBuckets, &f.took)
	}
	created("http_request_duration_seconds", help, w.methods)
}
