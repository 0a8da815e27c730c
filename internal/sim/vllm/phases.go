package vllm

import "math"

// phases are the machine's slow and fast times: an Ornstein-Uhlenbeck process
// in the engine's time, whose exponential is a factor on the duration of steps.
// It is constant for a grain of time, so that it depends on the clock and not
// on how many steps there are: steps of one grain share a value, and from one
// grain to the next it is the process' exact discretisation, an AR(1)
// (Gillespie, Phys. Rev. E 54, 2084, 1996).
type phases struct {
	sigma float64 // of the logarithm
	grain int64   // ns
	begun bool
	at    int64 // the grain that x is of
	x     float64
}

// perSlowTime is the number of grains in a correlation time. Within the grain the correlation is
// off by less than 1 %.
const perSlowTime = 32

// slowFactor is the factor on steps that start at a time, which never goes
// back. Its mean over time is 1.
func (e *Engine) slowFactor(at int64) float64 {
	s := &e.slow
	if g := at / s.grain; !s.begun || g != s.at {
		rho := 0.0
		if s.begun {
			rho = math.Exp(-float64(g-s.at) / perSlowTime)
		}
		s.x = rho*s.x + s.sigma*math.Sqrt(1-rho*rho)*e.Normal(uint64(g), 1<<32, 1<<33)
		s.at, s.begun = g, true
	}
	return math.Exp(s.x - s.sigma*s.sigma/2)
}
