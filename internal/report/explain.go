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
func evidenceText(e *explain.Evidence) string {
	v := say.Quantity(e.Value)
	switch e.Unit {
	case "":
	case "share":
		v = say.Percent(e.Value)
	default:
		v += " " + e.Unit
	}
	return fmt.Sprintf("%s %s (%s)", e.Signal, v, e.From)
}

// partsText returns the parts of a symptom's mean time, the largest first.
func partsText(d *explain.Diagnosis) string {
	sum := 0.0
	var parts texts
	larger := func(a, b explain.Part) int { return cmp.Compare(b.MS, a.MS) }
	for _, x := range slices.SortedStableFunc(slices.Values(d.Parts), larger) {
		if sum += x.MS; x.Share >= 0.005 {
			parts.addFormat("%s %s", x.Name, say.Percent(math.Round(100*x.Share)/100))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	of := "time to the first token"
	if d.Symptom.Metric == metric.TPOT {
		of = "time from the first token to the last"
	}
	return fmt.Sprintf("of the mean %s, %s ms: %s", of, say.Quantity(sum), strings.Join(parts, ", "))
}

// ruledOutText is a cause that a test excludes, with the most that it may have.
func ruledOutText(p *inspect.ExplainedPoint, e *explain.Excluded) string {
	s := p.Name(e.Cause) + ": at most " + say.Percent(math.Ceil(1000*e.AtMost)/1000)
	if len(e.Evidence) > 0 {
		s += ", by " + evidenceText(&e.Evidence[0])
	}
	return s
}

// lackText has the reason for each source of facts that is not known.
var lackText = map[string]string{
	explain.FromServer:  "the server's metrics do not tell",
	explain.FromStated:  "the server's settings are not known",
	explain.FromGPU:     "the GPU's metrics were not read",
	explain.FromRecords: "what prompts have in common is not known",
	explain.FromClient:  "too few answers were streamed",
}

// openTexts are the causes that tests leave open, each with the share that it may have, and those
// that are not tested, by what is not known.
func openTexts(p *inspect.ExplainedPoint, list []explain.Untested) (left, untested []string) {
	lack := map[string][]string{}
	for _, u := range list {
		switch name := p.Name(u.Cause); {
		case len(u.Lacks) > 0:
			lack[u.Lacks[0].Source()] = append(lack[u.Lacks[0].Source()], name)
		case u.AtMost < 0.99:
			left = append(left, name+": up to "+say.Percent(math.Ceil(100*u.AtMost)/100))
		default:
			left = append(left, name)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(lack)) {
		untested = append(untested, lackText[from]+": "+strings.Join(lack[from], ", "))
	}
	return left, untested
}

// trialText returns the text that says what to try against a symptom, "" for nothing.
func trialText(f *explain.Finding, of explain.Symptom) string {
	t := f.Try
	if t == nil {
		return ""
	}
	s := t.Knob
	switch {
	case t.From != "" && t.To != "":
		s += " " + t.From + " → " + t.To
	case t.To != "":
		s += ": " + t.To
	}
	if t.ChangesAnswers {
		s += " (another model: judge its answers again)"
	}
	if t.Gain > 0 {
		return s + "; the twins expect " + symptomName(of) + " " + forecastShare(t.Gain) + " lower"
	}
	return s + "; what it brings no twin says"
}

// trialSentence returns it as a sentence that follows others.
func trialSentence(f *explain.Finding, of explain.Symptom) string {
	if f.Try == nil {
		return ""
	}
	return " Try " + trialText(f, of) + "."
}

// evidenceTexts returns the evidence for a finding.
func evidenceTexts(f *explain.Finding) (list []string) {
	for i := range f.Evidence {
		list = append(list, evidenceText(&f.Evidence[i]))
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

// limitSentence is the sentence that an explanation is read for.
func limitSentence(run *result.Run, x *inspect.Explanation) string {
	if len(x.Points) == 0 {
		return "Nothing was measured."
	}
	at := mostTellingPoint(run, x)
	if at == nil {
		return "What limits it is " + notKnown + "."
	}
	if at.OtherFailure() != "" {
		return "What limits it is " + at.OtherFailure() + "."
	}
	d := &at.Symptoms[0]
	if d.Primary.Cause == explain.Unknown {
		return fmt.Sprintf("What limits %s at %s is %s.", symptomName(d.Symptom), at.Load, d.Primary.Claim)
	}
	name := symptomName(d.Symptom)
	switch {
	case !d.IsLightLoad():
		return fmt.Sprintf("%s at %s is limited by %s%s.", name, at.Load, causesOf(at, d), confidenceText(&d.Primary))
	case at.Met == result.No:
		return fmt.Sprintf("%s at %s is limited by %s%s, and hardly by the load: %s.", name, at.Load, causesOf(at, d), confidenceText(&d.Primary), twiceText(d))
	}
	return fmt.Sprintf("Nothing limits %s at %s: %s. It hangs on %s%s.", name, at.Load, twiceText(d), causesOf(at, d), confidenceText(&d.Primary))
}

// causesOf are the primary cause of a symptom and those that bring as much within chance.
func causesOf(p *inspect.ExplainedPoint, d *explain.Diagnosis) string {
	alike := d.Alike()
	if len(alike) < 2 {
		return p.Name(d.Primary.Cause)
	}
	var names []string
	for _, c := range alike {
		names = append(names, p.Name(c))
	}
	return say.List(names...) + ", about equally"
}

// twiceText returns the text that says what twice the load would make of a symptom.
func twiceText(d *explain.Diagnosis) string {
	name := symptomName(d.Symptom)
	switch x := d.AtTwice; {
	case x < 1.005:
		return "twice the load would not lengthen it, the twins say"
	case x < 2:
		return "at twice the load the twins expect " + name + " " + forecastShare(x-1) + " higher"
	case x < 10:
		return "at twice the load the twins expect " + name + " about " + say.Significant(x, 2) + " times as high"
	}
	return "at twice the load the twins expect " + name + " over 10 times as high"
}

func symptomName(s explain.Symptom) string { return s.Of + " " + strings.ToUpper(string(s.Metric)) }

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
				open = fmt.Sprintf("%s at %s: not known. What would tell: %s.", symptomName(d.Symptom), p.Load, d.Primary.Confirm)
			}
			if f := &d.Primary; m.Why == "" && f.Cause != explain.Unknown {
				m.Why = claimText(p, d) + trialSentence(f, d.Symptom)
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
		s += " The load hardly adds to it: " + twiceText(d) + "."
	}
	if also := heldDown(d); also != "" {
		s += " Also: " + also + "."
	}
	if f.Cause == explain.Unknown {
		return s + " What would tell: " + f.Confirm + "."
	}
	if evidence := evidenceTexts(f); len(evidence) > 0 {
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
	return strings.Join(append(path, p.Name(d.Primary.Cause)), " → ")
}

// WriteExplanation writes what limits a run for a terminal.
func WriteExplanation(w io.Writer, run *result.Run, x *inspect.Explanation, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(bold, limitSentence(run, x))
	asked := "no twin was asked"
	if x.Deployment != "" {
		asked = "held against twins of " + x.Deployment
	}
	p.writePainted(dim, "of "+x.Run, asked)
	for _, n := range x.Notes {
		p.writeText(n)
	}
	if len(x.Over) > 0 {
		p.line("")
		for _, r := range x.Over {
			span := "at " + r.From
			if r.To != r.From {
				span = "from " + r.From + " to " + r.To
			}
			p.writeHanging("", "  ", "    ", symptomName(r.Symptom)+" "+span+": "+x.Points[0].Name(r.Cause))
		}
	}
	few := false
	for i := range x.Points {
		for _, d := range x.Points[i].Symptoms {
			few = few || caveatOf(run.Points[x.Points[i].Index].Metrics.SummaryOf(d.Symptom.Metric), d.Symptom.Of) == fewSamples
		}
		writePoint(p, &run.Points[x.Points[i].Index], &x.Points[i], len(x.Points) > 1)
	}
	if few {
		p.line("")
		p.writePainted(dim, "~ few independent samples")
	}
	return p.err
}

func writePoint(p *printer, of *result.Point, x *inspect.ExplainedPoint, several bool) {
	p.line("")
	head := x.Load
	switch x.Met {
	case result.Yes:
		head += ": the SLO is met, nothing has to be done"
		if len(x.Symptoms) > 0 {
			head += "; what its times hang on:"
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
			writeRow(p, "load", twiceText(d))
		}
		for k := range d.Also {
			a := &d.Also[k]
			name := "also"
			if a.Alike {
				name = "as much"
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
		excluded = append(excluded, ruledOutText(x, &f.Excluded[i]))
	}
	left, untested := openTexts(x, f.Untested)
	writeRow(p, "because", evidenceTexts(f)...)
	writeRow(p, "ruled out", excluded...)
	writeRow(p, "not ruled out", left...)
	writeRow(p, "not tested", untested...)
	writeRow(p, "confirm", f.Confirm)
	writeRow(p, "try", trialText(f, of))
}
