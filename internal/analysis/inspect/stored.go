package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/explain"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/engines"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

// What was found is put into run.json, and taken from there, field by field.

// Findings are an explanation as run.json has it; by is the version of the program.
func (x *Explanation) Findings(by string, brief bool) *result.Findings {
	f := &result.Findings{Version: result.FindingsVersion, By: by, Deployment: x.Deployment, Brief: brief, Points: []result.PointFindings{}, Notes: x.Notes}
	for i := range x.Points {
		p := &x.Points[i]
		out := result.PointFindings{Point: p.Index, Diagnoses: []result.Diagnosis{}, WhyNone: p.NoFinding}
		for k := range p.Symptoms {
			d := &p.Symptoms[k]
			to := result.Diagnosis{Metric: d.Symptom.Metric, Of: d.Symptom.Of, ValueMS: finiteOrZero(d.Value), AtTwice: finiteOrZero(d.AtTwice), Primary: findingToStore(&d.Primary)}
			for _, x := range d.Parts {
				to.Parts = append(to.Parts, result.Part{Name: string(x.Name), MS: finiteOrZero(x.MS), Share: finiteOrZero(x.Share)})
			}
			for j := range d.Also {
				to.Also = append(to.Also, findingToStore(&d.Also[j]))
			}
			out.Diagnoses = append(out.Diagnoses, to)
		}
		f.Points = append(f.Points, out)
	}
	for _, r := range x.Over {
		f.OverLoad = append(f.OverLoad, result.Reign{Metric: r.Symptom.Metric, Of: r.Symptom.Of, Cause: string(r.Cause), From: r.From, To: r.To})
	}
	return f
}

