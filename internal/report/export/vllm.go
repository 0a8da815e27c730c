package export

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// The result JSON of `vllm bench serve`, as vLLM 0.32 writes it
// (vllm/benchmarks/serve.py: calculate_metrics, benchmark, main_async). Its
// figures are computed from the records by vLLM's definitions: latencies count
// from when a request was sent, TPOT is (latency − TTFT) / (tokens − 1), ITL
// are the gaps between events, percentiles are numpy's, failed requests are
// left out.

// VLLM says what the result of a benchmark holds where the run does not tell.
type VLLM struct {
	Detailed       bool // arrays of every request and gap
	Date           time.Time
	Backend        string
	Label          string // "" is null
	Model          string
	Tokenizer      string // "" is null
	NumPrompts     int
	Metadata       [][2]string
	RequestRate    float64 // +Inf: as fast as the server takes them
	Burstiness     float64
	MaxConcurrency int      // 0 is null
	Metrics        []string // of ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue
	Percentiles    []float64
	Goodput        map[string]float64 // ttft, tpot, e2el: limits in ms; empty is null
	NoTokenizer    bool               // vLLM then describes no times of tokens
	QueueFromStart bool               // client queues count from the start of the load: all requests were made then
}

// vllmOf takes all that from a point of a run.
func vllmOf(run *result.Run, p *result.Point) VLLM {
	v := VLLM{
		Backend: toolAlias(run, "vllm"), Model: run.Target.Model, NumPrompts: p.Requests.Due, RequestRate: math.Inf(1), Burstiness: 1,
		Metrics: []string{"ttft", "tpot", "itl", "e2el"}, Percentiles: []float64{50, 90, 95, 99},
	}
	v.Date, _ = time.Parse(time.RFC3339, run.Started)
	if r := p.Load.Rate; r != nil {
		v.RequestRate = *r
	}
	if p.Load.Arrival == "constant" {
		v.Burstiness = math.Inf(1)
	}
	switch {
	case p.Load.Concurrency != nil:
		v.MaxConcurrency = *p.Load.Concurrency
	case p.Load.MaxInFlight != nil:
		v.MaxConcurrency = *p.Load.MaxInFlight
	}
	for _, k := range slices.Sorted(maps.Keys(run.Notes)) {
		v.Metadata = append(v.Metadata, [2]string{k, run.Notes[k]})
	}
	v.Metadata = append(v.Metadata, [2]string{"measured_by", "pitot " + run.Pitot.Version}, [2]string{"pitot_verdict", string(p.Verdict)})
	if p.SLO != nil {
		v.Goodput = map[string]float64{}
		for _, l := range p.SLO.Limits {
			name, known := map[metric.Name]string{metric.TTFT: "ttft", metric.TPOT: "tpot", metric.E2E: "e2el"}[l.Metric]
			if _, twice := v.Goodput[name]; !known || twice { // vLLM has no word for it
				v.Goodput = nil
				break
			}
			v.Goodput[name] = l.Limit
		}
	}
	return v
}

// Benchmark holds what vLLM says of one benchmark.
type Benchmark struct {
	VLLM
	c *cohort

	duration                      float64 // seconds
	completed, failed             int
	input, output                 int64
	good                          int
	ttfts, tpots, e2els           []float64 // sorted, seconds
	queues, queued                []float64 // sorted, seconds
	itls                          spread    // once described
	described                     bool
	maxTokensPerS, maxConcurrent  float64
	requestsPerS, outputPerS, all float64
	streamed                      bool
}

// newBenchmark counts a cohort.
func newBenchmark(c *cohort, v VLLM) *Benchmark {
	b := &Benchmark{VLLM: v, c: c}
	last := c.t0
	begin := int64(math.MaxInt64)
	for q := range c.inOrderSent {
		last = max(last, q.endTime())
		if !q.wasAnswered() {
			b.failed++
			continue
		}
		begin = min(begin, q.sent)
		b.streamed = b.streamed || q.stream
		b.addAnswered(q)
	}
	b.duration = float64(last-c.t0) / 1e9
	if b.duration > 0 {
		b.requestsPerS = float64(b.completed) / b.duration
		b.outputPerS = float64(b.output) / b.duration
		b.all = float64(b.input+b.output) / b.duration
	}
	for _, values := range [][]float64{b.ttfts, b.tpots, b.e2els, b.queues, b.queued} {
		stats.SortFloat64(values)
	}
	if b.completed > 0 {
		b.findPeaks(begin)
	}
	return b
}

