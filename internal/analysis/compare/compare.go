// Package compare says whether something changed between systems: for each
// workload, load and metric the difference with its interval, and whether that
// is slower, faster, equivalent or not distinguishable.
//
// The unit of replication is the launch, one start of the server: two starts of
// one system differ by more than the requests within one say. What single
// launches show is marked "within-launch" and never called a difference between
// systems.
package compare

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Schema names this version of a comparison's JSON, comparison.schema.json.
const Schema = "pitot.comparison/v1"

// Options holds the settings of a comparison.
type Options struct {
	Within     float64  // ratios up to 1+Within are equivalent
	Clauses    []Clause // of --fail-if
	Primary    *Primary // the metric that the comparison is made for, nil for none
	Workloads  bool     // unlike workloads are compared all the same
	Tokenizers bool     // and tokens of different tokenizers
}

// Comparison is everything that there is to say: each side against the first.
type Comparison struct {
	Schema      string       `json:"schema"`
	Sides       []SideInfo   `json:"sides"`             // the first is what the others are compared with
	Within      float64      `json:"equivalent_within"` // ratios up to 1 + this are equivalent
	Differences []Difference `json:"differences"`       // of environment, server and configuration
	Warnings    []string     `json:"warnings"`          // what must be known before the numbers, most important first
	Pairs       []Pair       `json:"pairs"`
	Curves      []Curve      `json:"curves"`            // what was measured over load, whether it is compared or not
	Corrected   int          `json:"corrected"`         // tests that were corrected for their number
	Clauses     []Resolution `json:"fail_if"`           // how the conditions came out
	Primary     string       `json:"primary,omitempty"` // the metric that the comparison was made for
	Verdicts    []Verdict    `json:"verdicts"`          // of each side but the first

	asked int // conditions, each at all loads that have its metric
}

// SideInfo describes the content of a side.
type SideInfo struct {
	Name       string       `json:"name"`
	Instrument string       `json:"instrument"`      // "pitot", or the tool that measured it, with its version
	Launches   []LaunchInfo `json:"launches"`        // none of another tool, whose files do not have them
	Files      []string     `json:"files,omitempty"` // of another tool
}

// LaunchInfo is one start of a server, and the runs that measured it.
type LaunchInfo struct {
	ID   string   `json:"id"` // "" where it was not named
	Runs []string `json:"runs"`
}

// Pair is one workload at one load, or a capacity, on two sides.
type Pair struct {
	A    string       `json:"a"`
	B    string       `json:"b"`
	What string       `json:"what"`           // "open loop, poisson, 8/s"
	Load *result.Load `json:"load,omitempty"` // none of a capacity, or where no file has it

	Instruments [2]string    `json:"instruments"`   // that measured A and B: "pitot", or another tool
	Launches    [2]int       `json:"launches"`      // of another tool: files, each at most one launch
	Within      bool         `json:"within_launch"` // one launch on a side: no verdict on systems
	Scope       Scope        `json:"scope,omitempty"`
	Overload    *Overload    `json:"overload,omitempty"` // one side does not keep up: then only what needs no steady state is compared
	SLO         *[2]SLOCount `json:"slo,omitempty"`      // where both sides have the same one
	Rows        []Row        `json:"rows"`
	Costs       []Cost       `json:"costs,omitempty"` // of runs that have a price
	Left        []Left       `json:"not_compared"`    // metrics that are not compared
	Notes       []string     `json:"notes"`           // points that were left out; what numbers of other instruments mean
	Why         string       `json:"why,omitempty"`   // why nothing is compared

	Paired *Paired `json:"paired,omitempty"` // the same requests at the same times, of one run a side

	Day *Day `json:"day,omitempty"` // times of day at which both sides were measured, of loads that lasted for long

	Capacity *CapacityPair `json:"capacity,omitempty"` // what searches found, where that is what is compared

	same       bool   // both sides are of one process of the server, and so of one launch
	failed     bool   // only B cannot be compared
	searchMore string // what to do where a search gave no capacity
}

// Scope says for what a verdict holds, where it is less than both systems. One launch a side was
// measured, and other starts of the same server may differ by more.
type Scope string

