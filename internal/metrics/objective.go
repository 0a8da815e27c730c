package metrics

import (
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

const (
	yes       = result.Yes
	no        = result.No
	undecided = result.Undecided
)

// JudgeAtLeast judges the claim "at least the share p of due is good". Of fewer than 1/(1−p)
// requests it says no only when the claim would fail even if all that are missing to that number
// were good.
func JudgeAtLeast(due, good int64, p float64) result.Met {
	if p >= 1 {
		switch {
		case good < due:
			return no
		case due == 0:
			return undecided
		}
		return yes
	}
	few, _ := stats.SamplesNeeded(p)
	switch n := max(due, few); {
	case good+n-due < stats.Rank(n, p):
		return no
	case due < few:
		return undecided
	}
	return yes
}

// JudgeBelow judges the claim "the share of bad among due is below limit", with
// the same rule for fewer than 1/limit requests.
func JudgeBelow(due, bad int64, limit float64) result.Met {
	few, _ := stats.SamplesNeeded(1 - limit)
	n := max(due, few)
	// The slack is what a decimal fraction lacks in binary.
	top := limit * float64(n) * (1 - 1e-12)
	switch {
	case float64(bad) >= top:
		return no
	case due < few:
		return undecided
	}
	return yes
}

// judgement holds the number of requests that met the limits of an objective.
type judgement struct {
	due, well   int64
	within      []int64 // each limit
	joint, good int64   // all joint ones, and all
	output      int64   // tokens of the good ones
	uncounted   bool    // the tokens of some were not counted

	inBatches *stats.Batches // the share of good ones, as they were due
}

// countRequest takes in a request; how it does is one of the limits met by one.
func (j *judgement) countRequest(s slo.Spec, one *judged) {
	if s.IsMetBy(one) {
		j.good++
		j.output += int64(max(one.q.output, 0))
		j.uncounted = j.uncounted || one.q.output < 0
	}
	if s.MeetsJoint(one) {
		j.joint++
	}
	for i, l := range s.Limits {
		if l.IsMetBy(one) {
			j.within[i]++
		}
	}
}

// evaluateObjective judges the part against the objective, nil if there is none, and
// says how many requests met it.
func (c *part) evaluateObjective(s slo.Spec) (*result.SLO, *judgement) {
	if s.IsNone() {
		return nil, nil
	}
	due, well := c.tally.dueCount(), c.tally.wellCount()
	all := &judgement{due: due, well: well, within: make([]int64, len(s.Limits)), inBatches: stats.NewBatches(due, stats.FineBatches)}
	stopped := c.tally.interrupted
	kept := &judgement{due: due - stopped, well: well, within: make([]int64, len(s.Limits))} // without those whose end is not known for the instrument's
	one := &judged{part: c}
	for q := range c.requests() {
		one.q = q
		before := all.good
		all.countRequest(s, one)
		all.inBatches.Add(float64(all.good - before))
		if stopped > 0 && !q.interrupted {
			kept.countRequest(s, one)
		}
	}
	out := c.judgeObjective(s, all, c.limitPercentiles(s))
	if out.Met == no && stopped > 0 {
		// Had all of them been good, would it still be missed?
		if rest := c.judgeObjective(s, kept, nil); rest.Met != no {
			out.Met, out.Deciding, out.Why = undecided, "", result.Reason{Code: c.stop, N: float64(stopped), Of: float64(due)}
		}
	}
	if out.Met == yes {
		out.Deciding, out.Why = "", result.Reason{}
	}
	out.Near = out.Met != undecided && markNear(s, out.Limits, all.within, all.joint, due)
	return out, all
}

// ofClasses judges the objectives of classes of requests, and what follows for that of all.
func (f *Fold) ofClasses(s slo.Spec, out *result.SLO, scratch *spill.Store) map[string]*result.ClassSLO {
	list := map[string]*result.ClassSLO{}
	nobodys := 0 // requests whose class a killed run did not record
	for _, g := range f.groups.list {
		if g.key.name == "" {
			nobodys += g.n
		}
	}
	for _, class := range s.Classes {
		own, _ := f.buildPart(f.groups.groupsOf(class.Name), scratch).evaluateObjective(class.Spec)
		if own.Met == yes && nobodys > 0 {
			own.Met, own.Deciding, own.Why = undecided, "", result.Reason{Code: result.ClassUnknown, N: float64(nobodys)}
		}
		list[class.Name] = &result.ClassSLO{Spec: own.Spec, Attained: own.Attained, Met: own.Met}
		for _, l := range own.Limits {
			l.Class, l.Spec = class.Name, class.LimitsPrefix()+l.Spec
			out.Limits = append(out.Limits, l)
		}
		switch {
		case own.Met != yes:
			deciding := own.Deciding
			if deciding != "" {
				deciding = class.LimitsPrefix() + deciding
			}
			why := own.Why
			if !why.IsNone() && deciding == "" {
				why.Class = class.Name
			}
			applyLimit(out, own.Met, deciding, why)
		}
		out.Near = out.Near || own.Near
	}
	return list
}

// judgeObjective says whether the objective is met by so many; values are those of its
// limits' percentiles.
func (c *part) judgeObjective(s slo.Spec, n *judgement, values []*float64) *result.SLO {
	out := &result.SLO{Spec: s.String(), Limits: []result.Limit{}, Met: yes}
	if n.due > 0 {
		out.Attained = shareOf(n.good, n.due)
	}
	shared, code := false, result.WithinJoint
	for i, l := range s.Limits {
		r := c.judgeLimit(l, s, n, n.within[i])
		if values != nil && values[i] != nil {
			r.Value = values[i]
		}
		out.Limits = append(out.Limits, r)
		if l.IsJoint() {
			shared = true
			if r.Why.Code == result.NotStreaming {
				applyLimit(out, r.Met, r.Spec, r.Why)
				code = result.AtMostWithinJoint
			}
			continue
		}
		applyLimit(out, r.Met, r.Spec, r.Why)
	}
	if shared {
		met := JudgeAtLeast(n.due, n.joint, s.Share())
		why := result.Reason{Code: code, N: float64(n.joint), Of: float64(n.due)}
		if met == undecided {
			few, _ := stats.SamplesNeeded(s.Share())
			why = tooFew(n.due, few)
		}
		applyLimit(out, met, "", why)
	}
	return out
}

// limitPercentiles are the percentiles that limits are on, of those limits that single
// requests have; nil where one is not known.
func (c *part) limitPercentiles(s slo.Spec) []*float64 {
	values := make([]*float64, len(s.Limits))
	var asked []question
	var of []int
	for i, l := range s.Limits {
		if !l.OfShare() && !l.Metric.IsPooled() && (c.tally.streamed || l.Metric == metric.E2E) {
			asked, of = append(asked, question{unit: inMS, take: c.metricFunc(l.Metric)}), append(of, i)
		}
	}
	for len(asked) > 0 {
		n := min(len(asked), together)
		for k, sample := range c.collectSamples(asked[:n]...) {
			l := s.Limits[of[k]]
			p := l.P()
			if l.IsJoint() {
				p = s.Share()
			}
			if few, _ := stats.SamplesNeeded(p); p < 1 && sample.sampleSize() >= few {
				if x, over := sample.percentile(p); !over {
					x /= inMS
					values[of[k]] = &x
				}
			}
			sample.free()
		}
		asked, of = asked[n:], of[n:]
	}
	return values
}

// burstiness is the assumed variance of the violations in a window, relative to independent ones. It
// is what a search assumes of a load where few bursts were seen (capacity.sparsePhi).
const burstiness = 48

// markNear marks the limits that another window may well decide otherwise, and reports whether it may
// decide the objective otherwise. A limit is near if a third to three times the requests violate it
// that may, and if bursts explain the difference in one of twenty windows. A limit that is clearly
// missed decides.
func markNear(s slo.Spec, judged []result.Limit, within []int64, joint, due int64) bool {
	near, missed := false, false
	for i, l := range s.Limits {
		good, share := within[i], l.P()
		switch {
		case l.IsJoint():
			good, share = joint, s.Share()
		case l.OfShare() || l.Metric.IsPooled():
			missed = missed || judged[i].Met == no
			continue
		}
		bad, allowed := float64(due-good), (1-share)*float64(due)
		chance := 1.96 * math.Sqrt(burstiness*allowed*share)
		judged[i].Near = bad > 0 && bad >= allowed/3 && bad <= 3*allowed && math.Abs(bad-allowed) <= chance
		near, missed = near || judged[i].Near, missed || bad > 3*allowed
	}
	return near && !missed
}

// applyLimit lets one limit weigh on the whole: any no is no, then any undecided
// is undecided. The first limit of that weight, "" for the joint ones, is kept with
// its reason.
func applyLimit(out *result.SLO, met result.Met, limit string, why result.Reason) {
	weight := map[result.Met]int{yes: 0, undecided: 1, no: 2}
	if weight[met] > weight[out.Met] {
		out.Met, out.Deciding, out.Why = met, limit, why
	}
}

func shareOf(n, of int64) *float64 {
	x := float64(n) / float64(of)
	return &x
}

// judgeLimit judges one limit of which `within` requests are on the right side.
func (c *part) judgeLimit(l slo.Limit, s slo.Spec, n *judgement, within int64) result.Limit {
	due := n.due
	out := result.Limit{Spec: l.String(), Percentile: l.Percentile, Metric: l.Metric, Limit: float64(l.Max) / inMS}
	if due > 0 {
		out.Attained = shareOf(within, due)
	}
	p := l.P()
	switch {
	case l.Metric == metric.Wrong:
		out.Limit = l.MaxPercent / 100
		c.questions.judgeLimit(&out)
		return out
	case l.Metric == metric.Errors:
		bad := due - n.well
		out.Limit = l.MaxPercent / 100
		out.Met = JudgeBelow(due, bad, out.Limit)
		if due > 0 {
			out.Value = shareOf(bad, due)
		}
		if out.Met == undecided {
			few, _ := stats.SamplesNeeded(1 - out.Limit)
			out.Why = tooFew(due, few)
		}
		return out
	case c.answeredWhole() && l.Metric != metric.E2E:
		out.Met, out.Why, out.Attained = undecided, result.Reason{Code: result.NotStreaming}, nil
		return out
	case l.Metric.IsPooled():
		c.judgeGapLimit(l, &out)
		return out
	case l.IsJoint():
		p = s.Share()
	}
	out.Met = JudgeAtLeast(due, within, p)
	few, _ := stats.SamplesNeeded(p)
	lost := due - n.well
	switch {
	case out.Met == undecided:
		out.Why = tooFew(due, few)
	case out.Met == no && lost > 0:
		out.Why = result.Reason{Code: result.LostCountAsOver, N: float64(lost), Of: float64(due)}
	}
	return out
}

func tooFew(n, few int64) result.Reason {
	return result.Reason{Code: result.FewForClaim, N: float64(n), Needed: float64(few)}
}

// judgeGapLimit judges a limit on gaps by their exact percentile; where merging
// leaves open on which side it lies there is no verdict.
func (c *part) judgeGapLimit(l slo.Limit, out *result.Limit) {
	out.Met, out.Attained = undecided, nil
	at := slices.IndexFunc(c.definitions, func(d Definition) bool { return d.Name == l.Metric })
	if at < 0 {
		out.Why = result.Reason{Code: result.NotMeasured}
		return
	}
	s, why := c.definitions[at].pooledSample(c)
	if s == nil {
		out.Why = why
		return
	}
	defer s.free()
	if l.Metric == metric.ITL && s.label == "amortised" {
		out.Why = result.Reason{Code: result.TokensMerged}
		return
	}
	n, p := s.sampleSize(), l.P()
	if few, _ := stats.SamplesNeeded(p); n < few {
		out.Why = result.Reason{Code: result.FewGapsForClaim, N: float64(n), Needed: float64(few)}
		return
	}
	// The gaps that are left out may all lie below the percentile, or all above.
	excluded := 0.
	open := result.MergedReadsLeave
	if l.Metric == metric.ITL {
		if known, all := c.countStreams(); known.tokens < all.tokens {
			excluded = float64(all.tokens-known.tokens) / float64(all.tokens)
			open = result.UnknownTokensLeave
		}
	}
	lo, _ := s.quantileBounds((p - excluded) / (1 - excluded))
	_, hi := s.quantileBounds(p / (1 - excluded))
	if x, over := s.percentile(p); over {
		out.Why = result.Reason{Code: result.PercentileCensored}
	} else {
		x /= inMS
		out.Value = &x
	}
	limit := float64(l.Max)
	switch {
	case hi < limit:
		out.Met = yes
	case lo >= limit:
		out.Met = no
	case math.IsInf(hi, 1):
		out.Why = result.Reason{Code: open, Low: lo / inMS}
	default:
		out.Why = result.Reason{Code: open, Low: lo / inMS, High: hi / inMS}
	}
}

// quantileBounds returns the bounds that are certain of the p-quantile: it lies in [lo, hi].
func (s *sample) quantileBounds(p float64) (lo, hi float64) {
	if p <= 0 || p > 1 {
		return 0, math.Inf(1)
	}
	x, over := s.percentile(p)
	switch {
	case over: // longer than anybody waited
		return math.Inf(1), math.Inf(1)
	case s.bounds == nil:
		return x, x
	}
	return s.bounds(p)
}