// addAnswered adds a request that ended well.
func (b *Benchmark) addAnswered(q *request) {
	b.completed++
	n, _ := q.outputTokens()
	b.input += int64(q.inputTokens())
	b.output += int64(n)
	ttft, e2el := vllmTTFT(q), vllmLatency(q)
	tpot := 0. // as vLLM has it for goodput, where there is only one token
	if n > 1 && q.stream {
		tpot = (e2el - ttft) / float64(n-1)
		if q.measured.HasSeveralAnswers() { // the time of a token of one of them
			ns, _ := q.measured.TPOT(0)
			tpot = ns / 1e9
		}
		b.tpots = append(b.tpots, tpot)
	}
	b.ttfts = append(b.ttfts, ttft)
	b.e2els = append(b.e2els, e2el)
	b.queues = append(b.queues, b.queueTime(q))
	b.queued = append(b.queued, b.queueTime(q)+e2el)
	good := true
	for name, x := range map[string]float64{"ttft": ttft, "tpot": tpot, "e2el": e2el} {
		if limit, ok := b.Goodput[name]; ok && x*1e3 > limit {
			good = false
		}
	}
	if good {
		b.good++
	}
}

// Seconds of a request as vLLM counts them; zero for what failed.
func vllmTTFT(q *request) float64 {
	if !q.wasAnswered() || q.first < 0 {
		return 0
	}
	return float64(q.first-q.sent) / 1e9
}

func vllmLatency(q *request) float64 {
	if !q.wasAnswered() {
		return 0
	}
	return float64(q.endTime()-q.sent) / 1e9
}

// queueTime returns the time that a request waited in the client.
func (b *Benchmark) queueTime(q *request) float64 {
	switch {
	case q.sent < 0:
		return 0
	case b.QueueFromStart:
		return float64(q.sent-b.c.t0) / 1e9
	}
	return float64(q.sent-q.due) / 1e9
}

// findPeaks are the most events in a second, and the most requests that touch one.
// Seconds are counted from the first request that ended well.
func (b *Benchmark) findPeaks(begin int64) {
	const second = int64(1e9)
	var tokens, running []float64
	countIn := func(bins *[]float64, at int64) {
		for int64(len(*bins)) <= at {
			*bins = append(*bins, 0)
		}
		(*bins)[at]++
	}
	for q := range b.c.inOrderSent {
		if !q.wasAnswered() {
			continue
		}
		if at := q.first; at >= 0 {
			countIn(&tokens, (at-begin)/second)
			for _, gap := range b.c.gaps[q.from:q.to] {
				at += gap
				countIn(&tokens, (at-begin)/second)
			}
		}
		for s := (q.sent - begin) / second; s <= (q.endTime()-begin)/second; s++ {
			countIn(&running, s)
		}
	}
	if len(tokens) > 0 {
		b.maxTokensPerS = slices.Max(tokens)
	}
	b.maxConcurrent = slices.Max(running)
}

// sortGaps sorts the gaps: after it they are no longer grouped by request.
func (b *Benchmark) sortGaps() {
	if b.described {
		return
	}
	b.described = true
	slices.Sort(b.c.gaps)
	b.itls = spreadOf(b.c.gaps, 1e6)
}

// requestedMetrics are the distributions asked for, in vLLM's order.
func (b *Benchmark) requestedMetrics() []vllmMetric {
	b.sortGaps()
	all := []vllmMetric{
		{"ttft", "TTFT", "Time to First Token", spreadOf(b.ttfts, 1e-3)},
		{"tpot", "TPOT", "Time per Output Token (excl. 1st token)", spreadOf(b.tpots, 1e-3)},
		{"itl", "ITL", "Inter-token Latency", b.itls},
	}
	if b.NoTokenizer || !b.streamed && b.completed > 0 {
		all = nil
	}
	all = append(all, vllmMetric{"e2el", "E2EL", "End-to-end Latency", spreadOf(b.e2els, 1e-3)})
	if b.MaxConcurrency > 0 {
		all = append(all, vllmMetric{"client_queue_time", "Client Queue Time", "Client-side Queueing", spreadOf(b.queues, 1e-3)})
		if !math.IsInf(b.RequestRate, 1) {
			all = append(all, vllmMetric{"e2el_including_client_queue", "E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency", spreadOf(b.queued, 1e-3)})
		}
	}
	return slices.DeleteFunc(all, func(m vllmMetric) bool { return !slices.Contains(b.Metrics, m.key) })
}

