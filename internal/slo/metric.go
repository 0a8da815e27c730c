package slo

import (
	"strings"

	"pitot/internal/user"
)

// unknownMetric names the metric that was probably meant.
func unknownMetric(name string) error {
	switch name {
	case "":
		return user.Errorf("limit without a metric").WithHint("write for example \"p99 ttft<200ms\"")
	case "latency", "total", "ttlt":
		return user.Errorf("unknown metric %q", name).WithHint("write e2e for the latency of a whole request")
	case "error", "errorrate", "failures":
		return user.Errorf("unknown metric %q", name).WithHint("write errors<1%")
	}
	for _, word := range []string{"mean", "avg", "average"} {
		if strings.HasPrefix(name, word) {
			return user.Errorf("a mean says nothing about single requests").WithHint("limit a percentile instead, for example p50 or p99")
		}
	}
	if rest, ok := strings.CutPrefix(name, "median"); ok {
		return user.Errorf("unknown metric %q", name).WithHint("write p50 " + rest)
	}
	if rest, ok := strings.CutPrefix(name, "max"); ok {
		return user.Errorf("unknown metric %q", name).WithHint("write " + rest + "<… @100%")
	}
	var names []string
	for _, m := range Metrics() {
		names = append(names, string(m))
	}
	return user.Errorf("unknown metric %q", name).WithHint(user.Known(name, names))
}
