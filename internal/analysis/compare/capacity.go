package compare

import (
	"cmp"
	"slices"

	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// CapacityPair holds what the searches of two sides found, under one objective and of one workload.
type CapacityPair struct {
	Over string `json:"over"` // what loads count: "rate" (req/s) or "concurrency" (users)
	SLO  string `json:"slo"`
	A    Found  `json:"a"`
	B    Found  `json:"b"`
	// What the bounds say of the change from A to B, as in a [Row]: each holds at 95 %.
	ChangeAtLeast *float64 `json:"change_at_least"` // B's lower bound over A's upper one; null where one is not known
	ChangeAtMost  *float64 `json:"change_at_most"`  // B's upper bound over A's lower one
}

// Found holds the result of the searches of a side.
type Found struct {
	Launches      int         `json:"launches"`                   // that were searched
	Estimate      *float64    `json:"estimate"`                   // geometric mean over the launches, null where one of them has none
	CI95          *[2]float64 `json:"ci95"`                       // of it: the search's own of one launch, else by their spread
	AtLeast       *float64    `json:"at_least"`                   // a load that was verified; of one launch alone
	AtMost        *float64    `json:"at_most"`                    // of one launch alone
	Level         float64     `json:"level,omitempty"`            // with which both bounds hold
	NoLoad        bool        `json:"no_load_meets_it,omitempty"` // requests violate the SLO however low the load
	Binding       string      `json:"binding,omitempty"`          // the limit that is reached first, where the launches agree
	USDPerMOutput *float64    `json:"usd_per_m_good_output"`      // what a million output tokens within the SLO cost at the load that was verified; mean over the launches
	Why           string      `json:"why,omitempty"`              // why there is no estimate
}

// IsKnown says whether anything is known of the capacity.
func (f *Found) IsKnown() bool {
	return f.Estimate != nil || f.AtLeast != nil || f.AtMost != nil || f.NoLoad
}

// isComparable says that something can be said of both, next to each other.
func (p *CapacityPair) isComparable() bool { return p.A.IsKnown() && p.B.IsKnown() }

// foundCapacity is one search.
type foundCapacity struct {
	*result.Capacity
	source   Source
	workload string
}

// objective holds what searches must have in common to be compared.
type objective struct{ over, slo, workload string }

func (f *foundCapacity) searchObjective() objective { return objective{f.Over, f.SLO, f.workload} }

// capacityFigure is the capacity under it.
func (k objective) capacityFigure() figure {
	f, _ := parseMetric(capacity) // a name of ours
	if k.over != result.OverRate {
		f.unit = result.LoadUnit(k.over)
	}
	return f
}

// searchedObjectives are those that were searched for, each once.
func (m *measured) searchedObjectives() (known []objective) {
	for _, l := range m.searches {
		for i := range l.all {
			if k := l.all[i].searchObjective(); !slices.Contains(known, k) {
				known = append(known, k)
			}
		}
	}
	return known
}

// searchesUnder are the searches of each launch for an objective.
func (m *measured) searchesUnder(k objective) (launches [][]foundCapacity) {
	for _, l := range m.searches {
		var these []foundCapacity
		for _, f := range l.all {
			if f.searchObjective() == k {
				these = append(these, f)
			}
		}
		if len(these) > 0 {
			launches = append(launches, these)
		}
	}
	return launches
}

// pairCapacities compares what searches of one objective found, and says how many
// there were to compare.
func (c *Comparison) pairCapacities(a, b *measured, o Options) (n int) {
	of := b.searchedObjectives()
	for _, k := range a.searchedObjectives() {
		if !slices.Contains(of, k) {
			continue
		}
		n++
		f, in := k.capacityFigure(), "requests per second"
		if k.over != result.OverRate {
			in = result.LoadUnit(k.over)
		}
		p := newPair(a, b, "capacity in "+in+", "+k.slo)
		sa, whyA := a.capacityEstimates(k)
		sb, whyB := b.capacityEstimates(k)
		p.Capacity = &CapacityPair{Over: k.over, SLO: k.slo, A: a.foundBySearches(k, sa, whyA), B: b.foundBySearches(k, sb, whyB)}
		p.Capacity.boundChange()
		p.setLaunches(p.Capacity.A.Launches, p.Capacity.B.Launches)
		if why := joinNonEmpty(whyA, whyB); why != "" {
			p.Left = append(p.Left, Left{f.name, why, whyA == ""})
			searches, each := "the search of "+b.name, "it"
			if whyA != "" {
				searches = "the search of " + a.name
			}
			if whyA != "" && whyB != "" {
				searches, each = "the searches of both", "each"
			}
			p.searchMore = searches + " gave no capacity: pitot find --continue RUN goes on with " + each
		} else {
			p.addTested(f, sa, sb, o)
		}
		c.Pairs = append(c.Pairs, p)
	}
	return n
}

// boundChange says what the bounds of both sides leave of the change. Each of them is wrong in
// 2.5 % of searches, so that either of these is in 5 %.
func (p *CapacityPair) boundChange() {
	if p.A.AtMost != nil && p.B.AtLeast != nil {
		p.ChangeAtLeast = new(*p.B.AtLeast / *p.A.AtMost - 1)
	}
	if p.A.AtLeast != nil && p.B.AtMost != nil {
		p.ChangeAtMost = new(*p.B.AtMost / *p.A.AtLeast - 1)
	}
}

// foundBySearches returns the result of a side's searches. Its estimates are in s, unless why says
// why there is none.
func (m *measured) foundBySearches(k objective, s sample, why string) Found {
	launches := m.searchesUnder(k)
	f := Found{Launches: len(launches), Why: why, NoLoad: true}
	if why == "" {
		var d Spread
		d.addFigure(k.capacityFigure(), s, "")
		f.Estimate, f.CI95 = &d.Values[0].Value, d.Values[0].CI95
	}
	var costs []float64
	for i, searches := range launches {
		for k, one := range searches {
			f.NoLoad = f.NoLoad && one.Floor != nil
			if i+k == 0 {
				f.Binding = one.Binding
			} else if f.Binding != one.Binding {
				f.Binding = ""
			}
		}
		one := middleSearch(searches)
		if usd := one.source.Run.CapacityCost(); usd != nil {
			costs = append(costs, *usd)
		}
		if len(launches) > 1 {
			continue
		}
		f.CI95 = one.CI95
		if one.Bounds != nil && one.Floor == nil {
			f.AtLeast, f.Level = one.Load, one.Bounds.Level
			if one.Bracket != nil {
				f.AtMost = one.Bracket[1]
			}
		}
	}
	if n := len(costs); n > 0 && n == len(launches) {
		sum := 0.
		for _, x := range costs {
			sum += x
		}
		f.USDPerMOutput = new(sum / float64(n))
	}
	return f
}

// middleSearch is the one of a launch's searches whose estimate is in the middle.
func middleSearch(searches []foundCapacity) foundCapacity {
	var known []foundCapacity
	for _, s := range searches {
		if s.Estimate != nil {
			known = append(known, s)
		}
	}
	if len(known) < len(searches) {
		return searches[0]
	}
	stats.SortStable(known, func(a, b foundCapacity) int { return cmp.Compare(*a.Estimate, *b.Estimate) })
	return known[(len(known)-1)/2]
}

// capacityEstimates gives the estimate of each launch, or why not.
func (m *measured) capacityEstimates(k objective) (s sample, why string) {
	s.side = m.name
	for _, searches := range m.searchesUnder(k) {
		var vs []value
		for _, c := range searches {
			if c.Estimate == nil {
				return s, m.name + ": " + cmp.Or(reasons.Text(c.Why), "no estimate")
			}
			vs = append(vs, value{x: *c.Estimate, ci: c.CI95})
		}
		s.addRepeats(vs)
	}
	return s, ""
}

// unlikeSearches says why the searches of two sides have nothing in common.
func unlikeSearches(a, b *measured) error {
	x, y := a.searches[0].all[0], b.searches[0].all[0]
	switch {
	case x.SLO != y.SLO:
		return say.Errorf("%s and %s were searched for different SLOs: %s, and %s", a.name, b.name, x.SLO, y.SLO).WithHint("search both for one: pitot find --slo")
	case x.Over != y.Over:
		return say.Errorf("%s and %s were searched over different loads: %s, and %s", a.name, b.name, x.Over, y.Over).WithHint("search both with the same --over")
	}
	return unlikeWorkloads(a, b, x.source.Run, y.source.Run)
}

// FewLaunches is why there is no verdict on systems, none if there may be one.
func (p *Pair) FewLaunches() result.Reason { return fewLaunches(p.Launches[0], p.Launches[1]) }
