package api

import (
	"fmt"
	"testing"

	"pitot/internal/workload"
)

// Answers of models that generate nothing, as their servers and documents have them: which
// input each result is of, and how many tokens were read.
func TestPooling(t *testing.T) {
	for body, want := range map[string]string{
		`{"object":"list","data":[{"index":1,"embedding":[0.1,-2e-3]},{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":5,"total_tokens":5}}`: "[1 0] 5 true",
		`{"data":[{"object":"embedding","index":0,"embedding":"AACAPw=="}],"usage":null}`:                                                           "[0] -1 true",
		`{"id":"r","results":[{"index":2,"relevance_score":0.9,"document":{"text":"]}"}}],"usage":{"total_tokens":56}}`:                             "[2] 56 true",
		`{"results":[{"index":0,"relevance_score":1}],"meta":{"billed_units":{"search_units":1},"tokens":{"input_tokens":7}}}`:                      "[0] 7 true",
		`[[0.1,0.2],[0.3]]`: "[0 1] -1 true",
		` [{"index":1,"score":0.9},{"index":0,"score":-1}] `: "[1 0] -1 true",
		`[]`:                      "[] -1 true",
		`{"data":null}`:           "[] -1 false",
		`{"data":[{"index":-3}]}`: "[0] -1 true",
		`{"error":"batch size 64 > 32","error_type":"Validation"}`: "[] -1 false batch size 64 > 32",
		`{"error":{"message":"no such model","code":404}}`:         "[] -1 false no such model",
		`{"detail":"Invalid API key"}`:                             "[] -1 false Invalid API key",
		`{"message":"invalid api token"}`:                          "[] -1 false invalid api token",
	} {
		var d Delta
		d.Clear()
		if err := Embeddings.Decoder().Whole([]byte(body), &d); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		choices := []int32{}
		for _, p := range d.Parts {
			choices = append(choices, p.Choice)
		}
		got := fmt.Sprint(choices, d.Usage.Prompt, d.Ended)
		if d.Fault != nil {
			got += " " + d.Fault.Message
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for _, body := range []string{"", "7", `{"data":[}`, `[[1]`, `{"data":[]} x`} {
		if err := Rerank.Decoder().Whole([]byte(body), new(Delta)); err == nil {
			t.Errorf("%q is read", body)
		}
	}
	request := &workload.Request{Messages: append(user(), append(user(), user()...)...)}
	for _, c := range []struct {
		api  API
		body string
		want int64
	}{{Embeddings, "", 3}, {TEIEmbed, "", 3}, {Rerank, "", 2}, {TEIRerank, "", 2}, {Rerank, `{"top_n":1}`, 1}, {Rerank, `{"top_n":9}`, 2}} {
		var o Options
		if c.body != "" {
			o.Body = []byte(c.body)
		}
		if got := c.api.Asked(request, o).Choices; got != c.want {
			t.Errorf("%s %s: %d results, want %d", c.api.Name(), c.body, got, c.want)
		}
	}
	if GeneratesTokens(Embeddings) || !GeneratesTokens(Chat) || ResultShortage(2, 2) != "" || ResultShortage(1, 3) != "1 result for 3 inputs" {
		t.Error(ResultShortage(1, 3))
	}
}
