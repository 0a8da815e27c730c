package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/predict"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
)

// How a prediction looks.

const gib = 1 << 30

// WritePrediction writes what to expect of a deployment.
func WritePrediction(w io.Writer, x *predict.Prediction, s Style) error {
	p := newPrinter(w, s)
	answer := mostTokens(x)
	if answer == "" {
		answer = describeDeployment(x)
	}
	p.writeAnswer(answer)
	if !s.Full {
		writeBriefPrediction(p, x)
		return p.err
	}
	d, b := x.Deployment, x.Bounds
	limits := d.Limits()
	p.line("")
	p.writePainted("", fmt.Sprintf("%s in %s on %s", d.Model.Name, d.DType, d.HardwareName()))
	p.writeText(fmt.Sprintf("%s tokens in, %s out", formatLengths(x.Lengths[0], x.Input), formatLengths(x.Lengths[1], x.Output)),
		limits[0], limits[1], limits[2])
	for _, n := range x.Notes {
		p.writePainted(dim, n)
	}
	each := ""
	if d.GPUs() > 1 {
		each = " of each"
	}
	engine := ""
	if d.IsReplicated() {
		engine = " into each engine"
	}
	p.line("")
	p.line("The arithmetic, by the datasheet")
	rows := [][]string{
		{"weights", fmt.Sprintf("%.2f GB ÷ %s GB/s = %s", b.ActiveBytes/1e9, say.Count(int64(b.Bandwidth/1e9)), noFaster(b))},
	}
	if d.Model.Experts > 0 {
		rows = append(rows, []string{"all experts", fmt.Sprintf("%.2f GB ÷ %s GB/s = %s, when a batch touches every one", b.WeightBytes/1e9, say.Count(int64(b.Bandwidth/1e9)), formatMilliseconds(b.FullFloor))})
	}
	rows = append(rows,
		[]string{"prompts", fmt.Sprintf("2 × %.2f G weights × %s tokens ÷ %s TFLOPS = %s: no TTFT is shorter", float64(d.Model.ActiveWeights()-d.Model.EmbeddingWeights())/1e9/float64(d.TensorParallel), say.Count(x.Input), say.Quantity(b.Peak/1e12), formatMilliseconds(b.PrefillToken*float64(x.Input)))},
		[]string{"KV cache", fmt.Sprintf("%s KB a token; %s tokens fit%s, or %s requests of this length", say.Quantity(b.KVPerToken/1e3), say.Count(x.KVTokens), engine, say.Count(x.Fit))},
		[]string{"balance", fmt.Sprintf("from %s tokens in a step on, computing takes longer than reading weights", say.Count(int64(b.ComputeBatch)))},
		[]string{"memory", describeMemory(x.Memory) + each},
	)
	label := 0
	for _, r := range rows {
		label = max(label, len(r[0])+2)
	}
	for _, r := range rows {
		p.writeHanging("", fmt.Sprintf("%-*s", label, r[0]), strings.Repeat(" ", label), r[1])
	}
	p.line("")
	p.line("users = requests that run at once; each user waits for the response")
	p.line("bound = by the datasheet; twin = the engine as modelled")
	priced := d.USDPerHour > 0
	if priced {
		p.line("$/M out = for a million output tokens at $%s an hour and %s; --gpu-price sets it", say.Dollars(d.USDPerHour), d.Accelerator.Name)
	}
	p.line("")
	t := NewTable("users", "TPOT bound", "twin", "TTFT p50", "p99", "req/s bound", "twin", "out tok/s", "limited by")
	if priced {
		t.Head = append(t.Head, "$/M out")
	}
	for _, e := range x.Curve {
		row := texts{
			say.Count(e.Users), say.Quantity(e.BoundTPOT), say.Quantity(e.TPOT.Mean), say.Quantity(e.TTFT.P50), say.Quantity(e.TTFT.P99),
			say.Quantity(e.BoundRequests), say.Quantity(e.RequestsPerS), say.Count(int64(e.OutputTokens)), string(e.Limit),
		}
		if priced {
			row.addFormat("%.2f", e.USDPerMOutput)
		}
		t.AddRow(row...)
	}
	p.writeTable(t)
	p.line("")
	p.writePainted(dim, "TPOT and TTFT in ms. "+errorToExpect(x)+" "+realServers)
	return p.err
}

