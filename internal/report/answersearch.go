package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// What the terminal shows by default of a search for the capacity and of a sweep.

// namedLoad writes a load with its unit, as a sentence has it: "20.8 req/s", "12 users".
func namedLoad(over string) func(float64) string {
	return func(x float64) string {
		if result.IsClosedLoop(over) && x == math.Trunc(x) { // users come whole
			return say.Count(int(x)) + " " + result.LoadUnit(over)
		}
		return say.Quantity(x) + " " + result.LoadUnit(over)
	}
}

// capacitySentence is the answer of a search: the load to quote first.
func capacitySentence(c *result.Capacity) string {
	load := namedLoad(c.Over)
	sure := say.Percent(boundConfidence(c)) + " sure"
	if asked := c.Asked(); asked != nil {
		switch c.AskedMet() {
		case result.Yes:
			return load(*asked) + ": SLO met (verified, " + sure + ")"
		case result.No:
			return load(*asked) + ": SLO missed (" + sure + ")"
		}
		return load(*asked) + ": undecided whether the SLO is met"
	}
	var most *float64
	if c.Bracket != nil {
		most = c.Bracket[1]
	}
	switch least := highestWithinSLO(c); {
	case c.Floor != nil:
		return fmt.Sprintf("No load meets the SLO: at %s, %s of %s missed %s", load(c.Floor.Load), say.Count(c.Floor.Violations), say.Plural(c.Floor.Requests, "request"), c.Floor.Spec)
	case c.Carried != nil:
		return fmt.Sprintf("The SLO is never missed; the server carries %s req/s (%s)", say.Quantity(c.Carried.RequestsPerS), fromTo(c.Carried.CI95))
	case c.Unmet != nil && least == nil:
		return fmt.Sprintf("No load met the SLO so far (%s sure): at %s, %s of %s missed it", say.Percent(c.Unmet.Confidence), load(c.Unmet.Load), say.Count(c.Unmet.Violations), say.Plural(c.Unmet.Requests, "request"))
	case least != nil && c.Load != nil && *least == *c.Load:
		return fmt.Sprintf("Capacity: at least %s within the SLO (verified, %s)", load(*least), sure)
	case least != nil:
		return fmt.Sprintf("Capacity: at least %s within the SLO (%s)", load(*least), sure)
	case c.Estimate != nil && c.CI95 != nil:
		return fmt.Sprintf("Capacity: about %s within the SLO (%s), not verified", load(*c.Estimate), fromTo(*c.CI95))
	case most != nil && c.Likely != nil:
		return fmt.Sprintf("Capacity: %s to %s within the SLO, not yet 95 %% sure", say.Quantity(c.Likely[0]), load(c.Likely[1]))
	case most != nil:
		return fmt.Sprintf("Capacity: at most %s within the SLO (%s)", load(*most), sure)
	case c.Likely != nil:
		return fmt.Sprintf("Capacity: %s to %s within the SLO, not yet 95 %% sure", say.Quantity(c.Likely[0]), load(c.Likely[1]))
	}
	return "Capacity: no bound is 95 % sure yet"
}

