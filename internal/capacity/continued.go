package capacity

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// A search goes on with what an earlier one measured of the same. On the same launch of
// the server its windows are as good as new ones. After a restart they are of another
// server: launches of one configuration differ, by 3 % and more, which no number of
// requests to one of them tells. So each launch is fitted by itself, and the capacity is
// that of launches like these: the mean over them, as sure as their spread allows.

const (
	// launchSpread is about how far launches of one server are apart, as a standard
	// deviation of the logarithm, and launchKnown how many launches that knowledge is worth:
	// two or three of them tell little of their spread.
	launchSpread, launchKnown = 0.035, 3
	// sharedError is the part of a fit's variance that is the same on all launches.
	sharedError = 0.5
	// launchTells is the standard error of a launch's capacity, in its logarithm, above which
	// it has no part in the mean over launches, where others tell more.
	launchTells = 0.25
)

// EarlierOf gives the windows of a run's search, and of those that it went on with, as
// far as they are evidence; launches is how many of the server they are of. Programs
// before it kept no blocks of them, so that it is not known how their violations cluster:
// they are left out.
func EarlierOf(run *result.Run) (list []Step, launches int) {
	c := run.Capacity
	if c == nil {
		return nil, 0
	}
	for i := range c.Trail {
		p := &c.Trail[i]
		s := Step{Probe: Probe{Load: p.Load, Requests: p.Requests, Stage: p.Stage, Blocks: Blocks, Counted: p.Counted}, Launch: p.Launch, Earlier: true}
		s.Seen = Seen{Load: p.Load, N: p.Requests, Violations: p.Violations, Due: p.Due, Stability: p.Stability}
		if p.Excluded || p.Seen == nil || len(p.Seen.Blocks) != len(p.Violations) {
			continue
		}
		s.Seen.Blocks, s.Seen.Errors, s.Seen.Residence = p.Seen.Blocks, p.Seen.Errors, p.Seen.ResidenceMS/1e3
		s.Seen.Cluster = p.Seen.Cluster
		launches = max(launches, s.Launch+1)
		list = append(list, s)
	}
	return list, launches
}

// CountsOf returns what a later search needs of a window.
func CountsOf(s *Seen) *result.Counts {
	return &result.Counts{Blocks: s.Blocks, Errors: s.Errors, ResidenceMS: s.Residence * 1e3, Cluster: s.Cluster}
}

// takeBracket takes the bracket from an estimate that earlier searches lead to. Without one it
// is sought anew: a single window of theirs is beyond a limit by chance now and then, and a
// fit that says nothing of how sure it is may be far off.
func (f *search) takeBracket() bool {
	at, _ := f.earlierEstimate()
	if at == 0 {
		return false
	}
	f.lo, f.hi = 0, math.Inf(1)
	for _, s := range f.cap.Trail {
		if s.Stage == Light && s.Seen.Residence > 0 {
			f.residence = s.Seen.Residence
		}
		switch hot := f.isFarBeyond(&s.Seen); {
		case !s.Seen.IsEvidence():
		case hot && s.Load > at:
			f.hi = min(f.hi, s.Load)
		case !hot && s.Load < at:
			f.lo = max(f.lo, s.Load)
		}
	}
	if f.lo == 0 || math.IsInf(f.hi, 1) {
		f.lo, f.hi = 0, 0
		return false
	}
	return true
}

// earlierEstimate is the capacity by what earlier searches measured, 0 where there is no
// interval of it. own says that it is of this launch.
func (f *search) earlierEstimate() (at float64, own bool) {
	if f.begun == 0 {
		return 0, false
	}
	now := f.launch
	defer func() { f.launch = now }()
	for f.launch = now; f.launch >= 0; f.launch-- {
		lowest := math.Inf(1)
		for _, claim := range f.cfg.claimIndices() {
			v := f.crossingOf(claim, Centre, Main, Verifying)
			if v.Reason == "" {
				lowest = min(lowest, v.Load)
			}
		}
		if !math.IsInf(lowest, 1) {
			return lowest, f.launch == now
		}
	}
	return 0, false
}

// lowestFitted is the lowest load of this launch that was put for a fit.
func (f *search) lowestFitted() float64 {
	lowest := math.Inf(1)
	for i := range f.cap.Trail {
		if s := &f.cap.Trail[i]; s.Launch == f.launch && (s.Stage == Centre || s.Stage == Main) && s.Seen.IsEvidence() {
			lowest = min(lowest, s.Load)
		}
	}
	return lowest
}

// acrossLaunches is where a claim stops to hold on launches like those seen, by each that
// tells: the mean of their logarithms. own is what this launch tells.
//
// The variance of a launch's value about the mean is that among them, pooled with what is
// known beforehand as if launchKnown more had shown it (a scaled inverse χ² prior); t has
// as many degrees of freedom as both together. One launch that is this one is as it is.
func (f *search) acrossLaunches(claim int, own stats.Inverse, stages ...string) (stats.Inverse, int) {
	var values, variances []float64
	tells := func(v stats.Inverse) {
		if v.Reason == "" && v.SE <= launchTells {
			values, variances = append(values, math.Log(v.Load)), append(variances, v.SE*v.SE)
		}
	}
	now := f.launch
	for f.launch = range now {
		tells(f.crossingOf(claim, stages...))
	}
	f.launch = now
	if len(values) == 0 {
		return own, 1
	}
	tells(own)
	n := float64(len(values))
	mean, sd := values[0], 0.
	if n > 1 {
		mean, sd = stats.Moments(values)
	}
	within, _ := stats.Moments(variances)
	each := (launchKnown*(launchSpread*launchSpread+within) + (n-1)*sd*sd) / (launchKnown + n - 1)
	// Part of what a fit is off by is the curve's, and the same on every launch.
	v := stats.Inverse{Load: math.Exp(mean), SE: math.Sqrt(each/n + within*sharedError*(1-1/n))}
	alpha := (1 - f.cfg.Level) / 2 / float64(len(f.cfg.claimIndices()))
	t := func(level float64) float64 { return stats.StudentQuantile(level, launchKnown+n-1) * v.SE }
	wide, low := t((1+f.cfg.Level)/2), t(1-alpha)
	v.Interval = stats.Interval{Lo: v.Load * math.Exp(-wide), Hi: v.Load * math.Exp(wide)}
	v.Lower = v.Load * math.Exp(-low)
	return v, len(values)
}

// coverageText returns what an interval over that number of launches covers.
func coverageText(launches int) string {
	if launches == 1 {
		return ThisLaunch
	}
	return fmt.Sprintf("the mean of launches like these %d", launches)
}

// quoteEarlier quotes what an earlier search verified on this launch, where this one verified
// nothing and nothing that is known by now speaks against it.
func (f *search) quoteEarlier() bool {
	v := f.cfg.Held
	if !v.Passed || f.cap.Estimate > 0 && v.Load > f.cap.Lower {
		return false
	}
	f.cap.Quote, f.cap.Verified = v.Load, v
	return true
}

// ofLaunch are the steps of the launch that is measured.
func (f *search) ofLaunch() []Step {
	if f.launch == 0 {
		return f.cap.Trail
	}
	return slices.DeleteFunc(slices.Clone(f.cap.Trail), func(s Step) bool { return s.Launch != f.launch })
}
