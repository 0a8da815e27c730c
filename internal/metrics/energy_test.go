package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/cost"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/telemetry"
)

// gpuSample is what a GPU exporter told.
func gpuSample(seconds float64, signal telemetry.Signal, x float64) record.Sample {
	return record.Sample{T: int64(seconds * 1e9), Source: "gpu", Name: string(signal), Value: x}
}

// drew is the energy of a window from 10 s on by samples.
func drew(seconds float64, samples []record.Sample) *result.Energy {
	f := NewFold(Setup{T0: 10e9, T1: int64((10 + seconds) * 1e9), Stamps: "kernel"})
	f.Add(record.Frame{Samples: samples})
	p := f.Point()
	return p.Energy
}

// Of power that changes as fast or as slowly as it likes the energy lies within its error
// as often as is claimed. Truth is a process with a memory (Ornstein and Uhlenbeck), laid
// under a slow course, on a grid of 20 ms.
func TestEnergyBySamplesCoverage(t *testing.T) {
	const trials, seconds, grid = 400, 60., .02
	rng := rand.New(rand.NewPCG(1, 2))
	for _, memory := range []float64{.05, 1, 5} { // seconds
		held, width := 0, 0.
		for range trials {
			keep := math.Exp(-grid / memory)
			x, truth := rng.NormFloat64(), 0.
			var samples []record.Sample
			offset := int(rng.Float64() / grid) // when the exporter is asked
			for i := range int((10 + seconds) / grid) {
				at := float64(i) * grid
				x = keep*x + math.Sqrt(1-keep*keep)*rng.NormFloat64()
				w := 500 + 80*x + 60*math.Sin(at/20)
				if at >= 10 {
					truth += w * grid
				}
				if i%int(1/grid) == offset%int(1/grid) {
					samples = append(samples, gpuSample(at, telemetry.GPUPower, w))
				}
			}
			e := drew(seconds, samples)
			if e.From != result.PowerSamples || !e.Why.IsNone() {
				t.Fatalf("%+v", e)
			}
			if math.Abs(e.Joules-truth) <= e.Error {
				held++
			}
			width += e.Error / e.Joules / trials
		}
		t.Logf("memory of %g s: %d of %d hold, ±%.2g %% on average", memory, held, trials, 100*width)
		if held < trials*93/100 {
			t.Errorf("memory of %g s: the error holds in %d of %d", memory, held, trials)
		}
	}
}

// A counter that is collected now and then bounds the energy: no reading of it is of the
// time at which it was asked for.
func TestEnergyByCounterBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		collect := rapid.Float64Range(.1, 12).Draw(t, "collected every, s")
		phase := rapid.Float64Range(0, 1).Draw(t, "phase") * collect
		low, high := rapid.Float64Range(50, 400).Draw(t, "power before"), rapid.Float64Range(50, 700).Draw(t, "power behind")
		turn := rapid.Float64Range(0, 80).Draw(t, "it changes at, s")
		joules := func(s float64) float64 { return 1e6 + low*min(s, turn) + high*max(0, s-turn) }
		var samples []record.Sample
		for s := .3; s < 100; s++ {
			at := phase + math.Floor((s-phase)/collect)*collect // when it was collected last
			samples = append(samples, gpuSample(s, telemetry.GPUEnergy, joules(at)))
		}
		e := drew(60, samples)
		if e == nil {
			t.Skip("nothing known at an end")
		}
		if truth := joules(70) - joules(10); math.Abs(e.Joules-truth) > e.Error+1e-6 {
			t.Errorf("%g ± %g J, and it was %g", e.Joules, e.Error, truth)
		}
	})
}

// What stands by token is the power by the rate, and what it is not known of has a
// reason.
func TestEnergyByToken(t *testing.T) {
	power := func(n int, also ...record.Sample) (samples []record.Sample) {
		samples = append(samples, gpuSample(0, telemetry.GPUPower, 90))
		for i := range n {
			samples = append(samples, gpuSample(10.5+float64(i), telemetry.GPUPower, 400+float64(i%3)))
		}
		return append(samples, also...)
	}
	every := func(seconds float64) (samples []record.Sample) {
		for s := .5; s < 30; s++ {
			samples = append(samples, gpuSample(s, telemetry.GPUPower, 300+100*math.Floor(s/seconds)))
		}
		return samples
	}
	owned := cost.Price{GPU: cost.GPU{Owned: cost.Owned{Purchase: 35064, Years: 4, Watts: 1000, KWh: .1}}}
	for name, c := range map[string]struct {
		gpus    int
		samples []record.Sample
		why     result.Reason
		watts   float64 // of each GPU, that electricity is paid for
	}{
		"samples":                {2, power(10, gpuSample(11, telemetry.GPUs, 2)), result.Reason{}, 200.45},
		"how many is not known":  {2, power(10), result.Reason{}, 1000},
		"others' GPUs":           {2, power(10, gpuSample(11, telemetry.GPUs, 8)), result.Reason{Code: result.OtherGPUCount, N: 8, Of: 2}, 1000},
		"too few":                {2, power(4), result.Reason{Code: result.PowerRarelyRead, N: 4}, 1000},
		"collected every 15 s":   {2, every(15), result.Reason{Code: result.PowerRarelyRead, N: 2}, 1000},
		"every value another's":  {2, power(10, gpuSample(12.2, telemetry.GPUPower, 9000)), result.Reason{Code: result.EnergyInexact}, 1000},
		"counter, once in a run": {2, []record.Sample{gpuSample(0, telemetry.GPUEnergy, 0), gpuSample(40, telemetry.GPUEnergy, 9000)}, result.Reason{Code: result.EnergyInexact}, 1000},
	} {
		f := NewFold(Setup{T0: 10e9, T1: 20e9, GPUs: c.gpus, Price: owned, Stamps: "kernel"})
		for i := range int64(20) {
			stamps := []int64{10_000 + 400*i, 10_100 + 400*i, 10_200 + 400*i}
			f.Add(answer{id: i, due: 10_000 + 400*i, stamps: stamps, usage: 3, first: 1}.frame())
		}
		f.Add(record.Frame{Samples: c.samples})
		p := f.Point()
		e := p.Energy
		if e == nil || e.Why.Code != c.why.Code || e.Why.N != c.why.N || e.Why.Of != c.why.Of {
			t.Errorf("%s: %+v", name, e)
			continue
		}
		if !c.why.IsNone() && (e.JoulesPerOutputToken != nil || e.TokensPerSPerMW != nil) {
			t.Errorf("%s: a figure by token", name)
		}
		if c.why.IsNone() {
			near(t, name, e.JoulesPerOutputToken, e.Watts / *p.Throughput.OutputTokensPerS)
			near(t, name, e.TokensPerSPerMW, 1e6 / *e.JoulesPerOutputToken)
			near(t, name+": before the load", e.IdleWatts, 90)
		}
		if x := p.Cost.Electricity; x == nil || math.Abs(x.WattsPerGPU-c.watts) > 1e-9 || x.Measured != (c.watts != 1000) {
			t.Errorf("%s: electricity %+v", name, x)
		}
		near(t, name+": price of an hour", p.Cost.USDPerGPUHour, 1+c.watts*1e-4)
	}
	if e := drew(10, nil); e != nil {
		t.Errorf("nobody told: %+v", e)
	}
}
