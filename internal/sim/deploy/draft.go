package deploy

import (
	"fmt"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/engine"
)

// Speculative decoding: what it gains and what it costs.

// TokensPerStep returns the mean number of tokens that a step gives a running request, with the
// maximum number of drafts. With k drafts, each accepted with probability a if those before it
// were, it is 1 + a + a² + … + a^k. (Leviathan, Kalman and Matias, ICML 2023, equation 1.) Without
// drafts it is 1.
func (d *Deployment) TokensPerStep() float64 { return d.tokensOf(d.Settings.NumSpeculativeTokens) }

// tokensOf is the same of so many drafts.
func (d *Deployment) tokensOf(drafts int) float64 {
	n, power := 1.0, 1.0
	for range drafts {
		power *= d.Settings.AcceptanceRate
		n += power
	}
	return n
}

// checkDrafts refuses drafts of which nothing is known to be accepted.
func (d *Deployment) checkDrafts() error {
	s := &d.Settings
	switch {
	case s.NumSpeculativeTokens == 0 && s.AcceptanceRate == engine.Open:
		s.AcceptanceRate = 0
	case s.AcceptanceRate == engine.Open:
		return say.Errorf("num_speculative_tokens needs acceptance_rate: all that drafts gain depends on it").WithHint("give it as in &acceptance_rate=0.7: the share of first drafts that are accepted, in vLLM's metrics vllm:spec_decode_num_accepted_tokens_per_pos of position 0 ÷ vllm:spec_decode_num_drafts")
	}
	if d.parallelDrafts {
		if s.Drafter == sim.NGram {
			return say.Errorf("parallel_drafting needs a drafter, and n-grams have none").WithHint("leave one of the two out")
		}
		s.Drafter = sim.Parallel
	}
	if s.Drafter == sim.NGram && s.NumSpeculativeTokens > 0 { // VllmConfig.__post_init__
		if asked, _ := strconv.ParseBool(d.Given["async_scheduling"]); asked {
			return say.Errorf("vLLM does not schedule asynchronously with drafts by n-grams").WithHint("leave async_scheduling out")
		}
		s.AsyncScheduling = false
	}
	const most = 256
	if s.NumSpeculativeTokens > most {
		return say.Errorf("num_speculative_tokens is %d, it must be at most %d", s.NumSpeculativeTokens, most).WithHint("vLLM's drafters make up to about 16")
	}
	return nil
}

// hasDrafter says that a model of its own makes drafts.
func (d *Deployment) hasDrafter() bool {
	return d.Settings.NumSpeculativeTokens > 0 && d.Settings.Drafter != sim.NGram
}

// drafterWeights is the number of weights of the drafter that is assumed: one decoder
// layer with dense feed-forward, in addition to the model's own embedding and head
// (EAGLE: Li et al., ICML 2024). None without drafts.
func (d *Deployment) drafterWeights() float64 {
	m := &d.Model
	if !d.hasDrafter() {
		return 0
	}
	width := m.Intermediate
	if width == 0 {
		width = m.MoEIntermediate*m.ExpertsPerToken + m.SharedExpertIntermediate
	}
	return float64(m.AttentionWeights())/float64(m.Layers) + 3*float64(m.Hidden)*float64(width)
}

// draftTime is the time of all drafts of a step, in seconds: the first pass takes
// every token of the step, for the drafter has a KV cache too, the others a
// token for each row. rows is the number of requests, layer what attention and
// collectives of one layer of the model take. A parallel drafter has all of them in one
// pass. Without a drafter, and where nothing is drafted, it is 0.
func (h *hardware) draftTime(b *sim.Batch, layer float64) float64 {
	if h.drafter == sim.NGram || b.Drafts == 0 {
		return 0
	}
	tokens, rows, drafts := float64(b.Tokens), float64(b.Requests), float64(b.Drafts)
	if h.drafter == sim.Parallel {
		return h.draft.secondsFor(tokens+(drafts-1)*rows) + h.head.secondsFor(drafts*rows) + layer
	}
	return h.draft.secondsFor(tokens) + (drafts-1)*h.draft.secondsFor(rows) + drafts*(h.head.secondsFor(rows)+layer)
}

// setMethod sets the drafter by vLLM's name of its method.
func (d *Deployment) setMethod(v string) error {
	switch strings.ToLower(v) {
	case "eagle", "eagle3", "mtp":
		d.Settings.Drafter = sim.Sequential
	case "ngram":
		d.Settings.Drafter = sim.NGram
	default:
		return say.Errorf("drafts by %q are not modelled", v).WithHint("modelled are eagle, eagle3, mtp and ngram")
	}
	return nil
}

// setSchedule reads ranges such as 1-16:3,17-64:1 in place of vLLM's
// [[1, 16, 3], [17, 64, 1]].
func (d *Deployment) setSchedule(v string) error {
	var list []sim.DraftRange
	for part := range strings.SplitSeq(v, ",") {
		var r sim.DraftRange
		if n, err := fmt.Sscanf(part, "%d-%d:%d", &r.From, &r.To, &r.Tokens); n != 3 || err != nil || fmt.Sprintf("%d-%d:%d", r.From, r.To, r.Tokens) != part {
			return say.Errorf("%q is no range of requests and its drafts", part).WithHint("for example 1-16:3,17-64:1: three drafts in steps of up to 16 requests, then one")
		}
		list = append(list, r)
	}
	d.Settings.SpeculativeSchedule = list
	return nil
}
