package serve

import (
	"testing"
)

// vLLM takes no key in Anthropic's header, nor in Google's: its issue 51572.
func TestKeyIsABearerToken(t *testing.T) {
	r := start(t, fast, Config{APIKey: "k"})
	for header, want := range map[string]int{"Authorization: Bearer k": 200, "Authorization: Bearer other": 401, "x-api-key: k": 401, "x-goog-api-key: k": 401} {
		if resp, _ := r.do(post("/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":1}`, header)); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", header, resp.StatusCode, want)
		}
	}
}
