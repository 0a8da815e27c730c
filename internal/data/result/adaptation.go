package result

import (
	"fmt"
	"strings"
)

// Adaptation is something that Pitot changed or chose by itself before the load, because of
// what the server takes or lists. The numbers of the run depend on it.
type Adaptation struct {
	Kind  AdaptationKind `json:"kind"`
	Value string         `json:"value,omitempty"` // what it chose
	Of    []string       `json:"of,omitempty"`    // what it chose from, at most ten
	Why   string         `json:"why,omitempty"`   // the server's words
}

// AdaptationKind names what was changed or chosen.
type AdaptationKind string

const (
	NoIgnoreEOS      AdaptationKind = "no_ignore_eos"        // ignore_eos is left out: responses may end early
	NoTemperature    AdaptationKind = "no_temperature"       // temperature is left out
	LimitField       AdaptationKind = "limit_field"          // Value names the output limit in place of max_tokens
	NoRunningUsage   AdaptationKind = "no_running_usage"     // no usage with each event
	NoUsage          AdaptationKind = "no_usage"             // no usage in streams
	NoStore          AdaptationKind = "no_store"             // store is left out
	MinimumTokens    AdaptationKind = "minimum_tokens"       // Value is the least output limit that is sent
	CompletionsOnly  AdaptationKind = "completions_only"     // completions in place of chats
	EmbeddingsOnly   AdaptationKind = "embeddings_only"      // embeddings, as there is nothing else
	OtherAPI         AdaptationKind = "other_api"            // Value is the API, Why how it was found
	ModelChosen      AdaptationKind = "model_chosen"         // Value is the first of the models listed in Of
	KeyAsBearer      AdaptationKind = "key_as_authorization" // Value is the header in which it was refused
	RestrictedWords  AdaptationKind = "restricted_words"     // Value is how many words generated prompts use
	LengthsInWords   AdaptationKind = "lengths_in_words"     // Why the lengths of prompts are words, not tokens
	LengthsInIDs     AdaptationKind = "lengths_in_ids"       // Why the lengths of prompts are those of their token ids
	TokenizerLengths AdaptationKind = "tokenizer_lengths"    // Why prompts are as long as the tokenizer counts
	ServerLengths    AdaptationKind = "server_lengths"       // Why prompts are as long as the server counts, not the tokenizer
	StreamIgnored    AdaptationKind = "stream_ignored"       // responses come whole
	OtherModel       AdaptationKind = "other_model"          // Value is the model that the responses to the probe name, Of the one requested
	TextLengths      AdaptationKind = "text_lengths"         // Why they are as long as it counts their text, without the chat template
)

// String returns the sentence that reports show.
func (a Adaptation) String() string {
	switch a.Kind {
	case NoIgnoreEOS:
		return "the server does not take ignore_eos: responses may end early"
	case NoTemperature:
		return "the server does not take a temperature: it samples as it does by default"
	case LimitField:
		return "the server takes " + a.Value + " in place of max_tokens"
	case NoRunningUsage:
		return "the server does not take continuous_usage_stats: tokens per event are known only where usage and events agree"
	case NoUsage:
		return "the server does not take stream_options: streams have no usage"
	case NoStore:
		return "the server does not take store: it may keep the responses"
	case MinimumTokens:
		return "the server takes an output limit of " + a.Value + " tokens or more: shorter responses are requested as " + a.Value
	case CompletionsOnly:
		return "the server has no chat for this model: completions are measured"
	case EmbeddingsOnly:
		return "the server has neither chat nor completions: embeddings are measured"
	case OtherAPI:
		return fmt.Sprintf("the API is %s: %s", a.Value, a.Why)
	case ModelChosen:
		return fmt.Sprintf("the server lists %s: %s, the first, is measured; --model NAME measures another", strings.Join(a.Of, ", "), a.Value)
	case KeyAsBearer:
		return "the key is sent as Authorization: the server refused it as " + a.Value
	case RestrictedWords:
		return "generated prompts use the " + a.Value + " words that are one token each on this server"
	case LengthsInWords:
		return "lengths of prompts are words, not tokens: " + a.Why
	case LengthsInIDs:
		return "lengths of prompts are those of their token ids: " + a.Why
	case ServerLengths:
		return "prompts are as long as the server counts: " + a.Why
	case TextLengths:
		return "prompts are as long as the tokenizer counts their text, without the server's chat template: " + a.Why
	case StreamIgnored:
		return "the server ignores stream: true: its responses come whole, and have no TTFT, TPOT or ITL"
	case OtherModel:
		return fmt.Sprintf("requests to %s are answered by %s, by the name in the responses to the probe", strings.Join(a.Of, ", "), a.Value)
	case TokenizerLengths:
		return "prompts are as long as the tokenizer counts: " + a.Why
	}
	return strings.TrimSpace(string(a.Kind) + " " + a.Value + " " + a.Why)
}
