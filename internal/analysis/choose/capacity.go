package choose

import (
	"cmp"
	"context"
	"math"
	"slices"

	"pitot/internal/slo"
)

// curve holds the results of a candidate at its loads, in ascending order.
type curve []*served

func (c curve) withLoad(x *served) curve {
	i, _ := slices.BinarySearchFunc(c, x.Rate, func(s *served, rate float64) int { return cmp.Compare(s.Rate, rate) })
	return slices.Insert(slices.Clone(c), i, x)
}

// crossingLoad is the load at which a claim's requests take so many times what is allowed:
// where the curve passes it first, straight between two loads in logarithms. known is
// false where it lies beyond the loads that were tried; the rate is then the last of them.
func (c curve) crossingLoad(claim int, times float64, of func(*served) []float64) (rate float64, known bool) {
	for i, x := range c {
		y := of(x)[claim]
		switch {
		case y < times:
			continue
		case i == 0:
			return 0, true
		}
		before := of(c[i-1])[claim]
		if before <= 0 || math.IsInf(y, 1) {
			return c[i-1].Rate, true
		}
		share := math.Log(times/before) / math.Log(y/before)
		return c[i-1].Rate * math.Exp(share*math.Log(x.Rate/c[i-1].Rate)), true
	}
	if len(c) == 0 {
		return 0, false
	}
	return c[len(c)-1].Rate, false
}

func worstOf(s *served) []float64 { return s.Worst }

// capacityAt is the highest load at which all claims hold, if all takes slow times as long as
// the twin says, a factor for each claim. An engine that is slow by k does at a rate r what
// it would do at k·r with its limits divided by k: time is counted in other units.
func (c curve) capacityAt(claims int, slow []float64, of func(*served) []float64) (rate float64, claim int, known bool) {
	rate = math.Inf(1)
	for i := range claims {
		r, ok := c.crossingLoad(i, 1/slow[i], of)
		if r /= slow[i]; r < rate {
			rate, claim, known = r, i, ok
		}
	}
	return rate, claim, known
}

// logStep is by how much the loads next to a rate differ, as a logarithm; 0 beyond all loads.
func (c curve) logStep(rate float64) float64 {
	for i, x := range c {
		if i > 0 && x.Rate > rate && c[i-1].Rate > 0 {
			return math.Log(x.Rate / c[i-1].Rate)
		}
	}
	return 0
}

// blocks is into how many parts a window is cut for the error of a capacity.
const blocks = 10

// capacityNoise is the standard deviation of the logarithm of a capacity that comes of the requests
// that were drawn: the jackknife over blocks of them, each left out at all loads at once,
// for it is the same requests at each (Efron and Stein, Annals of Statistics 9, 1981).
func (c curve) capacityNoise(claims []slo.Claim) float64 {
	ones := slices.Repeat([]float64{1}, len(claims))
	var logs []float64
	for b := range blocks {
		without := map[*served][]float64{}
		for _, x := range c {
			for j := range claims {
				n := len(x.times[j])
				rest := slices.Concat(x.times[j][:n*b/blocks], x.times[j][n*(b+1)/blocks:])
				without[x] = append(without[x], rankOf(rest, claims[j].Share))
			}
		}
		r, _, _ := c.capacityAt(len(claims), ones, func(s *served) []float64 { return without[s] })
		if r <= 0 { // without these requests the lightest load violates a claim: nearly anything may be
			return math.Inf(1)
		}
		logs = append(logs, math.Log(r))
	}
	mean, sum := 0.0, 0.0
	for _, x := range logs {
		mean += x / blocks
	}
	for _, x := range logs {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum * (blocks - 1) / blocks)
}

// mostLoads is the number of loads that a search tries at most.
const mostLoads = 20

