package main

import (
	"fmt"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/predict"
	"pitot/internal/results/metric"
	"pitot/internal/sim/deploy"
)

// kinds are what cases are drawn to be. What limits them is found by intervention,
// whatever they were drawn for.
var kinds = []string{
	"light", "heavy", "seats", "kv", "prompts", "budget", "cache off", "front", "network", "proxy", "throttled", "shared", "freezes", "late client", "decode", "host", "links",
	"slow proxy", "hiccups", "held",
}

// systems are the models and accelerators.
var systems = []string{"llama-3.1-8b@h100", "qwen2.5-7b@l40s", "llama-3.1-8b@a100", "qwen3-14b@h200", "llama-3.1-8b@rtx4090", "mistral-small-24b@h100"}

// aCase is a server with its surroundings and a load on it.
type aCase struct {
	number int
	seed   uint64
	chance uint64 // which of the engine's chances
	kind   string
	stated *deploy.Deployment
	truth  *deploy.Deployment
	s      surroundings
	load   predict.TwinLoad
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
	c.load = predict.TwinLoad{Input: spread(between(150, 1200)), Output: spread(between(30, 150)), Requests: 220}
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
	log := func(lo, hi float64) float64 { return lo * math.Exp(math.Log(hi/lo)*dice.Float64()) } // trivial ones too
	ms := func(lo, hi float64) time.Duration { return time.Duration(log(lo, hi) * float64(time.Millisecond)) }
	c.s.RoundTrip = ms(0.1, 10)
	switch c.kind {
	case "network":
		c.s.RoundTrip = ms(5, 250)
	case "proxy":
		c.s.Flush = ms(5, 300)
	case "throttled":
		c.s.Slower = 1 + log(0.02, 1)
		use /= c.s.Slower
	case "shared":
		c.s.Foreign = capacity * log(0.005, 0.8)
		c.s.ForeignLength = [2]int{(c.load.Input[0] + c.load.Input[1]) / 2, (c.load.Output[0] + c.load.Output[1]) / 2}
		use = between(0.15, 0.4)
	case "freezes":
		c.s.Every, c.s.Freeze = ms(1500, 4000), ms(200, 900)
	case "hiccups":
		c.s.Hiccups, c.s.Freeze = between(0.05, 0.4), ms(100, 1500)
	case "late client":
		c.s.Lag = ms(2, 400)
	case "slow proxy":
		if dice.IntN(2) == 0 {
			c.s.Relay = ms(5, 400)
		} else {
			c.s.Relay, c.s.Behind = ms(1, 5), ms(10, 250)
		}
	case "held":
		use = between(0.3, 0.9)
	}
	open := []string{"shared", "cache off", "network", "proxy", "slow proxy", "freezes", "hiccups", "held"} // what holds answers up holds up their users, which is not modelled
	if dice.IntN(3) == 0 && !slices.Contains(open, c.kind) {
		c.load.Users = max(int(use*float64(min(seats, 64))), 1)
		c.load.Requests = max(c.load.Requests, 6*c.load.Users)
	} else {
		c.load.Rate = use * capacity
	}
	if c.kind == "held" { // around the number that would be in flight
		free := c.load
		free.Requests = 80
		seen, last, sum := free.Serve(c.truth.Engine(7), 7).SeenRequests(), 0.0, 0.0
		for i := range seen {
			last, sum = max(last, seen[i].Last), sum+seen[i].Last-seen[i].Sent
		}
		c.load.MostInFlight = max(int(sum/last*between(0.8, 2.5)), 1)
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
	seen := full.Serve(c.truth.Engine(7), 7).SeenRequests()
	last := 0.0
	for i := range seen {
		last = max(last, seen[i].Last)
	}
	return float64(len(seen)) / last
}

// serve is what the client records of the load on a server, and the server's metrics.
func (c *aCase) serve(d *deploy.Deployment, s surroundings) (*predict.Recording, []explain.Request, *around) {
	a := newAround(d, s, c.seed+c.chance)
	r := c.load.Serve(a, c.seed)
	seen := r.SeenRequests()
	dice := rand.New(rand.NewPCG(c.seed, 99))
	for i := range seen {
		q := &seen[i]
		if lag := dice.ExpFloat64() * s.Lag.Seconds(); s.Lag > 0 {
			q.Due -= lag
			q.Lag = lag
		}
		if i%8 == 0 {
			q.Connect = s.RoundTrip.Seconds() + 1e-4*(1+dice.Float64())
		}
	}
	return r, seen, a
}

// stating returns the facts of the server as it was started, and of the load.
func (c *aCase) stating() explain.Facts {
	f := explain.Facts{}
	f.Set(explain.MaxSeats, float64(c.stated.Settings.MaxNumSeqs), "", explain.FromStated)
	f.Set(explain.MaxTokens, float64(c.stated.Settings.MaxNumBatchedTokens), "", explain.FromStated)
	f.Set(explain.PlannedHits, c.planned(), "share", explain.FromRecords)
	return f
}

// planned is the share of the prompts' tokens that an unlimited prefix cache would have.
func (c *aCase) planned() float64 {
	prefix := float64(c.load.Prefix) * c.load.PrefixShare
	return prefix / (prefix + float64(c.load.Input[0]+c.load.Input[1])/2)
}

var symptoms = []explain.Symptom{{Metric: metric.TTFT, Of: "p90"}, {Metric: metric.TPOT, Of: "mean"}, {Metric: metric.Stall, Of: "p90"}}

// causes are those that are relieved.
var causes = []explain.Cause{
	explain.Compute, explain.Bandwidth, explain.Host, explain.Links, explain.Seats, explain.KVCache, explain.Budget, explain.PrefixCache, explain.Frontend,
	explain.Network, explain.Proxy, explain.Throttling, explain.Foreign, explain.Freezes, explain.Client, explain.Hold,
}

// ResultVersion is that of the files; those of others are made anew.
const ResultVersion = 6

// Result is what came of a case.
type Result struct {
	Version int       `json:"version"`
	Number  int       `json:"number"`
	Kind    string    `json:"kind"`
	Server  string    `json:"server"`
	Load    string    `json:"load"`
	Of      []Outcome `json:"of"`
	Seen    []explain.Request
	Told    Told
	Stated  explain.Facts
}

// Outcome is of one symptom.
type Outcome struct {
	Symptom explain.Symptom           `json:"symptom"`
	Value   float64                   `json:"value"`
	Gains   map[explain.Cause]float64 `json:"true_gains"` // of each cause, relieved
	Twin    *explain.Twin             `json:"twin"`
	Knobs   map[string]float64        `json:"true_knobs"` // knob=value: what it truly brings
}

// chances is the number of simulations of a server, its engine's chances drawn anew, for a gain:
// when requests meet hangs on chance.
const chances = 3

// result makes it.
func (c *aCase) result(effort predict.Effort) *Result {
	x := &Result{Version: ResultVersion, Number: c.number, Kind: c.kind, Server: c.stated.SpecString(), Load: fmt.Sprintf("rate %.3g, users %d, most %d, in %v out %v prefix %d, %+v", c.load.Rate, c.load.Users, c.load.MostInFlight, c.load.Input, c.load.Output, c.load.Prefix, c.s)}
	recording, seen, a := c.serve(c.truth, c.s)
	x.Seen, x.Told, x.Stated = seen, a.told(), c.stating()
	twins := recording.WhatIf(c.stated, x.facts(symptoms[0], true), effort)
	for _, s := range symptoms {
		if value, ok := explain.SymptomValue(s, seen); ok && value > 0 {
			x.Of = append(x.Of, Outcome{Symptom: s, Value: value, Twin: twins.Of(s), Gains: map[explain.Cause]float64{}, Knobs: map[string]float64{}})
		}
	}
	for _, cause := range causes {
		if other, ok := c.without(cause); ok {
			for i, gain := range c.gains(other, x.Of) {
				x.Of[i].Gains[cause] = gain
			}
		}
	}
	for i := range x.Of {
		o := &x.Of[i]
		if o.Twin == nil {
			continue
		}
		for _, trials := range o.Twin.Trials {
			if len(trials) == 0 || trials[0].Gain < explain.Least {
				continue
			}
			if d, ok := predict.ApplyTrial(c.truth, trials[0]); ok {
				other := *c
				other.truth = d
				o.Knobs[trials[0].Knob+"="+trials[0].To] = c.gains(&other, x.Of[i:i+1])[0]
			}
		}
	}
	return x
}

// without is the case with one cause taken away; ok is false where there is none.
func (c *aCase) without(cause explain.Cause) (_ *aCase, ok bool) {
	other := *c
	if other.truth, ok = predict.RelieveCause(c.truth, cause); ok {
		return &other, true
	}
	other.truth = c.truth
	if cause == explain.Hold {
		other.load.MostInFlight = 0
		return &other, c.load.MostInFlight > 0
	}
	other.s, ok = c.s.without(cause)
	return &other, ok
}

// gains are the shares by which another case's symptoms are lower.
func (c *aCase) gains(other *aCase, of []Outcome) []float64 {
	was, is := make([]float64, len(of)), make([]float64, len(of))
	for k := range uint64(chances) {
		for _, side := range []struct {
			c  *aCase
			to []float64
		}{{c, was}, {other, is}} {
			one := *side.c
			one.chance = k
			_, seen, _ := one.serve(one.truth, one.s)
			for i := range of {
				x, _ := explain.SymptomValue(of[i].Symptom, seen)
				side.to[i] += x
			}
		}
	}
	for i := range is {
		is[i] = 1 - is[i]/was[i]
	}
	return is
}

// facts are what is known of a symptom: by the client, by what is stated of the server, and
// by its metrics.
func (x *Result) facts(s explain.Symptom, told bool) explain.Facts {
	f := explain.ObserveFacts(s, x.Seen)
	maps.Copy(f, x.Stated)
	if slices.ContainsFunc(x.Seen, func(q explain.Request) bool { return q.Held > 0 }) {
		f.Set(explain.MostInFlight, 1, "", explain.FromStated)
	}
	if told {
		x.Told.add(f)
	}
	return f
}
