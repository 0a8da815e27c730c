package main

import (
	"fmt"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitot/internal/data/metric"
	"pitot/internal/study/explain"
	"pitot/internal/study/predict"
	"pitot/internal/twin/deploy"
)

// kinds are what cases are drawn to be. What limits them is found by intervention,
// whatever they were drawn for.
var kinds = []string{
	"light", "heavy", "seats", "kv", "prompts", "budget", "cache off", "front", "network", "proxy", "throttled", "shared", "freezes", "late client", "decode", "host", "links",
}

// systems are the models and accelerators.
var systems = []string{"llama-3.1-8b@h100", "qwen2.5-7b@l40s", "llama-3.1-8b@a100", "qwen3-14b@h200", "llama-3.1-8b@rtx4090", "mistral-small-24b@h100"}

// aCase is a server with its surroundings and a load on it.
type aCase struct {
	number int
	seed   uint64
	kind   string
	stated *deploy.Deployment
	truth  *deploy.Deployment
	s      surroundings
	load   predict.Load
}

// newCase draws one.
func newCase(seed uint64, number int) *aCase {
	dice := rand.New(rand.NewPCG(seed, uint64(number)))
	c := &aCase{number: number, seed: seed ^ uint64(number)<<20, kind: kinds[number%len(kinds)], s: surroundings{Slower: 1}}
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*dice.Float64() }
	whole := func(lo, hi int) int { return lo + dice.IntN(hi-lo+1) }
	spread := func(mid float64) [2]int { return [2]int{max(int(mid*0.5), 1), int(mid * 1.5)} }

	system, settings := systems[dice.IntN(len(systems))], ""
	seats, budget := 32<<dice.IntN(4), 2048<<dice.IntN(3)
	c.load = predict.Load{Input: spread(between(150, 1200)), Output: spread(between(30, 150)), Requests: 220}
	use := between(0.3, 0.95) // of the server's capacity
	switch c.kind {
	case "light":
		use = between(0.1, 0.4)
	case "heavy":
		use = between(0.85, 1.15)
	case "seats":
		seats, use = whole(3, 12), between(0.8, 1.1)
	case "kv":
		use = between(0.8, 1.1)
		c.load.Input = spread(between(800, 2500))
	case "prompts":
		c.load.Input, c.load.Output = spread(between(2000, 6000)), spread(between(10, 60))
	case "budget":
		seats, budget = 32, 256<<dice.IntN(2)
		c.load.Input = spread(between(800, 2500))
	case "cache off":
		settings = "&enable_prefix_caching=false"
		c.load.Prefix, c.load.PrefixShare = 16*whole(60, 250), between(0.7, 1)
	case "decode":
		c.load.Input, c.load.Output = spread(between(50, 300)), spread(between(80, 250))
	case "host":
		system = []string{"qwen2.5-0.5b@h100", "llama-3.2-1b@h100", "llama-3.2-3b@h100"}[dice.IntN(3)]
		c.load.Input, c.load.Output = spread(between(50, 300)), spread(between(50, 150))
		use = between(0.05, 0.4)
	case "links":
		system = []string{"llama-3.1-70b@8xh100", "qwen3-32b@4xl40s", "llama-3.1-8b@4xrtx4090"}[dice.IntN(3)]
	}
	stated := fmt.Sprintf("%s?max_model_len=12000&max_num_seqs=%d&max_num_batched_tokens=%d%s", system, seats, max(budget, seats), settings)
	if c.kind == "kv" {
		one := (c.load.Input[1] + c.load.Output[1] + 15) / 16
		stated += fmt.Sprintf("&num_gpu_blocks_override=%d", max(one*whole(2, 6), 760))
	}
	var err error
	if c.stated, err = deploy.Parse(stated); err != nil {
		log.Fatalf("%s: %v", stated, err)
	}
	c.truth = unlike(c.stated, dice)
	f := &c.truth.Settings.Frontend
	if c.kind == "front" {
		k := between(4, 15)
		f.PerRequest, f.PerPromptToken, f.PerChunk = by(f.PerRequest, k), by(f.PerPromptToken, k), by(f.PerChunk, k)
	}

	capacity := c.capacity()
	ms := func(lo, hi float64) time.Duration { return time.Duration(between(lo, hi) * float64(time.Millisecond)) }
	switch c.kind {
	case "network":
		c.s.RoundTrip = ms(30, 250)
	case "proxy":
		c.s.Flush = ms(60, 300)
	case "throttled":
		c.s.Slower = between(1.35, 2)
		use /= c.s.Slower
	case "shared":
		c.s.Foreign = capacity * between(0.3, 0.8)
		c.s.ForeignLength = [2]int{(c.load.Input[0] + c.load.Input[1]) / 2, (c.load.Output[0] + c.load.Output[1]) / 2}
		use = between(0.15, 0.4)
	case "freezes":
		c.s.Every, c.s.Freeze = ms(1500, 4000), ms(200, 900)
	case "late client":
		c.s.Lag = ms(20, 400)
	}
	open := []string{"shared", "cache off", "network", "proxy", "freezes"} // what holds answers up holds up their users, which is not modelled
	if dice.IntN(3) == 0 && !slices.Contains(open, c.kind) {
		c.load.Users = max(int(use*float64(min(seats, 64))), 1)
		c.load.Requests = max(c.load.Requests, 6*c.load.Users)
	} else {
		c.load.Rate = use * capacity
	}
	return c
}

