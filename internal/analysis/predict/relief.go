package predict

import (
	"maps"
	"slices"
	"strconv"

	"pitot/internal/analysis/explain"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
)

// What taking a cause away makes of a deployment, and what turning a knob does.

// speedup is the factor by which a relieved resource is faster: what it did takes a quarter less.
const speedup = 4.0 / 3

// RelieveCause gives the deployment with one cause relieved: a rate that is a third higher, a
// limit twice as high, a cost of the host of nothing. ok is false of what the twin does
// not model, or where there is nothing to relieve.
func RelieveCause(d *deploy.Deployment, cause explain.Cause) (relieved *deploy.Deployment, ok bool) {
	c := copyDeployment(d)
	e, s := &c.Efficiency, &c.Settings
	switch cause {
	case explain.Compute:
		for t := range c.Accelerator.TFLOPS {
			c.Accelerator.TFLOPS[t] *= speedup
		}
	case explain.Bandwidth:
		c.Accelerator.BandwidthGBs *= speedup
	case explain.Host:
		e.PerStep, e.PerRequest, e.PerPrefill, e.PerLayer, e.PerLaunch = 0, 0, 0, 0, 0
	case explain.Links:
		if c.TensorParallel < 2 && !c.IsLockstep() {
			return nil, false
		}
		e.ExchangeGBs *= speedup
		e.Exchange = e.Exchange * 3 / 4
		e.CollectiveGBs *= speedup
		e.Collective = e.Collective * 3 / 4
	case explain.Seats:
		c.SetGraphSize(d.GraphSize()) // which grows with the seats: of launching kernels this is no relief
		s.MaxNumSeqs *= 2
		s.MaxNumBatchedTokens = max(s.MaxNumBatchedTokens, s.MaxNumSeqs)
	case explain.KVCache:
		s.NumGPUBlocks *= 2
	case explain.Budget:
		s.MaxNumBatchedTokens *= 2
	case explain.PrefixCache:
		if s.EnablePrefixCaching {
			return nil, false
		}
		s.EnablePrefixCaching = true
	case explain.Frontend:
		if s.Frontend == (sim.Frontend{}) {
			return nil, false
		}
		s.Frontend = sim.Frontend{}
	default:
		return nil, false
	}
	return c, true
}

// modelled are the causes that the twin can be relieved of.
var modelled = []explain.Cause{
	explain.Compute, explain.Bandwidth, explain.Host, explain.Links, explain.Seats, explain.KVCache, explain.Budget, explain.PrefixCache, explain.Frontend,
}

// copyDeployment is a deployment that can be changed.
func copyDeployment(d *deploy.Deployment) *deploy.Deployment {
	c := *d
	c.Accelerator.TFLOPS = maps.Clone(d.Accelerator.TFLOPS)
	return &c
}

// knob is a setting of the server, and how it is turned.
type knob struct {
	name string
	of   []explain.Cause // that it may help against
	// turns gives the values to try, nil where it cannot be turned.
	turns func(d *deploy.Deployment) []string
	// changesAnswers says that it makes another model of it, whose answers have to be
	// judged again.
	changesAnswers bool
	from           func(d *deploy.Deployment) string     // its value, nil for what the setting's field has
	set            func(d *deploy.Deployment, to string) // nil where setting it is all there is to do
}

// multiplesWithin gives a whole number by factors, within bounds.
func multiplesWithin(n, least, most int, factors ...float64) (list []string) {
	for _, f := range factors {
		if x := int(float64(n) * f); x != n && x >= least && x <= most {
			list = append(list, strconv.Itoa(x))
		}
	}
	return list
}

// onceIf is a value to try where there is something to turn.
func onceIf(turns bool, to string) []string {
	if !turns {
		return nil
	}
	return []string{to}
}

// value returns the setting of a deployment, as it is written.
func (k *knob) value(d *deploy.Deployment) string {
	if k.from != nil {
		return k.from(d)
	}
	switch field := d.Field(k.name).(type) {
	case *int:
		return strconv.Itoa(*field)
	case *bool:
		return strconv.FormatBool(*field)
	}
	return ""
}

