package report

import (
	"maps"
	"slices"
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/slo"
)

// buildObjective says how the SLO came out, nil if there was none.
func buildObjective(p *result.Point) *Objective {
	s := p.SLO
	if s == nil {
		return nil
	}
	o := &Objective{Met: s.Met, Facts: []string{"SLO " + s.Spec + ": " + metText(s.Met, "NOT met")}}
	several, share := len(s.Limits) > 1, jointShares(s.Spec)
	common, once := commonReasons(s), []string(nil)
	for _, l := range s.Limits {
		if text := ReasonText(l.Why); !l.Why.IsNone() && common[text] > 1 {
			l.Why = result.Reason{}
			if !slices.Contains(once, text) {
				once = append(once, text)
			}
		}
		if several {
			o.Limits = append(o.Limits, append([]string{l.Spec + ": " + metText(l.Met, "not met")}, limitFacts(l, share(l.Class))...))
		} else {
			o.Facts = append(o.Facts, limitFacts(l, share(l.Class))...)
		}
	}
	for _, c := range classesJointly(p) {
		o.Limits = append(o.Limits, []string{c[0] + ": " + c[1], c[2]})
	}
	o.Table = limitsTable(p)
	o.Facts = append(o.Facts, once...)
	// A reason that concerns one limit is shown next to that limit.
	if !s.Why.IsNone() && s.Deciding == "" {
		o.Facts = append(o.Facts, ReasonText(s.Why))
	}
	if s.Near {
		o.Facts = append(o.Facts, "near the limit: another run may differ; pitot find --at decides")
	}
	o.Facts = append(o.Facts, limitsDidIt(p)...)
	if s.Attained != nil && several {
		o.Facts = append(o.Facts, goodShareText(s)+" of all due requests ended well"+heldAgainst(s.Limits))
	}
	if g := p.Goodput; g != nil {
		good := "goodput " + say.Quantity(g.RequestsPerS)
		// Goodput counts requests by when they were due, throughput by when
		// they were answered: either can be the larger.
		due := ownDue(p)
		if due != nil {
			good += " of the " + say.Quantity(*due) + " req/s that came due"
		} else {
			good += " req/s of what came due"
		}
		if g.OutputTokensPerS != nil {
			good += ", " + say.Quantity(*g.OutputTokensPerS) + " output tok/s"
		}
		o.Facts = append(o.Facts, good)
		if t := &p.Throughput; exceedsAsShown(&g.RequestsPerS, t.RequestsPerS) || exceedsAsShown(g.OutputTokensPerS, t.OutputTokensPerS) {
			o.Facts = append(o.Facts, "goodput is of the requests due in the window, throughput of what ended in it")
		}
	}
	return o
}

// exceedsAsShown reports whether a rate is above another as both are shown.
func exceedsAsShown(a, b *float64) bool {
	return a != nil && b != nil && *a > *b && say.Quantity(*a) != say.Quantity(*b)
}

// commonReasons counts the limits that have each reason.
func commonReasons(s *result.SLO) map[string]int {
	n := map[string]int{}
	for i := range s.Limits {
		if !s.Limits[i].Why.IsNone() {
			n[ReasonText(s.Limits[i].Why)]++
		}
	}
	return n
}

// limitsTable has a row for each limit, and one for all of them.
func limitsTable(p *result.Point) Table {
	s := p.SLO
	t, share := NewTable("Limit", "Met", "Measured"), jointShares(s.Spec)
	for _, l := range s.Limits {
		t.AddRow(l.Spec, metText(l.Met, "not met"), strings.Join(limitFacts(l, share(l.Class)), " · "))
	}
	for _, c := range classesJointly(p) {
		t.AddRow(c[:]...)
	}
	joint := say.Unknown
	if s.Attained != nil {
		joint = goodShareText(s) + " of all due requests" + heldAgainst(s.Limits)
	}
	t.AddRow("jointly", metText(s.Met, "not met"), joint)
	return t
}

