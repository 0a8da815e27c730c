package result

import (
	"pitot/internal/data/metric"
	v1 "pitot/internal/data/result/v1"
	"pitot/internal/stat"
	"strconv"
	"strings"
)

// FromV1 gives a run of version 1 as this version says it. Where both mean the
// same by the same fields, Go converts one into the other; a field that differs
// stops the compiler here.
func FromV1(r v1.Run) Run {
	return Run{
		Schema: Schema, Pitot: Version(r.Pitot), Command: r.Command, Seed: r.Seed, Started: r.Started, Ended: r.Ended,
		Environment: Environment(r.Environment), Target: Target{Spec: r.Target.Spec, Kind: r.Target.Kind, URL: r.Target.URL, API: r.Target.API, Model: r.Target.Model, Server: r.Target.Server, Settings: r.Target.Settings}, Workload: r.Workload, Notes: r.Notes, Launch: r.Launch,
		Points: each(r.Points, pointFromV1), Repeats: maybe(r.Repeats, repeatedFromV1),
		Curve: maybe(r.Curve, curveFromV1), Capacity: maybe(r.Capacity, capacityFromV1),
		Verdict: Verdict(r.Verdict), Interrupted: r.Interrupted, Recovered: r.Recovered,
	}
}

// each converts a list; one that was null stays so.
func each[A, B any](list []A, convert func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i := range list {
		out[i] = convert(list[i])
	}
	return out
}

// maybe converts what may not be there.
func maybe[A, B any](p *A, convert func(A) B) *B {
	if p == nil {
		return nil
	}
	out := convert(*p)
	return &out
}

func requestsFromV1(r v1.Requests) Requests {
	return Requests{Due: r.Due, OK: r.OK, Failed: r.Failed, Cut: r.Cut, Unsent: r.Unsent, Errors: r.Errors, Finish: r.Finish, ErrorExamples: r.ErrorExamples}
}

func pointFromV1(p v1.Point) Point {
	return Point{
		Stage: p.Stage, Load: LoadFromV1(p.Load), Seconds: Seconds(p.Seconds), Requests: requestsFromV1(p.Requests),
		Throughput: throughputFromV1(p.Throughput),
		Cost:       maybe(p.Cost, costFromV1),
		Metrics:    metricsFromV1(p.Metrics),
		SLO:        maybe(p.SLO, sloFromV1),
		Goodput:    maybe(p.Goodput, func(g v1.Goodput) Goodput { return Goodput(g) }),
		Stability:  stat.Stability(p.Stability), StabilityWhy: p.StabilityWhy, InFlight: p.InFlight,
		Growth:      maybe(p.Growth, func(g v1.Growth) Growth { return Growth(g) }),
		Standstills: maybe(p.Standstills, func(s v1.Standstills) Standstills { return Standstills(s) }),
		EndedEarly:  p.EndedEarly, WentAway: p.WentAway,
		Until:   maybe(p.Until, UntilFromV1),
		Outcome: Outcome(p.Outcome), Classes: classesFromV1(p.Classes),
		Checks: each(p.Checks, checkFromV1), Verdict: Verdict(p.Verdict),
	}
}

func costFromV1(c v1.Cost) Cost {
	return Cost{USDPerGPUHour: &c.USDPerGPUHour, USDPerMOutput: c.USDPerMOutput, USDPerMGoodOutput: c.USDPerMGoodOutput}
}

// UntilFromV1 is for marks too: the end of a window has one.
func UntilFromV1(u v1.Until) Until { return Until(u) }

// LoadFromV1 is for marks too: what was planned of a point has one.
func LoadFromV1(l v1.Load) Load {
	return Load{Loop: l.Loop, Rate: l.Rate, Arrival: l.Arrival, Concurrency: l.Concurrency, ThinkMS: l.ThinkMS, MaxInFlight: l.MaxInFlight}
}

func throughputFromV1(t v1.Throughput) Throughput {
	return Throughput{
		DuePerS: t.DuePerS, RequestsPerS: t.RequestsPerS, RPM: t.RPM, InputTokensPerS: t.InputTokensPerS, OutputTokensPerS: t.OutputTokensPerS,
		PerGPU: maybe(t.PerGPU, func(g v1.PerGPU) PerGPU { return PerGPU(g) }),
		Why:    t.Why, CI95: t.CI95, NoInterval: t.NoInterval,
		Late: maybe(t.Late, func(l v1.Late) Late { return Late(l) }),
	}
}

func summaryFromV1(s v1.Summary) Summary { return Summary(s) }