// capacityFacts are what the answer of a search rests on.
func capacityFacts(run *result.Run) (facts []labelled) {
	c := run.Capacity
	load := namedLoad(c.Over)
	add := func(label string, value ...string) { facts = addLine(facts, label, value) }
	add("SLO", c.SLO)
	switch {
	case c.Estimate != nil && c.CI95 != nil:
		estimate := fmt.Sprintf("%s by a fitted curve, 95 %% interval %s", load(*c.Estimate), fromTo(*c.CI95))
		if x := highestWithinSLO(c); x != nil {
			advice := "promise "
			if isSimulated(run) {
				advice = "count on "
			}
			estimate += "; not verified, so " + advice + say.Quantity(*x)
		}
		add("Estimate", estimate)
	case c.Bracket != nil && c.Bracket[1] != nil && c.Floor == nil:
		add("At most", load(*c.Bracket[1])+" ("+say.Percent(boundConfidence(c))+" sure)")
	}
	if x := c.Likely; x != nil && c.Estimate == nil && !(c.Bracket != nil && c.Bracket[0] != nil && c.Bracket[1] != nil && x[0] <= *c.Bracket[0] && x[1] >= *c.Bracket[1]) {
		add("Probably", say.Quantity(x[0])+" to "+load(x[1])+", not yet 95 % sure")
	}
	if v := c.Verified; v != nil {
		missed := fmt.Sprintf("%s of %s missed a limit", say.Count(v.Violations), say.Plural(v.Requests, "request"))
		if v.Errors > 0 {
			missed += fmt.Sprintf(" (%s failed)", say.Count(v.Errors))
		}
		label, bound := "Verified", "at most "+say.PercentAtMost(v.Upper)
		switch {
		case v.Refuted && v.Lower > 0:
			label, bound = "Refuted", "at least "+say.PercentAtLeast(v.Lower)
		case !v.Passed && c.Load != nil && *c.Load != v.Load: // a lighter load was verified
			label = "Also tried"
		case !v.Passed:
			label = "Not verified"
		}
		add(label, fmt.Sprintf("at %s, %s: %s of requests (95 %% sure), %s allowed", load(v.Load), missed, bound, say.Percent(v.Allowed)))
	}
	if f := c.Floor; f != nil {
		add("Missed", fmt.Sprintf("at least %s of requests at any load (%s sure), %s allowed; %s", say.Percent(f.Lower), say.Percent(boundConfidence(c)), say.Percent(f.Allowed), floorCause(f)))
	}
	if severalLimits(c) {
		add("Limit hit", append([]string{c.Binding + " first"}, otherLimits(c, load)...)...)
	}
	add("Cost", capacityCost(run, load)...)
	add("Users", userDensity(c)...)
	return facts
}

// searchFacts are the facts of a search on the terminal, with what limits the server and what the
// measurement is worth.
func (m *Model) searchFacts() []labelled {
	facts := capacityFacts(m.Run)
	at := slices.IndexFunc(facts, func(l labelled) bool { return l.Label == "Cost" })
	if at < 0 {
		at = len(facts)
	} else {
		facts[at].Value = facts[at].Value[:min(2, len(facts[at].Value))]
	}
	facts = slices.Insert(facts, at, labelled{Label: "Bottleneck", Value: []string{strings.TrimSuffix(m.Why, ".")}})
	return append(facts, m.Overview.measurementFact(m.Run), simulatedFact(m.Run))
}

// measurementFact says what the measurement of many loads is worth.
func (o *Overview) measurementFact(run *result.Run) labelled {
	return labelled{Label: "Measurement", Value: []string{o.measurementText(run)},
		Color: map[result.Verdict]string{result.Invalid: red, result.ValidWithFlags: yellow}[run.Verdict]}
}

// otherLimits says what is known of the limits that are not reached first.
func otherLimits(c *result.Capacity, load func(float64) string) (list []string) {
	for _, l := range c.Limits {
		switch {
		case l.Spec == c.Binding:
		case l.Estimate != nil && l.Why.IsNone():
			list = append(list, l.Spec+" at "+load(*l.Estimate))
		case l.Why.Code == result.ReasonCode(stats.NoViolation):
			list = append(list, l.Spec+" still met there")
		}
	}
	return list
}

// writeSearch writes a search for the capacity.
func (m *Model) writeSearch(p *printer) {
	c, o := m.Run.Capacity, m.Overview
	p.writeFacts(m.searchFacts())
	around := c.Load
	for _, x := range []*float64{c.Estimate, highestWithinSLO(c)} {
		if x != nil {
			around = x
		}
	}
	t := m.loadTable(around, max(5-p.tight, 3))
	m.writeLoadTable(p, t)
	notes := m.overviewNotes()
	if !c.Why.IsNone() && c.Floor == nil {
		notes = slices.Insert(notes, 0, note{Text: asSentence(strings.Join(nonEmpty(ReasonText(c.Why)), " · "))})
	}
	if x := c.NotEmptiedS; x != nil {
		notes = append(notes, note{Warning: true, Text: fmt.Sprintf("%s after an overload the server still worked on its requests. Later windows may have waited for them.", say.Seconds(*x))})
	}
	if x := limitedFrom(m.Run); x != nil {
		notes = append(notes, note{Warning: true, Text: "From " + namedLoad(c.Over)(*x) + " on the server's rate limits refuse requests (429). This capacity is what they allow."})
	}
	if c.Estimate != nil || c.Bounds != nil {
		notes = append(notes, note{Text: "Holds for this start of the server. Another start may differ."})
	}
	notes = append(notes, note{Text: say.Plural(c.Requests, "request") + " were measured in " + m.spanText(c.Seconds) + "."})
	p.writeNotes(notes, false, m.fullCommand())
	if len(o.Facts) > 0 {
		p.writeFacts([]labelled{m.setupFact()})
	}
}

