package validity

import (
	"testing"

	"pitot/internal/results/result"
)

// A tokenizer that makes anything else of a text than the server is flagged, and the right one
// never.
func TestTokenizerOfTheModel(t *testing.T) {
	for _, c := range []struct {
		held   result.TokenizerMatch
		status result.Status
		is     string
	}{
		{result.TokenizerMatch{Ours: 90, Theirs: 90}, result.Pass, ""},
		{result.TokenizerMatch{Ours: 90, Theirs: 90, IDs: true, Size: 100, Highest: 99}, result.Pass, result.CaseIDs},
		{result.TokenizerMatch{Ours: 90, Theirs: 91, Differ: 1}, result.Flag, ""},
		{result.TokenizerMatch{Ours: 90, Theirs: 90, Differ: 3, IDs: true, Size: 100, Highest: 99}, result.Flag, result.CaseIDs},
		{result.TokenizerMatch{Ours: 90, Theirs: 90, Differ: 3, IDs: true, Size: 100, Highest: 100}, result.Flag, result.CaseBeyond},
	} {
		if got := checkTokenizer(&c.held); got.Status != c.status || got.Case != c.is {
			t.Errorf("%+v: %+v", c.held, got)
		}
		if c.held.Prompts = true; checkTokenizer(&c.held).Detail["prompts"] != 1 {
			t.Errorf("%+v: of prompts that it makes nothing is said", c.held)
		}
	}
}
