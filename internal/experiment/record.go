package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/experiment/decide"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// RecordSchema names the version of decision.json.
const RecordSchema = "pitot.decision/v1"

// Files of the record, in the experiment's directory.
const (
	RecordJSON     = "decision.json"
	RecordMarkdown = "decision.md"
	RecordPage     = "decision.html"
)

// What an experiment comes to.
const (
	AnswerAccepted  = "accepted"  // a configuration meets the contract
	AnswerNone      = "none"      // it is established that none does
	AnswerUndecided = "undecided" // neither
)

// Record holds the decision of an experiment, and the data that it rests on.
type Record struct {
	Schema     string            `json:"schema"`
	Experiment string            `json:"experiment"`
	Pitot      result.Version    `json:"pitot"`
	Target     string            `json:"target"`
	Contract   ContractRecord    `json:"contract"`
	Answer     string            `json:"answer"`
	Accepted   string            `json:"accepted,omitempty"` // configuration
	Settings   string            `json:"settings,omitempty"` // the target with its settings
	Standings  []Standing        `json:"configurations"`     // the baseline first
	NotStarted []Failure         `json:"not_started,omitempty"`
	Hypotheses []Tested          `json:"hypotheses"`
	Controls   []ControlRecord   `json:"controls,omitempty"` // rows that a knob is said not to move
	Effects    []EffectRecord    `json:"effects"`
	Corrected  int               `json:"corrected"`                      // effects that were corrected for their number
	Distance   *Distance         `json:"distance_from_bounds,omitempty"` // of the configuration accepted, else of the one that carries most
	Headroom   *[2]float64       `json:"headroom"`                       // of what is carried over what is wanted: by the estimate, and by what is sure; null: none is accepted
	Limiter    *Limiter          `json:"limits_it,omitempty"`
	Open       string            `json:"why_undecided,omitempty"`
	PerGPU     bool              `json:"changes_per_gpu,omitempty"` // configurations have more GPUs or fewer: changes, and what another carries more, are of what is carried by a GPU
	Spread     *float64          `json:"between_launches"`          // coefficient of variation of what launches that count carry, about blocks and configurations
	Bad        []BadRecord       `json:"not_counted"`               // launches
	Drift      *DriftRecord      `json:"drift"`                     // null: too few blocks
	More       *float64          `json:"others_carry_more"`         // than the one accepted, else than the one that carries most: at most by this share, at the confidence
	Launches   LaunchesRecord    `json:"launches"`
	Stopped    result.Reason     `json:"why_it_stopped"`
	Next       []string          `json:"next"`
	Spent      Spent             `json:"spent"`
	Void       []string          `json:"void,omitempty"`
	Repeat     []string          `json:"repeat"` // commands
	Machine    *MachineRecord    `json:"machine,omitempty"`
	Server     map[string]string `json:"server,omitempty"` // what the baseline's tells of itself: engine, version, settings
	Sittings   []SittingRecord   `json:"sittings"`
	Rows       []RowRecord       `json:"rows"`
	Lines      []LineRecord      `json:"measured"` // by launch
	Plan       string            `json:"plan"`     // its file
	Since      *Since            `json:"since,omitempty"`
	Trend      *Trend            `json:"trend,omitempty"`
}

// ContractRecord is the contract as it was judged.
type ContractRecord struct {
	Kind       string   `json:"kind"`
	Limits     string   `json:"limits"`
	Capacity   float64  `json:"capacity"`           // requests per second
	USDPerM    *float64 `json:"usd_per_m_good"`     // at most; null: it does not say
	ForCost    *float64 `json:"capacity_for_cost"`  // that must be carried to be as cheap
	Row        string   `json:"row"`                //
	Workload   string   `json:"workload,omitempty"` //
	Confidence float64  `json:"confidence"`
	OfAll      float64  `json:"confidence_of_all_looks,omitempty"` // lower, where launches were added after the last were looked at
}