type vllmMetric struct {
	key, name, head string
	spread
}

// percentileWord returns vLLM's name for a percentile: 99, 99.9.
func percentileWord(p float64) string { return say.Exact(p) }

// jsonNumber is a number in JSON, and the word where JSON has none for it.
func jsonNumber(x float64) any {
	if math.IsInf(x, 1) {
		return "inf"
	}
	return x
}

// JSON writes the object. With Detailed it is written before anything else is
// asked of the benchmark.
func (b *Benchmark) JSON(w io.Writer) error {
	o := &object{w: w}
	date := b.Date
	if date.IsZero() {
		date = time.Now()
	}
	o.writeFields(
		"date", date.Local().Format("20060102-150405"),
		"endpoint_type", b.Backend,
		"backend", b.Backend,
		"label", valueOrNull(b.Label),
		"model_id", b.Model,
		"tokenizer_id", valueOrNull(b.Tokenizer),
		"num_prompts", b.NumPrompts,
	)
	taken := vllmKeys()
	for _, kv := range b.Metadata {
		if !slices.Contains(taken, kv[0]) { // else the later one would win
			o.writeField(kv[0], kv[1])
			taken = append(taken, kv[0])
		}
	}
	o.writeFields(
		"request_rate", jsonNumber(b.RequestRate),
		"burstiness", jsonNumber(b.Burstiness),
		"max_concurrency", valueOrNull(b.MaxConcurrency),
		"duration", b.duration,
		"completed", b.completed,
		"failed", b.failed,
		"total_input_tokens", b.input,
		"total_output_tokens", b.output,
		"request_throughput", b.requestsPerS,
	)
	if len(b.Goodput) > 0 && b.duration > 0 {
		o.writeField("request_goodput", float64(b.good)/b.duration)
	} else {
		o.writeField("request_goodput", nil)
	}
	o.writeField("output_throughput", b.outputPerS)
	o.writeField("total_token_throughput", b.all)
	b.writeArrays(o)
	o.writeFields(
		"max_output_tokens_per_s", b.maxTokensPerS,
		"max_concurrent_requests", int(b.maxConcurrent),
		"rtfx", 0.0,
	)
	for _, m := range b.requestedMetrics() {
		o.writeFields(
			"mean_"+m.key+"_ms", m.mean,
			"median_"+m.key+"_ms", m.at(50),
			"std_"+m.key+"_ms", m.sd,
		)
		for _, p := range b.Percentiles {
			o.writeField("p"+percentileWord(p)+"_"+m.key+"_ms", m.at(p))
		}
	}
	return o.end()
}

// vllmKeys are those that metadata must not take.
func vllmKeys() []string {
	return strings.Fields(`date endpoint_type backend label model_id tokenizer_id num_prompts request_rate burstiness
		max_concurrency duration completed failed total_input_tokens total_output_tokens request_throughput request_goodput
		output_throughput total_token_throughput input_lens output_lens ttfts itls latencies start_times queue_times
		generated_texts errors max_output_tokens_per_s max_concurrent_requests rtfx`)
}

// writeArrays are in the order in which requests were sent, in seconds. vLLM 0.32
// keeps latencies and queue times in the plain form too.
func (b *Benchmark) writeArrays(o *object) {
	if b.Detailed {
		b.writeLengths(o)
	}
	writeList(o, "latencies", valuesOf(b.c, vllmLatency))
	if b.Detailed {
		writeList(o, "start_times", valuesOf(b.c, func(q *request) float64 { return float64(q.sentOrDue()) / 1e9 }))
	}
	writeList(o, "queue_times", valuesOf(b.c, b.queueTime))
	if b.Detailed {
		b.writeTexts(o)
	}
}

// perRequest are the arrays that vLLM and SGLang have in common.
func (b *Benchmark) perRequest(o *object) {
	b.writeLengths(o)
	b.writeTexts(o)
}

func (b *Benchmark) writeLengths(o *object) {
	writeList(o, "input_lens", valuesOf(b.c, func(q *request) int32 { return q.inputTokens() }))
	writeList(o, "output_lens", valuesOf(b.c, func(q *request) int32 {
		if !q.wasAnswered() {
			return 0
		}
		n, _ := q.outputTokens()
		return n
	}))
	writeList(o, "ttfts", valuesOf(b.c, vllmTTFT))
	o.writeKey("itls")
	o.writeText("[")
	between := ""
	for q := range b.c.inOrderSent {
		o.writeText(between)
		between = ", "
		writeArray(o, func(yield func(float64) bool) {
			for _, gap := range b.c.gaps[q.from:q.to] {
				if !yield(float64(gap) / 1e9) {
					return
				}
			}
		})
	}
	o.writeText("]")
}

