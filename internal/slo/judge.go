package slo

// Values are the metrics of one request, in nanoseconds. NaN is undefined,
// which is not over any limit; +Inf is a value that never came, which is.
type Values struct {
	OK                                       bool // the request ended well
	TTFT, TTFA, TPOT, Stall, E2E, Generation float64
}

func (v Values) of(m Metric) float64 {
	switch m {
	case TTFT:
		return v.TTFT
	case TTFA:
		return v.TTFA
	case TPOT:
		return v.TPOT
	case Stall:
		return v.Stall
	case E2E:
		return v.E2E
	case Generation:
		return v.Generation
	}
	return 0
}

// Meets says that a request ended well and is within the limit. Of errors and
// of the pooled metrics, which no single request has, it asks only that the
// request ended well.
func (l Limit) Meets(v Values) bool {
	if !v.OK || l.Metric == Errors || l.Metric.Pooled() {
		return v.OK
	}
	return !(v.of(l.Metric) >= float64(l.Max))
}

// Good says that a request meets every limit.
func (s Spec) Good(v Values) bool {
	for _, l := range s.Limits {
		if !l.Meets(v) {
			return false
		}
	}
	return v.OK
}

// MeetsJoint says that a request meets every joint limit.
func (s Spec) MeetsJoint(v Values) bool {
	for _, l := range s.Limits {
		if l.Joint() && !l.Meets(v) {
			return false
		}
	}
	return v.OK
}
