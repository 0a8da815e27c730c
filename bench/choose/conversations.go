package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pitot/internal/analysis/choose"
	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/session"
	"pitot/internal/sim/deploy"
	"pitot/internal/slo"
)

// talk is a contract of conversations: what is to be chosen for, by so many engines or a few
// more or less.
type talk struct {
	Model, GPUs, Asked, SLO string // Asked: flags of the workload
	Engines                 float64
	Seed                    uint64
	Pause                   float64 // s between two turns, mean
}

// drawTalk gives the contract of conversations of a number.
func drawTalk(i int) talk {
	rng := rand.New(rand.NewPCG(81, uint64(i)))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	pauses := []struct {
		law  string
		mean float64
	}{{"2s", 2}, {"uniform(1s,5s)", 3}, {"exponential(3s)", 3}, {"lognormal(5s,5s)", 5}, {"10s", 10}, {"lognormal(15s,20s)", 15}}
	pause := pauses[rng.IntN(len(pauses))]
	on := [][2]string{
		{"llama-3.1-8b", pick("h100:1", "a100:1", "l40s:1")}, {"qwen3-8b", pick("h100:1", "h200:1", "a100:1")}, {"qwen3-14b", pick("h100:1", "h200:1")},
		{"gpt-oss-20b", "h100:1"}, {"qwen3-30b-a3b", pick("h100:1", "h200:1")}, {"llama-3.1-70b", "h200:2"},
	}[rng.IntN(6)]
	t := talk{
		Model: on[0], GPUs: on[1],
		Asked: strings.Join([]string{
			"--turns", pick("2", "4", "uniform(2,8)", "uniform(1,15)"), "--think", pause.law, "--system", pick("0", "500", "2000", "6000"),
			"--input", pick("200", "1500", "lognormal(600,500)"), "--set", "turn-input=" + pick("50", "300", "lognormal(300,400)"),
			"--output", pick("32", "200", "lognormal(150,150)", "lognormal(300,200)"),
		}, " "),
		SLO: fmt.Sprintf("%s ttft<%s, %s tpot<%s", pick("p90", "p95", "p99"), pick("300ms", "500ms", "1s", "2s"),
			pick("p90", "p95", "p99"), pick("30ms", "50ms", "80ms")),
		Engines: []float64{0.8, 1.7, 3.5, 7}[rng.IntN(4)], Seed: uint64(i + 1), Pause: pause.mean,
	}
	if rng.IntN(5) == 0 { // steps start agents, which ask at once
		t.Asked += " --set sub-agents=share(10%),agents(uniform(1,3)),steps(uniform(2,5)),system(1000),input(500)"
	}
	return t
}

// talked is a contract of conversations and what came of it.
type talked struct {
	Contract talk
	Choice   *choose.Choice `json:",omitempty"`
	Seconds  float64        // of a processor that the choice took
	One, All *held          // what one engine carries, and all of them behind their router
	Why      string
}

// held is what a choice says that a deployment carries beside what long runs say.
type held struct {
	Spec     string
	Said     float64
	Interval [2]float64
	Between  [2]float64 // the limits hold at the first load and not at the second; 0: at none, +Inf as -1: at all that were tried
}

// capacity is what long runs say, between the two loads.
func (h *held) capacity() float64 { return math.Sqrt(h.Between[0] * h.Between[1]) }

func (h *held) within() bool {
	return h.Between[0] > 0 && h.Between[1] > 0 && h.capacity() >= h.Interval[0] && h.capacity() <= h.Interval[1]
}

// tryTalk chooses, and has long runs say what the winner carries.
func tryTalk(pitot string, t talk) (o talked) {
	o.Contract = t
	args := append([]string{"--model", t.Model, "--gpus", t.GPUs, "--dtypes", "bf16", "--slo", t.SLO, "--seed", fmt.Sprint(t.Seed)}, strings.Fields(t.Asked)...)
	first, _, err := chosen(pitot, args...)
	if err == nil && len(first.Options) == 0 {
		err = fmt.Errorf("no deployment meets the limits")
	}
	if err == nil {
		rate := t.Engines * first.Options[0].Capacity
		o.Choice, o.Seconds, err = chosen(pitot, append(args, "--rate", fmt.Sprint(rate))...)
	}
	if err != nil {
		o.Why = err.Error()
		return o
	}
	best := &o.Choice.Options[0]
	length := o.Choice.Turns * (t.Pause + 2)
	o.One = &held{Spec: best.Spec, Said: best.Capacity, Interval: best.Interval}
	ask := []*held{o.One}
	if w := best.Whole; best.Engines > 1 && w != nil && w.Interval != nil {
		o.All = &held{Spec: w.Spec, Said: w.Capacity, Interval: *w.Interval}
		ask = append(ask, o.All)
	}
	for _, h := range ask {
		if err := h.search(t, o.Choice.Turns, length); err != nil {
			o.Why = err.Error()
			break
		}
	}
	return o
}

