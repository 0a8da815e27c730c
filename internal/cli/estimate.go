package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/data/result"
	"pitot/internal/plan"
	"pitot/internal/say"
	"pitot/internal/target"
)

// estimate is what a plan is expected to send and take; zero is not known
// beforehand.
type estimate struct {
	load          string
	requests      float64
	input, output float64 // tokens
	seconds       float64
	atMost        bool    // seconds is a limit
	atLeast       bool    // windows are as long as they have to be: seconds, requests and tokens may be more
	most          float64 // seconds of the longest windows that are chosen, 0 if there are none
	usd           float64
	why           string // why there is no price, "" if there is one
}

// autoWarmup stands for the warm-up that is found out at the start.
const autoWarmup = 5 * time.Second

// leastWindow and mostWindow bound that of a load of a sweep where none is asked for.
const leastWindow, mostWindow = time.Minute, 10 * time.Minute

// warmup is about how long the warm-up of a point is.
func warmup(p *plan.Plan) time.Duration {
	if p.Warmup == plan.AutoWarmup {
		return autoWarmup
	}
	return p.Warmup
}

// estimateRun is for one load.
func estimateRun(p *plan.Plan) estimate {
	warm := warmup(p)
	e := estimate{load: say.Count(p.Concurrency) + " users who wait for their answers"}
	if p.Open() {
		e.load = fmt.Sprintf("%s requests/s, %s", rate(p.Rate), p.Arrival)
	}
	switch {
	case p.Rate > 0 && p.Requests > 0:
		e.seconds = float64(p.Requests)/p.Rate + warm.Seconds()
		e.requests = p.Rate * e.seconds
	case p.Rate > 0:
		e.seconds = (p.Duration + warm).Seconds()
		e.requests = p.Rate * e.seconds
	case p.Requests > 0:
		e.requests = float64(p.Requests) * 1.1 // and some in the warm-up
		if p.Exactly {
			e.requests = float64(p.Requests)
		}
	default:
		e.seconds = (p.Duration + warm).Seconds()
	}
	if !p.Until.None() { // the window is doubled for as long as it may be
		e.atMost = true
		e.seconds = (p.Budget + warm).Seconds()
		e.requests = p.Rate * e.seconds
	}
	e.requests *= float64(p.Repeat)
	e.seconds *= float64(p.Repeat)
	e.price(p)
	return e
}

// estimateSweep is for the loads of a curve.
func estimateSweep(p *plan.Plan) estimate {
	closed := p.Over == "concurrency"
	n := p.Points
	e := estimate{}
	window := p.Duration
	if window == plan.AutoDuration && p.Requests == 0 {
		window, e.atLeast = leastWindow, true
	}
	if len(p.Loads) > 0 {
		n = len(p.Loads)
		var loads []string
		for _, x := range p.Loads {
			loads = append(loads, rate(x))
			switch {
			case closed && p.Requests == 0: // nobody knows
			case p.Requests > 0:
				e.requests += float64(p.Requests)
			default:
				e.requests += x * (window + warmup(p)).Seconds()
			}
			if p.Requests > 0 && !closed {
				e.seconds += float64(p.Requests)/x + warmup(p).Seconds()
			}
		}
		e.load = strings.Join(loads, ", ")
	} else {
		e.load = fmt.Sprintf("%d loads, chosen as the curve goes", n)
	}
	if p.Requests == 0 {
		e.seconds = float64(n) * (window + warmup(p)).Seconds()
		if e.atLeast {
			e.most = float64(n) * (mostWindow + warmup(p)).Seconds() * float64(p.Repeat)
		}
	}
	switch {
	case len(p.Loads) == 0:
	case closed:
		e.load += " users who wait for their answers"
	default:
		e.load += " requests/s, " + p.Arrival
	}
	if p.Repeat > 1 {
		e.load += fmt.Sprintf("; each %d times", p.Repeat)
	}
	e.requests *= float64(p.Repeat)
	e.seconds *= float64(p.Repeat)
	e.price(p)
	return e
}

// estimateFind is for a search: it takes what it may.
func estimateFind(p *plan.Plan) estimate {
	e := estimate{load: "what meets " + p.SLO.String(), seconds: p.SearchTime().Seconds(), atMost: true}
	if p.Verify > 0 {
		e.load = rate(p.Verify) + " requests/s, " + p.Arrival
		if p.Over == "concurrency" {
			e.load = rate(p.Verify) + " users who wait for their answers"
		}
	}
	e.price(p)
	return e
}

