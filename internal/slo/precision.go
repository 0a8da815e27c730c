package slo

import (
	"strconv"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// Precision is the precision to which a value is to be known: "p99 ttft +-5%".
type Precision struct {
	Metric     metric.Name
	Percentile float64 // in percent; 0 for the mean
	Percent    float64 // half of the interval's width, of the value
}

// ParsePrecision reads one of a metric of the catalogue, see
// [Grammar.ParsePrecision].
func ParsePrecision(text string) (Precision, error) {
	return Grammar{metric.All()}.ParsePrecision(text)
}

// ParsePrecision reads one. Every error is a [say.Error].
func (g Grammar) ParsePrecision(text string) (Precision, error) {
	const example = "write for example \"p99 ttft +-5%\" or \"mean tpot +-2%\""
	if len(text) > maxLength {
		return Precision{}, say.Errorf("precision longer than %d bytes", maxLength)
	}
	plain := withoutSpace(text)
	value, width, ok := strings.Cut(strings.ReplaceAll(plain, "±", "+-"), "+-")
	if !ok {
		return Precision{}, say.Errorf("precision %q has no +-", text).WithHint(example)
	}
	var p Precision
	name, mean := strings.CutPrefix(value, "mean")
	if !mean {
		digits := numberPrefix(strings.TrimPrefix(value, "p"))
		if !strings.HasPrefix(value, "p") || digits == "" {
			return Precision{}, say.Errorf("precision %q names no percentile and no mean", text).WithHint(example)
		}
		var err error
		if p.Percentile, err = strconv.ParseFloat(digits, 64); err != nil || !isReported(p.Percentile) {
			return Precision{}, say.Errorf("percentile p%s", digits).WithHint("one of p50, p90, p95, p99 and p99.9")
		}
		name = value[1+len(digits):]
	}
	m := g.limitableMetrics().Find(metric.Name(name))
	switch {
	case m == nil:
		return Precision{}, g.unknownMetric(name)
	case m.Of != metric.Request:
		return Precision{}, say.Errorf("%s is not one number per request", m.Name).WithHint("take ttft, tpot, stall or e2e, which each request has")
	}
	p.Metric = m.Name
	var err error
	p.Percent, err = parsePercent(width)
	return p, err
}

// isReported says that a percentile is one of those that are.
func isReported(percent float64) bool {
	_, ok := metric.PercentileOf("p" + say.Exact(percent))
	return ok
}

// IsNone says that nothing was asked for.
func (p Precision) IsNone() bool { return p.Metric == "" }

// String is the canonical spelling. It parses to an equal precision.
func (p Precision) String() string {
	value := "mean"
	if p.Percentile != 0 {
		value = "p" + say.Exact(p.Percentile)
	}
	return value + " " + string(p.Metric) + " +-" + say.Exact(p.Percent) + "%"
}
