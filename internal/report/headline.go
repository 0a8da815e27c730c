package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// What a run shows as a whole: the sentence to quote, its figures, what
// limits it and the conditions it holds under.

// Headline is the sentence to quote of a run.
type Headline struct {
	Sentence string
	Interval string // how sure it is, or why that is not known
	Unsure   bool   // Interval is why it is not known
	Verdict  result.Verdict
	Because  []string // names of the checks that did not pass
}

// HasInterval reports whether the interval is known: a reason why not need not be near the
// sentence.
func (c *Headline) HasInterval() bool { return c.Interval != "" && !c.Unsure }

// noInterval returns the words of why an interval is not known.
func noInterval(why result.Reason) string {
	return "no error bar, since " + ReasonText(why)
}

// ReasonText returns the words of a reason, plain: a class in them has the user's name.
func ReasonText(r result.Reason) string { return say.PlainLine(reasons.Text(r)) }

// Figure is one number that is read at a glance.
type Figure struct {
	Name, Value, Unit string
	Note              string
}

// Condition is one thing that the headline holds under. Known is false where it
// is not known: it is never guessed.
type Condition struct {
	Name, Value string
	Known       bool
}

// notKnown stands in place of a guess.
const notKnown = "not known"

// setConclusion says what the run shows.
func (m *Model) setConclusion(run *result.Run) {
	m.Conditions = runConditions(run, m)
	switch {
	case m.Overview != nil:
		m.headlineOverview(run)
	case m.Repeats != nil:
		m.headlineRepeats()
	case len(m.Points) > 0:
		m.headlinePoint(run, &m.Points[0])
	default:
		m.Headline = Headline{Sentence: "Nothing was measured.", Verdict: result.Invalid}
		m.Limited = []string{notKnown + ": the run ended before its load began"}
		return
	}
	m.Headline.Verdict = run.Verdict
	m.Limited = limiterLines(run)
}

// atLoad is a load as a sentence begins with it.
func atLoad(p *result.Point) string {
	switch {
	case p.Load.Rate != nil:
		of := "requests"
		if p.Load.Turns != nil {
			of = "conversations"
		}
		return "At " + say.Decimal(*p.Load.Rate, 3) + " " + of + " per second"
	case p.Load.Concurrency != nil:
		return "With " + say.Plural(*p.Load.Concurrency, "concurrent user")
	}
	return "At this load"
}

func (m *Model) headlinePoint(run *result.Run, shown *PointModel) {
	c, p := &m.Headline, &run.Points[0]
	m.Figures = pointFigures(p)
	c.Because = shown.Because
	c.Sentence = loadSentence(run, p)
	c.Interval, c.Unsure = pointInterval(p)
	if n := len(m.Points); n > 1 {
		if effect := effectText(run.CacheEffect); effect != "" && run.Verdict != result.Invalid { // what both are measured for
			c.Sentence, c.Interval = say.Sentence(effect), ""
			return
		}
		c.Sentence = fmt.Sprintf("First of %d points, %s", n, c.Sentence)
	}
}

// loadSentence is the answer of one load, true when it is quoted alone.
func loadSentence(run *result.Run, p *result.Point) string {
	load, r := loadName(p), p.Requests
	if n := r.Errors[record.ErrInterrupted]; 10*n > r.Due && len(run.Points) == 1 {
		load += fmt.Sprintf(" (stopped, %d of %d requests under way)", n, r.Due)
	}
	switch s := p.SLO; {
	case r.Due == 0 && p.Seconds.Window == 0 && (run.Interrupted || run.Recovered):
		return load + ": nothing was measured, the run ended during its warm-up"
	case r.Due == 0:
		return load + ": no request was due in the measured time"
	case r.OK == 0 && run.Interrupted && 2*r.Errors[record.ErrInterrupted] > r.Due:
		return fmt.Sprintf("%s: the run was stopped before any of %s was answered", loadName(p), say.Plural(r.Due, "request"))
	case r.OK == 0:
		return load + ": none of " + say.Plural(r.Due, "request") + " was answered"
	case p.Verdict == result.Invalid: // its figures are nothing to quote
		return "INVALID: " + invalidCause(p)
	case run.Verdict == result.Invalid && len(run.Points) == 1:
		return "INVALID: records of this run are damaged or lost"
	case p.WentAway != nil:
		return fmt.Sprintf("%s: the server went away after %s, %s", load, say.Seconds(*p.WentAway), answeredOf(p))
	case p.Outcome == result.Failing && !shapedByLimits(p):
		return load + ": the server failed, " + answeredOf(p)
	case s != nil:
		return load + ": " + sloSentence(p)
	case p.Outcome == result.Unstable && p.Throughput.RequestsPerS != nil:
		return fmt.Sprintf("%s is more than the server carries: it answered %s/s and its queue grew", load, say.Quantity(*p.Throughput.RequestsPerS))
	case p.Outcome == result.Unstable:
		return load + " is more than the server carries: its queue grew"
	}
	var parts []string
	if x := p.Throughput.OutputTokensPerS; x != nil {
		parts = append(parts, say.Quantity(*x)+" output tok/s")
	} else if x := p.Throughput.RequestsPerS; x != nil {
		parts = append(parts, say.Quantity(*x)+" responses/s")
	}
	for _, d := range headlineMetrics(&p.Metrics) {
		for _, key := range []string{"p99", "p50"} {
			if v := cellText(d.Summary, key); v != say.Unknown && len(parts) < 3 {
				parts = append(parts, key+" "+d.Metric.Label+" "+strings.Replace(v, "~", "≈ ", 1)+" "+string(d.Unit))
				break
			}
		}
	}
	if len(parts) == 0 {
		return load + ": " + answeredOf(p)
	}
	return load + ": " + strings.Join(parts, ", ")
}

