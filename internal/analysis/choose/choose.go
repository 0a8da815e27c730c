// Package choose finds the deployment of a model that carries what is asked within its
// limits for the least money: what can be deployed on the accelerators that are offered,
// what bounds leave of it, and what the twin makes of the rest; in virtual time, without
// clock, socket or file.
package choose

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"pitot/internal/analysis/predict"
	"pitot/internal/config"
	"pitot/internal/cost"
	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

// Schema is the schema of a choice as JSON.
const Schema = "pitot.choice/v1"

// Wanted describes what to deploy, for what, and on what it can be.
type Wanted struct {
	Model    string
	Offers   []Offer
	Engines  []string // of [EngineNames], none: vLLM
	DTypes   []string // of weights, none: the published one, and fp8 where it is computed in
	Settings []Set    // that all have
	Asked    []string // the flags of the workload and of the arrivals, as the user gave them
	Ask      *config.Ask
	Arrival  string
	SLO      slo.Spec
	Rate     float64 // requests/s that are to be carried, 0: as many as an engine carries
	// Sure is the probability that the number of engines must be enough with, by the errors to
	// expect. 0 means as many as the estimate needs.
	Sure float64
	// Told is told how far the choice has come; nil: nobody asks.
	Told func(Progress)

	model   catalogue.Model
	context int // tokens of the longest request, and some more
}

// Progress holds how far a choice has come.
type Progress struct {
	Stage    string
	Done, Of int // deployments of the stage
}

// Choice holds the options to choose from, the cheapest first.
type Choice struct {
	Schema  string   `json:"schema"`
	Model   string   `json:"model"`
	SLO     string   `json:"slo"`
	Rate    float64  `json:"rate,omitempty"` // requests/s wanted, 0: as many as an engine carries
	Sure    float64  `json:"sure,omitempty"` // how likely the engines were to be enough
	Arrival string   `json:"arrival"`
	Input   float64  `json:"mean_input_tokens"`
	Output  float64  `json:"mean_output_tokens"`
	Claims  []string `json:"limits"`
	// Turns is the number of requests of a conversation on average, 0 where requests stand alone.
	// Rates are then of conversations that begin.
	Turns float64  `json:"requests_per_conversation,omitempty"`
	Asked []string `json:"asked,omitempty"` // the flags of the workload, for the command that verifies

	Options []Option  `json:"options"`
	Failing []Failing `json:"failing,omitempty"` // hardware on which no load meets the limits
	Refused []Refused `json:"refused,omitempty"`
	Counts  Counts    `json:"candidates"`
	Seed    uint64    `json:"seed"`
}

// Counts say what became of all candidates.
type Counts struct {
	All       int `json:"all"`
	Refused   int `json:"cannot_exist"`
	Bounded   int `json:"excluded_by_bounds"` // no engine could meet the limits there
	Dearer    int `json:"dearer"`             // than another by more than what is not known of either
	Simulated int `json:"simulated"`
}

// Failing is hardware on which the limits are not met however light the load.
type Failing struct {
	Spec        string `json:"spec"`
	Accelerator string `json:"accelerator"`
	// Within says that the errors to expect of the twin are larger than what is missing.
	Within  bool    `json:"within_error,omitempty"`
	Refuses bool    `json:"refuses,omitempty"` // more requests than may violate the limit do not fit into its KV cache
	Claim   string  `json:"limit"`
	Times   float64 `json:"times_the_limit"` // 0 where bounds exclude it, without a simulation
}

// Option is one deployment: the best settings of its hardware.
type Option struct {
	Spec           string  `json:"spec"` // of an engine
	Accelerator    string  `json:"accelerator"`
	Engine         string  `json:"engine"`
	TensorParallel int     `json:"tensor_parallel_size"`
	DType          string  `json:"dtype"`
	Quantised      bool    `json:"quantised"` // to fewer bits than the published weights have: answers may differ
	Settings       []Set   `json:"settings,omitempty"`
	Capacity       float64 `json:"capacity"` // requests/s that one engine carries
	// Interval holds the capacity of four of five such engines, if the twin is as far off
	// as it was where measurements of such systems are public.
	Interval [2]float64 `json:"interval_80"`
	Error    Expected   `json:"error_to_expect"`
	Noise    float64    `json:"noise_pct"` // standard deviation of the capacity that comes of the requests that were drawn, percent
	Claim    string     `json:"limit"`     // that is reached first

	Engines    int        `json:"engines"` // that carry the wanted rate
	EnginesFor [2]int     `json:"engines_80"`
	GPUs       int        `json:"gpus"`
	PerHour    float64    `json:"usd_per_hour"`
	PerMillion float64    `json:"usd_per_m_output"` // output tokens, at the wanted rate
	Million80  [2]float64 `json:"usd_per_m_output_80"`
	Cheapest   float64    `json:"cheapest"`         // share of what the errors allow in which nothing costs less
	Enough     float64    `json:"enough"`           // and in which its engines carry the wanted rate
	AfterLoss  float64    `json:"share_after_loss"` // of the wanted rate that is carried without one of the engines

	// NeverSure says that no number of engines is as likely to be enough as was wanted.
	NeverSure bool `json:"never_sure,omitempty"`

	Points []EngineLoad `json:"points"`
	Whole  *Whole       `json:"whole,omitempty"` // of the first options, where a rate is wanted

	candidate *Candidate
	group     *group
	joined    bool   // it was looked for how many of its engines do together
	failed    int    // the most engines that missed the limits together at the wanted rate, 0 where none was seen to
	router    Router // in front of its engines; without a policy: the usual one
}

