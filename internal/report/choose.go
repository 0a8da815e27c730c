package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pitot/internal/analysis/choose"
	"pitot/internal/say"
	"pitot/internal/sim/engines"
)

// A choice of deployments in words: the cheapest first, and the options that may be as cheap.

// realServers says how far the twin was from the servers that Pitot measured (evidence/twin.md,
// "On an H100 and an H200").
const realServers = "On the two real servers that Pitot measured, TPOT was within 19 % and TTFT up to 3.1 times as long: the CPU of one was slow."

// predictions warns that the numbers of a choice were not measured.
const predictions = "Predictions, not measurements. " + realServers

// ChoiceModel holds what a report shows of a choice.
type ChoiceModel struct {
	Answer   string       // which deployment, for how much
	Facts    []ChoiceFact // of it, a line each
	Workload ChoiceFact
	Options  Table
	Legend   texts
	Remarks  texts    // what a reader must know of the numbers
	Start    []string // commands, a line each
	Verify   []string
	Choice   *choose.Choice
}

// ChoiceFact is a line about an option, with its label. One without a label continues the line
// above.
type ChoiceFact struct {
	Label  string
	Values []string
}

// BuildChoice makes the model.
func BuildChoice(x *choose.Choice) ChoiceModel {
	m := ChoiceModel{Choice: x}
	workload := ChoiceFact{"Workload", []string{
		x.Model, x.SLO, fmt.Sprintf("%s tokens in, %s out (mean)", say.Count(int(x.Input+0.5)), say.Count(int(x.Output+0.5))),
	}}
	if x.Turns > 0 {
		workload.Values = append(workload.Values, fmt.Sprintf("conversations of %s requests (mean)", say.Quantity(x.Turns)))
	}
	if len(x.Options) == 0 {
		m.Answer = "No deployment meets " + x.SLO + ", at any load"
		m.Workload = workload
		m.Remarks = append(describeFailures(x), candidatesLooked(x))
		return m
	}
	best := &x.Options[0]
	m.Answer = choiceAnswer(x, best)
	if x.Rate > 0 {
		m.Facts = append(m.Facts, carriesTogether(x, best)...)
	} else {
		m.Facts = append(m.Facts, ChoiceFact{"Each carries", []string{
			fmt.Sprintf("%s, 80 %% interval %s", RateText(x, best.Capacity), fromTo(best.Interval)), limitName(best.Claim) + " limits first",
		}})
	}
	m.Facts, m.Workload = append(m.Facts, howSure(x)...), workload
	if o := asPublished(x); o != nil {
		m.Facts = append(m.Facts, ChoiceFact{"With " + o.DType, []string{
			fmt.Sprintf("%s%s; %s changes the model's answers", describeOption(o), perHour(o), best.DType),
		}})
	}
	m.Options, m.Legend = optionTable(x)
	m.Remarks.addText(errorsToExpect(x)...)
	m.Remarks.addText(describeFailures(x)...)
	m.Remarks.addText(candidatesLooked(x))
	switch w := best.Whole; {
	case w == nil:
	case w.Router == choose.Session:
		m.Remarks.addText("this router needs an X-Session-ID header, one for each conversation. Behind a prefix-aware router this many engines miss the SLO")
	case w.Router == choose.CacheAware && w.BalanceAbsThreshold == 0 && w.Capacity > 0 && w.Capacity < unevenly*best.Capacity*float64(best.Engines):
		m.Remarks.addText("this router sends prompts with a common start to one engine until it has 64 requests more than another (balance_abs_threshold). At light loads few engines work")
	}
	m.Start = []string{say.ShellLine(best.ServeCommand())}
	if router := best.RouterCommand(best.WorkerURLs()...); router != nil {
		m.Start = append(m.Start, say.ShellLine(router))
	}
	if best.IsBaseModel() {
		m.Remarks = slices.Insert(m.Remarks, 0, "the checkpoint is the base model. For chats take the instruct version: its speed is the same")
	}
	m.Verify = []string{say.ShellLine(x.VerifyCommand(best, "http://HOST:8000")), say.ShellLine(x.VerifyCommand(best, ""))}
	return m
}