// spanText writes a length of time, which is not the user's where the server is simulated.
func (m *Model) spanText(seconds float64) string {
	if m.Run.Environment.Stamps == "virtual" {
		return say.Seconds(seconds) + " of simulated time"
	}
	return say.Seconds(seconds)
}

// overviewNotes are the notes on a search or a sweep that its checks and warnings make.
func (m *Model) overviewNotes() (notes []note) {
	for _, text := range m.Warnings {
		notes = append(notes, note{Text: asSentence(text), Warning: true})
	}
	for i := range m.Overview.Failed {
		f := &m.Overview.Failed[i]
		text := fmt.Sprintf("%s at %s: %s (limit %s). %s", f.Name, say.Plural(f.Points, f.Unit), f.Value, f.Limit, f.Advice)
		notes = append(notes, note{Text: strings.TrimSpace(text), Warning: true})
	}
	for _, f := range m.Facts[min(2, len(m.Facts)):] {
		notes = append(notes, note{Text: asSentence(strings.Join(f, ", "))})
	}
	return notes
}

// curveFacts are what the loads of a sweep show together.
func curveFacts(run *result.Run) (facts []labelled) {
	c := run.Curve
	load := namedLoad(c.Over)
	add := func(label string, value ...string) { facts = addLine(facts, label, value) }
	for i := range run.Points {
		if s := run.Points[i].SLO; s != nil {
			add("SLO", s.Spec)
			break
		}
	}
	if x := c.Crossing; x != nil {
		add("Limit lies", crossingText(c))
		if x.Binding != "" && x.Binding != x.SLO {
			add("Limit hit", x.Binding+" first")
		}
	}
	if k := c.Knee; k != nil {
		text := load(k.Load)
		if k.Resampled != nil {
			text += " (" + fromTo(*k.Resampled) + " by resampling)"
		}
		add("Knee", text+": beyond it latency grows faster than throughput")
	}
	if s := c.Saturation; s != nil {
		most := 0.
		for i := range run.Points {
			most = max(most, valueOrZero(run.Points[i].Throughput.RequestsPerS))
		}
		text := say.Quantity(most) + " req/s measured; by a fitted curve " + say.Quantity(s.RequestsPerS)
		if s.CI95 != nil && s.CI95[1] > most {
			text += ", at most " + say.Quantity(s.CI95[1])
		}
		add("Saturation", text)
	}
	if c.UnstableFrom != nil {
		text := "at " + load(*c.UnstableFrom)
		if below := heaviestBelow(run, *c.UnstableFrom); below > 0 {
			text += ", not at " + load(below)
		}
		add("Queue grows", text)
	}
	return addLine(facts, "Cheapest", cheapestFact(run).Value)
}

// cheapestFact says at which load of a sweep a token costs least. It has no value if no price is known.
func cheapestFact(run *result.Run) labelled {
	f := labelled{Label: "Cheapest"}
	if at, usd := cheapestPoint(run); at >= 0 {
		within := ""
		if run.Points[at].SLO != nil {
			within = " within the SLO"
		}
		f.Value = []string{fmt.Sprintf("$%s per million output tokens%s, at %s", say.Quantity(usd), within, namedLoad(run.Curve.Over)(run.Points[at].Load.Value()))}
	}
	return f
}

// heaviestBelow returns the heaviest measured load below one, 0 if there is none.
func heaviestBelow(run *result.Run, load float64) (heaviest float64) {
	for i := range run.Points {
		if x := run.Points[i].Load.Value(); x < load {
			heaviest = max(heaviest, x)
		}
	}
	return heaviest
}