const (
	TheseStarts Scope = "of these two starts"              // of the servers
	TheseRuns   Scope = "of these two runs"                // of hosted APIs and routers, which have no starts that could be told apart
	OneStart    Scope = "of these two runs of one process" // of the server
)

// sameProcess notes that both sides are of one process of the server.
func (p *Pair) sameProcess() {
	p.same = true
	for i := range p.Rows {
		p.Rows[i].same = true
	}
}

// SLOCount counts the launches of a side by whether they met the SLO.
type SLOCount struct {
	Met       int `json:"met"`
	Missed    int `json:"missed"`
	Undecided int `json:"undecided"`
	Close     int `json:"close"` // of those that met or missed it, too close to call
}

// countSLO returns how many launches of each side met the SLO, nil where a launch has none or sides
// have different ones.
func countSLO(x, y *loadOfSide) *[2]SLOCount {
	var counts [2]SLOCount
	spec := ""
	for i, side := range []*loadOfSide{x, y} {
		for _, l := range side.launches {
			missed, undecided, near := false, false, false
			for _, p := range l.points {
				if p.SLO == nil || spec != "" && p.SLO.Spec != spec {
					return nil
				}
				spec = p.SLO.Spec
				missed = missed || p.SLO.Met == result.No
				undecided = undecided || p.SLO.Met == result.Undecided
				near = near || p.SLO.Near
			}
			switch {
			case missed:
				counts[i].Missed++
			case undecided:
				counts[i].Undecided++
			default:
				counts[i].Met++
			}
			if near && (missed || !undecided) {
				counts[i].Close++
			}
		}
	}
	return &counts
}

// Left is a metric that is not compared, and why.
type Left struct {
	Metric string `json:"metric"`
	Why    string `json:"why"`

	onlyB bool // A has it
}

// leaveOut notes that a metric is not compared, and why.
func (p *Pair) leaveOut(metric, why string) {
	p.Left = append(p.Left, Left{Metric: metric, Why: why})
}

// newPair is a pair of Pitot's own runs without rows.
func newPair(a, b *measured, what string) Pair {
	return Pair{A: a.name, B: b.name, What: what, Instruments: [2]string{Pitot, Pitot}, Rows: []Row{}, Left: []Left{}, Notes: []string{}}
}

// setLaunches sets how many launches each side has.
func (p *Pair) setLaunches(a, b int) {
	p.Launches, p.Within = [2]int{a, b}, a == 1 || b == 1
}

// Row is one metric on two sides.
type Row struct {
	Metric      string     `json:"metric"`                // "p99 ttft", "output tok/s"; of a class of requests "chat: p99 ttft"; against another tool "p99 service ttft", "p99 tpot_n1"
	Class       string     `json:"class,omitempty"`       // of requests, whose metric it is
	Unit        string     `json:"unit"`                  // of A and B: "ms", "/s" or "share"
	ChangeIn    string     `json:"change_in"`             // "ratio": Change is B/A − 1; "share": it is B − A
	Instruments *[2]string `json:"instruments,omitempty"` // that measured A and B; only where one is not Pitot: then there is no verdict

	A float64 `json:"a"` // mean over the launches: geometric where Change is a ratio
	B float64 `json:"b"`

	Change        float64       `json:"change"`               // from A to B; see change_in
	CI95          *[2]float64   `json:"ci95"`                 // of Change, of this comparison alone
	NoInterval    result.Reason `json:"no_interval,omitzero"` // why there is none
	Margin        [2]float64    `json:"equivalent_between"`   // changes that are equivalent
	Robust        *float64      `json:"hodges_lehmann"`       // median of the differences of all pairs of launches
	RobustCI95    *[2]float64   `json:"hodges_lehmann_ci95"`
	P             *float64      `json:"p"`                 // of no difference, two-sided
	PAdjusted     *float64      `json:"p_adjusted"`        // for the number of comparisons (Holm)
	PEquivalent   *float64      `json:"p_equivalent"`      // of a difference beyond the margin, adjusted likewise
	PreRegistered bool          `json:"pre_registered"`    // named beforehand, in --primary (tested alone) or --fail-if (corrected for what all clauses name): not corrected for the number of other metrics
	Primary       bool          `json:"primary,omitempty"` // named in --primary
	Few           bool          `json:"few,omitempty"`     // a percentile that rests on few samples

	Verdict string        `json:"verdict"`
	Why     result.Reason `json:"why,omitzero"`                // why it is that
	Needed  *int          `json:"launches_needed"`             // a side, to detect a change of detectable_change with 80 % power
	Detects float64       `json:"detectable_change,omitempty"` // the change that launches_needed would detect

	Detectable *float64 `json:"detectable"` // the smallest change that as many launches detect with 80 % power, in a clause without by; null where their spread is not known

	metric     figure
	scale      scale
	launches   [2]int
	short      result.Reason // the windows of single launches are too short for an interval
	withheld   result.Reason // why a single launch has no interval, where a longer one may have none either
	same       bool          // these are one and the same
	test       *test         // nil with a single launch on a side
	family     int           // tests that this one is corrected for
	gateFamily int           // tests of the clauses of --fail-if

	gate *float64 // p_adjusted among all that the clauses name; nil where nothing is tested
}

