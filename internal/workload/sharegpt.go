package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// turn is one turn of a ShareGPT conversation, in either of its spellings.
type turn struct {
	From    string `json:"from"`
	Value   string `json:"value"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (t turn) content() string { return t.Value + t.Content }

// isHuman tells who speaks.
func (t turn) isHuman() bool {
	switch t.From + t.Role {
	case "human", "user":
		return true
	}
	return false
}

// isAnswer tells whether the turn can be an answer.
func (t turn) isAnswer() bool {
	switch t.From + t.Role {
	case "human", "user", "system", "tool", "function", "observation":
		return false
	}
	return true
}

// parseShareGPT asks the first human turn of a conversation with two turns or
// more, for as many tokens as its recorded answer is estimated to have.
func parseShareGPT(raw []byte) (record, string, error) {
	var c struct {
		Conversations *[]turn `json:"conversations"`
		Conversation  *[]turn `json:"conversation"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return record{}, "", errors.New("want a conversation: an object with an array of turns, each with from and value, or role and content")
		}
		return record{}, "", fmt.Errorf("want a conversation: %w", err)
	}
	turns := c.Conversations
	if turns == nil {
		turns = c.Conversation
	}
	if turns == nil {
		return record{}, "", errors.New("want the key conversations or conversation with an array of turns")
	}
	if len(*turns) < 2 {
		return record{}, skipOneTurn, nil
	}
	if !slices.ContainsFunc(*turns, func(t turn) bool { return t.From+t.Role != "" }) { // SGLang's: they take turns
		for i := range *turns {
			(*turns)[i].Role = [2]string{"user", "assistant"}[i%2]
		}
	}
	for i, t := range *turns {
		if !t.isHuman() {
			continue
		}
		if i+1 == len(*turns) || !(*turns)[i+1].isAnswer() {
			return record{}, skipNoAnswer, nil
		}
		output := estimateTokens((*turns)[i+1].content())
		if output == 0 {
			return record{}, skipNoAnswer, nil
		}
		r, skip, err := promptRecord(t.content(), output)
		if i > 0 && skip == "" && err == nil && strings.TrimSpace((*turns)[0].content()) != "" && (*turns)[0].From+(*turns)[0].Role == "system" {
			r.messages = append([]Message{{Role: "system", Segments: []Segment{{Text: (*turns)[0].content()}}}}, r.messages...)
		}
		if bytes.Contains(raw, []byte("ystem")) {
			if o, err := parseObject(raw); err == nil {
				r.prependSystem(o)
			}
		}
		for k := i + 1; k+2 < len(*turns) && err == nil && skip == ""; k += 2 {
			answer, next, last := (*turns)[k], (*turns)[k+1], (*turns)[k+2]
			output := estimateTokens(last.content())
			if !next.isHuman() || !last.isAnswer() || output == 0 || strings.TrimSpace(next.content()) == "" {
				break // what goes on otherwise is not asked
			}
			r.later = append(r.later, further{answer: answer.content(), text: next.content(), output: output, after: Unknown})
		}
		return r, skip, err
	}
	return record{}, skipNoHuman, nil
}

// estimateTokens is about how many tokens a text has, for want of its tokenizer:
// 4/3 of its words, rounded up, where each character of a script that is
// written without spaces is a word.
func estimateTokens(text string) int {
	words, inside := 0, false
	for _, r := range text {
		switch {
		case r >= 0x2E80: // East Asian scripts and what lies beyond
			words++
			inside = false
		case unicode.IsSpace(r):
			inside = false
		case !inside:
			words++
			inside = true
		}
	}
	return min((words*4+2)/3, MaxLength)
}