// times is for so many launches.
func (e *estimate) times(n int) {
	e.load += fmt.Sprintf("; %s", say.Plural(n, "launch"))
	for _, x := range []*float64{&e.requests, &e.input, &e.output, &e.seconds, &e.most, &e.usd} {
		*x *= float64(n)
	}
}

// price fills in the tokens and what all costs.
func (e *estimate) price(p *plan.Plan) {
	random := p.Generated()
	if random {
		e.input = e.requests * (p.Input.Mean() + float64(p.Prefix)*p.PrefixShare)
	}
	if random || p.Ask.Output != plan.Default().Ask.Output {
		e.output = e.requests * p.Ask.Output.Mean()
	}
	byToken, byTime := p.TokenPrice != plan.TokenPrice{}, p.GPUPrice > 0
	gpus := cmp.Or(p.GPUs, target.GPUs(target.WantedBy(p)))
	switch {
	case e.atLeast && (byToken || byTime):
		e.why = "how long the windows have to be is found out at the start; bound them with --duration"
	case byToken && e.requests == 0:
		e.why = "how many requests users make in a time is not known beforehand; bound it with --requests"
	case byToken && (e.input == 0 || e.output == 0):
		e.why = "how many tokens a file's requests take is not known beforehand"
	case byTime && gpus == 0:
		e.why = "how many GPUs the target has is not known: give --gpus"
	case byTime && e.seconds == 0:
		e.why = "how long users take for their requests is not known beforehand; bound it with --duration"
	case !byToken && !byTime:
		e.why = "no price was given"
	}
	if e.why == "" {
		e.usd = e.input/1e6*p.TokenPrice.Input + e.output/1e6*p.TokenPrice.Output + result.USDOfGPUs(gpus, p.GPUPrice, e.seconds)
	}
}

// withinLimit refuses what is expected to cost more than was allowed.
func withinLimit(p *plan.Plan, e estimate) error {
	if p.SpendLimit == 0 {
		return nil
	}
	if e.why != "" {
		return say.Errorf("--spend-limit cannot be held: the price of this run is not known").WithHint(e.why)
	}
	if e.usd > p.SpendLimit {
		return say.Errorf("this run is expected to cost %s, more than the limit of %s", usd(e.usd), usd(p.SpendLimit)).WithHint("shorten it with --duration or --requests, or raise --spend-limit")
	}
	return nil
}

// dryRun says what a run would send and take.
func dryRun(w io.Writer, p *plan.Plan, e estimate) error {
	about := func(x float64, unit string) string {
		if x == 0 {
			return "not known beforehand"
		}
		if e.atLeast {
			return "at least about " + say.Count(int64(math.Round(x))) + unit
		}
		return "about " + say.Count(int64(math.Round(x))) + unit
	}
	included := ", warm-up included"
	if p.Exactly {
		included = ""
	}
	took := "until all requests are answered"
	if e.seconds > 0 {
		d := time.Duration(e.seconds * float64(time.Second))
		unit := time.Second
		if d < 10*time.Second {
			unit /= 100
		}
		took = fmt.Sprintf("about %s, and until the last answer has ended", say.Span(d.Round(unit)))
		if e.atLeast {
			took = "at least about " + say.Span(d.Round(unit))
			if p.Kind() == plan.KindSim {
				took += ", simulated"
			} else {
				most := time.Duration(e.most * float64(time.Second))
				took += fmt.Sprintf("; where a request alone takes over 1.8 s, its time is the measure of the windows: up to about %s", say.Span(most.Round(10*time.Minute)))
			}
		}
		if e.atMost {
			took = "at most about " + say.Span(d.Round(unit))
		}
	}
	lines := []string{
		"target    " + p.Spec,
		"load      " + e.load,
		"requests  " + about(e.requests, included),
		"input     " + about(e.input, " tokens"),
		"output    " + about(e.output, " tokens"),
		"time      " + took,
	}
	if from := p.Provenance(); from != "" {
		lines = append(lines, "settings  "+from)
	}
	switch {
	case e.why == "":
		lines = append(lines, "price     about "+usd(e.usd))
	case p.TokenPrice != plan.TokenPrice{} || p.GPUPrice > 0:
		lines = append(lines, "price     "+e.why)
	}
	_, err := fmt.Fprintln(w, strings.Join(append(lines, "nothing was sent"), "\n"))
	return err
}

// rate writes requests per second as they were given.
func rate(x float64) string {
	if x == math.Trunc(x) {
		return say.Count(int64(x))
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// usd writes a price to the cent.
func usd(x float64) string {
	cents := int64(math.Round(x * 100))
	return fmt.Sprintf("$%s.%02d", say.Count(cents/100), cents%100)
}
