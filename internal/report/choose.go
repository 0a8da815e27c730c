package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/analysis/choose"
	"pitot/internal/say"
	"pitot/internal/sim/engines"
)

// How a choice of deployments is told: the cheapest first, and what may be as cheap.

// ChoiceModel holds what a report shows of a choice.
type ChoiceModel struct {
	Answer  string     // which deployment, for how much
	Facts   [][]string // of it, a line each
	Options Table
	Legend  texts
	Remarks texts    // what a reader must know of the numbers
	Start   []string // commands, a line each
	Verify  []string
	Choice  *choose.Choice
}

// BuildChoice makes the model.
func BuildChoice(x *choose.Choice) ChoiceModel {
	m := ChoiceModel{Choice: x}
	asked := fmt.Sprintf("%s · %s · %s tokens in and %s out on average", x.Model, x.SLO, say.Count(int(x.Input+0.5)), say.Count(int(x.Output+0.5)))
	if x.Turns > 0 {
		asked += fmt.Sprintf(" · conversations of %s requests on average", say.Quantity(x.Turns))
	}
	if len(x.Options) == 0 {
		m.Answer = "no deployment meets the limits, however light the load"
		m.Facts = [][]string{strings.Split(asked, " · ")}
		m.Remarks = append(describeFailures(x), candidatesLooked(x))
		return m
	}
	best := &x.Options[0]
	m.Answer = "take " + describeOption(best)
	if x.Rate > 0 && isCapacityShort(x, best) {
		m.Answer = fmt.Sprintf("nothing that was tried carries %s; the nearest is %s", RateText(x, x.Rate), describeOption(best))
	}
	if best.PerHour > 0 {
		price := fmt.Sprintf(": $%s an hour, $%s per million output tokens", formatPrice(best.PerHour), formatPrice(best.PerMillion))
		if x.Rate == 0 {
			price = fmt.Sprintf(": $%s per million output tokens, at $%s an hour", formatPrice(best.PerMillion), formatPrice(best.PerHour))
		}
		m.Answer += price
	}
	if x.Rate > 0 {
		m.Facts = append(m.Facts, carriesTogether(x, best)...)
	} else {
		m.Facts = append(m.Facts, []string{
			fmt.Sprintf("an engine carries %s (%s, 80 %%)", RateText(x, best.Capacity), fromTo(best.Interval)), best.Claim + " is reached first",
		})
	}
	m.Facts = append(m.Facts, howSure(x), strings.Split(asked, " · "))
	if o := asPublished(x); o != nil {
		m.Facts = append(m.Facts, []string{fmt.Sprintf("%s weights may answer otherwise than the published ones: with %s it is %s%s", best.DType, o.DType, describeOption(o), perHour(o))})
	}
	m.Options, m.Legend = optionTable(x)
	m.Remarks = append(errorsToExpect(x), describeFailures(x)...)
	m.Remarks.addText(candidatesLooked(x))
	switch w := best.Whole; {
	case w == nil:
	case w.Router == choose.Session:
		m.Remarks.addText("this router goes by the header X-Session-ID: have each conversation send its own; behind one that goes by what prompts begin with as many engines miss the limits")
	case w.Router == choose.CacheAware && w.BalanceAbsThreshold == 0 && w.Capacity > 0 && w.Capacity < unevenly*best.Capacity*float64(best.Engines):
		m.Remarks.addText("this router sends what begins alike, as with one system prompt, to one engine until that has 64 requests more than another (balance_abs_threshold): with light loads few engines work")
	}
	m.Start = []string{say.ShellLine(best.ServeCommand())}
	if router := best.RouterCommand(best.WorkerURLs()...); router != nil {
		m.Start = append(m.Start, say.ShellLine(router))
	}
	if best.IsBaseModel() {
		m.Remarks.addText("the checkpoint in the line below is of the base model: for chats take the one that was trained for them, which is served alike")
	}
	m.Verify = []string{say.ShellLine(x.VerifyCommand(best, "http://HOST:8000")), say.ShellLine(x.VerifyCommand(best, ""))}
	return m
}

