package explain

import "pitot/internal/telemetry"

// AddServer puts in what a server and its GPUs told of themselves in a window. Of times
// there are means alone, and of all requests: a percentile of a client's is never taken
// apart by them.
func (f Facts) AddServer(w *telemetry.Window) {
	gauge := func(of telemetry.Signal, set func(d telemetry.Distribution)) {
		if d, ok := w.Gauge(of); ok {
			set(d)
		}
	}
	gauge(telemetry.Running, func(d telemetry.Distribution) {
		f.Set(Running, d.Mean, "", FromServer)
		f.Set(RunningMost, d.Max, "", FromServer)
		f.Set(RunningUsual, d.P50, "", FromServer)
		f.Set(Samples, float64(d.N), "", FromServer)
	})
	gauge(telemetry.Waiting, func(d telemetry.Distribution) {
		f.Set(Waiting, d.Mean, "", FromServer)
		f.Set(WaitingOften, positiveShare(&d), "share", FromServer)
	})
	gauge(telemetry.KVUse, func(d telemetry.Distribution) {
		f.Set(KVUse, d.Mean, "share", FromServer)
		f.Set(KVMost, d.Max, "share", FromServer)
	})
	mean := func(to Signal, sum, count telemetry.Signal) {
		if x, ok := w.Ratio(sum, count); ok {
			f.Set(to, x*1e3, "ms", FromServer)
		}
	}
	mean(QueueMean, telemetry.QueueSum, telemetry.QueueCount)
	mean(PrefillMean, telemetry.PrefillSum, telemetry.PrefillCount)
	mean(DecodeMean, telemetry.DecodeSum, telemetry.DecodeCount)
	if x, ok := w.Ratio(telemetry.Preemptions, telemetry.Requests); ok {
		f.Set(Preempted, x, "", FromServer)
	}
	if x, ok := w.Ratio(telemetry.PrefixHits, telemetry.PrefixQueries); ok {
		f.Set(HitShare, x, "share", FromServer)
	}
	if x, ok := w.Growth(telemetry.PrefillCount); ok {
		f.Set(EngineServed, x, "", FromServer)
	}
	// The process that serves a page of metrics is the one that answers; engines run in others.
	for signal, from := range map[telemetry.Signal]string{telemetry.ProcessCPU: FromServer, telemetry.ListenerCPU: FromKernel} {
		if x, ok := w.Rate(signal); ok && (from == FromKernel || !f.hasAll(FrontBusy)) {
			f.Set(FrontBusy, x, "", from)
			if each, ok := w.Ratio(signal, telemetry.PrefillCount); ok {
				f.Set(FrontWork, each*1e3, "ms", from)
			}
		}
	}
	if x, ok := w.Rate(telemetry.ListenerWait); ok {
		f.Set(FrontWaits, x, "share", FromKernel)
	}
	clock, is := w.Gauge(telemetry.GPUClock)
	most, known := w.Gauge(telemetry.GPUClockMost)
	if is && known && most.Max > 0 {
		f.Set(ClockShare, min(clock.Mean/most.Max, 1), "share", FromGPU)
	}
	power, byPower := w.Rate(telemetry.GPUThrottledPower)
	heat, byHeat := w.Rate(telemetry.GPUThrottledHeat)
	if gpus, ok := w.Fact(telemetry.GPUs); ok && gpus > 0 {
		if byPower || byHeat {
			f.Set(Throttled, min((power+heat)/gpus, 1), "share", FromGPU)
		}
		if byPower {
			f.Set(ByPower, min(power/gpus, 1), "share", FromGPU)
		}
		if byHeat {
			f.Set(ByHeat, min(heat/gpus, 1), "share", FromGPU)
		}
		gauge(telemetry.GPUPowerLimit, func(d telemetry.Distribution) { f.Set(PowerLimit, d.Mean/gpus, "W", FromGPU) })
	}
	gauge(telemetry.GPUMemoryActive, func(d telemetry.Distribution) { f.Set(MemoryBusy, d.Mean, "share", FromGPU) })
	gauge(telemetry.GPUTensorActive, func(d telemetry.Distribution) { f.Set(TensorBusy, d.Mean, "share", FromGPU) })
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
