package deploy

import (
	"pitot/internal/say"
)

// Speculative decoding: what it gains and what it costs.

// TokensPerStep is how many tokens a step gives a running request in the mean.
// With k drafts of which each is accepted with the probability a if those
// before it were, it is 1 + a + a² + … + a^k (Leviathan, Kalman and Matias,
// ICML 2023, equation 1); without drafts it is 1.
func (d *Deployment) TokensPerStep() float64 {
	n, power := 1.0, 1.0
	for range d.Settings.NumSpeculativeTokens {
		power *= d.Settings.AcceptanceRate
		n += power
	}
	return n
}

// checkDrafts refuses drafts of which nothing is known to be accepted.
func (d *Deployment) checkDrafts() error {
	s := &d.Settings
	switch {
	case s.NumSpeculativeTokens == 0 && s.AcceptanceRate == open:
		s.AcceptanceRate = 0
	case s.AcceptanceRate == open:
		return say.Errorf("num_speculative_tokens needs acceptance_rate: all that drafts gain depends on it").WithHint("give it as in &acceptance_rate=0.7: the share of first drafts that are accepted, in vLLM's metrics vllm:spec_decode_num_accepted_tokens_per_pos of position 0 ÷ vllm:spec_decode_num_drafts")
	}
	const most = 256
	if s.NumSpeculativeTokens > most {
		return say.Errorf("num_speculative_tokens is %d, it must be at most %d", s.NumSpeculativeTokens, most).WithHint("vLLM's drafters make up to about 16")
	}
	return nil
}

// drafter is the number of weights of the drafter that is assumed: one decoder
// layer with dense feed-forward, in addition to the model's own embedding and head
// (EAGLE: Li et al., ICML 2024). None without drafts.
func (d *Deployment) drafter() float64 {
	m := &d.Model
	if d.Settings.NumSpeculativeTokens == 0 {
		return 0
	}
	width := m.Intermediate
	if width == 0 {
		width = m.MoEIntermediate*m.ExpertsPerToken + m.SharedExpertIntermediate
	}
	return float64(m.AttentionWeights())/float64(m.Layers) + 3*float64(m.Hidden)*float64(width)
}

// drafting is the time of all drafts of a step, in seconds: the first pass takes
// every token of the step, for the drafter has a KV cache too, the others a
// token for each row. rows is the number of requests, layer what attention and
// collectives of one layer of the model take, head the time in which the head
// gives each row a token.
func (h *hardware) drafting(tokens, rows, layer, head float64) float64 {
	if h.drafts == 0 {
		return 0
	}
	return h.draft.time(tokens) + (h.drafts-1)*h.draft.time(rows) + h.drafts*(head+layer)
}
