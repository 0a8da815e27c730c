package report

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// Decision is the way from an objective to what to do: which target failed, of the first
// token a long input or a queue, of the later ones near the bound or not, is the load
// served, at what cost. Whoever passes all of it stops.
type Decision struct {
	Load  string // that it was decided at
	Steps []DecisionStep
}

// DecisionStep is a question with its answer.
type DecisionStep struct {
	Name     string // "TTFT"
	State    string // "pass", "miss", "open" where it is not known, "none" where nothing was asked
	Says     string
	Branches []Branch // what it may come of, where it is missed
	Then     string   // the cause that was found
}

// Branch is one way on, and whether it was taken.
type Branch struct {
	Text  string
	Taken bool
}

// Where causes are.
const (
	branchBefore = "before the server"
	branchAround = "the server's surroundings"
	branchQueue  = "a queue before one of the server's limits"
	branchPrompt = "the work of prompts"
	branchNear   = "near what the hardware can do"
	branchFar    = "far from what the hardware can do"
)

// branchOf is where a cause of a metric is.
func branchOf(c explain.Cause, of metric.Name) string {
	switch c {
	case explain.Unknown:
		return ""
	case explain.Client, explain.Hold, explain.Network, explain.Proxy:
		return branchBefore
	case explain.Foreign, explain.Throttling, explain.Freezes:
		return branchAround
	case explain.Seats, explain.KVCache, explain.Budget:
		return branchQueue
	}
	switch {
	case of == metric.TTFT:
		return branchPrompt
	case c == explain.Bandwidth, c == explain.Compute:
		return branchNear
	}
	return branchFar
}

// buildDecision draws the way at the first load that tells what limits the run, else at the
// highest; nil where there is no objective. x may be nil: nothing was found out then.
func buildDecision(run *result.Run, x *inspect.Explanation) *Decision {
	at := -1
	for _, i := range run.ByLoad() {
		// What an INVALID window shows may be the client's doing; requests of one that was
		// interrupted violate nothing.
		if s := run.Points[i].SLO; s != nil && run.Points[i].Verdict != result.Invalid && i != run.UnderWay() {
			if at = i; s.Met == result.No {
				break
			}
		}
	}
	for _, i := range run.ByLoad() { // of a search a load below its limit misses by chance
		if run.Points[i].SLO != nil && inspect.IsTelling(run, i) {
			at = i
			break
		}
	}
	if at < 0 {
		return nil
	}
	p := &run.Points[at]
	var found *inspect.ExplainedPoint
	if x != nil {
		if i := slices.IndexFunc(x.Points, func(f inspect.ExplainedPoint) bool { return f.Index == at }); i >= 0 {
			found = &x.Points[i]
		}
	}
	first := func(m metric.Name) bool { return m == metric.TTFT }
	later := func(m metric.Name) bool { return m != metric.TTFT }
	d := &Decision{Load: say.Quantity(p.Load.Value()) + " " + p.Load.Unit()}
	d.Steps = append(d.Steps,
		targetStep("TTFT", "a long input, or a queue?", p.SLO, found, first, branchBefore, branchAround, branchQueue, branchPrompt),
		targetStep("TPOT and all that comes later", "near the bound, or far from it?", p.SLO, found, later, branchBefore, branchAround, branchQueue, branchNear, branchFar),
		throughputStep(p), costStep(p))
	last := DecisionStep{Name: "All pass", State: "pass", Says: "stop: nothing has to be changed"}
	for i := range d.Steps {
		switch d.Steps[i].State {
		case "miss":
			last.State, last.Says = "none", "not yet: change one thing, and measure it again"
		case "open":
			if last.State == "pass" {
				last.State, last.Says = "open", "not decided yet: measure longer"
			}
		}
	}
	if last.State == "pass" && p.SLO.Near {
		last.State, last.Says = "open", nearlyMissed
		if found != nil && len(found.Symptoms) > 0 && found.Symptoms[0].Primary.Cause != explain.Unknown {
			s := &found.Symptoms[0]
			last.Says = pointSentence(run, x, found)
			last.Then = say.Sentence(symptomName(s.Symptom) + ": " + causesOf(found, s) + confidenceText(&s.Primary))
		}
	}
	d.Steps = append(d.Steps, last)
	return d
}

// targetStep is the question of some of an objective's limits.
func targetStep(name, question string, s *result.SLO, found *inspect.ExplainedPoint, of func(metric.Name) bool, branches ...string) DecisionStep {
	step := DecisionStep{Name: name, State: "none", Says: "no limit"}
	var missed []string
	for _, l := range s.Limits {
		if !of(l.Metric) {
			continue
		}
		switch {
		case l.Met == result.No:
			step.State = "miss"
			missed = append(missed, l.Spec)
		case l.Met != result.Yes && step.State != "miss":
			step.State, step.Says = "open", "not decided"
		case step.State == "none":
			step.State, step.Says = "pass", "within its limit"
		}
	}
	if step.State != "miss" {
		return step
	}
	step.Says = "missed: " + strings.Join(missed, ", ") + ". "
	if found != nil && found.OtherFailure() != "" { // refused, failed or wrong, and not late
		step.Says += "Not by its latency: " + found.OtherFailure()
		return step
	}
	step.Says += strings.ToUpper(question[:1]) + question[1:]
	taken := ""
	if found != nil {
		if i := slices.IndexFunc(found.Symptoms, func(d explain.Diagnosis) bool { return of(d.Symptom.Metric) }); i >= 0 {
			f := &found.Symptoms[i].Primary
			taken = branchOf(f.Cause, found.Symptoms[i].Symptom.Metric)
			if f.Cause == explain.Unknown {
				step.Then = "Not known. To find out: " + f.Confirm + "."
			} else {
				step.Then = found.Name(f.Cause, found.Symptoms[i].Symptom.Metric) + confidenceText(f) + "."
				step.Then += trialSentence(f, found.Symptoms[i].Symptom)
			}
		}
	}
	for _, b := range branches {
		step.Branches = append(step.Branches, Branch{b, b == taken})
	}
	return step
}

// throughputStep is the question of throughput.
func throughputStep(p *result.Point) DecisionStep {
	step := DecisionStep{Name: "Throughput", State: "open", Says: "whether the load is served is not decided"}
	rate := ""
	if x := p.Throughput.RequestsPerS; x != nil {
		rate = ": " + say.Quantity(*x) + " req/s answered"
	}
	switch {
	case p.Outcome == result.Degraded || p.Outcome == result.Failing:
		step.State, step.Says = "miss", fmt.Sprintf("%s of %s were not answered%s", say.Count(p.Requests.Due-p.Requests.OK), say.Plural(p.Requests.Due, "request"), rate)
	case p.Stability == stats.Unstable:
		step.State, step.Says = "miss", "more comes than is served"+rate+". pitot find has the load that is"
	case p.Stability == stats.Stable, p.Load.Loop == "closed":
		step.State, step.Says = "pass", "what comes is served"+rate
	}
	return step
}

// costStep returns the decision step for cost. No limit applies to it.
func costStep(p *result.Point) DecisionStep {
	step := DecisionStep{Name: "Cost", State: "none", Says: "not known: add --gpus and --gpu-price"}
	if c := p.Cost; c != nil && c.USDPerMOutput != nil {
		step.State, step.Says = "pass", fmt.Sprintf("$%s per million output tokens", say.Quantity(*c.USDPerMOutput))
		if p.SLO != nil && p.SLO.Met == result.No {
			step.Says += ", within the SLO or not"
		}
	}
	return step
}