// BadRecord is a launch that does not count: it carries much less than its configuration
// and its block make one expect.
type BadRecord struct {
	Configuration string  `json:"configuration"`
	Launch        int     `json:"launch"`
	Less          float64 `json:"less"` // share
}

// DriftRecord is the change of the load carried from block to block.
type DriftRecord struct {
	PerBlock float64    `json:"per_block"` // share
	Interval [2]float64 `json:"interval"`
	Slower   bool       `json:"slower"` // established: what is sure is said of the last block
}

// Standing holds the findings on one configuration.
type Standing struct {
	Name      string      `json:"name"`
	Launches  int         `json:"launches"` // that count
	Bad       int         `json:"not_counted,omitempty"`
	Uneven    bool        `json:"uneven,omitempty"` // most launches carry much less than the others: all count
	Carries   *float64    `json:"carries"`          // requests per second within the limits, geometric mean over launches that count
	Interval  *[2]float64 `json:"interval"`         // by itself
	Sure      *[2]float64 `json:"sure"`             // two bounds, each holds for all configurations and looks together
	Least     *float64    `json:"sure_at_least"`    // the first of them, where the second is not known too
	Bound     string      `json:"bound,omitempty"`  // "at least" or "at most", where loads ended before the limit was found
	First     string      `json:"reached_first,omitempty"`
	Contract  string      `json:"contract"` // "meets", "misses" or "undecided"
	Change    *float64    `json:"change"`   // of what is carried, against the baseline
	Change95  *[2]float64 `json:"change_interval"`
	PAdjusted *float64    `json:"p_adjusted"`
	USDPerM   *float64    `json:"usd_per_m_good"`
	GivenUp   int         `json:"given_up_after,omitempty"` // launches
	Rejected  string      `json:"rejected,omitempty"`       // the number that rejected it
	Decides   int         `json:"launches_that_would_decide,omitempty"`
	GPUs      int         `json:"gpus,omitempty"`         // 0: not known
	Unknown   []string    `json:"not_reported,omitempty"` // settings that nothing told of the server: not known to be applied
	Ladder    []Rung      `json:"ladder"`                 // loads, over all launches
}

// Rung is a load of the contract's row, over all launches of a configuration.
type Rung struct {
	Load     float64 `json:"load"`
	Launches int     `json:"launches"`
	Within   int     `json:"within"`         // launches whose requests kept to all limits
	Violated float64 `json:"violated"`       // share of the requests that violated the limit that is reached first
	Limit    string  `json:"limit"`          // it
	Value    float64 `json:"value,omitzero"` // that was measured of it, mean
	Requests int     `json:"requests"`
}

// EffectRecord is the effect of a configuration on a metric of a row, against the baseline.
type EffectRecord struct {
	Row           string      `json:"row"`
	Metric        string      `json:"metric"`
	Unit          string      `json:"unit"`
	Configuration string      `json:"configuration"`
	Baseline      float64     `json:"baseline"`
	Value         float64     `json:"value"`
	Change        float64     `json:"change"` // ratio less 1, or the difference of shares
	OfShare       bool        `json:"of_share"`
	Interval      *[2]float64 `json:"interval"`
	PAdjusted     float64     `json:"p_adjusted"`
	Verdict       string      `json:"verdict"` // "better", "worse", "the same" or "?"
	Launches      int         `json:"launches"`
}

// Verdicts on an effect.
const (
	Better       = "better"
	Worse        = "worse"
	Alike        = "the same"
	NotDiscerned = "?"
)

// Limiter describes the limit of the accepted configuration, or of the baseline.
type Limiter struct {
	Configuration string `json:"configuration"`
	Sentence      string `json:"sentence"`
	Try           string `json:"try,omitempty"`
	Run           string `json:"run"` // directory
}

