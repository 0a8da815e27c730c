package target

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/say"
	"pitot/internal/wire"
)

// Most servers have metrics in Prometheus' text format. What the table of signals
// names of them is asked for before each load and after it, and kept as samples: it
// stands beside what the client saw. When the server's process began is among them:
// one that was started anew while it was measured is two servers, and the second
// began cold.
//
// The metrics are worth no wait and no risk: an answer that takes too long, is too
// large or cannot be read ends the asking, and the measurement goes on.

// metricsTimeout is how long the metrics may take. How large they may be is bounded
// by [wire.Dialer.Fetch].
const metricsTimeout = 2 * time.Second

// errNoMetrics says that the server has none, which is nothing to speak of.
var errNoMetrics = errors.New("the server has no metrics")

// metrics asks the server for its signals, by the names of their samples.
func (t *Target) metrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	a, err := t.fetch(ctx, "GET", t.Dialer.Endpoint.Base+"/metrics", nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("they took longer than " + metricsTimeout.String())
	case err != nil:
		_, detail := wire.Classify(err)
		return nil, errors.New(detail)
	case a.Status != 200:
		return nil, errNoMetrics
	}
	told := signalsOf(string(a.Body), metric.Signals())
	if len(told) == 0 {
		return nil, errNoMetrics
	}
	return told, nil
}

// signalsOf reads the signals from a page of metrics, by the names of their samples.
func signalsOf(page string, signals []metric.Signal) map[string]float64 {
	across := map[string]metric.Across{} // of the series that are looked for
	for i := range signals {
		for _, from := range signals[i].Sources() {
			for _, name := range from.Series {
				across[name] = from.Across
			}
		}
	}
	has := map[string]float64{}
	created := math.Inf(1)
	for line := range strings.Lines(page) {
		name, x, ok := series(line)
		if !ok {
			continue
		}
		how, wanted := across[name]
		was, seen := has[name]
		switch {
		case strings.HasSuffix(name, "_created") && x > 0:
			created = min(created, x)
		case !wanted || name == metric.ProcessStart && x <= 0:
		case !seen:
			has[name] = x
		case how == metric.Sum:
			has[name] = was + x
		case how == metric.Highest:
			has[name] = max(was, x)
		case how == metric.Lowest:
			has[name] = min(was, x)
		}
	}
	told := map[string]float64{}
	for i := range signals {
		for _, from := range signals[i].Sources() {
			for _, name := range from.Series {
				if x, ok := has[name]; ok && !math.IsInf(x, 0) {
					told[from.Record] = x
					break
				}
			}
		}
	}
	// Else when the first of its counters was made, which the Python client tells
	// beside each of them.
	if _, ok := told[metric.ProcessStart]; !ok && !math.IsInf(created, 1) {
		told[metric.ProcessStart] = created
	}
	return told
}

// series reads one line of Prometheus' text format: a name, labels in braces or none,
// a value, and what may stand behind it.
func series(line string) (name string, x float64, ok bool) {
	line = strings.TrimSpace(line)
	end := strings.IndexAny(line, "{ \t")
	if end <= 0 || line[0] == '#' {
		return "", 0, false
	}
	name, rest := line[:end], line[end:]
	if rest[0] == '{' {
		closed := closingBrace(rest)
		if closed < 0 {
			return "", 0, false
		}
		rest = rest[closed+1:]
	}
	rest = strings.TrimLeft(rest, " \t")
	if end := strings.IndexAny(rest, " \t"); end >= 0 {
		rest = rest[:end]
	}
	x, err := strconv.ParseFloat(rest, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return "", 0, false
	}
	return name, x, true
}

// closingBrace is where labels end, -1 if they do not: a brace in a quoted value is
// none.
func closingBrace(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '}' && !quoted:
			return i
		}
	}
	return -1
}

// findMetrics looks whether the server has metrics, and notes when its process began.
func (t *Target) findMetrics(ctx context.Context) {
	told, err := t.metrics(ctx)
	if err != nil {
		if !errors.Is(err, errNoMetrics) && ctx.Err() == nil {
			t.Notes = append(t.Notes, untold(err))
		}
		return
	}
	t.tells = true
	t.begins(told)
	if t.began > 0 {
		t.Server[metric.ProcessStart] = say.Exact(t.began)
	}
}

// begins notes when the server's process began.
func (t *Target) begins(told map[string]float64) {
	if at, ok := told[metric.ProcessStart]; ok {
		t.began = at
	}
}

// enoughFailures in a row end the asking.
const enoughFailures = 3

// Sample asks the server for its signals and notes them, as of now, the time since the
// load's origin. said is what a user should know, once: that they cannot be had.
func (t *Target) Sample(ctx context.Context, note func(record.Sample), point int32, now int64) (said string) {
	if !t.tells {
		return ""
	}
	told, err := t.metrics(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ""
		}
		if t.untold++; t.untold == enoughFailures {
			t.tells = false
		}
		if !t.saidSo {
			t.saidSo = true
			return untold(err)
		}
		return ""
	}
	t.untold = 0
	sample := func(name string, x float64) {
		note(record.Sample{Point: point, T: now, Source: record.SourceServer, Name: name, Value: x})
	}
	if at, ok := told[metric.ProcessStart]; ok && t.began > 0 && at != t.began { // what was asked before was another process
		sample(metric.ProcessStart, t.began)
	}
	for i, signals := 0, metric.Signals(); i < len(signals); i++ {
		for _, from := range signals[i].Sources() {
			if x, ok := told[from.Record]; ok {
				sample(from.Record, x)
			}
		}
	}
	t.begins(told)
	return ""
}

// untold says that what the server tells of itself is missing.
func untold(err error) string { return "the server's own metrics are missing: " + err.Error() }
