package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Where another tool measured a side, the two are shown next to each other: of each load that both
// sides have, and each metric that both define alike, the values and the change. Nothing is tested,
// because nothing says how far that tool's numbers are from the truth, and one file is one launch
// at most.

// Pitot names the instrument that measured a side's own runs.
const Pitot = "pitot"

// otherLoad holds what files of another tool say of one load.
type otherLoad struct {
	offered offered
	files   []file
	invalid []string // what was left out for the instrument's sake
}

// file is one of them: its points at the load are repeats.
type file struct {
	of     *tools.Result
	points []*tools.ReportedPoint
}

// measureOthers takes a side apart that another tool measured.
func measureOthers(s *Side) *measured {
	m := &measured{name: s.Name, tool: instrumentName(s.Others[0]), info: SideInfo{Name: s.Name, Instrument: versionedInstrument(s.Others), Launches: []LaunchInfo{}}, warnings: s.left}
	for _, r := range s.Others {
		m.info.Files = append(m.info.Files, r.File)
		for _, n := range r.Notes {
			m.warnings = append(m.warnings, r.File+": "+n)
		}
		for i := range r.Points {
			m.addPoint(r, &r.Points[i])
		}
	}
	slices.SortStableFunc(m.others, func(a, b *otherLoad) int { return a.offered.compare(b.offered) })
	return m
}

// addPoint sorts one point in.
func (m *measured) addPoint(r *tools.Result, p *tools.ReportedPoint) {
	load := offeredIn(p)
	at := slices.IndexFunc(m.others, func(t *otherLoad) bool { return load.isKnown() && t.offered.String() == load.String() })
	if at < 0 {
		at = len(m.others)
		m.others = append(m.others, &otherLoad{offered: load})
	}
	t := m.others[at]
	if p.Verdict == result.Invalid {
		t.invalid = append(t.invalid, "a point in "+r.File+" left out: INVALID")
		return
	}
	if n := len(t.files); n > 0 && t.files[n-1].of == r {
		t.files[n-1].points = append(t.files[n-1].points, p)
		return
	}
	t.files = append(t.files, file{r, []*tools.ReportedPoint{p}})
}

// versionedInstrument names the instrument of results, with its version where all are of
// one.
func versionedInstrument(results []*tools.Result) string {
	name, version := instrumentName(results[0]), results[0].Version
	if slices.ContainsFunc(results, func(r *tools.Result) bool { return r.Version != version }) {
		version = ""
	}
	return strings.TrimSpace(name + " " + version)
}

// otherInstruments returns what must be known before anything else: the sides that another
// instrument measured.
func otherInstruments(sides []Side) []string {
	var others, own []string
	for _, s := range sides {
		switch {
		case len(s.Others) == 0:
		case s.Others[0].By != "":
			own = append(own, fmt.Sprintf("%s holds what %s measured, by the definitions of %s: name the run itself for verdicts", s.Name, s.Others[0].MeasuredBy(), s.Others[0].Tool))
		default:
			others = append(others, s.Name+" ("+versionedInstrument(s.Others)+")")
		}
	}
	if len(others) == 0 {
		return own
	}
	were := " was measured by another instrument: its error is not known, nor whether its requests were the same"
	if len(others) > 1 {
		were = " were measured by other instruments: their error is not known, nor whether their requests were the same"
	}
	return slices.Insert(own, 0, say.List(others...)+were+". Values are shown and not tested.")
}

// offered is a load, as far as files of other tools tell one.
type offered struct {
	rate, users *float64
	most        *float64 // at once, in an open loop
	atOnce      bool
	n           *float64 // requests, where all come at once; nil if not reported
	own         string   // one of Pitot's, in words
}

// offeredIn reads it from a point of another tool. Users of whom each asks once
// are requests that come at once.
func offeredIn(p *tools.ReportedPoint) offered {
	n := totalRequests(p)
	switch {
	case p.Rate != nil:
		return offered{rate: p.Rate, most: p.Concurrency}
	case p.Concurrency != nil:
		if n != nil && *n > 0 && *n <= *p.Concurrency {
			return offered{users: p.Concurrency, atOnce: true, n: n}
		}
		return offered{users: p.Concurrency}
	case p.Unlimited:
		return offered{atOnce: true, n: n}
	}
	return offered{}
}

