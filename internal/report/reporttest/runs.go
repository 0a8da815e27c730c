// Package reporttest has the runs and comparisons that the tests of reports show.
package reporttest

import (
	"encoding/json"
	"fmt"
	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/measure/judge"
	"strings"
)

// SummaryAround is a summary of n samples around a median; what n is too few for is
// withheld, as measure does it.
func SummaryAround(n int64, p50 float64) *result.Summary {
	s := &result.Summary{N: n, Over: map[string]float64{}, Bounds: map[string][2]float64{}, Withheld: map[string]result.Reason{}}
	scaled := func(x float64) *float64 { x *= p50; return &x }
	s.Mean, s.SD, s.Min, s.Max = scaled(1.04), scaled(.2), scaled(.7), scaled(3.5)
	for i, c := range metric.Percentiles() {
		few, firm := c.SamplesNeeded()
		if n < few {
			s.Withheld[c.Key] = result.Reason{Code: result.FewShown, N: float64(n), Needed: 1000, Firm: 10_000}
			continue
		}
		if n < firm {
			s.Few = append(s.Few, c.Key)
		}
		s.SetValue(c.Key, scaled([]float64{1, 1.21, 1.4, 1.9, 2.6}[i]))
	}
	return s
}

// NewCheck is a check with what it counted, by pairs of names and numbers.
func NewCheck(name string, status result.Status, value, limit float64, detail ...any) result.Check {
	c := result.NewCheck(name, value, limit)
	c.Status = status
	for i := 0; i+1 < len(detail); i += 2 {
		if c.Detail == nil {
			c.Detail = map[string]float64{}
		}
		switch x := detail[i+1].(type) {
		case int:
			c.Detail[detail[i].(string)] = float64(x)
		case float64:
			c.Detail[detail[i].(string)] = x
		}
	}
	return c
}

// ServerRun is a run against a server, of one point with n requests.
func ServerRun(n int) *result.Run {
	rate, due, served, in, out, lag := 4.5, 4.5021, 4.4987, 4608., 575.9, SummaryAround(int64(n), .0125)
	run := &result.Run{
		Schema: result.Schema, Seed: 7, Started: "2026-11-20T23:48:00Z", Ended: "2026-11-20T23:58:00Z",
		Environment: result.Environment{Stamps: "kernel"},
		Target: result.Target{Spec: "http://10.0.0.7:8000", Kind: "http", API: "openai-chat", Model: "meta-llama/Llama-3.1-8B-Instruct",
			Server: map[string]string{"engine": "vllm", "version": "0.11.2"}},
		Workload: json.RawMessage(`{"kind":"random","input":"1024","output":"128","sampling":{"stream":true}}`),
		Verdict:  result.Valid,
	}
	p := result.Point{
		Load:       result.Load{Loop: "open", Rate: &rate, Arrival: "poisson"},
		Seconds:    result.Seconds{Warmup: 9.25, Window: 600, Drain: 1.4},
		Requests:   result.Requests{Due: n, OK: n},
		Throughput: result.Throughput{DuePerS: &due, RequestsPerS: &served, RPM: floatPointer(269.9), InputTokensPerS: &in, OutputTokensPerS: &out},
		Metrics: result.MetricsOf(map[metric.Name]*result.Summary{metric.TTFT: SummaryAround(int64(n), 87.3), metric.TPOT: SummaryAround(int64(n), 8.41), metric.ITL: SummaryAround(int64(n)*127, 8.2), metric.ICL: SummaryAround(int64(n)*127, 8.2),
			metric.Stall: SummaryAround(int64(n), 11.6), metric.E2E: SummaryAround(int64(n), 1155.2), metric.Lag: lag}),
		Stability: "stable", Outcome: "ok", Verdict: result.Valid,
	}
	for i := range 16 {
		p.Checks = append(p.Checks, NewCheck(fmt.Sprintf("check %d", i), result.Pass, 0, 0))
	}
	run.Points = []result.Point{p}
	return run
}

