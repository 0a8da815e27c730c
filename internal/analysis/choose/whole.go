package choose

import (
	"context"
	"math"

	"pitot/internal/sim/deploy"
)

// Whole is all engines of an option behind their router, at the wanted rate.
type Whole struct {
	Spec   string `json:"spec"`
	Router string `json:"router"` // "" of one engine
	// BalanceAbsThreshold is the router's setting of that name, where it is not the usual one.
	BalanceAbsThreshold int     `json:"balance_abs_threshold,omitempty"`
	Rate                float64 `json:"rate"` // requests/s
	// Times is, of each limit, by how many times what it allows the request took whose rank
	// it is about; empty where the queue grows.
	Times []float64 `json:"times_the_limit,omitempty"`
	Met   bool      `json:"met"`
	// Capacity is the rate that all engines carry together, in requests/s. It is 0 where it was not
	// looked for.
	Capacity float64 `json:"capacity,omitempty"`
	// Interval holds the capacity of four of five of such deployments: by what all engines make
	// of loads together, which may come to a limit more slowly than one of them does.
	Interval *[2]float64 `json:"interval_80,omitempty"`

	served *served    // at the rate
	all    *Candidate // as one engine, where it was looked for what they carry
}

const (
	mostWhole  = 5    // options that are put together: those that may be taken
	mostJoined = 32   // engines that are put together
	eachJoined = 600  // requests for each of them
	leastAsked = 4000 // requests in all
	mostAsked  = 32_000
	mostBefore = 100_000 // requests of conversations
	// joinedSpans is the time for which all engines are judged, in lengths of a conversation. A
	// router that keeps conversations where they are evens nothing out sooner.
	joinedSpans = 3.0

	nearlyCheapest = 1.25 // times the first, and compared with it so
	nearlySure     = 1.75 // the same with --sure: by engines alone it takes more of them than joined
)

// serveJointly puts the first options together and asks them all that is wanted. A router evens
// out what comes to each engine, so that fewer of them may do; or it shares requests out
// less evenly than their numbers have it, and more are needed. So the least number is looked
// for, from the one that engines alone make one expect; another option may be the cheapest
// then.
func (r *race) serveJointly(ctx context.Context) error {
	if r.wanted.Rate == 0 {
		return nil
	}
	list := r.choice.Options[:min(mostWhole, len(r.choice.Options))]
	done := r.beginStage("engines together", len(list))
	dearer := nearlyCheapest
	if r.wanted.Sure > 0 {
		dearer = nearlySure
	}
	// Of what is dearer than the first one, as far as is seen, it is not looked for how much.
	if err := r.findLeastEngines(ctx, &list[0], math.Inf(1)); err != nil {
		return err
	}
	done()
	most := math.Inf(1)
	if first := &list[0]; first.Whole != nil && first.Whole.Met && !first.NeverSure {
		most = dearer * r.optionCost(first)
	}
	if err := inParallel(ctx, len(list)-1, func(i int) error {
		defer done()
		return r.findLeastEngines(ctx, &list[i+1], most)
	}); err != nil {
		return err
	}
	r.sort()
	// What comes first now, because others take more together than alone, is not taken unseen.
	for range mostWhole {
		first := &r.choice.Options[0]
		if first.joined || first.Engines > mostJoined {
			break
		}
		if err := r.findLeastEngines(ctx, first, math.Inf(1)); err != nil {
			return err
		}
		r.sort()
	}
	// Those that may be the cheapest are compared by what their engines carry together.
	list = r.choice.Options[:min(mostWhole, len(r.choice.Options))]
	var near []*Option
	for i := range list {
		o := &list[i]
		if o.Whole != nil && o.Engines > 1 && !o.NeverSure && (i == 0 || r.isCheaperRival(o, &list[0]) || r.optionCost(o) <= dearer*r.optionCost(&list[0])) {
			near = append(near, o)
		}
	}
	done = r.beginStage("what they carry together", len(near))
	if err := inParallel(ctx, len(near), func(i int) error {
		defer done()
		return r.poolEngines(ctx, near[i])
	}); err != nil {
		return err
	}
	r.sort()
	return nil
}

// isCheaperRival says that fewer of an option's engines, which by what each carries would do,
// missed the limits together and would cost less than the first option: how likely it is the
// cheapest takes what they carry together.
func (r *race) isCheaperRival(o, first *Option) bool {
	return o.failed > 0 && o.failed < o.Engines && float64(o.failed)*r.hourlyCost(o.candidate) < r.optionCost(first)
}