// offeredOf reads it from a run's points at one load.
func offeredOf(x *loadOfSide, title string) offered {
	a := offered{own: title, rate: x.load.Rate}
	if x.load.MaxInFlight != nil {
		a.most = new(float64(*x.load.MaxInFlight))
	}
	if x.load.Concurrency != nil && x.load.ThinkMS == nil { // other tools know no pauses
		a.users = new(float64(*x.load.Concurrency))
		due := 0
		for _, p := range pointsOf(x) {
			due = max(due, p.Requests.Due)
		}
		if 0 < due && due <= *x.load.Concurrency {
			a.atOnce, a.n = true, new(float64(due))
		}
	}
	return a
}

// totalRequests returns the number of requests of a point. It returns nil if the file does not
// contain it.
func totalRequests(p *tools.ReportedPoint) *float64 {
	if p.OK == nil || p.Failed == nil {
		return nil
	}
	n := *p.OK + *p.Failed
	if p.Incomplete != nil {
		n += *p.Incomplete
	}
	return &n
}

func (a offered) isKnown() bool { return a.own != "" || a.rate != nil || a.users != nil || a.atOnce }

// isSameLoad says that two loads are one, as far as they are known.
func (a offered) isSameLoad(b offered) bool {
	equal := func(x, y *float64) bool {
		return x != nil && y != nil && math.Abs(*x-*y) <= 1e-9*max(math.Abs(*x), math.Abs(*y))
	}
	if a.atOnce && b.atOnce && (a.n == nil || b.n == nil || *a.n == *b.n) {
		return true
	}
	return equal(a.rate, b.rate) || equal(a.users, b.users)
}

func (a offered) String() string {
	switch {
	case a.own != "":
		return a.own
	case a.rate != nil && a.most != nil:
		return "open loop, " + number(*a.rate) + "/s, at most " + number(*a.most) + " in flight"
	case a.rate != nil:
		return "open loop, " + number(*a.rate) + "/s"
	case a.users != nil && *a.users == 1:
		return "closed loop, 1 user"
	case a.users != nil:
		return "closed loop, " + number(*a.users) + " users"
	case a.atOnce && a.n != nil:
		return "all " + number(*a.n) + " requests at once"
	case a.atOnce:
		return "all requests at once"
	}
	return "a load that is not reported"
}

// comparableLoad is that of the run, or another tool's as one of Pitot's; nil if it is none.
func (x *place) comparableLoad() *result.Load {
	if x.run != nil {
		return &x.run.load
	}
	a := x.offered
	whole := func(x *float64) *int {
		if x == nil || *x != math.Trunc(*x) || math.Abs(*x) > 1<<31 {
			return nil
		}
		return new(int(*x))
	}
	switch {
	case a.rate != nil:
		return &result.Load{Loop: "open", Rate: a.rate, MaxInFlight: whole(a.most)}
	case whole(a.users) != nil:
		return &result.Load{Loop: "closed", Concurrency: whole(a.users)}
	}
	return nil
}

// compare orders loads: open loops, closed ones, then the others.
func (a offered) compare(b offered) int {
	key := func(x offered) (kind int, size float64) {
		switch {
		case x.rate != nil:
			return 0, *x.rate
		case x.users != nil:
			return 1, *x.users
		case x.atOnce:
			return 2, 0
		}
		return 3, 0
	}
	ka, xa := key(a)
	kb, xb := key(b)
	return cmp.Or(cmp.Compare(ka, kb), cmp.Compare(xa, xb))
}

// place is one load of a side, whatever instrument measured it.
type place struct {
	side *measured
	offered
	run   *loadOfSide // of Pitot
	other *otherLoad  // of another tool
}

func (m *measured) places() (out []place) {
	for _, key := range m.order {
		out = append(out, place{side: m, offered: offeredOf(m.measuredAt[key], m.loadTitle(key)), run: m.measuredAt[key]})
	}
	for _, t := range m.others {
		out = append(out, place{side: m, offered: t.offered, other: t})
	}
	return out
}

// addOtherTools lays two sides side by side of which another tool measured one.
func (c *Comparison) addOtherTools(a, b *measured, o Options, tokens string) error {
	as, bs := a.places(), b.places()
	pairedA, pairedB := make([]bool, len(as)), make([]bool, len(bs))
	paired := false
	for i, x := range as {
		for k, y := range bs {
			if x.isSameLoad(y.offered) {
				c.Pairs = append(c.Pairs, untestedPair(x, y, o, tokens))
				pairedA[i], pairedB[k], paired = true, true, true
			}
		}
	}
	if !paired {
		if len(as) == 1 && len(bs) == 1 && !(as[0].isKnown() && bs[0].isKnown()) {
			c.Pairs = append(c.Pairs, untestedPair(as[0], bs[0], o, tokens))
			return nil
		}
		return noCommonLoad(a, b, as, bs)
	}
	for _, x := range []struct {
		m      *measured
		places []place
		paired []bool
	}{{a, as, pairedA}, {b, bs, pairedB}} {
		var only []string
		for i, p := range x.places {
			if !x.paired[i] {
				only = append(only, p.String())
			}
		}
		c.warnOnly(x.m, only)
	}
	return nil
}