// mostTokens says what a deployment is expected to give in all, and to one user.
func mostTokens(x *predict.Prediction) string {
	if len(x.Curve) == 0 {
		return ""
	}
	best := mostOutput(x)
	answer := fmt.Sprintf("Predicted: up to %s output tok/s at %s, %s ms a token", say.Count(int64(best.OutputTokens)), say.Plural(best.Users, "user"), say.Quantity(best.TPOT.Mean))
	if first := x.Curve[0]; first.Users == 1 && best.Users > 1 {
		answer += fmt.Sprintf(" (%s alone)", say.Quantity(first.TPOT.Mean))
	}
	return answer
}

// describeDeployment names what is predicted: "llama-3.1-8b in bf16 on h100".
func describeDeployment(x *predict.Prediction) string {
	d := x.Deployment
	return fmt.Sprintf("%s in %s on %s", d.Model.Name, d.DType, d.HardwareName())
}

// writeBriefPrediction writes a prediction on one screen.
func writeBriefPrediction(p *printer, x *predict.Prediction) {
	d, b := x.Deployment, x.Bounds
	facts := []labelled{
		{Label: "Deployment", Value: []string{describeDeployment(x)}},
		{Label: "Requests", Value: []string{fmt.Sprintf("%s tokens in, %s out", formatLengths(x.Lengths[0], x.Input), formatLengths(x.Lengths[1], x.Output))}},
		{Label: "Bounds", Value: []string{fmt.Sprintf("no token under %s, no TTFT under %s (datasheet)",
			formatMilliseconds(b.TokenFloor), formatMilliseconds(b.PrefillToken*float64(x.Input)))}},
		{Label: "KV cache", Value: []string{fmt.Sprintf("%s tokens fit, %s requests of this length", say.Count(x.KVTokens), say.Count(x.Fit))}},
	}
	if len(x.Curve) > 0 && d.USDPerHour > 0 {
		best := mostOutput(x)
		facts = append(facts, labelled{Label: "Cost", Value: []string{fmt.Sprintf("$%.2f per million output tokens at %s, at $%s an hour",
			best.USDPerMOutput, say.Plural(best.Users, "user"), say.Dollars(d.USDPerHour))}})
	}
	p.writeFacts(facts)
	t := NewTable("users", "TPOT ms", "TTFT p99 ms", "output tok/s")
	step := (len(x.Curve) + mostRows - 1) / mostRows
	for i := range x.Curve {
		if e := &x.Curve[i]; i%step == 0 || i == len(x.Curve)-1 || *e == mostOutput(x) {
			t.AddRow(say.Count(e.Users), say.Quantity(e.TPOT.Mean), say.Quantity(e.TTFT.P99), say.Count(int64(e.OutputTokens)))
		}
	}
	if len(t.Rows) > 0 {
		p.line("")
		p.writeColumns(t)
		p.linePainted(dim, "users wait for responses, so tok/s is about as far off as TPOT · more: --full")
	}
	notes := []note{{Text: errorToExpect(x), Warning: true}, {Text: realServers, Warning: true}}
	for _, n := range x.Notes {
		notes = append(notes, note{Text: n})
	}
	p.writeNotes(notes, false, "")
}

// mostOutput is the load with most output tokens.
func mostOutput(x *predict.Prediction) predict.Expected {
	return slices.MaxFunc(x.Curve, func(a, b predict.Expected) int { return cmp.Compare(a.OutputTokens, b.OutputTokens) })
}

