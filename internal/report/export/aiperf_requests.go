package export

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// AIPerf's profile_export.jsonl: a line for each request, which `aiperf plot`
// reads with profile_export_aiperf.json (AIPerf 0.13, MetricRecordInfo in
// aiperf/common/models/record_models.py).

// aiperfLine is one line.
type aiperfLine struct {
	Metadata aiperfMetadata         `json:"metadata"`
	Metrics  map[string]aiperfValue `json:"metrics"`
	Error    *aiperfError           `json:"error"`
}

// aiperfMetadata places a request. Times are nanoseconds since 1970, by the
// clock that the run's start was read from.
type aiperfMetadata struct {
	Session   int64  `json:"session_num"`
	ID        string `json:"x_request_id"`
	Due       int64  `json:"credit_issued_ns"`
	Start     int64  `json:"request_start_ns"`
	End       int64  `json:"request_end_ns"`
	Worker    string `json:"worker_id"`
	Processor string `json:"record_processor_id"`
	Phase     string `json:"benchmark_phase"`
	Cancelled bool   `json:"was_cancelled"`
}

type aiperfValue struct {
	Value any    `json:"value"`
	Unit  string `json:"unit"`
}

type aiperfError struct {
	Code    *int32 `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// writeAIPerfRequests writes the requests of a run of one point that were sent,
// those of the warm-up as AIPerf's warm-up phase.
func writeAIPerfRequests(w io.Writer, run *result.Run, dir string) error {
	if len(run.Points) > 1 {
		return say.Errorf("AIPerf's lines hold one point, and the run has %d", len(run.Points)).WithHint("csv-requests and parquet hold them all")
	}
	began := int64(0)
	if t, err := time.Parse(time.RFC3339, run.Started); err == nil {
		began = t.UnixNano()
	}
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	g, n := gathering{everything: true, withGaps: true}, 0
	for c, err := range g.readPoints(run, dir) {
		if err != nil {
			return err
		}
		for q := range c.inOrderSent {
			if q.sent < 0 {
				continue // AIPerf knows of no such request
			}
			if err := lines.Encode(aiperfLineOf(c, q, began)); err != nil {
				return err
			}
			n++
		}
	}
	if n == 0 {
		return errNothing
	}
	return out.Flush()
}

func aiperfLineOf(c *cohort, q *request, began int64) aiperfLine {
	l := aiperfLine{Metrics: map[string]aiperfValue{}, Metadata: aiperfMetadata{
		Session: q.id, ID: strconv.FormatInt(q.id, 10), Due: began + q.due, Start: began + q.sent, End: began + max(q.done, q.last, q.sent),
		Worker: "pitot", Processor: "pitot", Phase: "profiling", Cancelled: q.outcome == record.Cut,
	}}
	if q.due < c.t0 || q.due >= c.t1 {
		l.Metadata.Phase = "warmup"
	}
	setMetric := func(tag, unit string, x any) { l.Metrics[tag] = aiperfValue{x, unit} }
	setMetric("input_sequence_length", "tokens", q.inputTokens())
	if !q.wasAnswered() {
		l.Error = &aiperfError{Type: cmp.Or(q.errorClass, q.outcome.String()), Message: cmp.Or(q.errorText(), q.outcome.String())}
		if q.status > 0 {
			l.Error.Code = &q.status
		}
		return l
	}
	output, _ := q.outputTokens()
	latency, ttft := float64(q.endTime()-q.sent)/1e6, float64(q.first-q.sent)/1e6
	setMetric("request_latency", "ms", latency)
	setMetric("output_sequence_length", "tokens", output)
	if !q.stream || q.first < 0 {
		return l
	}
	setMetric("time_to_first_token", "ms", ttft)
	gaps := make([]float64, 0, q.to-q.from)
	for _, ns := range c.gaps[q.from:q.to] {
		gaps = append(gaps, float64(ns)/1e6)
	}
	setMetric("inter_chunk_latency", "ms", gaps)
	if len(gaps) > 0 {
		setMetric("time_to_second_token", "ms", gaps[0])
	}
	if itl := q.aiperfITL(latency, ttft, output); output > 1 && itl > 0 {
		setMetric("inter_token_latency", "ms", itl)
		setMetric("output_token_throughput_per_user", "tokens/sec/user", 1e3/itl)
	}
	return l
}
