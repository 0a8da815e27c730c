// Package predict says what to expect of a deployment: by the arithmetic of
// bandwidth and compute, by running the twin, and how far either is from
// what was recorded.
package predict

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"pitot/internal/data/result"
	"pitot/internal/say"
	"pitot/internal/stat"
	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/twin/vllm"
)

// Recording is a run of a real engine. It is timed at the engine, each
// request from the moment it was queued, or at a client, each from the moment
// it was sent.
type Recording struct {
	Dir      string
	Meta     Meta
	AtClient bool
	Requests []Recorded

	course *course     // the slow phases that a replay goes through again, nil if none
	run    *result.Run // that it is of, nil if it is of none
	point  int32       // of the run
	until  float64     // the fit looks at requests that arrive before; 0 for all
	// users is how many took turns in a closed loop: behind the first of each, a
	// request comes when an earlier one is answered, a pause later. A replay does
	// it likewise. 0: requests come at times of their own.
	users int
}

// Meta is meta.json: what was run, under vLLM's names.
type Meta struct {
	Model     string `json:"model"`
	Engine    fields `json:"engine_kwargs"`
	Scheduler fields `json:"scheduler_config"`
	// Resolved is what the engine made of it, where it was recorded.
	Resolved struct {
		Model       fields          `json:"model_config"`
		Scheduler   fields          `json:"scheduler_config"`
		Parallel    fields          `json:"parallel_config"`
		Speculative json.RawMessage `json:"speculative_config"`
	} `json:"resolved_config"`
	KV struct {
		NumGPUBlocks        json.RawMessage `json:"num_gpu_blocks"`
		BlockSize           json.RawMessage `json:"block_size"`
		MemoryUtilization   json.RawMessage `json:"gpu_memory_utilization"`
		EnablePrefixCaching json.RawMessage `json:"enable_prefix_caching"`
	} `json:"kv_cache"`
	Hardware struct {
		Device string `json:"device_name"`
	} `json:"hardware"`
}

// Recorded is one line of requests.jsonl; times are seconds.
type Recorded struct {
	Input      int     `json:"input_length"`
	Output     int     `json:"output_length"`
	Arrival    float64 `json:"arrival_s"`     // from the first request
	Queue      float64 `json:"queue_s"`       // from here on: since it was queued
	FirstToken float64 `json:"first_token_s"` //
	LastToken  float64 `json:"last_token_s"`
	Hashes     []int64 `json:"hash_ids"` // of the prompt's full blocks of hashBlock tokens, each with all before it

	line     int          // of requests.jsonl
	cached   int          // prompt tokens that the server had cached, 0 if it did not say
	stall    float64      // s, the longest gap, 0 if not known
	times    []float64    // s, of its chunks, as Arrival counts; nil if not known
	content  twin.Content // where it is not by hashes
	measured bool         // counts; the others only load the engine
	pause    float64      // s, in a closed loop since the answer that it followed
}

// hashBlock is how many tokens a hash id is of.
const hashBlock = 16

// maxRecorded bounds a line and a file, so that a corrupt one cannot take all
// memory.
const (
	maxLine     = 64 << 20
	maxRecorded = 10_000_000
)

// ReadRecording reads a directory with meta.json and requests.jsonl. Errors
// are the user's.
func ReadRecording(dir string) (*Recording, error) {
	r := &Recording{Dir: dir}
	hint := "a recording is a directory with meta.json and requests.jsonl"
	b, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err != nil {
		return nil, say.Errorf("read recording: %v", err).WithHint(hint)
	}
	if err := json.Unmarshal(b, &r.Meta); err != nil {
		return nil, say.Errorf("read recording %s: meta.json: %v", dir, err).WithHint(hint)
	}
	f, err := os.Open(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		return nil, say.Errorf("read recording: %v", err).WithHint(hint)
	}
	defer f.Close()
	if r.Requests, err = readRequests(f); err != nil {
		return nil, say.Errorf("read recording %s: requests.jsonl: %v", dir, err).WithHint(hint)
	}
	return r, nil
}

func readRequests(in io.Reader) ([]Recorded, error) {
	var list []Recorded
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var r Recorded
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		r.measured, r.line = true, n
		if list = append(list, r); len(list) > maxRecorded {
			return nil, fmt.Errorf("more than %s requests", say.Count(maxRecorded))
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("no requests")
	}
	slices.SortStableFunc(list, byArrival)
	return list, nil
}

func byArrival(a, b Recorded) int { return cmp.Compare(a.Arrival, b.Arrival) }

