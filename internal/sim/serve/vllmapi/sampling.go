package vllmapi

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/sim/serve/dialect"
)

// sampling is the sampling parameters of a request. They are checked and have
// no effect, but for temperature and seed: they say whether the same prompt is
// answered with the same words.
type sampling struct {
	temperature, topP, minP         float64
	presence, frequency, repetition float64
	topK                            int
	seed                            int64
	seeded                          bool
	bias                            []int64 // the ids of logit_bias
	stops                           []int64 // stop_token_ids
	allowed                         []int64 // allowed_token_ids; nil: all
	badWords                        []string
	promptLogprobs                  int // -1: none
}

// readSampling reads the types of the parameters; at once refused is what vLLM
// looks at before them.
func (b *body) readSampling(stream bool) (sampling, *dialect.Reply) {
	s := sampling{promptLogprobs: -1}
	if salt, ok := b.stringField("cache_salt"); b.hasField("cache_salt") && (!ok || salt == "") {
		return s, parameterReply("cache_salt", "", "Parameter 'cache_salt' must be a non-empty string if provided.")
	}
	if b.hasField("prompt_logprobs") {
		n := 0.0
		if raw := b.m["prompt_logprobs"]; json.Unmarshal(raw, &n) != nil {
			return s, parameterReply("prompt_logprobs", shownValue(raw), "`prompt_logprobs` must be an integer.")
		}
		switch {
		case stream && (n > 0 || n == -1):
			return s, parameterReply("prompt_logprobs", "", "`prompt_logprobs` are not available when `stream=True`.")
		case n < 0 && n != -1:
			return s, parameterReply("prompt_logprobs", shownValue(b.m["prompt_logprobs"]), "`prompt_logprobs` must be a positive value or -1.")
		}
		if s.promptLogprobs = b.intField("prompt_logprobs", 0); s.promptLogprobs < 0 {
			s.promptLogprobs = math.MaxInt // all there are
		}
	}
	s.frequency = b.floatField("frequency_penalty", 0)
	refused := s.readBias(b)
	s.presence = b.floatField("presence_penalty", 0)
	if b.hasField("seed") {
		s.seed, s.seeded = b.parseWhole("seed", b.m["seed"])
	}
	s.temperature, s.topP = b.floatField("temperature", 1), b.floatField("top_p", 1)
	s.topK = b.intField("top_k", 0)
	s.minP = b.floatField("min_p", 0)
	s.repetition = b.floatField("repetition_penalty", 1)
	s.stops = b.idsField("stop_token_ids")
	s.allowed = b.idsField("allowed_token_ids")
	if b.hasField("bad_words") {
		if json.Unmarshal(b.m["bad_words"], &s.badWords) != nil {
			b.noteFault("list_type", "bad_words", b.m["bad_words"])
		}
	}
	if b.hasField("stream_interval") && b.intField("stream_interval", 1) < 1 {
		b.atLeast("stream_interval", 1, b.m["stream_interval"])
	}
	return s, refused
}

// readBias reads logit_bias: which tokens it names.
func (s *sampling) readBias(b *body) *dialect.Reply {
	if !b.hasField("logit_bias") {
		return nil
	}
	var bias map[string]json.RawMessage
	if json.Unmarshal(b.m["logit_bias"], &bias) != nil {
		b.noteFault("dict_type", "logit_bias", b.m["logit_bias"])
		return nil
	}
	var wrong []string
	for _, name := range sortedKeys(bias) {
		if _, err := strconv.ParseFloat(strings.Trim(string(bias[name]), `"`), 64); err != nil {
			b.noteFault("float_parsing", "logit_bias."+name, bias[name])
		}
		if id, err := strconv.ParseInt(name, 10, 64); err == nil {
			s.bias = append(s.bias, id)
		} else {
			wrong = append(wrong, pythonString(name))
		}
	}
	if wrong == nil {
		return nil
	}
	list := "[" + strings.Join(wrong, ", ") + "]"
	return parameterReply("logit_bias", list, "logit_bias contains key(s) that cannot be converted to integer token IDs: %s", list)
}