// loadName names a load: "24 req/s", "8 users", "2 conversations/s".
func loadName(p *result.Point) string {
	switch {
	case p.Load.Rate != nil && p.Load.Turns != nil:
		return say.Decimal(*p.Load.Rate, 3) + " conversations/s"
	case p.Load.Rate != nil:
		return say.Decimal(*p.Load.Rate, 3) + " req/s"
	case p.Load.Concurrency != nil:
		return say.Plural(*p.Load.Concurrency, "user")
	}
	return "This load"
}

// sloSentence says whether a load meets the SLO, as far as one run can tell, and the limit that
// decides it.
func sloSentence(p *result.Point) string {
	s := p.SLO
	word := map[result.Met]string{result.Yes: "SLO met", result.No: "SLO missed", result.Undecided: "SLO undecided"}[s.Met]
	if s.Near && s.Met != result.Undecided {
		word += " in this run, too close to call"
	}
	if p.Outcome == result.Unstable && p.Throughput.RequestsPerS != nil {
		return fmt.Sprintf("%s, its queue grew at %s answered/s", word, say.Quantity(*p.Throughput.RequestsPerS))
	}
	if text := decidingLimit(p); text != "" {
		word += " (" + text + ")"
	}
	return word
}

// decidingLimit describes the limit that decides an SLO: the one that is missed by most, else the
// one that is nearest to being missed.
func decidingLimit(p *result.Point) (text string) {
	s := p.SLO
	worst, share := -1., jointShares(s.Spec)
	for i := range s.Limits {
		l := &s.Limits[i]
		if l.Met != s.Met {
			continue
		}
		name, ratio, is := nameOfLimit(l), 0., ""
		switch {
		case l.Metric == "errors" || l.Metric == "wrong":
			if l.Value == nil {
				continue
			}
			is = say.PercentNear(*l.Value, l.Limit) + " " + name + ", " + say.Percent(l.Limit) + " allowed"
			ratio = *l.Value / max(l.Limit, 1e-9)
		case l.Percentile > 0 && l.Value != nil:
			ratio = *l.Value / l.Limit
			is = fmt.Sprintf("%s %s%s of %s ms", name, fewLimitMark(p, l), say.QuantityNear(*l.Value, l.Limit), say.Decimal(l.Limit, 3))
			if l.Met == result.No && *l.Value < l.Limit {
				is, ratio = name+" over "+say.Decimal(l.Limit, 3)+" ms with failures counted", 1
			}
		case l.Attained != nil:
			needed := share(l.Class)
			ratio = (1 - *l.Attained) / max(1-needed, 1e-9)
			is = say.Percent(*l.Attained) + " of requests within " + l.Spec
			if needed > 0 {
				is = fmt.Sprintf("%s of requests within %s, %s needed", say.PercentNear(*l.Attained, needed), l.Spec, say.Percent(needed))
			}
		}
		if ratio > worst && is != "" {
			worst, text = ratio, is
		}
	}
	if s.Attained != nil && s.Deciding == "" && s.Met == result.No && text == "" { // all limits together
		text = goodShareText(s) + " of requests within all limits"
	}
	return text
}

// fewLimitMark marks the value of a limit on a percentile that rests on few samples.
func fewLimitMark(p *result.Point, l *result.Limit) string {
	if l.Class != "" || l.Percentile == 0 {
		return ""
	}
	for _, c := range metric.Percentiles() {
		if math.Abs(c.P-l.Percentile/100) < 1e-9 && caveatOf(p.Metrics.SummaryOf(l.Metric), c.Key) == fewSamples {
			return "~"
		}
	}
	return ""
}