// optionCost returns the cost of an option in an hour.
func (r *race) optionCost(o *Option) float64 { return float64(o.Engines) * r.hourlyCost(o.candidate) }

// findLeastEngines finds the least number of an option's engines that carries the wanted rate
// together. Where so many miss the limits as cost more than the most in an hour, more are not
// tried.
func (r *race) findLeastEngines(ctx context.Context, o *Option, most float64) error {
	n := o.Engines
	if o.joined = true; n > mostJoined {
		return nil
	}
	x, err := r.serveWhole(ctx, o, n)
	if err != nil || x == nil {
		return err
	}
	if x, err = r.tryOtherRouter(ctx, o, n, x); err != nil {
		return err
	}
	try := func(of int) (met bool, err error) {
		y, err := r.serveWhole(ctx, o, of)
		switch {
		case err != nil || y == nil:
			return false, err
		case !y.Met:
			o.failed = max(o.failed, of)
		}
		if y.Met || !x.Met { // the least that do, or the most that do not
			n, x = of, y
		}
		return y.Met, nil
	}
	if x.Met {
		for met := true; met && n > 1 && o.Engines-n < mostTries; {
			if met, err = try(n - 1); err != nil {
				return err
			}
		}
	} else {
		o.failed = n
		for step := 1; !x.Met && o.failed < mostJoined && float64(o.failed)*r.hourlyCost(o.candidate) <= most; step *= 2 {
			of := min(o.failed+step, mostJoined)
			if _, err = try(of); err != nil {
				return err
			}
			if n != of { // the twin cannot put so many together
				break
			}
		}
		for x.Met && n-o.failed > 1 {
			of := (n + o.failed) / 2
			if _, err = try(of); err != nil {
				return err
			}
			if n != of && o.failed != of {
				break
			}
		}
	}
	if x, err = r.asUsual(ctx, o, n, x); err != nil {
		return err
	}
	o.Whole = x
	r.setEngineCount(o, n)
	return r.makeSure(ctx, o)
}

// tryOtherRouter tries another router in front of n engines that miss the limits behind the usual
// one, and takes it unless they are farther from them then.
func (r *race) tryOtherRouter(ctx context.Context, o *Option, n int, x *Whole) (*Whole, error) {
	other, ok := r.wanted.otherRouter(o.candidate.Engine)
	if x.Met || n == 1 || !ok {
		return x, nil
	}
	usual := o.router
	o.router = other
	y, err := r.serveWhole(ctx, o, n)
	if err != nil {
		return nil, err
	}
	_, before := x.served.worstClaim()
	if _, now := y.served.worstClaim(); now > before {
		o.router = usual
		return x, nil
	}
	return y, nil
}

// asUsual goes back to the usual router where n engines meet the limits behind that too: it asks
// nothing of clients.
func (r *race) asUsual(ctx context.Context, o *Option, n int, x *Whole) (*Whole, error) {
	other := o.router
	if other.Policy == "" || !x.Met || n == 1 {
		return x, nil
	}
	o.router = Router{}
	y, err := r.serveWhole(ctx, o, n)
	if err != nil {
		return nil, err
	}
	if y.Met {
		return y, nil
	}
	o.router = other
	return x, nil
}

// makeSure takes as many engines as are likely enough to be enough.
func (r *race) makeSure(ctx context.Context, o *Option) error {
	n := r.sureOf(o)
	if n <= o.Engines {
		return nil
	}
	if n > mostJoined {
		o.Whole = nil
		r.setEngineCount(o, n)
		return nil
	}
	x, err := r.serveWhole(ctx, o, n)
	if err != nil {
		return err
	}
	o.Whole = x
	r.setEngineCount(o, n)
	return nil
}