// checkSampling says what is wrong with the values of the parameters, in the
// order of vLLM's checks (SamplingParams._verify_args, verify).
func (s *sampling) checkSampling(a *ask, vocab int) *dialect.Reply {
	beyond := func(ids []int64) (out []int64) {
		for _, id := range ids {
			if id < 0 || id >= int64(vocab) {
				out = append(out, id)
			}
		}
		return out
	}
	outside := func(param string, ids []int64) *dialect.Reply {
		list := pythonList(ids)
		return parameterReply(param, list, "token_id(s) %s in %s contain out-of-vocab token ids. Vocabulary size: %d", list, param, vocab)
	}
	switch {
	case a.n < 1:
		return rejectionReply("", "n must be at least 1, got %d.", a.n)
	case len(a.prompts) > maxChoices:
		return rejectionReply("", "a request has at most %d prompts here, got %d.", maxChoices, len(a.prompts))
	case a.n > maxChoices/len(a.prompts):
		return rejectionReply("", "n must be at most %d, got %d.", maxChoices/len(a.prompts), a.n)
	case !(math.Abs(s.presence) <= 2):
		return rejectionReply("", "presence_penalty must be in [-2, 2], got %s.", pythonFloat(s.presence))
	case !(math.Abs(s.frequency) <= 2):
		return rejectionReply("", "frequency_penalty must be in [-2, 2], got %s.", pythonFloat(s.frequency))
	case s.repetition <= 0:
		return rejectionReply("", "repetition_penalty must be greater than zero, got %s.", pythonFloat(s.repetition))
	case s.temperature < 0:
		return parameterReply("temperature", pythonFloat(s.temperature), "temperature must be non-negative, got %s.", pythonFloat(s.temperature))
	case s.temperature > 2:
		return parameterReply("temperature", pythonFloat(s.temperature), "temperature must be in [0, 2], got %s.", pythonFloat(s.temperature))
	case !(s.topP > 0 && s.topP <= 1):
		return parameterReply("top_p", pythonFloat(s.topP), "top_p must be in (0, 1], got %s.", pythonFloat(s.topP))
	case s.topK < -1:
		return rejectionReply("", "top_k must be 0 (disable), or at least 1, got %d.", s.topK)
	case !(s.minP >= 0 && s.minP <= 1):
		return rejectionReply("", "min_p must be in [0, 1], got %s.", pythonFloat(s.minP))
	case a.plan.Limit < 1:
		return parameterReply("max_tokens", a.plan.Limit, "max_tokens must be at least 1, got %d.", a.plan.Limit)
	case a.plan.Least < 0:
		return rejectionReply("", "min_tokens must be greater than or equal to 0, got %d.", a.plan.Least)
	case a.plan.Least > a.plan.Limit:
		return rejectionReply("", "min_tokens must be less than or equal to max_tokens=%d, got %d.", a.plan.Limit, a.plan.Least)
	case slices.Contains(a.plan.Stops, ""):
		return rejectionReply("", "stop cannot contain an empty string.")
	case slices.Contains(s.badWords, ""):
		return rejectionReply("", "bad_words cannot contain an empty string. Got bad_words=%s", pythonTexts(s.badWords))
	case a.n > 1 && s.temperature == 0:
		return rejectionReply("", "n must be 1 when using greedy sampling, got %d.", a.n)
	case a.logprobs > maxLogprobs:
		return parameterReply("logprobs", a.logprobs,
			"Requested sample logprobs of %d, which is greater than max allowed: %d", a.logprobs, maxLogprobs)
	case s.promptLogprobs > maxLogprobs:
		n := min(s.promptLogprobs, vocab)
		return parameterReply("prompt_logprobs", n,
			"Requested prompt logprobs of %d, which is greater than max allowed: %d", n, maxLogprobs)
	case beyond(s.bias) != nil:
		return outside("logit_bias", beyond(s.bias))
	case beyond(s.stops) != nil:
		return outside("stop_token_ids", beyond(s.stops))
	case s.allowed != nil && len(s.allowed) == 0:
		return parameterReply("allowed_token_ids", "[]", "allowed_token_ids is not None and empty!")
	case beyond(s.allowed) != nil:
		return parameterReply("allowed_token_ids", pythonList(beyond(s.allowed)), "allowed_token_ids contains out-of-vocab token id!")
	}
	return nil
}