// finiteOrZero is a number that JSON can have.
func finiteOrZero(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

func findingToStore(f *explain.Finding) result.Finding {
	out := result.Finding{Cause: string(f.Cause), Claim: f.Claim, Confidence: string(f.Confidence), Gain: finiteOrZero(f.Gain), Evidence: storedEvidence(f.Evidence), Confirm: f.Confirm, Alike: f.Alike}
	for _, e := range f.Excluded {
		to := result.Excluded{Cause: string(e.Cause), AtMost: finiteOrZero(e.AtMost), Evidence: storedEvidence(e.Evidence)}
		out.Excluded = append(out.Excluded, to)
	}
	for _, u := range f.Untested {
		to := result.Untested{Cause: string(u.Cause), AtMost: finiteOrZero(u.AtMost)}
		for _, s := range u.Lacks {
			to.Lacks = append(to.Lacks, string(s))
		}
		out.Untested = append(out.Untested, to)
	}
	if t := f.Try; t != nil {
		out.Try = &result.Trial{Knob: t.Knob, From: t.From, To: t.To, ExpectedGain: finiteOrZero(t.Gain), ChangesAnswers: t.ChangesAnswers}
	}
	return out
}

// StoredExplanation is the explanation that a run has with it, nil where it has none that is known
// here.
func StoredExplanation(dir string, run *result.Run) *Explanation {
	f := run.Findings
	if f == nil || f.Version != result.FindingsVersion {
		return nil
	}
	x := &Explanation{Schema: Schema, Run: dir, Deployment: f.Deployment, Points: []ExplainedPoint{}, Notes: f.Notes}
	for i := range f.Points {
		from := &f.Points[i]
		if from.Point < 0 || from.Point >= len(run.Points) {
			continue
		}
		p := pointOf(run, from.Point)
		p.NoFinding = from.WhyNone
		for _, k := range engines.Deployed() {
			if unusualEngine(k) != "" && strings.Contains(f.Deployment, "engine="+k.Name) {
				p.Engine = k.Name
			}
		}
		for k := range from.Diagnoses {
			d := &from.Diagnoses[k]
			to := explain.Diagnosis{Symptom: explain.Symptom{Metric: d.Metric, Of: d.Of}, Value: d.ValueMS, AtTwice: d.AtTwice, Primary: findingFromStored(&d.Primary)}
			for _, x := range d.Parts {
				to.Parts = append(to.Parts, explain.Part{Name: explain.PartName(x.Name), MS: x.MS, Share: x.Share})
			}
			for j := range d.Also {
				to.Also = append(to.Also, findingFromStored(&d.Also[j]))
			}
			p.Symptoms = append(p.Symptoms, to)
		}
		x.Points = append(x.Points, p)
	}
	for _, r := range f.OverLoad {
		x.Over = append(x.Over, Reign{explain.Symptom{Metric: r.Metric, Of: r.Of}, explain.Cause(r.Cause), r.From, r.To})
	}
	return x
}

func findingFromStored(f *result.Finding) explain.Finding {
	out := explain.Finding{Cause: explain.Cause(f.Cause), Claim: f.Claim, Confidence: explain.Confidence(f.Confidence), Gain: f.Gain, Evidence: foundEvidence(f.Evidence), Confirm: f.Confirm, Alike: f.Alike}
	for _, e := range f.Excluded {
		to := explain.Excluded{Cause: explain.Cause(e.Cause), AtMost: e.AtMost, Evidence: foundEvidence(e.Evidence)}
		out.Excluded = append(out.Excluded, to)
	}
	for _, u := range f.Untested {
		to := explain.Untested{Cause: explain.Cause(u.Cause), AtMost: u.AtMost}
		for _, s := range u.Lacks {
			to.Lacks = append(to.Lacks, explain.Signal(s))
		}
		out.Untested = append(out.Untested, to)
	}
	if t := f.Try; t != nil {
		out.Try = &explain.Trial{Knob: t.Knob, From: t.From, To: t.To, Gain: t.ExpectedGain, ChangesAnswers: t.ChangesAnswers}
	}
	return out
}

func storedEvidence(list []explain.Evidence) []result.Evidence {
	out := []result.Evidence{}
	for _, e := range list {
		out = append(out, result.Evidence{Signal: string(e.Signal), Value: finiteOrZero(e.Value), Unit: e.Unit, From: e.From})
	}
	return out
}

func foundEvidence(list []result.Evidence) (out []explain.Evidence) {
	for _, e := range list {
		out = append(out, explain.Evidence{Signal: explain.Signal(e.Signal), Value: e.Value, Unit: e.Unit, From: e.From})
	}
	return out
}

// pointOf is a point of which nothing was found yet.
func pointOf(run *result.Run, i int) ExplainedPoint {
	p := &run.Points[i]
	out := ExplainedPoint{Index: i, Load: say.Quantity(p.Load.Value()) + " " + p.Load.Unit(), Value: p.Load.Value(), Engine: engineOf(run), Symptoms: []explain.Diagnosis{}}
	if p.SLO != nil {
		out.Met = p.SLO.Met
		out.Wrong = wrongAlone(p)
		out.Limited = limitedAlone(p)
		out.Failed = failedAlone(p)
	}
	return out
}

// LimitsDid says what the server's rate limits did to a point's requests, "" where nothing.
func LimitsDid(p *result.Point) string {
	refused, held := p.RefusedByLimits(), p.HeldByLimits()
	due := say.Plural(p.Requests.Due, "request")
	switch {
	case refused > 0 && held > 0:
		return fmt.Sprintf("they refused %s and made %s wait of %s", say.Count(refused), say.Count(held), due)
	case refused > 0:
		return fmt.Sprintf("they refused %s of %s", say.Count(refused), due)
	case held > 0:
		return fmt.Sprintf("they made %s of %s wait", say.Count(held), due)
	}
	return ""
}

// limitedAlone says what the server's rate limits did where they alone break the objective, ""
// elsewhere: the server is not what is slow.
func limitedAlone(p *result.Point) string {
	if !p.OverByLimits() {
		return ""
	}
	return "the server's rate limits: " + LimitsDid(p) + "; " + ServedWithin(p)
}

// failedAlone says how many requests failed or were cut off where they alone break the objective,
// "" elsewhere: the others were fast enough. Under a queue that grows they fail because they are
// late.
func failedAlone(p *result.Point) string {
	r := &p.Requests
	if p.SLO.Met != result.No || r.OK == 0 || r.OK >= r.Due || p.Stability == stats.Unstable {
		return ""
	}
	spec, err := slo.Parse(p.SLO.Spec)
	if err != nil {
		return ""
	}
	answered := float64(r.Due) / float64(r.OK) // a share of those that were answered, by that of all
	missed := false
	for i := range p.SLO.Limits {
		l := &p.SLO.Limits[i]
		within, share := l.Attained, l.Percentile/100
		if share == 0 {
			within, share = p.SLO.Attained, spec.Share()
		}
		if l.Met == result.Yes {
			continue
		}
		missed = missed || l.Met == result.No
		if l.Metric == metric.Errors {
			continue
		}
		if l.Class != "" || within == nil || *within*answered < share-1e-9 {
			return ""
		}
	}
	if !missed {
		return ""
	}
	classes := slices.SortedFunc(maps.Keys(r.Errors), func(a, b string) int { return cmp.Or(r.Errors[b]-r.Errors[a], cmp.Compare(a, b)) })
	why := ""
	for i, class := range classes[:min(len(classes), 3)] {
		why += []string{" (", ", ", ", "}[i] + say.Count(r.Errors[class]) + " " + class
	}
	if why != "" {
		why += ")"
	}
	return fmt.Sprintf("requests that were not answered: %s of %s%s; those that were answered were within the objective", say.Count(r.Due-r.OK), say.Count(r.Due), why)
}

// ServedWithin says what the requests that were served tell where the server's rate limits
// alone break the objective: they were fewer, or came later, than the load asked for, so how
// the server would do at that load they do not tell.
func ServedWithin(p *result.Point) string {
	served := "those that it served were within the objective"
	if p.HeldByLimits() > 0 {
		served += ", counted from when they were sent"
	}
	highest := 0.
	for i := range p.SLO.Limits {
		highest = max(highest, p.SLO.Limits[i].Percentile)
	}
	if n := p.Requests.OK; highest < 100 && float64(n)*(100-highest) < 100-1e-6 {
		served += fmt.Sprintf(", but %s are too few for a p%s", say.Count(n), say.Quantity(highest))
	}
	return served + "; what the server does with " + say.Quantity(p.Load.Value()) + " " + p.Load.Unit() + " is not known"
}

// OtherFailure returns what breaks the objective where that is nothing of the server's speed. It
// returns "" elsewhere.
func (p *ExplainedPoint) OtherFailure() string { return cmp.Or(p.Limited, p.Failed, p.Wrong) }

// wrongAlone says what answers are wrong where no other limit of the objective is broken, ""
// elsewhere: nothing that makes the server faster mends that.
func wrongAlone(p *result.Point) string {
	wrong := false
	for _, l := range p.SLO.Limits {
		if l.Met != result.No {
			continue
		}
		if wrong = l.Metric == metric.Wrong; !wrong {
			return ""
		}
	}
	if !wrong || p.Answers == nil || p.Answers.Wrong == nil || p.Answers.Wrong.Share == nil {
		return ""
	}
	x := p.Answers.Wrong
	text := "wrong answers: " + say.Percent(*x.Share) + " at " + say.Quantity(p.Load.Value()) + " " + p.Load.Unit()
	if x.AloneShare != nil {
		text += " against " + say.Percent(*x.AloneShare) + " alone"
	}
	return text
}
