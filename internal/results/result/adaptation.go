package result

// Adaptation is something that Pitot changed or chose by itself before the load, because of
// what the server takes or lists. The numbers of the run depend on it.
type Adaptation struct {
	Kind  AdaptationKind `json:"kind"`
	Value string         `json:"value,omitempty"` // what it chose
	Of    []string       `json:"of,omitempty"`    // what it chose from, at most ten
	Why   Reason         `json:"why,omitzero"`
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

// Why something was adapted.
const (
	RouteAnswersAs     ReasonCode = "route_answers_as"           // Quote is the route
	PromptsNotCounted  ReasonCode = "prompt_tokens_not_reported" // by the server
	IDsNotCounted      ReasonCode = "token_ids_not_counted"      // by the server
	IDsCountDifferent  ReasonCode = "token_ids_count_different"  // N tokens for each, and Of besides
	PromptFailed       ReasonCode = "prompt_failed"              // of N words, with Quote
	CountNotByPrompt   ReasonCode = "count_does_not_follow_prompt"
	FewPlainWords      ReasonCode = "few_plain_words"
	WordsCountMore     ReasonCode = "words_count_different" // N tokens of Of words
	NotModelsTokenizer ReasonCode = "tokenizer_of_other_model"
	NoProbe            ReasonCode = "no_probe"
)
