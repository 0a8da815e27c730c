package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// OpenMetrics text, version 1.0 (github.com/OpenObservability/OpenMetrics):
// counts of every request in histograms, in seconds, as Prometheus keeps them.
// Latencies are Pitot's own: they count from when a request was due, of those
// that ended well.

// Buckets are those of vLLM's own histograms, so that a panel can lay both over
// one another.
var (
	ttftBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	gapBuckets  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	e2eBuckets  = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// exposedMetrics are the metrics of requests that reports lead with, and the gaps.
func exposedMetrics() (list []metrics.Definition) {
	for _, d := range metrics.Definitions() {
		if d.Unit == metric.Milliseconds && (d.Request != nil && d.Show == metric.Headline || d.Exposed != "") {
			list = append(list, d)
		}
	}
	return list
}

// bucketsOf are those of a metric.
func bucketsOf(m *metric.Metric) []float64 {
	switch {
	case m.PerToken, m.Of == metric.Gap:
		return gapBuckets
	case m.Name == metric.E2E:
		return e2eBuckets
	}
	return ttftBuckets
}

// histogram counts values in buckets.
type histogram struct {
	limits []float64
	counts []int64 // of each bucket alone; the last is above all limits
	n      int64
	sum    float64
}

func (h *histogram) observe(x float64) {
	if h.counts == nil {
		h.counts = make([]int64, len(h.limits)+1)
	}
	i, _ := slices.BinarySearch(h.limits, x) // le: a value on a limit is below it
	h.counts[i]++
	h.n++
	h.sum += x
}

// family is one metric with the samples of all points.
type family struct {
	name, kind, unit, help string
	samples                strings.Builder
}

// exposition is the families of a text, in their order.
type exposition struct{ families []*family }

func (e *exposition) findFamily(name, kind, unit, help string) *family {
	for _, f := range e.families {
		if f.name == name {
			return f
		}
	}
	f := &family{name: name, kind: kind, unit: unit, help: help}
	e.families = append(e.families, f)
	return f
}

func (f *family) addSample(suffix, labels string, x float64) {
	fmt.Fprintf(&f.samples, "%s%s{%s} %s\n", f.name, suffix, labels, strconv.FormatFloat(x, 'g', -1, 64))
}

func (f *family) addHistogram(labels string, h *histogram) {
	if h.n == 0 {
		return // there is nothing of the kind
	}
	total := int64(0)
	for i, limit := range append(slices.Clone(h.limits), 0) {
		le := "+Inf"
		if i < len(h.limits) {
			le = strconv.FormatFloat(limit, 'g', -1, 64)
			if !strings.ContainsAny(le, ".e") {
				le += ".0" // the canonical form
			}
		}
		total += h.counts[i]
		f.addSample("_bucket", labels+`,le="`+le+`"`, float64(total))
	}
	f.addSample("_sum", labels, h.sum)
	f.addSample("_count", labels, float64(h.n))
}

// labelText writes labels, their values escaped.
func labelText(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(withoutControls(pairs[i+1]))
		b.WriteString(pairs[i] + `="` + value + `"`)
	}
	return b.String()
}