// OfShare says that Change is in points of a share, not in percent of A.
func (r *Row) OfShare() bool { return r.ChangeIn == "share" }

// The verdicts on a metric, or on a side as a whole.
const (
	Slower          = "slower"
	Faster          = "faster"
	Worse           = "worse"  // of shares
	Better          = "better" // likewise
	Equivalent      = "equivalent"
	Undistinguished = "not distinguishable"
	Unconfirmed     = "unconfirmed" // its own interval excludes no change, the corrected test does not
	NotCompared     = "not compared"
	OtherInstrument = "other instrument" // values of which one was measured by another instrument: no verdict
	Mixed           = "better and worse" // of a side
)

// Verdict is the judgement on a side as a whole, against the first.
type Verdict struct {
	B     string `json:"b"`
	Word  string `json:"word"`            // one of those of a row, or "better and worse"
	Scope Scope  `json:"scope,omitempty"` // what it holds for, where it is less than both systems
	Why   string `json:"why,omitempty"`

	Primary string `json:"primary,omitempty"` // the word for the primary metric alone

	Equivalent      int      `json:"equivalent"` // metrics
	Undistinguished int      `json:"not_distinguishable"`
	Unconfirmed     int      `json:"unconfirmed"`
	Untested        int      `json:"untested,omitempty"` // metrics without a test, for lack of samples or launches
	Lost            []string `json:"lost"`               // what only the first side could be measured at, and why
}

// Resolution holds the outcome of a clause of --fail-if.
type Resolution struct {
	Spec  string `json:"spec"`
	State string `json:"state"` // "fired", "ruled out", "undecided" or "not judged"
	Why   string `json:"why"`

	Needed *int `json:"launches_needed,omitempty"` // a side, with which an undecided condition is decided: where nothing changed, all conditions are ruled out in 95 of 100 comparisons
}

// States of an [Resolution].
const (
	Fired     = "fired"
	RuledOut  = "ruled out"
	Undecided = "undecided"
	NotJudged = "not judged"
)

// AnyFired says whether any clause of --fail-if did.
func (c *Comparison) AnyFired() bool { return c.hasState(Fired) }

// AnyUndecided reports whether a clause of --fail-if neither fired nor was ruled out.
func (c *Comparison) AnyUndecided() bool { return c.hasState(Undecided) }

// NotJudged says whether a clause of --fail-if could not be judged.
func (c *Comparison) NotJudged() bool { return c.hasState(NotJudged) }

func (c *Comparison) hasState(s string) bool {
	return slices.ContainsFunc(c.Clauses, func(o Resolution) bool { return o.State == s })
}

