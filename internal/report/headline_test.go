package report

import (
	"pitot/internal/report/reporttest"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"strings"
	"testing"
)

// What nobody told is not guessed.
func TestConditions(t *testing.T) {
	m := Build(reporttest.ServerRun(2000), "")
	got := map[string]Condition{}
	for _, c := range m.Conditions {
		got[c.Name] = c
	}
	for _, name := range []string{"Hardware", "GPUs", "Precision", "Engine flags", "Price"} {
		if c := got[name]; c.Known || c.Value != notKnown {
			t.Errorf("%s: %q, want %q", name, c.Value, notKnown)
		}
	}
	if c := got["Engine"]; c.Value != "vllm 0.11.2" {
		t.Errorf("engine: %q", c.Value)
	}
	run := reporttest.ServerRun(2000)
	run.Notes = map[string]string{"gpu": "H100 SXM", "precision": "fp8", "flags": "--tensor-parallel-size 2"}
	for _, c := range Build(run, "").Conditions {
		switch c.Name {
		case "Hardware", "Precision", "Engine flags":
			if !c.Known {
				t.Errorf("%s is in the notes", c.Name)
			}
		}
	}
}

// A curve that does not bend is no sweep that went wrong.
func TestHeadlineOfStraightCurve(t *testing.T) {
	run := reporttest.ServerRun(2000)
	second := run.Points[0]
	rate := 2 * *second.Load.Rate
	second.Load.Rate = &rate
	run.Points = append(run.Points, second)
	run.Curve = &result.Curve{Over: "rate", Points: []int{0, 1}, NoKnee: result.Reason{Code: result.NoBend}}
	if got, want := Build(run, "").Headline.Sentence, "From 4.5 to 9 req/s there is neither a knee nor a saturation"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	run.Curve.UnstableFrom = &rate
	if got, want := Build(run, "").Headline.Sentence, "From 9 req/s on the queue grows for as long as the load lasts"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a sweep quotes is of no load above one that did not meet the SLO.
func TestNothingIsQuotedAboveAMissedLoad(t *testing.T) {
	run := reporttest.SweepRun() // 4, 8.4, 33.6 and 47.5, the last unstable
	for i := range run.Points {
		usd := 10 - float64(i)
		run.Points[i].Cost = &result.Cost{USDPerMGoodOutput: &usd}
	}
	quoted := func() string { return sweepSentence(run, newOverview(run)) }
	if got, at := quoted(), mostGoodput(run); got != "SLO met up to 33.6 req/s, missed at 47.5 (4 loads measured)" || at != 2 {
		t.Errorf("%q, goodput at %d", got, at)
	}
	slo := *run.Points[1].SLO
	slo.Met = result.No
	run.Points[1].SLO = &slo
	if got, want := quoted(), "SLO met up to 4 req/s, missed at 8.4 (4 loads measured)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	cheap, _ := cheapestPoint(run)
	if at := mostGoodput(run); at != 0 || cheap != 0 {
		t.Errorf("goodput at %d, cost at %d", at, cheap)
	}
	run.Points[0].SLO = &slo
	if got, want := quoted(), "SLO missed at 4 req/s, the lightest load that was decided (4 loads measured)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if cheap, _ := cheapestPoint(run); cheap >= 0 || mostGoodput(run) >= 0 {
		t.Error("something is quoted though the lowest load did not meet the SLO")
	}
}

// A sweep that is INVALID at most of its loads says that first.
func TestSweepThatIsMostlyInvalid(t *testing.T) {
	run := reporttest.SweepRun()
	for i := range 3 {
		run.Points[i].Verdict = result.Invalid
	}
	if got, want := sweepSentence(run, newOverview(run)), "INVALID at 3 of 4 loads"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	run.Points[0].Verdict, run.Points[1].Verdict = result.Valid, result.Valid
	if got := sweepSentence(run, newOverview(run)); strings.Contains(got, "INVALID") {
		t.Errorf("%q", got)
	}
}

