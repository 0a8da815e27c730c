package slo

import (
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// limitableMetrics are the metrics that can be limited.
func (g Grammar) limitableMetrics() metric.Catalogue {
	return g.Metrics.Filter(func(m *metric.Metric) bool { return m.Limit })
}

// unknownMetric names the metric that was probably meant.
func (g Grammar) unknownMetric(name string) error {
	switch name {
	case "":
		return say.Errorf("limit without a metric").WithHint("write for example \"p99 ttft<200ms\"")
	case "latency", "total", "ttlt":
		return say.Errorf("unknown metric %q", name).WithHint("write e2e for the latency of a whole request")
	case "error", "errorrate", "failures":
		return say.Errorf("unknown metric %q", name).WithHint("write errors<1%")
	}
	for _, word := range []string{"mean", "avg", "average"} {
		if strings.HasPrefix(name, word) {
			return say.Errorf("a mean says nothing about single requests").WithHint("limit a percentile instead, for example p50 or p99")
		}
	}
	if rest, ok := strings.CutPrefix(name, "median"); ok {
		return say.Errorf("unknown metric %q", name).WithHint("write p50 " + rest)
	}
	if rest, ok := strings.CutPrefix(name, "max"); ok {
		return say.Errorf("unknown metric %q", name).WithHint("write " + rest + "<… @100%")
	}
	var names []string
	for _, m := range g.limitableMetrics() {
		names = append(names, string(m.Name))
	}
	return say.Errorf("unknown metric %q", name).WithHint(say.KnownHint(name, names))
}
