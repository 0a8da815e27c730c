// Package decide says what the launches of an experiment say together: which
// configuration carries how much, whether the contract is met, what is given up, which is
// accepted, and when there is enough. It has no clock, socket or file.
//
// The unit is the launch. Each block has one launch of every configuration that is not
// given up, in an order drawn at random; so what drifts from block to block is no part of
// a difference, and what drifts within one is chance. Launches that are bad are not
// counted, see [Bad]. What a configuration carries is meant of the hours in which it was
// measured: blocks are not drawn from others that there might be. After each block from
// the second on the launches are looked at. All looks together are wrong as often as the
// plan allows: each has its share, see [ErrorShare].
package decide

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

// Problem holds the measurements so far, and the question. Configuration 0 is the baseline.
type Problem struct {
	Carries    [][]float64 // by configuration and block: the load at which the limits are reached; NaN where that was not measured
	Beyond     []Beyond    // by configuration: whether the loads that were measured ended before its limits; nil where none did
	Looked     float64     // how far ln of it is off for the requests of a launch being few
	Weights    []float64   // what each costs, relative to the others, as by its GPUs: who carries more is asked of what is carried for the same money; nil where all cost the same
	Wanted     float64     // load
	Planned    int         // blocks
	Before     []int       // that were planned before, and all looked at, before more were asked for; rising
	Confidence float64     // 0.95
	Precision  float64     // how much more another may carry and not be looked for
	Early      bool        // stop, and give up, as soon as the launches allow it
}

// Beyond says on which side of what was measured of a configuration its limits lie.
type Beyond int

const (
	Between Beyond = iota // loads within and loads beyond were measured
	Above                 // a launch kept to the limits at all loads: it carries more than it is given
	Below                 // one did at none: it carries less
)

func (p *Problem) limitsBeyond(i int) Beyond {
	if p.Beyond == nil {
		return Between
	}
	return p.Beyond[i]
}

// loadDifference returns the difference between the loads of configurations b and a for the same
// money, as ln. ok is false where the loads that were measured do not tell that it is no more, or
// no less.
func (p *Problem) loadDifference(fit stats.Blocked, a, b int) (d stats.Difference, ok bool) {
	d, ok = fit.Difference(a, b, p.Confidence)
	more := math.Log(p.weight(b) / p.weight(a))
	least := p.limitsBeyond(b) == Above || p.limitsBeyond(a) == Below // it may be more than the estimate
	most := p.limitsBeyond(b) == Below || p.limitsBeyond(a) == Above
	if least && d.Estimate-more <= 0 || most && d.Estimate-more >= 0 {
		return d, false
	}
	if ok && more != 0 {
		d.Estimate, d.Lo, d.Hi = d.Estimate-more, d.Lo-more, d.Hi-more
		d.P = 2 * stats.StudentCDF(-math.Abs(d.Estimate)/d.SE, d.DF)
	}
	return d, ok
}

func (p *Problem) weight(i int) float64 {
	if p.Weights == nil {
		return 1
	}
	return p.Weights[i]
}

// nearNothing is the least load that a launch is taken to carry, as a share of the wanted load.
// Without it a launch that carries nothing at all would be infinitely far from the others.
const nearNothing = 1e-3

// What is known of a configuration and the contract.
const (
	Meets     = "meets"     // it is established that it carries what is wanted
	Misses    = "misses"    // that it does not
	Undecided = "undecided" // neither
)

// Why a configuration was given up.
const (
	GivenUpMisses = "misses the contract"
	GivenUpLess   = "carries less than the baseline"
)

// Standing is where a configuration stands.
type Standing struct {
	Launches int             // that count
	Bad      int             // that do not
	Uneven   bool            // most of its launches carry much less than its others: all count, and nothing is claimed of it that bad launches would explain
	Carries  float64         // geometric mean over launches that count
	Interval *stats.Interval // of it, at the confidence asked for, by itself; nil: too few launches
	// Sure are two bounds, each of which holds for all configurations and looks together; 0
	// and +Inf where there are none. Where the machine gets slower they are for the last
	// block, else for all in which it was measured.
	Sure     stats.Interval
	Contract string // Meets, Misses or Undecided
	Change   *stats.Difference
	Adjusted float64 // p of no change, corrected for the configurations and the looks; 1 where there is none
	Left     int     // the block after which it was given up, 0 if it was not
	Why      string  // it was given up
	// Decides is the number of launches of each that would decide about the contract, if all goes
	// on as before. It is 0 where that is not known or it is decided.
	Decides int
}

