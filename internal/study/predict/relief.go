package predict

import (
	"maps"
	"slices"
	"strconv"

	"pitot/internal/study/explain"
	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
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
		if s.Frontend == (twin.Frontend{}) {
			return nil, false
		}
		s.Frontend = twin.Frontend{}
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
	from  func(d *deploy.Deployment) string
	set   func(d *deploy.Deployment, to string)
	// changesAnswers says that it makes another model of it, whose answers have to be
	// judged again.
	changesAnswers bool
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

func parseNumber(to string) int {
	n, _ := strconv.Atoi(to) // our own
	return n
}

// knobs are in the order in which they are tried: what is free comes before what makes
// another model of it.
var knobs = []knob{
	{"max_num_seqs", []explain.Cause{explain.Seats, explain.KVCache, explain.Bandwidth},
		func(d *deploy.Deployment) []string {
			most := d.Settings.MaxNumBatchedTokens
			if !d.Kind.SeatsInBudget {
				most = 1 << 16
			}
			return multiplesWithin(d.Settings.MaxNumSeqs, 1, most, 2, 4, 0.5)
		},
		func(d *deploy.Deployment) string { return strconv.Itoa(d.Settings.MaxNumSeqs) },
		func(d *deploy.Deployment, to string) { d.Settings.MaxNumSeqs = parseNumber(to) }, false},
	{"max_num_batched_tokens", []explain.Cause{explain.Budget, explain.Compute, explain.Host, explain.Seats},
		func(d *deploy.Deployment) []string {
			least := 128
			if d.Kind.SeatsInBudget {
				least = max(d.Settings.MaxNumSeqs, least)
			}
			return multiplesWithin(d.Settings.MaxNumBatchedTokens, least, 1<<16, 2, 4, 0.5, 0.25)
		},
		func(d *deploy.Deployment) string { return strconv.Itoa(d.Settings.MaxNumBatchedTokens) },
		func(d *deploy.Deployment, to string) { d.Settings.MaxNumBatchedTokens = parseNumber(to) }, false},
	{"max_cudagraph_capture_size", []explain.Cause{explain.Host},
		func(d *deploy.Deployment) []string { return multiplesWithin(d.GraphSize(), 1, 8192, 2, 4) },
		func(d *deploy.Deployment) string { return strconv.Itoa(d.GraphSize()) },
		func(d *deploy.Deployment, to string) { d.SetGraphSize(parseNumber(to)) }, false},
	{"enable_prefix_caching", []explain.Cause{explain.PrefixCache},
		func(d *deploy.Deployment) []string {
			if d.Settings.EnablePrefixCaching {
				return nil
			}
			return []string{"true"}
		},
		func(d *deploy.Deployment) string { return strconv.FormatBool(d.Settings.EnablePrefixCaching) },
		func(d *deploy.Deployment, to string) { d.Settings.EnablePrefixCaching = to == "true" }, false},
	{"kv_cache_dtype", []explain.Cause{explain.KVCache, explain.Bandwidth},
		func(d *deploy.Deployment) []string {
			if d.KVDType == "fp8" || d.Accelerator.TFLOPS["fp8"] == 0 {
				return nil
			}
			return []string{"fp8"}
		},
		func(d *deploy.Deployment) string { return d.KVDType },
		func(d *deploy.Deployment, to string) { // twice as many blocks fit
			d.KVDType = to
			d.Settings.NumGPUBlocks *= 2
		}, true},
	{"api_server_count", []explain.Cause{explain.Frontend},
		func(*deploy.Deployment) []string { return []string{"2"} },
		func(*deploy.Deployment) string { return "1" },
		func(d *deploy.Deployment, _ string) { // each has half of the work
			f := &d.Settings.Frontend
			f.PerRequest, f.PerPromptToken, f.PerStep, f.PerChunk = f.PerRequest/2, f.PerPromptToken/2, f.PerStep/2, f.PerChunk/2
		}, false},
	{"stream_interval", []explain.Cause{explain.Frontend},
		func(d *deploy.Deployment) []string {
			return multiplesWithin(max(d.Settings.StreamInterval, 1), 1, 64, 4)
		},
		func(d *deploy.Deployment) string { return strconv.Itoa(max(d.Settings.StreamInterval, 1)) },
		func(d *deploy.Deployment, to string) { d.Settings.StreamInterval = parseNumber(to) }, false},
	{"quantization", []explain.Cause{explain.Compute, explain.Bandwidth, explain.Host, explain.Links},
		func(d *deploy.Deployment) []string {
			if (d.DType != "bf16" && d.DType != "fp16") || d.Accelerator.TFLOPS["fp8"] == 0 {
				return nil
			}
			return []string{"fp8"}
		},
		func(d *deploy.Deployment) string { return d.DType },
		func(d *deploy.Deployment, to string) { d.DType = to }, true},
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
		}, from: func(*deploy.Deployment) string { return k.From }, set: func(d *deploy.Deployment, to string) { _ = d.Set(k.Name, to) }} // our own
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
				k.set(c, to)
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
		list = append(list, explain.Trial{Knob: name, From: d.Kind.KnobValue(k.name, k.from(d)), To: d.Kind.KnobValue(k.name, to), ChangesAnswers: k.changesAnswers})
	}
	return list
}