// pointInterval says how sure the answer of one load is; unsure means that it says why that is not
// known.
func pointInterval(p *result.Point) (text string, unsure bool) {
	switch s := p.SLO; {
	case p.Requests.OK == 0:
		return "", false
	case p.Verdict == result.Invalid:
		return stillKnown(p), false
	case s != nil:
		switch {
		case s.CI95 != nil:
			text = "95 % interval of the share of good requests: " + say.Percent(s.CI95[0]) + " to " + say.Percent(s.CI95[1])
		case !s.NoInterval.IsNone():
			text, unsure = noInterval(s.NoInterval), true
		}
		if why := strings.Join(nonEmpty(s.Deciding, ReasonText(s.Why)), ": "); s.Met == result.Undecided && why != "" {
			text = strings.Join(nonEmpty(text, why), " · ")
		}
		return text, unsure
	case p.Outcome == result.Unstable || p.Outcome == result.Failing:
		return "", false
	}
	for _, d := range headlineMetrics(&p.Metrics) {
		for _, key := range []string{"p99", "p50"} {
			if d.Summary == nil {
				continue
			}
			if ci, ok := d.CI95[key]; ok {
				return fmt.Sprintf("95 %% interval of %s %s: %s %s", key, d.Metric.Label, fromTo(ci), d.Unit), false
			}
		}
	}
	if !p.Throughput.NoInterval.IsNone() {
		return noInterval(p.Throughput.NoInterval), true
	}
	return "", false
}

// invalidCause says why a point is INVALID: a busy machine before what it did to the client.
func invalidCause(p *result.Point) string {
	var causes []string
	busy := ""
	for i := range p.Checks {
		c := &p.Checks[i]
		switch {
		case c.Name == result.CheckHost && c.Status != result.Pass:
			busy = fmt.Sprintf("this machine was too busy to measure (others used %.0f %% of its CPU)", 100*valueOrZero(c.Value))
		case c.Status == result.Fail:
			causes = append(causes, cmp.Or(expandCheck(checkWords()[c.Name].Invalid, c, ""), c.Name))
		}
	}
	if busy != "" && slices.Equal(failedChecks(p), []string{result.CheckSendLag}) {
		return busy
	}
	return strings.Join(causes, "; ")
}

// answeredOf says how many requests were answered.
func answeredOf(p *result.Point) string {
	return say.Count(p.Requests.OK) + " of " + say.Plural(p.Requests.Due, "request") + " answered"
}

// stillKnown returns which figures of an INVALID point hold all the same.
func stillKnown(p *result.Point) string {
	failed := failedChecks(p)
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(failed, name) })
	}
	var text string
	switch {
	case has(result.CheckAccounting, result.CheckRecording, result.CheckDamage, result.CheckOwnErrors): // records are missing
		text = "Still known: at least " + say.Plural(p.Requests.OK, "request") + " were answered."
	case has(result.CheckClientLimits, result.CheckWorkers):
		text = "Still known: " + answeredOf(p) + ", and the client did not send all of them."
	default: // it was slow, and lost nothing
		text = "Still known: " + answeredOf(p) + ". TTFT and E2E were at most what was measured: a slow client only adds to them."
	}
	if len(p.Server) > 0 {
		text += " The server's own metrics hold."
	}
	return text
}

// failedChecks are the names of the checks that make a point INVALID.
func failedChecks(p *result.Point) (names []string) {
	for _, c := range p.Checks {
		if c.Status == result.Fail {
			names = append(names, c.Name)
		}
	}
	return names
}

