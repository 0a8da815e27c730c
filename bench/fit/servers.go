package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"pitot/internal/analysis/calibrate"
	"pitot/internal/analysis/predict"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
)

// systems are the models and accelerators of which servers are made.
var systems = []string{
	"llama-3.1-8b@h100", "llama-3.1-70b@4xh100", "qwen3-32b@2xa100", "qwen2.5-7b@l40s", "llama-3.1-8b@rtx4090",
	"qwen3-30b-a3b@h100", "llama-3.1-70b@2xb200", "mistral-small-24b@2xl40s", "gpt-oss-20b@h100", "qwen3-14b@h200",
}

// kinds are the ways in which servers are more than other parameters: the twin has none
// for those in the middle.
var kinds = []string{"as modelled", "graphs", "bent", "tiled", "slow phases"}

// server is a simulated one that differs from the catalogue.
type server struct {
	number int
	stated string // what its owner says it is
	kind   string
	known  *deploy.Deployment // as stated
	truth  *deploy.Deployment // but for its kind
	value  map[string]float64 // of the parameters that a fit moves
}

// chosen says that constants of the fit were chosen on the server. The others were not
// looked at before.
func (s *server) chosen() bool { return s.number/len(systems)%2 == 0 }

// newServer draws one.
func newServer(seed uint64, number int) *server {
	dice := rand.New(rand.NewPCG(seed, uint64(number)))
	s := &server{number: number, kind: kinds[(number%len(systems)+number/len(systems))%len(kinds)], value: map[string]float64{}}
	seats := 32 << dice.IntN(4)
	s.stated = fmt.Sprintf("%s?max_model_len=16384&max_num_seqs=%d&max_num_batched_tokens=%d", systems[number%len(systems)], seats, 2048<<dice.IntN(3))
	if dice.IntN(4) == 0 {
		s.stated += "&async_scheduling=false"
	}
	parse := func() {
		var err error
		if s.known, err = deploy.Parse(s.stated); err != nil {
			log.Fatalf("%s: %v", s.stated, err)
		}
	}
	parse()
	if blocks := max(seats*40, 1100); dice.IntN(4) == 0 && blocks < s.known.Settings.NumGPUBlocks { // it overflows when all seats are taken
		s.stated += fmt.Sprintf("&num_gpu_blocks_override=%d", blocks)
		parse()
	}
	d := *s.known
	times := func(sd float64) float64 { return math.Exp(sd * dice.NormFloat64()) }
	part := func(name string, v *float64, sd float64) {
		*v = min(*v*times(sd), 0.97)
		s.value[name] = *v
	}
	span := func(name string, v *time.Duration, sd float64) {
		*v = time.Duration(float64(*v) * times(sd))
		s.value[name] = v.Seconds()
	}
	number64 := func(name string, v *float64, lo, hi float64) {
		*v = lo + (hi-lo)*dice.Float64()
		s.value[name] = *v
	}
	e, f := &d.Efficiency, &d.Settings.Frontend
	part("bandwidth_efficiency", &e.Bandwidth, 0.12)
	part("compute_efficiency", &e.Compute, 0.2)
	part("prompt_attention_efficiency", &e.PromptAttention, 0.3)
	number64("attention_efficiency", &e.Attention, 0.5, 1)
	span("step_overhead", &e.PerStep, 0.5)
	span("row_overhead", &e.PerRequest, 0.5)
	span("prefill_overhead", &e.PerPrefill, 0.6)
	span("layer_overhead", &e.PerLayer, 0.3)
	if d.TensorParallel > 1 {
		span("allreduce_latency", &e.Collective, 0.5)
		e.CollectiveGBs *= times(0.4)
		s.value["allreduce_gb_per_s"] = e.CollectiveGBs
	}
	span("frontend_latency", &f.Latency, 0.7)
	span("frontend_request", &f.PerRequest, 0.7)
	span("frontend_prompt_token", &f.PerPromptToken, 0.7)
	span("frontend_chunk", &f.PerChunk, 0.5)
	span("frontend_step", &f.PerStep, 0.5)
	number64("frontend_jitter", &f.Jitter, 0.05, 0.5)
	number64("frontend_contention", &f.Contention, 0.02, 0.4)
	number64("step_jitter", &d.Settings.StepJitter, 0.01, 0.08)
	if s.kind == "slow phases" {
		d.Settings.SlowCV, d.Settings.SlowTime = 0.08+0.1*dice.Float64(), time.Duration(float64(time.Second)*times(0.5))
	}
	s.truth = &d
	return s
}