func by(t time.Duration, f float64) time.Duration { return time.Duration(float64(t) * f) }

// unlike is a server that differs from the catalogue by 10 to 40 % in each constant.
func unlike(d *deploy.Deployment, dice *rand.Rand) *deploy.Deployment {
	c := *d
	c.Accelerator.TFLOPS = maps.Clone(d.Accelerator.TFLOPS)
	factor := func() float64 {
		x := math.Log(1.1) + (math.Log(1.4)-math.Log(1.1))*dice.Float64()
		if dice.IntN(2) == 0 {
			x = -x
		}
		return math.Exp(x)
	}
	compute := factor()
	for t := range c.Accelerator.TFLOPS {
		c.Accelerator.TFLOPS[t] *= compute
	}
	c.Accelerator.BandwidthGBs *= factor()
	e, f := &c.Efficiency, &c.Settings.Frontend
	e.PromptAttention = min(e.PromptAttention*factor(), 1)
	e.Attention *= factor()
	e.CollectiveGBs *= factor()
	for _, t := range []*time.Duration{&e.Collective, &e.PerStep, &e.PerRequest, &e.PerPrefill, &e.PerLayer, &f.Latency, &f.PerRequest, &f.PerPromptToken, &f.PerStep, &f.PerChunk} {
		*t = by(*t, factor())
	}
	c.Settings.StepJitter = 0.01 + 0.05*dice.Float64()
	return &c
}

// capacity is about how many requests a second the server answers at most.
func (c *aCase) capacity() float64 {
	full := c.load
	full.Users, full.Requests = min(c.truth.Settings.MaxNumSeqs, 48), 120
	seen := full.Serve(c.truth.Engine(7), 7).Seen()
	last := 0.0
	for i := range seen {
		last = max(last, seen[i].Last)
	}
	return float64(len(seen)) / last
}

// serve is what the client records of the load on a server, and the server's metrics.
func (c *aCase) serve(d *deploy.Deployment, s surroundings) (*predict.Recording, []explain.Request, *around) {
	a := newAround(d, s, c.seed)
	r := c.load.Serve(a, c.seed)
	seen := r.Seen()
	dice := rand.New(rand.NewPCG(c.seed, 99))
	for i := range seen {
		q := &seen[i]
		if lag := dice.ExpFloat64() * s.Lag.Seconds(); s.Lag > 0 {
			q.Due -= lag
		}
		if i%8 == 0 {
			q.Connect = s.RoundTrip.Seconds() + 2e-4
		}
	}
	return r, seen, a
}

// facts are what is known of a symptom: by the client, by what is stated of the server, and
// by its metrics.
func (c *aCase) facts(s explain.Symptom, seen []explain.Request, server explain.Facts) explain.Facts {
	f := explain.Observe(s, seen)
	f.Set(explain.MaxSeats, float64(c.stated.Settings.MaxNumSeqs), "", explain.FromStated)
	f.Set(explain.MaxTokens, float64(c.stated.Settings.MaxNumBatchedTokens), "", explain.FromStated)
	maps.Copy(f, server)
	return f
}