// errorToExpect says how far off a prediction may be, and what is known of that.
func errorToExpect(x *predict.Prediction) string {
	const fit = " pitot fit calibrates it with a run of yours."
	switch e := x.Error; {
	case x.Deployment.FittedError != nil:
		f := x.Deployment.FittedError
		return fmt.Sprintf("Calibrated by its profile: 4 of 5 loads that the fit had not seen are within %.0f %% in TTFT, %.0f %% in TPOT and %.0f %% in E2E (%d left out in turn).", f.TTFTPct, f.TPOTPct, f.E2EPct, f.Loads) + extrapolationError(x)
	case x.Deployment.Fitted != nil:
		return "Calibrated by its profile: pitot fit printed its error on held-out runs. On loads unlike those it may be larger."
	case e != nil:
		others := ""
		if e.CoversAllSystems() {
			others = ", and those of all other kinds, since these are few"
		}
		if e.KeptOut > 0 {
			return "Predictions, not measurements. " + publicErrorText(e) + "." + fit
		}
		return fmt.Sprintf("Predictions, not measurements: 4 of 5 are within %.0f %% in TPOT and %.0f %% in TTFT, by %d public measurements of %d systems, %s with vLLM%s. The model was tuned on all of them.", e.TPOTPct, e.TTFTPct, e.Measurements, e.Systems, e.Of, others) + fit
	}
	return fmt.Sprintf("Predictions of unknown error: there is no public measurement of such a system (%s). They may be off by tens of percent, in TTFT more than in TPOT.", x.Deployment.Accelerator.Name) + fit
}

// publicErrorText says how near predictions were to public measurements that nothing was tuned on.
func publicErrorText(e *predict.ErrorToExpect) string {
	count := func(percent float64) string {
		if n := int(math.Round(percent / 100 * float64(e.KeptOut))); n < e.KeptOut {
			return say.Count(n)
		}
		return "all"
	}
	others := ""
	if e.CoversAllSystems() {
		others = ", and those of all other kinds, since these are few"
	}
	return fmt.Sprintf("Of %d public measurements that the model was not tuned on, TPOT was within %.0f %% in %s, TTFT within %.0f %% in %s (%s with vLLM%s)", e.KeptOut, e.TPOTPct, count(e.TPOTHoldsPct), e.TTFTPct, count(e.TTFTHoldsPct), e.Of, others)
}

// extrapolationError says how far off those loads of a fitted twin may be that are unlike the ones
// it was fitted on.
func extrapolationError(x *predict.Prediction) string {
	var users []string
	var e deploy.ExpectedError
	for i := range x.Curve {
		c := &x.Curve[i]
		if c.Error == nil || *c.Error == *x.Deployment.FittedError {
			continue
		}
		users = append(users, say.Count(c.Users))
		e.TTFTPct, e.TPOTPct, e.E2EPct = max(e.TTFTPct, c.Error.TTFTPct), max(e.TPOTPct, c.Error.TPOTPct), max(e.E2EPct, c.Error.E2EPct)
	}
	if len(users) == 0 {
		return ""
	}
	return fmt.Sprintf(" Beyond what was fitted (%s users) by up to %.0f %%, %.0f %% and %.0f %%.", strings.Join(users, ", "), e.TTFTPct, e.TPOTPct, e.E2EPct)
}

// noFaster is the shortest step, and with drafts what that makes of a token.
func noFaster(b deploy.Bounds) string {
	if b.Tokens > 1 {
		return fmt.Sprintf("%s a step ÷ %.2f tokens = %s: no token comes faster in the mean", formatMilliseconds(b.StepFloor), b.Tokens, formatMilliseconds(b.TokenFloor))
	}
	return formatMilliseconds(b.StepFloor) + ": no token comes faster"
}