// engine makes the server's.
func (s *server) engine(seed uint64) sim.Model {
	return s.truth.OneOn(seed+1e6, odd{s.truth.StepCost(), s.kind}) // no replay has the same chances
}

// odd is a cost that is bent as no parameter of the twin bends it.
type odd struct {
	sim.Cost
	kind string
}

// Step implements [sim.Cost].
func (o odd) Step(b *sim.Batch) time.Duration {
	switch o.kind {
	case "graphs": // answers alone are padded to the sizes of CUDA graphs, others are not
		if len(b.Prefills) > 0 {
			break
		}
		c := *b
		for c.Tokens > 2 && c.Tokens%8 != 0 && c.Tokens != 4 {
			c.Tokens++
		}
		c.Logits = c.Tokens
		return o.Cost.Step(&c)
	case "bent": // the host takes more for each row the more there are
		rows := float64(b.Requests)
		return o.Cost.Step(b) + time.Duration(rows*rows/64*float64(10*time.Microsecond))
	case "tiled": // prompts are computed 256 tokens at a time
		c := *b
		c.Prefills = slices.Clone(b.Prefills)
		for i := range c.Prefills {
			p := &c.Prefills[i]
			full := (p.New + 255) / 256 * 256
			c.Tokens += full - p.New
			p.New = full
		}
		return o.Cost.Step(&c)
	}
	return o.Cost.Step(b)
}

// six are the loads that are predicted, by what the server can do. None of a
// calibration's is like them.
func (s *server) six(requests int) []predict.TwinLoad {
	seats := s.known.Settings.MaxNumSeqs
	mixed := func(l predict.TwinLoad) predict.TwinLoad {
		l.Input, l.Output, l.Requests = [2]int{100, 2000}, [2]int{20, 300}, requests
		return l
	}
	full := mixed(predict.TwinLoad{Users: min(seats, 64)})
	all := full.Serve(s.engine(99), 99)
	last := all.Requests[len(all.Requests)-1].Arrival
	capacity := float64(len(all.Requests)) / last // requests a second
	return []predict.TwinLoad{
		{Name: "light", Rate: 0.15 * capacity, Input: [2]int{150, 450}, Output: [2]int{30, 90}, Requests: requests},
		mixed(predict.TwinLoad{Name: "steady", Rate: 0.6 * capacity}),
		{Name: "short prompts", Users: max(min(seats*3/4, 96), 8), Input: [2]int{30, 200}, Output: [2]int{20, 300}, Requests: requests},
		{Name: "long prompts", Rate: 0.15 * capacity, Input: [2]int{2000, 4000}, Output: [2]int{50, 50}, Requests: requests},
		mixed(predict.TwinLoad{Name: "past saturation", Users: seats * 3 / 2}),
		{Name: "shared prefixes", Users: 16, Input: [2]int{50, 500}, Output: [2]int{20, 300}, Prefix: 1024, PrefixShare: 0.7, Requests: requests},
	}
}

// ResultVersion is that of the files below -dir; those of others are made anew.
const ResultVersion = 1

// Result is what came of a server.
type Result struct {
	Version    int         `json:"version"`
	Server     string      `json:"server"`
	Kind       string      `json:"kind"`
	Chosen     bool        `json:"chosen_on"`
	Seed       uint64      `json:"seed"`
	CPU        float64     `json:"cpu_s"` // of the calibration without the server
	Loads      int         `json:"loads"`
	Asked      []string    `json:"asked"` // the loads, as they were carried out
	Parameters []Parameter `json:"parameters"`
	Predicted  []Predicted `json:"predicted"`
	// Values are those of all parameters of the fit.
	Values map[string]float64 `json:"values"`
}

