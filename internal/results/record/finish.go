package record

import (
	"strings"
	"unicode"
)

// FinishKind is the kind of end that a finish reason gives the response.
type FinishKind uint8

const (
	FinishNone     FinishKind = iota // no reason was given
	FinishNormal                     // the model ended, or reached a limit
	FinishFailed                     // the server gave the response up
	FinishFiltered                   // a content filter stopped it
	FinishUnknown                    // a reason that is in no list
)

// normalFinishes are the reasons of responses that ended as they should, in lower case.
var normalFinishes = wordSet(
	"stop length tool_calls function_call", // OpenAI and most others
	"eos eos_token stop_sequence end_turn tool_use max_tokens pause_turn model_context_window_exceeded", // TGI, Together, Anthropic, Bedrock
	"complete completed incomplete max_output_tokens tool_call",                                         // Responses, Cohere
	"model_length",                // Mistral
	"limit word stop_str stop_id", // llama.cpp and forks
	"repetition",                  // vLLM's detection of repeated text
)

// failedWords are words of reasons that say that the response failed.
var failedWords = wordSet(
	"abort aborted abortion error errored exception cancel canceled cancelled cancellation fail failed failure",
	"timeout timed expired unload unloaded unavailable overloaded overload preempted",
	"disconnect disconnected interrupt interrupted killed terminated crashed crash oom rejected insufficient",
	"malformed invalid dropped evicted",
)

// filteredWords are words of reasons that say that a content filter acted.
var filteredWords = wordSet(
	"filter filtered safety sensitive blocklist blocked prohibited spii recitation guardrail guardrails moderation refusal refused",
)

func wordSet(lists ...string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for _, word := range strings.Fields(list) {
			set[word] = true
		}
	}
	return set
}

// KindOfFinish returns what a finish reason says. Reasons that are in no list are judged by
// their words, so that "engine_error" and "request.cancelled" are failures.
func KindOfFinish(reason string) FinishKind {
	switch reason { // nearly every response
	case "":
		return FinishNone
	case "stop", "length", "tool_calls":
		return FinishNormal
	}
	words := wordsIn(reason)
	if normalFinishes[strings.Join(words, "_")] {
		return FinishNormal
	}
	kind := FinishUnknown
	for _, word := range words {
		switch {
		case filteredWords[word]:
			return FinishFiltered
		case failedWords[word]:
			kind = FinishFailed
		}
	}
	return kind
}

// wordsIn returns the words of a name in snake_case, kebab-case or camelCase, in lower case.
func wordsIn(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), nil
		}
	}
	lower := false // the letter before is
	for _, r := range name {
		if !unicode.IsLetter(r) || lower && unicode.IsUpper(r) {
			end()
		}
		if lower = unicode.IsLower(r); unicode.IsLetter(r) {
			word = append(word, unicode.ToLower(r))
		}
	}
	end()
	return words
}

// finishClass begins the classes of responses that a finish reason says failed.
const finishClass = "finish_"

// FinishError returns the error class of a finish reason that says failure: "finish_abort".
// Each reason is a class of its own, as each HTTP status is.
func FinishError(reason string) string {
	if KindOfFinish(reason) == FinishFiltered {
		return ErrContentFilter
	}
	name := strings.Join(wordsIn(reason), "_")
	return finishClass + strings.ToValidUTF8(name[:min(len(name), 32)], "")
}
