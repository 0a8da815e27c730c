package workload

import (
	"bytes"
	"cmp"
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

func (t turn) speaker() string { return t.From + t.Role }

func (t turn) isHuman() bool { return t.speaker() == "human" || t.speaker() == "user" }

// answerTokens estimates the tokens of an answer, 0 where the turn is none.
func (t turn) answerTokens() int {
	switch t.speaker() {
	case "human", "user", "system", "tool", "function", "observation":
		return 0
	}
	return estimateTokens(t.content())
}

// parseShareGPT asks the first human turn of a conversation with two turns or
// more, for as many tokens as its recorded answer is estimated to have.
func parseShareGPT(raw []byte) (record, error) {
	var c struct {
		Conversations *[]turn `json:"conversations"`
		Conversation  *[]turn `json:"conversation"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return record{}, errors.New("want a conversation: an object with an array of turns, each with from and value, or role and content")
		}
		return record{}, fmt.Errorf("want a conversation: %w", err)
	}
	list := cmp.Or(c.Conversations, c.Conversation)
	if list == nil {
		return record{}, errors.New("want the key conversations or conversation with an array of turns")
	}
	turns := *list
	if len(turns) < 2 {
		return record{}, skipOneTurn
	}
	if !slices.ContainsFunc(turns, func(t turn) bool { return t.speaker() != "" }) { // SGLang's: they take turns
		for i := range turns {
			turns[i].Role = [2]string{"user", "assistant"}[i%2]
		}
	}
	first := slices.IndexFunc(turns, turn.isHuman)
	if first < 0 {
		return record{}, skipNoHuman
	}
	if first+1 == len(turns) || turns[first+1].answerTokens() == 0 {
		return record{}, skipNoAnswer
	}
	r, err := promptRecord(turns[first].content(), turns[first+1].answerTokens())
	if err != nil {
		return r, err
	}
	if system := turns[0]; system.speaker() == "system" && strings.TrimSpace(system.content()) != "" {
		r.messages = append([]Message{TextMessage("system", system.content())}, r.messages...)
	}
	if bytes.Contains(raw, []byte("ystem")) {
		if o, err := parseObject(raw); err == nil {
			r.prependSystem(o)
		}
	}
	for rest := turns[first+1:]; len(rest) > 2; rest = rest[2:] {
		answer, next, output := rest[0], rest[1], rest[2].answerTokens()
		if !next.isHuman() || output == 0 || strings.TrimSpace(next.content()) == "" {
			break // what goes on otherwise is not asked
		}
		r.later = append(r.later, further{answer.content(), next.content(), output, Unknown})
	}
	return r, nil
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