// pointFigures are throughput and goodput side by side, and the latencies.
func pointFigures(p *result.Point) (list []Figure) {
	t := p.Throughput
	if due := t.DuePerS; due != nil { // what goodput is part of
		list = append(list, Figure{Name: "Arrived", Value: say.Quantity(*due), Unit: "req/s", Note: say.Count(p.Requests.OK) + " of " + say.Count(p.Requests.Due) + " answered"})
	}
	if p.Verdict == result.Invalid { // the others stand in the tables, and are nothing to read at a glance
		return list
	}
	if f := p.Requests.Failed; f > 0 && p.Requests.Due > 0 && (p.Outcome == result.Failing || p.Outcome == result.Degraded) {
		note := say.Count(f) + " failed"
		if classes := ByCount(p.Requests.Errors); len(classes) > 0 {
			note = say.Truncate(say.Count(p.Requests.Errors[classes[0]])+" "+say.PlainLine(classes[0]), 40)
		}
		list = append(list, Figure{Name: "Errors", Value: say.Percent(float64(f) / float64(p.Requests.Due)), Note: note})
	}
	if g := goodputOfPoint(p); g != nil {
		list = append(list, Figure{Name: "Goodput", Value: say.Quantity(g.RequestsPerS), Unit: "req/s", Note: "within the SLO"})
	}
	rate := func(name string, x *float64, unit, key string) {
		if x == nil {
			return
		}
		f := Figure{Name: name, Value: say.Quantity(*x), Unit: unit}
		if ci, ok := t.CI95[key]; ok {
			f.Note = fromTo(ci)
		}
		if key == "requests_per_s" {
			f.Note = strings.TrimPrefix(f.Note+" · completed", " · ")
		}
		if g := t.PerGPU; g != nil && g.GPUs > 1 && key == "output_tokens_per_s" && g.OutputTokensPerS != nil {
			f.Note = strings.TrimPrefix(f.Note+" · "+say.Quantity(*g.OutputTokensPerS)+" per GPU", " · ")
		}
		list = append(list, f)
	}
	rate("Throughput", t.RequestsPerS, "req/s", "requests_per_s")
	rate("Output", t.OutputTokensPerS, "tok/s", "output_tokens_per_s")
	for _, d := range headlineMetrics(&p.Metrics) {
		if d.Summary == nil || !d.Summary.NoSteadyState().IsNone() {
			continue
		}
		unit, tail := string(d.Unit), shownOf([]result.Point{*p}, d.Name)[1]
		shown, note := "p50", percentileName(tail)+" "+cellText(d.Summary, tail)+" "+unit
		if key, limit := limitedPercentile(p.SLO, d.Name); key != "" && key != "p50" && cellText(d.Summary, key) != say.Unknown {
			shown, note = key, "limit "+say.Exact(limit)+" ms, p50 "+cellText(d.Summary, "p50")
		}
		list = append(list, Figure{Name: d.Metric.Label + " " + percentileName(shown), Value: cellText(d.Summary, shown), Unit: unit, Note: note})
	}
	if c := p.Cost; c != nil && c.USDPerMOutput != nil {
		f := Figure{Name: "Cost", Value: "$" + say.Quantity(*c.USDPerMOutput), Unit: "/M tok", Note: "output, at " + strings.TrimPrefix(strings.TrimPrefix(priceText(c), "at "), "the list price of ")}
		if c.USDPerMGoodOutput != nil && meetsSLO(p) {
			f.Note = "$" + say.Quantity(*c.USDPerMGoodOutput) + " within the SLO"
		}
		list = append(list, f)
	}
	if e := p.Energy; e != nil && e.JoulesPerOutputToken != nil {
		list = append(list, Figure{Name: "Energy", Value: say.Quantity(*e.JoulesPerOutputToken), Unit: "J per output token", Note: energyError(e)})
	}
	return list
}

// limitedPercentile returns the key of the percentile of a metric that an SLO limits for all
// requests, and the limit. The key is "" where there is none.
func limitedPercentile(s *result.SLO, name metric.Name) (key string, limit float64) {
	if s == nil {
		return "", 0
	}
	for _, l := range s.Limits {
		if l.Metric != name || l.Class != "" {
			continue
		}
		for _, p := range metric.Percentiles() {
			if math.Abs(100*p.P-l.Percentile) < 1e-9 {
				return p.Key, l.Limit
			}
		}
	}
	return "", 0
}

func (m *Model) headlineOverview(run *result.Run) {
	c, o := &m.Headline, m.Overview
	for _, f := range o.Failed {
		c.Because = append(c.Because, f.Name)
	}
	if k := run.Capacity; k != nil {
		load := func(x float64) string { return say.Quantity(x) + " " + result.LoadUnit(k.Over) }
		c.Sentence = capacitySentence(k)
		if isSimulated(run) {
			if rest, found := strings.CutPrefix(c.Sentence, "Capacity"); found {
				c.Sentence = "Simulated capacity" + rest
			} else {
				c.Sentence = "Simulated: " + c.Sentence
			}
		}
		var sure []string
		switch {
		case k.CI95 != nil && k.Estimate != nil:
			sure = append(sure, fmt.Sprintf("estimate %s, 95 %% interval %s, for this start of the server", load(*k.Estimate), fromTo(*k.CI95)))
		case highestWithinSLO(k) != nil && k.Bounds != nil && k.Bracket != nil && k.Bracket[1] != nil:
			sure = append(sure, "and not above "+load(*k.Bracket[1]))
		case k.Floor != nil:
			sure = append(sure, floorCause(k.Floor))
		case !k.Why.IsNone():
			sure = append(sure, ReasonText(k.Why))
		}
		if v := k.Verified; v != nil && v.Passed {
			sure = append(sure, fmt.Sprintf("%s of %s missed a limit at %s", say.Count(v.Violations), say.Plural(v.Requests, "request"), load(v.Load)))
		}
		c.Interval = strings.Join(sure, " · ")
		m.capacityFigures(k)
		return
	}
	if k := run.Curve; k != nil {
		c.Sentence = sweepSentence(run, o)
		lies := crossingText(k)
		switch {
		case usersSentence(run) != "":
			list := userLoads(run)
			a := answerOfUsers(list)
			c.Interval = comfortText(list, &a)
		case lies != "":
			c.Interval = "the limit lies " + lies
		case k.Knee != nil && k.Knee.Resampled != nil: // the sentence has it
		case !k.NoKnee.IsNone():
			c.Interval = noKnee(k)
		default:
			c.Interval = "no range: the loads are too few"
		}
		m.curveFigures(k, run)
	}
}