func (r *Recorded) check() error {
	const years = 1e9
	for _, v := range []float64{r.Arrival, r.Queue, r.FirstToken, r.LastToken} {
		if !(v >= 0 && v < years) {
			return fmt.Errorf("time %v s is impossible", v)
		}
	}
	switch {
	case r.Input < 1 || r.Output < 1 || r.Input > 1<<30 || r.Output > 1<<30:
		return fmt.Errorf("lengths %d and %d are impossible", r.Input, r.Output)
	case r.LastToken < r.FirstToken:
		return fmt.Errorf("the last token came before the first")
	case len(r.Hashes) > (r.Input+hashBlock-1)/hashBlock:
		return fmt.Errorf("%d hash_ids, each of %d tokens, are more than a prompt of %d tokens has", len(r.Hashes), hashBlock, r.Input)
	}
	return nil
}

// hashed is the content of a recorded request: ids of its prompt's blocks,
// and an answer of its own.
type hashed struct {
	id     uint64
	blocks []int64 // of hashBlock tokens
}

// newHashed gives the content of the request at a place in the recording.
func newHashed(at int, r *Recorded) *hashed {
	return &hashed{uint64(at), r.Hashes[:min(len(r.Hashes), r.Input/hashBlock)]} // of full blocks only
}

// Tokens implements [twin.Content] for the engine's blocks, which may have
// another size than those of the recording. An id stands for its block and all
// before it, so the id of the last block that they touch tells them; where they
// end within it, prompts that part behind their end are taken to part before.
func (h *hashed) Tokens(from, to int) uint64 {
	if b := (to - 1) / hashBlock; b < len(h.blocks) {
		return uint64(h.blocks[b]) << 1
	}
	return (h.id<<32|uint64(from))<<1 | 1
}

// Series are the metrics of a run that a replay is held against, in
// milliseconds.
type Series struct {
	TTFT []float64
	TPOT []float64 // of the requests with at least two tokens
	E2E  []float64
	// Stall is the longest gap between chunks, of the requests with at least
	// two tokens; nothing where the recording has no chunks.
	Stall []float64
}

// timing is when a request was sent, in seconds, when its tokens came, from
// when it was queued or sent, and the longest gap between its chunks.
type timing struct{ sent, first, last, stall float64 }

// series puts the timings of the wanted requests together.
func (r *Recording) series(of []timing, wanted func(i int) bool) (s Series) {
	for i, t := range of {
		q := &r.Requests[i]
		if !q.measured || !wanted(i) {
			continue
		}
		s.TTFT = append(s.TTFT, t.first*1e3)
		s.E2E = append(s.E2E, t.last*1e3)
		if q.Output > 1 {
			s.TPOT = append(s.TPOT, (t.last-t.first)*1e3/float64(q.Output-1))
			if q.stall > 0 {
				s.Stall = append(s.Stall, t.stall*1e3)
			}
		}
	}
	return s
}

// all wants every request.
func all(int) bool { return true }

// timings are those of the recording.
func (r *Recording) timings() []timing {
	list := make([]timing, len(r.Requests))
	for i, q := range r.Requests {
		list[i] = timing{q.Arrival, q.FirstToken, q.LastToken, q.stall}
	}
	return list
}

// Recorded gives the metrics of the recording.
func (r *Recording) Recorded() Series { return r.series(r.timings(), all) }

// Replay gives the metrics of the recorded requests on a deployment's twin.
func (r *Recording) Replay(d *deploy.Deployment) Series { return r.series(r.replay(d), all) }

// replay is [Recording.serve] with the usual chances.
func (r *Recording) replay(d *deploy.Deployment) []timing { return r.serve(d, 1, nil) }

// serve sends the recorded requests to a deployment's engine: at their recorded
// times, or in a closed loop when those before are answered. seed decides the
// engine's chances, and chunk, if there is one, is told of each chunk in the
// order of time. The front end is left out where the recording is timed at the
// engine.
func (r *Recording) serve(d *deploy.Deployment, seed uint64, chunk func(request, at int64)) []timing {
	c := *d
	if !r.AtClient {
		c.Settings.Frontend = vllm.Frontend{}
	}
	e := c.Engine(seed)
	if r.course != nil {
		e.Pace(func(at int64) float64 { return r.course.at(float64(at) / 1e9) })
	}
	list := make([]timing, len(r.Requests))
	last := make([]int64, len(r.Requests)) // chunk of each, 0 before the first
	sent := make([]int64, len(r.Requests)) // when each is or was
	ready := len(r.Requests)               // requests whose time is known
	for i := range sent {
		sent[i] = int64(r.Requests[i].Arrival * 1e9)
	}
	if r.users > 0 {
		ready = min(r.users, ready)
	}
	var now int64
	for next := 0; ; {
		for next < ready && sent[next] <= now {
			q := &r.Requests[next]
			content := q.content
			if content == nil {
				content = newHashed(next, q)
			}
			e.Add(now, twin.Job{ID: int64(next), Prompt: q.Input, Output: q.Output, Content: content})
			list[next].sent = float64(sent[next]) / 1e9
			next++
		}
		step := e.Step(now)
		for _, o := range step.Out {
			t, asked := &list[o.ID], sent[o.ID]
			if last[o.ID] == 0 {
				t.first = float64(o.At-asked) / 1e9
			} else {
				t.stall = max(t.stall, float64(o.At-last[o.ID])/1e9)
			}
			last[o.ID] = o.At
			if chunk != nil {
				chunk(o.ID, o.At)
			}
			if o.Trace == nil {
				continue
			}
			t.last = float64(o.At-asked) / 1e9
			if !r.AtClient {
				t.first, t.last = float64(o.Trace.First-o.Trace.Queued)/1e9, float64(o.Trace.Last-o.Trace.Queued)/1e9
			}
			if ready < len(r.Requests) {
				sent[ready] = o.At + int64(r.Requests[ready].pause*1e9)
				if ready > 0 { // they keep their order
					sent[ready] = max(sent[ready], sent[ready-1])
				}
				ready++
			}
		}
		at := step.End
		if next < ready {
			at = min(at, sent[next])
		}
		if at == math.MaxInt64 {
			return list
		}
		now = max(now, at)
	}
}