// Decision is the result of the decision.
type Decision struct {
	Of       []Standing
	Accepted int               // configuration, -1 for none
	Leads    int               // the accepted one, else that which carries most of those not given up; -1 where none was measured
	Same     bool              // all launches of a configuration carry the same in a block: what they differ by is not known
	SD       float64           // between launches that count, of ln of the load; 0 where it is not known
	Bad      []Bad             // launches that do not count, by configuration
	Drift    *stats.Difference // of ln of the load, from block to block; nil: too few blocks
	Slower   bool              // it is established that the machine gets slower
	More     float64           // another that was not given up carries more than the one that leads by at most this share
	Blocks   int               // that were looked at
	Enough   bool              // nothing is left to be measured
	Why      string            // there is enough: one of the Stop constants
}

// Why an experiment is over.
const (
	StopAccepted = "accepted"  // one meets the contract, and no other carries much more
	StopNone     = "none"      // all miss the contract
	StopLaunches = "launches"  // all that were planned are measured
	StopNothing  = "too early" // it is not over
)

// early is the share of all errors that looks before the last may make together.
const early = 0.2

// capacityPart is the share of all false differences that the question of who carries more may
// make. The effects on other metrics may make the rest.
const capacityPart = 0.5

// ErrorShare is the part of the errors allowed that a look after a block may make: those before
// the last planned one have a fifth together, the last has the rest.
func ErrorShare(block, planned int) float64 {
	switch {
	case block >= planned:
		if planned <= 2 {
			return 1
		}
		return 1 - early
	case block < 2:
		return 0
	}
	return early / float64(planned-2)
}

// errorShare is the part of the errors allowed that a look after a block makes. Whoever plans more
// launches after the last ones were looked at has made all of them: what is looked at from
// then on may make half as many, and half of that the next time. So all looks together make
// twice as many at most, however often launches are added.
func (p *Problem) errorShare(block int) float64 {
	from, part := 0, 1.0
	for _, to := range append(slices.Clone(p.Before), p.Planned) {
		if to > p.Planned || to <= from {
			continue
		}
		if block <= to || to == p.Planned {
			of := ErrorShare(min(block, to)-from, to-from)
			if from > 0 { // the first of these is a look already
				of = ErrorShare(min(block, to)-from+1, to-from+1)
			}
			if !p.Early && block >= to {
				of = 1
			}
			return part * of
		}
		from, part = to, part/2
	}
	return part
}

// Errors returns the multiple of the errors allowed that all looks that were made may make.
func (p *Problem) Errors() float64 {
	times, part := 1.0, 0.5
	for _, n := range p.Before {
		if n < p.Planned {
			times, part = times+part, part/2
		}
	}
	return times
}

// Decide looks after each block at what had been measured by then, as the experiment did.
func Decide(p Problem) Decision {
	k := len(p.Carries)
	d := Decision{Of: make([]Standing, k), Accepted: -1, Leads: -1, More: math.Inf(1), Why: StopNothing}
	blocks := 0
	for i := range d.Of {
		blocks = max(blocks, len(p.Carries[i]))
		d.Of[i] = Standing{Contract: Undecided, Adjusted: 1, Sure: stats.Interval{Lo: 0, Hi: math.Inf(1)}}
	}
	for b := 1; b <= blocks && !d.Enough; b++ {
		last := b >= p.Planned
		if !p.Early && !last && b < blocks {
			continue
		}
		d.updateAfterBlock(&p, b, b == blocks)
	}
	return d
}

// GoOn looks after one block more than d did: it is Decide of all of them.
func (d Decision) GoOn(p Problem) Decision {
	if d.Of == nil {
		return Decide(p)
	}
	d.Of = slices.Clone(d.Of)
	d.updateAfterBlock(&p, d.Blocks+1, true)
	return d
}

// resolution is the precision of a launch's load, as a standard deviation of its logarithm.
// Launches that all came to the same load differ by that at most.
const resolution = 0.02

// updateAfterBlock updates the decision with the results of a block.
func (d *Decision) updateAfterBlock(p *Problem, block int, final bool) {
	logs := make([][]float64, len(p.Carries))
	for i, row := range p.Carries {
		n := min(block, len(row))
		if s := &d.Of[i]; s.Left > 0 {
			n = min(n, s.Left)
		}
		for _, x := range row[:n] {
			logs[i] = append(logs[i], math.Log(max(x, nearNothing*p.Wanted)))
		}
	}
	d.Blocks = block
	var uneven []bool
	d.Bad, uneven = badOf(logs, p.Looked)
	for i := range d.Of {
		d.Of[i].Bad, d.Of[i].Uneven = 0, uneven[i]
	}
	for _, bad := range d.Bad {
		logs[bad.Configuration][bad.Block] = math.NaN()
		d.Of[bad.Configuration].Bad++
	}
	for i := range d.Of {
		d.Of[i].countLaunches(logs[i])
	}
	fit, ok := stats.FitBlocks(logs)
	if d.Same = !ok && fit.DF >= 1; d.Same { // as where each carries more than is looked for
		fit.SD, ok = resolution, true
	}
	share := p.errorShare(block)
	if ok && share > 0 {
		d.SD = fit.SD
		d.Drift = blockTrend(fit, p.Confidence)
		d.Slower = d.Drift != nil && d.Drift.Estimate < 0 && d.Drift.P < drifts
		d.testConfigurations(p, fit, block, share, final)
	}
	d.chooseConfiguration(p, fit, ok && share > 0, share)
	if block >= p.Planned && !d.Enough {
		d.Enough, d.Why = true, StopLaunches
	}
}