// formatLengths writes a length, and of a distribution its mean too.
func formatLengths(asked string, mean int) string {
	switch {
	case strings.HasPrefix(asked, "quantiles("):
		return strings.TrimSuffix(tokenLengths(asked), ")") + ", mean " + say.Count(mean) + ")"
	case strings.Contains(asked, "("):
		return fmt.Sprintf("%s (mean %s)", asked, say.Count(mean))
	}
	return say.Count(mean)
}

func describeMemory(m deploy.Memory) string {
	return fmt.Sprintf("%.1f GiB: weights %.1f, activations %.1f, other %.1f, KV cache %.1f, unused %.1f",
		m.Total/gib, m.Weights/gib, m.Activations/gib, m.Other/gib, m.KV/gib, max(m.Total-m.Weights-m.Activations-m.Other-m.KV, 0)/gib)
}

func formatMilliseconds(seconds float64) string { return say.Quantity(seconds*1e3) + " ms" }

// WriteKnown writes the models and accelerators that have a name.
func WriteKnown(w io.Writer, k *predict.Known, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	t := NewTable("model", "parameters", "active", "context", "weights", "on the Hugging Face hub")
	for _, m := range k.Models {
		t.AddRow(m.Name, parameterText(m.Parameters), parameterText(m.Active), say.Count(m.Context), m.DType, m.Repository)
	}
	p.writeTable(t)
	p.line("")
	t = NewTable("accelerator", "GiB", "GB/s", "bf16 TFLOPS", "fp8", "$/h")
	for _, a := range k.Accelerators {
		fp8 := "–"
		if f := a.TFLOPS["fp8"]; f > 0 {
			fp8 = say.Quantity(f)
		}
		price := "–"
		if a.USDPerHour > 0 {
			price = fmt.Sprintf("%.2f", a.USDPerHour)
		}
		t.AddRow(a.Name, say.Quantity(a.MemoryGiB), say.Count(int64(a.BandwidthGBs)), say.Quantity(a.TFLOPS["bf16"]), fp8, price)
	}
	p.writeTable(t)
	p.line("")
	p.writePainted(dim, "Any other model: give a directory with its Hugging Face config.json, as in ./my-model@h100. Names on the hub do too. Several accelerators: 2xh100. Engine settings: pitot predict --help=engine.")
	return p.err
}

// parameterText writes a number of parameters.
func parameterText(n int64) string { return say.Quantity(float64(n)/1e9) + " G" }

// WriteReplay writes a recording next to what the twin made of it.
func WriteReplay(w io.Writer, x *predict.Replayed, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(bold, fmt.Sprintf("%s on %s, %s requests recorded", x.Deployment.Model.Name, x.Deployment.HardwareName(), say.Count(x.Requests)))
	p.writeText(x.Deployment.Describe())
	for _, n := range x.Notes {
		p.writePainted(dim, n)
	}
	p.line("")
	t := NewTable("ms", "", "mean", "p50", "p90", "p99")
	row := func(metric, of string, q predict.Quantities, cell func(float64) string) {
		t.AddRow(metric, of, cell(q.Mean), cell(q.P50), cell(q.P90), cell(q.P99))
	}
	pct := func(x float64) string { return fmt.Sprintf("%+.1f %%", x) }
	recorded, predicted := quantitiesOf(&x.Recorded), quantitiesOf(&x.Predicted)
	off, unfitted := quantitiesOf(&x.ErrorPct), quantitiesOf(&x.Unfitted.ErrorPct)
	for i, name := range predictedLatencies {
		row(name, "recorded", recorded[i], say.Quantity)
		row("", "predicted", predicted[i], say.Quantity)
		row("", "error", off[i], pct)
		row("", "error unfitted", unfitted[i], pct)
	}
	p.writeTable(t)
	p.line("")
	p.writeFormat("step times × %.4f, fitted on the recorded mean TPOT; nothing else is fitted", x.Scalar)
	if x.InSample {
		p.writeText("this recording was looked at while the twin was made. That it agrees is no forecast of others: what to expect of those pitot predict says.")
	}
	return p.err
}

