package vllmapi_test

import (
	"encoding/json"

	"pitot/internal/sim/serve/dialect"
)

type tokens struct {
	Count  int
	Tokens []uint32
}

func (r *rig) tokenized(body string) (got tokens) {
	r.t.Helper()
	_, answer := r.do(post("/tokenize", body))
	if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Count != len(got.Tokens) {
		r.t.Fatalf("%v %s", err, answer)
	}
	return got
}

func (r *rig) detokenized(ids []uint32) string {
	r.t.Helper()
	_, answer := r.do(post("/detokenize", string(dialect.Marshal(map[string]any{"tokens": ids}))))
	var got struct{ Prompt string }
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		r.t.Fatalf("%v %s", err, answer)
	}
	return got.Prompt
}
