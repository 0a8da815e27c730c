package compare

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/data/result"
	"pitot/internal/say"
)

// metric is one number of a point that can be compared.
type metric struct {
	name  string // the one spelling: "p99 ttft", "output tok/s"
	unit  string // "ms", "/s" or "" for a share
	more  bool   // more is better
	share bool   // a share of the requests: compared by difference, not by ratio
	token bool   // counted in tokens, which are not the same of two tokenizers
	of    func(*result.Point) value
}

// value is a metric of one point.
type value struct {
	x   float64
	ci  *[2]float64 // the run's own 95 % interval
	few bool
	why string // why there is no value, "" if there is one
}

// compared are the metrics of every comparison at a load. More of them would
// make each harder to tell, since all are corrected for their number. In an
// open loop requests and good ones per second are what was asked for.
func compared(load result.Load) []metric {
	names := []string{"p50 ttft", "p99 ttft", "p50 tpot", "p99 tpot", "p99 stall", "p50 e2e", "p99 e2e", outputRate}
	if load.Rate == nil {
		names = append(names, requestRate, goodput)
	}
	var out []metric
	for _, name := range append(names, attained, failures) {
		m, err := parseMetric(name)
		if err != nil {
			panic(err) // a name of ours
		}
		out = append(out, m)
	}
	return out
}

// Metrics that are no distributions.
const (
	outputRate  = "output tok/s"
	inputRate   = "input tok/s"
	requestRate = "req/s"
	goodput     = "goodput"
	attained    = "attained"
	failures    = "errors"
	capacity    = "capacity"
)

// others lists what is known of metrics that are no distributions.
func others() []metric {
	return []metric{
		{name: outputRate, unit: "/s", more: true, token: true, of: func(p *result.Point) value {
			return rate(p, p.Throughput.OutputTokensPerS, "output_tokens_per_s")
		}},
		{name: inputRate, unit: "/s", more: true, token: true, of: func(p *result.Point) value {
			return rate(p, p.Throughput.InputTokensPerS, "input_tokens_per_s")
		}},
		{name: requestRate, unit: "/s", more: true, of: func(p *result.Point) value {
			return rate(p, p.Throughput.RequestsPerS, "requests_per_s")
		}},
		{name: goodput, unit: "/s", more: true, of: func(p *result.Point) value {
			if p.Goodput == nil {
				return value{why: noSLO}
			}
			return value{x: p.Goodput.RequestsPerS}
		}},
		{name: attained, more: true, share: true, of: func(p *result.Point) value {
			switch {
			case p.SLO == nil:
				return value{why: noSLO}
			case p.SLO.Attained == nil:
				return value{why: "not known"}
			}
			return value{x: *p.SLO.Attained, ci: p.SLO.CI95}
		}},
		{name: failures, share: true, of: func(p *result.Point) value {
			if p.Requests.Due == 0 {
				return value{why: "nothing came due"}
			}
			return value{x: float64(p.Requests.Due-p.Requests.OK) / float64(p.Requests.Due)}
		}},
		{name: capacity, unit: "/s", more: true, of: func(*result.Point) value { return value{why: "of a search alone"} }},
	}
}

const noSLO = "no SLO given"

func rate(p *result.Point, x *float64, key string) value {
	if x == nil {
		why := p.Throughput.Why
		if why == "" {
			why = "not known"
		}
		return value{why: why}
	}
	v := value{x: *x}
	if ci, ok := p.Throughput.CI95[key]; ok {
		v.ci = &ci
	}
	return v
}

// distribution is a metric of which there are percentiles.
type distribution struct {
	name, key string
	token     bool
	of        func(*result.Metrics) *result.Summary
}

