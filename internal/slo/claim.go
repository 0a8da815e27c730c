package slo

import (
	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// Claim is one statement of an objective about a share of requests: at most
// Share of them may violate it. A percentile limit is one, all joint limits
// together are one, a limit on errors is one.
type Claim struct {
	Spec  string
	Class string  // of requests that it is about, "" for all
	Share float64 // of these that may violate it, over 0

	limit *Limit // nil for the joint limits
	spec  *Spec
}

// SplitClaims takes an objective apart. A limit on gaps between chunks is none, for
// its percentile is over gaps and not over requests; nor is one that no
// request may violate. Both are errors for the user.
func (s Spec) SplitClaims() ([]Claim, error) {
	var claims []Claim
	var joint *Claim
	addClaim := func(c Claim) error {
		if c.Share < 1e-9 {
			return say.Errorf("%s allows no violation at all", c.Spec).WithHint("a load cannot be searched at which none of any number violates: limit p99.9 instead")
		}
		claims = append(claims, c)
		return nil
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		switch {
		case l.Metric.IsPooled():
			return nil, say.Errorf("%s is a limit on gaps, not on requests", l).WithHint("limit tpot or stall, which each request has")
		case l.OfShare():
			if err := addClaim(Claim{Spec: l.String(), Share: l.MaxPercent / 100, limit: l}); err != nil {
				return nil, err
			}
		case !l.IsJoint():
			if err := addClaim(Claim{Spec: l.String(), Share: 1 - l.P(), limit: l}); err != nil {
				return nil, err
			}
		case joint == nil:
			joint = &Claim{Share: 1 - s.Share(), spec: &s}
		}
	}
	if joint != nil {
		only := Spec{SharePercent: s.SharePercent}
		for _, l := range s.Limits {
			if l.IsJoint() {
				only.Limits = append(only.Limits, l)
			}
		}
		joint.Spec = only.String()
		if err := addClaim(*joint); err != nil {
			return nil, err
		}
	}
	for _, class := range s.Classes {
		own, err := class.Spec.SplitClaims()
		if err != nil {
			return nil, say.Errorf("%s%v", class.LimitsPrefix(), err).WithHint(say.HintOf(err))
		}
		for _, c := range own {
			c.Spec, c.Class = class.LimitsPrefix()+c.Spec, class.Name
			claims = append(claims, c)
		}
	}
	return claims, nil
}

// IsAbout says that a request is one of those that the claim is about.
func (c Claim) IsAbout(r Request) bool {
	if _, question := r.(Question); question || c.OnAnswers() {
		return question && c.OnAnswers()
	}
	return c.Class == "" || c.Class == r.Class()
}

// OnAnswers says that the claim is about questions whose answers are checked.
func (c Claim) OnAnswers() bool { return c.limit != nil && c.limit.Metric == metric.Wrong }

// Times is by how many times what the claim allows a request took: at 1 and above it
// violates it. It is +Inf of one that did not end well.
func (c Claim) Times(r Request) float64 {
	if !c.IsAbout(r) || c.OnAnswers() {
		return 0
	}
	if c.limit != nil {
		return c.limit.excessRatio(r)
	}
	most := 0.0
	for _, l := range c.spec.Limits {
		if l.IsJoint() {
			most = max(most, l.excessRatio(r))
		}
	}
	return most
}

// ClaimedMetrics says which metrics the claim is about.
func (c Claim) ClaimedMetrics() (names []metric.Name) {
	if c.limit != nil {
		return []metric.Name{c.limit.Metric}
	}
	for _, l := range c.spec.Limits {
		if l.IsJoint() {
			names = append(names, l.Metric)
		}
	}
	return names
}

// ViolatedBy says that a request counts against the claim.
func (c Claim) ViolatedBy(r Request) bool {
	if !c.IsAbout(r) {
		return false
	}
	if c.OnAnswers() {
		return r.(Question).Wrong()
	}
	if c.limit != nil {
		return !c.limit.IsMetBy(r)
	}
	return !c.spec.MeetsJoint(r)
}
