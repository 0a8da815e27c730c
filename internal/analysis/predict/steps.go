package predict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
)

// What a step costs can be read off a run without any engine: the gap between
// two chunks of a stream is the duration of the step between them. A linear
// regression of all gaps on what was going on meanwhile gives a beginning for
// the fit that is near the truth.

// The columns of the regression.
const (
	colStep    = iota // one for each gap
	colRow            // requests that were answering
	colContext        // tokens that these looked back on
	colToken          // prompt tokens computed in the gap: those of requests whose first token ends it
	colPrefill        // whether there are such requests
	colPrompt         // how many
	colArrival        // requests that were sent during the gap
	columns
)

// gap is the time between two chunks of a stream, in seconds as a recording
// counts them, and what went on meanwhile.
type gap struct {
	from, to float64
	x        [columns]float64
}

// regression adds up the normal equations of weighted least squares.
type regression struct {
	m [columns][columns]float64
	v [columns]float64
	n int

	decode []float64 // gaps with nothing but answers, for the jitter
	gaps   [][]gap   // of each run
	calm   [][]gap   // of a replay of each without slow phases, nil where there is none
}

// event is so many tokens at a time.
type event struct{ at, tokens float64 }

func byTime(a, b event) int { return cmp.Compare(a.at, b.at) }

// firstAfter is the index of the first event behind a time.
func firstAfter(list []event, t float64) int {
	i, _ := slices.BinarySearchFunc(list, t, func(e event, t float64) int {
		if e.at > t {
			return 1
		}
		return -1
	})
	return i
}

// countBefore returns the number of times that lie before one.
func countBefore(list []float64, t float64) int {
	i, _ := slices.BinarySearch(list, t)
	return i
}

// addGaps takes the gaps of a run's requests that the fit may look at. What else
// went on meanwhile is known from all of them.
func (g *regression) addGaps(r *Recording) {
	var firsts, lasts, sents []float64
	var prompts, events []event // events: changes of the tokens looked back on
	for _, q := range r.Requests {
		sents = append(sents, q.Arrival)
		if len(q.times) == 0 {
			continue
		}
		first, last := q.times[0], q.times[len(q.times)-1]
		firsts, lasts = append(firsts, first), append(lasts, last)
		prompts = append(prompts, event{first, float64(max(q.Input-q.cached, 1))})
		events = append(events, event{first, float64(q.Input)}, event{last, -float64(q.Input + len(q.times))})
		for _, t := range q.times {
			events = append(events, event{t, 1})
		}
	}
	slices.Sort(sents)
	slices.Sort(firsts)
	slices.Sort(lasts)
	slices.SortFunc(prompts, byTime)
	slices.SortFunc(events, byTime)
	for i := 1; i < len(events); i++ {
		events[i].tokens += events[i-1].tokens
	}
	var gaps []gap
	for _, q := range r.Requests {
		if r.until > 0 && q.Arrival >= r.until {
			continue
		}
		for i := 1; i < len(q.times); i++ {
			from, to := q.times[i-1], q.times[i]
			took := to - from
			if took <= 0 {
				continue
			}
			mid := (from + to) / 2
			// Chunks of one step come one after the other, not at once.
			smear := min(0.5e-3, took/4)
			var x [columns]float64
			x[colStep] = 1
			x[colRow] = float64(max(countBefore(firsts, mid)-countBefore(lasts, mid), 1))
			if k := firstAfter(events, mid); k > 0 {
				x[colContext] = max(events[k-1].tokens, 0)
			}
			for _, e := range prompts[firstAfter(prompts, from+smear):firstAfter(prompts, to+smear)] {
				x[colToken] += e.tokens
				x[colPrefill] = 1
				x[colPrompt]++
			}
			x[colArrival] = float64(countBefore(sents, to) - countBefore(sents, from))
			g.n++
			gaps = append(gaps, gap{from, to, x})
			if x[colPrefill] == 0 && x[colArrival] == 0 && x[colRow] <= 2 {
				g.decode = append(g.decode, took)
			}
		}
	}
	g.gaps = append(g.gaps, gaps)
}