// classesJointly says of each class with several limits of its own whether they are met,
// and by how many of its requests together.
func classesJointly(p *result.Point) (list [][3]string) {
	limits := map[string]int{}
	for _, l := range p.SLO.Limits {
		limits[l.Class]++
	}
	for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
		c := p.Classes[name]
		if c.SLO == nil || limits[name] < 2 {
			continue
		}
		within := say.Unknown
		if c.SLO.Attained != nil {
			within = say.Percent(*c.SLO.Attained) + " of its " + say.Plural(c.Requests.Due, "request") + " within each of its limits"
		}
		list = append(list, [3]string{name + " jointly", metText(c.SLO.Met, "not met"), within})
	}
	return list
}

// heldAgainst says of which limits the requests are counted that attained them: a
// single request has no error rate and no pooled gaps, and no stream's metrics
// where nothing was streamed.
func heldAgainst(limits []result.Limit) string {
	var in int
	var but []string
	for _, l := range limits {
		switch {
		case l.Metric == "errors": // that it ended well is all it can be asked
		case l.Attained != nil:
			in++
		default:
			but = append(but, l.Spec)
		}
	}
	switch {
	case in == 0:
		return ""
	case len(but) > 0:
		return " within every limit but " + strings.Join(but, ", ")
	}
	return " within every limit"
}

func metText(met result.Met, no string) string {
	return map[result.Met]string{result.Yes: "met", result.No: no, result.Undecided: string(result.Undecided)}[met]
}

// jointShares gives the share of requests that must be within the joint limits of an
// objective, or of those of a class, 0 where it has none.
func jointShares(spec string) func(class string) float64 {
	s, err := slo.Parse(spec)
	return func(class string) float64 {
		if err != nil {
			return 0
		}
		for _, c := range s.Classes {
			if c.Name == class {
				return c.Spec.Share()
			}
		}
		return s.Share()
	}
}

// goodShareText is the share of requests that were good, written so that it stands on the
// side of what is asked for that it is on: 98.96 % is not 99 % where 99 % are asked.
func goodShareText(s *result.SLO) string {
	share := jointShares(s.Spec)("")
	if len(s.Limits) == 1 && s.Limits[0].Percentile > 0 {
		share = s.Limits[0].Percentile / 100
	}
	if share == 0 {
		return say.Percent(*s.Attained)
	}
	return say.PercentNear(*s.Attained, share)
}

// limitFacts returns what was measured of one limit. Joint limits have a share in common.
func limitFacts(l result.Limit, share float64) (facts []string) {
	ms := func() string { return say.QuantityNear(*l.Value, l.Limit) + " ms" }
	switch {
	case l.Value == nil:
	case l.Metric == "errors" || l.Metric == "wrong":
		facts = append(facts, "measured "+say.PercentNear(*l.Value, l.Limit))
	case l.Percentile > 0 && l.Met == result.No && l.Attained != nil && *l.Value < l.Limit:
		// Those that were not answered are over the limit: with them so is the percentile.
		facts = append(facts, "measured >"+say.Quantity(l.Limit)+" ms with failures counted, "+ms()+" of those answered")
	case l.Percentile > 0: // a joint limit has no percentile of its own
		facts = append(facts, "measured "+ms())
	}
	if l.Attained != nil && l.Metric != "errors" {
		within := say.Percent(*l.Attained)
		if l.Percentile > 0 {
			share = l.Percentile / 100
		}
		if share > 0 {
			within = say.PercentNear(*l.Attained, share)
		}
		of := " of all due requests within"
		if l.Class != "" {
			of = " of its requests within"
		}
		facts = append(facts, within+of)
	}
	if !l.Why.IsNone() {
		facts = append(facts, ReasonText(l.Why))
	}
	return facts
}

// ownDue returns the rate per second at which the workload's own requests came due. It leaves out
// questions, which are neither good nor bad.
func ownDue(p *result.Point) *float64 {
	due := p.Throughput.DuePerS
	if due != nil && p.Answers != nil {
		return new(*due * float64(p.Requests.Due) / float64(max(p.Requests.Due+p.Answers.Asked, 1)))
	}
	return due
}