// poolingFactor is by how many times what its engines carry alone they carry together: a router
// evens out what comes to each. Where it was not looked for what they carry, but the wanted
// rate met the limits, it is at least that.
func (o *Option) poolingFactor() float64 {
	alone := o.Capacity * float64(o.Engines)
	switch {
	case o.Whole == nil:
		return 1
	case o.Whole.Capacity > 0:
		return o.Whole.Capacity / alone
	case o.Whole.Met:
		return max(1, o.Whole.Rate/alone)
	}
	return 1
}

// capacityPerEngine returns what one of its engines carries among all, in four of five of such
// deployments.
func (o *Option) capacityPerEngine() [2]float64 {
	if o.Whole != nil && o.Whole.Interval != nil {
		n := float64(o.Engines)
		return [2]float64{o.Whole.Interval[0] / n, o.Whole.Interval[1] / n}
	}
	return [2]float64{o.Interval[0] * o.poolingFactor(), o.Interval[1] * o.poolingFactor()}
}

// poolingOfFewer is pooled for numbers of engines below the option's: where some were seen to fail
// at the wanted rate they carry less than that together.
func (o *Option) poolingOfFewer() float64 {
	if o.failed == 0 || o.Whole == nil {
		return o.poolingFactor()
	}
	return min(o.poolingFactor(), o.Whole.Rate/(o.Capacity*float64(o.failed))*(1-1e-6))
}

// capacityAfterLoss returns what its engines carry together once a number of them are lost. An
// engine that is left alone shares no queue with another. With more than one, a router makes the
// more the more they are, between one of them and all in a straight line. If that number of engines
// or more were seen to miss the limits at the wanted rate, they carry less than that.
func (o *Option) capacityAfterLoss(lost int) float64 {
	left := o.Engines - lost
	if left <= 0 {
		return 0
	}
	gain := o.poolingFactor()
	if left == 1 || gain > 1 {
		gain = 1 + (gain-1)*float64(left-1)/float64(o.Engines-1)
	}
	carried := float64(left) * o.Capacity * gain
	if o.Whole != nil && left <= o.failed {
		carried = min(carried, o.Whole.Rate*(1-1e-6))
	}
	return carried
}

// EngineLoad is a load of an engine: for each GPU and for each user.
type EngineLoad struct {
	Rate    float64 `json:"rate"`
	PerGPU  float64 `json:"output_tokens_per_s_per_gpu"`
	PerUser float64 `json:"output_tokens_per_s_per_user"`
	Met     bool    `json:"met"` // the limits
}

// Expected is by how many percent four of five predictions of such a system were off at
// most.
type Expected struct {
	TPOTPct float64 `json:"tpot_pct"`
	TTFTPct float64 `json:"ttft_pct"`
	Of      string  `json:"of"`                         // kind of systems; "" where none was measured
	Kernels bool    `json:"kernels_measured,omitempty"` // where none was: at least the accelerator's kernels were
	// Lockstep says that it is of engines that share experts, and so take their steps together.
	Lockstep bool `json:"lock_step,omitempty"`
	// Public holds the public measurements that the error is of.
	Public *predict.ErrorToExpect `json:"public,omitempty"`
}

