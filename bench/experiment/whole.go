package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"pitot/internal/experiment/decide"
)

// A whole plan: a launch carries something, and is asked some requests at each load of its
// climb; of what violates the limit it is estimated what it carries. Time passes
// meanwhile, and the machine gets slower and faster with it.

const (
	wanted    = 10.0   // requests per second
	allowed   = 0.05   // may violate the limit: p95
	steepness = 8      // how the share that does rises with the load, as a power
	bursts    = 5      // violations come in bursts of about so many
	starting  = 120.0  // seconds that a launch takes to begin
	leadIn    = 8.0    // seconds that a load warms up
	perHour   = 0.10   // how much slower a machine that drifts gets in an hour, ln
	turns     = 3600.0 // after so many seconds it gets faster again
)

// machine is how fast the machine is by the time.
type machine struct {
	drifts bool
	phase  float64 // seconds
}

// at is ln of how fast it is then, 0 on average.
func (m machine) at(seconds float64) float64 {
	if !m.drifts {
		return 0
	}
	x := math.Mod(seconds+m.phase, 2*turns) / turns
	return perHour * (math.Abs(x-1) - 0.5)
}

// shown is the share of so many requests that violate the limit at a load, of a launch that
// reaches it at capacity.
func shown(r *rand.Rand, load, capacity float64, requests int) float64 {
	truth := min(allowed*math.Pow(load/capacity, steepness), 1)
	if truth < 1 { // the share of these requests, which come in bursts
		sd := math.Sqrt((bursts - 1) * (1 - truth) / (float64(requests)*truth + 1))
		truth = min(truth*math.Exp(sd*r.NormFloat64()-sd*sd/2), 1)
	}
	mean := float64(requests) * truth
	n := math.Round(mean + math.Sqrt(mean*(1-truth))*r.NormFloat64())
	if mean < 20 {
		n = poisson(r, mean)
	}
	return min(max(n, 0), float64(requests)) / float64(requests)
}

// poisson draws a small count.
func poisson(r *rand.Rand, mean float64) (n float64) {
	for p := r.Float64(); p > math.Exp(-mean); n++ {
		p *= r.Float64()
	}
	return n
}

// whole is a plan and its truth.
type whole struct {
	Truth    []float64 // of a good launch, over the long run
	Drifts   bool
	BadShare float64
}

// launches measures launches of a plan one after the other.
type launches struct {
	*whole
	r        *rand.Rand
	m        machine
	requests int
	seconds  float64
}

// capacity is what a launch of a configuration carries now.
func (l *launches) capacity(of int) float64 {
	x := math.Log(l.Truth[of]) + spread*l.r.NormFloat64() + l.m.at(l.seconds)
	if l.r.Float64() < l.BadShare {
		x -= badBy
	}
	return math.Exp(x)
}

// ask asks at a load.
func (l *launches) ask(load, capacity float64) decide.Rung {
	l.seconds += float64(l.requests)/load + leadIn
	return decide.Rung{Load: load, Claims: []decide.Violated{{Share: shown(l.r, load, capacity, l.requests), Allowed: allowed, N: l.requests}}}
}

// climb is what a launch is estimated to carry.
func (l *launches) climb(of int, near float64) float64 {
	l.seconds += starting
	capacity := l.capacity(of)
	var rungs []decide.Rung
	for {
		load, more := decide.Next(wanted, near, rungs)
		if !more {
			c, _ := decide.LoadAtLimits(rungs)
			return c.Load
		}
		rungs = append(rungs, l.ask(load, capacity))
	}
}

// Outcome is what came of a plan.
type Outcome struct {
	Plan      int
	Answer    string  // "accepted", "none" or "undecided"
	Truth     float64 // of the configuration that was accepted, else of the one that leads
	Best      float64 // of the cheapest that meets the contract, 0 where none does
	Bound     float64 // that was stated of how much more another carries; at most 1
	Seconds   float64
	Of        float64     // what the same plan takes without giving up or stopping
	Grid      [][]float64 // of a fixed grid after each launch: seconds, and the truth of what it chooses
	Launches  int
	WouldTake int  // launches that would decide, of undecided ones; 0: more than 200
	Claims    bool // of plans without an effect: any difference is claimed
}