// choiceAnswer is the deployment to take, and its price.
func choiceAnswer(x *choose.Choice, best *choose.Option) string {
	answer := "Take " + describeOption(best)
	switch {
	case x.Rate > 0 && isCapacityShort(x, best):
		answer = "No option that was tried carries " + wantedText(x) + ". Nearest: " + describeOption(best)
	case x.Rate > 0:
		answer += " for " + wantedText(x)
	}
	if best.PerHour <= 0 {
		return answer
	}
	hour := fmt.Sprintf("$%s an hour", formatPrice(best.PerHour))
	million := fmt.Sprintf("$%s per million output tokens", say.Quantity(best.PerMillion))
	if x.Rate == 0 {
		hour, million = million, hour
	}
	answer += ": " + hour
	if x.Rate > 0 && !isCapacityShort(x, best) {
		return answer + ", " + probabilityText(best.Enough) + " sure to be enough"
	}
	if long := answer + ", " + million; utf8.RuneCountInString(long) <= textWidth {
		return long
	}
	return answer
}

// describeOption names an option: "2 × (2×h100 fp8)".
func describeOption(o *choose.Option) string {
	name := EngineName(o)
	if o.TensorParallel > 1 {
		name = "(" + name + ")"
	}
	return fmt.Sprintf("%d × %s", o.Engines, name)
}

// isCapacityShort says that an option's engines carry less together than is wanted.
func isCapacityShort(x *choose.Choice, o *choose.Option) bool {
	w := o.Whole
	return w != nil && (!w.Met || w.Interval != nil && w.Capacity < x.Rate*(1-1e-6))
}

// carriesTogether says how sure it is that an option's engines carry the wanted rate.
func carriesTogether(x *choose.Choice, o *choose.Option) (facts []ChoiceFact) {
	n := float64(o.Engines)
	carried, within := o.Capacity*n, [2]float64{o.Interval[0] * n, o.Interval[1] * n}
	if w := o.Whole; w != nil && w.Interval != nil {
		carried, within = w.Capacity, *w.Interval
	}
	facts = append(facts, ChoiceFact{"Carries", []string{
		fmt.Sprintf("%s, 80 %% interval %s", RateText(x, carried), fromTo(within)), limitName(o.Claim) + " limits first",
	}})
	facts = append(facts, ChoiceFact{"Enough?", []string{fmt.Sprintf("with probability %s%s; a server with a slow CPU is not included", probabilityText(o.Enough), sureText(x.Sure))}})
	more := ""
	switch {
	case x.Sure > 0 && o.NeverSure:
		more = fmt.Sprintf("no number of engines is enough with %s: if the server is slower than predicted, no load meets the SLO", say.Percent(x.Sure))
	case o.EnginesFor[1] == 0:
		more = "if the server is slower than predicted, no number of engines meets the SLO"
	case o.EnginesFor[1] > o.Engines:
		more = fmt.Sprintf("%d engines%s, enough if the server is slower than predicted", o.EnginesFor[1], perHourOf(o, o.EnginesFor[1]))
	}
	if more != "" {
		facts = append(facts, ChoiceFact{"To be safe", []string{more}})
	}
	facts = append(facts, ChoiceFact{"If one fails", []string{lossText(o)}})
	w := o.Whole
	switch {
	case w == nil:
		facts = append(facts, ChoiceFact{"Together", []string{"not simulated: the numbers are of each engine alone"}})
	case w.Router != "" && w.Met:
		nearest := 0
		for i, t := range w.Times {
			if t > w.Times[nearest] {
				nearest = i
			}
		}
		facts = append(facts, ChoiceFact{"Together", []string{fmt.Sprintf("%s: %s is %s of its limit", routerName(w.Router), limitName(x.Claims[nearest]), say.PercentNear(w.Times[nearest], 1))}})
	case !w.Met:
		facts = append(facts, ChoiceFact{"Together", []string{fmt.Sprintf("at %s they miss the SLO in simulation: take more engines", wantedText(x))}})
	}
	return facts
}

// lossText returns the share of the wanted rate that is served when an engine of an option fails.
func lossText(o *choose.Option) string {
	if o.Engines == 1 {
		return "nothing serves: there is no spare engine"
	}
	return fmt.Sprintf("the others carry %.0f %% of the wanted rate", math.Floor(100*min(o.AfterLoss, 9.99)+1e-6))
}

// perHourOf is the price of some engines of an option, for a sentence.
func perHourOf(o *choose.Option, engines int) string {
	if o.PerHour <= 0 || o.Engines == 0 {
		return ""
	}
	return fmt.Sprintf(", $%s an hour", formatPrice(o.PerHour/float64(o.Engines)*float64(engines)))
}

// RateText writes a rate of a choice, of requests or of conversations that begin.
func RateText(x *choose.Choice, rate float64) string {
	if x.Turns > 0 {
		return say.Quantity(rate) + " conversations/s"
	}
	return say.Quantity(rate) + " req/s"
}