// WriteRunAgainstTwin writes a measured run next to the twin's.
func WriteRunAgainstTwin(w io.Writer, x *predict.RunAgainstTwin, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(bold, fmt.Sprintf("%s against the twin of %s", x.Run, x.Deployment.Spec))
	p.writeText(x.Deployment.Describe())
	for _, n := range x.Notes {
		p.writePainted(dim, n)
	}
	p.line("")
	t := NewTable("", "measured", "predicted", "ratio")
	load := ""
	for _, l := range x.Lines {
		if l.Load != load {
			load = l.Load
			t.AddRow("at "+load, "", "", "")
		}
		name := l.Name
		if l.Unit != "" {
			name += ", " + l.Unit
		}
		t.AddRow(name, say.Optional(l.Measured), say.Optional(l.Predicted), say.Optional(l.Ratio))
	}
	p.writeTable(t)
	p.line("")
	for _, m := range x.Means {
		p.writeHanging("", "- ", "  ", m)
	}
	return p.err
}

// WriteFit writes what a calibration found and how far it is from the part of the runs
// that it did not see.
func WriteFit(w io.Writer, x *predict.Fit, file string, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	answer := fmt.Sprintf("%s fitted on %s", x.Deployment, say.Plural(len(x.Runs), "run"))
	if !slices.ContainsFunc(x.Parameters, func(f predict.Fitted) bool { return f.Identified && f.Reason == "" }) {
		answer += ": nothing is determined, measure for longer (pitot calibrate --budget 5m)"
	}
	p.writePainted(bold, answer)
	if e := x.Error; e != nil {
		p.writePainted(bold, fmt.Sprintf("of %s left out in turn, four of five means and medians were predicted within %.0f %% (TTFT), %.0f %% (TPOT) and %.0f %% (E2E)", say.Plural(e.Loads, "load"), e.TTFTPct, e.TPOTPct, e.E2EPct))
	}
	if x.PacePct >= tellingPace {
		p.writeFormat("runs of the same load differed in speed by %.0f %% (standard deviation): no prediction of a single run can be nearer", x.PacePct)
	}
	for _, n := range x.Notes {
		p.writePainted(yellow, n)
	}
	p.line("")
	t := NewTable("parameter", "value", "range", "")
	var alike []string
	for _, f := range x.Parameters {
		interval, note := quantityText(f.Low, f.Unit)+" to "+quantityText(f.High, f.Unit), ""
		switch {
		case f.Reason != "":
			interval, note = "-", f.Reason
		case !f.Identified:
			note = "not determined"
		}
		if f.StandIn != "" && !slices.Contains(alike, f.StandIn+" from "+f.Name) {
			alike = append(alike, f.Name+" from "+f.StandIn)
		}
		t.AddRow(f.Name, quantityText(f.Value, f.Unit), interval, note)
	}
	p.writeTable(t)
	p.line("")
	if len(alike) > 0 {
		p.writeText("these runs cannot separate " + strings.Join(alike, ", ") + ": one can replace the other")
	}
	p.writeText("range = where the parameter may lie if the server is such an engine at all: on simulated ones the ranges held the truth in 95 % of cases (docs/trust.md), those of what is determined in 90 %; of short or few runs not as often. Of a real server it describes the twin that serves as it does, and measures no hardware.")
	p.line("")
	if n := x.Next; n.Users > 0 {
		p.writeFormat("one more load that would add most: %s, prompts of about %s tokens, answers of %s, for %.0f s. What the runs leave open moves the means of TTFT and TPOT by about %.1f %% over loads of all kinds; with it by about %.1f %%.",
			say.Plural(n.Users, "user"), say.Count(n.Input), say.Count(n.Output), n.Seconds, n.NowPct, n.ThenPct)
		p.line("")
	}
	if len(x.Runs) <= fewRuns || len(x.LeftOut) == 0 {
		p.writeText("error on the end of each run, a fifth or more, which was held back: predicted against measured. It is of the same load, and a deployment that is wrongly named can pass.")
		p.line("")
		t = NewTable("run", "", "mean", "p50", "p90", "p99", "n")
		for _, r := range x.Runs {
			t.addErrorRows(r.Run, &r.ErrorPct, &r.ErrorPct, r.Held)
		}
		p.writeTable(t)
		p.line("")
	}
	if len(x.LeftOut) > 0 {
		p.writeText("error on each load when it is left out: predicted by a fit on the other loads alone, against measured. The mean size over its runs, ± where some were predicted too long and some too short. It is what to expect of a load that was not measured, as far as it is no further away.")
		p.line("")
		t = NewTable("load of", "", "mean", "p50", "p90", "p99", "n")
		var without []string
		for _, l := range x.LeftOut {
			name := l.Runs[0]
			if n := len(l.Runs) - 1; n > 0 {
				name += fmt.Sprintf(" and %d more", n)
			}
			if l.ErrorPct == nil {
				without = append(without, name+": "+l.Reason)
				continue
			}
			t.addErrorRows(name, l.ErrorPct, l.AbsErrorPct, l.Requests)
		}
		if len(t.Rows) > 0 {
			p.writeTable(t)
		}
		for _, w := range without {
			p.writeText(w)
		}
		p.line("")
	}
	r := x.Range
	p.writeFormat("fitted on prompts of %s to %s tokens, answers of %s to %s, %s to %s requests at once; beyond that the twin extrapolates and says so",
		say.Count(r.Input[0]), say.Count(r.Input[1]), say.Count(r.Output[0]), say.Count(r.Output[1]), say.Quantity(r.Running[0]), say.Quantity(r.Running[1]))
	if file != "" {
		p.writeText("profile written to " + file + "; use it as mock:, sim: or predict " + x.Deployment + "?profile=" + file)
	}
	return p.err
}