// LaunchesRecord counts them.
type LaunchesRecord struct {
	Planned int   `json:"planned"`
	Blocks  int   `json:"blocks"`
	Done    int   `json:"done"`
	Before  []int `json:"planned_before,omitempty"` // and all looked at, before more were asked for
}

// Spent holds the time, the cost and the counts of the measurement.
type Spent struct {
	Seconds  float64 `json:"seconds"`
	Virtual  bool    `json:"virtual"`
	USD      float64 `json:"usd"`
	Requests int     `json:"requests"`
	Runs     int     `json:"runs"`
	Starting float64 `json:"starting_s,omitempty"` // of it, starts and stops of a server
}

// MachineRecord is the client's.
type MachineRecord struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
}

// SittingRecord is one time that somebody measured.
type SittingRecord struct {
	Pitot string        `json:"pitot"`
	Began string        `json:"began"`
	Ended string        `json:"ended"`
	Why   result.Reason `json:"why,omitzero"`
}

func finiteValue(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func finiteInterval(v *stats.Interval) *[2]float64 {
	if v == nil || math.IsInf(v.Hi, 0) || math.IsNaN(v.Lo+v.Hi) {
		return nil
	}
	return &[2]float64{v.Lo, v.Hi}
}

// Record works out what is known by now.
func (x *Experiment) Record() *Record {
	p := x.Plan
	blocks := x.completeBlocks()
	q := x.decisionProblem(blocks)
	d := decide.Decide(q)
	r := &Record{
		Schema: RecordSchema, Experiment: p.Name(), Pitot: x.Version, Target: p.Target, Answer: AnswerUndecided,
		Contract: ContractRecord{Kind: p.Contract.Kind, Limits: p.Contract.Limits.String(), Capacity: p.Contract.Capacity, Row: p.Contract.Row,
			Workload: p.ContractRow().Plan.Workload, Confidence: p.Stop.Confidence},
		Hypotheses: []Tested{}, Bad: []BadRecord{}, Rows: []RowRecord{}, Lines: []LineRecord{}, Plan: p.source, Effects: []EffectRecord{}, Next: []string{}, Sittings: []SittingRecord{}, Void: x.Void,
		Launches: LaunchesRecord{Planned: p.Launches, Blocks: blocks},
	}
	if p.Contract.Cost > 0 {
		r.Contract.USDPerM = &p.Contract.Cost
		if q.Wanted > p.Contract.Capacity {
			r.Contract.ForCost = finiteValue(q.Wanted)
		}
	}
	if r.Launches.Before = q.Before; len(q.Before) > 0 {
		r.Contract.OfAll = 1 - (1-p.Stop.Confidence)*q.Errors()
	}
	r.NotStarted, r.PerGPU = x.NotStarted(), q.Weights != nil
	for i, c := range p.Configurations() {
		r.Standings = append(r.Standings, x.configurationStanding(c, i, &d, blocks))
	}
	switch {
	case d.Accepted >= 0:
		r.Answer, r.Accepted = AnswerAccepted, p.Configurations()[d.Accepted].Name
		r.Settings = p.describeSettings(p.Configurations()[d.Accepted])
	case d.Why == decide.StopNone:
		r.Answer = AnswerNone
	}
	for i := range r.Standings {
		s := &r.Standings[i]
		if s.Bound != "" && s.Bound == r.Standings[0].Bound { // both are somewhere beyond
			s.Change, s.Change95, s.PAdjusted = nil, nil, nil
		}
		if s.Name != r.Accepted {
			s.Rejected = x.rejectionReason(r, s, &d.Of[i])
		}
	}
	for _, b := range d.Bad {
		r.Bad = append(r.Bad, BadRecord{p.Configurations()[b.Configuration].Name, b.Block + 1, b.Less})
	}
	if t := d.Drift; t != nil {
		r.Drift = &DriftRecord{math.Expm1(t.Estimate), [2]float64{math.Expm1(t.Lo), math.Expm1(t.Hi)}, d.Slower}
	}
	unbounded := slices.ContainsFunc(r.Standings, func(s Standing) bool { return s.Bound == "at least" && s.Name != r.Accepted })
	if r.Answer != AnswerNone && !unbounded { // of one whose limits were not reached it is not known how much it carries
		r.More = finiteValue(d.More)
	}
	if d.SD > 0 && !d.Same {
		r.Spread = finiteValue(math.Sqrt(math.Expm1(d.SD * d.SD)))
	}
	for _, row := range p.Rows {
		for i := range row.Hypotheses {
			r.Hypotheses = append(r.Hypotheses, x.testHypothesis(row, &row.Hypotheses[i], &d, blocks))
		}
		stand, note := p.ExpectedHypotheses(row)
		for i := range stand {
			t := x.testHypothesis(row, &stand[i], &d, blocks)
			t.Expected = note
			r.Hypotheses = append(r.Hypotheses, t)
		}
	}
	x.addEffects(r, d, q, blocks)
	x.recordCounts(r)
	r.Limiter = x.findLimiter(r, &d, blocks)
	if d.Leads >= 0 {
		for block := 1; block <= blocks && r.Distance == nil; block++ {
			if !d.IsBad(d.Leads, block-1) {
				r.Distance = x.boundsDistance(p.Configurations()[d.Leads], block)
			}
		}
	}
	if s := r.standingByName(r.Accepted); s != nil && s.Carries != nil && s.Least != nil {
		r.Headroom = &[2]float64{*s.Carries/q.Wanted - 1, *s.Least/q.Wanted - 1}
	}
	r.Stopped = x.stopReason(r, &d)
	r.Open = x.openReason(r, &d, &q)
	r.Next = x.nextSteps(r, &d)
	r.Repeat = x.repeatCommands(r)
	return r
}

// standingByName is a configuration's by its name, nil of another.
func (r *Record) standingByName(name string) *Standing {
	for i := range r.Standings {
		if r.Standings[i].Name == name {
			return &r.Standings[i]
		}
	}
	return nil
}

// configurationStanding returns the findings on a configuration.
func (x *Experiment) configurationStanding(c Configuration, i int, d *decide.Decision, blocks int) Standing {
	p, s := x.Plan, &d.Of[i]
	out := Standing{Name: c.Name, Launches: s.Launches, Bad: s.Bad, Uneven: s.Uneven, Contract: s.Contract, GivenUp: s.Left, Decides: s.Decides, GPUs: p.gpuCount(c), Ladder: []Rung{}}
	if p.Server != nil {
		out.Unknown = x.notReported(c)
	}
	if s.Launches > 0 {
		out.Carries, out.Interval = finiteValue(s.Carries), finiteInterval(s.Interval)
	}
	if s.Sure.Lo > 0 && !math.IsInf(s.Sure.Hi, 0) {
		out.Sure = &[2]float64{s.Sure.Lo, s.Sure.Hi}
	}
	if s.Sure.Lo > 0 {
		out.Least = &s.Sure.Lo
	}
	if s.Change != nil {
		out.Change = finiteValue(math.Expm1(s.Change.Estimate))
		out.Change95 = &[2]float64{math.Expm1(s.Change.Lo), math.Expm1(s.Change.Hi)}
		out.PAdjusted = finiteValue(s.Adjusted)
	}
	if s.Left > 0 {
		blocks = min(blocks, s.Left)
	}
	costs, n := 0.0, 0
	first := map[string]int{}
	ladder := map[float64]*Rung{}
	for block := 1; block <= blocks; block++ {
		measured := x.finishedRun(&Part{c, p.ContractRow(), block})
		if measured == nil || d.IsBad(i, block-1) {
			continue
		}
		climbed, ok := readClimb(measured, p.Contract.Capacity, p.Contract.Limits)
		if !ok {
			continue
		}
		switch {
		case climbed.AtLeast:
			out.Bound = "at least"
		case climbed.AtMost:
			out.Bound = "at most"
		}
		if climbed.Claim >= 0 {
			first[climbed.claims[climbed.Claim]]++
		}
		if usd := climbed.costWithinLimits(); !math.IsNaN(usd) {
			costs, n = costs+math.Log(usd), n+1
		}
		for k := range climbed.rungs {
			addRung(ladder, &climbed.rungs[k], climbed.claims, &measured.Points[k])
		}
	}
	if out.Bound != "" { // how far it is beyond is not known
		out.Interval = nil
	}
	if n > 0 {
		out.USDPerM = finiteValue(math.Exp(costs / float64(n)))
	}
	for claim, n := range first {
		if n > first[out.First] || n == first[out.First] && claim < out.First {
			out.First = claim
		}
	}
	for _, rung := range ladder {
		n := float64(rung.Launches)
		rung.Violated, rung.Value = rung.Violated/n, rung.Value/n
		out.Ladder = append(out.Ladder, *rung)
	}
	stats.SortStable(out.Ladder, func(a, b Rung) int { return int(math.Copysign(1, a.Load-b.Load)) })
	return out
}

// addRung adds a launch's point to the ladder of its configuration.
func addRung(ladder map[float64]*Rung, rung *decide.Rung, claims []string, p *result.Point) {
	if len(claims) == 0 {
		return
	}
	worst := 0
	for i, v := range rung.Claims {
		if v.Share/v.Allowed > rung.Claims[worst].Share/rung.Claims[worst].Allowed {
			worst = i
		}
	}
	key := math.Round(rung.Load*1e6) / 1e6
	at := ladder[key]
	if at == nil {
		at = &Rung{Load: rung.Load, Limit: claims[worst]}
		ladder[key] = at
	}
	at.Launches++
	at.Requests += p.Requests.Due
	if rung.IsWithin() {
		at.Within++
	}
	for i, claim := range claims {
		if claim == at.Limit {
			at.Violated += rung.Claims[i].Share
		}
	}
	for _, l := range p.SLO.Limits {
		if l.Spec == at.Limit && l.Value != nil {
			at.Value += *l.Value
		}
	}
}

// rejectionReason is the number that speaks against a configuration.
func (x *Experiment) rejectionReason(r *Record, s *Standing, d *decide.Standing) string {
	wanted := x.Plan.Contract.Capacity
	if r.Contract.ForCost != nil {
		wanted = *r.Contract.ForCost
	}
	atWanted := func() string {
		for _, rung := range s.Ladder {
			if rung.Load == x.Plan.Contract.Capacity && rung.Within < rung.Launches {
				return fmt.Sprintf("; at %s/s %s of requests miss %s", say.Decimal(rung.Load, 3), say.Percent(rung.Violated), rung.Limit)
			}
		}
		return ""
	}
	switch {
	case s.Launches == 0:
		return "not measured"
	case s.Contract == decide.Misses:
		most := ""
		if s.Sure != nil {
			most = fmt.Sprintf(" (at most %s/s, corrected for all looks)", say.Quantity(s.Sure[1]))
		}
		return fmt.Sprintf("carries %s/s%s of %s/s wanted%s", say.Quantity(*s.Carries), most, say.Decimal(wanted, 3), atWanted())
	case d.Why == decide.GivenUpLess, s.Change != nil && s.PAdjusted != nil && *s.PAdjusted < 1-r.Contract.Confidence && *s.Change < 0:
		each := ""
		if r.PerGPU {
			each = " by GPU"
		}
		return fmt.Sprintf("carries %s less%s than the baseline", say.Percent(-*s.Change), each)
	case s.Contract == decide.Undecided && r.Answer != AnswerUndecided:
		return fmt.Sprintf("not shown to carry %s/s%s", say.Decimal(wanted, 3), atWanted())
	case r.Answer != AnswerAccepted:
		return ""
	case r.Accepted == Baseline:
		return "not shown to carry more than the baseline"
	}
	return "carries less than " + r.Accepted + ", by the estimate"
}

// addEffects are those on all lines.
func (x *Experiment) addEffects(r *Record, d decide.Decision, q decide.Problem, blocks int) {
	p := x.Plan
	configurations := p.Configurations()
	for _, row := range p.Rows {
		asks := ""
		for _, s := range mergeSettings(presetSettings(row.Name, p.Contract.Kind), p.Common, row.Settings) {
			asks += s.Name + "=" + strings.Join(s.Values, ",") + " "
		}
		if row.Name == p.Contract.Row {
			asks += "at " + say.Exact(p.Contract.Capacity) + "/s within " + p.Contract.Limits.String()
		}
		r.Rows = append(r.Rows, RowRecord{row.Name, row.Question, strings.TrimSpace(asks)})
		if row.Name == p.Contract.Row {
			r.addLines(row, capacityFigure(), configurations, q.Carries)
		}
	}
	type source struct {
		row *Row
		f   Figure
	}
	var from []source
	var lines []decide.Line
	for _, row := range p.Rows {
		for _, f := range p.figuresOf(row) {
			values := x.valuesOfBlocks(blocks, func(c Configuration, block int) float64 { return x.figureValue(f, row.Name, c.Name, block) })
			r.addLines(row, f, configurations, values)
			r.Controls = append(r.Controls, x.compareControls(row, f, values, &d)...)
			from, lines = append(from, source{row, f}), append(lines, decide.Line{Values: values, Share: f.Share()})
		}
	}
	if blocks == 0 {
		return
	}
	judgeControls(r.Controls, p.Stop.Confidence)
	for _, e := range decide.EstimateEffects(lines, d, q) {
		f := from[e.Line].f
		if p.isControl(configurations[e.Configuration], from[e.Line].row) {
			continue // judged as that
		}
		out := EffectRecord{
			Row: from[e.Line].row.Name, Metric: f.Name, Unit: string(f.Metric.Unit), Configuration: configurations[e.Configuration].Name,
			Baseline: e.Baseline, Value: e.Value, Change: e.Change, OfShare: f.Share(), Interval: e.Interval, PAdjusted: e.Adjusted, Verdict: NotDiscerned, Launches: e.Launches,
		}
		switch {
		case e.Same:
			out.Verdict = Alike
		case e.Adjusted < 1-p.Stop.Confidence && (e.Change > 0) == (f.Metric.Better == metric.Higher):
			out.Verdict = Better
		case e.Adjusted < 1-p.Stop.Confidence:
			out.Verdict = Worse
		}
		if !e.Same {
			r.Corrected++
		}
		r.Effects = append(r.Effects, out)
	}
}

// addLines keeps what launches measured of a metric.
func (r *Record) addLines(row *Row, f Figure, configurations []Configuration, values [][]float64) {
	for i, c := range configurations {
		l := LineRecord{Row: row.Name, Metric: f.Name, Unit: string(f.Metric.Unit), Configuration: c.Name, Higher: f.Metric.Better == metric.Higher, OfShare: f.Share(), Values: []*float64{}}
		for _, v := range values[i] {
			l.Values = append(l.Values, finiteValue(v))
		}
		r.Lines = append(r.Lines, l)
	}
}

// recordCounts says how much was measured.
func (x *Experiment) recordCounts(r *Record) {
	p := x.Plan
	r.Spent.Seconds, r.Spent.USD = x.measuredCosts()
	if p.Server != nil {
		r.Spent.Starting, _ = x.startCosts()
	}
	r.Spent.Virtual = strings.HasPrefix(p.Target, "sim:")
	for _, c := range p.Configurations() {
		for block := 1; block <= p.Launches; block++ {
			all := true
			for _, part := range p.launchParts(c, block) {
				measured := x.finishedRun(&part)
				if measured == nil {
					all = false
					continue
				}
				r.Spent.Runs++
				for i := range measured.Points {
					r.Spent.Requests += measured.Points[i].Requests.Due
				}
				if r.Server == nil {
					r.Server = measured.Target.Server
				}
				if r.Machine == nil {
					r.Machine = &MachineRecord{measured.Environment.CPU, measured.Environment.Cores, measured.Environment.Kernel}
				}
			}
			if all {
				r.Launches.Done++
			}
		}
	}
	if x.state != nil {
		for _, s := range x.state.Sittings {
			r.Sittings = append(r.Sittings, SittingRecord(s))
		}
	}
}

// findLimiter says what limits the accepted configuration, else the one that carries most: by
// the first launch's load beyond its limits.
func (x *Experiment) findLimiter(r *Record, d *decide.Decision, blocks int) *Limiter {
	name := r.Accepted
	if name == "" {
		most := 0.0
		for _, s := range r.Standings {
			if s.Carries != nil && *s.Carries > most {
				name, most = s.Name, *s.Carries
			}
		}
	}
	if blocks == 0 || name == "" {
		return nil
	}
	for i, c := range x.Plan.Configurations() {
		if c.Name != name {
			continue
		}
		var l *Limiter
		for block := 1; block <= blocks; block++ { // the first launch that tells
			if d.IsBad(i, block-1) {
				continue
			}
			if l = x.limiterOf(&Part{c, x.Plan.ContractRow(), block}); l != nil && l.Sentence != notKnown {
				break
			}
		}
		return l
	}
	return nil
}

// notKnown stands where no cause is found.
const notKnown = "what limits it is not known"

// limiterOf says what limits one launch, nil where it was not measured.
func (x *Experiment) limiterOf(part *Part) *Limiter {
	measured := x.finishedRun(part)
	if measured == nil {
		return nil
	}
	dir := part.runDir(x.Dir)
	l := &Limiter{Configuration: part.Configuration.Name, Run: dir, Sentence: notKnown}
	found, err := inspect.Run(dir, measured, inspect.Options{Quick: true})
	if err != nil {
		return l
	}
	for i := range found.Points {
		at := &found.Points[i]
		if len(at.Symptoms) == 0 || at.Met != result.No {
			continue
		}
		d := &at.Symptoms[0]
		if d.Primary.Cause == explain.Unknown {
			continue
		}
		l.Sentence = fmt.Sprintf("%s %s at %s: %s (%s)", d.Symptom.Of, strings.ToUpper(string(d.Symptom.Metric)), at.Load, d.Primary.Claim, d.Primary.Confidence)
		if t := d.Primary.Try; t != nil {
			l.Try = strings.TrimSpace(t.Knob + " " + t.From)
			if t.To != "" {
				l.Try += " → " + t.To
			}
			if t.ChangesAnswers {
				l.Try += " (another model: judge its answers again)"
			}
		}
		return l
	}
	return l
}

// stopReason is why the experiment is over, or that it is not.
func (x *Experiment) stopReason(r *Record, d *decide.Decision) result.Reason {
	why := result.Reason{Code: result.ExperimentNotOver, N: float64(r.Launches.Blocks), Of: float64(r.Launches.Planned)}
	switch d.Why {
	case decide.StopAccepted:
		why.Code, why.Share, why.Low = result.ExperimentAccepted, x.Plan.Stop.Precision, x.Plan.Stop.Confidence
	case decide.StopNone:
		why.Code = result.ExperimentNoneLeft
	case decide.StopLaunches:
		why.Code = result.ExperimentMeasured
	}
	return why
}

// openReason says why nothing is decided, "" where something is, or nothing is complete yet.
func (x *Experiment) openReason(r *Record, d *decide.Decision, q *decide.Problem) string {
	if r.Answer != AnswerUndecided || d.Leads < 0 {
		return ""
	}
	s, name := &d.Of[d.Leads], r.Standings[d.Leads].Name
	atLeast := say.Quantity(s.Sure.Lo) + "/s"
	switch {
	case s.Launches < 2:
		return fmt.Sprintf("one launch of %s says nothing of others", name)
	case d.SD == 0:
		return "no launches show how far they differ"
	case s.Uneven:
		return fmt.Sprintf("most launches of %s carry much less than its others", name)
	case s.Sure.Lo > 0 && !math.IsInf(s.Sure.Hi, 0):
		return fmt.Sprintf("%s carries %s to %s, and %s/s is wanted", name, atLeast, say.Quantity(s.Sure.Hi)+"/s", say.Quantity(q.Wanted))
	}
	if s.Sure.Lo <= 0 {
		return fmt.Sprintf("what %s is sure to carry is not known, and %s/s is wanted", name, say.Quantity(q.Wanted))
	}
	return fmt.Sprintf("%s is sure to carry %s, and %s/s is wanted", name, atLeast, say.Quantity(q.Wanted))
}

// nextSteps returns the suggested next steps.
func (x *Experiment) nextSteps(r *Record, d *decide.Decision) (list []string) {
	if !d.Enough {
		list = append(list, "go on: pitot experiment run "+say.ShellLine([]string{x.Plan.Path}))
	}
	if r.Answer == AnswerUndecided && d.Enough {
		least := 0
		for _, s := range r.Standings {
			if s.Decides > 0 && (least == 0 || s.Decides < least) {
				least = s.Decides
			}
		}
		if least > 0 {
			list = append(list, fmt.Sprintf("launches: %d would decide, if all goes on as it did; what is measured stays", least))
		} else if r.Open != "" && d.SD > 0 {
			list = append(list, "more launches would hardly decide: over 200 would be needed; it carries about what is wanted")
		}
	}
	if l := r.Limiter; l != nil && l.Try != "" {
		list = append(list, "try "+l.Try+", which the diagnosis names")
	}
	if k := x.edgeKnob(r); k != "" {
		list = append(list, k)
	}
	return list
}

// edgeKnob is a knob whose best value is the last that was tried.
func (x *Experiment) edgeKnob(r *Record) string {
	for _, k := range x.Plan.Knobs {
		n := len(k.Values)
		if r.Accepted == k.Name+"="+k.Values[n-1] && n > 1 {
			return fmt.Sprintf("try %s beyond %s: the accepted value is the last that was tried", k.Name, k.Values[n-1])
		}
	}
	return ""
}

// repeatCommands are commands that do parts again.
func (x *Experiment) repeatCommands(r *Record) (list []string) {
	p := x.Plan
	plan := filepath.Join(x.Dir, planFile)
	list = append(list, say.ShellLine([]string{"pitot", "experiment", "run", plan, "--out", x.Dir + "-again"}))
	list = append(list, say.ShellLine([]string{"pitot", "experiment", "run", filepath.Join(x.Dir, RecordJSON)})+" # from the record alone")
	name := r.Accepted
	if name == "" {
		name = Baseline
	}
	for _, c := range p.Configurations() {
		if c.Name != name {
			continue
		}
		for _, row := range p.Rows {
			part := Part{c, row, 1}
			list = append(list, say.ShellLine(partCommand(p.partPlan(&part, x.Dir), row, p)))
		}
	}
	if name != Baseline {
		side := func(c string) string { return filepath.Join(x.Dir, "runs", c, p.Contract.Row) }
		list = append(list, say.ShellLine([]string{"pitot", "compare", "baseline=" + side(Baseline), strings.ReplaceAll(name, "=", "-") + "=" + side(name)}))
	}
	return list
}

// WriteJSON puts the record into the experiment's directory.
func (r *Record) WriteJSON(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", RecordJSON, err)
	}
	return rundir.WriteFile(dir, RecordJSON, append(data, '\n'))
}
