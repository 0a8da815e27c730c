package arrival

import (
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// mmpp is a Poisson process whose rate is that of a state. States take turns and last
// exponential times: a Markov-modulated Poisson process (Fischer and Meier-Hellstern, The
// MMPP cookbook, Performance Evaluation 18, 1993).
type mmpp struct {
	rates []float64 // over the mean one
	times []float64 // mean seconds
}

// mostStates bounds the states of one.
const mostStates = 8

func parseOnOff(a *arguments) law {
	times := []float64{a.secondsAt(0, "time of a burst"), a.secondsAt(1, "time between bursts")}
	return newMMPP([]float64{1, 0}, times)
}

func parseMMPP(a *arguments) law {
	var rates, times []float64
	for _, arg := range a.list {
		rate, span, ok := strings.Cut(arg, ":")
		if !ok {
			a.fail("%.20q is not RATE:TIME", arg)
			return nil
		}
		rates = append(rates, a.value(strings.TrimSpace(rate), "rate of a state", 0, 1e6))
		times = append(times, a.parseSpan(strings.TrimSpace(span), "time of a state"))
	}
	if slices.Max(rates) == 0 {
		a.fail("no state has a rate above 0")
	}
	return newMMPP(rates, times)
}

// newMMPP divides rates by their mean over the time.
func newMMPP(rates, times []float64) mmpp {
	var sum, total float64
	for i, r := range rates {
		sum, total = sum+r*times[i], total+times[i]
	}
	l := mmpp{times: times}
	for _, r := range rates {
		l.rates = append(l.rates, r*total/sum)
	}
	return l
}

// cycleSeconds is the mean time in which all states have their turn.
func (l mmpp) cycleSeconds() (sum float64) {
	for _, t := range l.times {
		sum += t
	}
	return sum
}

// Streams of a process' seed beyond its gaps.
const (
	streamStates = 1 + iota
	streamPhase
	streamParts
	streamSpread
)

func (l mmpp) process(rate float64, start uint64, _ int64, _ bool) (Process, error) {
	if changes := float64(len(l.times)) / l.cycleSeconds() / rate; changes > 1e4 {
		return nil, say.Errorf("at %s requests per second the states change %.0f times between two requests: this is a Poisson process", say.Exact(rate), changes).WithHint("let states last longer, or use poisson")
	}
	p := &modulated{law: l, mean: 1e9 / rate, gaps: seed.Rand(seed.Mix(start)), states: seed.Rand(seed.At(start, streamStates, 0))}
	// Any time falls into a state by the share of its time, and what is left of it is
	// exponential too.
	u := seed.Float(p.states.Uint64()) * l.cycleSeconds()
	for u > l.times[p.state] && p.state < len(l.times)-1 {
		u -= l.times[p.state]
		p.state++
	}
	p.left = p.drawSojourn()
	return p, nil
}

type modulated struct {
	law          mmpp
	mean         float64 // gap in nanoseconds
	gaps, states seed.Rand
	state        int
	left         float64 // nanoseconds of the state
	at           instant
}

// drawExponential is −ln U; the conversion keeps it from being fused.
func drawExponential(r *seed.Rand) float64 { return float64(-math.Log(seed.Float(r.Uint64()))) }

func (p *modulated) drawSojourn() float64 {
	return float64(drawExponential(&p.states) * p.law.times[p.state] * 1e9)
}

func (p *modulated) Next() int64 {
	need := drawExponential(&p.gaps)
	gap := 0.0
	for {
		r := p.law.rates[p.state] / p.mean
		if has := float64(r * p.left); has >= need {
			took := need / r
			p.left -= took
			return p.at.addGap(gap + took)
		} else {
			need -= has
		}
		gap += p.left
		p.state = (p.state + 1) % len(p.law.times)
		p.left = p.drawSojourn()
	}
}

func (l mmpp) shape() Expected {
	e := Expected{Cycle: l.cycleSeconds()}
	for i, r := range l.rates {
		e.Swing += float64((r-1)*(r-1)) * l.times[i] / e.Cycle
	}
	return e
}

func (l mmpp) cv(rate float64) float64 { return cvOf(l, rate) }

// generatorMatrix is Q and the rates, of states that take turns.
func (l mmpp) generatorMatrix(rate float64) (q matrix, rates []float64, share []float64) {
	n := len(l.times)
	q = newMatrix(n)
	for i, t := range l.times {
		q[i][i] -= 1 / t
		q[i][(i+1)%n] += 1 / t
		rates, share = append(rates, rate*l.rates[i]), append(share, t/l.cycleSeconds())
	}
	return q, rates, share
}

// none is π·exp((Q−Λ)x)·1.
func (l mmpp) none(rate, x float64) float64 {
	q, rates, share := l.generatorMatrix(rate)
	for i := range q {
		q[i][i] -= rates[i]
	}
	e := q.times(x).exp()
	sum := 0.0
	for i := range e {
		for k := range e {
			sum += share[i] * e[i][k]
		}
	}
	return min(max(sum, 0), 1)
}

// variance is λx + 2·∫(x−u)·C(u)du with C the covariance of the rate over time,
// (πΛ)·exp(Qu)·(Λ−λ)1: the double integral is a block of the exponential of
// [[Q,I,0],[0,0,I],[0,0,0]] (Van Loan, IEEE Transactions on Automatic Control 23, 1978).
func (l mmpp) variance(rate, x float64) float64 {
	q, rates, share := l.generatorMatrix(rate)
	n := len(q)
	m := newMatrix(3 * n)
	for i := range n {
		copy(m[i], q[i])
		m[i][n+i], m[n+i][2*n+i] = 1, 1
	}
	e := m.times(x).exp()
	sum := 0.0
	for i := range n {
		for k := range n {
			sum += share[i] * (rates[i] - rate) * e[i][2*n+k] * (rates[k] - rate)
		}
	}
	return rate*x + 2*sum
}

// matrix is square.
type matrix [][]float64

func newMatrix(n int) matrix {
	m := make(matrix, n)
	all := make([]float64, n*n)
	for i := range m {
		m[i] = all[i*n : (i+1)*n]
	}
	return m
}

func (m matrix) times(x float64) matrix {
	out := newMatrix(len(m))
	for i := range m {
		for k := range m {
			out[i][k] = m[i][k] * x
		}
	}
	return out
}

func (m matrix) product(b matrix) matrix {
	out := newMatrix(len(m))
	for i := range m {
		for j, x := range m[i] {
			if x == 0 {
				continue
			}
			for k, y := range b[j] {
				out[i][k] += float64(x * y)
			}
		}
	}
	return out
}

// exp is the exponential, by halving and a series of 18 terms.
func (m matrix) exp() matrix {
	norm := 0.0
	for i := range m {
		sum := 0.0
		for _, x := range m[i] {
			sum += math.Abs(x)
		}
		norm = max(norm, sum)
	}
	halvings := 0
	for ; norm > 0.5 && halvings < 60; norm /= 2 {
		halvings++
	}
	small := m.times(math.Ldexp(1, -halvings))
	sum, term := newMatrix(len(m)), newMatrix(len(m))
	for i := range m {
		sum[i][i], term[i][i] = 1, 1
	}
	for k := 1.0; k <= 18; k++ {
		term = term.product(small).times(1 / k)
		for i := range m {
			for j := range m {
				sum[i][j] += term[i][j]
			}
		}
	}
	for range halvings {
		sum = sum.product(sum)
	}
	return sum
}
