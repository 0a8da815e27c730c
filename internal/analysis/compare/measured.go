package compare

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// measured is a side, taken apart by workload and load, or by load where another
// tool measured it.
type measured struct {
	name       string
	info       SideInfo
	warnings   []string
	workloads  []string
	order      []string // keys of at: first workload, then load
	measuredAt map[string]*loadOfSide
	searches   []search
	tool       string // another one that measured it
	others     []*otherLoad
}

// loadOfSide holds what one side measured of one workload at one load.
type loadOfSide struct {
	source   Source
	load     result.Load
	workload string
	launches []launch
	invalid  []string // what was left out for the instrument's sake
}

// launch holds what one start of the server showed at one load: its repeats.
type launch struct {
	id     string
	points []*result.Point
}

// isUnstable reports whether the queue grew at some of the launch's points.
func (l *launch) isUnstable() bool {
	return slices.ContainsFunc(l.points, func(p *result.Point) bool { return p.Stability == stats.Unstable })
}

// unstableLaunches is in how many launches the queue grew.
func (x *loadOfSide) unstableLaunches() (n int) {
	for _, l := range x.launches {
		if l.isUnstable() {
			n++
		}
	}
	return n
}

// pointsOf are the points of all launches of some loads.
func pointsOf(all ...*loadOfSide) (points []*result.Point) {
	for _, x := range all {
		for _, l := range x.launches {
			points = append(points, l.points...)
		}
	}
	return points
}

// search is the capacities that runs of one launch found.
type search struct {
	id  string
	all []foundCapacity
}

// comparablePoints are those of a run that can be compared: not those of a search, which
// chooses its loads as it goes, nor of the steps that lead to a curve.
func comparablePoints(run *result.Run) (out []result.Point) {
	if run.Capacity != nil {
		return nil
	}
	for _, p := range run.Points {
		if p.Stage == "" || p.IsOfCurve() {
			out = append(out, p)
		}
	}
	return out
}

// measureSide takes a side apart. anyWorkload takes all workloads for one.
func measureSide(s *Side, anyWorkload bool) *measured {
	if len(s.Others) > 0 {
		return measureOthers(s)
	}
	ids, runs, warnings := s.groupLaunches()
	m := &measured{name: s.Name, info: SideInfo{Name: s.Name, Instrument: Pitot, Launches: []LaunchInfo{}}, warnings: warnings, measuredAt: map[string]*loadOfSide{}}
	for _, id := range ids {
		info := LaunchInfo{ID: id}
		var found []foundCapacity
		for _, r := range runs[id] {
			info.Runs = append(info.Runs, r.Path)
			m.warn(r)
			if r.Run.Capacity != nil {
				f := foundCapacity{Capacity: r.Run.Capacity, source: r, workload: workloadKey(r.Run)}
				if anyWorkload {
					f.workload = ""
				}
				found = append(found, f)
			}
			m.addRun(id, r, anyWorkload)
		}
		if len(found) > 0 {
			m.searches = append(m.searches, search{id, found})
		}
		m.info.Launches = append(m.info.Launches, info)
	}
	if len(ids) == 1 && ids[0] == "" && len(s.Runs) > 1 {
		m.warnings = append(m.warnings, fmt.Sprintf("the %d runs of %s do not say which start of the server they measured, so they count as one launch: measure with --launch ID", len(s.Runs), s.Name))
	}
	for _, key := range m.order {
		m.measuredAt[key].dropInvalid()
	}
	slices.SortStableFunc(m.order, func(a, b string) int { return m.measuredAt[a].compare(m.measuredAt[b], m.workloads) })
	return m
}

// compare orders loads: by workload as they were met, then open loops before
// closed ones, then by how hard they are.
func (x *loadOfSide) compare(y *loadOfSide, workloads []string) int {
	return cmp.Or(
		cmp.Compare(slices.Index(workloads, x.workload), slices.Index(workloads, y.workload)),
		-cmp.Compare(x.load.Loop, y.load.Loop),
		cmp.Compare(x.load.Value(), y.load.Value()),
	)
}