// Choose finds out what carries what is wanted, and for how much. Errors are the user's.
func Choose(ctx context.Context, w Wanted) (*Choice, error) {
	m, err := catalogue.FindModel(w.Model)
	if err != nil {
		return nil, err
	}
	w.model = m
	claims, err := w.claims()
	if err != nil {
		return nil, err
	}
	law, err := config.ReadArrivals(w.Arrival)
	if err != nil {
		return nil, err
	}
	if law.HasVaryingRate() {
		return nil, say.Errorf("--arrival %s has no steady load that a deployment could be chosen for", w.Arrival).WithHint("take poisson or gamma(0.5), at the rate of the busiest hour")
	}
	draw := newlyDrawn
	if w.Ask.HasConversations() {
		draw = drawConversations
	}
	s, done, err := draw(w.Ask, law)
	if err != nil {
		return nil, err
	}
	defer done()
	w.context = s.longestContext()
	list, refused, err := listCandidates(&w)
	if err != nil {
		return nil, err
	}
	r := &race{wanted: &w, schedule: s, claims: claims, first: s.effort(400, 1.25), close: s.refinedEffort(lookedClosely, 1.06), closer: s.refinedEffort(drawn, 1.04), choice: &Choice{
		Schema: Schema, Model: m.Name, SLO: w.SLO.String(), Rate: w.Rate, Sure: w.Sure, Arrival: w.Arrival,
		Input: s.input, Output: s.output, Asked: w.Asked, Refused: refused, Seed: w.Ask.Seed,
	}}
	r.close.flanks, r.closer.flanks = true, true
	if s.talks != nil {
		r.choice.Turns = s.talks.turns
	}
	for _, c := range claims {
		r.choice.Claims = append(r.choice.Claims, c.Spec)
	}
	n := &r.choice.Counts
	for _, x := range refused {
		n.Refused += x.Count
	}
	n.All = n.Refused + len(list)
	if err := r.run(ctx, list); err != nil {
		return nil, err
	}
	if len(r.choice.Options) == 0 {
		return r.choice, nil
	}
	r.sort()
	if err := r.serveJointly(ctx); err != nil {
		return nil, err
	}
	r.rankProbabilities()
	r.preferPublished()
	return r.choice, nil
}

// preferPublished proposes the published weights where they cost what quantised ones do and are
// as sure to be enough.
func (r *race) preferPublished() {
	list := r.choice.Options
	first := &list[0]
	if r.wanted.Rate == 0 || !first.Quantised {
		return
	}
	for i := range list {
		o := &list[i]
		if !o.Quantised && !o.NeverSure && (o.Whole != nil || first.Whole == nil) && r.optionCost(o) <= r.optionCost(first) && o.Enough >= min(first.Enough-asSure, allButSure) {
			chosen := *o
			copy(list[1:i+1], list[:i])
			list[0] = chosen
			return
		}
	}
}

const (
	asSure     = 0.05 // by how much less likely to be enough an option may be, and is as sure
	allButSure = 0.9  // or as likely as this
)

// claims are those of the objective, as far as the twin knows their metrics.
func (w *Wanted) claims() ([]slo.Claim, error) {
	if w.SLO.IsNone() {
		return nil, say.Errorf("no limits given").WithHint(`say what is to hold: --slo "p99 ttft<500ms, p99 tpot<40ms"`)
	}
	if w.SLO.LimitsAnswers() {
		return nil, say.Errorf("whether answers are right no twin can say: %s", w.SLO).WithHint("leave the limit on wrong answers out; measure it: pitot run URL --check-answers 5%")
	}
	claims, err := w.SLO.SplitClaims()
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		if c.Class != "" {
			return nil, say.Errorf("limits of classes are not chosen by: %s", c.Spec).WithHint("give one objective for all requests")
		}
		for _, of := range c.ClaimedMetrics() {
			if !metrics.InRow(of) {
				return nil, say.Errorf("limits on %s are not chosen by: %s", of, c.Spec).WithHint("limit ttft, tpot or e2e; pitot find sim:MODEL@GPU judges all limits, of one deployment")
			}
		}
	}
	return claims, nil
}

// drawn is the number of requests drawn from the workload.
const drawn = 10_000

// lookedClosely is the number of drawn requests that simulate an option that may be chosen.
const lookedClosely = 2500

// race is a choice under way.
type race struct {
	wanted   *Wanted
	schedule *schedule
	claims   []slo.Claim
	choice   *Choice
	// How closely a candidate is looked at: all of them, those that may be chosen, and
	// those of which that leaves much open.
	first, close, closer effort
}

// group is the candidates on one hardware, the default settings first.
type group struct {
	list  []*Candidate
	bound float64 // requests/s that no engine on it exceeds
	error Expected

	plain, best *Candidate // with the default settings, and with those that carry the most
}