// searchLimits finds where the limits of a candidate are reached: it tries loads around a guess
// until one within and one beyond are near each other. The curve has the loads that were
// tried; where the lightest violates a claim no load meets it, and above the bound none is
// served. After an earlier look
// the guess is a good one, and with the curve of that the lightest load need not be tried again.
func (s *schedule) searchLimits(ctx context.Context, x *Candidate, claims []slo.Claim, guess, bound float64, e *effort) (c curve, err error) {
	alone := s.aloneTime(x)
	try := func(rate float64, e *effort) (float64, error) {
		if rate > bound { // no engine serves as much
			never := slices.Repeat([]float64{math.Inf(1)}, len(claims))
			c = c.withLoad(&served{Rate: rate, Grows: true, Worst: never, times: make([][]float64, len(claims))})
			return math.Inf(1), nil
		}
		y, err := s.serveLoad(ctx, x, claims, rate, e)
		if err != nil {
			return 0, err
		}
		c = c.withLoad(y)
		_, times := y.worstClaim()
		return times, nil
	}
	step := 2.0
	if e.close {
		step = e.within
	}
	if len(x.curve) > 0 {
		c = curve{x.curve[0]}
	} else if light, err := try(lightest/alone, s.lightEffort(e)); err != nil || light >= 1 {
		return c, err
	}
	lo, hi, atHi := c[0].Rate, 0.0, 0.0
	_, atLo := c[0].worstClaim()
	rate := max(guess, lo*step)
	for range mostLoads {
		times, err := try(rate, e)
		if err != nil {
			return c, err
		}
		if times < 1 {
			lo, atLo = rate, times
		} else {
			hi, atHi = rate, times
		}
		switch {
		case hi == 0:
			rate *= min(max(1.05, 0.9/atLo), step) // the nearer the limit, the smaller a step
			step = min(step*step, 2)
			continue
		case hi/lo <= e.within*1.001:
			if e.flanks {
				for _, share := range flanks {
					if _, err = try(share*lo, e); err != nil {
						break
					}
				}
			}
			return c, err
		case e.close && lo == c[0].Rate && rate > e.within*lo:
			rate = max(rate/step, e.within*lo)
			step = min(step*step, 2)
			continue
		}
		// Between the two where a straight line of logarithms passes 1, kept away from both.
		share := 0.5
		if atLo > 0 && !math.IsInf(atHi, 1) {
			share = math.Log(1/atLo) / math.Log(atHi/atLo)
		}
		rate = lo * math.Exp(min(max(share, 0.2), 0.8)*math.Log(hi/lo))
	}
	return c, nil
}

// serveLoad serves a load by a candidate. A warm-up lets the engine fill: half as many again as
// come while one is under way in a full engine.
func (s *schedule) serveLoad(ctx context.Context, x *Candidate, claims []slo.Claim, rate float64, e *effort) (*served, error) {
	d := x.Deployment
	if x.joined != nil {
		d = x.joined
	}
	if s.talks == nil {
		return s.serve(ctx, d, claims, rate, s.warmUp(x, rate), e)
	}
	y, err := s.serveConversations(ctx, d, claims, rate, x.conversationSlowdown(), e)
	if request, serves := s.requestTime(d, rate); err == nil && serves && !y.Grows && y.within && y.took > 0 {
		x.took = y.took / request
	}
	return y, err
}

// warmUp returns the number of requests that come before those that are judged.
func (s *schedule) warmUp(x *Candidate, rate float64) int {
	return max(int(1.5*rate*s.fullTime(x)), 20)
}

// flanks are loads below the capacity, as shares of it, that are looked at closely too: for
// an engine that is slower than the twin says, and for what users get of lighter loads.
var flanks = []float64{0.85, 0.5}

// lightest is the lightest load that is tried, in requests under way on average.
const lightest = 0.02

// aloneTime returns how long a request or a conversation takes that has the engine for itself, in
// seconds. full returns the same for an engine that is full.
func (s *schedule) aloneTime(x *Candidate) float64 {
	return s.totalDuration(x.Deployment.Residence(s.computedTokens(), int(s.output), 1).Seconds())
}

// computedTokens returns the number of tokens of a prompt that the engine computes. It is all of
// them, but for conversations only the new ones.
func (s *schedule) computedTokens() int {
	if s.talks != nil && s.own > 0 {
		return int(s.own)
	}
	return int(s.input)
}

func (s *schedule) fullTime(x *Candidate) float64 {
	_, run := x.Deployment.CountSequences(int(s.input + s.output))
	return s.totalDuration(x.Deployment.Residence(s.computedTokens(), int(s.output), max(run/2, 1)).Seconds())
}
