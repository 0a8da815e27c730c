package target

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/say"
)

// A server that was started anew while it was measured is two servers, and the
// second began cold. When its process began stands in the metrics of most:
// they are asked at the start, and again when a load is over.

// metricsTimeout is how long the metrics may take: they are worth no wait.
const metricsTimeout = 2 * time.Second

// begun asks the server when its process began, in seconds since 1970.
func (t *Target) begun(ctx context.Context) (at float64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	a, err := t.fetch(ctx, "GET", t.Dialer.Endpoint.Base+"/metrics", nil)
	if err != nil || a.Status != 200 {
		return 0, false
	}
	return processStart(string(a.Body))
}

// processStart reads when a process began from its metrics in Prometheus' text
// format: process_start_time_seconds, or else when the first of its counters
// was made, which the Python client tells beside each of them.
func processStart(page string) (at float64, ok bool) {
	first := math.Inf(1)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		// name{labels} value timestamp, without the labels or the timestamp in some.
		name, rest, _ := strings.Cut(line, " ")
		if brace := strings.IndexByte(line, '{'); brace >= 0 && brace < len(name) {
			name, rest = line[:brace], line[strings.LastIndexByte(line, '}')+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		own := name == record.ProcessStart
		if !own && !strings.HasSuffix(name, "_created") {
			continue
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			continue
		}
		if own {
			return v, true
		}
		first = min(first, v)
	}
	return first, !math.IsInf(first, 1)
}

// tellBegun notes when the server's process began, for what comes after.
func (t *Target) tellBegun(ctx context.Context) {
	if at, ok := t.begun(ctx); ok {
		t.began = at
		t.Server[record.ProcessStart] = say.Exact(at)
	}
}

// AskBegun notes when the server's process began, as it said before a load and
// as it says after it. now is the time since the load's origin.
func (t *Target) AskBegun(ctx context.Context, note func(record.Sample), point int32, now int64) {
	if t.began == 0 {
		return
	}
	at, ok := t.begun(ctx)
	if !ok {
		return
	}
	for _, s := range []record.Sample{{T: 0, Value: t.began}, {T: now, Value: at}} {
		s.Point, s.Source, s.Name = point, record.SourceServer, record.ProcessStart
		note(s)
	}
	t.began = at
}