// writeSweep writes a sweep.
func (m *Model) writeSweep(p *printer) {
	c, run := m.Run.Curve, m.Run
	facts := curveFacts(run)
	users := usersFacts(run)
	if len(users) > 0 {
		facts = append(users, labelled{Label: "Bottleneck", Value: []string{strings.TrimSuffix(m.Why, ".")}})
	}
	p.writeFacts(append(facts, m.Overview.measurementFact(run), simulatedFact(run)))
	loads, held, next := judgedLoads(run)
	var around *float64
	switch {
	case held >= 0:
		around = &loads[held].load
	case next >= 0:
		around = &loads[next].load
	case c.Knee != nil:
		around = &c.Knee.Load
	}
	m.writeLoadTable(p, m.loadTable(around, mostRows-p.tight))
	notes := m.overviewNotes()
	if !c.NoKnee.IsNone() && c.Knee == nil && len(users) == 0 {
		notes = append(notes, note{Text: asSentence(noKnee(c))})
	}
	if x := c.Crossing; x != nil {
		notes = append(notes, note{Text: "A capacity to promise needs a search: pitot find with the same SLO."})
	}
	if n := c.LeftOut; n > 0 {
		notes = append(notes, note{Warning: true, Text: fmt.Sprintf("%s %s INVALID and left out of knee and saturation.", say.Plural(n, m.Overview.Unit), wasOrWere(n))})
	}
	p.writeNotes(notes, false, m.fullCommand())
	p.writeFacts([]labelled{m.setupFact()})
}

// sweepSentence is the answer of a sweep.
func sweepSentence(run *result.Run, o *Overview) string {
	c := run.Curve
	load := namedLoad(c.Over)
	of := " (" + say.Plural(len(run.Points), o.Unit) + " measured)"
	if isSimulated(run) {
		of = " (" + say.Plural(len(run.Points), o.Unit) + " simulated)"
	}
	if n := invalidPoints(run); 2*n > len(run.Points) {
		if a := answerOfUsers(userLoads(run)); a.most != nil {
			return fmt.Sprintf("INVALID at %d of %s: latencies do not hold, %s tok/s at least do", n, say.Plural(len(run.Points), o.Unit), say.Quantity(a.most.tokens))
		}
		return fmt.Sprintf("INVALID at %d of %s", n, say.Plural(len(run.Points), o.Unit))
	}
	answers := func(p result.Point) bool { return p.Outcome != result.Failing }
	if len(run.Points) > 0 && !slices.ContainsFunc(run.Points, answers) {
		return loadSentence(run, &run.Points[run.ByLoad()[0]])
	}
	if text := usersSentence(run); text != "" {
		return text
	}
	loads, held, next := judgedLoads(run)
	name := func(i int) string { return say.Decimal(loads[i].load, 3) }
	unit := " " + result.LoadUnit(c.Over)
	switch {
	case len(loads) > 0 && held < 0 && next < 0:
		return "At no load is it decided whether the SLO is met" + of
	case len(loads) > 0 && held < 0:
		return "SLO missed at " + name(next) + unit + ", the lightest load that was decided" + of
	case len(loads) > 0 && next < 0:
		return "SLO met up to " + name(held) + unit + ", the heaviest load that was decided" + of
	case len(loads) > 0 && next == held+1:
		return "SLO met up to " + name(held) + unit + ", missed at " + name(next) + of
	case len(loads) > 0:
		return "SLO met up to " + name(held) + unit + ", missed at " + name(next) + ", undecided in between"
	case c.Knee != nil && c.Saturation != nil:
		return fmt.Sprintf("Knee at %s, saturation at %s req/s%s", load(c.Knee.Load), say.Quantity(c.Saturation.RequestsPerS), of)
	case c.Knee != nil:
		return "Knee at " + load(c.Knee.Load) + of
	case c.Saturation != nil:
		return fmt.Sprintf("Saturation at %s req/s%s", say.Quantity(c.Saturation.RequestsPerS), of)
	case len(c.Points) > 0:
		return strings.TrimSuffix(straightCurveText(run), ".")
	}
	return "No load was measured well enough to say anything"
}