// countLaunches counts the launches of a configuration.
func (s *Standing) countLaunches(logs []float64) {
	n, sum := 0, 0.0
	for _, x := range logs {
		if !math.IsNaN(x) {
			n, sum = n+1, sum+x
		}
	}
	s.Launches = n
	if n > 0 {
		s.Carries = math.Exp(sum / float64(n))
	}
}

// testConfigurations tests each configuration that was not given up: against what is wanted, and
// against the baseline.
func (d *Decision) testConfigurations(p *Problem, fit stats.Blocked, block int, share float64, final bool) {
	alpha := (1 - p.Confidence) * share
	var alive []int
	var differs []float64
	changes := map[int]*stats.Difference{}
	for i := range d.Of {
		if d.Of[i].Left == 0 {
			alive = append(alive, i)
		}
	}
	// What is true of a configuration and the contract can be missed on one side only: so
	// each side has all of the errors that are allowed.
	tail := alpha / float64(len(alive))
	for _, i := range alive {
		s := &d.Of[i]
		s.Contract, s.Sure, s.Decides = Undecided, stats.Interval{Hi: math.Inf(1)}, 0
		m, ok := fit.Mean(i, p.Confidence)
		if !ok || s.Launches < 2 {
			continue
		}
		s.Interval = &stats.Interval{Lo: math.Exp(m.Lo), Hi: math.Exp(m.Hi)}
		d.adjustForDrift(&m, p.Carries[i], i)
		if p.limitsBeyond(i) != Below {
			s.Sure.Lo = math.Exp(m.Estimate - stats.StudentQuantile(1-tail, m.DF)*m.SE)
		}
		if tail := tail - d.allBad(i)*badBeyond(math.Log(p.Wanted)-m.Estimate); tail > 0 && p.limitsBeyond(i) != Above {
			s.Sure.Hi = math.Exp(m.Estimate + stats.StudentQuantile(1-tail, m.DF)*m.SE)
		}
		switch {
		case s.Sure.Lo > p.Wanted:
			s.Contract = Meets
		case s.Sure.Hi < p.Wanted:
			s.Contract = Misses
		}
		if s.Contract == Undecided && final {
			s.Decides = launchesNeeded(m, tail, math.Abs(m.Estimate-math.Log(p.Wanted)), float64(s.Launches))
		}
		if i == 0 {
			continue
		}
		c, ok := p.loadDifference(fit, 0, i)
		if !ok {
			continue
		}
		changes[i] = &c
		differs = append(differs, min(1, c.P+d.mistakenProbability(i, c.Estimate)))
	}
	differs = stats.Holm(differs)
	n := 0
	for i := range d.Of {
		c, ok := changes[i]
		if !ok {
			continue
		}
		s := &d.Of[i]
		s.Change = c
		s.Adjusted = min(s.Adjusted, differs[n]/share/capacityPart)
		n++
	}
	if !p.Early || block >= p.Planned {
		return
	}
	for _, i := range alive {
		s := &d.Of[i]
		switch {
		case i == 0: // what the others are compared with
		case s.Contract == Misses:
			s.Left, s.Why = block, GivenUpMisses
		case s.Change != nil && s.Change.Estimate < 0 && s.Adjusted < 1-p.Confidence:
			s.Left, s.Why = block, GivenUpLess
		}
	}
}

// drifts is the level of the test for a slowing machine. It is the probability that a machine of
// constant speed is said to get slower.
const drifts = 0.01

// adjustForDrift takes the mean of what a configuration carries to the last block, where it is
// established that the machine gets slower: what it carried before is not promised then.
func (d *Decision) adjustForDrift(m *stats.Difference, carries []float64, i int) {
	if !d.Slower {
		return
	}
	sum, n := 0.0, 0.0
	for b, x := range carries[:min(d.Blocks, len(carries))] {
		if !math.IsNaN(x) && !d.IsBad(i, b) {
			sum, n = sum+float64(b), n+1
		}
	}
	blocks := float64(d.Blocks-1) - sum/n
	m.Estimate += d.Drift.Estimate * blocks
	m.SE, m.DF = math.Hypot(m.SE, d.Drift.SE*blocks), min(m.DF, d.Drift.DF)
}

