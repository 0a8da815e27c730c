package search

import (
	"fmt"
	"math"

	"pitot/internal/stat"
)

const (
	// mainLoads is how many loads are fitted, and mainWidth how far the outer
	// ones lie from their middle, in ln. With ±8 % the crossing lay outside the
	// loads in 20 to 35 % of searches of 80,000 requests, with ±10 % in 9 %, at
	// the same error; and the fitted 0.3 to 10 % of violations, being narrow
	// where the staircases happen to look steep, lost 37 %.
	mainLoads = 16
	mainWidth = 0.10
	legs      = 2
	leastMain = 400 // requests at a load
	// spareMain is the share of the budget that the main loads are to have,
	// spareVerify that of the look at the result. Both from 15 to 30 % for
	// the latter gave the same error; below, its failures could not be repeated.
	spareMain   = 0.5
	spareVerify = 0.25
)

// measure measures 16 loads that are fixed before any of them is, in random
// order and in two legs.
//
// The loads do not follow the running estimate, which would select chance:
// loads that happen to look good would draw more like them. There is one
// exception: where the first leg's crossing lies beyond half the width, its
// second leg is centred again. That, and fitting the staircases with the main
// loads, raises the share of searches that find the crossing within the loads
// from 91 to 100 % and costs no coverage.
func (f *search) measure() bool {
	loads := f.spread(f.centred)
	n := f.afford(loads, spareVerify)
	if n < leastMain {
		f.cap.Reason = TooSmall
		return false
	}
	for leg := range legs {
		var these []float64
		for i := leg; i < len(loads); i += legs {
			these = append(these, loads[i])
		}
		for _, i := range f.rng.Perm(len(these)) {
			if _, ok := f.look(Probe{Load: these[i], Requests: n, Stage: Main, Leg: leg, Claim: f.probable()}); !ok {
				return false
			}
		}
		if at := f.crossing(Main, Centre); leg == 0 && at > 0 {
			if shift := math.Log(at / f.centred); math.Abs(shift) > f.width(f.centred)/2 {
				loads = f.spread(f.centred * math.Exp(min(maxShift, max(-maxShift, shift))))
			}
		}
	}
	return f.fit()
}

// width of the main loads to each side, in ln; that of whole numbers of users
// takes in two more of them.
func (f *search) width(centre float64) float64 {
	if f.cfg.Closed {
		return max(mainWidth, 2.5/centre)
	}
	return mainWidth
}

// spread is the main loads, even in ln.
func (f *search) spread(centre float64) (loads []float64) {
	w := f.width(centre)
	for i := range mainLoads {
		loads = append(loads, f.whole(centre*math.Exp(w*(2*float64(i)/(mainLoads-1)-1))))
	}
	return loads
}

// none takes an estimate back.
func (f *search) none() {
	f.cap.Estimate, f.cap.Interval, f.cap.Lower, f.cap.Margin = 0, stat.Interval{}, 0, 0
}

// leastSlope is how steeply violations rise with the load where it is the load
// that causes them, d logit P / d ln load: 14 to 70 on all systems simulated.
const leastSlope = 5

// slope is that of a claim's fit.
func (f *search) slope(claim int) float64 {
	return stat.FitLogistic(f.shares(claim, Centre, Main, Verifying), Slope()).B
}

// crossingOf reads the load where a claim stops to hold from a fit of some stages.
func (f *search) crossingOf(claim int, stages ...string) stat.Inverse {
	alpha := (1 - f.cfg.Level) / float64(len(f.cfg.claims()))
	return stat.FitLogistic(f.shares(claim, stages...), Slope()).LoadAt(f.cfg.eps(claim), f.cfg.Level, alpha)
}

// probable is the claim that will bind, by what is known.
func (f *search) probable() int {
	claims := f.cfg.claims()
	best, least := claims[0], math.Inf(1)
	for _, claim := range claims {
		if at := f.crossingOf(claim, Centre, Main).Load; len(claims) > 1 && at > 0 && at < least {
			best, least = claim, at
		}
	}
	return best
}

// fit finds where each claim stops to hold; the lowest binds. For the lower
// limit of the lowest of k to be too high with probability α, each is taken at
// α/k. Where the fit gives no answer, an earlier one stands.
func (f *search) fit() bool {
	var limits []ClaimLimit
	var binding ClaimLimit
	lower, reason := math.Inf(1), ""
	for _, claim := range f.cfg.claims() {
		l := ClaimLimit{claim, f.cfg.eps(claim), f.crossingOf(claim, Centre, Main, Verifying)}
		limits = append(limits, l)
		if l.Load > 0 && (binding.Load == 0 || l.Load < binding.Load) {
			binding = l
		}
		if l.Reason == "" {
			lower = min(lower, l.Lower)
		} else if reason == "" {
			reason = l.Reason
		}
	}
	if binding.Load > 0 {
		reason = binding.Reason
	}
	if from := f.grows(); from > 0 && binding.Load >= from {
		reason = fmt.Sprintf("the queue grows from about %.4g on, before the limits are reached: beyond, they hold only for as long as the load does not last", from)
		f.none()
	}
	if b := f.slope(binding.Claim); reason == "" && b < leastSlope {
		reason = "the share of violations hardly rises with the load: something else than the load violates the limits"
		f.none()
	}
	if reason != "" {
		if f.cap.Estimate == 0 {
			f.cap.Claims, f.cap.Reason = limits, reason
		}
		return false
	}
	f.cap.Claims, f.cap.Binding = limits, binding.Claim
	f.cap.Estimate, f.cap.Interval, f.cap.Lower = binding.Load, binding.Interval, lower
	f.cap.Margin = 1 - lower/binding.Load
	return true
}