// noCommonLoad says why two sides have no load in common.
func noCommonLoad(a, b *measured, as, bs []place) error {
	if len(as) == 0 || len(bs) == 0 {
		return disjointSides(a, b).WithHint("a search has no load of its own: measure one with pitot run")
	}
	hint := "pitot report lays them side by side whatever their loads"
	for _, p := range slices.Concat(as, bs) {
		if flags := p.loadFlags(); p.run == nil && flags != "" {
			hint = "measure at a load of " + p.side.name + ": pitot run TARGET " + flags
			break
		}
	}
	list := func(ps []place) string {
		var all []string
		for _, p := range ps {
			all = append(all, p.String())
		}
		return strings.Join(all, ", ")
	}
	return disjointLoads(a, b, list(as), list(bs)).WithHint(hint)
}

// loadFlags ask for the load, "" if it is not known.
func (a offered) loadFlags() string {
	switch {
	case a.rate != nil:
		return "--rate " + number(*a.rate)
	case a.users != nil:
		return "--concurrency " + number(*a.users)
	case a.n != nil:
		return fmt.Sprintf("--concurrency %s --requests %[1]s --exactly --warmup 0s", number(*a.n))
	}
	return ""
}

// inFlightLimit returns the most requests in flight as text, as far as it is known.
func (a offered) inFlightLimit() string {
	if a.most == nil {
		return "no limit in flight"
	}
	return "at most " + number(*a.most) + " in flight"
}

// instrumentName names what measured a place.
func (x *place) instrumentName() string {
	if x.run != nil {
		return Pitot
	}
	return x.side.tool
}

// launchCount are those of a run, or the files of another tool.
func (x *place) launchCount() int {
	if x.run != nil {
		return len(x.run.launches)
	}
	return len(x.other.files)
}

// unusableReason says why there is nothing to compare.
func (x *place) unusableReason() string {
	switch {
	case x.run != nil:
		return x.run.unusableReason(x.side.name)
	case len(x.other.files) == 0:
		return "every point of " + x.side.name + " is INVALID"
	}
	return ""
}

// untestedPair pairs one load of two sides whose differences cannot be tested.
func untestedPair(x, y place, o Options, tokens string) Pair {
	from := x // which tells the load best
	if x.run == nil && (y.run != nil || !x.isKnown()) {
		from = y
	}
	p := newPair(x.side, y.side, from.String())
	p.Load, p.Instruments, p.Launches = from.comparableLoad(), [2]string{x.instrumentName(), y.instrumentName()}, [2]int{x.launchCount(), y.launchCount()}
	for _, s := range []place{x, y} {
		if s.run != nil {
			p.Notes = append(p.Notes, s.run.invalid...)
		} else {
			p.Notes = append(p.Notes, s.other.invalid...)
		}
	}
	whyA, whyB := x.unusableReason(), y.unusableReason()
	if p.Why = joinNonEmpty(whyA, whyB); p.Why != "" {
		p.failed = whyA == ""
		return p
	}
	p.addDistributions(x, y, o, tokens)
	p.addRates(x, y, o, tokens)
	p.explainValues(x, y)
	return p
}

// OtherInstrument says that another instrument measured a side: there are values and no
// verdict.
func (p *Pair) HasOtherInstrument() bool {
	return p.Instruments != [2]string{Pitot, Pitot}
}

// instrumentText says who measured what.
func (p *Pair) instrumentText() string {
	who := ""
	switch a, b := p.Instruments[0], p.Instruments[1]; {
	case a == b:
		who = "both were measured by " + a
	case a == Pitot:
		who = p.B + " was measured by " + b
	case b == Pitot:
		who = p.A + " was measured by " + a
	default:
		return fmt.Sprintf("%s was measured by %s and %s by %s, whose files do not have their errors", p.A, a, p.B, b)
	}
	return who + ", whose files do not have its error"
}