// addEquations adds up the normal equations. courses are the slow phases of each run as
// far as they are known: what a gap would have been without is regressed.
func (g *regression) addEquations(courses []course) {
	g.m, g.v = [columns][columns]float64{}, [columns]float64{}
	for i, gaps := range g.gaps {
		for _, p := range gaps {
			took := p.to - p.from
			if courses != nil {
				took /= courses[i].factorAt(p.from)
			}
			w := 1 / p.x[colRow] // a step has as many gaps as rows
			for a := range columns {
				for b := range columns {
					g.m[a][b] += w * p.x[a] * p.x[b]
				}
				g.v[a] += w * p.x[a] * took
			}
		}
	}
}

// solve gives the coefficients in seconds, none below zero: a column whose
// coefficient would be is left out.
func (g *regression) solve() (c [columns]float64) {
	var out [columns]bool
	for range columns {
		var keep []int
		for i := range columns {
			if !out[i] && g.m[i][i] > 0 {
				keep = append(keep, i)
			}
		}
		m := zeroMatrix(len(keep))
		for i, a := range keep {
			for j, b := range keep {
				m[i][j] = g.m[a][b]
			}
			m[i][i] *= 1 + 1e-9
			if a == colPrefill || a == colPrompt { // prompts of one length: the tokens take the cost
				m[i][i] *= 1 + 1e-3
			}
		}
		inv := invertMatrix(m)
		c = [columns]float64{}
		worst, at := 0.0, -1
		for i, a := range keep {
			for j, b := range keep {
				c[a] += inv[i][j] * g.v[b]
			}
			if c[a]*math.Sqrt(g.m[a][a]) < worst {
				worst, at = c[a]*math.Sqrt(g.m[a][a]), a
			}
		}
		if at < 0 {
			return c
		}
		out[at] = true
	}
	return c
}

// gapsOf are the gaps of runs; ok is false of too few.
func gapsOf(runs []*Recording) (g *regression, ok bool) {
	g = &regression{}
	for _, r := range runs {
		g.addGaps(r)
	}
	return g, g.n >= 1000
}

// gapsOfSome are the gaps of some of the runs, for [regression.slowPhases] alone.
func (g *regression) gapsOfSome(wanted func(run int) bool) *regression {
	some := &regression{}
	for i, gaps := range g.gaps {
		if wanted(i) {
			some.gaps = append(some.gaps, gaps)
			if g.calm != nil {
				some.calm = append(some.calm, g.calm[i])
			}
		}
	}
	return some
}

// goThrough lets replays of the runs go through their own slow phases: else these
// would be ascribed to a parameter.
func (s *slowness) goThrough(runs []*Recording) {
	for i := range s.courses {
		runs[i].course = &s.courses[i]
	}
}