func writeOpenMetrics(w io.Writer, run *result.Run, dir string) error {
	var e exposition
	info := e.findFamily("pitot_run", "info", "", "What was measured.")
	info.addSample("_info", labelText("model", run.Target.Model, "target", run.Target.Spec, "version", run.Pitot.Version, "verdict", string(run.Verdict)), 1)
	err := eachCohort(run, dir, func(c *cohort) error {
		e.addPoint(run, c)
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range e.families {
		text := fmt.Sprintf("# TYPE %s %s\n", f.name, f.kind)
		if f.unit != "" {
			text += fmt.Sprintf("# UNIT %s %s\n", f.name, f.unit)
		}
		text += fmt.Sprintf("# HELP %s %s\n", f.name, f.help)
		if _, err := io.WriteString(w, text+f.samples.String()); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "# EOF\n")
	return err
}

// addPoint adds what is known of a point.
func (e *exposition) addPoint(run *result.Run, c *cohort) {
	p := c.point
	load := ""
	switch {
	case p.Load.Rate != nil:
		load = "rate " + strconv.FormatFloat(*p.Load.Rate, 'g', -1, 64)
	case p.Load.Concurrency != nil:
		load = "concurrency " + strconv.Itoa(*p.Load.Concurrency)
	}
	labels := labelText("model_name", run.Target.Model, "point", strconv.Itoa(c.index), "load", load)
	list := exposedMetrics()
	histograms := make([]histogram, len(list))
	for i := range list {
		histograms[i].limits = bucketsOf(list[i].Metric)
	}
	outcomes := map[string]int{"ok": 0, "failed": 0, "cut": 0, "unsent": 0}
	var input, output int64
	for q := range c.inOrderSent {
		outcomes[q.outcome.String()]++
		if !q.wasAnswered() {
			continue
		}
		n, _ := q.outputTokens()
		input, output = input+int64(q.inputTokens()), output+int64(n)
		for i := range list {
			if list[i].Request == nil {
				continue
			}
			if ms, ok := list[i].Value(&q.measured); ok {
				histograms[i].observe(ms / 1e3)
			}
		}
	}
	for i := range list {
		for k := 0; list[i].Name == metric.ICL && k < len(c.gaps); k++ { // between events, not arrivals
			histograms[i].observe(float64(c.gaps[k]) / 1e9)
		}
	}
	requests := e.findFamily("pitot_requests", "counter", "", "Requests due in the window, by how they ended.")
	for _, o := range []string{"ok", "failed", "cut", "unsent"} {
		requests.addSample("_total", labels+`,outcome="`+o+`"`, float64(outcomes[o]))
	}
	e.findFamily("pitot_prompt_tokens", "counter", "", "Tokens of the prompts that were answered.").addSample("_total", labels, float64(input))
	e.findFamily("pitot_generation_tokens", "counter", "", "Tokens of the answers.").addSample("_total", labels, float64(output))
	for i, d := range list {
		name, help := cmp.Or(d.Exposed, strings.ReplaceAll(d.ID(), "-", "_")), d.Help
		if d.Name == metric.ICL {
			help = "gaps between events of a stream"
		}
		e.findFamily("pitot_"+name+"_seconds", "histogram", "seconds", say.Sentence(help)).addHistogram(labels, &histograms[i])
	}
	gauge := func(name, unit, help string, x *float64) {
		if x != nil {
			e.findFamily(name, "gauge", unit, help).addSample("", labels, *x)
		}
	}
	gauge("pitot_window_seconds", "seconds", "Length of the measured window.", &p.Seconds.Window)
	gauge("pitot_requests_per_second", "", "Answers that ended in the window.", p.Throughput.RequestsPerS)
	gauge("pitot_output_tokens_per_second", "", "Output tokens stamped in the window.", p.Throughput.OutputTokensPerS)
	if p.Goodput != nil {
		gauge("pitot_goodput_requests_per_second", "", "Requests within the SLO.", &p.Goodput.RequestsPerS)
	}
	if p.SLO != nil {
		gauge("pitot_slo_attained_ratio", "", "Share of all due that met the SLO.", p.SLO.Attained)
	}
	for _, m := range metric.All().Filter((*metric.Metric).IsFurther) {
		x, _, _ := p.MetricValue(m)
		gauge("pitot_"+m.ColumnName(), "", say.Sentence(m.Help), x)
	}
	for _, v := range []result.Verdict{result.Valid, result.ValidWithFlags, result.Invalid} {
		x := 0.
		if v == p.Verdict {
			x = 1
		}
		// A state set: which of the verdicts it is.
		e.findFamily("pitot_verdict", "stateset", "", "Whether the measurement can be trusted.").addSample("", labels+`,pitot_verdict="`+string(v)+`"`, x)
	}
}