// run looks at all hardware, then at the settings of what may be the cheapest, then
// closely at what of these is the best.
func (r *race) run(ctx context.Context, list []*Candidate) error {
	var groups []*group
	of := map[string]*group{}
	for _, c := range list {
		g := of[c.hardwareKey()]
		if g == nil {
			g = &group{error: errorOf(c)}
			of[c.hardwareKey()] = g
			groups = append(groups, g)
		}
		g.list = append(g.list, c)
	}
	all := groups
	groups = nil
	for _, g := range all {
		claim, possible := r.canMeetLimits(g.list[0])
		if possible {
			g.bound = r.rateBound(g.list[0])
			groups = append(groups, g)
			continue
		}
		r.choice.Counts.Bounded += len(g.list)
		r.choice.Failing = append(r.choice.Failing, Failing{g.list[0].Spec, g.list[0].Offer.Accelerator.Name, false, false, claim, 0})
	}
	stats.SortStable(groups, func(a, b *group) int {
		return cmp.Compare(r.costToServe(a.list[0], a.bound), r.costToServe(b.list[0], b.bound))
	})
	best := math.Inf(1) // what an option costs that is all but sure to carry what is wanted
	var looked []*group
	for len(groups) > 0 {
		// So many at once, however many processors there are: the choice does not depend
		// on them.
		const together = 8
		var next []*group
		for _, g := range groups[:min(together, len(groups))] {
			if r.costToServe(g.list[0], g.bound) > best {
				r.choice.Counts.Dearer += len(g.list)
			} else {
				next = append(next, g)
			}
		}
		groups = groups[min(together, len(groups)):]
		if err := r.lookAt(ctx, "all hardware", len(next), func(i int) (*Candidate, float64, *effort) {
			return next[i].list[0], r.guessCapacity(next[i]), &r.first
		}); err != nil {
			return err
		}
		for _, g := range next {
			c := g.list[0]
			carried, claim := r.engineCapacity(c)
			if carried > 0 {
				looked = append(looked, g)
				best = min(best, r.costToServe(c, r.capacityInterval(c, g, sure)[0]))
				continue
			}
			_, times := c.curve[0].worstClaim()
			refuses := math.IsInf(times, 1)
			if refuses {
				times = 0
			}
			r.choice.Failing = append(r.choice.Failing, Failing{c.Spec, c.Offer.Accelerator.Name, !refuses && times < r.slowdownFactors(g.error)[claim], refuses, r.claims[claim].Spec, times})
			r.choice.Counts.Simulated--
			r.choice.Counts.Bounded += len(g.list)
		}
	}
	// Settings may bring something, and the twin may be wrong in its favour.
	may := func(g *group) bool {
		return r.costToServe(g.list[0], settingsBring*r.capacityInterval(g.list[0], g, sure)[1]) <= best
	}
	var others []*Candidate
	guess := map[*Candidate]float64{}
	for _, g := range looked {
		if !may(g) {
			r.choice.Counts.Dearer += len(g.list) - 1
			g.list = g.list[:1]
		}
		for _, c := range g.list[1:] {
			others = append(others, c)
			guess[c] = r.engineRate(g.list[0])
		}
	}
	// Most settings bring nothing: one load, a little above what the defaults carry, says so.
	brings := make([]bool, len(others))
	brief := r.first
	brief.longer = nil
	for _, c := range others {
		guess[c] *= 1 + worthSetting
	}
	if err := inParallel(ctx, len(others), func(i int) error {
		c := others[i]
		x, err := r.schedule.serveLoad(ctx, c, r.claims, guess[c], &brief)
		if err == nil {
			brings[i], c.curve = x.isMet(), curve{x}
		}
		return err
	}); err != nil {
		return err
	}
	var more []*Candidate
	for i, c := range others {
		if brings[i] {
			more = append(more, c)
		} else {
			r.choice.Counts.Simulated++
		}
	}
	if err := r.selectBestSettings(ctx, more, guess); err != nil {
		return err
	}
	return r.refineBest(ctx, looked)
}

// selectBestSettings finds of each hardware the settings that carry the most, all of which carry a
// load: they are asked higher ones, and those go on that carry it, until none does.
func (r *race) selectBestSettings(ctx context.Context, list []*Candidate, carried map[*Candidate]float64) error {
	r.choice.Counts.Simulated += len(list)
	of := map[string][]*Candidate{}
	for _, c := range list {
		of[c.hardwareKey()] = append(of[c.hardwareKey()], c)
	}
	groups := slices.Collect(maps.Values(of))
	done := r.beginStage("batch settings", len(groups))
	return inParallel(ctx, len(groups), func(i int) error {
		defer done()
		lo, hi, step := carried[groups[i][0]], math.Inf(1), 1+4*worthSetting
		left, bound := groups[i], 0.0
		for _, c := range left {
			bound = max(bound, r.rateBound(c))
		}
		for range mostLoads {
			if hi/lo <= r.first.within {
				break
			}
			rate := lo * step
			if hi < math.Inf(1) {
				rate = math.Sqrt(lo * hi)
			}
			if rate > bound { // no engine serves as much
				hi = rate
				continue
			}
			var carry []*Candidate
			for _, c := range left {
				x, err := r.schedule.serveLoad(ctx, c, r.claims, rate, &r.first)
				if err != nil {
					return err
				}
				c.curve = c.curve.withLoad(x)
				if x.isMet() {
					carry = append(carry, c)
				}
			}
			if len(carry) == 0 {
				hi = rate
				continue
			}
			left, lo, step = carry, rate, min(step*step, 2)
		}
		return nil
	})
}

