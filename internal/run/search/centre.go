package search

import (
	"math"

	"pitot/internal/stat"
)

const (
	stairs    = 5
	stairStep = 0.04 // in ln
	maxShift  = 0.16 // of the centre, in ln
	maxRounds = 6
	// Requests at a load of a staircase: a share of the budget, within bounds;
	// roughStair where the bracket is all that is to be had.
	stairShare = 1.0 / 80
	leastStair = 500
	mostStair  = 2000
	roughStair = 1000
)

// Slope is what is known of violations beforehand: they rise steeply with the
// load. Near the limit d logit P / d ln load was between 14 and 70 on all
// systems simulated.
func Slope() stat.Prior { return stat.Prior{Mean: 25, SD: 25} }

// centre climbs staircases of five neighbouring loads, ±8 %, in random order
// until they lie around the limit: the fit moves by less than 5 %, one load is
// above 2ε and one below ε.
func (f *search) centre() bool {
	f.centred = math.Sqrt(f.lo * f.hi)
	total := f.total(f.centred)
	n := int(min(mostStair, max(leastStair, total*stairShare)))
	spare := spareMain + spareVerify
	rounds := maxRounds
	if total < 0.95*ClaimRequests { // all of it for the bracket
		spare, rounds, n = 0, 2*maxRounds, roughStair
	}
	for round := range rounds {
		loads := f.staircase()
		if f.afford(loads, spare) < n {
			if round > 0 {
				break
			}
			if n = f.afford(loads, 0); n < 100 {
				f.cap.Reason = TooSmall
				return false
			}
		}
		from := len(f.cap.Trail)
		for _, i := range f.rng.Perm(len(loads)) {
			if _, ok := f.look(Probe{Load: loads[i], Requests: n, Stage: Centre, Claim: Joint}); !ok {
				return false
			}
		}
		shift := f.shift(f.cap.Trail[from:])
		f.centred *= math.Exp(shift)
		if math.Abs(shift) < 0.05 && f.straddles(f.cap.Trail[from:]) && spare > 0 {
			break
		}
	}
	if spare == 0 {
		f.cap.Reason = TooSmall
		return false
	}
	return true
}

// TooSmall is why a search that ended with a bracket has no claim.
const TooSmall = "the budget is too small for more than a bracket: a claim needs about 40,000 requests"

// staircase is five loads around the centre. Whole numbers of users are at
// least one apart.
func (f *search) staircase() (loads []float64) {
	step := stairStep
	if f.cfg.Closed {
		step = max(step, 1/f.centred)
	}
	for i := range stairs {
		loads = append(loads, f.whole(f.centred*math.Exp(step*float64(i-stairs/2))))
	}
	return loads
}

// crossing is the lowest load at which a fit of some stages crosses a limit;
// 0 if none does.
func (f *search) crossing(stages ...string) float64 {
	lowest := math.Inf(1)
	for _, claim := range f.cfg.claims() {
		if at := f.crossingOf(claim, stages...).Load; at > 0 {
			lowest = min(lowest, at)
		}
	}
	if math.IsInf(lowest, 1) {
		return 0
	}
	return lowest
}

// shift is by how much, in ln, the centre has to move after a staircase.
func (f *search) shift(steps []Step) float64 {
	if at := f.crossing(Centre); at > 0 {
		return min(maxShift, max(-maxShift, math.Log(at/f.centred)))
	}
	for _, s := range steps {
		if f.exceeds(&s.Seen, 2) {
			return -maxShift / 2
		}
	}
	return maxShift / 2
}

// exceeds says that a claim is violated by more than so many times its share.
func (f *search) exceeds(s *Seen, times float64) bool {
	for _, claim := range f.cfg.claims() {
		if s.share(claim) > odds(f.cfg.eps(claim), times) {
			return true
		}
	}
	return false
}

// straddles says that one load is clearly above a limit, and one below all.
func (f *search) straddles(steps []Step) bool {
	above, below := false, false
	for _, s := range steps {
		above = above || f.exceeds(&s.Seen, 2)
		below = below || !f.exceeds(&s.Seen, 1)
	}
	return above && below
}
