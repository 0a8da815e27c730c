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
	"path/filepath"
	"slices"

	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/userfile"
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
	// users is the number of users that took turns in a closed loop. After the first of each, a
	// request comes when an earlier one is answered, a pause later. A replay does it likewise. 0:
	// requests come at times of their own.
	users int
	most  int     // requests in flight, 0 for no limit: others are held by the client
	lasts float64 // of a closed loop: after so many seconds no request is sent; 0 for no such time
}

// Meta is meta.json: what was run, under vLLM's names.
type Meta struct {
	Model     string `json:"model"`
	Engine    fields `json:"engine_kwargs"`
	Scheduler fields `json:"scheduler_config"`
	// Resolved holds the settings that the engine made of it, where they were recorded.
	Resolved struct {
		Model       fields          `json:"model_config"`
		Scheduler   fields          `json:"scheduler_config"`
		Parallel    fields          `json:"parallel_config"`
		Speculative json.RawMessage `json:"speculative_config"`
	} `json:"resolved_config"`
	KV       fields `json:"kv_cache"`
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

	line     int         // of requests.jsonl
	stamp    int64       // ns, of a run: Arrival as it was recorded
	cached   int         // prompt tokens that the server had cached, 0 if it did not say
	seen     timing      // what is measured of it
	times    []float64   // s, of its chunks, as Arrival counts; nil if not known
	content  sim.Content // where it is not by hashes
	measured bool        // counts; the others only load the engine
	pause    float64     // s, in a closed loop since the answer that it followed
	held     float64     // s, from when it was due to when a slot or turn was free
	late     float64     // s, from when it could be sent to when it was
	waited   float64     // s, from when it was due to when it was sent
	connect  float64     // s, of a TCP connect for it, 0 where a connection was there
}

// hashBlock is the number of tokens that a hash id stands for.
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
	b, err := userfile.Read(filepath.Join(dir, "meta.json"), userfile.MostText)
	if err != nil {
		return nil, say.Errorf("read recording: %v", err).WithHint(hint)
	}
	if err := json.Unmarshal(b, &r.Meta); err != nil {
		return nil, say.Errorf("read recording %s: meta.json: %v", dir, err).WithHint(hint)
	}
	f, err := userfile.Open(filepath.Join(dir, "requests.jsonl"))
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
	gatherer := metrics.NewGatherer(nil)
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
		r.measured, r.line, r.seen = true, n, r.measureTiming(gatherer)
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

// measureTiming measures a request of which only the lengths and these times are known,
// as any other: by its row.
func (r *Recorded) measureTiming(g *metrics.Gatherer) timing {
	row := record.BlankRow()
	stampOf := func(since float64) int64 { return int64(math.Round((r.Arrival + since) * 1e9)) }
	row.Stream, row.Due, row.Sent = true, stampOf(0), stampOf(0)
	row.FirstToken, row.LastToken, row.Done = stampOf(r.FirstToken), stampOf(r.LastToken), stampOf(r.LastToken)
	row.FirstTokens, row.CompletionTokens = 1, int32(r.Output)
	q := g.Request(new(metrics.Stream), &row)
	return timingOf(&q, row.Sent)
}

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

// baseName is the last element of a path that may end in a slash or be ".".
func baseName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}
