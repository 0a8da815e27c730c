package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/session/estimate"
	"pitot/internal/target"
	"pitot/internal/workload/question"
)

// estimatePlan returns what a verb's plan is expected to send and take, with all launches;
// residence is how long a request takes alone, 0 where that is not known yet.
func estimatePlan(v config.Verb, p *config.Plan, residence time.Duration) estimate.Estimate {
	from := estimate.Parts{Ask: &p.Ask, Load: &p.Load, Good: &p.Good, GPUs: cmp.Or(p.GPUs, target.GPUs(target.WantedBy(p))), Residence: residence}
	from.Probes.Requests, from.Probes.Input, from.Probes.Output = target.ProbingOf(target.WantedBy(p))
	of := func() estimate.Estimate {
		switch v {
		case config.VerbSweep:
			return from.ForSweep(&p.Search)
		case config.VerbFind:
			return from.ForSearch(p.SearchTime())
		}
		return from.ForLoad(p.MaxDuration)
	}
	questions, input, output := question.ExpectedAlone(p.VerifiedShares(), of().Requests)
	from.Probes.Requests, from.Probes.Input, from.Probes.Output = from.Probes.Requests+questions, from.Probes.Input+input, from.Probes.Output+output
	return of().Times(max(1, p.Launches))
}

// loadText says which loads a verb's plan has.
func loadText(v config.Verb, p *config.Plan) (text string) {
	kind := " requests/s, " + p.Arrival
	if p.HasConversations() {
		kind = " conversations/s, " + p.Arrival
	}
	if p.IsClosedLoop() || v == config.VerbRun && !p.Open() {
		kind = " users who wait for each response"
	}
	var loads []string
	for _, x := range p.Loads {
		loads = append(loads, givenNumber(x))
	}
	switch {
	case v == config.VerbRun:
		text = givenNumber(cmp.Or(p.Rate, float64(p.Concurrency))) + kind
	case v == config.VerbFind && p.At > 0:
		text = givenNumber(p.At) + kind
	case v == config.VerbFind:
		text = "highest that meets " + p.SLO.String()
	case len(loads) > 0:
		text = strings.Join(loads, ", ") + kind
	default:
		text = fmt.Sprintf("%d loads, chosen during the sweep", p.Points)
	}
	if v == config.VerbSweep && p.Repeat > 1 {
		text += fmt.Sprintf("; each %d times", p.Repeat)
	}
	if s := p.VerifiedShares(); !s.IsNone() {
		text += "; " + say.Percent(s.TotalShare()) + " of the requests are questions"
	}
	if p.Launches > 1 {
		text += "; " + say.Plural(p.Launches, "launch")
	}
	return text
}

// withinLimit refuses what is expected to cost more than was allowed.
func withinLimit(limit float64, e estimate.Estimate) error {
	if limit == 0 {
		return nil
	}
	if e.NoPrice != "" {
		return say.Errorf("--spend-limit cannot be held: the price of this run is not known").WithHint(e.NoPrice)
	}
	if e.USD > limit {
		return say.Errorf("this run is expected to cost %s, more than the limit of %s", formatUSD(e.USD), formatUSD(limit)).WithHint("shorten it with --duration, --warmup or --requests, or raise --spend-limit")
	}
	return nil
}

// writeDryRun says what a run would send and take; further lines come before the last.
func writeDryRun(ctx context.Context, w io.Writer, v config.Verb, p *config.Plan, further ...string) error {
	residence := target.ResidenceOf(target.WantedBy(p))
	e := estimatePlan(v, p, residence)
	about := func(x float64, unit string) string {
		if x == 0 {
			return "unknown"
		}
		text := "about " + say.Count(int64(math.Round(x))) + unit
		if e.AtLeast {
			return "at least " + text
		}
		return text
	}
	output := about(e.Output, " tokens")
	if p.Pooling {
		output = "none, as nothing is generated"
	}
	included := ", warm-up included"
	switch {
	case p.Exactly:
		included = ""
	case p.Warmup == config.AutoWarmup && residence == 0:
		included += ": five times what a request takes alone, here taken for 1 s"
	}
	lines := []string{
		"target    " + p.Spec,
		"load      " + loadText(v, p),
	}
	if e.Requests == 0 && e.Input == 0 && e.Output == 0 {
		lines = append(lines, "size      "+sizeText(v))
	} else {
		lines = append(lines, "requests  "+about(e.Requests, included), "input     "+about(e.Input, " tokens"), "output    "+output)
	}
	at := len(lines) // where the time is
	lines = append(lines, "time      "+timeText(&e, p.Kind() == config.KindSim))
	if v == config.VerbFind && p.At == 0 {
		lines = append(lines, "gives     "+outlookText(p))
	}
	if n := e.Probes; n.Requests > 0 {
		lines = slices.Insert(lines, at, fmt.Sprintf("probes    %s more, %s tokens in and %s out, to find out what the target accepts",
			say.Plural(n.Requests, "request"), say.Count(int64(math.Round(n.Input))), say.Count(int64(math.Round(n.Output)))))
	}
	if v == config.VerbRun && p.Open() {
		if x := report.ArrivalsText(session.ExpectedArrivals(&p.Load)); x != "" {
			lines = slices.Insert(lines, 2, "arrivals  "+x)
		}
	}
	if v == config.VerbRun {
		if text := report.ExpectedCacheText(session.ExpectedHits(ctx, p, int64(e.Requests))); text != "" {
			lines = slices.Insert(lines, len(lines)-1, "cache     expected to have "+text)
		}
	}
	if text := fleetText(v, p); text != "" {
		lines = slices.Insert(lines, 2, "workers   "+text)
	}
	if from := p.Provenance(); from != "" {
		lines = append(lines, "settings  "+from)
	}
	for _, f := range session.LintTimes(p) {
		lines = append(lines, "times     "+f.Text)
	}
	switch {
	case e.NoPrice == "":
		lines = append(lines, "price     about "+formatUSD(e.USD))
	case !p.Price().IsUnknown():
		lines = append(lines, "price     "+e.NoPrice)
	}
	lines = append(lines, further...)
	_, err := fmt.Fprintln(w, strings.Join(append(lines, "nothing was sent"), "\n"))
	return err
}

