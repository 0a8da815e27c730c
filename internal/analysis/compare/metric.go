package compare

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// figure is one number of a point that can be compared.
type figure struct {
	name  string // the one spelling: "p99 ttft", "output tok/s"
	unit  string // "ms", "/s" or "" for a share
	more  bool   // more is better
	share bool   // a share of the requests: compared by difference, not by ratio
	token bool   // counted in tokens, which are not the same of two tokenizers
	of    *metric.Metric
	value func(*result.Point) value
	class string // of whose requests it is, "" for all
}

// value is a figure of one point.
type value struct {
	x   float64
	ci  *[2]float64 // the run's own 95 % interval
	few bool

	withheld  result.Reason // why there is no interval
	lengthens bool          // it has an interval where the window is long enough
	of        int64         // of a share: how many requests it is of, 0 where that is not known
	why       string        // why there is no value, "" if there is one
}

// Figures that this package itself looks for.
const (
	outputRate  = string(metric.OutputRate)
	requestRate = string(metric.RequestRate)
	goodput     = string(metric.Goodput)
	attained    = string(metric.Attained)
	failures    = string(metric.Errors)
	capacity    = string(metric.Capacity)

	wrongAnswers = string(metric.Wrong)
)

// isComparable says that one value of a metric can be better than another, and that
// they are the server's.
func isComparable(m *metric.Metric) bool { return m.Better != metric.Neither && !m.Client }

// figuresAtLoad are the figures of every comparison at a load. More of them would
// make each harder to tell, since all are corrected for their number. In an
// open loop requests and good ones per second are what was asked for.
func figuresAtLoad(metrics metric.Catalogue, load result.Load) (out []figure) {
	for _, m := range metrics {
		for _, statistic := range m.Compared {
			switch {
			case load.Rate != nil && (m.Name == metric.RequestRate || m.Name == metric.Goodput):
			case m.HasPercentiles():
				out = append(out, percentile(m, statistic))
			default:
				out = append(out, windowFigure(m))
			}
		}
	}
	return out
}

// limitedFigures are the figures that an SLO limits: a percentile by its name, of single
// requests the one that shows those over the limit.
func limitedFigures(all ...*loadOfSide) (out []figure) {
	for _, l := range latencyLimits(all) {
		m := metric.All().Find(l.Metric)
		statistic := "p99"
		if word, _, named := strings.Cut(l.Spec, " "); named {
			statistic = word
		}
		p, known := metric.PercentileOf(statistic)
		if m == nil || !known || !m.HasPercentiles() || !isComparable(m) {
			continue
		}
		out = appendFigures(out, percentile(m, p.Key))
	}
	return out
}

// windowFigure is the figure of a metric that is no distribution.
func windowFigure(m *metric.Metric) figure {
	f := figure{name: string(m.Name), unit: "/s", more: m.Better == metric.Higher, share: m.Unit == metric.Share, token: m.PerToken, of: m}
	switch m.Unit {
	case metric.Share:
		f.unit = ""
	case metric.USDPerMTokens:
		f.unit = "$"
	case metric.Milliseconds, metric.Tokens, metric.Count:
		f.unit = string(m.Unit)
	}
	f.value = func(p *result.Point) value {
		x, ci, why := p.MetricValue(m)
		if x == nil {
			return value{why: reasons.Text(why)}
		}
		v := value{x: *x, ci: ci, of: int64(p.Requests.Due)}
		if m.Name == metric.RequestRate || m.Name == metric.OutputRate {
			v.withheld, v.lengthens = p.Throughput.NoInterval, true
		}
		return v
	}
	return f
}

// percentile is a figure of a distribution: of a percentile's key, or the mean.
func percentile(m *metric.Metric, key string) figure {
	name := key
	if p, ok := metric.PercentileOf(key); ok {
		name = p.Name
	}
	return figure{name: name + " " + string(m.Name), unit: string(m.Unit), more: m.Better == metric.Higher, token: m.PerToken, of: m,
		value: func(p *result.Point) value { return summaryValue(p, m, key) }}
}