func (m *measured) warn(r Source) {
	if r.Run.Interrupted || r.Run.Recovered {
		m.warnings = append(m.warnings, fmt.Sprintf("the run in %s ended before its time", r.Path))
	}
	if len(r.Run.Points) == 0 && r.Run.Capacity == nil {
		m.warnings = append(m.warnings, fmt.Sprintf("the run in %s measured nothing", r.Path))
	}
}

// addRun sorts one run's points in.
func (m *measured) addRun(id string, r Source, anyWorkload bool) {
	of := workloadKey(r.Run)
	if ps := comparablePoints(r.Run); len(ps) > 0 && !slices.Contains(m.workloads, of) {
		m.workloads = append(m.workloads, of)
	}
	for _, p := range comparablePoints(r.Run) {
		key := describeLoad(p.Load)
		if !anyWorkload {
			key = of + "\n" + key
		}
		x := m.measuredAt[key]
		if x == nil {
			x = &loadOfSide{source: r, load: p.Load, workload: of}
			m.measuredAt[key] = x
			m.order = append(m.order, key)
		}
		i := slices.IndexFunc(x.launches, func(l launch) bool { return l.id == id })
		if i < 0 {
			i = len(x.launches)
			x.launches = append(x.launches, launch{id: id})
		}
		x.launches[i].points = append(x.launches[i].points, &p)
	}
}

// dropInvalid leaves out what the instrument itself does not vouch for. That has
// nothing to do with the server, so the launches that stay are not chosen by
// what they show.
func (x *loadOfSide) dropInvalid() {
	for i := range x.launches {
		l := &x.launches[i]
		before := len(l.points)
		l.points = slices.DeleteFunc(l.points, func(p *result.Point) bool { return p.Verdict == result.Invalid })
		if n := before - len(l.points); n > 0 {
			what := "a point"
			if n > 1 {
				what = say.Count(n) + " points"
			}
			x.invalid = append(x.invalid, fmt.Sprintf("%s of %s left out: INVALID", what, launchName(l.id, x.source)))
		}
	}
	x.launches = slices.DeleteFunc(x.launches, func(l launch) bool { return len(l.points) == 0 })
}

func launchName(id string, s Source) string {
	if id == "" {
		return filepath.Base(s.Path)
	}
	return "launch " + id
}

// unusableReason says why a load is not compared: what is not steady has no value to
// compare. A single launch that is not steady is enough, because the others
// would be chosen for being fast.
func (x *loadOfSide) unusableReason(side string) string {
	if len(x.launches) == 0 {
		return "every point of " + side + " is INVALID"
	}
	switch unstable := x.unstableLaunches(); {
	case unstable == 0:
		return ""
	case unstable < len(x.launches):
		side = fmt.Sprintf("%d of %d launches of %s", unstable, len(x.launches), side)
	}
	return "unstable in " + side + ": the queue grows for as long as the load lasts"
}

// sample is one metric of one side at one load: a value for each launch.
type sample struct {
	side    string
	values  []float64
	repeats [][]value // behind them
	few     bool
}