// fleetText says by how many workers a load is carried out, and why, "" where nothing is sent and
// where one process was asked for.
func fleetText(v config.Verb, p *config.Plan) string {
	switch {
	case p.Workers > 0:
		return givenNumber(float64(p.Workers))
	case p.Workers != config.AutoFleet || p.Kind() == config.KindSim:
		return ""
	}
	load := p.Load // the largest
	if v != config.VerbRun {
		if load.Rate = 0; v == config.VerbSweep && !p.IsClosedLoop() && len(p.Loads) > 0 {
			load.Rate = slices.Max(p.Loads)
		}
	}
	by := session.SendingOf(p, &load, 0, runtime.GOMAXPROCS(0), func() bool { return target.IsLocal(p.Spec) })
	if p.Kind() == config.KindMock && !by.Short {
		return "" // nobody expects them there
	}
	if by.Workers == 0 {
		return "none" + by.Why
	}
	if v == config.VerbRun {
		return by.String()
	}
	return "up to " + by.String()
}

// sizeText says why the number of requests is not known.
func sizeText(v config.Verb) string {
	if v == config.VerbFind {
		return "depends on the search"
	}
	return "depends on how fast the server responds"
}

// timeText says how long it takes.
func timeText(e *estimate.Estimate, simulated bool) string {
	unit := time.Second
	if e.Time < 10*time.Second {
		unit /= 100
	}
	takes := "about " + say.Duration(e.Time.Round(unit))
	switch {
	case e.Time == 0 && e.AtMost:
		return "some seconds, simulated"
	case e.Time == 0:
		return "until all requests are answered"
	case e.AtMost:
		return "at most " + takes
	case e.AtLeast && simulated:
		return "at least " + takes + ", simulated"
	case e.AtLeast:
		return fmt.Sprintf("at least %s; up to about %s if one request alone takes over 1.8 s", takes, say.Duration(e.Longest.Round(10*time.Minute)))
	}
	return takes + ", plus the last responses"
}

// outlookText says what a search will come to, by what the capacity is: that is not
// known before something is sent.
func outlookText(p *config.Plan) string {
	limit := p.SearchTime()
	if limit == 0 {
		return "the capacity to about ±5 %, or what a few seconds of a processor simulate"
	}
	claims, err := p.SLO.SplitClaims()
	if err != nil {
		return ""
	}
	var known, bounds []string
	for _, rate := range []float64{1, 3, 10, 30, 100} {
		o := capacity.Forecast(1, rate, capacity.Budget{Seconds: limit.Seconds()}, session.TrafficOf(p, claims))
		if o.HalfWidth == 0 {
			bounds = append(bounds, givenNumber(rate))
			continue
		}
		known = append(known, fmt.Sprintf("±%.0f %% at %s", 100*o.HalfWidth, givenNumber(rate)))
	}
	var parts []string
	if len(bounds) > 0 {
		parts = append(parts, "bounds alone of a capacity of up to about "+bounds[len(bounds)-1]+" requests/s")
	}
	if len(known) > 0 {
		parts = append(parts, "about "+strings.Join(known, ", ")+" requests/s")
	}
	return strings.Join(parts, "; ") + ", where a request alone takes a second"
}

// givenNumber writes a number as it was given.
func givenNumber(x float64) string {
	if x == math.Trunc(x) {
		return say.Count(int64(x))
	}
	if s := say.Exact(x); len(s) <= mostGiven {
		return s
	}
	return say.Quantity(x) // nobody wrote so many digits: it is a recording's own rate
}

// mostGiven is the maximum number of characters in a number that somebody may have written.
const mostGiven = 10

// formatUSD writes a price to the cent.
func formatUSD(x float64) string {
	cents := int64(math.Round(x * 100))
	return fmt.Sprintf("$%s.%02d", say.Count(cents/100), cents%100)
}
