// Package estimate says what a plan is expected to send, to take and to cost,
// before anything is sent.
package estimate

import (
	"cmp"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/config"
)

// Estimate holds what a plan is expected to send and take. Zero means not known beforehand.
type Estimate struct {
	Requests      float64
	Input, Output float64       // tokens
	Probes        Probes        // besides
	Time          time.Duration // of the loads, without the last answers' ends
	AtMost        bool          // Time is a limit
	AtLeast       bool          // windows are as long as they have to be: all may be more
	Longest       time.Duration // with the longest windows that are chosen, 0 if there are none
	USD           float64
	NoPrice       string // why it is not known, "" if it is
}

// Probes holds what is sent besides the load, to find out what a target takes.
type Probes struct {
	Requests      int
	Input, Output float64 // tokens, those of a chat's template apart
}

// Parts holds the parts of an estimate.
type Parts struct {
	Ask  *config.Ask
	Load *config.Load
	Good *config.Good
	GPUs int // behind the target, 0 where that is not known

	Probes Probes

	// Residence is the time that a request takes alone, 0 where that is not known yet.
	Residence time.Duration
}

// expectedResidence stands for how long a request takes alone until it is measured, at the start
// of a run.
const expectedResidence = time.Second

// warmupTime is about how long that of a load is.
func (p Parts) warmupTime() time.Duration {
	return p.Load.WarmupFor(cmp.Or(p.Residence, expectedResidence))
}

// ForLoad is for one load.
func (p Parts) ForLoad(budget time.Duration) Estimate {
	l, warm := p.Load, p.warmupTime()
	rate := l.Rate * p.Ask.MeanTurns() // of requests, where conversations begin at a rate
	var e Estimate
	switch {
	case l.Rate > 0 && l.Requests > 0:
		e.Time = secondsToDuration(float64(l.Requests)/rate) + warm
		e.Requests = rate * e.Time.Seconds()
	case l.Rate > 0:
		e.Time = l.Duration + warm
		e.Requests = rate * e.Time.Seconds()
	case l.Exactly:
		e.Requests = float64(l.Requests)
	case l.Requests > 0:
		e.Requests = float64(l.Requests) * 1.1 // and some in the warm-up
	default:
		e.Time = l.Duration + warm
	}
	if !l.Until.IsNone() { // the window is doubled for as long as it may be
		e.AtMost = true
		e.Time = budget + warm
		e.Requests = rate * e.Time.Seconds()
	}
	n := l.Repeat
	if p.Ask.Cache == config.CacheBoth {
		n = 2
	}
	return p.fillPrice(e.repeatedBy(n))
}

// ForSweep is for the loads of a curve.
func (p Parts) ForSweep(s *config.Search) Estimate {
	l, closed, n := p.Load, s.IsClosedLoop(), s.Points
	var e Estimate
	window := l.Duration
	if window == config.AutoDuration && l.Requests == 0 {
		window, e.AtLeast = capacity.LeastWindow, true
	}
	if len(s.Loads) > 0 {
		n = len(s.Loads)
	}
	for _, x := range s.Loads {
		switch {
		case l.Requests > 0:
			e.Requests += float64(l.Requests)
		case !closed: // else it is not known
			e.Requests += x * p.Ask.MeanTurns() * (window + p.warmupTime()).Seconds()
		}
		if l.Requests > 0 && !closed {
			e.Time += secondsToDuration(float64(l.Requests)/(x*p.Ask.MeanTurns())) + p.warmupTime()
		}
	}
	if l.Requests == 0 {
		e.Time = time.Duration(n) * (window + p.warmupTime())
		if e.AtLeast {
			e.Longest = time.Duration(n) * (capacity.MostWindow + p.warmupTime())
		}
	}
	e = e.repeatedBy(l.Repeat)
	if b := s.Budget; b > 0 && (e.Time == 0 || e.Time > b || e.AtLeast) {
		if e.Time > b {
			e.Requests *= b.Seconds() / e.Time.Seconds()
		}
		e.AtMost, e.AtLeast, e.Time, e.Longest = true, false, b, 0
	}
	return p.fillPrice(e)
}

// ForSearch is for a search, which takes as long as it may.
func (p Parts) ForSearch(limit time.Duration) Estimate {
	return p.fillPrice(Estimate{Time: limit, AtMost: true})
}

// Times is for so many launches.
func (e Estimate) Times(launches int) Estimate {
	e = e.repeatedBy(launches)
	n := float64(launches)
	e.Input, e.Output, e.USD = e.Input*n, e.Output*n, e.USD*n
	e.Probes = Probes{e.Probes.Requests * launches, e.Probes.Input * n, e.Probes.Output * n}
	return e
}

// repeatedBy is for so many repeats, before their tokens are counted.
func (e Estimate) repeatedBy(n int) Estimate {
	e.Requests *= float64(n)
	e.Time *= time.Duration(n)
	e.Longest *= time.Duration(n)
	return e
}

// fillPrice fills in the tokens and what all costs.
func (p Parts) fillPrice(e Estimate) Estimate {
	in, out := p.Ask.MeanTokens()
	e.Input, e.Output = e.Requests*in, e.Requests*out
	e.Probes = p.Probes
	price := p.Good.Price()
	byToken, byTime := !price.Tokens.IsUnknown(), !price.GPU.IsUnknown()
	switch {
	case e.AtLeast && (byToken || byTime):
		e.NoPrice = "how long the windows have to be is found out at the start; bound them with --duration"
	case byToken && e.Requests == 0:
		e.NoPrice = "how many requests users make in a time is not known beforehand; bound it with --requests"
	case byToken && (e.Input == 0 || e.Output == 0 && !p.Ask.Pooling):
		e.NoPrice = "how many tokens a file's requests take is not known beforehand"
	case byTime && p.GPUs == 0:
		e.NoPrice = "how many GPUs the target has is not known: give --gpus"
	case byTime && e.Time == 0 && e.AtMost:
		e.NoPrice = "how long a capacity takes is not known beforehand; bound it with --budget"
	case byTime && e.Time == 0:
		e.NoPrice = "how long users take for their requests is not known beforehand; bound it with --duration"
	case !byToken && !byTime:
		e.NoPrice = "no price was given"
	default:
		e.USD = price.OfTokens(e.Input+e.Probes.Input, e.Output+e.Probes.Output) + price.OfTime(p.GPUs, e.Time.Seconds())
	}
	return e
}

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
