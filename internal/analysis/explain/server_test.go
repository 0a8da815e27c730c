package explain

import (
	"math"
	"strings"
	"testing"

	"pitot/internal/telemetry"
)

// What a server does not tell is no fact, and what it tells has its value.
func TestAddServer(t *testing.T) {
	var none telemetry.Samples
	w := none.WindowOf(0, 10e9)
	f := Facts{}
	f.AddServer(&w)
	if len(f) != 0 {
		t.Errorf("facts of nothing: %v", f)
	}
	var s telemetry.Samples
	for at := range int64(11) {
		x := float64(at)
		s.Add("server", telemetry.Running, at*1e9, 4)
		s.Add("server", telemetry.Waiting, at*1e9, max(x-3, 0))
		s.Add("server", telemetry.KVUse, at*1e9, x/10)
		s.Add("server", telemetry.QueueSum, at*1e9, .3*x)
		s.Add("server", telemetry.QueueCount, at*1e9, 2*x)
		s.Add("server", telemetry.Preemptions, at*1e9, 0)
		s.Add("server", telemetry.Requests, at*1e9, 2*x)
		s.Add("server", telemetry.PromptTokens, at*1e9, 100*x)
		s.Add("server", telemetry.OutputTokens, at*1e9, 100*x)
		s.Add("gpu", telemetry.GPUClock, at*1e9, 1200)
		s.Add("gpu", telemetry.GPUClockMost, at*1e9, 2000)
	}
	w = s.WindowOf(0, 10e9)
	f.AddServer(&w)
	for signal, want := range map[Signal]float64{
		Running: 4, RunningMost: 4, WaitingOften: .6, KVMost: .9, QueueMean: 150, Preempted: 0, Samples: 10, ClockShare: .6,
	} {
		if r, ok := f[signal]; !ok || math.Abs(r.Value-want) > 1e-9 {
			t.Errorf("%s is %v (%v), want %v", signal, r.Value, ok, want)
		}
	}
	for _, signal := range []Signal{PrefillMean, HitShare, ForeignShare, Throttled, MemoryBusy} {
		if f.hasAll(signal) {
			t.Errorf("%s is known, and nothing told it", signal)
		}
	}
}

// A clock that is held down is said to be so by what the GPU names, and no setting is
// advised that its board does not have. Beside another cause it does not vanish, and
// none is sure then.
func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		power, heat, limit, most float64
		claim, knob, to          string
	}{
		{.9, 0, 700, 700, "its power limit of 700 W (the board's highest), and not its heat", "quantization", "fp8"},
		{.9, 0, 500, 700, "its power limit of 500 W, and not its heat", "power limit", "700 W"},
		{.9, 0, 700, 0, "its power limit of 700 W, and not its heat", "power limit", "higher, where the board allows it"},
		{.9, .5, 700, 700, "its heat and its power limit of 700 W (the board's highest)", "quantization", "fp8"},
		{0, .5, 700, 700, "its heat, and not its power limit", "cooling", "better"},
	} {
		f := facts(ClockShare, .72, Throttled, c.power+c.heat, ByPower, c.power, ByHeat, c.heat, PowerLimit, c.limit)
		if c.most > 0 {
			f.Set(PowerMost, c.most, "W", FromStated)
		}
		p := Diagnose(&Case{Symptom: token, Value: 20, Facts: f}).Primary
		if p.Cause != Throttling || !strings.Contains(p.Claim, c.claim) || p.Confirm != "" || p.Try == nil || p.Try.Knob != c.knob || p.Try.To != c.to {
			t.Errorf("%+v: %+v, try %+v", c, p, p.Try)
		}
	}
	for name, f := range map[string]Facts{
		"a slow clock":                   facts(ClockShare, .856, Running, 1.),
		"time, and the clock is unknown": facts(Throttled, .9, ByPower, .9, ByHeat, 0., Running, 1.),
	} {
		d := Diagnose(&Case{Symptom: token, Value: 20, Facts: f, Twin: twin(map[Cause]float64{Host: .6})})
		if d.Primary.Cause != Host || d.Primary.Confidence == Sure || len(d.Also) != 1 || d.Also[0].Cause != Throttling {
			t.Errorf("%s: %+v", name, d)
		}
	}
	f := facts(ClockShare, .99, Throttled, .9, Running, 1.)
	if d := Diagnose(&Case{Symptom: token, Value: 20, Facts: f, Twin: twin(map[Cause]float64{Host: .6})}); d.Primary.Confidence != Sure || len(d.Also) != 0 {
		t.Errorf("a clock near its highest: %+v", d)
	}
}