var fewSamples = result.Reason{Code: result.FewSamples}

func floatPointer(x float64) *float64 { return &x }
func intPointer(n int) *int           { return &n }

// Runs are runs as they come out, each with something to show.
func Runs() map[string]*result.Run {
	all := map[string]*result.Run{}
	addRun := func(name string, n int, edit func(run *result.Run, p *result.Point)) {
		run := ServerRun(n)
		edit(run, &run.Points[0])
		run.Verdict = run.Points[0].Verdict
		judge.AddAdvice(run)
		all[name] = run
	}
	addRun("clean", 12_345, func(run *result.Run, p *result.Point) {
		run.Notes = map[string]string{"launch": "3", "gpu": "H100 SXM"}
		p.Throughput.PerGPU = &result.PerGPU{GPUs: 2, OutputTokensPerS: floatPointer(287.95)}
		p.Cost = &result.Cost{USDPerGPUHour: floatPointer(2.5), USDPerHour: floatPointer(5), Basis: result.Owned, Price: "owned:85000,4y,700W,0.12/kWh", USDPerMInput: floatPointer(.31), USDPerMOutput: floatPointer(2.4021),
			USDPerMTokens: floatPointer(.2746), USDPerRequest: floatPointer(.000307), Electricity: &result.Electricity{USDPerGPUHour: .0735, WattsPerGPU: 612.4, Measured: true}, CI95: map[string][2]float64{"usd_per_m_output": {2.33, 2.48}}}
		p.Energy = &result.Energy{From: result.EnergyCounter, Joules: 734_880, Error: 2500, Watts: 1224.8, GPUs: intPointer(2), IdleWatts: floatPointer(141.2), Samples: 600, JoulesPerOutputToken: floatPointer(2.127), TokensPerSPerMW: floatPointer(470_200)}
	})
	addRun("flags", 2700, func(run *result.Run, p *result.Point) {
		p.Verdict = result.ValidWithFlags
		p.Metrics.SummaryOf(metric.ITL).Bounds = map[string][2]float64{"p50": {8.1, 8.3}, "p99": {9.2, 15.58}}
		p.Metrics.SummaryOf(metric.ITL).Streams, p.Metrics.SummaryOf(metric.ITL).Excluded = 2650, 50
		p.Metrics.SummaryOf(metric.TPOT).Missing = 12
		p.Metrics.SetSummary(metric.ServiceTTFT, SummaryAround(2700, 31))
		p.Checks[3] = NewCheck(result.CheckMerged, result.Flag, .012, .001, "n", 4115, "of", 342900)
		p.Checks[5] = NewCheck(result.CheckRetransmits, result.Flag, .031, .01, "n", 84, "of", 2700)
	})
	addRun("invalid", 2700, func(run *result.Run, p *result.Point) {
		p.Verdict = result.Invalid
		run.Environment.Stamps = "user"
		p.Checks[0] = NewCheck(result.CheckStamps, result.Flag, 1, .01)
		p.Checks[0].Case = "user"
		p.Checks[9] = NewCheck(result.CheckClientCPU, result.Fail, .97, .6)
	})
	addRun("slo-met", 2700, func(run *result.Run, p *result.Point) {
		p.SLO = &result.SLO{Spec: "p99 ttft<200ms, p99 tpot<50ms", Attained: floatPointer(.99926), Met: "yes", Limits: []result.Limit{
			{Spec: "p99 ttft<200ms", Percentile: 99, Metric: "ttft", Value: floatPointer(165.9), Attained: floatPointer(.99926), Met: "yes"},
			{Spec: "p99 tpot<50ms", Percentile: 99, Metric: "tpot", Value: floatPointer(15.98), Attained: floatPointer(1), Met: "yes"}}}
		p.Goodput = &result.Goodput{RequestsPerS: 4.4967, OutputTokensPerS: floatPointer(575.6)}
	})
	addRun("slo-not", 2700, func(run *result.Run, p *result.Point) {
		p.SLO = &result.SLO{Spec: "ttft<100ms, tpot<50ms @99%, errors<1%", Attained: floatPointer(.8123), Met: "no", Why: result.Reason{Code: result.WithinJoint, N: 2193, Of: 2700}, Limits: []result.Limit{
			{Spec: "ttft<100ms", Metric: "ttft", Value: floatPointer(165.9), Attained: floatPointer(.8123), Met: "no"},
			{Spec: "tpot<50ms", Metric: "tpot", Value: floatPointer(15.98), Attained: floatPointer(1), Met: "yes"},
			{Spec: "errors<1%", Metric: "errors", Value: floatPointer(0), Attained: floatPointer(1), Met: "yes"}}}
		p.Goodput = &result.Goodput{RequestsPerS: 3.655, OutputTokensPerS: floatPointer(467.8)}
		p.Cost = &result.Cost{USDPerGPUHour: floatPointer(2.5), USDPerMOutput: floatPointer(2.4021), USDPerMGoodOutput: floatPointer(2.957)}
	})
	addRun("slo-undecided", 85, func(run *result.Run, p *result.Point) {
		why := result.Reason{Code: result.FewForClaim, N: 85, Needed: 100}
		p.SLO = &result.SLO{Spec: "p99 e2e<2s", Attained: floatPointer(1), Met: "undecided", Deciding: "p99 e2e<2s", Why: why, Limits: []result.Limit{
			{Spec: "p99 e2e<2s", Percentile: 99, Metric: "e2e", Attained: floatPointer(1), Met: "undecided", Why: why}}}
		p.Goodput = &result.Goodput{RequestsPerS: 4.4967}
	})
	addRun("censored", 2700, func(run *result.Run, p *result.Point) {
		for _, s := range []*result.Summary{p.Metrics.SummaryOf(metric.TTFT), p.Metrics.SummaryOf(metric.E2E)} {
			s.Censored, s.P99, s.P999, s.Max, s.Mean = 81, nil, nil, nil, nil
			s.Over = map[string]float64{"p99": 60_000, "p99_9": 60_000, "max": 60_000, "mean": 2891.4}
		}
		p.Requests = result.Requests{Due: 2700, OK: 2619, Cut: 81, Errors: map[string]int{"timeout": 81}}
		p.Outcome = "degraded"
	})
	addRun("time-of-day", 12_345, func(run *result.Run, p *result.Point) {
		p.Seconds.Window = 3600
		o := &result.OverTime{Began: "2026-11-20T23:30:00+01:00", BlockS: 300, Metric: "ttft",
			Differ: []result.Differ{{Metric: "ttft", Slowest: 7, Quickest: 1, P: 1e-9}, {Metric: "tpot", Slowest: 6, Quickest: 1, P: .00163}}}
		for i, slower := range []float64{1, .95, 1.1, 1.2, 1.35, 1.6, 1.75, 1.74, 1.5, 1.3, 1.2, 1.1} {
			o.Blocks = append(o.Blocks, result.Block{DuePerS: 3.4 + .01*float64(i), InFlight: floatPointer(4 * slower), P50: floatPointer(90 * slower * (1 + .01*float64(i))), P90: floatPointer(120 * slower), P95: floatPointer(131.5 * slower), TPOT: floatPointer(8.3 * slower)})
		}
		p.OverTime = o
	})
	addRun("intervals", 12_345, func(run *result.Run, p *result.Point) {
		for x, s := range map[float64]*result.Summary{87.3: p.Metrics.SummaryOf(metric.TTFT), 8.41: p.Metrics.SummaryOf(metric.TPOT), 1155.2: p.Metrics.SummaryOf(metric.E2E)} {
			s.CI95 = map[string][2]float64{"p50": {.98 * x, 1.02 * x}, "mean": {1.01 * x, 1.07 * x}}
			s.NoInterval = map[string]result.Reason{"p90": fewSamples, "p95": fewSamples, "p99": fewSamples, "p99_9": fewSamples}
		}
		p.Throughput.CI95 = map[string][2]float64{"requests_per_s": {4.41, 4.59}, "output_tokens_per_s": {564.2, 587.6}}
		p.SLO = &result.SLO{Spec: "p99 ttft<200ms", Attained: floatPointer(.99926), CI95: &[2]float64{.9985, 1}, Met: "yes", Limits: []result.Limit{
			{Spec: "p99 ttft<200ms", Percentile: 99, Metric: "ttft", Value: floatPointer(165.9), Attained: floatPointer(.99926), Met: "yes"}}}
		p.Goodput = &result.Goodput{RequestsPerS: 4.4967}
	})
	addRun("undecided", 270, func(run *result.Run, p *result.Point) {
		p.Stability, p.StabilityWhy, p.Seconds.Window = "undecided", result.Reason{Code: result.FewResidences, N: 25, Needed: 30, Longer: result.Longer{Seconds: 80}}, 60
		p.Throughput.NoInterval = result.Reason{Code: result.FewResidences, N: 25, Needed: 100, Longer: result.Longer{Seconds: 250}}
		for _, s := range []*result.Summary{p.Metrics.SummaryOf(metric.TTFT), p.Metrics.SummaryOf(metric.E2E)} {
			s.NoInterval = map[string]result.Reason{"p50": p.Throughput.NoInterval, "p99": p.Throughput.NoInterval}
		}
	})
	withhold := func(why result.Reason, of ...*result.Summary) {
		for _, s := range of {
			*s = result.Summary{N: s.N, Min: s.Min, Withheld: map[string]result.Reason{"mean": why, "p50": why, "p99": why, "max": why}}
		}
	}
	addRun("unstable", 2700, func(run *result.Run, p *result.Point) {
		p.Stability, p.StabilityWhy, p.Outcome = "unstable", result.Reason{Code: result.QueueGrew, Share: .081}, "unstable"
		p.InFlight = []float64{9.12, 24.5, 45.1, 61, 84.2, 101.7, 118, 140.3, 155.5, 181, 199.9, 218}
		p.Growth = &result.Growth{PerS: .3645, Deficit: .081}
		withhold(p.StabilityWhy, p.Metrics.SummaryOf(metric.TTFT), p.Metrics.SummaryOf(metric.E2E))
		p.Throughput.NoInterval = result.Reason{Code: result.QueueGrew}
		p.Verdict = result.ValidWithFlags
		p.Checks[4] = NewCheck(result.CheckStability, result.Flag, .081, .02)
	})
	addRun("not-settled", 2700, func(run *result.Run, p *result.Point) {
		p.Load = result.Load{Loop: "closed", Concurrency: intPointer(40), ThinkMS: floatPointer(1500)}
		p.Stability, p.StabilityWhy = "stable", result.Reason{Code: result.ClosedLoop}
		p.InFlight = []float64{12.1, 13.3, 14.1, 14.9, 16, 18.6, 22.9, 28.1, 31, 33.2, 35.5, 36.4}
		m := p.Metrics
		withhold(result.Reason{Code: result.NotSettled}, m.SummaryOf(metric.TTFT), m.SummaryOf(metric.TPOT), m.SummaryOf(metric.ITL), m.SummaryOf(metric.ICL), m.SummaryOf(metric.Stall), m.SummaryOf(metric.E2E))
		p.Throughput.NoInterval = result.Reason{Code: result.NotSettled}
		p.Verdict = result.ValidWithFlags
		p.Checks[4] = NewCheck(result.CheckWarmup, result.Flag, 0, 2, "first_half", 14.8, "second_half", 31.2)
		p.Checks[4].Value, p.Checks[4].Case = nil, result.CaseDrift
	})
	addRun("few", 150, func(*result.Run, *result.Point) {})
	addRun("withheld", 8, func(run *result.Run, p *result.Point) {
		run.Target.Adaptations = []result.Adaptation{{Kind: result.TextLengths, Why: result.Reason{Code: result.PromptsNotCounted}}}
		p.Metrics.SetSummary(metric.ITL, SummaryAround(40, 8.2))
		p.Metrics.SetSummary(metric.ICL, nil)
	})
	addRun("classes", 2700, func(run *result.Run, p *result.Point) {
		run.Workload = json.RawMessage(`{"kind":"file","file":{"name":"traffic.jsonl","requests":2700},"sampling":{"stream":true}}`)
		class := func(n int, tokens, ttft float64) result.Class {
			return result.Class{Requests: result.Requests{Due: n}, Metrics: result.MetricsOf(map[metric.Name]*result.Summary{metric.InputTokens: SummaryAround(int64(n), tokens),
				metric.TTFT: SummaryAround(int64(n), ttft), metric.TPOT: SummaryAround(int64(n), 8.4), metric.E2E: SummaryAround(int64(n), ttft+1100)})}
		}
		odd := class(12, 90_000, 9123)
		odd.Metrics.SetSummary(metric.TPOT, nil)
		p.Classes = map[string]result.Class{"summarise a whole long report": odd, "chat": class(2400, 300, 45), "code": class(288, 2400, 160)}
	})
	addRun("not-streaming", 2700, func(run *result.Run, p *result.Point) {
		run.Workload = json.RawMessage(`{"kind":"random","input":"uniform(100,900)","output":"128","prefix":{"tokens":2048,"share":0.5,"prompt":"uniform(2148,2948)"},"sampling":{"stream":false}}`)
		p.Load = result.Load{Loop: "closed", Concurrency: intPointer(1), ThinkMS: floatPointer(1500)}
		m := &p.Metrics
		for _, name := range []metric.Name{metric.TTFT, metric.TPOT, metric.ITL, metric.ICL, metric.Stall} {
			m.SetSummary(name, nil)
		}
		m.Undefined = map[string]result.Reason{}
		for _, k := range []string{"ttft_ms", "tpot_ms", "itl_ms", "icl_ms", "stall_ms"} {
			m.Undefined[k] = result.Reason{Code: result.NotStreaming}
		}
	})
	addRun("errors", 2700, func(run *result.Run, p *result.Point) {
		p.Outcome, p.Verdict = "failing", result.ValidWithFlags
		p.Load.MaxInFlight = intPointer(64)
		p.Requests = result.Requests{Due: 2700, OK: 300, Failed: 2311, Cut: 88, Unsent: 1,
			Errors: map[string]int{"http_502": 1500, "http_503": 500, "rate_limited": 300, "timeout": 80, "reset": 11, "interrupted": 9},
			ErrorExamples: map[string]string{
				"http_502":     "HTML page: 502 Bad Gateway",
				"http_503":     "The server is overloaded",
				"rate_limited": "\x1b[31mSlow\r\ndown\x1b[0m: " + strings.Repeat("requests per minute are limited; ", 9),
			}}
		p.Throughput.OutputTokensPerS, p.Throughput.Why = nil, result.Reason{Code: result.OutputNotCounted}
		p.Checks[2] = NewCheck(result.CheckErrors, result.Flag, .889, .01, "n", 2400, "of", 2700)
	})
	addRun("several", 12_345, func(run *result.Run, p *result.Point) {
		second := *p
		second.Load.Rate = floatPointer(9)
		second.Verdict = result.ValidWithFlags
		second.Checks = append([]result.Check{NewCheck(result.CheckWindow, result.Flag, 2, 2.4, "slowest", 1.2)}, p.Checks...)
		run.Points = append(run.Points, second)
	})
	addRun("repeats", 12_345, func(run *result.Run, p *result.Point) {
		p.SLO = &result.SLO{Spec: "p99 ttft<200ms", Attained: floatPointer(.999), Met: "yes"}
		run.Points = append(run.Points, *p, *p)
		run.Repeats = &result.Repeated{Load: p.Load.Value(), Points: []int{0, 1, 2}, Met: map[result.Met]int{"yes": 2, "no": 1}, Covers: "this launch only",
			Median: map[string]float64{"due_per_s": 4.42, "requests_per_s": 4.5, "output_tokens_per_s": 575, "ttft_ms.p50": 51.2, "ttft_ms.p99": 166, "slo.attained": .999},
			Spread: map[string][2]float64{"due_per_s": {3.9, 4.55}, "requests_per_s": {4.4, 4.6}, "output_tokens_per_s": {563, 588.8}, "ttft_ms.p50": {51, 52}, "ttft_ms.p99": {150, 240}, "slo.attained": {.98, 1}, "e2e_ms.p99": {900, 2000}}}
	})
	addRun("went-away", 2700, func(run *result.Run, p *result.Point) {
		p.WentAway, p.Outcome, p.Stability, p.StabilityWhy = floatPointer(12.34), "failing", "undecided", result.Reason{Code: result.ServerWentAway}
		p.Requests.OK, p.Requests.Failed, p.Requests.Unsent = 300, 100, 2300
		p.Requests.Errors = map[string]int{"connect": 2400}
		p.Requests.ErrorExamples = map[string]string{"connect": "connect to 127.0.0.1:8000: connect: connection refused"}
	})
	addRun("interrupted", 40, func(run *result.Run, p *result.Point) {
		run.Interrupted = true
		p.Seconds.Warmup = 0
	})
	addRun("recovered", 0, func(run *result.Run, p *result.Point) { run.Recovered = true })
	all["recovered"].Points = nil
	addRun("virtual", 12_345, func(run *result.Run, p *result.Point) {
		run.Environment.Stamps = "virtual"
		run.Target = result.Target{Spec: "sim:llama-3.1-8b@h100", Kind: "sim", API: "openai-chat", Model: "llama-3.1-8b"}
		p.Metrics.SummaryOf(metric.ITL).Label = "amortised"
		p.Metrics.SetSummary(metric.ICL, SummaryAround(9000, 33))
	})
	return all
}