// Parameter is one of the fit, beside its truth.
type Parameter struct {
	predict.Fitted
	Truth float64 `json:"truth"`
}

// Predicted is a load.
type Predicted struct {
	Load     string                `json:"load"`
	Beyond   float64               `json:"beyond"` // what was fitted, 0 within
	Unfitted predict.Metrics       `json:"unfitted_error_pct"`
	Error    predict.Metrics       `json:"error_pct"`
	Within   *deploy.ExpectedError `json:"expected_within"` // of a load that is within
	Expected *deploy.ExpectedError `json:"expected"`
}

// cpu is the processor time of the process so far, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// calibrated calibrates the twin of a server and predicts the six loads.
func (s *server) calibrated(seed uint64, requests int) *Result {
	x := &Result{Version: ResultVersion, Server: s.stated, Kind: s.kind, Chosen: s.chosen(), Seed: seed}
	begin, serving := cpu(), 0.0
	number := uint64(0)
	c := calibrate.Calibration{Deployment: s.known, Time: 5 * time.Minute, Each: 10 * time.Second}
	c.Measure = func(_ context.Context, l predict.DesignLoad) ([]*predict.Recording, error) {
		number++
		at := cpu()
		r := l.LoadFor(12, 2).Serve(s.engine(number), number)
		x.Asked = append(x.Asked, r.Dir)
		serving += cpu() - at
		if len(r.RecordedSeries().TTFT) == 0 { // as of a run
			return nil, nil
		}
		return []*predict.Recording{r}, nil
	}
	result, err := c.Run(context.Background())
	if err != nil {
		log.Fatalf("%s: %v", s.stated, err)
	}
	fit := result.Fit
	x.CPU, x.Loads = cpu()-begin-serving, len(fit.Runs)
	x.Values = map[string]float64{}
	for _, p := range fit.Parameters {
		x.Values[p.Name] = p.Value
		if v, ok := s.value[p.Name]; ok {
			x.Parameters = append(x.Parameters, Parameter{p, v})
		}
	}
	for i, l := range s.six(requests) {
		is := l.Serve(s.engine(200+uint64(i)), 200+uint64(i))
		loads := is.LoadRange()
		recorded := is.RecordedSeries().Metrics()
		few := is.First(300)
		x.Predicted = append(x.Predicted, Predicted{
			Load: l.Name, Beyond: fit.Fitted.FitDistance(loads),
			Unfitted: predict.PercentErrors(is.Replay(s.known).Metrics(), recorded),
			Error:    predict.PercentErrors(is.Replay(fit.Fitted).Metrics(), recorded),
			Within:   fit.Error,
			Expected: predict.ErrorAt(fit.Fitted, loads, func(d *deploy.Deployment) predict.Metrics { return few.Replay(d).Metrics() }),
		})
	}
	return x
}

// servers calibrates the twins of so many servers, but for those whose result is in
// the directory, and shows the table of all that are; or of these alone.
func servers(dir string, from, to int, seed uint64, requests int, table bool) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	var results []*Result
	for i := from; i < to; i++ {
		file := filepath.Join(dir, fmt.Sprintf("%02d.json", i))
		x := new(Result)
		if b, err := os.ReadFile(file); err != nil || json.Unmarshal(b, x) != nil || x.Version != ResultVersion || x.Seed != seed {
			if table {
				continue
			}
			s := newServer(seed, i)
			x = s.calibrated(seed, requests)
			b, err := json.MarshalIndent(x, "", " ")
			if err == nil {
				err = os.WriteFile(file, append(b, '\n'), 0o644)
			}
			if err != nil {
				log.Fatal(err)
			}
			log.Printf("%d: %s, %s: %.0f s of processor time", i, s.stated, s.kind, x.CPU)
		}
		results = append(results, x)
	}
	for _, chosen := range []bool{true, false} {
		half := slices.DeleteFunc(slices.Clone(results), func(x *Result) bool { return x.Chosen != chosen })
		if len(half) == 0 {
			continue
		}
		name := "not looked at before"
		if chosen {
			name = "constants were chosen on"
		}
		fmt.Printf("\n%d servers that %s\n\n", len(half), name)
		tables(half)
	}
}