// wantedText writes the rate that is wanted.
func wantedText(x *choose.Choice) string {
	if x.Turns > 0 {
		return say.Exact(x.Rate) + " conversations/s"
	}
	return say.Exact(x.Rate) + " req/s"
}

// routerName says who shares requests out.
func routerName(router string) string {
	switch router {
	case "vllm":
		return "balanced by vLLM"
	case choose.PowerOfTwo:
		return "power-of-two-choices router"
	case choose.CacheAware:
		return "cache-aware router"
	case choose.Session:
		return "router with sticky conversations"
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

// mostRivals is the number of options that are named next to the cheapest.
const mostRivals = 1

// howSure says how sure the choice is, and which options may be as cheap.
func howSure(x *choose.Choice) (facts []ChoiceFact) {
	best := &x.Options[0]
	var others []string
	label := "Same price"
	for i := range x.Options[1:] {
		switch o := &x.Options[1+i]; {
		case o.Cheapest < apart:
		case costsTheSame(x, best, o):
			text := fmt.Sprintf("%s carries %s", describeOption(o), RateText(x, o.Capacity*float64(o.Engines)))
			if o.Quantised && !best.Quantised {
				text += ", but changes the model's answers"
			}
			facts = append(facts, ChoiceFact{label, []string{text}})
			label = ""
		default:
			others = append(others, fmt.Sprintf("%s (%s)", describeOption(o), probabilityText(o.Cheapest)))
		}
	}
	cheapest := []string{probabilityText(best.Cheapest) + " that no other option is cheaper"}
	if n := len(others) - mostRivals; n > 0 {
		others = append(others[:mostRivals], fmt.Sprintf("%d more", n))
	}
	if len(others) > 0 {
		cheapest = append(cheapest, "not ruled out: "+strings.Join(others, ", "))
		if slices.ContainsFunc(x.Options[1:], func(o choose.Option) bool { return o.Cheapest > best.Cheapest }) {
			cheapest = append(cheapest, "first by the twin's figures as they are")
		}
	}
	return append([]ChoiceFact{{"Cheapest?", cheapest}}, facts...)
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
	legend = []string{"n: engines", "carries: " + carries + " per second of one engine within the SLO", "80 %: 4 of 5 such predictions are within", "cheapest: how likely nothing costs less, by these errors"}
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
			legend = append(legend, fmt.Sprintf("%s: its %d engines carry %s together, not %s as alone: the router does not share requests evenly", t.Rows[i][0], o.Engines, RateText(x, o.Whole.Capacity), say.Quantity(sum)))
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
	return MetricLabel(name)
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
				list.addFormat("engines that share experts: vLLM was never measured so. Another engine's TPOT was off by a factor of up to %.1f and its TTFT by %.1f; this is assumed here. Without enable_expert_parallel the errors are known", 1+o.Error.TPOTPct/100, 1+o.Error.TTFTPct/100)
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
			if e := o.Error.Public; e != nil && e.KeptOut > 0 {
				list.addText(publicErrorText(e))
				continue
			}
			list.addFormat("%s: 4 of 5 predictions are within %.0f %% in TPOT and %.0f %% in TTFT", o.Error.Of, o.Error.TPOTPct, o.Error.TTFTPct)
		}
	}
	for _, key := range order {
		known := "no public measurement. The worst known error is assumed"
		if key.kernels {
			known = "public measurements of its kernels only. The worst error of such models elsewhere is assumed"
		}
		if !isEngineValidated(key.engine) {
			list.addFormat("%s: its scheduler was never compared with a running server. The worst known error of vLLM is assumed, %.0f %% in TPOT and %.0f %% in TTFT", key.engine, key.error.TPOTPct, key.error.TTFTPct)
			continue
		}
		list.addFormat("%s: %s, %.0f %% in TPOT and %.0f %% in TTFT", strings.Join(unknown[key], ", "), known, key.error.TPOTPct, key.error.TTFTPct)
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
			why = "too many requests do not fit into its KV cache"
		}
		if f.Times > 0 {
			why = fmt.Sprintf("%s times the limit even when idle", say.QuantityNear(f.Times, 1))
		}
		if f.Within {
			why += ", within the twin's error: it may meet it after all"
		}
		list.addFormat("%s cannot meet %s: %s", name, f.Claim, why)
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
		parts.addFormat("%s on hardware that cannot meet the SLO", say.Count(n.Bounded))
	}
	if n.Dearer > 0 {
		parts.addFormat("%s too expensive by more than any error", say.Count(n.Dearer))
	}
	return strings.Join(append(parts, fmt.Sprintf("%s simulated", say.Count(n.Simulated))), ", ")
}