// knobs are in the order in which they are tried: what is free comes before what makes
// another model of it.
var knobs = []knob{
	{name: "max_num_seqs", of: []explain.Cause{explain.Seats, explain.KVCache, explain.Bandwidth},
		turns: func(d *deploy.Deployment) []string {
			most := d.Settings.MaxNumBatchedTokens
			if !d.Kind.SeatsInBudget {
				most = 1 << 16
			}
			return multiplesWithin(d.Settings.MaxNumSeqs, 1, most, 2, 4, 0.5)
		}},
	{name: "max_num_batched_tokens", of: []explain.Cause{explain.Budget, explain.Compute, explain.Host, explain.Seats},
		turns: func(d *deploy.Deployment) []string {
			least := 128
			if d.Kind.SeatsInBudget {
				least = max(d.Settings.MaxNumSeqs, least)
			}
			return multiplesWithin(d.Settings.MaxNumBatchedTokens, least, 1<<16, 2, 4, 0.5, 0.25)
		}},
	{name: "max_cudagraph_capture_size", of: []explain.Cause{explain.Host},
		turns: func(d *deploy.Deployment) []string { return multiplesWithin(d.GraphSize(), 1, 8192, 2, 4) },
		from:  func(d *deploy.Deployment) string { return strconv.Itoa(d.GraphSize()) }},
	{name: "enable_prefix_caching", of: []explain.Cause{explain.PrefixCache},
		turns: func(d *deploy.Deployment) []string { return onceIf(!d.Settings.EnablePrefixCaching, "true") }},
	{name: "kv_cache_dtype", of: []explain.Cause{explain.KVCache, explain.Bandwidth}, changesAnswers: true,
		turns: func(d *deploy.Deployment) []string {
			return onceIf(d.KVDType != "fp8" && d.Accelerator.TFLOPS["fp8"] > 0, "fp8")
		},
		from: func(d *deploy.Deployment) string { return d.KVDType },
		set: func(d *deploy.Deployment, to string) { // twice as many blocks fit
			d.KVDType = to
			d.Settings.NumGPUBlocks *= 2
		}},
	{name: "api_server_count", of: []explain.Cause{explain.Frontend},
		turns: func(*deploy.Deployment) []string { return []string{"2"} },
		from:  func(*deploy.Deployment) string { return "1" },
		set: func(d *deploy.Deployment, _ string) { // each has half of the work
			f := &d.Settings.Frontend
			f.PerRequest, f.PerPromptToken, f.PerStep, f.PerChunk = f.PerRequest/2, f.PerPromptToken/2, f.PerStep/2, f.PerChunk/2
		}},
	{name: "stream_interval", of: []explain.Cause{explain.Frontend},
		turns: func(d *deploy.Deployment) []string {
			return multiplesWithin(max(d.Settings.StreamInterval, 1), 1, 64, 4)
		},
		from: func(d *deploy.Deployment) string { return strconv.Itoa(max(d.Settings.StreamInterval, 1)) }},
	{name: "quantization", of: []explain.Cause{explain.Compute, explain.Bandwidth, explain.Host, explain.Links}, changesAnswers: true,
		turns: func(d *deploy.Deployment) []string {
			return onceIf((d.DType == "bf16" || d.DType == "fp16") && d.Accelerator.TFLOPS["fp8"] > 0, "fp8")
		},
		from: func(d *deploy.Deployment) string { return d.DType },
		set:  func(d *deploy.Deployment, to string) { d.DType = to }},
}

// ownBefore is the knob before which an engine's own ones are tried.
const ownBefore = "stream_interval"

// knobsOf are the knobs of a deployment: those that engines have in common, and its own.
func knobsOf(d *deploy.Deployment) []knob {
	var own []knob
	for _, k := range d.Kind.Knobs {
		x := knob{name: k.Name, turns: func(d *deploy.Deployment) []string {
			if d.Given[k.Name] != "" {
				return nil
			}
			return k.To
		}, from: func(*deploy.Deployment) string { return k.From }}
		for _, cause := range k.Relieves {
			x.of = append(x.of, explain.Cause(cause))
		}
		own = append(own, x)
	}
	at := slices.IndexFunc(knobs, func(k knob) bool { return k.name == ownBefore })
	return slices.Insert(slices.Clone(knobs), at, own...)
}

// ApplyTrial gives the deployment with a knob turned as a trial says, ok false where it has no
// such knob.
func ApplyTrial(d *deploy.Deployment, t explain.Trial) (turned *deploy.Deployment, ok bool) {
	for _, k := range knobsOf(d) {
		for _, to := range k.turns(d) {
			if d.Knob(k.name) == t.Knob && d.Kind.KnobValue(k.name, to) == t.To {
				c := copyDeployment(d)
				if k.set != nil {
					k.set(c, to)
				} else {
					_ = c.Set(k.name, to) // our own
				}
				return c, true
			}
		}
	}
	return nil, false
}

// helpfulTrials are the trials that may help against a cause.
func helpfulTrials(d *deploy.Deployment, cause explain.Cause) (list []explain.Trial) {
	for _, k := range knobsOf(d) {
		if slices.Contains(k.of, cause) {
			list = append(list, k.trials(d)...)
		}
	}
	return list
}

// trials are all turns of a knob, in the names of the deployment's engine; none where that
// has no such knob.
func (k *knob) trials(d *deploy.Deployment) (list []explain.Trial) {
	name := d.Knob(k.name)
	if name == "" {
		return nil
	}
	for _, to := range k.turns(d) {
		list = append(list, explain.Trial{Knob: name, From: d.Kind.KnobValue(k.name, k.value(d)), To: d.Kind.KnobValue(k.name, to), ChangesAnswers: k.changesAnswers})
	}
	return list
}