// describeOption names an option: "2 engines of 2×h100 each, fp8 weights".
func describeOption(o *choose.Option) string {
	on := "one " + o.Accelerator
	if o.TensorParallel > 1 {
		on = fmt.Sprintf("%d×%s", o.TensorParallel, o.Accelerator)
	}
	weights := o.DType + " weights"
	if o.Engine != engines.Default().Name {
		weights += ", " + o.Engine
	}
	if o.Engines == 1 {
		return fmt.Sprintf("one engine on %s, %s", on, weights)
	}
	return fmt.Sprintf("%d engines on %s each, %s", o.Engines, on, weights)
}

// isCapacityShort says that an option's engines carry less together than is wanted.
func isCapacityShort(x *choose.Choice, o *choose.Option) bool {
	w := o.Whole
	return w != nil && (!w.Met || w.Interval != nil && w.Capacity < x.Rate*(1-1e-6))
}

// carriesTogether says how sure it is that an option's engines carry what is wanted.
func carriesTogether(x *choose.Choice, o *choose.Option) (facts [][]string) {
	n := float64(o.Engines)
	carried, within := o.Capacity*n, [2]float64{o.Interval[0] * n, o.Interval[1] * n}
	if w := o.Whole; w != nil && w.Interval != nil {
		carried, within = w.Capacity, *w.Interval
	}
	facts = append(facts, []string{
		fmt.Sprintf("carries %s (%s, 80 %%)", RateText(x, carried), fromTo(within)),
		fmt.Sprintf("%s/s wanted", say.Quantity(x.Rate)),
		fmt.Sprintf("enough with a probability of %s%s, by the errors to expect of the twin", probabilityText(o.Enough), sureText(x.Sure)), o.Claim + " is reached first",
	})
	more := ""
	switch {
	case x.Sure > 0 && o.NeverSure:
		more = fmt.Sprintf("no number of engines is enough with a probability of %s: where the twin is too fast by its error no load meets the limits", say.Percent(x.Sure))
	case o.EnginesFor[1] == 0:
		more = "where the twin is too fast by its error to expect no number of engines meets the limits"
	case o.EnginesFor[1] > o.Engines:
		more = fmt.Sprintf("%s carry it even where the twin is too fast by its error to expect", say.Plural(o.EnginesFor[1], "engine"))
	}
	loss := "if it fails nothing is left"
	if o.Engines > 1 {
		loss = fmt.Sprintf("if one engine fails the others carry %.0f %% of what is wanted", math.Floor(100*min(o.AfterLoss, 9.99)+1e-6))
	}
	facts = append(facts, nonEmpty(more, loss))
	w := o.Whole
	switch {
	case w == nil:
		facts = append(facts, []string{"its engines were not put together: their numbers are of each alone"})
	case w.Router != "" && w.Met:
		nearest := 0
		for i, t := range w.Times {
			if t > w.Times[nearest] {
				nearest = i
			}
		}
		facts = append(facts, []string{fmt.Sprintf("all %d together at %s/s, shared out by %s: %s at %s of the limit", o.Engines, say.Quantity(x.Rate), routerName(w.Router), limitName(x.Claims[nearest]), say.PercentNear(w.Times[nearest], 1))})
	case !w.Met:
		facts = append(facts, []string{fmt.Sprintf("tried together at %s/s they miss the limits: take more", say.Quantity(x.Rate))})
	}
	return facts
}

// RateText writes a rate of a choice, of requests or of conversations that begin.
func RateText(x *choose.Choice, rate float64) string {
	if x.Turns > 0 {
		return say.Quantity(rate) + " conversations/s"
	}
	return say.Quantity(rate) + "/s"
}

// routerName says who shares requests out.
func routerName(router string) string {
	switch router {
	case "vllm":
		return "vLLM itself"
	case choose.PowerOfTwo:
		return "a router, to the one with fewer requests of any two"
	case choose.CacheAware:
		return "a router, to the one that has the conversation in its cache"
	case choose.Session:
		return "a router, each conversation to an engine of its own"
	}
	return router
}

