package validity

import (
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// Every check says what to do, and none that is no check.
func TestEveryCheckHasARemedy(t *testing.T) {
	for _, k := range result.CheckKinds() {
		if remedies[k.Name].code == "" {
			t.Errorf("%s has no remedy", k.Name)
		}
	}
	if len(remedies) != len(result.CheckKinds()) {
		t.Errorf("%d remedies of %d checks", len(remedies), len(result.CheckKinds()))
	}
}

func TestAdvice(t *testing.T) {
	answered, refused := result.Requests{Due: 60, OK: 60}, result.Requests{Due: 60, Failed: 60}
	limited := result.Requests{Due: 36, OK: 18, Failed: 18, Errors: map[string]int{record.ErrRateLimited: 18}}
	http := func(workload string) *result.Run {
		return &result.Run{Target: result.Target{Kind: "http"}, Workload: []byte(workload)}
	}
	after, allows, users := 20., 2.5, 4
	behind := result.Check{Name: result.CheckAchieved, Status: result.Flag}
	held := result.Check{Name: result.CheckRateLimits, Status: result.Flag, Detail: map[string]float64{"n": 3}}
	for name, c := range map[string]struct {
		run   *result.Run
		point result.Point
		check result.Check
		want  []result.Reason
	}{
		"nothing was served":      {nil, result.Point{Requests: refused}, result.Check{Name: result.CheckErrors}, []result.Reason{{Code: result.AdviseSeeErrors}}},
		"samples of nothing":      {nil, result.Point{Requests: refused}, result.Check{Name: result.CheckSamples}, []result.Reason{{Code: result.AdviseNoLonger}}},
		"stability of nothing":    {nil, result.Point{Requests: refused}, result.Check{Name: result.CheckStability}, []result.Reason{{Code: result.AdviseNotTheLoad}}},
		"stopped":                 {nil, result.Point{Requests: result.Requests{Due: 10, Cut: 10, Errors: map[string]int{record.ErrInterrupted: 10}}}, result.Check{Name: result.CheckErrors}, []result.Reason{{Code: result.AdviseLetItGoOn}}},
		"not to ignore the end":   {nil, result.Point{Requests: answered}, result.Check{Name: result.CheckOutputs}, []result.Reason{{Code: result.AdviseIgnoreEOS}}},
		"ignore_eos not sent":     {http(`{"sampling":{"stream":true}}`), result.Point{Requests: answered}, result.Check{Name: result.CheckOutputs}, []result.Reason{{Code: result.AdviseEOSNotSent}}},
		"ignore_eos sent":         {http(`{"sampling":{"ignore_eos":true}}`), result.Point{Requests: answered}, result.Check{Name: result.CheckOutputs}, []result.Reason{{Code: result.AdviseIgnoreEOS}}},
		"ignore_eos refused":      {&result.Run{Target: result.Target{Adaptations: []result.Adaptation{{Kind: result.NoIgnoreEOS}}}}, result.Point{Requests: answered}, result.Check{Name: result.CheckOutputs}, []result.Reason{{Code: result.AdviseEOSRefused}}},
		"not kept up":             {nil, result.Point{Requests: answered}, behind, []result.Reason{{Code: result.AdviseLowerRate}}},
		"not kept up in a search": {nil, result.Point{Requests: answered, Stage: "bracket"}, behind, []result.Reason{{Code: result.AdviseSearchDecidesLoad}}},
		"cut in a search":         {nil, result.Point{Requests: answered, Stage: "bracket"}, result.Check{Name: result.CheckAchieved, Case: result.CaseCut}, []result.Reason{{Code: result.AdviseRaiseTimeout}}},
		"window of a queue":       {nil, result.Point{Requests: answered, Checks: []result.Check{behind}}, result.Check{Name: result.CheckWindow}, nil},
		"window":                  {nil, result.Point{Requests: answered}, result.Check{Name: result.CheckWindow}, []result.Reason{{Code: result.AdviseLonger}}},
		"window of a sweep":       {nil, result.Point{Requests: answered, Stage: result.StageCurve}, result.Check{Name: result.CheckWindow}, []result.Reason{{Code: result.AdviseLonger}}},
		"window of a search":      {nil, result.Point{Requests: answered, Stage: "bracket"}, result.Check{Name: result.CheckWindow}, []result.Reason{{Code: result.AdviseSearchDecidesWindow}}},
		"no window of a rate":     {nil, result.Point{}, result.Check{Name: result.CheckWindow, Case: result.CaseEmpty}, nil},
		"no window of users":      {nil, result.Point{Load: result.Load{Concurrency: &users}}, result.Check{Name: result.CheckWindow, Case: result.CaseEmpty}, []result.Reason{{Code: result.AdviseMoreRequests}}},
		"residences":              {nil, result.Point{Requests: answered}, result.Check{Name: result.CheckResidences, Detail: map[string]float64{"ask_seconds": 80}}, []result.Reason{{Code: result.AdviseLonger, Longer: result.Longer{Seconds: 80}}}},
		"prompts by a tokenizer":  {nil, result.Point{}, result.Check{Name: result.CheckTokenizer, Detail: map[string]float64{"prompts": 1}}, []result.Reason{{Code: result.AdvisePromptTokenizer}}},
		"refused with 429": {nil, result.Point{Requests: limited}, result.Check{Name: result.CheckErrors},
			[]result.Reason{{Code: result.AdviseReadServed}, {Code: result.AdviseRefusedByLimits, N: 18}, {Code: result.AdviseOrRetry}, {Code: result.AdviseOrHoldBack}}},
		"refused in spite of retries": {nil, result.Point{Requests: limited, Retries: &result.Retries{}, RateLimits: &result.RateLimits{Refused: 18, RetryAfter: &after}}, result.Check{Name: result.CheckErrors},
			[]result.Reason{{Code: result.AdviseReadServed}, {Code: result.AdviseRefusedByLimits, N: 18, Seconds: 20}, {Code: result.AdviseOrHoldBack}}},
		"refused in a sweep": {nil, result.Point{Requests: limited, Stage: result.StageCurve}, result.Check{Name: result.CheckErrors},
			[]result.Reason{{Code: result.AdviseReadServed}, {Code: result.AdviseRefusedByLimits, N: 18}, {Code: result.AdviseOrRetry}}},
		"held back": {nil, result.Point{Requests: answered, Checks: []result.Check{held}, RateLimits: &result.RateLimits{Requests: &result.RateLimit{AllowsPerS: &allows}}}, behind,
			[]result.Reason{{Code: result.AdviseWaitedForLimits, RequestsPerS: 2.5}}},
	} {
		run := c.run
		if run == nil {
			run = &result.Run{}
		}
		c.check.Status = result.Flag
		run.Points = []result.Point{c.point}
		run.Points[0].Checks = append(run.Points[0].Checks, c.check)
		AddAdvice(run)
		got := run.Points[0].Checks[len(run.Points[0].Checks)-1].Advice
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %+v, want %+v", name, got[i], c.want[i])
			}
		}
	}
}
