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

// Most servers have metrics in Prometheus' text format. The signals of the catalogue
// are scraped before each load and after it and stored as samples. Among them is the
// start time of the server's process: one that was restarted during a measurement is
// two servers, and the second began cold.
//
// Scraping never delays or fails a measurement: after an answer that takes too long,
// is too large or cannot be read, the measurement goes on without.

// metricsTimeout bounds one scrape. The size of the answer is bounded by [wire.Dialer.Fetch].
const metricsTimeout = 2 * time.Second

// errNoMetrics says that the server has no metrics; that is not shown to the user.
var errNoMetrics = errors.New("the server has no metrics")

// scrapeMetrics gets the server's signals, by the names of their samples.
func (t *Target) scrapeMetrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	a, err := t.fetch(ctx, "GET", t.Dialer.Endpoint.Base+"/metrics", nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("the answer took longer than " + metricsTimeout.String())
	case err != nil:
		_, detail := wire.Classify(err)
		return nil, errors.New(detail)
	case a.Status != 200:
		return nil, errNoMetrics
	}
	values := signalsOf(string(a.Body), metric.Signals())
	if len(values) == 0 {
		return nil, errNoMetrics
	}
	return values, nil
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
		name, x, ok := parseSeries(line)
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
	values := map[string]float64{}
	for i := range signals {
		for _, from := range signals[i].Sources() {
			for _, name := range from.Series {
				if x, ok := has[name]; ok && !math.IsInf(x, 0) {
					values[from.Record] = x
					break
				}
			}
		}
	}
	// Otherwise the creation time of the first counter, which the Python client
	// writes with each of them (NAME_created).
	if _, ok := values[metric.ProcessStart]; !ok && !math.IsInf(created, 1) {
		values[metric.ProcessStart] = created
	}
	return values
}

// parseSeries reads one line of Prometheus' text format: NAME{LABELS} VALUE TIMESTAMP,
// without the labels and the timestamp in some.
func parseSeries(line string) (name string, x float64, ok bool) {
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

// closingBrace is the index of the brace that ends the labels, -1 if there is none.
// Braces in quoted values do not count.
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

// findMetrics finds out whether the server has metrics, and when its process began.
func (t *Target) findMetrics(ctx context.Context) {
	values, err := t.scrapeMetrics(ctx)
	if err != nil {
		if !errors.Is(err, errNoMetrics) && ctx.Err() == nil {
			t.Notes = append(t.Notes, scrapeErrorText(err))
		}
		return
	}
	t.hasMetrics = true
	t.noteProcessStart(values)
	if t.began > 0 {
		t.Server[metric.ProcessStart] = say.Exact(t.began)
	}
}

// noteProcessStart records when the server's process began.
func (t *Target) noteProcessStart(values map[string]float64) {
	if at, ok := values[metric.ProcessStart]; ok {
		t.began = at
	}
}

// maxFailedScrapes in a row end the scraping.
const maxFailedScrapes = 3

// Sample scrapes the server's signals and hands them to note, at now, the time since
// the load's origin. warning is for the user: that they cannot be scraped, once.
func (t *Target) Sample(ctx context.Context, note func(record.Sample), point int32, now int64) (warning string) {
	if !t.hasMetrics {
		return ""
	}
	values, err := t.scrapeMetrics(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ""
		}
		if t.failedScrapes++; t.failedScrapes == maxFailedScrapes {
			t.hasMetrics = false
		}
		if !t.scrapeErrorNoted {
			t.scrapeErrorNoted = true
			return scrapeErrorText(err)
		}
		return ""
	}
	t.failedScrapes = 0
	sample := func(name string, x float64) {
		note(record.Sample{Point: point, T: now, Source: record.SourceServer, Name: name, Value: x})
	}
	if at, ok := values[metric.ProcessStart]; ok && t.began > 0 && at != t.began { // the earlier samples are of another process
		sample(metric.ProcessStart, t.began)
	}
	for i, signals := 0, metric.Signals(); i < len(signals); i++ {
		for _, from := range signals[i].Sources() {
			if x, ok := values[from.Record]; ok {
				sample(from.Record, x)
			}
		}
	}
	t.noteProcessStart(values)
	return ""
}

// scrapeErrorText is the note for an error of scraping.
func scrapeErrorText(err error) string { return "the server's own metrics are missing: " + err.Error() }