// straightCurveText returns what a curve shows that has neither a knee nor a saturation.
func straightCurveText(run *result.Run) string {
	order := run.ByLoad()
	least, most := run.Points[order[0]].Load.Value(), run.Points[order[len(order)-1]].Load.Value()
	unit := " " + result.LoadUnit(run.Curve.Over)
	if from := run.Curve.UnstableFrom; from != nil {
		return "From " + say.Decimal(*from, 3) + unit + " on the queue grows for as long as the load lasts."
	}
	return "From " + say.Decimal(least, 3) + " to " + say.Decimal(most, 3) + unit + " there is neither a knee nor a saturation."
}

// addFigure adds a number that is read at a glance.
func (m *Model) addFigure(name, value, unit, note string) {
	m.Figures = append(m.Figures, Figure{Name: name, Value: value, Unit: unit, Note: note})
}

func (m *Model) capacityFigures(k *result.Capacity) {
	unit := result.LoadUnit(k.Over)
	addLoad := func(name string, x *float64, note string) {
		if x != nil {
			m.addFigure(name, say.Quantity(*x), unit, note)
		}
	}
	addLoad("Capacity", highestWithinSLO(k), "at least: the load to quote")
	note := ""
	if k.CI95 != nil {
		note = fromTo(*k.CI95)
	}
	addLoad("Estimate", k.Estimate, note)
	if b := k.Bracket; b != nil && k.Estimate == nil {
		addLoad("At most", b[1], say.Percent(boundConfidence(k))+" sure")
	}
	if f := k.Floor; f != nil {
		m.addFigure("Violated at any load", say.Percent(float64(f.Violations)/float64(max(f.Requests, 1))), "", "of "+say.Plural(f.Requests, "request")+" at up to "+say.Quantity(f.Load)+" "+unit)
	}
	if v := k.Verified; v != nil {
		word := map[bool]string{true: "Verified", false: "Not verified"}[v.Passed]
		note := "at most " + say.Percent(v.Upper) + " of requests miss it"
		if v.Refuted && v.Lower > 0 {
			word, note = "Refuted", "at least "+say.Percent(v.Lower)+" of requests miss it"
		}
		if met := highestWithinSLO(k); v.Passed && met != nil && *met == v.Load { // the tile of the capacity has it
			m.Figures[0].Note = "verified: " + note
		} else {
			addLoad(word, &v.Load, note)
		}
	}
	measured := say.Seconds(k.Seconds)
	if n := countedAlone(k); n > 0 {
		measured = say.Count(n) + " of them counted alone · " + measured
	}
	m.addFigure("Measured", say.Count(k.Requests), "requests", measured)
}

func (m *Model) curveFigures(k *result.Curve, run *result.Run) {
	unit := result.LoadUnit(k.Over)
	if loads, held, next := judgedLoads(run); held >= 0 {
		note := "a number to promise: pitot find"
		if next >= 0 {
			note = "missed at " + say.Decimal(loads[next].load, 3) + "; " + note
		}
		m.addFigure("SLO met up to", say.Decimal(loads[held].load, 3), unit, note)
		m.addLimitedFigure(run, loads[held].load)
	}
	if k.Knee != nil {
		note := ""
		if k.Knee.Resampled != nil {
			note = fromTo(*k.Knee.Resampled) + " by resampling the loads"
		}
		m.addFigure("Knee", say.Quantity(k.Knee.Load), unit, note)
	}
	if s := k.Saturation; s != nil {
		note := ""
		if s.OutputTokensPerS != nil {
			note = say.Quantity(*s.OutputTokensPerS) + " output tok/s"
		}
		m.addFigure("Saturation", say.Quantity(s.RequestsPerS), "req/s", note)
	}
	if at, usd := cheapestPoint(run); at >= 0 {
		p := &run.Points[at]
		note := "at " + say.Quantity(p.Load.Value()) + " " + unit
		if p.SLO != nil {
			note += ", within the SLO"
		}
		m.addFigure("Lowest cost", "$"+say.Quantity(usd), "/M tok", "output, "+note)
	}
	if k.UnstableFrom != nil {
		m.addFigure("Queue grows from", say.Quantity(*k.UnstableFrom), unit, "more comes than is served")
	}
}

