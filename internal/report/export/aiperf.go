package export

import (
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// writeAIPerf writes the summary of a run of one point. Latencies count from
// when a request was sent, over those that ended well.
func writeAIPerf(w io.Writer, run *result.Run, dir string) error {
	if len(run.Points) > 1 {
		return say.Errorf("an AIPerf export holds one point, and the run has %d", len(run.Points)).WithHint("vllm, sglang, csv and parquet hold them all")
	}
	for c, err := range readCohorts(run, dir, true) {
		if err != nil {
			return err
		}
		return errors.Join(aiperfOf(c).write(w, run, c), c.store.Err())
	}
	return errNothing
}

// aiperfRun holds what AIPerf counts.
type aiperfRun struct {
	begin, end                                        int64
	ok, failed                                        int
	latency, ttft, ttst, itl, perUser, inputs, output []float64
	errors                                            map[string]int
	gaps                                              spread
	gapSum                                            float64
	chunks                                            int
}

func aiperfOf(c *cohort) *aiperfRun {
	a := &aiperfRun{begin: math.MaxInt64, errors: map[string]int{}}
	for q := range c.inOrderSent {
		if !q.wasAnswered() {
			a.failed++
			a.errors[q.errorClass]++
			continue
		}
		a.ok++
		a.begin, a.end = min(a.begin, q.sent), max(a.end, q.endTime())
		n, _ := q.outputTokens()
		latency, ttft := float64(q.endTime()-q.sent)/1e6, float64(q.first-q.sent)/1e6
		a.latency = append(a.latency, latency)
		a.inputs = append(a.inputs, float64(q.inputTokens()))
		a.output = append(a.output, float64(n))
		if !q.stream || q.first < 0 {
			continue
		}
		a.ttft = append(a.ttft, ttft)
		if q.to > q.from {
			a.ttst = append(a.ttst, float64(c.gaps[q.from])/1e6)
		}
		if itl := q.aiperfITL(latency, ttft, n); n > 1 && itl > 0 {
			a.itl = append(a.itl, itl)
			a.perUser = append(a.perUser, 1e3/itl)
		}
	}
	slices.Sort(c.gaps)
	a.gaps, a.chunks = spreadOf(c.gaps, 1e6), len(c.gaps)
	a.gapSum = a.gaps.mean * float64(len(c.gaps))
	return a
}

// aiperfITL is the time of a token after the first, in milliseconds, of an answer with n of them.
func (q *request) aiperfITL(latency, ttft float64, n int32) float64 {
	if q.measured.HasSeveralAnswers() { // the time of a token of one of them
		ns, _ := q.measured.TPOT(0)
		return ns / 1e6
	}
	return (latency - ttft) / float64(n-1)
}

func (a *aiperfRun) write(w io.Writer, run *result.Run, c *cohort) error {
	o := &object{w: w}
	o.writeFields(
		"schema_version", "1.4",
		"aiperf_version", "0.13.0",
		"benchmark_id", "pitot",
	)
	seconds := 0.
	if a.ok > 0 {
		seconds = float64(a.end-a.begin) / 1e9
	}
	scalar := func(tag, unit string, x float64) {
		o.writeField(tag, map[string]any{"unit": unit, "avg": x})
	}
	rate := func(tag, unit string, n float64) {
		if seconds > 0 {
			scalar(tag, unit, n/seconds)
		}
	}
	addBlock := func(tag, unit string, values []float64) float64 {
		sum := 0.
		for _, x := range values {
			sum += x
		}
		if len(values) > 0 {
			stats.SortFloat64(values)
			aiperfBlock(o, tag, unit, spreadOf(values, 1), sum)
		}
		return sum
	}
	rate("request_throughput", "requests/sec", float64(a.ok))
	addBlock("request_latency", "ms", a.latency)
	scalar("request_count", "requests", float64(a.ok))
	if a.failed > 0 {
		scalar("error_request_count", "requests", float64(a.failed))
	}
	addBlock("time_to_first_token", "ms", a.ttft)
	addBlock("time_to_second_token", "ms", a.ttst)
	addBlock("inter_token_latency", "ms", a.itl)
	out := addBlock("output_sequence_length", "tokens", a.output)
	rate("output_token_throughput", "tokens/sec", out)
	if g := c.point.Throughput.PerGPU; g != nil && g.GPUs > 0 {
		rate("output_token_throughput_per_gpu", "tokens/sec/gpu", out/float64(g.GPUs))
	}
	addBlock("output_token_throughput_per_user", "tokens/sec/user", a.perUser)
	in := addBlock("input_sequence_length", "tokens", a.inputs)
	if a.chunks > 0 {
		aiperfBlock(o, "inter_chunk_latency", "ms", a.gaps, a.gapSum)
	}
	scalar("total_output_tokens", "tokens", out)
	scalar("benchmark_duration", "sec", seconds)
	scalar("total_isl", "tokens", in)
	scalar("total_osl", "tokens", out)
	o.writeFields(
		"input_config", aiperfInput(run, c),
		"was_cancelled", run.Interrupted,
		"is_complete", !run.Interrupted && !run.Recovered,
	)
	summary := []map[string]any{}
	for _, class := range slices.Sorted(maps.Keys(a.errors)) {
		summary = append(summary, map[string]any{"error_details": map[string]string{"type": class, "message": class}, "count": a.errors[class]})
	}
	o.writeFields(
		"error_summary", summary,
		"start_time", aiperfTime(run.Started),
		"end_time", aiperfTime(run.Ended),
		"measured_by", "pitot "+run.Pitot.Version,
		"pitot_verdict", string(c.point.Verdict),
	)
	if err := o.end(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// aiperfTime is a time as AIPerf writes one: local, without a zone.
func aiperfTime(text string) any {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return t.Local().Format("2006-01-02T15:04:05")
}

func aiperfBlock(o *object, tag, unit string, s spread, sum float64) {
	o.writeKey(tag)
	b := &object{w: o.w, err: o.err}
	b.writeField("unit", unit)
	b.writeField("avg", s.mean)
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99} {
		b.writeField("p"+percentileWord(p), s.at(p))
	}
	b.writeFields(
		"min", s.min,
		"max", s.max,
		"std", s.sd,
		"count", s.n,
		"sum", sum,
	)
	o.err = b.end()
}

// aiperfInput says what was asked, as AIPerf's own configuration would.
func aiperfInput(run *result.Run, c *cohort) map[string]any {
	l := c.point.Load
	phase := map[string]any{"name": "profiling", "kind": "profiling", "requests": c.point.Requests.Due}
	switch {
	case l.Rate != nil:
		phase["type"], phase["rate"] = "poisson", *l.Rate
		if l.Arrival == "constant" {
			phase["type"] = "constant"
		}
		if l.MaxInFlight != nil {
			phase["concurrency"] = *l.MaxInFlight
		}
	case l.Concurrency != nil:
		phase["type"], phase["concurrency"] = "concurrency", *l.Concurrency
	}
	streamed := false
	for q := range c.inOrderSent {
		streamed = q.stream
		break
	}
	url := "http://localhost"
	if run.Target.URL != "" {
		url = run.Target.URL
		if m, ok := api.ByPath(url); ok { // AIPerf adds the route itself
			url = strings.TrimSuffix(m.Base, "/v1")
		}
	}
	return map[string]any{
		"models":   map[string]any{"items": []any{map[string]string{"name": run.Target.Model}}},
		"endpoint": map[string]any{"urls": []string{url}, "type": toolAlias(run, "aiperf"), "streaming": streamed},
		"datasets": []any{map[string]any{"name": "main", "type": "synthetic", "entries": max(1, c.point.Requests.Due)}},
		"phases":   []any{phase},
	}
}