// leastRequests returns the least number of requests that a launch's share is of. It returns 0
// where that is not known.
func (s *sample) leastRequests() float64 {
	least := math.Inf(1)
	for _, v := range slices.Concat(s.repeats...) {
		least = min(least, float64(v.of))
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// valuesByLaunch gives a value for each launch, or why it cannot.
func (x *loadOfSide) valuesByLaunch(m figure, side string) (sample, string) {
	launches := make([][]value, len(x.launches))
	for i, l := range x.launches {
		for _, p := range l.points {
			launches[i] = append(launches[i], m.value(p))
		}
	}
	return launchValues(side, "launches", launches)
}

// launchValues gives a value for each launch, the median of its repeats, or why it
// cannot. One launch without a value is enough: what is withheld or off the
// scale is most often the worst.
func launchValues(side, called string, launches [][]value) (s sample, why string) {
	s.side = side
	without := 0
	for _, repeats := range launches {
		missing := false
		for _, v := range repeats {
			s.few = s.few || v.few
			if missing = missing || v.why != ""; why == "" {
				why = v.why
			}
		}
		if missing {
			without++
			continue
		}
		s.addRepeats(repeats)
	}
	switch {
	case without == 0:
		return s, ""
	case without == len(launches):
		return s, side + ": " + why
	}
	return s, fmt.Sprintf("%s, %d of %d %s: %s", side, without, len(launches), called, why)
}

func (s *sample) addRepeats(repeats []value) {
	xs := make([]float64, len(repeats))
	for i, v := range repeats {
		xs[i] = v.x
	}
	s.values = append(s.values, median(xs))
	s.repeats = append(s.repeats, repeats)
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	lo, hi := xs[(len(xs)-1)/2], xs[len(xs)/2]
	return lo + (hi-lo)/2
}

// describeLoad is a load in words, and what loads are paired by.
func describeLoad(l result.Load) string {
	s := ""
	switch {
	case l.Rate != nil:
		s = fmt.Sprintf("open loop, %s, %s/s", l.Arrival, number(*l.Rate))
	case l.Concurrency != nil:
		s = "closed loop, 1 user"
		if *l.Concurrency != 1 {
			s = "closed loop, " + say.Count(*l.Concurrency) + " users"
		}
		if l.ThinkMS != nil {
			s += ", thinking " + number(*l.ThinkMS) + " ms"
		}
	default:
		s = l.Loop + " loop"
	}
	if l.RespectLimits {
		s += ", within rate limits"
	}
	if l.MaxInFlight != nil {
		s += fmt.Sprintf(", at most %s in flight", say.Count(*l.MaxInFlight))
	}
	return s
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }

// loadTitle names a load, with the workload where the side has several.
func (m *measured) loadTitle(key string) string {
	s := describeLoad(m.measuredAt[key].load)
	if len(m.workloads) > 1 {
		s += ", " + workloadName(m.measuredAt[key].source.Run)
	}
	return s
}

// loadList lists all that the side has.
func (m *measured) loadList() string {
	var all []string
	for _, key := range m.order {
		all = append(all, describeLoad(m.measuredAt[key].load))
	}
	return strings.Join(all, ", ")
}

// describeContents says what there is to compare.
func (m *measured) describeContents() string {
	if len(m.order)+len(m.others) > 0 {
		return m.name + " has points"
	}
	c := m.searches[0].all[0]
	return fmt.Sprintf("%s has the capacity under %s over %s", m.name, c.SLO, c.Over)
}

// runIdentity tells one run from another, wherever it was read from.
func runIdentity(r *result.Run) string {
	measured := ""
	if len(r.Points) > 0 {
		p := &r.Points[0]
		measured = fmt.Sprint(p.Requests.Due, p.Requests.OK, p.InFlight)
		if e2e := p.Metrics.SummaryOf(metric.E2E); e2e != nil && e2e.Mean != nil {
			measured += fmt.Sprint(*e2e.Mean)
		}
	}
	return fmt.Sprintf("%s %s %s %d %s %d %s", launchOf(r), r.Started, r.Ended, r.Seed, r.Target.Spec, len(r.Points), measured)
}

// sharedSources says whether the sides have runs or results in common.
func sharedSources(sides []Side) (warnings []string) {
	of := map[string]string{}
	for i, s := range sides {
		for _, r := range s.Runs {
			id := runIdentity(r.Run)
			if other, ok := of[id]; ok && other != s.Name {
				return []string{fmt.Sprintf("%s and %s have a run in common", other, s.Name)}
			}
			of[id] = s.Name
		}
		for _, r := range s.Others {
			for _, before := range sides[:i] {
				if slices.ContainsFunc(before.Others, func(b *tools.Result) bool { return sameResult(r, b) }) {
					return []string{fmt.Sprintf("%s and %s have a result in common", before.Name, s.Name)}
				}
			}
		}
	}
	return nil
}