// Compare compares each side with the first. Every error is a [say.Error].
func Compare(sides []Side, o Options) (*Comparison, error) {
	if len(sides) < 2 {
		return nil, say.Errorf("a comparison needs two sides").WithHint("for example pitot compare runs/before runs/after")
	}
	sides = distinctNames(sides)
	c := &Comparison{Schema: Schema, Within: o.Within, Differences: []Difference{}, Warnings: []string{}, Pairs: []Pair{}, Clauses: []Resolution{}, Verdicts: []Verdict{}}
	var all []*measured
	c.Warnings = append(c.Warnings, otherInstruments(sides)...)
	for i := range sides {
		m := measureSide(&sides[i], o.Workloads)
		if len(m.order)+len(m.searches)+len(m.others) == 0 {
			return nil, say.Errorf("side %s has no measured point", m.name).WithHint("pitot report shows what they hold")
		}
		all = append(all, m)
		c.Sides = append(c.Sides, m.info)
		c.Warnings = append(c.Warnings, m.warnings...)
	}
	c.Warnings = append(c.Warnings, sharedSources(sides)...)
	if o.Workloads {
		for _, m := range all {
			if n := len(m.workloads); n > 1 {
				return nil, say.Errorf("side %s has %d workloads, and unlike ones are to be compared", m.name, n).WithHint("name the runs of one workload: " + m.name + "=DIR,DIR")
			}
		}
	}
	if o.Primary != nil {
		c.Primary = o.Primary.metric.name
	}
	c.Differences = listDifferences(sides, o.Workloads)
	for i, b := range all[1:] {
		tokens := ""
		if !o.Tokenizers {
			tokens = tokenizerMismatch(sides[0], sides[i+1])
		}
		counter := counterOf(sides[0], sides[i+1])
		from := len(c.Pairs)
		if err := c.pairSides(all[0], b, o, tokens, counter); err != nil {
			return nil, err
		}
		same, starts := sameProcess(&sides[0], &sides[i+1]), sides[0].hasStarts() && sides[i+1].hasStarts()
		for k := range c.Pairs[from:] {
			p := &c.Pairs[from+k]
			if same {
				p.sameProcess()
			}
			p.setScope(starts)
		}
	}
	c.Curves = curves(sides, all, o)
	c.judgeRows(o)
	return c, nil
}

// ComparedNothing says that no side could be compared with the first in anything.
func (c *Comparison) ComparedNothing() bool {
	return !slices.ContainsFunc(c.Verdicts, func(v Verdict) bool { return v.Word != NotCompared })
}

// pairSides compares two sides load by load.
func (c *Comparison) pairSides(a, b *measured, o Options, tokens, counter string) error {
	if len(a.others)+len(b.others) > 0 {
		return c.addOtherTools(a, b, o, tokens)
	}
	paired := 0
	for _, key := range a.order {
		if b.measuredAt[key] == nil {
			continue
		}
		paired++
		c.Pairs = append(c.Pairs, comparePoints(a, b, key, o, tokens, counter))
	}
	searched := c.pairCapacities(a, b, o)
	if paired == 0 && searched == 0 {
		return nothingInCommon(a, b)
	}
	for _, x := range []struct{ has, not *measured }{{a, b}, {b, a}} {
		var only []string
		for _, key := range x.has.order {
			if x.not.measuredAt[key] == nil {
				only = append(only, x.has.loadTitle(key))
			}
		}
		c.warnOnly(x.has, only)
	}
	return nil
}

// warnOnly notes the loads at which one side alone was measured, if there are any.
func (c *Comparison) warnOnly(m *measured, loads []string) {
	if len(loads) > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("only %s was measured at %s", m.name, strings.Join(loads, "; ")))
	}
}

// disjointSides is the error of sides that hold different kinds of things.
func disjointSides(a, b *measured) *say.Error {
	return say.Errorf("%s and %s have nothing in common: %s, and %s", a.name, b.name, a.describeContents(), b.describeContents())
}

// disjointLoads is the error of sides that were measured at other loads.
func disjointLoads(a, b *measured, loadsA, loadsB string) *say.Error {
	return say.Errorf("%s and %s have no load in common: %s has %s; %s has %s", a.name, b.name, a.name, loadsA, b.name, loadsB)
}

// unlikeWorkloads is the error of sides whose runs ask different things.
func unlikeWorkloads(a, b *measured, x, y *result.Run) error {
	return say.Errorf("%s and %s ask different things: %s", a.name, b.name, workloadDifference(x, y)).WithHint("--allow workloads compares them all the same")
}