// How far a first look is believed: sure is the share that an interval is to hold, and
// settingsBring by how much other settings may raise what an engine carries.
const (
	sure          = 0.98
	settingsBring = 1.3
)

// refineBest looks closely at the best of each group and at its default settings, and more
// closely still where that leaves much open. Settings are proposed that bring more than
// what is drawn by chance, else the defaults. Groups that all but surely cost more than the
// cheapest keep their first look.
func (r *race) refineBest(ctx context.Context, groups []*group) error {
	least, surely := math.Inf(1), math.Inf(1) // what the cheapest costs, and all but surely at most
	prices := make([][2]float64, len(groups)) // all but surely
	for i, g := range groups {
		g.plain = g.list[0]
		g.best = slices.MaxFunc(g.list, func(a, b *Candidate) int { return cmp.Compare(r.engineRate(a), r.engineRate(b)) })
		more := r.engineRate(g.best) / r.engineRate(g.plain)
		may := r.capacityInterval(g.plain, g, sure)
		prices[i] = [2]float64{r.costToServe(g.best, may[1]*more), r.costToServe(g.best, may[0]*more)}
		least, surely = min(least, r.estimate(g.best)), min(surely, prices[i][1])
	}
	var finals []*Candidate
	guess := map[*Candidate]float64{}
	for i, g := range groups {
		if prices[i][0] > surely && r.estimate(g.best) > lookedAt*least {
			g.best = g.plain
			continue
		}
		for _, c := range slices.Compact([]*Candidate{g.plain, g.best}) {
			finals = append(finals, c)
			if guess[c] = r.engineRate(c); c != g.plain { // it was only held against others
				c.curve = nil
			}
		}
	}
	looks := []*effort{&r.close, &r.closer}
	if r.schedule.talks != nil { // whose tokens are many
		looks = looks[:1]
	}
	for _, e := range looks {
		if err := r.lookAt(ctx, "the best closely", len(finals), func(i int) (*Candidate, float64, *effort) { return finals[i], guess[finals[i]], e }); err != nil {
			return err
		}
		r.choice.Counts.Simulated -= len(finals) // once more
		for _, c := range finals {
			c.asked = e.count
		}
		finals = slices.DeleteFunc(finals, func(c *Candidate) bool {
			return c.curve.capacityNoise(r.claims) < wellKnown || r.estimate(c) > nearlyChosen*least
		})
	}
	for _, g := range groups {
		if r.engineRate(g.best) < r.engineRate(g.plain)*(1+worthSetting) {
			g.best = g.plain
		}
	}
	if err := r.repeatWithNewSeed(ctx, groups, least); err != nil {
		return err
	}
	for _, g := range groups {
		if r.engineRate(g.best) > 0 {
			r.choice.Options = append(r.choice.Options, r.optionOf(g.best, g))
		}
	}
	return nil
}

// repeatWithNewSeed looks at what may be taken with other chances: arrivals, the order of requests
// and what an engine draws. Two looks that differ by more than blocks of one of them say have the
// standard deviation that their difference has: of looks at n and m requests, which vary by σ²/n
// and σ²/m, the first has |difference| ÷ √(1 + n/m).
func (r *race) repeatWithNewSeed(ctx context.Context, groups []*group, least float64) error {
	var list []*Candidate
	for _, g := range groups {
		if c := g.best; c.asked > 0 && r.engineRate(c) > 0 && r.estimate(c) <= lookedAt*least {
			list = append(list, c)
		}
	}
	other := r.schedule.withOtherSeed()
	e := other.refinedEffort(lookedClosely, r.close.within)
	done := r.beginStage("the best once more", len(list))
	return inParallel(ctx, len(list), func(i int) (err error) {
		defer done()
		c, usual := *list[i], r.engineRate(list[i])
		c.curve = curve{c.curve[0]}
		if c.curve, err = other.searchLimits(ctx, &c, r.claims, usual, r.rateBound(&c), &e); err != nil {
			return err
		}
		if second := r.engineRate(&c); second > 0 {
			list[i].spread = math.Abs(math.Log(second/usual)) / math.Sqrt(1+float64(list[i].asked)/float64(e.count))
		}
		return nil
	})
}