// loss is by how much more a token costs than with the cheapest that meets the contract.
func loss(truth, best float64) float64 {
	switch {
	case best == 0:
		return 0
	case truth < 0.98*wanted:
		return 1 // it does not meet the contract
	}
	return max(best/truth-1, 0)
}

// carryOut carries a plan out.
func (w *whole) carryOut(n int, seed uint64, planned, requests int, grid bool) (o Outcome) {
	fresh := func(stream uint64) *launches {
		r := rand.New(rand.NewPCG(seed, uint64(n)<<8|stream))
		return &launches{whole: w, r: r, m: machine{w.Drifts, 2 * turns * r.Float64()}, requests: requests}
	}
	o.Plan = n
	for _, x := range w.Truth {
		if x >= wanted {
			o.Best = max(o.Best, x)
		}
	}
	l := fresh(1)
	p := decide.Problem{Carries: make([][]float64, len(w.Truth)), Looked: decide.LoadError(requests, allowed), Wanted: wanted, Planned: planned, Confidence: .95, Precision: .04, Early: true}
	var d decide.Decision
	near := make([]float64, len(w.Truth))
	for b := range planned {
		for i := range w.Truth {
			p.Carries[i] = append(p.Carries[i], math.NaN())
		}
		for _, i := range l.r.Perm(len(w.Truth)) {
			if b == 0 || d.Of[i].Left == 0 {
				near[i] = l.climb(i, near[i])
				p.Carries[i][b] = near[i]
				o.Launches++
			}
		}
		if d = d.GoOn(p); d.Enough {
			break
		}
	}
	o.Seconds, o.Bound = l.seconds, min(d.More, 1)
	if d.Leads >= 0 {
		o.Truth = w.Truth[d.Leads]
	}
	switch {
	case d.Accepted >= 0:
		o.Answer = "accepted"
	case d.Why == decide.StopNone:
		if o.Answer = "none"; o.Best > 0 {
			o.Truth = 0
		}
	default:
		o.Answer = "undecided"
		for i := range d.Of {
			if k := d.Of[i].Decides; k > 0 && (o.WouldTake == 0 || k < o.WouldTake) {
				o.WouldTake = k
			}
		}
	}
	o.Claims = claims(l.r, d, p, 15)
	if grid {
		o.Grid = w.grid(fresh(2), 3*planned)
	}
	return o
}

// gridLoads are those of a fixed grid: from 70 % of what is wanted to 1.7 times that, a
// step apart.
func gridLoads() (list []float64) {
	for k := -3; k <= 4; k++ {
		list = append(list, wanted*math.Pow(decide.Step, float64(k)))
	}
	return list
}

// grid measures every configuration at every load in every launch, in the same blocks, and
// says after each block how long it took and the truth of what it chooses: of those whose
// mean is what is wanted or more, the highest; else the highest.
func (w *whole) grid(l *launches, planned int) (out [][]float64) {
	sums := make([]float64, len(w.Truth))
	for range planned {
		for _, i := range l.r.Perm(len(w.Truth)) {
			l.seconds += starting
			capacity := l.capacity(i)
			var rungs []decide.Rung
			for _, load := range gridLoads() {
				rungs = append(rungs, l.ask(load, capacity))
			}
			c, _ := decide.LoadAtLimits(rungs)
			sums[i] += math.Log(c.Load)
		}
		chosen := slices.Index(sums, slices.Max(sums))
		out = append(out, []float64{l.seconds, w.Truth[chosen]})
	}
	return out
}

