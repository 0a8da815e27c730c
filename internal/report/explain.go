package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// What limits a run, in words.

// symptomText is the symptom and how much of it there is, as the run's report has it.
func symptomText(d *explain.Diagnosis, of *result.Point) string {
	value := cellText(of.Metrics.SummaryOf(d.Symptom.Metric), d.Symptom.Of)
	if value == say.Unknown {
		return symptomName(d.Symptom) + " (too few samples, or no steady state, for a value)"
	}
	return symptomName(d.Symptom) + " " + value + " ms"
}

// evidenceText is a number with its unit and where it was read.
func evidenceText(e *explain.Evidence, of explain.Symptom) string {
	v := say.Quantity(e.Value)
	switch e.Unit {
	case "":
	case explain.LowerBy:
		return fmt.Sprintf("with %s: %s %s lower (%s)", e.Signal, symptomName(of), forecastShare(e.Value), e.From)
	case "share":
		v = say.Percent(e.Value)
	default:
		v += " " + e.Unit
	}
	return fmt.Sprintf("%s %s (%s)", e.Signal, v, e.From)
}

// partsText returns the parts of a symptom's mean time, the largest first. They include the
// warm-up, which tables of latencies leave out.
func partsText(d *explain.Diagnosis) string {
	sum := 0.0
	var parts texts
	larger := func(a, b explain.Part) int { return cmp.Compare(b.MS, a.MS) }
	for _, x := range slices.SortedStableFunc(slices.Values(d.Parts), larger) {
		if sum += x.MS; x.Share >= 0.005 {
			parts.addFormat("%s %s", say.Quantity(x.MS), x.Name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	of := "TTFT"
	if d.Symptom.Metric == metric.TPOT {
		of = "time from first to last token"
	}
	return fmt.Sprintf("mean %s over the whole load %s ms = %s", of, say.Quantity(sum), strings.Join(parts, " + "))
}

// ruledOutText is a cause that a test excludes, with the most that it may have.
func ruledOutText(p *inspect.ExplainedPoint, e *explain.Excluded, of explain.Symptom) string {
	s := p.Name(e.Cause, of.Metric) + ": at most " + say.Percent(math.Ceil(1000*e.AtMost)/1000)
	if len(e.Evidence) > 0 {
		s += ", by " + evidenceText(&e.Evidence[0], of)
	}
	return s
}

// lackText has the reason for each source of facts that is not known.
var lackText = map[string]string{
	explain.FromServer:  "the server's metrics do not show it",
	explain.FromStated:  "the server's settings are unknown",
	explain.FromGPU:     "GPU metrics were not read",
	explain.FromRecords: "what prompts have in common is unknown",
	explain.FromClient:  "too few responses were streamed",
}

// openTexts are the causes that tests leave open, each with the share that it may have, and those
// that are not tested, by what is not known.
func openTexts(p *inspect.ExplainedPoint, list []explain.Untested, of explain.Symptom) (left, untested []string) {
	lack := map[string][]string{}
	share := " of " + symptomName(of)
	for _, u := range list {
		switch name := p.Name(u.Cause, of.Metric); {
		case len(u.Lacks) > 0:
			lack[u.Lacks[0].Source()] = append(lack[u.Lacks[0].Source()], name)
		case u.AtMost < 0.5: // a weaker bound says nothing
			left = append(left, name+" (up to "+say.Percent(math.Ceil(100*u.AtMost)/100)+share+")")
			share = ""
		default:
			left = append(left, name)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(lack)) {
		untested = append(untested, strings.Join(lack[from], ", ")+" ("+lackText[from]+")")
	}
	return left, untested
}

// settingText is the setting that a trial changes.
func settingText(t *explain.Trial) string {
	s := t.Knob
	switch {
	case t.From != "" && t.To != "":
		s += " " + t.From + " → " + t.To
	case t.To != "":
		s += ": " + t.To
	}
	if t.ChangesAnswers {
		s += " (changes answers)"
	}
	return s
}

// trialText returns the text that says what to try against a symptom, "" for nothing.
func trialText(f *explain.Finding, of explain.Symptom) string {
	switch t := f.Try; {
	case t == nil:
		return ""
	case t.Gain > 0:
		return settingText(t) + ": " + symptomName(of) + " " + forecastShare(t.Gain) + " lower in simulation"
	}
	return settingText(f.Try) + " (not simulated)"
}

// trialTexts returns the settings to try at a load, each once.
func trialTexts(x *inspect.ExplainedPoint) (list []string) {
	var effects Grouping // by the setting
	for i := range x.Symptoms {
		t := x.Symptoms[i].Primary.Try
		switch {
		case t == nil:
		case t.Gain > 0:
			effects.AddName(settingText(t), symptomName(x.Symptoms[i].Symptom)+" "+forecastShare(t.Gain))
		default:
			effects.AddName(settingText(t)+" (not simulated)", "")
		}
	}
	for _, setting := range effects.Keys {
		if names := effects.JoinNames(setting); strings.Trim(names, ", ") != "" {
			setting += ": " + names + " lower in simulation"
		}
		list = append(list, setting)
	}
	return list
}

// trialSentence returns it as a sentence that follows others.
func trialSentence(f *explain.Finding, of explain.Symptom) string {
	if f.Try == nil {
		return ""
	}
	return " Try " + trialText(f, of) + "."
}

// evidenceTexts returns the evidence for a finding.
func evidenceTexts(f *explain.Finding, of explain.Symptom) (list []string) {
	for i := range f.Evidence {
		list = append(list, evidenceText(&f.Evidence[i], of))
	}
	return list
}

// claimText returns the finding of a symptom as a sentence.
func claimText(p *inspect.ExplainedPoint, d *explain.Diagnosis) string {
	return fmt.Sprintf("%s at %s: %s%s.", symptomName(d.Symptom), p.Load, d.Primary.Claim, confidenceText(&d.Primary))
}

// forecastShare is a share by which twins expect something to change: of a forecast no more is
// known than whole percents, and less.
func forecastShare(x float64) string {
	if x < 0.01 {
		return "under 1 %"
	}
	return "about " + say.Percent(math.Round(100*x)/100)
}

// bottleneckSentence is the sentence that an explanation is read for.
func bottleneckSentence(run *result.Run, x *inspect.Explanation) string {
	at := mostTellingPoint(run, x)
	switch {
	case len(x.Points) == 0:
		return "Bottleneck not known: nothing was measured"
	case at == nil:
		return "Bottleneck not known"
	case at.OtherFailure() != "":
		return "Not a bottleneck at " + at.Load + ": " + at.OtherFailure()
	}
	d := &at.Symptoms[0]
	of := symptomName(d.Symptom) + " at " + at.Load + ": "
	switch {
	case d.Primary.Cause == explain.Unknown:
		return "Bottleneck of " + of + "not known"
	case !d.IsLightLoad():
		return "Bottleneck of " + of + causesOf(at, d) + confidenceText(&d.Primary)
	case at.Met == result.No:
		return "What takes the time of " + of + causesOf(at, d) + confidenceText(&d.Primary) + ", not the load"
	}
	return "No bottleneck of " + of + "it is " + causesOf(at, d) + confidenceText(&d.Primary)
}

// isNear reports whether a point is so near a limit that another run may come out differently.
func isNear(run *result.Run, point int) bool {
	return point >= 0 && point < len(run.Points) && run.Points[point].SLO != nil && run.Points[point].SLO.Near
}

// nearlyMissed says that a load met its SLO, and that another run may not. limitsNext comes before
// a cause.
const (
	nearlyMissed = "The SLO was met in this run, too close to call."
	limitsNext   = " This limits a higher load."
)

// pointSentence returns the meaning of a finding, given whether the load met its SLO.
func pointSentence(run *result.Run, x *inspect.Explanation, p *inspect.ExplainedPoint) string {
	if p.OtherFailure() != "" || len(p.Symptoms) == 0 {
		return p.NoFinding
	}
	d := &p.Symptoms[0]
	switch {
	case d.Primary.Cause == explain.Unknown:
		return say.Sentence(strings.TrimPrefix(d.Primary.Claim, explain.UnknownBecause))
	case p.Met == result.Yes && isNear(run, p.Index):
		return nearlyMissed + limitsNext
	case p.Met == result.Yes && d.IsLightLoad():
		return "The SLO is met here, and twice the load would hardly change " + symptomName(d.Symptom) + "."
	case p.Met == result.Yes:
		return "The SLO is met here, so nothing has to change." + limitsNext
	case p.Met == result.No:
		return "The SLO is not met here."
	case p.Met == result.Undecided:
		return "Whether the SLO is met here is too close to call."
	}
	return ""
}

// causesOf are the primary cause of a symptom and those that bring as much within chance.
func causesOf(p *inspect.ExplainedPoint, d *explain.Diagnosis) string {
	alike := d.Alike()
	if len(alike) < 2 {
		return p.Name(d.Primary.Cause, d.Symptom.Metric)
	}
	var names []string
	for _, c := range alike {
		names = append(names, p.Name(c, d.Symptom.Metric))
	}
	return strings.Join(names, " or ")
}

// twiceText returns what twice the load does to a symptom in simulation: "4.4×".
func twiceText(d *explain.Diagnosis) string {
	switch x := d.AtTwice; {
	case x <= 0:
		return say.Unknown
	case x < 1.005:
		return "no change"
	case x < 2:
		return say.Significant(x, 3) + "×"
	case x < 10:
		return say.Significant(x, 2) + "×"
	}
	return "over 10×"
}

// symptomName returns a symptom as reports write it: "p90 TTFT".
func symptomName(s explain.Symptom) string {
	if s.Metric == metric.Stall { // no abbreviation
		return s.Of + " " + string(s.Metric)
	}
	return s.Of + " " + strings.ToUpper(string(s.Metric))
}

// mostTellingPoint is the first load that its reader asks about ([inspect.IsTelling]), else the
// first that does not meet its objective, else the highest.
func mostTellingPoint(run *result.Run, x *inspect.Explanation) (at *inspect.ExplainedPoint) {
	missed := false
	for i := range x.Points {
		p := &x.Points[i]
		switch {
		case len(p.Symptoms) == 0 && p.OtherFailure() == "":
		case inspect.IsTelling(run, p.Index):
			return p
		case !missed:
			at, missed = p, p.Met == result.No
		}
	}
	return at
}

// shortClaim says in a line what limits a latency, and which setting to try.
func shortClaim(p *inspect.ExplainedPoint, d *explain.Diagnosis, brief bool) string {
	text := causesOf(p, d)
	if c := d.Primary.Confidence; c != "" {
		text += " (" + string(c)
		if brief && c != explain.Sure {
			text += " at first look"
		}
		text += ")"
	}
	text += " limits " + symptomName(d.Symptom) + " at " + p.Load
	if t := d.Primary.Try; t != nil {
		text += "; to try: " + settingText(t)
	}
	return text
}

// AddExplanation puts what was found out about the causes into the model: in place of that
// nothing is known of them.
func (m *Model) AddExplanation(x *inspect.Explanation) {
	m.Decision = buildDecision(m.Run, x)
	if x == nil || len(m.Limited) == 0 || m.Limited[len(m.Limited)-1] != shortUnknown {
		return
	}
	if c := m.Run.Capacity; c != nil && c.Floor != nil && c.Floor.Confidence == 0 {
		// The answer says why no load meets it: what is short at some load has no part in that.
		m.Limited[len(m.Limited)-1] = say.Sentence(floorCause(c.Floor))
		return
	}
	var list []string
	open := ""
	at := mostTellingPoint(m.Run, x)
	if at != nil && at.OtherFailure() != "" {
		m.Why = at.OtherFailure() + "."
	}
	var points []*inspect.ExplainedPoint // that first by which explain's first line goes
	if at != nil {
		points = append(points, at)
	}
	for i := range x.Points {
		if p := &x.Points[i]; p != at {
			points = append(points, p)
		}
	}
	for _, p := range points {
		if p.OtherFailure() != "" {
			list = append(list, say.Sentence(p.OtherFailure()))
			continue
		}
		for k := range p.Symptoms {
			d := &p.Symptoms[k]
			list = append(list, findingSentence(p, d))
			if open == "" {
				open = fmt.Sprintf("%s at %s: not known. To find out: %s.", symptomName(d.Symptom), p.Load, d.Primary.Confirm)
			}
			if f := &d.Primary; m.Why == "" && f.Cause != explain.Unknown {
				m.Why = shortClaim(p, d, m.Run.Findings != nil && m.Run.Findings.Brief)
			}
		}
	}
	if m.Why == "" {
		m.Why = open
	}
	if len(list) > 0 {
		m.Limited = append(m.Limited[:len(m.Limited)-1:len(m.Limited)-1], list...)
	}
}

// AddLimiters puts into a comparison what limits a side otherwise than the first.
func (m *ComparisonModel) AddLimiters(of map[string][]inspect.Change) {
	for _, side := range slices.Sorted(maps.Keys(of)) {
		var parts texts
		for _, x := range of[side] {
			parts.addFormat("%s at %s: %s → %s", symptomName(x.Symptom), x.Load, x.From, x.To)
		}
		if len(parts) > 0 {
			m.Differs = append(m.Differs, [2]string{"what limits " + side, strings.Join(parts, "; ")})
		}
	}
}

// findingSentence is a diagnosis in a sentence or three.
func findingSentence(p *inspect.ExplainedPoint, d *explain.Diagnosis) string {
	f := &d.Primary
	s := claimText(p, d)
	if parts := partsText(d); parts != "" {
		s = say.Sentence(parts) + " " + s
	}
	if path := pathOf(p, d); path != "" {
		s += " The way there: " + path + "."
	}
	if d.IsLightLoad() {
		s += " The load hardly adds to it: at twice the load " + twiceText(d) + " in simulation."
	}
	if also := heldDown(d); also != "" {
		s += " Also: " + also + "."
	}
	if f.Cause == explain.Unknown {
		return s + " To find out: " + f.Confirm + "."
	}
	if evidence := evidenceTexts(f, d.Symptom); len(evidence) > 0 {
		s += " Because: " + strings.Join(evidence, "; ") + "."
	}
	return s + trialSentence(f, d.Symptom)
}

// pathOf is the way through the questions that led there: which objective is not met, is
// it the first token or the later ones, a long prompt or a queue, near the hardware's
// bound or far from it.
func pathOf(p *inspect.ExplainedPoint, d *explain.Diagnosis) string {
	if p.Met != result.No || d.Primary.Cause == explain.Unknown {
		return ""
	}
	path := []string{"the SLO is not met", symptomName(d.Symptom), branchOf(d.Primary.Cause, d.Symptom.Metric)}
	return strings.Join(append(path, p.Name(d.Primary.Cause, d.Symptom.Metric)), " → ")
}

// WriteExplanation writes what limits a run for a terminal: the load at the limit, or every load
// with all that is known of it.
func WriteExplanation(w io.Writer, run *result.Run, x *inspect.Explanation, s Style) error {
	return writeFitting(w, s, func(p *printer) { writeExplanation(p, run, x) })
}

// writeExplanation writes it with a printer.
func writeExplanation(p *printer, run *result.Run, x *inspect.Explanation) {
	p.writeAnswer(bottleneckSentence(run, x))
	at := mostTellingPoint(run, x)
	if p.style.Full || at == nil {
		writeAllPoints(p, run, x)
		return
	}
	p.writeText(nonEmpty(pointSentence(run, x, at))...)
	if len(at.Symptoms) > 0 {
		p.line("")
		writeSymptoms(p, &run.Points[at.Index], at)
		p.writeFacts(slices.Concat(findingFacts(at), rangeFacts(x)))
	}
	p.writeNotes(explanationNotes(run, x, at), false, "")
	p.writeNext("pitot explain "+say.ShellLine([]string{x.Run})+" --full", "")
}

// writeSymptoms writes a table of what limits each latency of a load.
func writeSymptoms(p *printer, of *result.Point, x *inspect.ExplainedPoint) {
	t := NewTable("metric", "measured", "limited by", "sure?", "grows at 2×")
	twice, few := false, false
	for i := range x.Symptoms {
		d := &x.Symptoms[i]
		value := cellText(of.Metrics.SummaryOf(d.Symptom.Metric), d.Symptom.Of)
		few = few || strings.HasPrefix(value, "~")
		if value != say.Unknown {
			value += " ms"
		}
		sure := string(d.Primary.Confidence)
		if sure == "" {
			sure = say.Unknown
		}
		twice = twice || d.AtTwice > 0
		causes := d.Alike()
		if len(causes) < 2 {
			causes = []explain.Cause{d.Primary.Cause}
		}
		for k, c := range causes {
			name := x.Name(c, d.Symptom.Metric)
			if k < len(causes)-1 {
				name += " or"
			}
			if k == 0 {
				t.AddRow(symptomName(d.Symptom), value, name, sure, twiceText(d))
			} else {
				t.AddRow("", "", name, "", "")
			}
		}
	}
	var legend []string
	if twice {
		legend = append(legend, "grows at 2×: how many times as long at twice the load, in simulation")
	} else {
		t = t.withoutColumns(func(column int) bool { return column == 4 })
	}
	if few {
		legend = append(legend, "~ rough, do not quote")
	}
	p.writeColumns(t, 2, 3)
	p.writePainted(dim, legend...)
}

// findingFacts returns the facts about the first symptom of a load, and the settings to try.
func findingFacts(x *inspect.ExplainedPoint) (facts []labelled) {
	d := &x.Symptoms[0]
	f := &d.Primary
	add := func(label string, values ...string) {
		for _, v := range nonEmpty(values...) {
			facts = append(facts, labelled{Label: label, Value: []string{v}})
			label = ""
		}
	}
	add("Evidence", mostEvidence(d)...)
	if len(f.Excluded) > 0 {
		var names []string
		most := 0.0
		for _, e := range f.Excluded {
			names, most = append(names, x.Name(e.Cause, d.Symptom.Metric)), max(most, e.AtMost)
		}
		add("Ruled out", fmt.Sprintf("%s (each at most %s of %s)", strings.Join(names, ", "), say.Percent(math.Ceil(1000*most)/1000), symptomName(d.Symptom)))
	}
	left, untested := openTexts(x, f.Untested, d.Symptom)
	add("May add to it", strings.Join(left, ", "))
	add("Not tested", strings.Join(untested, ", "))
	add("Also", heldDown(d))
	if f.Cause == explain.Unknown {
		add("To find out", f.Confirm)
	} else {
		add("To confirm", f.Confirm)
	}
	add("Try", trialTexts(x)...)
	return facts
}

// rangeFacts are the loads at which each cause limits a latency.
func rangeFacts(x *inspect.Explanation) (facts []labelled) {
	label := "By load"
	for _, r := range x.Over {
		span := "at " + r.From
		if r.To != r.From {
			span = "from " + r.From + " to " + r.To
		}
		facts = append(facts, labelled{
			Label: label, Value: []string{symptomName(r.Symptom) + " " + span + ": " + x.Points[0].Name(r.Cause, r.Symptom.Metric)},
		})
		label = ""
	}
	return facts
}

// mostEvidence is the first of the evidence for the cause of a symptom: the parts of its mean
// and what a simulation says, or the first readings.
func mostEvidence(d *explain.Diagnosis) []string {
	list, most := evidenceTexts(&d.Primary, d.Symptom), 3
	if parts := partsText(d); parts != "" {
		list, most = slices.Insert(list, 0, parts), 2
	}
	return list[:min(len(list), most)]
}

// explanationNotes returns the caveats of an explanation of one load.
func explanationNotes(run *result.Run, x *inspect.Explanation, at *inspect.ExplainedPoint) (notes []note) {
	if x.Deployment != "" {
		notes = append(notes, note{
			Text: "Simulations of " + x.Deployment + " replay these requests. They are predictions: change one setting, measure, then pitot compare.",
		})
	}
	for i := range at.Symptoms {
		if f := &at.Symptoms[i].Primary; f.Try != nil && f.Try.ChangesAnswers {
			notes = append(notes, note{
				Text: "This setting changes the model's answers. Check them: pitot run --check-answers 5%", Warning: true,
			})
			break
		}
	}
	if n := len(run.Points) - 1; n > 0 {
		notes = append(notes, note{
			Text: fmt.Sprintf("This is one of %d loads; --full explains the others.", n+1),
		})
	}
	for _, n := range x.Notes {
		notes = append(notes, note{Text: say.Sentence(n)})
	}
	return notes
}

// writeAllPoints writes what is known of every load.
func writeAllPoints(p *printer, run *result.Run, x *inspect.Explanation) {
	simulated := "nothing was simulated"
	if x.Deployment != "" {
		simulated = "compared with simulations of " + x.Deployment
	}
	p.writePainted(dim, "of "+x.Run, simulated)
	for _, n := range x.Notes {
		p.writeText(n)
	}
	p.writeFacts(rangeFacts(x))
	few := false
	for i := range x.Points {
		for _, d := range x.Points[i].Symptoms {
			few = few || caveatOf(run.Points[x.Points[i].Index].Metrics.SummaryOf(d.Symptom.Metric), d.Symptom.Of) == fewSamples
		}
		writePoint(p, &run.Points[x.Points[i].Index], &x.Points[i], len(x.Points) > 1)
	}
	if few {
		p.line("")
		p.writePainted(dim, "~ rough, do not quote")
	}
}

func writePoint(p *printer, of *result.Point, x *inspect.ExplainedPoint, several bool) {
	p.line("")
	head := x.Load
	switch x.Met {
	case result.Yes:
		head += ": the SLO is met"
		if of.SLO != nil && of.SLO.Near {
			head += " in this run, too close to call"
		}
		if len(x.Symptoms) > 0 {
			head += "; what its latencies depend on:"
		}
	case result.No:
		head += ": the SLO is not met"
	}
	p.writePainted(bold, head)
	p.write("", "  ", x.NoFinding)
	for i := range x.Symptoms {
		d := &x.Symptoms[i]
		f := &d.Primary
		claim := nonEmpty(partsText(d), f.Claim+confidenceText(f))
		p.writeHanging(bold, "  ", "    ", append([]string{symptomText(d, of) + ": "}, claim...)...)
		if several && f.Cause != explain.Unknown {
			writeRow(p, "try", trialText(f, d.Symptom))
			writeRow(p, "also", heldDown(d))
			continue
		}
		writeFinding(p, x, f, d.Symptom)
		if d.AtTwice > 0 {
			writeRow(p, "at twice the load", symptomName(d.Symptom)+" "+twiceText(d)+" in simulation")
		}
		for k := range d.Also {
			a := &d.Also[k]
			name := "also"
			if a.Alike {
				name = "or, as likely"
			}
			writeRow(p, name, a.Claim, otherTrial(a, f, d.Symptom))
		}
	}
}

// heldDown is that the GPU's clock was held down, beside what limits most; "" where it was not.
func heldDown(d *explain.Diagnosis) string {
	if i := slices.IndexFunc(d.Also, func(f explain.Finding) bool { return f.Cause == explain.Throttling }); i >= 0 {
		return d.Also[i].Claim
	}
	return ""
}

func confidenceText(f *explain.Finding) string {
	if f.Confidence == "" {
		return ""
	}
	return " (" + string(f.Confidence) + ")"
}

// otherTrial returns what another finding says to try. It returns "" if that is nothing, or what
// the first finding says.
func otherTrial(f, first *explain.Finding, of explain.Symptom) string {
	if f.Try == nil || first.Try != nil && f.Try.Knob == first.Try.Knob && f.Try.To == first.Try.To {
		return ""
	}
	return "try " + trialText(f, of)
}

// writeRow writes what there is under a name.
func writeRow(p *printer, name string, items ...string) {
	if items = nonEmpty(items...); len(items) > 0 {
		p.writeHanging("", "    ", "      ", append([]string{name + ": " + items[0]}, items[1:]...)...)
	}
}

// writeFinding writes one with all that speaks for it.
func writeFinding(p *printer, x *inspect.ExplainedPoint, f *explain.Finding, of explain.Symptom) {
	var excluded []string
	for i := range f.Excluded {
		excluded = append(excluded, ruledOutText(x, &f.Excluded[i], of))
	}
	left, untested := openTexts(x, f.Untested, of)
	writeRow(p, "evidence", evidenceTexts(f, of)...)
	writeRow(p, "ruled out", excluded...)
	writeRow(p, "not excluded", left...)
	writeRow(p, "not tested", untested...)
	writeRow(p, "confirm", f.Confirm)
	writeRow(p, "try", trialText(f, of))
}