const (
	worthSetting = 0.03 // by how much an engine must carry more for settings other than its defaults to be proposed
	lookedAt     = 1.25 // times the cheapest, and worth a closer look whatever the errors
	nearlyChosen = 1.5  // times the cheapest, and still worth the closest look
	wellKnown    = 0.03 // error of a capacity by what was drawn, below which it is not looked at again
)

// beginStage begins a stage of so many deployments; what it gives is called when one is done.
func (r *race) beginStage(stage string, of int) (done func()) {
	if r.wanted.Told == nil {
		return func() {}
	}
	var mu sync.Mutex
	p := Progress{stage, 0, of}
	r.wanted.Told(p)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		p.Done++
		r.wanted.Told(p)
	}
}

// lookAt simulates n candidates, each around a guess of what it carries.
func (r *race) lookAt(ctx context.Context, stage string, n int, which func(i int) (*Candidate, float64, *effort)) error {
	r.choice.Counts.Simulated += n
	done := r.beginStage(stage, n)
	return inParallel(ctx, n, func(i int) (err error) {
		defer done()
		c, guess, e := which(i)
		c.curve, err = r.schedule.searchLimits(ctx, c, r.claims, guess, r.rateBound(c), e)
		return err
	})
}

// inParallel calls do for 0 to n−1 on all processors, and returns the first error by number.
func inParallel(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	predict.InParallel(n, func(i int) { errs[i] = do(i) })
	return cmp.Or(cmp.Or(errs...), ctx.Err())
}

// engineCapacity returns what an engine carries, by the twin.
func (r *race) engineCapacity(c *Candidate) (rate float64, claim int) {
	rate, claim, _ = c.curve.capacityAt(len(r.claims), r.slowdownFactors(Expected{}), worstOf)
	return rate, claim
}

// slowdownFactors are the factors of claims for an engine that is as much slower than the twin as
// the errors to expect say.
func (r *race) slowdownFactors(e Expected) []float64 {
	list := make([]float64, len(r.claims))
	for i, c := range r.claims {
		list[i] = 1
		for _, name := range c.ClaimedMetrics() {
			pct := e.TPOTPct
			if name == metric.TTFT || name == metric.TTFA {
				pct = e.TTFTPct
			}
			list[i] = max(list[i], 1+pct/100)
		}
	}
	return list
}

// capacityInterval holds the capacity with a probability: by the error to expect of the twin, which
// is that of four in five, and by what was drawn. The lower end is 0 where an engine that is
// so much slower than the twin meets the limits at no load.
func (r *race) capacityInterval(c *Candidate, g *group, holds float64) [2]float64 {
	rate := r.engineRate(c)
	z := stats.NormalQuantile((1 + holds) / 2)
	low, high := r.capacityAtError(c, g.error, z), r.capacityAtError(c, g.error, -z)
	noise := z * r.capacityError(c)
	if low > 0 {
		low = rate * math.Exp(-math.Hypot(math.Log(rate/low), noise))
	}
	return [2]float64{low, rate * math.Exp(math.Hypot(math.Log(max(high, rate)/rate), noise))}
}

// capacityAtError returns what an engine carries that is slower than the twin by z standard
// deviations of the error to expect. The error of four in five is 1.28 standard deviations. With z
// below 0 the engine is faster. A faster one than any load that was tried tells is taken as far up
// as a slower one is down.
func (r *race) capacityAtError(c *Candidate, e Expected, z float64) float64 {
	slow := r.slowdownFactors(e)
	for i := range slow {
		slow[i] = math.Pow(slow[i], z/stats.NormalQuantile(0.9))
	}
	rate, _, known := c.curve.capacityAt(len(r.claims), slow, worstOf)
	if z < 0 && !known {
		if down, usual := r.capacityAtError(c, e, -z), r.engineRate(c); down > 0 {
			return max(rate, usual*usual/down)
		}
	}
	return rate
}

// engineRate returns the rate that an engine carries, by the twin.
func (r *race) engineRate(c *Candidate) float64 {
	rate, _ := r.engineCapacity(c)
	return rate
}

// capacityError is the error of a capacity that comes of what was drawn and of the loads that were
// tried, no more than widest: what blocks of the requests say or, if that is more, a second
// look; and a capacity lies anywhere between two loads.
func (r *race) capacityError(c *Candidate) float64 {
	rate := r.engineRate(c)
	return min(math.Hypot(max(c.curve.capacityNoise(r.claims), c.spread), c.curve.logStep(rate)/math.Sqrt(12)), widest)
}

// widest is the largest standard deviation of a logarithm that is reckoned with.
const widest = 0.7