// parseMetric reads "p99 ttft", "mean e2e", "output tok/s", "errors" and the
// like. Every error is a [say.Error].
func parseMetric(text string) (figure, error) {
	words := strings.Fields(strings.ToLower(text))
	name := metric.Name(strings.Join(words, " "))
	known := metric.All().Filter(isComparable)
	for _, m := range known {
		if !m.HasPercentiles() && (m.Name == name || slices.Contains(m.Also, name)) {
			return windowFigure(m), nil
		}
	}
	if len(words) > 0 && words[0] == "median" {
		words[0] = "p50"
	}
	var of *metric.Metric // of those that end so, the one that says most
	for _, m := range known.WithPercentiles() {
		if n := strings.Fields(string(m.Name)); len(n) <= len(words) && slices.Equal(n, words[len(words)-len(n):]) &&
			(of == nil || len(m.Name) > len(of.Name)) {
			of = m
		}
	}
	if of == nil {
		var names []string
		for _, m := range known {
			if m.HasPercentiles() {
				names = append(names, "p99 "+string(m.Name))
			} else {
				names = append(names, string(m.Name))
			}
		}
		return figure{}, say.Errorf("no metric is called %q", text).WithHint("known: " + strings.Join(names, ", "))
	}
	statistic := strings.Join(words[:len(words)-len(strings.Fields(string(of.Name)))], "")
	p, ok := metric.PercentileOf(statistic)
	switch {
	case statistic == "":
		return figure{}, say.Errorf("%q does not say which percentile", text).WithHint(fmt.Sprintf("for example p99 %s, p50 %[1]s or mean %[1]s", of.Name))
	case ok:
		return percentile(of, p.Key), nil
	case statistic == metric.Mean:
		return percentile(of, metric.Mean), nil
	}
	names := []string{metric.Mean}
	for _, p := range metric.Percentiles() {
		names = append(names, p.Name)
	}
	return figure{}, say.Errorf("%q: no such percentile", text).WithHint("known: " + strings.Join(names, ", "))
}

// summaryValue is one number of a distribution, or why there is none.
func summaryValue(p *result.Point, m *metric.Metric, key string) value {
	x := p.Metrics.SummaryOf(m.Name)
	if x == nil {
		why := p.Metrics.Undefined[m.Key]
		switch {
		case p.Requests.OK == 0:
			why = result.Reason{Code: result.NoneAnswered}
		case why.IsNone() && p.Metrics.SummaryOf(metric.E2E) != nil && strings.HasPrefix(m.Key, "service."):
			why = result.Reason{Code: result.NotInBaseline}
		case why.IsNone():
			why = result.Reason{Code: result.NotMeasured}
		}
		return value{why: reasons.Text(why)}
	}
	if over, ok := x.Over[key]; ok {
		return value{why: fmt.Sprintf("only known to be over %.4g ms", over)}
	}
	at := x.Value(key)
	if at == nil {
		return value{why: reasons.Text(x.Withheld[key].Or(result.Reason{Code: result.ValueUnknown}))}
	}
	v := value{x: *at, few: slices.Contains(x.Few, key)}
	if ci, ok := x.CI95[key]; ok {
		v.ci = &ci
	} else {
		v.withheld, v.lengthens = x.NoInterval[key], true
		if m.Of == metric.Gap && !v.withheld.IsNone() { // however long it lasts
			v.withheld, v.lengthens = result.Reason{Code: result.GapsDepend}, false
		}
	}
	return v
}

// shortWindowReason returns why there is no interval if a longer window would give one, else none.
func (v *value) shortWindowReason() result.Reason {
	switch v.withheld.Code {
	case result.FewResidences, result.SlowQueue, result.FewSessionTimes, result.FewRequests, result.FewBursts:
		if v.lengthens {
			return v.withheld
		}
	}
	return result.Reason{}
}