var symptoms = []explain.Symptom{{Metric: metric.TTFT, Of: "p90"}, {Metric: metric.TPOT, Of: "mean"}, {Metric: metric.Stall, Of: "p90"}}

// causes are those that are relieved.
var causes = []explain.Cause{
	explain.Compute, explain.Bandwidth, explain.Host, explain.Links, explain.Seats, explain.KVCache, explain.Budget, explain.PrefixCache, explain.Frontend,
	explain.Network, explain.Proxy, explain.Throttling, explain.Foreign, explain.Freezes, explain.Client,
}

// ResultVersion is that of the files; those of others are made anew.
const ResultVersion = 5

// Result is what came of a case.
type Result struct {
	Version int       `json:"version"`
	Number  int       `json:"number"`
	Kind    string    `json:"kind"`
	Server  string    `json:"server"`
	Load    string    `json:"load"`
	Of      []Outcome `json:"of"`
}

// Outcome is of one symptom.
type Outcome struct {
	Symptom explain.Symptom           `json:"symptom"`
	Gains   map[explain.Cause]float64 `json:"true_gains"` // of each cause, relieved
	With    explain.Case              `json:"with"`       // telemetry
	Without explain.Case              `json:"without"`
	Knobs   map[string]float64        `json:"true_knobs"` // knob=value: what it truly brings
}

// result makes it.
func (c *aCase) result() *Result {
	x := &Result{Version: ResultVersion, Number: c.number, Kind: c.kind, Server: c.stated.Named(), Load: fmt.Sprintf("rate %.3g, users %d, in %v out %v prefix %d, %+v", c.load.Rate, c.load.Users, c.load.Input, c.load.Output, c.load.Prefix, c.s)}
	recording, seen, a := c.serve(c.truth, c.s)
	relieved := map[explain.Cause][]explain.Request{}
	for _, cause := range causes {
		if d, ok := predict.Relieve(c.truth, cause); ok {
			_, relieved[cause], _ = c.serve(d, c.s)
		} else if s, ok := c.s.without(cause); ok {
			_, relieved[cause], _ = c.serve(c.truth, s)
		}
	}
	server := explain.Facts{}
	a.facts(server)
	facts := func(s explain.Symptom, with bool) explain.Facts {
		if with {
			return c.facts(s, seen, server)
		}
		return c.facts(s, seen, nil)
	}
	with := recording.WhatIf(c.stated, facts(symptoms[0], true), predict.Thorough)
	without := recording.WhatIf(c.stated, facts(symptoms[0], false), predict.Thorough)
	for _, s := range symptoms {
		value, ok := explain.Measure(s, seen)
		if !ok || value <= 0 {
			continue
		}
		o := Outcome{Symptom: s, Gains: map[explain.Cause]float64{}, Knobs: map[string]float64{}}
		for cause, list := range relieved {
			if v, ok := explain.Measure(s, list); ok {
				o.Gains[cause] = 1 - v/value
			}
		}
		o.With = explain.Case{Symptom: s, Value: value, Facts: facts(s, true), Twin: with.Of(s)}
		o.Without = explain.Case{Symptom: s, Value: value, Facts: facts(s, false), Twin: without.Of(s)}
		for _, t := range []*explain.Twin{o.With.Twin, o.Without.Twin} {
			if t == nil {
				continue
			}
			for _, trials := range t.Trials {
				if len(trials) == 0 || trials[0].Gain < explain.Least {
					continue
				}
				name := trials[0].Knob + "=" + trials[0].To
				if _, done := o.Knobs[name]; done {
					continue
				}
				if d, ok := predict.Turn(c.truth, trials[0]); ok {
					_, list, _ := c.serve(d, c.s)
					if v, ok := explain.Measure(s, list); ok {
						o.Knobs[name] = 1 - v/value
					}
				}
			}
		}
		x.Of = append(x.Of, o)
	}
	return x
}