// Quantities are the statistics of one metric that are compared, in
// milliseconds or in percent.
type Quantities struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// Metrics are those of all metrics.
type Metrics struct {
	TTFT Quantities `json:"ttft_ms"`
	TPOT Quantities `json:"tpot_ms"`
	E2E  Quantities `json:"e2e_ms"`
}

// Metrics works the statistics out.
func (s Series) Metrics() Metrics {
	return Metrics{quantities(s.TTFT), quantities(s.TPOT), quantities(s.E2E)}
}

func quantities(v []float64) Quantities {
	if len(v) == 0 {
		return Quantities{}
	}
	v = slices.Clone(v)
	slices.Sort(v)
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return Quantities{sum / float64(len(v)), stat.Percentile(v, 0.5), stat.Percentile(v, 0.9), stat.Percentile(v, 0.99)}
}

// meanMetrics is the mean of each statistic.
func meanMetrics(list []Metrics) (mean Metrics) {
	n := float64(len(list))
	for _, m := range list {
		for _, q := range []struct {
			to   *Quantities
			from Quantities
		}{{&mean.TTFT, m.TTFT}, {&mean.TPOT, m.TPOT}, {&mean.E2E, m.E2E}} {
			q.to.Mean += q.from.Mean / n
			q.to.P50 += q.from.P50 / n
			q.to.P90 += q.from.P90 / n
			q.to.P99 += q.from.P99 / n
		}
	}
	return mean
}

// abs is each statistic without its sign.
func (m Metrics) abs() Metrics {
	one := func(q Quantities) Quantities {
		return Quantities{math.Abs(q.Mean), math.Abs(q.P50), math.Abs(q.P90), math.Abs(q.P99)}
	}
	return Metrics{one(m.TTFT), one(m.TPOT), one(m.E2E)}
}

// Errors gives 100·(predicted − recorded)/recorded.
func Errors(predicted, recorded Metrics) Metrics {
	one := func(p, r Quantities) Quantities {
		pct := func(p, r float64) float64 {
			if r == 0 {
				return 0
			}
			return 100 * (p - r) / r
		}
		return Quantities{pct(p.Mean, r.Mean), pct(p.P50, r.P50), pct(p.P90, r.P90), pct(p.P99, r.P99)}
	}
	return Metrics{one(predicted.TTFT, recorded.TTFT), one(predicted.TPOT, recorded.TPOT), one(predicted.E2E, recorded.E2E)}
}

// FitScale finds the deployment's Efficiency.Scale with which the replay has the
// recording's mean TPOT, by the false-position method on a quantity that grows
// with it.
func (r *Recording) FitScale(d *deploy.Deployment) float64 {
	want := r.Recorded().Metrics().TPOT.Mean
	at := func(scale float64) float64 {
		c := *d
		c.Efficiency.Scale = scale
		return r.Replay(&c).Metrics().TPOT.Mean - want
	}
	if want <= 0 {
		return 1
	}
	lo, hi := 1.0, 1.0
	flo := at(lo)
	fhi := flo
	for i := 0; fhi < 0 && i < 20; i++ {
		lo, flo = hi, fhi
		hi *= 1.5
		fhi = at(hi)
	}
	for i := 0; flo > 0 && i < 20; i++ {
		hi, fhi = lo, flo
		lo /= 1.5
		flo = at(lo)
	}
	for range 40 {
		if hi-lo < 1e-5*hi || flo >= 0 || fhi <= 0 {
			break
		}
		mid := lo + (hi-lo)*min(max(flo/(flo-fhi), 0.1), 0.9)
		if f := at(mid); f < 0 {
			lo, flo = mid, f
		} else {
			hi, fhi = mid, f
		}
	}
	return (lo + hi) / 2
}

// base is the last element of a path that may end in a slash or be ".".
func base(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}