// mostOptions is the number of options that have a line by default.
const mostOptions = 4

// briefOptions is the table for one screen, and its legend.
func briefOptions(x *choose.Choice) (t Table, legend []string) {
	priced := x.Options[0].PerHour > 0
	t.Head = []string{"option", "engines", "req/s each", "80 % interval", "together"}
	if x.Turns > 0 {
		t.Head[2] = "conv/s each"
	}
	if priced {
		t.Head = append(t.Head, "$/hour", "$/M out")
	}
	for i := range x.Options[:min(mostOptions, len(x.Options))] {
		o := &x.Options[i]
		if priced && o.PerHour > farDearer*x.Options[0].PerHour && x.Rate > 0 {
			break
		}
		engines, together := say.Count(o.Engines), say.Unknown
		if x.Rate > 0 && isCapacityShort(x, o) {
			engines = "> " + engines
		}
		switch w := o.Whole; {
		case w != nil && w.Capacity > 0:
			together = say.Quantity(w.Capacity)
		case o.Engines == 1:
			together = say.Quantity(o.Capacity)
		}
		row := []string{EngineName(o), engines, say.Quantity(o.Capacity), intervalCell(&o.Interval), together}
		if priced {
			hour, million := say.Unknown, say.Unknown
			if o.PerHour > 0 {
				hour, million = formatPrice(o.PerHour), say.Quantity(o.PerMillion)
			}
			row = append(row, hour, million)
		}
		t.AddRow(row...)
	}
	if slices.ContainsFunc(t.Rows, func(r []string) bool { return r[4] == say.Unknown }) {
		legend = append(legend, "– not simulated together")
	}
	if left := len(x.Options) - len(t.Rows); left > 0 {
		from := ""
		if next := &x.Options[len(t.Rows)]; priced && next.PerHour > 0 && x.Rate > 0 {
			from = fmt.Sprintf(", from %s at $%s an hour", EngineName(next), formatPrice(next.PerHour))
		}
		if next := &x.Options[len(t.Rows)]; x.Rate > 0 && priced && next.PerHour > farDearer*x.Options[0].PerHour {
			legend = append(legend, fmt.Sprintf("%d more cost over %d times as much%s", left, farDearer, from))
		} else {
			legend = append(legend, fmt.Sprintf("%d more%s: --full", left, from))
		}
	}
	return t, legend
}

// Warning says that the numbers are predictions, and how far off they were. It is "" for a choice
// without options.
func (m ChoiceModel) Warning() string {
	if len(m.Options.Rows) == 0 {
		return ""
	}
	return predictions
}

// WriteTerminal writes the model for a terminal.
func (m ChoiceModel) WriteTerminal(w io.Writer, s Style) error {
	return writeFitting(w, s, m.writeTo)
}

// writeTo writes the choice with a printer.
func (m ChoiceModel) writeTo(p *printer) {
	s := p.style
	p.writeAnswer(m.Answer)
	var facts []labelled
	lines := m.Facts
	if s.Full || len(m.Facts) == 0 {
		lines = append(slices.Clone(lines), m.Workload)
	}
	for _, f := range lines {
		facts = append(facts, labelled{Label: f.Label, Value: f.Values})
	}
	p.writeFacts(facts)
	var notes []note
	if len(m.Options.Rows) > 0 {
		p.line("")
		table, legend := m.Options, []string(m.Legend)
		if !s.Full {
			table, legend = briefOptions(m.Choice)
		}
		p.writeColumns(table)
		if s.Full {
			for _, l := range legend {
				p.writeHanging(dim, "", "  ", l)
			}
		} else {
			p.writePainted(dim, legend...)
		}
		notes = append(notes, note{Text: m.Warning(), Warning: true})
	}
	for _, r := range m.Remarks {
		notes = append(notes, note{Text: asSentence(r)})
	}
	most := len(notes)
	if !s.Full {
		most = min(most, max(mostNotes-len(m.Start), 1)+1)
	}
	p.writeFirstNotes(notes, most, "")
	if len(m.Start) > 0 {
		p.line("")
	}
	writeCommands(p, "Start", m.Start)
	verify := m.Verify
	if !s.Full {
		verify = verify[:min(1, len(verify))]
	}
	writeCommands(p, "Verify", verify)
}

// writeCommands writes commands after one label.
func writeCommands(p *printer, label string, commands []string) {
	for _, c := range commands {
		p.writeCommand(label, c)
		label = ""
	}
}
