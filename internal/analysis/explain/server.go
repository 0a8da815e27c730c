package explain

import "pitot/internal/telemetry"

// AddServer puts in what a server and its GPUs told of themselves in a window. Of times
// there are means alone, and of all requests: a percentile of a client's is never taken
// apart by them.
func (f Facts) AddServer(w *telemetry.Window) {
	set := func(s Signal, unit, from string) func(x float64, ok bool) {
		return func(x float64, ok bool) {
			if unit == "ms" {
				x *= 1e3
			}
			if ok {
				f.Set(s, x, unit, from)
			}
		}
	}
	if d, ok := w.Gauge(telemetry.Running); ok {
		f.Set(Running, d.Mean, "", FromServer)
		f.Set(RunningMost, d.Max, "", FromServer)
		f.Set(RunningUsual, d.P50, "", FromServer)
		f.Set(Samples, float64(d.N), "", FromServer)
	}
	if d, ok := w.Gauge(telemetry.Waiting); ok {
		f.Set(Waiting, d.Mean, "", FromServer)
		f.Set(WaitingOften, positiveShare(&d), "share", FromServer)
	}
	if d, ok := w.Gauge(telemetry.KVUse); ok {
		f.Set(KVUse, d.Mean, "share", FromServer)
		f.Set(KVMost, d.Max, "share", FromServer)
	}
	set(QueueMean, "ms", FromServer)(w.Ratio(telemetry.QueueSum, telemetry.QueueCount))
	set(PrefillMean, "ms", FromServer)(w.Ratio(telemetry.PrefillSum, telemetry.PrefillCount))
	set(DecodeMean, "ms", FromServer)(w.Ratio(telemetry.DecodeSum, telemetry.DecodeCount))
	set(Preempted, "", FromServer)(w.Ratio(telemetry.Preemptions, telemetry.Requests))
	set(HitShare, "share", FromServer)(w.Ratio(telemetry.PrefixHits, telemetry.PrefixQueries))
	set(EngineServed, "", FromServer)(w.Growth(telemetry.PrefillCount))
	// The process that serves a page of metrics is the one that answers; engines run in others.
	for signal, from := range map[telemetry.Signal]string{telemetry.ProcessCPU: FromServer, telemetry.ListenerCPU: FromKernel} {
		if x, ok := w.Rate(signal); ok && (from == FromKernel || !f.hasAll(FrontBusy)) {
			f.Set(FrontBusy, x, "", from)
			set(FrontWork, "ms", from)(w.Ratio(signal, telemetry.PrefillCount))
		}
	}
	set(FrontWaits, "share", FromKernel)(w.Rate(telemetry.ListenerWait))
	clock, is := w.Gauge(telemetry.GPUClock)
	most, known := w.Gauge(telemetry.GPUClockMost)
	set(ClockShare, "share", FromGPU)(min(clock.Mean/most.Max, 1), is && known && most.Max > 0)
	power, byPower := w.Rate(telemetry.GPUThrottledPower)
	heat, byHeat := w.Rate(telemetry.GPUThrottledHeat)
	if gpus, ok := w.Fact(telemetry.GPUs); ok && gpus > 0 {
		set(Throttled, "share", FromGPU)(min((power+heat)/gpus, 1), byPower || byHeat)
		set(ByPower, "share", FromGPU)(min(power/gpus, 1), byPower)
		set(ByHeat, "share", FromGPU)(min(heat/gpus, 1), byHeat)
		limit, ok := w.Gauge(telemetry.GPUPowerLimit)
		set(PowerLimit, "W", FromGPU)(limit.Mean/gpus, ok)
	}
	memory, ok := w.Gauge(telemetry.GPUMemoryActive)
	set(MemoryBusy, "share", FromGPU)(memory.Mean, ok)
	tensor, ok := w.Gauge(telemetry.GPUTensorActive)
	set(TensorBusy, "share", FromGPU)(tensor.Mean, ok)
}

// positiveShare is about the share of samples above 0.
func positiveShare(d *telemetry.Distribution) float64 {
	switch {
	case d.Min > 0:
		return 1
	case d.P50 > 0:
		return 0.6
	case d.P95 > 0:
		return 0.2
	case d.Max > 0:
		return 0.04
	}
	return 0
}
