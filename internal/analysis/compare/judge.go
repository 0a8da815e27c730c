package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// judgeRows gives every row its verdict, then the clauses and the sides theirs.
func (c *Comparison) judgeRows(o Options) {
	// Each family keeps its 5 % by itself: the metric that the comparison is made
	// for, what the clauses name, and what was not named beforehand.
	var primary, gate, others []*Row
	for i := range c.Pairs {
		for k := range c.Pairs[i].Rows {
			r := &c.Pairs[i].Rows[k]
			if r.Instruments != nil || !r.fewLaunches().IsNone() {
				continue
			}
			gated := slices.ContainsFunc(o.Clauses, func(c Clause) bool { return c.metric.name == r.Metric })
			if gated {
				gate = append(gate, r)
			}
			switch {
			case r.Primary:
				primary = append(primary, r)
			case !gated:
				others = append(others, r)
			}
		}
	}
	correctTests(gate)
	for _, r := range gate {
		r.gate, r.gateFamily = r.PAdjusted, r.family
		for _, clause := range o.Clauses {
			if clause.metric.name == r.Metric {
				c.asked++
			}
		}
	}
	correctTests(primary)
	c.Corrected = correctTests(others)
	for i := range c.Pairs {
		for k := range c.Pairs[i].Rows {
			c.Pairs[i].Rows[k].setVerdict()
		}
	}
	for _, clause := range o.Clauses {
		c.Clauses = append(c.Clauses, c.clauseOutcome(clause))
	}
	for _, s := range c.Sides[1:] {
		c.Verdicts = append(c.Verdicts, c.sideVerdict(s.Name))
	}
}

// correctTests adjusts the tests of a family for their number, and says how many tests of
// a difference there are. What is the same in every launch of both sides has none.
func correctTests(rows []*Row) int {
	adjust := func(p func(r *Row) (float64, bool), set func(r *Row, p *float64)) int {
		var ps []float64
		var of []*Row
		for _, r := range rows {
			if p, ok := p(r); ok {
				ps, of = append(ps, p), append(of, r)
			}
		}
		ps = stats.Holm(ps)
		for i, r := range of {
			set(r, &ps[i])
		}
		return len(ps)
	}
	n := adjust(func(r *Row) (float64, bool) { return r.test.d.P, r.P != nil }, func(r *Row, p *float64) { r.PAdjusted = p })
	adjust(func(r *Row) (float64, bool) {
		if r.test.below == nil {
			return 0, false
		}
		return r.test.equivalenceP(r.scale.margin), true
	}, func(r *Row, p *float64) { r.PEquivalent = p })
	for _, r := range rows {
		r.family = n
	}
	return n
}

// setVerdict gives the row its verdict. A difference that is real and smaller than
// what matters is one of those that are equivalent.
func (r *Row) setVerdict() {
	r.setDetectable()
	switch few := r.fewLaunches(); {
	case r.Instruments != nil: // nothing is known of the error
	case !few.IsNone():
		r.Verdict, r.Why = Undistinguished, few
		r.setNeeded()
	case r.PEquivalent != nil && *r.PEquivalent < alpha:
		r.Verdict = Equivalent
		if r.PAdjusted != nil && *r.PAdjusted < alpha {
			r.Why = result.Reason{Code: result.RealButSmall}
		}
	case r.test.flat && r.Change == 0:
		r.Verdict, r.Why = Undistinguished, result.Reason{Code: result.AlikeFewLaunches}
		if r.metric.share {
			r.Why = result.Reason{Code: result.AlikeFewRequests}
		}
	case *r.PAdjusted < alpha:
		r.Verdict = r.directionWord()
	case r.test.flat:
		r.Verdict, r.Why = Undistinguished, result.Reason{Code: result.LaunchesAlike}
	default:
		r.setNeeded()
		if v := r.CI95; v != nil && (v[0] > 0 || v[1] < 0) {
			r.Verdict = Unconfirmed
		}
	}
}

// directionWord says which way a row changed.
func (r *Row) directionWord() string {
	switch {
	case r.metric.share && r.isWorse():
		return Worse
	case r.metric.share:
		return Better
	case r.isWorse():
		return Slower
	}
	return Faster
}

// signedChange returns the change that a clause names, with its sign.
func (c *Clause) signedChange() float64 {
	if c.better == c.metric.more { // it rises
		return c.by
	}
	return -c.by
}

