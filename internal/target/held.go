package target

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/workload"
)

// Whether the tokenizer that the user gave is the served model's is asked before the load: of one
// text, which tokenizers write differently, the server tells its tokens (POST /tokenize, as vLLM,
// SGLang, llama.cpp and TGI have it), or counts them as a prompt's.

// telling is a text that tells tokenizers apart: by numbers, code, blanks and scripts. It begins
// and ends in plain words, since templates leave out blanks at the ends.
const telling = "the year 1984 and 123456789 tokens,\n\n    for (int i = 0; i < 10; i++) { total += x[i] * 3.14159; }\t// don't\n" +
	"Größenänderungen über Straßen, l'été à Besançon; быстрая коричневая лиса, 敏捷的棕色狐狸跳过了懒狗。素早い茶色の狐 다람쥐 헌 쳇바퀴 السلام عليكم नमस्ते 🙂🚀 end"

// holdTokenizer compares the tokenizer with what the server makes of a text, and keeps what came of
// it. A server that tells neither its tokens nor its count leaves it open.
func (t *Target) holdTokenizer(ctx context.Context) error {
	// Behind words that were never sent before: no prefix cache has any of it.
	text := string(t.Options.Vocab.AppendText(nil, uint64(time.Now().UnixNano()), greetingWords, true)) + " " + telling
	ours, err := t.Tokenizer.NewEncoder().Append(nil, []byte(text))
	if err != nil || t.Kind == "mock" { // which has no model
		return nil
	}
	told := t.Held != nil // its counts of two prompts, which was said
	if theirs := t.tokensOf(ctx, text); len(theirs) > 0 {
		t.Held = heldByIDs(ours, theirs, t.Tokenizer.Size())
	} else if !told && !t.Options.IDs && t.Calibration.PerWord == 1 && t.Server["prompt_tokens"] != "" {
		row := t.askWithRetries(ctx, workload.Request{
			Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Text: text}}}},
			Input:    workload.Unknown, Session: workload.Unknown, Exact: true,
		}, 1)
		if row.PromptTokens >= 0 {
			theirs := int(row.PromptTokens) - int(t.Calibration.Overhead)
			t.Held = &result.TokenizerMatch{Ours: len(ours), Theirs: theirs, Differ: max(len(ours)-theirs, theirs-len(ours))}
		}
	}
	if h := t.Held; !told && h != nil && h.Differ > 0 {
		const note = "the tokenizer is not that of the served model, or its file is damaged: "
		switch {
		case h.IDs && h.Highest >= h.Size:
			t.Notes = append(t.Notes, fmt.Sprintf("%sthe server has a token %d, and the file ends at %d", note, h.Highest, h.Size-1))
		case h.IDs:
			t.Notes = append(t.Notes, fmt.Sprintf("%sof %d tokens that it makes of a text, %d differ from the server's", note, h.Ours, h.Differ))
		default:
			t.Notes = append(t.Notes, fmt.Sprintf("%sit makes %d tokens of a text, the server counts %d", note, h.Ours, h.Theirs))
		}
	}
	return ctx.Err()
}

// heldByIDs compares ids; theirs has at least one. What the server puts around a text, its
// beginning and its end, is left aside.
func heldByIDs(ours, theirs []uint32, size int) *result.TokenizerMatch {
	const around = 2
	h := &result.TokenizerMatch{IDs: true, Ours: len(ours), Theirs: len(theirs), Size: size, Highest: int(slices.Max(theirs))}
	for skip := 0; skip <= min(around, len(theirs)-len(ours)); skip++ {
		if slices.Equal(theirs[skip:skip+len(ours)], ours) && len(theirs)-skip-len(ours) <= around {
			return h
		}
	}
	same := map[uint32]int{}
	for _, id := range theirs {
		same[id]++
	}
	for _, id := range ours {
		if same[id]--; same[id] < 0 {
			h.Differ++
		}
	}
	h.Differ = max(h.Differ, 1) // the same ones in another order
	return h
}

// tokensOf asks the server for the tokens of a text, none where it does not tell.
func (t *Target) tokensOf(ctx context.Context, text string) []uint32 {
	// vLLM and SGLang, llama.cpp, TGI call it differently, and none minds what it does not know.
	body, _ := json.Marshal(map[string]any{
		"model": t.Options.Model, "prompt": text, "content": text, "inputs": text, "add_special_tokens": false, "add_special": false,
	})
	a, err := t.fetch(ctx, "POST", t.Dialer.Endpoint.Base+"/tokenize", body)
	if err != nil || a.Status != 200 {
		return nil
	}
	var answer struct {
		Tokens []uint32 `json:"tokens"`
	}
	var list []struct {
		ID *uint32 `json:"id"`
	}
	if json.Unmarshal(a.Body, &answer) == nil {
		return answer.Tokens
	}
	if json.Unmarshal(a.Body, &list) != nil {
		return nil
	}
	var ids []uint32
	for _, x := range list {
		if x.ID == nil {
			return nil
		}
		ids = append(ids, *x.ID)
	}
	return ids
}
