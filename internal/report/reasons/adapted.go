package reasons

import (
	"fmt"
	"strings"

	"pitot/internal/data/result"
)

// AdaptationText returns the sentence of what was adapted.
func AdaptationText(a result.Adaptation) string {
	switch a.Kind {
	case result.NoIgnoreEOS:
		return "the server does not take ignore_eos: responses may end early"
	case result.NoTemperature:
		return "the server does not take a temperature: it samples as it does by default"
	case result.LimitField:
		return "the server takes " + a.Value + " in place of max_tokens"
	case result.NoRunningUsage:
		return "the server does not take continuous_usage_stats: tokens per event are known only where usage and events agree"
	case result.NoUsage:
		return "the server does not take stream_options: streams have no usage"
	case result.NoStore:
		return "the server does not take store: it may keep the responses"
	case result.MinimumTokens:
		return "the server takes an output limit of " + a.Value + " tokens or more: shorter responses are requested as " + a.Value
	case result.CompletionsOnly:
		return "the server has no chat for this model: completions are measured"
	case result.EmbeddingsOnly:
		return "the server has neither chat nor completions: embeddings are measured"
	case result.OtherAPI:
		return "the API is " + a.Value + ": " + Text(a.Why)
	case result.ModelChosen:
		return fmt.Sprintf("the server lists %s: %s, the first, is measured; --model NAME measures another", strings.Join(a.Of, ", "), a.Value)
	case result.KeyAsBearer:
		return "the key is sent as Authorization: the server refused it as " + a.Value
	case result.RestrictedWords:
		return "generated prompts use the " + a.Value + " words that are one token each on this server"
	case result.LengthsInWords:
		return "lengths of prompts are words, not tokens: " + Text(a.Why)
	case result.LengthsInIDs:
		return "lengths of prompts are those of their token ids: " + Text(a.Why)
	case result.ServerLengths:
		return "prompts are as long as the server counts: " + Text(a.Why)
	case result.TextLengths:
		return "prompts are as long as the tokenizer counts their text, without the server's chat template: " + Text(a.Why)
	case result.StreamIgnored:
		return "the server ignores stream: true: its responses come whole, and have no TTFT, TPOT or ITL"
	case result.OtherModel:
		return fmt.Sprintf("requests to %s are answered by %s, by the name in the responses to the probe", strings.Join(a.Of, ", "), a.Value)
	case result.TokenizerLengths:
		return "prompts are as long as the tokenizer counts: " + Text(a.Why)
	}
	return strings.TrimSpace(string(a.Kind) + " " + a.Value + " " + Text(a.Why))
}