func perHour(o *choose.Option) string {
	if o.PerHour <= 0 {
		return ""
	}
	return fmt.Sprintf(", $%s an hour", formatPrice(o.PerHour))
}

// formatPrice writes a price: of a dollar and more in cents.
func formatPrice(x float64) string {
	if x >= 1 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return say.Dollars(x)
}

// apart is the least probability of being the cheapest at which another option counts as perhaps as
// cheap.
const apart = 0.1

// howSure says how sure it is, and what may be as cheap.
func howSure(x *choose.Choice) []string {
	best := &x.Options[0]
	var others, same []string
	for i := range x.Options[1:] {
		switch o := &x.Options[1+i]; {
		case o.Cheapest < apart:
		case costsTheSame(x, best, o):
			text := fmt.Sprintf("%s, which carries %s", describeOption(o), RateText(x, o.Capacity*float64(o.Engines)))
			if o.Quantised && !best.Quantised {
				text += "; its answers have to be judged"
			}
			same = append(same, text)
		default:
			others = append(others, fmt.Sprintf("%s (%s)", describeOption(o), probabilityText(o.Cheapest)))
		}
	}
	first := fmt.Sprintf("the cheapest with a probability of %s, by the errors to expect of the twin", probabilityText(best.Cheapest))
	if len(others) > 0 && slices.ContainsFunc(x.Options[1:], func(o choose.Option) bool { return o.Cheapest > best.Cheapest }) {
		first += ", and taken because by the twin's figures as they stand nothing costs less"
	}
	facts := []string{first}
	for _, text := range same {
		facts = append(facts, "costs the same: "+text)
	}
	if len(others) > 0 {
		facts = append(facts, "not told apart from it: "+strings.Join(others, ", "))
	}
	return facts
}

// costsTheSame reports whether two options cost the same at the rate that is wanted, by the twin's
// figures as they stand.
func costsTheSame(x *choose.Choice, a, b *choose.Option) bool {
	if x.Rate == 0 || a.NeverSure || b.NeverSure {
		return false
	}
	if a.PerHour > 0 || b.PerHour > 0 {
		return math.Abs(a.PerHour-b.PerHour) < 1e-9*a.PerHour
	}
	return a.GPUs == b.GPUs
}

// sureText is the probability that --sure wants.
func sureText(sure float64) string {
	if sure == 0 {
		return ""
	}
	return " (" + say.Percent(sure) + " wanted)"
}

