package serve

import (
	"regexp"
	"strings"
	"testing"
)

// A face whose clients have a header of their own for keys takes them there, and nobody else does.
func TestKeyInTheHeaderOfItsFace(t *testing.T) {
	ask := func(r *rig, path, body, header string) int {
		resp, _ := r.do(post(path, body, header))
		return resp.StatusCode
	}
	gemini := start(t, fast, Config{APIKey: "k", Dialect: "gemini"})
	for header, want := range map[string]int{"x-goog-api-key: k": 200, "x-goog-api-key: other": 401, "x-goog-api-key:": 401, "x-api-key: k": 401, "Authorization: Bearer k": 200} {
		if got := ask(gemini, "/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`, header); got != want {
			t.Errorf("%s: %d, want %d", header, got, want)
		}
	}
	// vLLM takes no key in Anthropic's header either: its issue 51572.
	vllm := start(t, fast, Config{APIKey: "k"})
	for _, header := range []string{"x-goog-api-key: k", "x-api-key: k"} {
		if got := ask(vllm, "/v1/messages", `{"messages":[{"role":"user","content":"x"}],"max_tokens":1}`, header); got != 401 {
			t.Errorf("vLLM, %s: %d", header, got)
		}
	}
}

// What countTokens says of a prompt is what its answer counts.
func TestGeminiCountsTokens(t *testing.T) {
	r := start(t, fast, Config{Dialect: "gemini", PromptOverhead: 5})
	const ask = `{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"one two three"}]}]}`
	_, answer := r.do(post("/v1beta/models/m:generateContent", ask))
	said := regexp.MustCompile(`"promptTokenCount":(\d+)`).FindStringSubmatch(answer)
	if said == nil {
		t.Fatal(answer)
	}
	want := `{"totalTokens":` + said[1] + `,"promptTokensDetails":[{"modality":"TEXT","tokenCount":` + said[1] + `}]}`
	for _, body := range []string{ask, `{"generateContentRequest":` + ask + `}`} {
		if _, got := r.do(post("/v1beta/models/m:countTokens", body)); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if resp, got := r.do(post("/v1beta/models/m:countTokens", `{}`)); resp.StatusCode != 400 || !strings.Contains(got, "INVALID_ARGUMENT") {
		t.Errorf("of nothing: %d, %s", resp.StatusCode, got)
	}
}