// IsBad says that a launch does not count; blocks are counted from 0.
func (d *Decision) IsBad(configuration, block int) bool {
	return slices.ContainsFunc(d.Bad, func(b Bad) bool { return b.Configuration == configuration && b.Block == block })
}

// launches are all that were measured.
func (d *Decision) launches() (n int) {
	for i := range d.Of {
		n += d.Of[i].Launches + d.Of[i].Bad
	}
	return n
}

// mistakenProbability returns the probability that a difference to the baseline comes from bad
// launches. These are all the launches on the side that has less, and they count because they are
// all alike.
func (d *Decision) mistakenProbability(i int, difference float64) float64 {
	if difference > 0 {
		i = 0
	}
	return d.allBad(i) * badBeyond(math.Abs(difference))
}

// allBad returns the probability that the launches of a configuration that count are all bad.
func (d *Decision) allBad(i int) float64 {
	if d.Of[i].Uneven {
		return 1
	}
	return allBad(d.Of[i].Launches, len(d.Bad), d.launches())
}

// launchesNeeded is about how many launches would tell a mean from something that is so far away,
// 0 where it takes more than anyone would start.
func launchesNeeded(m stats.Difference, tail, away, n float64) int {
	const most = 200
	for k := n + 1; k <= most; k++ {
		if stats.StudentQuantile(1-tail, m.DF*k/n)*m.SE*math.Sqrt(n/k) < away {
			return int(k)
		}
	}
	return 0
}

// chooseConfiguration accepts a configuration: the baseline, if it meets the contract and no other
// that does is established to carry more; else the one that carries most of those that meet it.
// Where the one chosen may lose more than the precision that is asked for, and of another it is
// established that it does not, that other is accepted.
func (d *Decision) chooseConfiguration(p *Problem, fit stats.Blocked, known bool, share float64) {
	d.Accepted, d.Leads, d.More = -1, -1, math.Inf(1)
	alpha := 1 - p.Confidence
	best, worth := -1, func(i int) float64 { return d.Of[i].Carries / p.weight(i) }
	for i := range d.Of {
		if s := &d.Of[i]; s.Contract == Meets && s.Left == 0 && (best < 0 || worth(i) > worth(best)) {
			best = i
		}
	}
	if best < 0 {
		for i := range d.Of {
			if s := &d.Of[i]; s.Left == 0 && s.Launches > 0 && (d.Leads < 0 || worth(i) > worth(d.Leads)) {
				d.Leads = i
			}
		}
		if !slices.ContainsFunc(d.Of, func(s Standing) bool { return s.Contract != Misses && s.Why != GivenUpLess }) {
			d.Enough, d.Why = true, StopNone
		} else if known {
			d.boundOthers(p, fit, share)
		}
		return
	}
	if d.Of[0].Contract == Meets && best > 0 && d.Of[best].Adjusted >= alpha {
		established := 0
		for i := range d.Of {
			s := &d.Of[i]
			if s.Contract == Meets && s.Left == 0 && s.Change != nil && s.Change.Estimate > 0 && s.Adjusted < alpha && (established == 0 || worth(i) > worth(established)) {
				established = i
			}
		}
		best = established
	}
	d.Accepted, d.Leads = best, best
	if !known {
		return
	}
	if d.boundOthers(p, fit, share); d.More > p.Precision { // another may be known to lose less
		kept := *d
		for i := range d.Of {
			if s := &d.Of[i]; s.Contract != Meets || s.Left > 0 || i == best {
				continue
			}
			other := kept
			other.Accepted, other.Leads = i, i
			if other.boundOthers(p, fit, share); other.More <= p.Precision && other.More < d.More {
				*d = other
			}
		}
	}
	if p.Early && d.More <= p.Precision {
		d.Enough, d.Why = true, StopAccepted
	}
}

// boundOthers says how much more another may carry than the one that leads, by bounds that hold
// for all of them together.
func (d *Decision) boundOthers(p *Problem, fit stats.Blocked, share float64) {
	d.More = math.Inf(1)
	var others []int
	for i := range d.Of {
		if s := &d.Of[i]; i != d.Leads && s.Left == 0 && (d.Accepted < 0 || s.Contract != Misses) {
			others = append(others, i)
		}
	}
	most := 0.0
	for _, i := range others {
		c, ok := p.loadDifference(fit, d.Leads, i)
		if p.limitsBeyond(i) == Above || p.limitsBeyond(d.Leads) == Below {
			return // by how much is not known
		}
		tail := (1-p.Confidence)*share/float64(len(others)) - d.allBad(i)
		if !ok || tail <= 0 {
			return
		}
		most = max(most, c.Estimate+stats.StudentQuantile(1-tail, c.DF)*c.SE)
	}
	const stated = 1 // beyond twice as much it says nothing
	if most <= stated {
		d.More = math.Expm1(most)
	}
}
