package arrival

import (
	"math"

	"pitot/internal/stats"
	"pitot/internal/workload/seed"
)

// Laws whose gaps are independent.

type poissonLaw struct{}

func parsePoisson(*arguments) law { return poissonLaw{} }

func (poissonLaw) process(rate float64, seed uint64, _ int64, _ bool) (Process, error) {
	return NewPoisson(rate, seed)
}
func (poissonLaw) shape() Expected                  { return Expected{} }
func (poissonLaw) cv(float64) float64               { return 1 }
func (poissonLaw) none(rate, x float64) float64     { return math.Exp(-rate * x) }
func (poissonLaw) variance(rate, x float64) float64 { return rate * x }

type constantLaw struct{}

func parseConstant(*arguments) law { return constantLaw{} }

// process as a part of a sum begins at a time of its own.
func (constantLaw) process(rate float64, start uint64, _ int64, stationary bool) (Process, error) {
	p, err := NewConstant(rate)
	if err == nil && stationary {
		p = &shifted{p, int64(seed.Float(seed.Mix(start)) * 1e9 / rate)}
	}
	return p, err
}
func (constantLaw) shape() Expected              { return Expected{} }
func (constantLaw) cv(float64) float64           { return 0 }
func (constantLaw) none(rate, x float64) float64 { return max(0, 1-rate*x) }

// variance: with λx = k + f, k or k+1 come, the latter with probability f.
func (constantLaw) variance(rate, x float64) float64 {
	_, f := math.Modf(rate * x)
	return f * (1 - f)
}

// shifted comes later.
type shifted struct {
	Process
	by int64
}

func (s *shifted) Next() int64 {
	if due := s.Process.Next(); due < math.MaxInt64-s.by {
		return due + s.by
	}
	return math.MaxInt64
}

type gammaLaw struct{ k float64 }

func parseGamma(a *arguments) law { return gammaLaw{a.numberAt(0, "shape", MinShape, MaxShape)} }

func (l gammaLaw) process(rate float64, start uint64, _ int64, stationary bool) (Process, error) {
	p, err := NewGamma(rate, l.k, start)
	if g, ok := p.(*gamma); ok && stationary {
		// The gap that any time falls into is longer than others, a gamma variable of
		// shape k+1, and what is left of it any part.
		first := gamma{draws: seed.Rand(seed.At(start, streamPhase, 0)), shape: l.k + 1}
		g.at.addGap(first.draw() * g.scale * first.uniform())
		return &begun{g, g.at.whole, true}, nil
	}
	return p, err
}

// begun is a process whose first due time is known.
type begun struct {
	Process
	first int64
	begin bool
}

func (b *begun) Next() int64 {
	if b.begin {
		b.begin = false
		return b.first
	}
	return b.Process.Next()
}

func (gammaLaw) shape() Expected      { return Expected{} }
func (l gammaLaw) cv(float64) float64 { return 1 / math.Sqrt(l.k) }

// none is the integral of the gaps' survival beyond x: λ·∫(1−F).
func (l gammaLaw) none(rate, x float64) float64 {
	k, y := l.k, x*rate*l.k
	return max(0, 1-stats.IncompleteGamma(k+1, y)-float64(x*rate)*(1-stats.IncompleteGamma(k, y)))
}

// asymptotic is from how many expected requests on only the leading terms of a variance
// are taken.
const asymptotic = 20_000

// variance is that of a stationary renewal process: λx + 2λ·∫M − (λx)², with M(u) = ΣFₙ(u)
// the expected renewals after one (Cox, Renewal Theory, 1962, section 4.5).
func (l gammaLaw) variance(rate, x float64) float64 {
	mean := rate * x
	cv2 := 1 / l.k
	if mean > asymptotic {
		return cv2 * mean
	}
	k, y := l.k, x*rate*l.k
	sum := 0.0
	for n := 1.0; ; n++ {
		// ∫₀ˣFₙ = x·P(nk, y) − nk·θ·P(nk+1, y), here times λ.
		p := stats.IncompleteGamma(n*k, y)
		term := mean*p - n*stats.IncompleteGamma(n*k+1, y)
		sum += term
		if term < 1e-12 && n*k > y {
			break
		}
	}
	return mean + 2*sum - mean*mean
}