// clauseOutcome says how a clause came out over all pairs: once is enough to fire. A
// value that only B lacks cannot be judged, and may be the worst there is.
func (c *Comparison) clauseOutcome(clause Clause) Resolution {
	o := Resolution{Spec: clause.Spec, State: NotJudged, Why: "no metric that both sides measured decides it"}
	lost := ""
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if state, why := p.overloadOutcome(clause); state != "" {
			o.mergeOutcome(Resolution{State: state, Why: why})
			continue
		}
		at := slices.IndexFunc(p.Rows, func(r Row) bool { return r.Metric == clause.metric.name })
		if at < 0 || p.HasOtherInstrument() {
			if why, onlyB := p.missingRowReason(clause.metric); onlyB && lost == "" {
				lost = why
			} else if why != "" && o.State == NotJudged {
				o.Why = why
			}
			continue
		}
		r := &p.Rows[at]
		here := Resolution{State: r.clauseOutcome(clause), Why: p.sideNames(c) + r.describeChange() + " at " + p.What}
		if why := p.mayGrow(clause); why != "" && here.State == RuledOut {
			lost = cmp.Or(lost, why)
			continue
		}
		switch {
		case here.State == Undecided && !r.Why.IsNone():
			here.Why += " (" + reasons.Text(r.Why) + ")"
		case here.State != Undecided && r.gate != nil:
			here.Why += " (" + pText(*r.gate) + ")"
		}
		if p.Scope != "" {
			here.Why += ", " + string(p.Scope)
		}
		if x, ok := r.firesAt(clause); ok {
			here.Why += "; with " + p.measuredLaunches() + " it fires at " + strings.TrimLeft(r.formatAmount(x), "+-") + " with 80 % power"
		}
		if here.State == Undecided {
			here.explainUndecided(r, clause, c.asked)
		}
		o.mergeOutcome(here)
	}
	if lost != "" && o.State != Fired {
		o.State, o.Why, o.Needed = NotJudged, lost, nil
	}
	return o
}

// mergeOutcome takes over how the clause came out in one place, if that says more: of places that
// are undecided the one that needs most launches.
func (o *Resolution) mergeOutcome(here Resolution) {
	order := []string{NotJudged, RuledOut, Undecided, Fired}
	was, is := slices.Index(order, o.State), slices.Index(order, here.State)
	more := is == was && here.Needed != nil && (o.Needed == nil || *here.Needed > *o.Needed)
	if is > was || more {
		o.State, o.Why, o.Needed = here.State, here.Why, here.Needed
	}
}

