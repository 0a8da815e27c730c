package explain

import (
	"math"
	"testing"

	"pitot/internal/telemetry"
)

// What a server does not tell is no fact, and what it tells has its value.
func TestAddServer(t *testing.T) {
	var none telemetry.Samples
	w := none.Window(0, 10e9)
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
	w = s.Window(0, 10e9)
	f.AddServer(&w)
	for signal, want := range map[Signal]float64{
		Running: 4, RunningMost: 4, WaitingOften: .6, KVMost: .9, QueueMean: 150, Preempted: 0, Samples: 10, ClockShare: .6,
	} {
		if r, ok := f[signal]; !ok || math.Abs(r.Value-want) > 1e-9 {
			t.Errorf("%s is %v (%v), want %v", signal, r.Value, ok, want)
		}
	}
	for _, signal := range []Signal{PrefillMean, HitShare, ForeignShare, Throttled, MemoryBusy} {
		if f.has(signal) {
			t.Errorf("%s is known, and nothing told it", signal)
		}
	}
}