// addUntested adds a row without a test, or why there is none.
func (p *Pair) addUntested(m figure, a, b sample, why string, o Options) {
	var r Row
	if why == "" {
		r, why = untestedRow(m, a, b, o.Within)
	}
	if why != "" {
		p.leaveOut(m.name, why)
		return
	}
	if isConstant(a.values) { // without rounding
		r.A = a.values[0]
	}
	if isConstant(b.values) {
		r.B = b.values[0]
	}
	both := p.Instruments
	r.Instruments, r.Verdict, r.Why = &both, OtherInstrument, result.Reason{Code: result.OtherInstrument}
	r.NoInterval = result.Reason{Code: result.ErrorUnknown}
	p.Rows = append(p.Rows, r)
}

// alike is a distribution that other tools have, and the one of Pitot that
// is defined alike.
type alike struct {
	name   string         // as package tools calls it
	own    *metric.Metric // nil: Pitot has none
	theirs func(*tools.ReportedPoint) *tools.Summary
}

func alikeMetrics() []alike {
	all := metric.All()
	return []alike{
		{"ttft", all.Find(metric.ServiceTTFT), func(p *tools.ReportedPoint) *tools.Summary { return p.TTFT }},
		{"tpot", all.Find(metric.TPOTn1), func(p *tools.ReportedPoint) *tools.Summary { return p.TPOT }},
		{"itl", nil, func(p *tools.ReportedPoint) *tools.Summary { return p.ITL }},
		{"e2e", all.Find(metric.ServiceE2E), func(p *tools.ReportedPoint) *tools.Summary { return p.E2E }},
	}
}

// ownName returns Pitot's name for the distribution. It returns "" if Pitot has none.
func (d alike) ownName() string {
	if d.own == nil {
		return ""
	}
	return string(d.own.Name)
}

// perToken says that it is counted in tokens.
func (d alike) perToken() bool { return d.own == nil || d.own.PerToken }

// metricMeaning is the name under which a distribution of a side is shown, and what
// it means by it; both are "" if it has none.
func (x *place) metricMeaning(d alike) (name, definition string) {
	if x.run != nil {
		return d.ownName(), d.ownName()
	}
	for _, f := range x.other.files {
		for _, p := range f.points {
			if s := d.theirs(p); s != nil {
				if own := f.of.Alike(d.name); own != "" {
					return own, own
				}
				return d.name, s.What
			}
		}
	}
	return "", ""
}

// statisticSample gives a statistic of a distribution for each launch, or why not.
func (x *place) statisticSample(d alike, statistic string) (sample, string) {
	if x.run != nil {
		return x.run.valuesByLaunch(percentile(d.own, statistic), x.side.name)
	}
	return x.other.valuesByLaunch(func(p *tools.ReportedPoint) value { return statisticOf(p, d.theirs(p), statistic) }, x.side.name)
}

func (t *otherLoad) valuesByLaunch(of func(*tools.ReportedPoint) value, side string) (sample, string) {
	files := make([][]value, len(t.files))
	for i, f := range t.files {
		for _, p := range f.points {
			files[i] = append(files[i], of(p))
		}
	}
	return launchValues(side, "files", files)
}

// statisticOf is one number of another tool's distribution. A percentile needs as
// many requests as one of Pitot's: the 99th of three is their longest.
func statisticOf(p *tools.ReportedPoint, d *tools.Summary, statistic string) value {
	if d == nil {
		return reportedValue(nil)
	}
	of, known := metric.PercentileOf(statistic)
	x := d.Mean
	if known {
		x = d.P(of.Name)
	}
	v := reportedValue(x)
	if n := cmp.Or(d.N, p.OK); x != nil && known && n != nil {
		few, firm := of.SamplesNeeded()
		if v.few = *n < float64(firm); *n < float64(few) {
			return value{why: fmt.Sprintf("n = %s, shown from %d on", number(*n), few)}
		}
	}
	return v
}

// addDistributions lays what both sides define alike.
func (p *Pair) addDistributions(x, y place, o Options, tokens string) {
	for _, d := range alikeMetrics() {
		nameA, a := x.metricMeaning(d)
		nameB, b := y.metricMeaning(d)
		switch {
		case a == "" && b == "":
			continue
		case a != b:
			p.leaveOut(leftName(d, nameA, nameB), joinNonEmpty(x.definitionMismatch(d, a), y.definitionMismatch(d, b)))
			continue
		case d.perToken() && tokens != "":
			p.leaveOut(nameA, tokens)
			continue
		}
		for _, s := range []string{metric.Mean, "p50", "p99"} {
			va, whyA := x.statisticSample(d, s)
			vb, whyB := y.statisticSample(d, s)
			p.addUntested(figure{name: s + " " + nameA, unit: "ms"}, va, vb, joinNonEmpty(whyA, whyB), o)
		}
	}
}