// plan is the n-th one: each fourth drifts, has bad launches, both or neither.
func plan(n int, seed uint64, helps bool) *whole {
	r := rand.New(rand.NewPCG(seed, uint64(n)<<8))
	w := &whole{Truth: truths(r, kind{helps: helps}), Drifts: n%2 == 1}
	if n/2%2 == 1 {
		w.BadShare = .2
	}
	return w
}

// wholes carries plans out; what came of each is kept in a file, one line each, so that it
// can be gone on with.
func wholes(from, plans int, seed uint64, planned, requests int, helps bool, keep string) (list []Outcome, err error) {
	done := map[int]Outcome{}
	if keep != "" {
		if f, err := os.Open(keep); err == nil {
			in := bufio.NewScanner(f)
			in.Buffer(nil, 1<<20)
			for in.Scan() {
				var o Outcome
				if json.Unmarshal(in.Bytes(), &o) == nil { // a line that was cut off is done again
					done[o.Plan] = o
				}
			}
			f.Close()
		}
	}
	var out *os.File
	if keep != "" {
		if out, err = os.OpenFile(keep, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, err
		}
		defer out.Close()
	}
	for n := from; n < from+plans; n++ {
		o, ok := done[n]
		if !ok {
			o = plan(n, seed, helps).carryOut(n, seed, planned, requests, helps)
			if out != nil {
				line, err := json.Marshal(o)
				if err != nil {
					return nil, err
				}
				if _, err := fmt.Fprintf(out, "\n%s\n", line); err != nil {
					return nil, err
				}
			}
		}
		list = append(list, o)
	}
	return list, nil
}

// summary is what plans come to together.
type summary struct {
	plans, good, accepted, none, undecided, violates, told, claims int
	launches, seconds, loss                                        float64
}

func summarise(list []Outcome) (s summary) {
	for _, o := range list {
		s.plans++
		s.launches += float64(o.Launches)
		s.seconds += o.Seconds / 3600
		l := loss(o.Truth, o.Best)
		s.loss += l
		if o.Answer == "none" && o.Best == 0 || l <= max(.02, o.Bound) && o.Bound <= .04 {
			s.good++
		}
		switch o.Answer {
		case "accepted":
			s.accepted++
			if o.Truth < .98*wanted {
				s.violates++
			}
		case "none":
			s.none++
		default:
			s.undecided++
			if o.WouldTake > 0 {
				s.told++
			}
		}
		if o.Claims {
			s.claims++
		}
	}
	n := float64(s.plans)
	s.launches, s.seconds, s.loss = s.launches/n, s.seconds/n, s.loss/n
	return s
}

// ratio is the mean time of plans over that which a fixed grid takes to the same mean
// loss, and with how many launches: one more than it has where it does not get there.
func ratio(list []Outcome) (share float64, launch int) {
	s := summarise(list)
	n := float64(len(list))
	for k := range list[0].Grid {
		lost, seconds := 0.0, 0.0
		for _, o := range list {
			lost, seconds = lost+loss(o.Grid[k][1], o.Best)/n, seconds+o.Grid[k][0]/3600/n
		}
		if lost <= s.loss {
			return s.seconds / seconds, k + 1
		}
	}
	last, seconds := len(list[0].Grid)-1, 0.0
	for _, o := range list {
		seconds += o.Grid[last][0] / 3600 / n
	}
	return s.seconds / seconds, last + 2 // at most: the grid does not get there
}

// bootstrapped is a 95 % interval of ratio, over plans.
func bootstrapped(list []Outcome, seed uint64) (lo, hi float64) {
	r := rand.New(rand.NewPCG(seed, 77))
	var all []float64
	const times = 1000
	for range times {
		again := make([]Outcome, len(list))
		for i := range again {
			again[i] = list[r.IntN(len(list))]
		}
		x, _ := ratio(again)
		all = append(all, x)
	}
	slices.Sort(all)
	return all[times*25/1000], all[times*975/1000]
}
