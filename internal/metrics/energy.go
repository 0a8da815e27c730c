package metrics

import (
	"math"

	"pitot/internal/cost"
	"pitot/internal/results/result"
	"pitot/internal/stats"
	"pitot/internal/telemetry"
)

const (
	// leastReadings of power that differ are needed for its mean: an exporter that collects
	// every half minute repeats what it has, which says nothing of how power went.
	leastReadings = 5
	// mostEnergyError is the share of the energy up to which its error may go for
	// a figure by token.
	mostEnergyError = .2
)

// gpuEnergy returns the energy that the GPUs drew over the window. It uses their own counter where
// they have one, else samples of their power. It returns nil where neither was reported.
func (f *Fold) gpuEnergy(p *result.Point) *result.Energy {
	s := &f.server
	e := energyCounted(s)
	if e == nil {
		e = energySampled(s)
	}
	if e == nil {
		return nil
	}
	window := s.samples.WindowOf(s.t0, s.t1)
	if n, ok := window.Fact(telemetry.GPUs); ok {
		gpus := int(n)
		e.GPUs = &gpus
	}
	// What is told at the time 0 of a load was asked before it.
	if before := s.samples.SamplesBetween(telemetry.GPUPower, 0, 1); len(before) > 0 && s.t0 > 0 {
		e.IdleWatts = &before[0].Value
	}
	switch {
	case !e.Why.IsNone():
	case f.setup.GPUs > 0 && e.GPUs != nil && *e.GPUs != f.setup.GPUs:
		e.Why = result.Reason{Code: result.OtherGPUCount, N: float64(*e.GPUs), Of: float64(f.setup.GPUs)}
	case !(e.Joules > 0):
		e.Why = result.Reason{Code: result.EnergyUnknown}
	case e.Error > mostEnergyError*e.Joules:
		e.Why = result.Reason{Code: result.EnergyInexact, Share: e.Error / e.Joules}
	}
	if !e.Why.IsNone() {
		return e
	}
	if x := p.Throughput.OutputTokensPerS; x != nil && *x > 0 {
		each, per := cost.JoulesPer(e.Watts, *x), cost.TokensPerMegawatt(e.Watts, *x)
		e.JoulesPerOutputToken, e.TokensPerSPerMW = &each, &per
	}
	if g := p.Goodput; g != nil && g.OutputTokensPerS != nil && *g.OutputTokensPerS > 0 {
		each := cost.JoulesPer(e.Watts, *g.OutputTokensPerS)
		e.JoulesPerGoodToken = &each
	}
	return e
}

// energyCounted is the energy by the GPUs' counter. It only grows, so that the energy at an end
// of the window lies between the readings around it: what it may be off by at most is
// known.
func energyCounted(s *server) *result.Energy {
	window := s.samples.WindowOf(s.t0, s.t1)
	joules, ok := window.Growth(telemetry.GPUEnergy)
	if !ok || window.Seconds() <= 0 {
		return nil
	}
	least, most, n := s.samples.GrowthBounds(telemetry.GPUEnergy, s.t0, s.t1)
	return &result.Energy{From: result.EnergyCounter, Joules: joules, Error: max(joules-least, most-joules), Watts: joules / window.Seconds(), Samples: n}
}

// energySampled is the energy by samples of power: the mean of the line through them, over the
// window. Its error is that of a mean of systematic samples by the differences of
// neighbours,
//
//	s² = Σ (xᵢ₊₁ − xᵢ)² ÷ 2n(n−1),
//
// which takes a slow course for what it is and no error (Wolter, Introduction to Variance
// Estimation, 1985, section 7.2), by Student's t with two thirds of the degrees of freedom,
// the efficiency of that estimate. What the sensor itself is off by is not in it.
func energySampled(s *server) *result.Energy {
	seconds := float64(s.t1-s.t0) / 1e9
	points := s.samples.SamplesBetween(telemetry.GPUPower, max(s.t0, 1), s.t1)
	if len(points) == 0 || seconds <= 0 {
		return nil
	}
	readings := points[:0:0]
	for _, x := range points { // an exporter repeats what it has until it collects again
		if n := len(readings); n == 0 || x.Value != readings[n-1].Value {
			readings = append(readings, x)
		}
	}
	e := &result.Energy{From: result.PowerSamples, Watts: meanOver(points, s.t0, s.t1), Samples: len(readings)}
	e.Joules = e.Watts * seconds
	n := float64(len(readings))
	if len(readings) < leastReadings {
		e.Why = result.Reason{Code: result.PowerRarelyRead, N: float64(len(readings))}
		return e
	}
	squares := 0.
	for i := 1; i < len(readings); i++ {
		d := readings[i].Value - readings[i-1].Value
		squares += d * d
	}
	e.Error = stats.StudentQuantile(.975, 2*(n-1)/3) * math.Sqrt(squares/(2*n*(n-1))) * seconds
	return e
}

// meanOver is the mean of the line through samples over [t0, t1), which goes on level to
// both ends.
func meanOver(points []telemetry.Sample, t0, t1 int64) float64 {
	last := len(points) - 1
	area := points[0].Value*float64(points[0].T-t0) + points[last].Value*float64(t1-points[last].T)
	for i := range last {
		a, b := points[i], points[i+1]
		area += (a.Value + b.Value) / 2 * float64(b.T-a.T)
	}
	return area / float64(t1-t0)
}

// wattsOfEach is the mean power of one GPU of the target, nil where it was not measured of
// just these.
func wattsOfEach(e *result.Energy, gpus int) *float64 {
	if e == nil || !e.Why.IsNone() || gpus <= 0 || e.GPUs == nil || *e.GPUs != gpus {
		return nil
	}
	x := e.Watts / float64(gpus)
	return &x
}