// errorOf is the error to expect of a candidate.
func errorOf(c *Candidate) Expected {
	d := c.Deployment
	if f := d.FittedError; f != nil {
		return Expected{TPOTPct: f.TPOTPct, TTFTPct: f.TTFTPct, Of: "its profile"}
	}
	if e := predict.UnfittedError(d); e != nil {
		return Expected{TPOTPct: e.TPOTPct, TTFTPct: e.TTFTPct, Of: e.Of, Public: e}
	}
	var x Expected // as the worst that is known, of its kind where its kernels were measured
	for _, regime := range catalogue.Regimes() {
		kind := regime.Experts == (d.Model.Experts > 0) && regime.Serial == !d.Settings.AsyncScheduling
		if kind || !d.Measured() || !d.Alike() {
			x.TPOTPct, x.TTFTPct = max(x.TPOTPct, regime.TPOT), max(x.TTFTPct, regime.TTFT)
		}
	}
	x.Kernels = d.Measured() && d.Alike()
	return x
}

// inLockstep is the error of the twin for engines that share experts. None of vLLM's was measured
// apart. TensorRT-LLM's let prompts wait until all have one and exchange tokens otherwise. Where
// prompts are long, the twin has their TPOT at +109 %. It has their TTFT at −85 %, under a sixth
// (`go run ./bench/silicon -lockstep compare DIR`).
var inLockstep = Expected{TPOTPct: 109, TTFTPct: 567, Lockstep: true}

// runsInLockstep says that an option's engines share experts: started as one server they do.
func (o *Option) runsInLockstep() bool {
	d := o.candidate.Deployment
	return o.Engines > 1 && o.InOneMachine() && d.ExpertParallel && d.Model.Experts > 0
}

// costToServe returns the cost in an hour of engines that carry the wanted rate, where each carries
// a given rate. Where no rate is wanted, it returns the cost of a request of each second.
func (r *race) costToServe(c *Candidate, each float64) float64 {
	if each <= 0 {
		return math.Inf(1)
	}
	if r.wanted.Rate == 0 {
		return r.hourlyCost(c) / each
	}
	return float64(r.enginesNeeded(each)) * r.hourlyCost(c)
}

// hourlyCost returns the cost of an engine in an hour. Where no prices are known it counts the
// engine's GPUs.
func (r *race) hourlyCost(c *Candidate) float64 {
	if p := c.PerHour(); p > 0 {
		return p
	}
	return float64(c.TensorParallel)
}

// enginesNeeded returns the number of engines that carry the wanted rate. It returns 0 where no
// number of them does.
func (r *race) enginesNeeded(each float64) int {
	switch {
	case r.wanted.Rate == 0:
		return 1
	case each <= 0:
		return 0
	}
	return int(math.Ceil(r.wanted.Rate/each - 1e-9))
}

func (r *race) estimate(c *Candidate) float64 {
	return r.costToServe(c, r.engineRate(c))
}

// optionOf returns the option that a candidate leads to.
func (r *race) optionOf(c *Candidate, g *group) Option {
	rate, claim := r.engineCapacity(c)
	o := Option{
		Spec: c.Spec, Accelerator: c.Offer.Accelerator.Name, Engine: c.Engine.Name, TensorParallel: c.TensorParallel, DType: c.DType, Settings: c.Settings,
		Quantised: isWideType(r.wanted.publishedDType()) && !isWideType(c.DType),
		Capacity:  rate, Interval: r.capacityInterval(c, g, 0.8), Error: g.error, Noise: 100 * r.capacityError(c), Claim: r.claims[claim].Spec,
		candidate: c, group: g,
	}
	r.setEngineCount(&o, max(r.enginesNeeded(rate), r.sureOf(&o)))
	if o.runsInLockstep() {
		among := *g
		among.error = inLockstep
		o.group, o.Error = &among, among.error
		o.Interval = r.capacityInterval(c, &among, 0.8)
		r.setEngineCount(&o, max(o.Engines, r.sureOf(&o)))
	}
	for _, x := range c.curve {
		if x.TPOT > 0 {
			o.Points = append(o.Points, EngineLoad{x.Rate, x.Tokens / float64(c.TensorParallel), 1 / x.TPOT, x.isMet()})
		}
	}
	return o
}

// sureOf returns the number of engines that are enough with the wanted probability. It returns 0
// where none is wanted.
func (r *race) sureOf(o *Option) int {
	if r.wanted.Sure == 0 || r.wanted.Rate == 0 {
		return 0
	}
	holds := 2*r.wanted.Sure - 1 // below the lower end are 1 − Sure
	low := r.capacityInterval(o.candidate, o.group, holds)[0] * o.poolingFactor()
	if o.Whole != nil && o.Whole.all != nil {
		low = r.capacityInterval(o.Whole.all, o.group, holds)[0] / float64(o.Engines)
	}
	o.NeverSure = low <= 0
	return r.enginesNeeded(low)
}

