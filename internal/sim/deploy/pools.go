package deploy

import (
	"fmt"
	"math"

	"pitot/internal/say"
	"pitot/internal/sim/engine"
)

// pools holds the number of engines that compute prompts and the number that generate the answers.
// These differ with prefill-decode disaggregation.
type pools struct {
	prefill, decode int
	gbs             float64 // of each accelerator's link between them, 10⁹ bytes/s
}

// countPools makes the engines of both pools all that there are.
func (d *Deployment) countPools() error {
	p := &d.pools
	if p.prefill == 0 && p.decode == 0 {
		if p.gbs > 0 {
			return say.Errorf("kv_transfer_gb_per_s is of the way between prefill and decode, and there is none").WithHint("write prefill=1&decode=1 too, or more of either")
		}
		return nil
	}
	if p.prefill == 0 || p.decode == 0 {
		return say.Errorf("prompts are computed by engines of their own only where others go on with the answers").WithHint(fmt.Sprintf("write prefill=%d&decode=%d", max(p.prefill, 1), max(p.decode, 1)))
	}
	n := p.prefill + p.decode
	if d.DataParallel > 1 && d.DataParallel != n {
		return say.Errorf("%d engines of prefill and %d of decode are not data_parallel_size=%d", p.prefill, p.decode, d.DataParallel).WithHint("leave data_parallel_size out")
	}
	d.DataParallel = n
	return nil
}

// checkPools refuses what is not modelled of such a deployment, and completes it.
func (d *Deployment) checkPools() error {
	p := &d.pools
	if p.prefill == 0 {
		return nil
	}
	refuse := func(what, hint string) error {
		return say.Errorf("prefill and decode in engines of their own: %s", what).WithHint(hint)
	}
	switch {
	case !d.Kind.Pools:
		return refuse("modelled of "+engineTitles(func(k *engine.Kind) bool { return k.Pools })+" alone", "leave engine="+d.Kind.Name+", or prefill and decode, out")
	case d.ExpertParallel:
		return refuse("engines that share experts are not modelled so", "leave enable_expert_parallel out")
	case d.events != "":
		return refuse("none of them comes or goes here", "leave replica_events out")
	}
	if len(d.Model.GrowingLayers()) != len(d.Model.AttentionKinds()) {
		return refuse(d.Model.Name+" has layers that do not keep all tokens, whose transfer is not modelled", "leave prefill and decode out")
	}
	if p.gbs == 0 {
		p.gbs = d.Accelerator.Link.BandwidthAmong(d.GPUs())
		if p.gbs == 0 {
			return refuse("it is not known how fast "+d.Accelerator.Name+" reaches another", "write kv_transfer_gb_per_s")
		}
	}
	d.Notes = append(d.Notes, "prefill and decode in engines of their own: the first token is decode's, after the transfer of the whole prompt's KV cache; memory that prefill holds meanwhile is not counted, and no such deployment was compared with a measured one")
	return nil
}

// transferTime returns the time that transferring the KV cache of a prompt takes, in nanoseconds.
// It is the bytes on one accelerator over that accelerator's link; all accelerators of the group
// transfer at once.
func (d *Deployment) transferTime(prompt int) int64 {
	return int64(math.Round(float64(prompt) * d.kvPerToken() / d.pools.gbs))
}