// An INVALID run says which of its figures hold, by what made it so.
func TestWhatAnInvalidRunStillKnows(t *testing.T) {
	for cause, want := range map[string]string{
		result.CheckSendLag:      "Still known: 2,700 of 2,700 requests answered. TTFT and E2E were at most what was measured: a slow client only adds to them.",
		result.CheckClientLimits: "Still known: 2,700 of 2,700 requests answered, and the client did not send all of them.",
		result.CheckRecording:    "Still known: at least 2,700 requests were answered. The server's own metrics hold.",
	} {
		run := reporttest.ServerRun(2700)
		p := &run.Points[0]
		p.Verdict, p.Checks = result.Invalid, []result.Check{{Name: cause, Status: result.Fail}}
		if p.Server = nil; cause == result.CheckRecording {
			p.Server = map[string]float64{"prefix_hit_share": .5}
		}
		h := Build(run, "").Headline
		if !strings.HasPrefix(h.Sentence, "INVALID: ") {
			t.Error(h.Sentence)
		}
		if got := h.Interval; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A run that ended before its window was measured nothing, and says why.
func TestHeadlineOfARunThatEndedInItsWarmUp(t *testing.T) {
	run := reporttest.ServerRun(2000)
	run.Interrupted = true
	run.Points[0].Requests, run.Points[0].Seconds = result.Requests{}, result.Seconds{Warmup: 4}
	if got := Build(run, "").Headline.Sentence; !strings.HasSuffix(got, ": nothing was measured, the run ended during its warm-up") {
		t.Error(got)
	}
}

// An objective that is missed because more comes than is served says so in the first line.
func TestHeadlineOfAnOverload(t *testing.T) {
	run, served := reporttest.ServerRun(2000), 23.94
	p := &run.Points[0]
	p.Outcome, p.SLO, p.Throughput.RequestsPerS = result.Unstable, &result.SLO{Spec: "p99 ttft<200ms", Met: result.No}, &served
	if got := Build(run, "").Headline.Sentence; !strings.HasSuffix(got, ": SLO missed, its queue grew at 23.9 answered/s") {
		t.Error(got)
	}
}

// A run that was stopped says so before its figures, and advises nothing against the server.
func TestHeadlineOfAStoppedRun(t *testing.T) {
	run := reporttest.ServerRun(2000)
	run.Interrupted = true
	p := &run.Points[0]
	p.Requests = result.Requests{Due: 238, OK: 18, Cut: 220, Errors: map[string]int{record.ErrInterrupted: 220}}
	if got := Build(run, "").Headline.Sentence; !strings.HasPrefix(got, "4.5 req/s (stopped, 220 of 238 requests under way): ") {
		t.Error(got)
	}
	p.Requests = result.Requests{Due: 10, Cut: 10, Errors: map[string]int{record.ErrInterrupted: 10}}
	if got := Build(run, "").Headline.Sentence; !strings.HasSuffix(got, ": the run was stopped before any of 10 requests was answered") {
		t.Error(got)
	}
}

// What a run proposes to search for has the requests of the run, not the default ones.
func TestNextSearchHasTheRequestsOfTheRun(t *testing.T) {
	run := reporttest.ServerRun(2000)
	run.Command = []string{"pitot", "run", "http://h:1", "--rate", "4", "--input=512", "--workload", "chat", "--duration", "1m", "--slo", "chat", "--out", "d"}
	run.Points[0].SLO = &result.SLO{Spec: "p99 ttft<200ms", Met: result.Yes, Near: true}
	m := Build(run, "d")
	want := "pitot find " + run.Target.Spec + " --input 512 --workload chat --slo chat --at 4.5"
	if got := m.nextCommand(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	run.Command = append(run.Command, "--config", "x.yaml")
	if got := m.nextCommand(); got != "pitot explain d" {
		t.Errorf("%q with a file of settings", got)
	}
}