// addLimitedFigure adds the first percentile that the SLO limits, at a load of a sweep.
func (m *Model) addLimitedFigure(run *result.Run, load float64) {
	for i := range run.Points {
		p := &run.Points[i]
		if p.Load.Value() != load || p.SLO == nil {
			continue
		}
		for _, l := range p.SLO.Limits {
			d := metric.All().Find(l.Metric)
			key, limit := limitedPercentile(p.SLO, l.Metric)
			if value := cellText(p.Metrics.SummaryOf(l.Metric), key); d != nil && key != "" && value != say.Unknown {
				m.addFigure(d.Label+" "+percentileName(key), value, string(d.Unit), "limit "+say.Exact(limit)+" "+string(d.Unit)+", at "+say.Decimal(load, 3)+" "+p.Load.Unit())
				return
			}
		}
		return
	}
}

// SLOBoundary returns the highest load of a sweep that met the SLO below the first that missed it,
// and that one. Each is nil where there is none.
func SLOBoundary(run *result.Run) (met, missed *float64) {
	loads, held, next := judgedLoads(run)
	if held >= 0 {
		met = &loads[held].load
	}
	if next >= 0 {
		missed = &loads[next].load
	}
	return met, missed
}

// QueueGrows marks a load whose queue grew all the time.
const QueueGrows = "queue grows"

// judgedLoad is a load of a sweep, held against the SLO.
type judgedLoad struct {
	load    float64
	all, no bool // all of its points met it, one did not
}

// judgedLoads are the loads of a sweep with an SLO, in their order, without those that are
// INVALID: held is the highest that met it below the first that did not, which is next;
// -1 where there is none. A load above next may have met it by chance, and does not count.
func judgedLoads(run *result.Run) (loads []judgedLoad, held, next int) {
	held, next = -1, -1
	for _, i := range run.ByLoad() {
		p := &run.Points[i]
		if p.SLO == nil || p.Verdict == result.Invalid {
			continue
		}
		no := p.SLO.Met == result.No || p.Stability == stats.Unstable || p.Outcome == result.Failing
		if k := len(loads) - 1; k >= 0 && loads[k].load == p.Load.Value() {
			loads[k].all, loads[k].no = loads[k].all && meetsSLO(p), loads[k].no || no
			continue
		}
		loads = append(loads, judgedLoad{p.Load.Value(), meetsSLO(p), no})
	}
	for i, l := range loads {
		if l.no {
			return loads, held, i
		}
		if l.all {
			held = i
		}
	}
	return loads, held, next
}

// goodputOfPoint is a point's, nil without an SLO that it is within: a damaged run may
// have the one and not the other.
func goodputOfPoint(p *result.Point) *result.Goodput {
	if p.SLO == nil {
		return nil
	}
	return p.Goodput
}

// meetsSLO says that a point met the SLO, as it was measured.
func meetsSLO(p *result.Point) bool {
	return p.SLO != nil && p.SLO.Met == result.Yes && p.Stability != stats.Unstable && p.Verdict != result.Invalid
}

// metUpTo says of a point of a sweep whether it met the SLO, and all loads below it that
// were judged did not miss it.
func metUpTo(run *result.Run) func(*result.Point) bool {
	loads, held, _ := judgedLoads(run)
	return func(p *result.Point) bool { return held >= 0 && p.Load.Value() <= loads[held].load && meetsSLO(p) }
}

// mostGoodput is the point with the most of it among those that met the SLO, -1 if none
// did: beyond, a server may answer more within the limits and fail the others.
func mostGoodput(run *result.Run) int {
	best, at := 0.0, -1
	counts := metUpTo(run)
	for i := range run.Points {
		if g := goodputOfPoint(&run.Points[i]); g != nil && g.RequestsPerS > best && counts(&run.Points[i]) {
			best, at = g.RequestsPerS, i
		}
	}
	return at
}

// cheapestPoint is the stable point at which output tokens cost least, and what they
// cost there: where there is an SLO, those within it at a point that met it; -1 where
// no price is known.
func cheapestPoint(run *result.Run) (at int, usd float64) {
	at = -1
	counts := metUpTo(run)
	for i := range run.Points {
		p := &run.Points[i]
		if p.Cost == nil || i == run.UnderWay() || p.Stability == stats.Unstable || p.SLO != nil && !counts(p) {
			continue
		}
		x := p.Cost.USDPerMOutput
		if p.SLO != nil {
			x = p.Cost.USDPerMGoodOutput
		}
		if x != nil && (at < 0 || *x < usd) {
			at, usd = i, *x
		}
	}
	return at, usd
}

