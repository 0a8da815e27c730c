package predict

import (
	"maps"
	"math"
	"slices"

	"pitot/internal/sim/deploy"
)

// A server is not equally fast in two runs of the same load: its machine has other
// guests, its clocks follow the heat. All times of a run share that, so a run of
// many requests tells no more of the server than one of few. How much it is shows
// where loads were measured more than once.

// paceOf is the standard deviation of the logarithm of the speed of runs of the same load,
// beyond what their requests differ by: of mean TPOT, or mean E2E where answers are
// single tokens. It is 0 where no load was measured twice.
func paceOf(runs []*Recording) float64 {
	of := map[string][]moment{}
	for _, r := range runs {
		if r.run == nil { // a recording is of a load of its own
			continue
		}
		if m := r.meanSpeed(); !math.IsNaN(m.log) {
			of[r.loadKey()] = append(of[r.loadKey()], m)
		}
	}
	sum, chance, free := 0.0, 0.0, 0.0
	for _, load := range slices.Sorted(maps.Keys(of)) {
		same := of[load]
		mean, n := 0.0, float64(len(same))
		for _, m := range same {
			mean += m.log / n
		}
		for _, m := range same {
			sum += (m.log - mean) * (m.log - mean)
			chance += m.se * m.se * (n - 1) / n
		}
		free += n - 1
	}
	if free == 0 {
		return 0
	}
	return math.Sqrt(max(sum-chance, 0) / free)
}

// meanSpeed is the logarithm of the run's mean TPOT or E2E.
func (r *Recording) meanSpeed() moment {
	s := r.RecordedSeries()
	v := s.TPOT
	if len(v) < leastGroup {
		v = s.E2E
	}
	return distribution(v, max(1, r.meanRunning()/2))[0] // requests that answer at once share steps
}

// errorAtOtherTime is the error to expect of predictions for another time. The loads that were
// left out were measured in the same minutes as those that were fitted. What it
// is at another time the runs cannot tell: it is taken to differ from now as much as
// runs of one load do here, which four of five times is below 1.28 standard deviations.
func errorAtOtherTime(e *deploy.ExpectedError, pacePct float64) *deploy.ExpectedError {
	if e == nil {
		return nil
	}
	const bound = 1.28
	x := *e
	for _, pct := range []*float64{&x.TTFTPct, &x.TPOTPct, &x.E2EPct} {
		*pct = math.Hypot(*pct, bound*pacePct)
	}
	return &x
}
