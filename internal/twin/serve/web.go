package serve

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bucket limits of the web framework's histograms (those that
// prometheus-fastapi-instrumentator has by default, as vLLM does).
var (
	fineBuckets   = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
	coarseBuckets = []float64{.1, .5, 1}
)

// web counts the answered requests as the web framework under vLLM does: by
// route, refused or not, apart from those that only look after the server.
type web struct {
	mu       sync.Mutex
	duration buckets
	requests families
	handlers families
	methods  families
}

// families are counts by the values of labels, in the order of their coming.
type families []*family

type family struct {
	labels  []string // name, value, …
	created float64
	n       float64
	in, out float64 // bytes
	took    buckets
}

// of gives the counts with some labels.
func (f *families) of(labels ...string) *family {
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

// exchanged is one request and its answer.
type exchanged struct {
	path, method string
	status       int
	in, out      int64 // bytes that were announced
	took         int64 // nanoseconds
}

// unwatched are the routes that are not counted, methods those that are told
// apart: clients can make up any number of others.
var (
	unwatched = []string{"/metrics", "/health", "/load", "/ping", "/version"}
	methods   = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
)

func (w *web) add(x exchanged) {
	handler := x.path
	if _, known := routes[handler]; !known {
		handler = "none"
	}
	// Who has no key is turned away before anything counts.
	if slices.Contains(unwatched, handler) || x.status == http.StatusUnauthorized {
		return
	}
	if !slices.Contains(methods, x.method) {
		x.method = "none"
	}
	status := strconv.Itoa(x.status/100) + "xx"
	took := seconds(x.took)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests.of("handler", handler, "method", x.method, "status", status).n++
	h := w.handlers.of("handler", handler)
	h.n++
	h.in += float64(max(x.in, 0))
	h.out += float64(x.out)
	w.duration.add(fineBuckets, took)
	w.methods.of("handler", handler, "method", x.method).took.add(coarseBuckets, took)
}

// expose writes the counts.
func (w *web) expose(x *exposition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	value := func(name string, all families, of func(*family) float64) {
		for _, f := range all {
			x.line(name, f.labels, of(f))
		}
	}
	created := func(name, help string, all families) {
		x.head(name+"_created", "gauge", help)
		value(name+"_created", all, func(f *family) float64 { return f.created })
	}

	help := "Requests that were answered, by route, method and class of status."
	x.head("http_requests_total", "counter", help)
	value("http_requests_total", w.requests, func(f *family) float64 { return f.n })
	created("http_requests", help, w.requests)
	for _, s := range []struct {
		name, help string
		sum        func(*family) float64
	}{
		{"http_request_size_bytes", "Announced length of requests, by route.", func(f *family) float64 { return f.in }},
		{"http_response_size_bytes", "Announced length of answers, by route; a stream has none.", func(f *family) float64 { return f.out }},
	} {
		x.head(s.name, "summary", s.help)
		for _, f := range w.handlers {
			x.line(s.name+"_count", f.labels, f.n)
			x.line(s.name+"_sum", f.labels, s.sum(f))
		}
		created(s.name, s.help, w.handlers)
	}
	x.histogram("http_request_duration_highr_seconds", "Time from a request to the end of its answer.", fineBuckets, &w.duration)
	help = "The same by route, in few buckets."
	x.head("http_request_duration_seconds", "histogram", help)
	for _, f := range w.methods {
		x.buckets("http_request_duration_seconds", f.labels, coarseBuckets, &f.took)
	}
	created("http_request_duration_seconds", help, w.methods)
}

// process writes what the Python client tells of its process. The server
// stands for one of its own, so it is its own start that counts. Outside Linux
// no more than that is known.
func (x *exposition) process() {
	gauge := func(name, help string, v float64) { x.gauge(name, help, series{value: v}) }
	stat, err := os.ReadFile("/proc/self/stat")
	// The fields from the third on: the second may have spaces in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	known := err == nil && len(fields) > 21
	field := func(i int) float64 {
		v, _ := strconv.ParseFloat(fields[i-3], 64)
		return v
	}
	if known {
		gauge("process_virtual_memory_bytes", "Virtual memory, bytes.", field(23))
		gauge("process_resident_memory_bytes", "Resident memory, bytes.", field(24)*float64(os.Getpagesize()))
	}
	gauge("process_start_time_seconds", "When the process began, Unix time in seconds.", x.created)
	if !known {
		return
	}
	const ticks = 100 // a second: USER_HZ of every Linux
	x.head("process_cpu_seconds_total", "counter", "Processor time of user and system, seconds.")
	x.line("process_cpu_seconds_total", nil, (field(14)+field(15))/ticks)
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		gauge("process_open_fds", "Open file descriptors.", float64(len(open)))
	}
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			most, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			gauge("process_max_fds", "Most file descriptors that may be open.", most)
		}
	}
}