// leftName returns the name of a distribution that is not compared. It is the name of the side that
// has it, else the one that all tools know.
func leftName(d alike, a, b string) string {
	if a != "" && b != "" {
		return d.name
	}
	return cmp.Or(a, b)
}

// definitionMismatch says why a side's distribution is not to be compared, "" if it is the
// other's fault.
func (x *place) definitionMismatch(d alike, definition string) string {
	switch {
	case x.run != nil:
		return ""
	case definition == "":
		return x.side.name + " does not have it"
	case definition == d.ownName():
		return ""
	}
	return x.side.tool + " means " + definition
}

// addRates lays throughput and errors.
func (p *Pair) addRates(x, y place, o Options, tokens string) {
	for _, r := range []struct {
		name   string
		theirs func(*tools.ReportedPoint) value
	}{
		{requestRate, func(p *tools.ReportedPoint) value { return reportedValue(p.RequestsPerS) }},
		{outputRate, func(p *tools.ReportedPoint) value { return reportedValue(p.OutputTokensPerS) }},
		{failures, failedShare},
	} {
		m, _ := parseMetric(r.name) // a name of ours
		if m.token && tokens != "" {
			p.leaveOut(m.name, tokens)
			continue
		}
		values := func(x place) (sample, string) {
			if x.run != nil {
				return x.run.valuesByLaunch(m, x.side.name)
			}
			return x.other.valuesByLaunch(r.theirs, x.side.name)
		}
		a, whyA := values(x)
		b, whyB := values(y)
		p.addUntested(m, a, b, joinNonEmpty(whyA, whyB), o)
	}
	for _, s := range []place{x, y} {
		if s.other != nil && slices.ContainsFunc(s.other.files, func(f file) bool { return f.points[0].GoodPerS != nil }) {
			p.leaveOut(goodput, s.side.name+" does not have the limits")
			return
		}
	}
}

// reportedValue is a number that a tool may not report.
func reportedValue(x *float64) value {
	if x == nil {
		return value{why: "not reported"}
	}
	return value{x: *x}
}

// failedShare is the share of requests that did not end well.
func failedShare(p *tools.ReportedPoint) value {
	switch n := totalRequests(p); {
	case n == nil:
		return reportedValue(nil)
	case p.Incomplete != nil && *p.Incomplete > 0:
		return value{why: "the tool itself cut requests off"}
	case *n <= 0:
		return value{why: "no request"}
	default:
		return value{x: *p.Failed / *n}
	}
}

// explainValues says what the values are worth and mean.
func (p *Pair) explainValues(x, y place) {
	p.Notes = append(p.Notes, "no verdict: "+p.instrumentText()+", and a file is one launch at most")
	for _, s := range []place{x, y} {
		if !s.isKnown() {
			p.Notes = append(p.Notes, s.side.name+" does not say its load: whether it was the same is not known")
		}
	}
	if a, b := x.inFlightLimit(), y.inFlightLimit(); x.rate != nil && y.rate != nil && a != b {
		p.Notes = append(p.Notes, x.side.name+" has "+a+", "+y.side.name+" has "+b)
	}
	var what []string
	hasMetric := func(name string) bool {
		return slices.ContainsFunc(p.Rows, func(r Row) bool { return strings.HasSuffix(r.Metric, name) })
	}
	if hasMetric(" service ttft") || hasMetric(" service e2e") {
		what = append(what, "service: from when a request was sent")
	}
	if hasMetric(" tpot_n1") {
		what = append(what, "tpot_n1: (E2E − TTFT) / (tokens − 1)")
	}
	if p.Instruments[0] != p.Instruments[1] {
		what = append(what, "how percentiles are taken, which requests count, what a token is and over what time throughput is counted follow each instrument")
	} else {
		for _, d := range alikeMetrics() {
			if name, definition := x.metricMeaning(d); name == d.name && hasMetric(" "+name) {
				what = append(what, name+": "+definition)
			}
		}
	}
	if len(what) > 0 {
		p.Notes = append(p.Notes, strings.Join(what, "; "))
	}
}