// serveWhole serves the wanted rate by n engines of an option; nil where so many requests as
// fill them are more than are simulated, or the twin cannot put them together.
func (r *race) serveWhole(ctx context.Context, o *Option, n int) (*Whole, error) {
	c := o.candidate
	router := r.wanted.router(c.EngineShape, n)
	if o.router.Policy != "" {
		router = o.router
	}
	if n > 1 && c.Deployment.ExpertParallel && c.Deployment.Model.Experts > 0 && router.Policy != "" {
		return nil, nil // of servers apart, each with all experts, there is no such twin
	}
	w := &Whole{Rate: r.wanted.Rate, Spec: r.wanted.deploymentSpec(c.EngineShape, c.Settings, n, router)}
	d, err := deploy.Parse(w.Spec)
	if err != nil {
		return nil, err
	}
	e, s, rate := r.jointEffort(n), r.schedule, r.wanted.Rate
	e.whether = true
	var x *served
	if s.talks != nil {
		request, _ := s.requestTime(d, rate)
		request *= c.conversationSlowdown()
		if rate*(recovered+e.spans)*s.totalDuration(request)*s.perArrival() > mostBefore {
			return nil, nil
		}
		x, err = s.serveConversations(ctx, d, r.claims, rate, c.conversationSlowdown(), e)
	} else {
		warm := s.warmUp(c, rate)
		if warm > len(e.before) {
			return nil, nil
		}
		x, err = s.serve(ctx, d, r.claims, rate, warm, e)
	}
	if err != nil {
		return nil, err
	}
	w.served, w.Met = x, x.isMet()
	if _, times := x.worstClaim(); !math.IsInf(times, 1) {
		w.Times = x.Worst
	}
	if d.IsReplicated() {
		w.Router, w.BalanceAbsThreshold = d.Routing.Router, router.BalanceAbsThreshold
	}
	return w, nil
}

// jointEffort returns the effort for n engines.
func (r *race) jointEffort(n int) *effort {
	e := r.schedule.refinedEffort(min(max(leastAsked, eachJoined*n), mostAsked), r.close.within)
	e.spans = joinedSpans
	return &e
}

// poolEngines finds what an option's engines carry together, and of how many that is as likely to
// be enough as is wanted: fewer than engines alone make one expect, for a router evens out
// what comes to each.
func (r *race) poolEngines(ctx context.Context, o *Option) error {
	if err := r.findJointCapacity(ctx, o); err != nil {
		return err
	}
	sure, tried := *o, map[int]bool{o.Engines: true}
	for {
		n := r.sureOf(o)
		if n == 0 || tried[n] || n > mostJoined || len(tried) > mostTries {
			break
		}
		tried[n] = true
		x, err := r.serveWhole(ctx, o, n)
		if err != nil {
			return err
		}
		if x == nil || !x.Met {
			break
		}
		o.Whole = x
		r.setEngineCount(o, n)
		if err := r.findJointCapacity(ctx, o); err != nil {
			return err
		}
		if now := r.sureOf(o); now <= n && (n < sure.Engines || r.sureOf(&sure) > sure.Engines) {
			sure = *o
		}
	}
	*o = sure
	return nil
}

const mostTries = 4 // numbers of engines that are tried

// findJointCapacity finds what so many of an option's engines carry together.
func (r *race) findJointCapacity(ctx context.Context, o *Option) error {
	d, err := deploy.Parse(o.Whole.Spec)
	if err != nil {
		return err
	}
	c := *o.candidate
	if c.curve = (curve{o.candidate.curve[0]}); o.Whole.Met {
		c.curve = curve{o.Whole.served}
	}
	c.joined = d
	e := r.jointEffort(o.Engines)
	e.flanks = true
	x, err := r.schedule.searchLimits(ctx, &c, r.claims, o.Capacity*float64(o.Engines), r.rateBound(o.candidate)*float64(o.Engines), e)
	if err != nil {
		return err
	}
	if c.curve = x; o.Whole.Met { // begun at the wanted rate
		c.curve = x.withLoad(o.candidate.curve[0])
	}
	if err := r.carryAgain(ctx, &c, e); err != nil {
		return err
	}
	o.Whole.Capacity, o.Whole.all = r.engineRate(&c), &c
	o.Whole.Interval = new(r.capacityInterval(&c, o.group, 0.8))
	r.setEngineCount(o, o.Engines)
	return nil
}

// carryAgain looks at engines together with other chances, where they are asked conversations:
// which of them a router keeps at which engine goes on for long, and parts of one look say
// little of that.
func (r *race) carryAgain(ctx context.Context, c *Candidate, e *effort) error {
	usual := r.engineRate(c)
	if r.schedule.talks == nil || usual == 0 {
		return nil
	}
	once, again := *e, *c
	once.flanks = false
	again.curve = curve{c.curve[0]}
	other := r.schedule.withOtherSeed()
	x, err := other.searchLimits(ctx, &again, r.claims, usual, math.Inf(1), &once)
	if err != nil {
		return err
	}
	if again.curve = x; r.engineRate(&again) > 0 {
		c.spread = math.Abs(math.Log(r.engineRate(&again)/usual)) / math.Sqrt2
	}
	return nil
}