// setEngineCount makes an option of so many engines, and says what they cost.
func (r *race) setEngineCount(o *Option, engines int) {
	c := o.candidate
	o.Engines = engines
	each := o.capacityPerEngine()
	o.EnginesFor = [2]int{min(r.enginesNeeded(each[1]), engines), r.enginesNeeded(each[0])}
	if o.EnginesFor[1] > 0 {
		o.EnginesFor[1] = max(o.EnginesFor[1], engines)
	}
	o.GPUs = engines * c.TensorParallel
	o.PerHour = float64(engines) * c.PerHour()
	carried := r.wanted.Rate
	if carried == 0 {
		carried = o.Capacity
	} else {
		o.AfterLoss = o.capacityAfterLoss(1) / carried
	}
	perMillion := func(engines int, rate float64) float64 { // 0 where it is not known, or of no number of engines
		tokens := rate * r.schedule.perArrival() * r.schedule.output
		if tokens <= 0 {
			return 0
		}
		bill, ok := (cost.Price{GPU: cost.GPU{Hour: c.Offer.USDPerHour}}).Bill(engines*c.TensorParallel, nil, cost.Rates{Output: &tokens})
		if !ok || bill.MOutput == nil {
			return 0
		}
		return *bill.MOutput
	}
	o.PerMillion = perMillion(engines, carried)
	if r.wanted.Rate == 0 {
		o.Million80 = [2]float64{perMillion(1, o.Interval[1]), perMillion(1, o.Interval[0])}
	} else {
		o.Million80 = [2]float64{perMillion(o.EnginesFor[0], carried), perMillion(o.EnginesFor[1], carried)}
	}
}

// rankProbabilities says how sure it is which option is the cheapest: their capacities are drawn
// anew, as the errors allow, and in each draw one is, or several that cost the same. Errors of
// systems on the same accelerator have a part in common.
func (r *race) rankProbabilities() {
	list := r.choice.Options
	draws := 4000
	costs := make([]float64, len(list))
	rng := rand.New(rand.NewPCG(r.choice.Seed, 0x63686f6f7365))
	for range draws {
		common := map[string]float64{}
		least := math.Inf(1)
		for i := range list {
			o := &list[i]
			if _, ok := common[o.Accelerator]; !ok {
				common[o.Accelerator] = rng.NormFloat64()
			}
			z := math.Sqrt(alike)*common[o.Accelerator] + math.Sqrt(1-alike)*rng.NormFloat64()
			noise := math.Exp(o.Noise / 100 * rng.NormFloat64())
			alone := r.capacityAtError(o.candidate, o.Error, z) * noise
			each, together := alone*o.poolingOfFewer(), alone*o.poolingFactor()*float64(o.Engines)
			if o.Whole != nil && o.Whole.all != nil {
				together = r.capacityAtError(o.Whole.all, o.Error, z) * noise
			}
			if r.wanted.Rate > 0 && together >= r.wanted.Rate {
				o.Enough += 1 / float64(draws)
				each = max(each, r.wanted.Rate/float64(o.Engines))
			}
			costs[i] = r.costToServe(o.candidate, each)
			least = min(least, costs[i])
		}
		for i := range list { // one, several that cost the same, or none that meets the limits in any number
			if !math.IsInf(costs[i], 1) && costs[i] <= least*(1+1e-9) {
				list[i].Cheapest += 1 / float64(draws)
			}
		}
	}
}

// sort puts the cheapest first. Of those that cost the same, weights of 16 bits or more come
// before quantized ones, which answer otherwise; then the one that carries the most.
func (r *race) sort() {
	price := func(o *Option) float64 {
		switch {
		case r.wanted.Rate == 0:
			return r.costToServe(o.candidate, o.Capacity)
		case o.NeverSure:
			return math.Inf(1)
		}
		return float64(o.Engines) * r.hourlyCost(o.candidate)
	}
	quantised := func(o *Option) int {
		if isWideType(o.DType) {
			return 0
		}
		return 1
	}
	stats.SortStable(r.choice.Options, func(a, b Option) int {
		return cmp.Or(cmp.Compare(price(&a), price(&b)), cmp.Compare(quantised(&a), quantised(&b)), cmp.Compare(b.Capacity*float64(b.Engines), a.Capacity*float64(a.Engines)))
	})
}

// alike is the share of the variance of errors that systems of one model on one accelerator
// have in common: 47 % of 43 systems' (`go run ./bench/silicon -only vllm rank DIR`).
const alike = 0.5