// probabilityText writes a probability that was found out by drawing: none is certain.
func probabilityText(p float64) string {
	switch {
	case p > 0.99:
		return "over 99 %"
	case p < 0.01:
		return "< 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}

// asPublished is the cheapest option with the published weights, where the first has others.
func asPublished(x *choose.Choice) *choose.Option {
	if !x.Options[0].Quantised {
		return nil
	}
	for i := range x.Options {
		if !x.Options[i].Quantised {
			return &x.Options[i]
		}
	}
	return nil
}

// optionTable are a line each.
func optionTable(x *choose.Choice) (t Table, legend []string) {
	priced := x.Options[0].PerHour > 0
	t.Head = []string{"engine", "n", "each carries", "80 %"}
	if priced {
		t.Head = append(t.Head, "$/h", "$/M out", "80 %")
	}
	t.Head = append(t.Head, "cheapest", "first limit")
	for i := range x.Options {
		o := &x.Options[i]
		if priced && o.PerHour > farDearer*x.Options[0].PerHour && x.Rate > 0 {
			break
		}
		engines := say.Count(o.Engines)
		if x.Rate > 0 && isCapacityShort(x, o) {
			engines = "> " + engines
		}
		row := []string{EngineName(o), engines, say.Quantity(o.Capacity), intervalCell(&o.Interval)}
		if priced {
			hour, million, interval := say.Unknown, say.Unknown, say.Unknown
			if o.PerHour > 0 {
				hour, million = formatPrice(o.PerHour), say.Quantity(o.PerMillion)
				interval = say.Quantity(o.Million80[0]) + "…"
				if o.Million80[1] > 0 {
					interval += say.Quantity(o.Million80[1])
				} else { // no number of engines
					interval += "∞"
				}
			}
			row = append(row, hour, million, interval)
		}
		t.AddRow(append(row, probabilityText(o.Cheapest), limitName(o.Claim))...)
	}
	carries := "requests"
	if x.Turns > 0 {
		carries = "conversations that begin"
	}
	legend = []string{"n: engines", "carries: " + carries + " per second of one engine within the limits", "80 %: four of five such predictions should be within", "cheapest: how likely it is that nothing costs less, by these errors"}
	for i := range t.Rows {
		if o := &x.Options[i]; len(o.Settings) > 0 {
			var list []string
			for _, s := range o.Settings {
				list = append(list, s.Name+" "+s.Value)
			}
			legend = append(legend, fmt.Sprintf("%s with %s", t.Rows[i][0], strings.Join(list, ", ")))
		}
	}
	for i := range t.Rows {
		o := &x.Options[i]
		if sum := o.Capacity * float64(o.Engines); o.Whole != nil && o.Whole.Capacity > 0 && o.Whole.Capacity < unevenly*sum {
			legend = append(legend, fmt.Sprintf("%s: its %d engines carry %s together, not %s as alone: what comes is not shared out evenly", t.Rows[i][0], o.Engines, RateText(x, o.Whole.Capacity), say.Quantity(sum)))
		}
	}
	if n := len(x.Options) - len(t.Rows); n > 0 {
		legend = append(legend, fmt.Sprintf("%s more cost over %d times as much", say.Count(n), farDearer))
	}
	return t, legend
}

// limitName is a limit without its value: "p99 ttft".
func limitName(claim string) string {
	name, _, _ := strings.Cut(claim, "<")
	return name
}

// unevenly is the share of what engines carry alone below which it is said that they carry less
// together.
const unevenly = 0.9

// farDearer is by how many times the cheapest an option may cost to have a line.
const farDearer = 3

// EngineName returns what an engine runs on and in: "2×h100 fp8".
func EngineName(o *choose.Option) string {
	name := o.Accelerator + " " + o.DType
	if o.Engine != engines.Default().Name {
		name += " " + o.Engine
	}
	if o.TensorParallel > 1 {
		name = fmt.Sprintf("%d×%s", o.TensorParallel, name)
	}
	return name
}

// errorsToExpect says how far off the twin may be, for each kind of systems.
func errorsToExpect(x *choose.Choice) (list texts) {
	type open struct {
		kernels bool
		engine  string
		error   choose.Expected
	}
	unknown := map[open][]string{}
	var order []open
	seen := map[string]bool{}
	for i := range x.Options {
		o := &x.Options[i]
		switch key := (open{o.Error.Kernels, o.Engine, o.Error}); {
		case o.Error.Lockstep:
			if !seen[""] {
				seen[""] = true
				list.addFormat("engines that share experts take their steps together: of such none of vLLM's was measured, and of another engine's TPOT was up to %.1f times as long or short and TTFT %.1f times, which is what is expected here; without enable_expert_parallel the errors are known", 1+o.Error.TPOTPct/100, 1+o.Error.TTFTPct/100)
			}
		case o.Error.Of == "":
			if unknown[key] == nil {
				order = append(order, key)
			}
			if !slices.Contains(unknown[key], o.Accelerator) {
				unknown[key] = append(unknown[key], o.Accelerator)
			}
		case !seen[o.Error.Of]:
			seen[o.Error.Of] = true
			list.addFormat("%s: four of five predictions are within %.0f %% in TPOT and %.0f %% in TTFT", o.Error.Of, o.Error.TPOTPct, o.Error.TTFTPct)
		}
	}
	for _, key := range order {
		known := "nor one of its kernels: taken to be as far off as the worst of all that is known"
		if key.kernels {
			known = "only of its kernels: taken to be as far off as the worst that is known of such models elsewhere"
		}
		if !isEngineValidated(key.engine) {
			list.addFormat("%s's scheduler was held against no running server: taken to be as far off as the worst of all that is known of vLLM, %.0f %% in TPOT and %.0f %% in TTFT", key.engine, key.error.TPOTPct, key.error.TTFTPct)
			continue
		}
		list.addFormat("of %s no measurement of such a system is public, %s, %.0f %% in TPOT and %.0f %% in TTFT", strings.Join(unknown[key], ", "), known, key.error.TPOTPct, key.error.TTFTPct)
	}
	return list
}

// isEngineValidated reports whether an engine's times were held against running servers.
func isEngineValidated(name string) bool {
	k, ok := engines.ByName(name)
	return ok && k.Held
}

// describeFailures says where the limits cannot be met, for each accelerator what came nearest.
func describeFailures(x *choose.Choice) (list texts) {
	best := map[string]choose.Failing{}
	var order []string
	for _, f := range x.Failing {
		b, seen := best[f.Accelerator]
		if !seen {
			order = append(order, f.Accelerator)
		}
		if !seen || f.Times > 0 && (b.Times == 0 || f.Times < b.Times) {
			best[f.Accelerator] = f
		}
	}
	for _, name := range order {
		f := best[name]
		if slices.ContainsFunc(x.Options, func(o choose.Option) bool { return o.Accelerator == name }) {
			continue
		}
		why := "by the datasheet alone"
		if f.Refuses {
			why = "more of the requests than may violate it do not fit into its KV cache"
		}
		if f.Times > 0 {
			why = fmt.Sprintf("at best %s times the limit, when idle", say.QuantityNear(f.Times, 1))
		}
		if f.Within {
			why += "; that is within the twin's error to expect, so one may do after all"
		}
		list.addFormat("%s does not meet %s: %s", name, f.Claim, why)
	}
	return list
}

// candidatesLooked says what became of all.
func candidatesLooked(x *choose.Choice) string {
	n := x.Counts
	parts := texts{fmt.Sprintf("%s candidates", say.Count(n.All))}
	for _, r := range x.Refused {
		parts.addFormat("%s cannot exist (%s)", say.Count(r.Count), r.Why)
	}
	if n.Bounded > 0 {
		parts.addFormat("%s on hardware that cannot meet the limits", say.Count(n.Bounded))
	}
	if n.Dearer > 0 {
		parts.addFormat("%s dearer by more than any error", say.Count(n.Dearer))
	}
	return strings.Join(append(parts, fmt.Sprintf("%s simulated", say.Count(n.Simulated))), ", ")
}

// startTitle says what the command starts.
func (m ChoiceModel) startTitle() string {
	if best := &m.Choice.Options[0]; best.Engines == 1 || best.InOneMachine() {
		return "start it"
	}
	return "start each engine, and a router in front of them (it is at PyPI)"
}

// WriteTerminal writes the model for a terminal.
func (m ChoiceModel) WriteTerminal(w io.Writer, s Style) error {
	p := newPrinter(w, s)
	code := bold + ";" + green
	if len(m.Choice.Options) == 0 {
		code = bold + ";" + red
	}
	p.writePainted(code, m.Answer)
	for _, f := range m.Facts {
		p.writeText(f...)
	}
	if len(m.Options.Rows) > 0 {
		p.line("")
		p.writeTable(m.Options)
		for _, l := range m.Legend {
			p.writeHanging(dim, "", "  ", l)
		}
	}
	p.line("")
	for _, r := range m.Remarks {
		p.writeWrapped(r)
	}
	if len(m.Start) == 0 {
		return p.err
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{m.startTitle(), m.Start}, {"verify it, on the machine and in virtual time", m.Verify}} {
		if len(part.lines) > 0 {
			p.line("")
			p.linePainted(dim, part.title)
			for _, l := range part.lines {
				p.line("  %s", l)
			}
		}
	}
	return p.err
}