// nothingInCommon says why two sides have nothing in common.
func nothingInCommon(a, b *measured) error {
	switch {
	case len(a.searches) > 0 && len(b.searches) > 0:
		return unlikeSearches(a, b)
	case len(a.searches)+len(b.searches) > 0 && len(a.others)+len(b.others) == 0:
		found, other := a, b
		if len(a.searches) == 0 {
			found, other = b, a
		}
		return say.Errorf("%s holds a search for a capacity and %s loads that were chosen: a capacity is compared with a capacity", found.name, other.name).
			WithHint("search both with pitot find and one SLO, or measure both with pitot sweep at the same --loads")
	}
	if len(a.order) == 0 || len(b.order) == 0 {
		return disjointSides(a, b).WithHint("compare runs with runs, searches with searches of one SLO")
	}
	if !slices.ContainsFunc(a.workloads, func(w string) bool { return slices.Contains(b.workloads, w) }) {
		return unlikeWorkloads(a, b, a.measuredAt[a.order[0]].source.Run, b.measuredAt[b.order[0]].source.Run)
	}
	return disjointLoads(a, b, a.loadList(), b.loadList()).WithHint("measure both at the same loads, for example with pitot sweep --loads 1,2,4")
}

// comparePoints compares one load of two sides. tokens says why their own tokens are not
// comparable, "" where they are, and counter what counted the answers of both.
func comparePoints(a, b *measured, key string, o Options, tokens, counter string) Pair {
	x, y := a.measuredAt[key], b.measuredAt[key]
	p := newPair(a, b, a.loadTitle(key))
	p.Load, p.Notes = &x.load, append(append(p.Notes, x.invalid...), y.invalid...)
	p.setLaunches(len(x.launches), len(y.launches))
	p.SLO = countSLO(x, y)
	var hidden string
	if p.Overload, hidden = overloadedSide(x, y, a.name, b.name); p.Overload != nil {
		p.addFigures(x, y, slices.DeleteFunc(slices.Concat(metricsOf(x, y, o), classFigures(x, y)), needsSteadyState), o, tokens)
		return p
	}
	whyA, whyB := x.unusableReason(a.name), y.unusableReason(b.name)
	if p.Why = joinNonEmpty(whyA, whyB, hidden); p.Why != "" {
		p.Within, p.failed = false, whyA == ""
		return p
	}
	p.Paired = pairedRequests(x, y)
	p.Day = dayOf(x, y, [2]string{a.name, b.name}, tokens == "")
	p.Costs = costsOf(x, y, tokens == "", counter)
	for _, s := range []struct {
		name string
		*loadOfSide
	}{{a.name, x}, {b.name, y}} {
		if s.cachedUnknown() {
			p.Notes = append(p.Notes, "cost of "+s.name+": "+CachedUnknown)
		}
	}
	var common []figure
	switch {
	case tokens == "":
	case counter == "":
		tokens += "; measured with one --tokenizer FILE, both are compared by common tok/s"
	default:
		common = commonFigures()
		p.Notes = append(p.Notes, "the tokens of their servers are not comparable; common tok/s and common speed are: one tokenizer counted the answers of both, "+counter)
	}
	p.addFigures(x, y, slices.Concat(metricsOf(x, y, o), common, classFigures(x, y)), o, tokens)
	if p.Paired != nil {
		p.addPaired(x, y, o)
	}
	return p
}

// addFigures compares figures of two sides, as far as both have them. tokens says why their own
// tokens are not comparable, "" where they are.
func (p *Pair) addFigures(x, y *loadOfSide, figures []figure, o Options, tokens string) {
	for _, m := range figures {
		if m.name == capacity {
			continue
		}
		if m.class != "" && m.of == nil { // what it attained
			if specs := specsOf(m.class, x, y); len(specs) > 1 {
				p.leaveOut(m.name, slosDiffer)
				continue
			} else if specs[0] == "" {
				continue
			}
		}
		if m.token && tokens != "" {
			p.leaveOut(m.name, tokens)
			continue
		}
		if m.name == goodput || m.name == attained {
			if why := objectiveMismatch(x, y); why != "" {
				if why != noSLO || o.isNamed(m) {
					p.leaveOut(m.name, why)
				}
				continue
			}
		}
		sa, whyA := x.valuesByLaunch(m, p.A)
		sb, whyB := y.valuesByLaunch(m, p.B)
		if m.name == wrongAnswers && whyA != "" && whyB != "" && !o.isNamed(m) { // nobody asked questions
			continue
		}
		if why := joinNonEmpty(whyA, whyB); why != "" {
			p.Left = append(p.Left, Left{m.name, why, whyA == ""})
			continue
		}
		p.addTested(m, sa, sb, o)
	}
}