// SweepRun is a sweep of four loads, of which the last is too much, put to a limit
// that goodput counts by.
func SweepRun() *result.Run {
	run := ServerRun(2000)
	first := run.Points[0]
	run.Points = nil
	for i, rate := range []float64{4, 8.4, 33.6, 47.5} {
		p := first
		due, served, good := rate*1.0421, rate*.9987, rate*1.0412
		p.Load.Rate = &rate
		p.Stage = "curve"
		p.Throughput.DuePerS, p.Throughput.RequestsPerS, p.Throughput.OutputTokensPerS = &due, &served, floatPointer(served*1024)
		p.SLO = &result.SLO{Spec: "p99 ttft<200ms", Met: "yes", Attained: floatPointer(.999)}
		p.Metrics.SetSummary(metric.TTFT, SummaryAround(999, 87.3*rate))
		p.Metrics.SetSummary(metric.E2E, SummaryAround(999, 1155.2*rate))
		p.Metrics.SetSummary(metric.DecodeRate, SummaryAround(999, 100-rate))
		p.Goodput = &result.Goodput{RequestsPerS: good, OutputTokensPerS: floatPointer(good * 1024)}
		if i == 3 {
			p.Stability = "unstable"
		}
		run.Points = append(run.Points, p)
	}
	run.Curve = &result.Curve{Over: "rate", Points: []int{0, 1, 2, 3}, Pareto: result.Pareto{UserSpeed: []int{1, 2}, TTFT: []int{0, 1, 2}},
		Knee:       &result.Knee{Load: 33.6, Resampled: &[2]float64{8.4, 41.25}, Method: "the greatest throughput ÷ latency (power)"},
		Saturation: &result.Saturation{RequestsPerS: 45.125}}
	return run
}