func metricsFromV1(m v1.Metrics) Metrics {
	summary := func(s *v1.Summary) *Summary { return maybe(s, summaryFromV1) }
	out := MetricsOf(map[metric.Name]*Summary{
		metric.TTFT: summary(m.TTFT), metric.TTFA: summary(m.TTFA), metric.TPOT: summary(m.TPOT), metric.TPOTn1: summary(m.TPOTn1),
		metric.ITL: summary(m.ITL), metric.ICL: summary(m.ICL), metric.Stall: summary(m.Stall),
		metric.E2E: summary(m.E2E), metric.Generation: summary(m.Generation), metric.Lag: summary(m.Lag), metric.Held: summary(m.Held), metric.Connect: summary(m.Connect),
		metric.InputTokens: summary(m.InputTokens), metric.OutputTokens: summary(m.OutputTokens), metric.CachedTokens: summary(m.CachedTokens),
		metric.TokensPerChunk: summary(m.TokensPerChunk), metric.PrefillRate: summary(m.PrefillRate), metric.DecodeRate: summary(m.DecodeRate),
		metric.ServiceTTFT: summary(m.Service.TTFT), metric.ServiceE2E: summary(m.Service.E2E),
	})
	out.Undefined = m.Undefined
	return out
}

func sloFromV1(s v1.SLO) SLO {
	out := SLO{
		Spec: s.Spec, Attained: s.Attained, CI95: s.CI95, NoInterval: s.NoInterval, Met: Met(s.Met), Why: s.Why,
		Limits: each(s.Limits, func(l v1.Limit) Limit {
			return Limit{Spec: l.Spec, Percentile: percentileOf(l.Spec), Metric: metric.Name(l.Metric), Value: l.Value, Limit: l.Limit, Attained: l.Attained, Met: Met(l.Met), Why: l.Why}
		}),
	}
	for _, l := range out.Limits { // version 1 named the limit that decided before its reason
		if rest, ok := strings.CutPrefix(s.Why, l.Spec); ok {
			out.Deciding, out.Why = l.Spec, strings.TrimPrefix(rest, ": ")
		}
	}
	return out
}

// percentileOf is that of a limit as it is written, "p99 ttft<200ms"; 0 if it has
// none.
func percentileOf(spec string) (percent float64) {
	of, _, _ := strings.Cut(spec, " ")
	if digits, ok := strings.CutPrefix(of, "p"); ok {
		percent, _ = strconv.ParseFloat(digits, 64) // no number is no percentile
	}
	return percent
}

func classesFromV1(classes map[string]v1.Class) map[string]Class {
	if classes == nil {
		return nil
	}
	out := make(map[string]Class, len(classes))
	for name, c := range classes {
		out[name] = Class{Requests: requestsFromV1(c.Requests), Metrics: metricsFromV1(c.Metrics)}
	}
	return out
}

func repeatedFromV1(r v1.Repeated) Repeated {
	out := Repeated{Load: r.Load, Points: r.Points, Median: r.Median, Spread: r.Spread, Covers: r.Covers}
	for met, n := range r.Met {
		if out.Met == nil {
			out.Met = map[Met]int{}
		}
		out.Met[Met(met)] = n
	}
	return out
}

// checkFromV1 keeps the sentences of version 1: it has no numbers.
func checkFromV1(c v1.Check) Check {
	return Check{Name: c.Name, Status: Status(c.Status), Prose: &Prose{c.Value, c.Limit, c.Advice}}
}

func curveFromV1(c v1.Curve) Curve {
	return Curve{
		Over: c.Over, Points: c.Points,
		Knee: maybe(c.Knee, func(k v1.Knee) Knee { return Knee{Load: k.Load, Resampled: k.CI95, Method: k.Method, Others: k.Others} }), NoKnee: c.NoKnee,
		Saturation:   maybe(c.Saturation, func(s v1.Saturation) Saturation { return Saturation(s) }),
		UnstableFrom: c.UnstableFrom, Pareto: Pareto(c.Pareto), Repeats: each(c.Repeats, repeatedFromV1),
	}
}

func capacityFromV1(c v1.Capacity) Capacity {
	return Capacity{
		Over: c.Over, SLO: c.SLO, Load: c.Load, Estimate: c.Estimate, CI95: c.CI95, Lower: c.Lower, Covers: c.Covers,
		Verified: maybe(c.Verified, func(v v1.Verified) Verified {
			return Verified{Load: v.Load, Requests: v.Requests, Violations: v.Violations, Upper: v.Upper, Allowed: v.Allowed, Passed: v.Passed, Refuted: v.Refuted, Attempts: v.Attempts}
		}),
		Bracket: c.Bracket, Binding: c.Binding,
		Limits:   each(c.Limits, func(l v1.CapacityLimit) CapacityLimit { return CapacityLimit(l) }),
		Requests: c.Requests, Seconds: c.Seconds, Why: c.Why,
		Trail: each(c.Trail, func(p v1.CapacityProbe) CapacityProbe {
			return CapacityProbe{Point: p.Point, Stage: p.Stage, Load: p.Load, Requests: p.Requests, Violations: p.Violations, Stability: stat.Stability(p.Stability)}
		}),
	}
}