// setScope sets what the pair's verdicts hold for; starts says that both sides tell one start
// of the server from another.
func (p *Pair) setScope(starts bool) {
	switch {
	case p.HasOtherInstrument():
	case p.same:
		p.Scope = OneStart
	case p.Launches != [2]int{1, 1}:
	case starts:
		p.Scope = TheseStarts
	default:
		p.Scope = TheseRuns
	}
}

// addTested compares one metric.
func (p *Pair) addTested(m figure, a, b sample, o Options) {
	r, why := newRow(m, a, b, o.Within)
	if why != "" {
		p.leaveOut(m.name, why)
		return
	}
	r.PreRegistered, r.Primary = o.isNamed(m), o.isPrimary(m)
	if r.Primary { // first what was asked
		p.Rows = slices.Insert(p.Rows, 0, r)
		return
	}
	p.Rows = append(p.Rows, r)
}

// isNamed says whether the metric was named beforehand.
func (o *Options) isNamed(m figure) bool {
	return slices.ContainsFunc(o.namedFigures(), func(f figure) bool { return f.name == m.name })
}

func (o *Options) isPrimary(m figure) bool {
	return o.Primary != nil && o.Primary.metric.name == m.name
}

// namedFigures are the figures that were named beforehand.
func (o *Options) namedFigures() (out []figure) {
	if o.Primary != nil {
		out = append(out, o.Primary.metric)
	}
	for _, c := range o.Clauses {
		out = append(out, c.metric)
	}
	return out
}

// metricsOf are those of every comparison, those that an SLO limits, and those
// that were named beforehand.
func metricsOf(x, y *loadOfSide, o Options) []figure {
	all := catalogueOf(x, y)
	both := func(n metric.Name) bool { return x.hasMetric(n) && y.hasMetric(n) }
	standsIn := func(m *metric.Metric) bool { return m.Instead != "" && !both(m.Instead) && both(m.Name) }
	out := slices.DeleteFunc(figuresAtLoad(all, x.load), func(f figure) bool {
		return f.of.Instead != "" && !standsIn(f.of) ||
			slices.ContainsFunc(all, func(m *metric.Metric) bool { return m.Instead == f.of.Name && standsIn(m) })
	})
	return appendFigures(out, slices.Concat(limitedFigures(x, y), o.namedFigures())...)
}

// appendFigures appends those that are not there.
func appendFigures(out []figure, more ...figure) []figure {
	for _, m := range more {
		if !slices.ContainsFunc(out, func(f figure) bool { return f.name == m.name }) {
			out = append(out, m)
		}
	}
	return out
}

// catalogueOf are the metrics of all that was measured.
func catalogueOf(all ...*loadOfSide) (out metric.Catalogue) {
	for _, x := range all {
		for _, m := range x.source.Run.Metrics() {
			if out.Find(m.Name) == nil {
				out = append(out, m)
			}
		}
	}
	return out
}

// specsOf are the SLOs that points were held against, of all requests or those of a class, each
// once: "" for none.
func specsOf(class string, all ...*loadOfSide) (specs []string) {
	for _, p := range pointsOf(all...) {
		spec := ""
		if class == "" && p.SLO != nil {
			spec = p.SLO.Spec
		}
		if of := p.Classes[class].SLO; of != nil {
			spec = of.Spec
		}
		if !slices.Contains(specs, spec) {
			specs = append(specs, spec)
		}
	}
	return specs
}

// Why there are no shares within an SLO.
const (
	noSLO      = "no SLO given"
	slosDiffer = "the SLOs differ"
)

// objectiveMismatch says why shares within SLOs are not the same thing.
func objectiveMismatch(x, y *loadOfSide) string {
	specs := specsOf("", x, y)
	switch {
	case len(specs) > 1:
		return slosDiffer
	case len(specs) == 0 || specs[0] == "":
		return noSLO
	}
	return ""
}

func joinNonEmpty(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