// limiterLines says what limits the target, as far as the run tells.
func limiterLines(run *result.Run) (list texts) {
	if c := run.Capacity; c != nil && severalLimits(c) {
		list.addFormat("%s is reached before the other limits.", c.Binding)
	}
	if c := run.Curve; c != nil {
		if s := c.Saturation; s != nil {
			list.addFormat("More load brings no more answers than %s req/s.", say.Quantity(s.RequestsPerS))
		}
		if c.UnstableFrom != nil {
			list.addFormat("From %s %s on the queue grows for as long as the load lasts.", say.Quantity(*c.UnstableFrom), result.LoadUnit(c.Over))
		}
	}
	for i := range run.Points { // the first tells of all
		if s := run.Points[i].Standstills; s != nil {
			list.addFormat("%s.", strings.ToUpper(standsStill(s)[:1])+standsStill(s)[1:])
			break
		}
	}
	if run.Curve == nil && run.Capacity == nil {
		for i := range run.Points {
			p := &run.Points[i]
			if p.Verdict == result.Invalid && p.Requests.OK > 0 && p.WentAway == nil {
				list.addFormat("%s nothing is known of what limits the target: the measurement is INVALID (%s).", atLoad(p), strings.Join(failedChecks(p), ", "))
				continue
			}
			switch {
			case shapedByLimits(p):
				list.addFormat("%s %s.", atLoad(p), moreThanLimits(p))
			case p.Outcome == result.Failing:
				if p.WentAway != nil {
					list.addFormat("%s the server went away %s after the load began.", atLoad(p), say.Seconds(*p.WentAway))
					break
				}
				list.addFormat("%s the server failed%s.", atLoad(p), byOrder(run))
			case p.Outcome == result.Unstable:
				list.addFormat("%s the queue grew all the time: that is more than the server serves.", atLoad(p))
			case p.Outcome == result.Degraded:
				list.addFormat("%s the server was degraded: %s of %s were not answered%s.", atLoad(p), say.Count(p.Requests.Due-p.Requests.OK), say.Plural(p.Requests.Due, "request"), byOrder(run))
			}
			if p.SLO != nil && p.SLO.Met == result.No {
				for _, l := range p.SLO.Limits {
					if l.Met == result.No {
						list.addFormat("%s is not met.", l.Spec)
					}
				}
			}
		}
		if len(list) == 0 && len(run.Points) > 0 {
			list.addText(unlimitedText(run))
		}
	}
	return append(list, shortUnknown)
}

// unlimitedText is what is said of a load that nothing limited.
func unlimitedText(run *result.Run) string {
	switch p := &run.Points[0]; {
	case p.Requests.Due == 0:
		return "Not known: nothing was measured."
	case p.SLO != nil && p.SLO.Met == result.Yes && p.SLO.Near:
		return "The SLO was met in this run, and another run may miss it: pitot find --at decides."
	case p.SLO != nil && p.SLO.Met == result.Yes:
		return "The SLO was met in this run. How much more load it allows: pitot find."
	}
	return "No failures, and no queue that grows. How much more the server carries: pitot find."
}

// shortUnknown stands where nothing was explained.
const shortUnknown = "What gives way first: pitot explain compares this run with simulations of the deployment."

// byOrder says that an embedded target had its faults from the user.
func byOrder(run *result.Run) string {
	if faultText(run) == "" {
		return ""
	}
	return "; faults were ordered"
}

// sentText returns what went to the server, for comparison with its own counters.
func sentText(s *result.Sent) (parts []string) {
	all := s.Load
	if p := s.Probes; p != nil {
		all.Requests, all.PromptTokens, all.OutputTokens, all.NoUsage = all.Requests+p.Requests, all.PromptTokens+p.PromptTokens, all.OutputTokens+p.OutputTokens, all.NoUsage+p.NoUsage
	}
	parts = append(parts, say.Count(all.Requests)+" requests, warm-up and drain included", say.Count(all.PromptTokens)+" tokens in, "+say.Count(all.OutputTokens)+" out")
	if p := s.Probes; p != nil {
		parts = append(parts, "of these "+say.Plural(int(p.Requests), "probe")+" besides the load: "+say.Count(p.PromptTokens)+" tokens in, "+say.Count(p.OutputTokens)+" out")
	}
	if all.NoUsage > 0 {
		parts = append(parts, say.Plural(int(all.NoUsage), "request")+" without a count of tokens")
	}
	return parts
}