// setFromGaps sets the parameters of a deployment to what the gaps of the runs say.
func (g *regression) setFromGaps(d *deploy.Deployment, runs []*Recording, slow *slowness) {
	c := g.solve()
	// What the gaps say nothing of stays where it is.
	setIfPositive := func(to *time.Duration, s float64) {
		if s > 0 {
			*to = time.Duration(s * 1e9)
		}
	}
	e := &d.Efficiency
	// Parts of a step at full efficiency tell how to divide by it.
	full := *d
	full.Efficiency.Compute = 1
	if token := full.Parts(&sim.Batch{Tokens: 1e6}).Weights / 1e6; c[colToken] > token {
		e.Compute = token / c[colToken]
		e.PromptAttention = min(e.PromptAttention, e.Compute) // on the same units, and seldom better
	}
	full.Efficiency.Attention = 1
	if token := full.Parts(&sim.Batch{DecodeContext: 1e6}).Decode / 1e6; c[colContext] > token {
		e.Attention = token / c[colContext]
	}
	setIfPositive(&e.PerRequest, c[colRow])
	setIfPositive(&e.PerPrefill, c[colPrefill])
	setIfPositive(&e.PerPrompt, c[colPrompt])
	rest := *d
	rest.Efficiency.PerStep = 0
	setIfPositive(&e.PerStep, c[colStep]-rest.Parts(&sim.Batch{Tokens: 1, Logits: 1}).Total())
	f := &d.Settings.Frontend
	if c[colArrival] > 0 {
		f.Contention = min(c[colArrival]/f.PerRequest.Seconds(), 1)
	}
	beginFront(f, d, runs)
	d.Settings.StepJitter = g.gapJitter()
	if slow.cv > 0 { // a part of the spread is theirs
		j := d.Settings.StepJitter
		d.Settings.StepJitter = math.Sqrt(max(j*j-slow.cv*slow.cv, 1e-4))
	}
}

// waited is by how much longer a request waited for its first token than in a
// replay, in seconds.
type waited struct{ input, s float64 }

// beginFront sets what the front end takes to what the replays lack of the TTFTs
// where the load was least: what grows with the prompt is a token's, and what the
// shorter ones lack besides is latency.
func beginFront(f *sim.Frontend, d *deploy.Deployment, runs []*Recording) {
	least := math.Inf(1)
	for _, r := range runs {
		least = min(least, r.meanRunning())
	}
	var over []waited
	for _, r := range runs {
		if r.meanRunning() > 1.2*least {
			continue
		}
		recorded, replayed := r.timings(), r.replay(d)
		for i, q := range r.Requests {
			if q.measured {
				over = append(over, waited{float64(q.Input), recorded[i].ttft - replayed[i].ttft})
			}
		}
	}
	if len(over) == 0 {
		return
	}
	slices.SortFunc(over, func(a, b waited) int { return cmp.Compare(a.input, b.input) })
	third := len(over) / 3
	short, shorter := meanAndMedian(over[:max(third, 1)])
	long, longer := meanAndMedian(over[len(over)-max(third, 1):])
	if third >= leastGroup && long >= 2*short { // else a token's time would be of chance
		begun := f.PerPromptToken
		slope := (longer - shorter) / (long - short)
		f.PerPromptToken = max(begun+time.Duration(slope*1e9), begun/30)
		for i := range over {
			over[i].s -= (f.PerPromptToken - begun).Seconds() * over[i].input
		}
	}
	slices.SortFunc(over, func(a, b waited) int { return cmp.Compare(a.s, b.s) })
	// The server may also be faster than was begun with.
	f.Latency = max(f.Latency+time.Duration(over[len(over)/4].s*1e9), f.Latency/30)
}

// meanAndMedian gives the mean input and the median wait.
func meanAndMedian(list []waited) (input, s float64) {
	times := make([]float64, len(list))
	for i, w := range list {
		input += w.input / float64(len(list))
		times[i] = w.s
	}
	slices.Sort(times)
	return input, times[len(times)/2]
}

// meanRunning returns the mean number of requests that ran at once.
func (r *Recording) meanRunning() float64 {
	busy, last := 0.0, 0.0
	for _, q := range r.Requests {
		busy, last = busy+q.seen.e2e, max(last, q.Arrival+q.seen.e2e)
	}
	return busy / max(last, 1e-9)
}

// gapJitter is the spread of the gaps with nothing but answers, as half of the
// range of the middle 68 % over the median.
func (g *regression) gapJitter() float64 {
	if len(g.decode) < 100 {
		return 0.02
	}
	slices.Sort(g.decode)
	quantile := func(p float64) float64 { return g.decode[int(p*float64(len(g.decode)-1))] }
	return (quantile(.84) - quantile(.16)) / 2 / quantile(.5)
}
