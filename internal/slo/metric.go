package slo

import (
	"strings"

	"pitot/internal/user"
)

// unknownMetric names the metric that was probably meant.
func unknownMetric(name string) error {
	switch name {
	case "":
		return user.Errorf("write for example \"p99 ttft<200ms\"", "limit without a metric")
	case "latency", "total", "ttlt":
		return user.Errorf("write e2e for the latency of a whole request", "unknown metric %q", name)
	case "error", "errorrate", "failures":
		return user.Errorf("write errors<1%", "unknown metric %q", name)
	}
	for _, word := range []string{"mean", "avg", "average"} {
		if strings.HasPrefix(name, word) {
			return user.Errorf("limit a percentile instead, for example p50 or p99", "a mean says nothing about single requests")
		}
	}
	if rest, ok := strings.CutPrefix(name, "median"); ok {
		return user.Errorf("write p50 "+rest, "unknown metric %q", name)
	}
	if rest, ok := strings.CutPrefix(name, "max"); ok {
		return user.Errorf("write "+rest+"<… @100%", "unknown metric %q", name)
	}
	var names []string
	for _, m := range Metrics() {
		names = append(names, string(m))
	}
	return user.Errorf(user.Known(name, names), "unknown metric %q", name)
}