func distributions() []distribution {
	return []distribution{
		{"ttft", "ttft_ms", false, func(m *result.Metrics) *result.Summary { return m.TTFT }},
		{"ttfa", "ttfa_ms", false, func(m *result.Metrics) *result.Summary { return m.TTFA }},
		{"tpot", "tpot_ms", true, func(m *result.Metrics) *result.Summary { return m.TPOT }},
		{"itl", "itl_ms", true, func(m *result.Metrics) *result.Summary { return m.ITL }},
		{"icl", "icl_ms", false, func(m *result.Metrics) *result.Summary { return m.ICL }},
		{"stall", "stall_ms", false, func(m *result.Metrics) *result.Summary { return m.Stall }},
		{"e2e", "e2e_ms", false, func(m *result.Metrics) *result.Summary { return m.E2E }},
		{"generation", "generation_ms", false, func(m *result.Metrics) *result.Summary { return m.Generation }},
	}
}

// statistic is what is taken of a distribution.
type statistic struct {
	name, key string
	of        func(*result.Summary) *float64
}

func statistics() []statistic {
	return []statistic{
		{"mean", "mean", func(s *result.Summary) *float64 { return s.Mean }},
		{"p50", "p50", func(s *result.Summary) *float64 { return s.P50 }},
		{"p90", "p90", func(s *result.Summary) *float64 { return s.P90 }},
		{"p95", "p95", func(s *result.Summary) *float64 { return s.P95 }},
		{"p99", "p99", func(s *result.Summary) *float64 { return s.P99 }},
		{"p99.9", "p99_9", func(s *result.Summary) *float64 { return s.P999 }},
	}
}

// parseMetric reads "p99 ttft", "mean e2e", "output tok/s", "errors" and the
// like. Every error is a [user.Error].
func parseMetric(text string) (metric, error) {
	words := strings.Fields(strings.ToLower(text))
	name := strings.Join(words, " ")
	for other, own := range map[string]string{"tok/s": outputRate, "throughput": outputRate, "requests/s": requestRate, "error rate": failures} {
		if name == other {
			name = own
		}
	}
	for _, m := range others() {
		if m.name == name {
			return m, nil
		}
	}
	if len(words) > 0 && words[0] == "median" {
		words[0] = "p50"
	}
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	at := slices.IndexFunc(distributions(), func(d distribution) bool { return d.name == last })
	if at < 0 {
		return metric{}, say.Errorf("no metric is called %q", text).WithHint("known: " + strings.Join(names(), ", "))
	}
	d := distributions()[at]
	if len(words) == 1 {
		return metric{}, say.Errorf("%q does not say which percentile", text).WithHint(fmt.Sprintf("for example p99 %s, p50 %s or mean %s", last, last, last))
	}
	at = slices.IndexFunc(statistics(), func(s statistic) bool { return s.name == strings.Join(words[:len(words)-1], "") })
	if at < 0 {
		return metric{}, say.Errorf("%q: no such percentile", text).WithHint("known: mean, p50, p90, p95, p99, p99.9")
	}
	s := statistics()[at]
	return metric{name: s.name + " " + d.name, unit: "ms", token: d.token, of: func(p *result.Point) value {
		return summary(p, d, s)
	}}, nil
}

func names() (out []string) {
	for _, d := range distributions() {
		out = append(out, "p99 "+d.name)
	}
	for _, m := range others() {
		out = append(out, m.name)
	}
	return out
}

// summary is one number of a distribution, or why there is none.
func summary(p *result.Point, d distribution, s statistic) value {
	x := d.of(&p.Metrics)
	if x == nil {
		why := p.Metrics.Undefined[d.key]
		switch {
		case p.Requests.OK == 0:
			why = "no request was answered"
		case why == "" && p.Metrics.E2E != nil && strings.HasPrefix(d.name, "service "):
			why = "not kept by the pitot that saved this baseline"
		case why == "":
			why = "not measured"
		}
		return value{why: why}
	}
	if over, ok := x.Over[s.key]; ok {
		return value{why: fmt.Sprintf("only known to be over %.4g ms", over)}
	}
	at := s.of(x)
	if at == nil {
		why := x.Withheld[s.key]
		if why == "" {
			why = "not known"
		}
		return value{why: why}
	}
	v := value{x: *at, few: slices.Contains(x.Few, s.key)}
	if ci, ok := x.CI95[s.key]; ok {
		v.ci = &ci
	}
	return v
}