// runConditions are the facts that the field expects with a figure.
func runConditions(run *result.Run, m *Model) (list []Condition) {
	addCondition := func(name string, values ...string) {
		v := strings.Join(nonEmpty(values...), " · ")
		list = append(list, Condition{name, v, v != ""})
		if v == "" {
			list[len(list)-1].Value = notKnown
		}
	}
	note := func(keys ...string) string {
		for _, k := range keys {
			if v := run.Notes[k]; v != "" {
				return v
			}
		}
		return ""
	}
	server := run.Target.Server
	addCondition("Hardware", cmp.Or(note("hardware", "gpu", "accelerator"), server["accelerator"]))
	gpus := note("gpus")
	for i := range run.Points {
		if g := run.Points[i].Throughput.PerGPU; g != nil {
			gpus = say.Count(g.GPUs)
		}
	}
	addCondition("GPUs", gpus)
	addCondition("Model", run.Target.Model)
	addCondition("Precision", cmp.Or(note("precision", "dtype", "quantization"), server["dtype"]))
	addCondition("KV cache precision", cmp.Or(note("kv-cache-dtype", "kv_cache_dtype"), server["kv_cache_dtype"]))
	engine := cmp.Or(note("engine"), server["engine"])
	if v := server["version"]; v != "" {
		engine += " " + v
	}
	addCondition("Engine", engine)
	var flags []string
	for _, k := range slices.Sorted(maps.Keys(server)) {
		if !slices.Contains([]string{"accelerator", "dtype", "kv_cache_dtype", "engine", "version", "model"}, k) {
			flags = append(flags, k+"="+server[k])
		}
	}
	if f := note("flags", "engine-flags"); f != "" {
		flags = append([]string{f}, flags...)
	}
	addCondition("Engine flags", flags...)
	if set := changedSettings(run); len(set) > 0 {
		addCondition("Settings that you gave", set...)
	}
	if f := faultText(run); f != "" {
		addCondition("Faults that you requested", f)
	}
	addCondition("Target", run.Target.Spec, run.Target.API)
	if len(m.Facts) > 1 {
		addCondition("Workload", m.Facts[1]...)
	}
	var adapted []string
	for _, a := range run.Target.Adaptations {
		adapted = append(adapted, reasons.AdaptationText(a))
	}
	if len(adapted) > 0 {
		addCondition("Adapted", adapted...)
	}
	var loads []string
	var warmups, windows []float64
	due := 0
	for i := range run.Points {
		p := &run.Points[i]
		due += p.Requests.Due
		loads = append(loads, loadModel(p))
		warmups = append(warmups, p.Seconds.Warmup)
		windows = append(windows, p.Seconds.Window)
	}
	addCondition("Load model", spanText(loads))
	addCondition("Warm-up", durationRange(warmups))
	addCondition("Window", durationRange(windows))
	addCondition("Requests", say.Count(due)+" due in the windows of "+say.Plural(len(run.Points), "point"))
	if s := run.Sent; s != nil {
		addCondition("Sent in all", sentText(s)...)
	}
	price := ""
	for i := range run.Points {
		if c := run.Points[i].Cost; c != nil {
			price = strings.TrimPrefix(priceText(c), "at ")
		}
	}
	addCondition("Price", price)
	launch := "one start of the server"
	if run.Launch != "" {
		launch += ", " + run.Launch
	}
	addCondition("Launches", launch+": how starts differ is "+notKnown)
	e := run.Environment
	client := []string{e.CPU, say.Plural(e.Cores, "core"), e.OS + " " + e.Kernel}
	if e.MemoryBytes > 0 {
		client = append(client, say.Quantity(float64(e.MemoryBytes)/(1<<30))+" GiB")
	}
	addCondition("Client", client...)
	addCondition("Stamps", map[string]string{"kernel": "the kernel's receive stamps", "user": "taken in user space", "virtual": "virtual time: no socket, no machine has a part in it"}[e.Stamps])
	addCondition("Seed", fmt.Sprint(run.Seed))
	addCondition("Measured", run.Started+" to "+run.Ended)
	addCondition("Pitot", strings.Join(strings.Fields(run.Pitot.Version+" "+run.Pitot.Commit+" "+run.Pitot.Go), " "))
	for _, k := range slices.Sorted(maps.Keys(run.Notes)) {
		addCondition("Note "+k, run.Notes[k])
	}
	return list
}

// loadModel is the kind of a load, without how much of it.
func loadModel(p *result.Point) string {
	s := "open loop, " + p.Load.Arrival + " arrivals"
	if p.Load.Loop == "closed" {
		s = "closed loop"
		if p.Load.ThinkMS != nil {
			s += ", thinking " + say.Seconds(*p.Load.ThinkMS/1e3)
		}
	}
	if p.Load.MaxInFlight != nil {
		s += ", at most " + say.Plural(*p.Load.MaxInFlight, "request") + " in flight"
	}
	return s
}

// durationRange is the least and the most of some lengths of time.
func durationRange(list []float64) string {
	if len(list) == 0 {
		return ""
	}
	lo, hi := say.Seconds(slices.Min(list)), say.Seconds(slices.Max(list))
	if lo == hi {
		return lo
	}
	return lo + " to " + hi
}

// spanText is one text where all are alike, else the first and the last.
func spanText(list []string) string {
	list = slices.Compact(list)
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return list[0] + " … " + list[len(list)-1]
}
