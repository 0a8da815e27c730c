package slo

import (
	"math"

	"pitot/internal/results/metric"
)

// Request has the results by which limits judge a request.
type Request interface {
	// OK says that the request ended well.
	OK() bool
	// Value is one of its metrics, in nanoseconds. NaN is undefined, which is
	// not over any limit; +Inf is a value that never came, which is.
	Value(metric.Name) float64
	// Class is the class of requests that it belongs to, "" for none.
	Class() string
}

// Question is a [Request] of which it is known what its answer has to be, and which came to its
// end. Limits on wrong answers are about those alone, and all others about no such request.
type Question interface {
	Request
	Wrong() bool
}

// IsMetBy says that a request ended well and is within the limit. Of errors and
// of the pooled metrics, which no single request has, it asks only that the
// request ended well.
func (l Limit) IsMetBy(r Request) bool {
	if !r.OK() || l.OfShare() || l.Metric.IsPooled() {
		return r.OK()
	}
	return !(r.Value(l.Metric) >= float64(l.Max))
}

// excessRatio is by how many times the limit's maximum a request took.
func (l Limit) excessRatio(r Request) float64 {
	switch {
	case !r.OK():
		return math.Inf(1)
	case l.OfShare() || l.Metric.IsPooled():
		return 0
	}
	if x := r.Value(l.Metric) / float64(l.Max); x > 0 {
		return x
	}
	return 0 // undefined, which is not over any limit
}

// IsMetBy says that a request meets every limit, also those of its class.
func (s Spec) IsMetBy(r Request) bool {
	for _, l := range s.Limits {
		if !l.IsMetBy(r) {
			return false
		}
	}
	for _, c := range s.Classes {
		if c.Name == r.Class() && !c.Spec.IsMetBy(r) {
			return false
		}
	}
	return r.OK()
}

// MeetsJoint says that a request meets every joint limit, apart from those of classes.
func (s Spec) MeetsJoint(r Request) bool {
	for _, l := range s.Limits {
		if l.IsJoint() && !l.IsMetBy(r) {
			return false
		}
	}
	return r.OK()
}
