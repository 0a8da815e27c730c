package sim

import "math"

// Chance draws numbers that depend on a seed and their arguments only.
type Chance uint64

// Uniform is a number in [0, 1).
func (c Chance) Uniform(a, b uint64) float64 {
	return float64(Mix(Mix(Mix(uint64(c))^a)^b)>>11) / (1 << 53)
}

// Normal is a standard normal number (Box and Muller, 1958).
func (c Chance) Normal(n, a, b uint64) float64 {
	return math.Sqrt(-2*math.Log(c.Uniform(n, a)+0x1p-54)) * math.Cos(2*math.Pi*c.Uniform(n, b))
}

// Stepper holds what engines of hardware share: the chances in their steps, and who
// looks at these. It implements a part of [Model].
type Stepper struct {
	Chance
	Watched func(StepInfo) // nil: by nobody
	IsBrief bool
	sigma   float64 // of the logarithm of a step's jitter
	pace    func(start int64) float64
}

// NewStepper gives one whose steps have a lognormal factor of a coefficient of variation.
func NewStepper(seed uint64, jitter float64) Stepper {
	return Stepper{Chance: Chance(seed), sigma: math.Sqrt(math.Log1p(jitter * jitter))}
}

// Watch implements [Observable].
func (s *Stepper) Watch(f func(StepInfo)) { s.Watched = f }

// Pace implements [Model].
func (s *Stepper) Pace(f func(start int64) float64) { s.pace = f }

// Brief implements [Model].
func (s *Stepper) Brief() { s.IsBrief = true }

// StepDuration returns the random duration of a step that starts at a given time, in nanoseconds. d
// is the duration by its cost, slow a factor on it. The result is at least 1.
func (s *Stepper) StepDuration(d, slow float64, number, start int64) int64 {
	if s.sigma > 0 {
		d *= math.Exp(s.sigma*s.Normal(uint64(number), 1, 2) - s.sigma*s.sigma/2)
	}
	d *= slow
	if s.pace != nil {
		d *= s.pace(start)
	}
	return max(int64(d), 1)
}