// pText writes a p-value; one too small for its approximation is only bounded.
func pText(p float64) string {
	if p < 1e-9 {
		return "p < 1e-09"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// measuredLaunches names how many launches the pair has.
func (p *Pair) measuredLaunches() string {
	switch a, b := p.Launches[0], p.Launches[1]; {
	case p.Scope == TheseRuns || p.Scope == OneStart:
		return "these two runs"
	case a != b:
		return fmt.Sprintf("%d and %d launches", a, b)
	case a == 1:
		return "one launch a side"
	default:
		return fmt.Sprintf("%d launches a side", a)
	}
}

// hasTest reports whether any metric of the pair has a test.
func (p *Pair) hasTest() bool {
	return slices.ContainsFunc(p.Rows, func(r Row) bool { return !r.TooFewLaunches() })
}

// sideNames names them where there are more than two.
func (p *Pair) sideNames(c *Comparison) string {
	if len(c.Sides) == 2 {
		return ""
	}
	return p.B + " against " + p.A + ": "
}

// missingRowReason says why there is no row of a metric, "" where it is none of this
// pair, and whether only B lacks it.
func (p *Pair) missingRowReason(m figure) (why string, onlyB bool) {
	if p.HasOtherInstrument() { // its values are there, and what they are worth is not known
		return p.instrumentText() + ", at " + p.What, true
	}
	if (m.name == capacity) != (p.Load == nil) {
		return "", false
	}
	if p.Why != "" {
		return p.Why + ", at " + p.What, p.failed
	}
	for _, l := range p.Left {
		if l.Metric == m.name {
			return l.Why + ", at " + p.What, l.onlyB
		}
	}
	return "", false
}

// clauseOutcome says how a clause came out in one place: it fires where the change is
// established and, by the estimate, as large as asked; it is ruled out where a
// change as large is.
func (r *Row) clauseOutcome(c Clause) string {
	if !r.fewLaunches().IsNone() {
		return Undecided
	}
	asked := c.signedChange()
	rises := c.better == c.metric.more
	reached := r.Change >= asked
	if !rises {
		reached = r.Change <= asked
	}
	same := (r.Change > 0) == rises && r.Change != 0
	if same && reached && r.gate != nil && *r.gate < alpha {
		return Fired
	}
	least := r.scale.back(asked)
	if !rises && least == 0 {
		least = math.Copysign(0, -1)
	}
	if r.test.below != nil && r.test.below(least) < alpha {
		return RuledOut
	}
	return Undecided
}

// describeChange is a row's change in words.
func (r *Row) describeChange() string { return r.Metric + " " + r.formatAmount(r.Change) }

// formatAmount is a change in its unit.
func (r *Row) formatAmount(change float64) string {
	text := fmt.Sprintf("%+.1f %%", change*100)
	if r.metric.share {
		text = fmt.Sprintf("%+.2f points", change*100)
	}
	if !strings.ContainsAny(text, "123456789") {
		return "unchanged"
	}
	return text
}

// MissingPrimary says why a side has no value of the primary metric to compare.
func (c *Comparison) MissingPrimary(b string) string {
	for i := range c.Pairs {
		p := &c.Pairs[i]
		for _, l := range p.Left {
			if p.B == b && l.Metric == c.Primary {
				return l.Why
			}
		}
		if p.B == b && p.Why != "" {
			return p.Why
		}
	}
	return "no metric that both sides measured decides it"
}

// sideVerdict sums up the verdicts on one side's metrics.
func (c *Comparison) sideVerdict(b string) Verdict {
	v := Verdict{B: b, Lost: []string{}}
	rows, primary := map[string]int{}, map[string]int{} // verdict of a row: rows
	few, why, otherTool := "", "", ""
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if p.B != b {
			continue
		}
		if why == "" {
			why = cmp.Or(p.Why, p.searchMore)
		}
		switch {
		case p.Overload == nil:
		case p.Overload.Side == b:
			rows[Worse]++
		default:
			rows[Better]++
		}
		if p.Scope != "" && (p.hasTest() || p.Overload != nil) {
			v.Scope = p.Scope
		}
		if p.failed {
			v.Lost = append(v.Lost, p.What+": "+p.Why)
		}
		for k := range p.Rows {
			if p.Rows[k].Verdict == Undistinguished && p.Rows[k].TooFewLaunches() && (p.hasTest() || p.Overload != nil) {
				v.Untested++ // others say more
				continue
			}
			rows[p.Rows[k].Verdict]++
			if p.Rows[k].Primary {
				primary[p.Rows[k].Verdict]++
			}
			if !p.HasOtherInstrument() && !p.hasTest() {
				few = cmp.Or(few, reasons.Text(p.Rows[k].fewLaunches()))
			}
		}
		if p.HasOtherInstrument() {
			otherTool = p.instrumentText()
		}
	}
	v.Equivalent, v.Undistinguished, v.Unconfirmed = rows[Equivalent], rows[Undistinguished], rows[Unconfirmed]
	rows[Undistinguished] += rows[Unconfirmed]
	primary[Undistinguished] += primary[Unconfirmed]
	if few == "" && wordOf(rows) == NotCompared { // bounds of capacities say something, and are no estimates
		for i := range c.Pairs {
			if p := &c.Pairs[i]; p.B == b && p.Capacity != nil && p.Capacity.isComparable() {
				rows[Undistinguished]++
				few = cmp.Or(reasons.Text(p.FewLaunches()), "bounds alone were found")
			}
		}
	}
	if c.Primary != "" {
		v.Primary = wordOf(primary)
	}
	v.Word = wordOf(rows)
	if v.Word == Slower && rows[Worse] > 0 {
		v.Word = Worse
	}
	if v.Word == Faster && slices.ContainsFunc(c.Pairs, func(p Pair) bool { return p.B == b && p.Overload != nil }) {
		v.Word = Better
	}
	switch v.Word {
	case Undistinguished:
		v.Why = few
	case OtherInstrument:
		v.Why = otherTool
	case NotCompared:
		v.Why = why
	}
	return v
}

// wordOf is the verdict on a side of so many rows of each verdict.
func wordOf(rows map[string]int) string {
	if rows[Slower]+rows[Worse] > 0 && rows[Faster]+rows[Better] > 0 {
		return Mixed
	}
	for _, word := range []string{Slower, Worse, Faster, Better, Undistinguished, Equivalent, OtherInstrument} {
		if rows[word] > 0 {
			return word
		}
	}
	return NotCompared
}
