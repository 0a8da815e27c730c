package report

import (
	"strings"
	"testing"

	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Every check has words for what it found, in every case and without a number,
// and says what to do.
func TestEveryCheckIsPutIntoWords(t *testing.T) {
	cases := []string{"", result.CaseUnknown, result.CaseGone, result.CaseEmpty, result.CaseLate, result.CaseDrift,
		result.CaseClosed, result.CaseChance, result.CaseBacklog, result.CaseCut, result.CaseProcess, result.CaseConnections, result.CaseHost, result.CaseThrottled, result.CaseTokenizer, result.CaseIDs, result.CaseBeyond, "kernel", "user", "virtual"}
	for _, k := range result.Checks() {
		if _, ok := checkWords()[k.Name]; !ok {
			t.Errorf("%s has no words", k.Name)
		}
		for _, is := range cases {
			for _, status := range []result.Status{result.Pass, result.Flag, result.Fail} {
				c := result.NewCheck(k.Name, 1, 2)
				c.Case, c.Status = is, status
				for _, known := range []bool{true, false} {
					if !known {
						c.Value = nil
					}
					m := BuildCheck(&c)
					if m.Value == "" && k.Name != result.CheckStamps || m.Limit == "" || m.Advice == "" || strings.Contains(m.Value+m.Limit+m.Advice, "%!") {
						t.Errorf("%s, %q: %+v", k.Name, is, m)
					}
				}
			}
		}
	}
	for name := range checkWords() {
		if k := result.NewCheck(name, 0, 0); k.Unit == "" {
			t.Errorf("there are words for %s, which is no check", name)
		}
	}
}

// A tokenizer of another model may count for several providers, and make no prompts.
func TestOtherTokenizer(t *testing.T) {
	c := result.NewCheck(result.CheckTokenizer, 3, 0).With(map[string]float64{"ours": 90, "theirs": 93})
	if m := BuildCheck(&c); !strings.Contains(m.Advice, "it may stay") {
		t.Errorf("%+v", m)
	}
	c.Detail["prompts"] = 1
	if m := BuildCheck(&c); strings.Contains(m.Advice, "it may stay") || !strings.Contains(m.Advice, "give the model's own tokenizer") {
		t.Errorf("%+v", m)
	}
}

// Where nothing was served no check speaks of latencies or asks for more of the same.
func TestAdviceWhereNothingWasServed(t *testing.T) {
	p := &result.Point{Requests: result.Requests{Due: 60, Failed: 60}}
	for _, name := range []string{result.CheckErrors, result.CheckSamples, result.CheckAchieved, result.CheckStability} {
		c := result.NewCheck(name, 1, .01)
		c.Status = result.Flag
		if m := BuildCheckOf(&result.Run{}, p, &c); !strings.HasPrefix(m.Advice, "Nothing was served") {
			t.Errorf("%s: %q", name, m.Advice)
		}
	}
}

// Nobody is told to make a server ignore the end of a sequence that refused just that.
func TestAdviceWhereIgnoreEOSWasRefused(t *testing.T) {
	c := result.NewCheck(result.CheckOutputs, 1, .01)
	c.Status = result.Flag
	p := &result.Point{Requests: result.Requests{Due: 60, OK: 60}}
	if m := BuildCheckOf(&result.Run{}, p, &c); !strings.HasPrefix(m.Advice, "Make the server ignore") {
		t.Errorf("%q", m.Advice)
	}
	unsent := &result.Run{Target: result.Target{Kind: "http"}, Workload: []byte(`{"sampling":{"stream":true}}`)}
	if m := BuildCheckOf(unsent, p, &c); !strings.Contains(m.Advice, "ignore_eos was not sent") {
		t.Errorf("%q", m.Advice)
	}
	unsent.Workload = []byte(`{"sampling":{"ignore_eos":true}}`)
	if m := BuildCheckOf(unsent, p, &c); !strings.HasPrefix(m.Advice, "Make the server ignore") {
		t.Errorf("%q", m.Advice)
	}
	run := &result.Run{Target: result.Target{Adaptations: []result.Adaptation{{Kind: result.NoIgnoreEOS}}}}
	if m := BuildCheckOf(run, p, &c); !strings.HasPrefix(m.Advice, "The server refused ignore_eos") {
		t.Errorf("%q", m.Advice)
	}
}

// Where the server does not keep up no check asks for more of the same load.
func TestAdviceWhereTheServerDoesNotKeepUp(t *testing.T) {
	behind, window := result.NewCheck(result.CheckAchieved, 9, 40), result.NewCheck(result.CheckWindow, 9, 0)
	behind.Status, window.Status = result.Flag, result.Flag
	p := &result.Point{Requests: result.Requests{Due: 60, OK: 60}, Checks: []result.Check{behind, window}}
	if m := BuildCheckOf(&result.Run{}, p, &behind); !strings.Contains(m.Advice, "Lower the rate") {
		t.Errorf("%+v", m)
	}
	if m := BuildCheckOf(&result.Run{}, p, &window); m.Advice != "" {
		t.Errorf("%+v", m)
	}
	p.Stability = stat.Stable
	if text := balance(p); text != "" {
		t.Errorf("beside a server that does not keep up: %q", text)
	}
	cut := behind
	cut.Case = result.CaseCut
	if text := balance(&result.Point{Stability: stat.Stable, Requests: p.Requests, Checks: []result.Check{cut}}); !strings.HasPrefix(text, "queue stable") {
		t.Errorf("beside requests that were cut off: %q", text)
	}
	p.Stage = "bracket" // nobody asked a search for this load
	if m := BuildCheckOf(&result.Run{}, p, &behind); m.Advice != decidedBeyond {
		t.Errorf("%+v", m)
	}
	p.Stage, p.Checks = "", p.Checks[1:]
	if m := BuildCheckOf(&result.Run{}, p, &window); m.Advice == "" {
		t.Errorf("%+v", m)
	}
}

// Only a search decides how long its windows are: of a sweep that is the user's, who has no --budget there.
func TestAdviceToMeasureLongerIsOfTheVerb(t *testing.T) {
	short := result.NewCheck(result.CheckWindow, 9, 0)
	short.Status = result.Flag
	for stage, want := range map[string]string{"": "--duration", result.StageCurve: "--duration", "bracket": "--budget"} {
		p := &result.Point{Stage: stage, Requests: result.Requests{Due: 60, OK: 60}}
		if m := BuildCheckOf(&result.Run{}, p, &short); !strings.Contains(m.Advice, want) {
			t.Errorf("%q: %q", stage, m.Advice)
		}
	}
	short.Case = result.CaseEmpty // of a rate: the run ended in its warm-up
	if m := BuildCheckOf(&result.Run{}, &result.Point{}, &short); m.Advice != "" {
		t.Errorf("%q", m.Advice)
	}
}