// loadTable returns a row for each load, of at most so many loads: those nearest to one, in their
// order.
func (m *Model) loadTable(around *float64, rows int) Table {
	run := m.Run
	order := run.ByLoad()
	if len(order) > rows {
		at := slices.IndexFunc(order, func(i int) bool { return around != nil && run.Points[i].Load.Value() >= *around })
		if around == nil || at < 0 {
			at = len(order) - 1
		}
		from := min(max(at-rows/2, 0), len(order)-rows)
		order = order[from : from+rows]
	}
	closed := len(run.Points) > 0 && run.Points[0].Load.Concurrency != nil
	head := "req/s"
	if c := run.Capacity; c != nil {
		head = result.LoadUnit(c.Over)
	} else if closed {
		head = "users"
	}
	t := NewTable(head, "within SLO", "tok/s")
	heads := run.Metrics().WithPercentiles().Filter(func(x *metric.Metric) bool {
		return x.Show == metric.Headline && !(x.Stream && !hasStreaming(run))
	})
	heads = heads[:min(2, len(heads))]
	keys := make([][]string, len(heads)) // percentiles of each
	for i, x := range heads {
		switch keys[i] = shownOf(run.Points, x.Name); {
		case isFirstLook(run): // its windows are too short for others
			keys[i] = keys[i][:1]
		case i > 0:
			keys[i] = keys[i][1:]
		}
		t.Head = append(t.Head, headsOf(x, keys[i])...)
	}
	t.Head = append(t.Head, "n", "")
	for _, i := range order {
		p := &run.Points[i]
		within := ""
		if p.SLO != nil {
			within = say.Unknown
			if p.SLO.Attained != nil && i != run.UnderWay() {
				within = goodShareText(p.SLO)
			}
		}
		row := []string{say.Decimal(p.Load.Value(), 3), within, servedRate(p, p.Throughput.OutputTokensPerS)}
		for k, x := range heads {
			for _, key := range keys[k] {
				row = append(row, cellText(p.Metrics.SummaryOf(x.Name), key))
			}
		}
		t.AddRow(append(row, say.Count(p.Requests.Due), loadMark(run, i))...)
	}
	return t.withoutColumns(func(column int) bool {
		return !slices.ContainsFunc(t.Rows, func(r []string) bool { return r[column] != "" && r[column] != say.Unknown })
	})
}

// verifiedAt returns how a point's load was verified, nil if it was not.
func verifiedAt(run *result.Run, p *result.Point) *result.Verified {
	if c := run.Capacity; c != nil && c.Verified != nil && c.Verified.Passed && c.Verified.Requests > 0 && p.Load.Value() == c.Verified.Load {
		return c.Verified
	}
	return nil
}

// loadMark says what a reader must know of a load of a search or a sweep.
func loadMark(run *result.Run, i int) string {
	p := &run.Points[i]
	c := run.Capacity
	switch {
	case i == run.UnderWay():
		return "interrupted"
	case p.Verdict == result.Invalid:
		return "INVALID"
	case p.OverByLimits():
		return "rate limits"
	case p.Outcome == result.Failing:
		return "failing"
	case p.EndedEarly:
		return "overloaded"
	case p.Stability == stats.Unstable:
		return QueueGrows
	case verifiedAt(run, p) != nil:
		return "verified"
	case c == nil && p.SLO != nil && p.SLO.Met == result.Yes:
		return "met"
	case c == nil && p.SLO != nil && p.SLO.Met == result.No:
		return "missed"
	}
	return ""
}

// writeLoadTable writes the loads, what their marks mean, and how many are not shown.
func (m *Model) writeLoadTable(p *printer, t Table) {
	if len(t.Rows) == 0 {
		return
	}
	p.line("")
	p.writeTable(t)
	legend := append([]string{"times in ms"}, marksLegend(t)...)
	if more := len(m.Run.Points) - len(t.Rows); more > 0 {
		legend = append(legend, say.Plural(more, "more "+m.Overview.Unit)+": "+m.fullCommand())
	}
	p.writePainted(dim, legend...)
}

// measurementText says what the measurement of a search or a sweep is worth.
func (o *Overview) measurementText(run *result.Run) string {
	if isFirstLook(run) {
		text := string(run.Verdict) + ", a first look: short windows, no intervals"
		if o.Invalid > 0 {
			text += "; " + o.DiscardedText()
		}
		return text
	}
	aside := o.Aside + o.Few
	text := string(run.Verdict) + ", all checks passed at all " + say.Plural(o.Points, o.Unit)
	switch {
	case o.Clean < o.Points && o.Clean+aside == o.Points:
		text = fmt.Sprintf("%s, all checks passed at %s", run.Verdict, say.Plural(o.Clean, o.Unit))
	case o.Clean < o.Points:
		text = fmt.Sprintf("%s, %d of %s passed every check", run.Verdict, o.Clean, say.Plural(o.Points, o.Unit))
	}
	if aside > 0 {
		text += fmt.Sprintf("; %d more %s short or overloaded on purpose", aside, wasOrWere(aside))
	}
	if o.Invalid > 0 {
		text += "; " + o.DiscardedText()
	}
	return text
}