// search halves what is printed and a third more on both sides until two loads are near each other.
func (h *held) search(t talk, turns, length float64) error {
	const beside = 1.3
	lo, hi := h.Interval[0]/beside, h.Interval[1]*beside
	if lo == 0 {
		lo = h.Said / 4
	}
	for hi/lo > 1.06 {
		rate := math.Sqrt(lo * hi)
		met, err := longRun(h.Spec, t, rate, turns, max(12*length, 20_000/(rate*turns)))
		if err != nil {
			return err
		}
		if met {
			lo, h.Between[0] = rate, rate
		} else {
			hi, h.Between[1] = rate, rate
		}
	}
	return nil
}

// longRun says whether the limits hold at a load of a deployment that begins with nothing, over
// so many seconds behind a third as many.
func longRun(spec string, t talk, rate, turns, seconds float64) (bool, error) {
	var ask config.Ask
	var good config.Good
	if _, err := config.DecodeParts(config.VerbChoose, append(strings.Fields(t.Asked), "--slo", t.SLO), nil, new(config.Choosing), &ask, new(config.Load), &good); err != nil {
		return false, err
	}
	ask.Seed = 1000 + t.Seed
	src, done, err := session.OpenWorkload(&ask, 0)
	if err != nil {
		return false, err
	}
	defer done()
	d, err := deploy.Parse(spec)
	if err != nil {
		return false, err
	}
	claims, err := good.SLO.SplitClaims()
	if err != nil {
		return false, err
	}
	law, err := config.ReadArrivals("poisson")
	if err != nil {
		return false, err
	}
	arrivals, err := law.NewProcess(rate, ask.Seed, 0)
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	window := int64(seconds * 1e9)
	v := &violations{claims: claims, over: make([]int, len(claims)), from: window / 3, until: window/3 + window, most: 1.5 * rate * turns * seconds, stop: stop}
	engine := d.Engine(ask.Seed)
	engine.Brief()
	core := loadgen.NewCore(loadgen.Config{Arrivals: arrivals, Follow: loadgen.FollowOf(src), Warmup: v.from, Window: window})
	loadgen.Run(ctx, core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: engine, Source: src, Sink: v}))
	return !v.violated(float64(v.due)), nil
}

// violations is a sink that counts the requests of a window that violate claims.
type violations struct {
	claims []slo.Claim
	from   int64 // ns
	until  int64 // ns: what would be asked later is not sent
	due    int
	over   []int
	most   float64 // requests: where they violate a claim even among so many, there is no need to go on
	stop   func()
}

// Chunk implements [record.Sink].
func (*violations) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (v *violations) Done(r *record.Row) {
	if r.Due < v.from || r.Due >= v.until {
		return
	}
	v.due++
	one := metrics.OfRow(r)
	for c := range v.claims {
		if v.claims[c].Times(one) >= 1 {
			v.over[c]++
		}
	}
	if v.violated(v.most) {
		v.stop()
	}
}

// violated says that more of so many requests violate a claim than may.
func (v *violations) violated(requests float64) bool {
	for c := range v.claims {
		if float64(v.over[c]) > v.claims[c].Share*requests {
			return true
		}
	}
	return false
}

func printTalk(i int, o talked) {
	t := o.Contract
	fmt.Printf("%2d %-14s %-6s %s, %s: ", i, t.Model, t.GPUs, t.Asked, t.SLO)
	if o.One == nil {
		fmt.Println(o.Why)
		return
	}
	fmt.Printf("%d candidates in %.1f s", o.Choice.Counts.All, o.Seconds)
	for _, h := range []*held{o.One, o.All} {
		if h != nil {
			mark := "OUTSIDE"
			if h.within() {
				mark = "within"
			}
			fmt.Printf("; %s %.3g (%.3g to %.3g), runs %.3g (%.3g to %.3g) %s", h.Spec, h.Said, h.Interval[0], h.Interval[1], h.capacity(), h.Between[0], h.Between[1], mark)
		}
	}
	fmt.Println(o.Why)
}

// summaryTalks says how often both agree.
func summaryTalks(list []talked) error {
	for _, all := range []bool{false, true} {
		n, within := 0, 0
		var apart []float64
		for _, o := range list {
			h := o.One
			if all {
				h = o.All
			}
			if h == nil {
				continue
			}
			n++
			if h.within() {
				within++
			}
			if c := h.capacity(); c > 0 {
				apart = append(apart, math.Abs(math.Log(c/h.Said)))
			}
		}
		if len(apart) == 0 {
			return fmt.Errorf("no contract has both")
		}
		slices.Sort(apart)
		fmt.Printf("\n%s: %d contracts, %d of them within the printed error; apart by %.1f %% in the median, %.1f %% at most\n",
			map[bool]string{false: "one engine", true: "all engines together"}[all], n, within, 100*apart[len(apart)/2], 100*apart[len(apart)-1])
	}
	fmt.Println(time.Now().Format(time.DateOnly))
	return nil
}