func (b *Benchmark) writeTexts(o *object) {
	writeList(o, "generated_texts", valuesOf(b.c, func(*request) string { return "" })) // texts are not kept
	writeList(o, "errors", valuesOf(b.c, (*request).errorText))
}

// valuesOf gives one value of every request.
func valuesOf[T any](c *cohort, of func(*request) T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for q := range c.inOrderSent {
			if !yield(of(q)) {
				return
			}
		}
	}
}

// Table writes what vLLM prints at the end.
func (b *Benchmark) Table(w io.Writer) error {
	var t strings.Builder
	whole := func(name string, n int64) { fmt.Fprintf(&t, "%-40s %-10d\n", name, n) }
	float := func(name string, x float64) { fmt.Fprintf(&t, "%-40s %-10.2f\n", name, x) }
	t.WriteString(centredText(" Serving Benchmark Result ", "=") + "\n")
	whole("Successful requests:", int64(b.completed))
	whole("Failed requests:", int64(b.failed))
	if b.MaxConcurrency > 0 {
		whole("Maximum request concurrency:", int64(b.MaxConcurrency))
	}
	if !math.IsInf(b.RequestRate, 1) {
		float("Request rate configured (RPS):", b.RequestRate)
	}
	float("Benchmark duration (s):", b.duration)
	whole("Total input tokens:", b.input)
	if !b.NoTokenizer {
		whole("Total generated tokens:", b.output)
	}
	float("Request throughput (req/s):", b.requestsPerS)
	if len(b.Goodput) > 0 && b.duration > 0 {
		float("Request goodput (req/s):", float64(b.good)/b.duration)
	}
	if !b.NoTokenizer {
		float("Output token throughput (tok/s):", b.outputPerS)
		float("Peak output token throughput (tok/s):", b.maxTokensPerS)
	}
	float("Peak concurrent requests:", b.maxConcurrent)
	if !b.NoTokenizer {
		float("Total token throughput (tok/s):", b.all)
	}
	for _, m := range b.requestedMetrics() {
		t.WriteString(centredText(m.head, "-") + "\n")
		float("Mean "+m.name+" (ms):", m.mean)
		float("Median "+m.name+" (ms):", m.at(50))
		for _, p := range b.Percentiles {
			float("P"+percentileWord(p)+" "+m.name+" (ms):", m.at(p))
		}
	}
	t.WriteString(strings.Repeat("=", 50) + "\n")
	_, err := io.WriteString(w, t.String())
	return err
}

// centredText puts a text in the middle of 50 columns.
func centredText(s, fill string) string {
	left := max(0, (50-len(s))/2)
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, max(0, 50-len(s)-left))
}

// VLLMBenchmark counts the first point of a run as vLLM would. Keep is called
// while what it gets can be written.
func VLLMBenchmark(run *result.Run, dir string, as func(*result.Point) VLLM, keep func(*Benchmark) error) error {
	for c, err := range readCohorts(run, dir, true) {
		if err != nil {
			return err
		}
		return errors.Join(keep(newBenchmark(c, as(c.point))), c.store.Err())
	}
	return errNothing
}

func writeVLLM(w io.Writer, run *result.Run, dir string) error {
	return writeBenchmarks(w, run, dir, false)
}

func writeVLLMDetailed(w io.Writer, run *result.Run, dir string) error {
	return writeBenchmarks(w, run, dir, true)
}

// writeBenchmarks writes one object; of several points an array of them, as
// vLLM's sweeps write their summary.json, with the run's number in each.
func writeBenchmarks(w io.Writer, run *result.Run, dir string, detailed bool) error {
	several := len(run.Points) > 1
	between := "[\n"
	end := "\n"
	err := eachCohort(run, dir, func(c *cohort) error {
		v := vllmOf(run, c.point)
		v.Detailed = detailed
		if several {
			v.Metadata = append(v.Metadata, [2]string{"run_number", strconv.Itoa(c.index)})
			if _, err := io.WriteString(w, between); err != nil {
				return err
			}
			between, end = ",\n", "\n]\n"
		}
		return newBenchmark(c, v).JSON(w)
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, end)
	return err
}