// tellingPace is the difference in speed between runs of a load, in percent, from
// which on it is said.
const tellingPace = 3

// fewRuns is the number of runs up to which a fit shows their held-back ends. With more runs, the
// loads that were left out say all that these do.
const fewRuns = 6

// addErrorRows adds the rows of how far a prediction is off: of several, the mean size,
// and the sign that all of them have.
func (t *Table) addErrorRows(name string, mean, size *predict.Metrics, requests int) {
	n := say.Count(requests)
	pct := func(mean, size float64) string {
		if size > math.Abs(mean)*1.001 {
			return fmt.Sprintf("±%.1f %%", size)
		}
		return fmt.Sprintf("%+.1f %%", mean)
	}
	means, sizes := quantitiesOf(mean), quantitiesOf(size)
	for i, latency := range predictedLatencies {
		mean, size := means[i], sizes[i]
		if size == (predict.Quantities{}) { // to be right to the last digit is to have measured nothing
			t.AddRow(name, latency, say.Unknown, say.Unknown, say.Unknown, say.Unknown, n)
		} else {
			t.AddRow(name, latency, pct(mean.Mean, size.Mean), pct(mean.P50, size.P50), pct(mean.P90, size.P90), pct(mean.P99, size.P99), n)
		}
		name, n = "", ""
	}
}

// predictedLatencies are the names of those of [quantitiesOf].
var predictedLatencies = [...]string{"TTFT", "TPOT", "E2E"}

func quantitiesOf(m *predict.Metrics) [3]predict.Quantities {
	return [...]predict.Quantities{m.TTFT, m.TPOT, m.E2E}
}

// quantityText writes a quantity of a unit.
func quantityText(v float64, unit string) string {
	switch {
	case unit != "s":
		return say.Quantity(v)
	case v >= 1e-3:
		return say.Quantity(v*1e3) + " ms"
	}
	return say.Quantity(v*1e6) + " µs"
}
