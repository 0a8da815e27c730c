package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"pitot/internal/say"
)

// only lets through what begins with one of some paths.
func only(url string, paths ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, p := range paths {
			if strings.HasPrefix(r.URL.Path, p) {
				ask, _ := http.NewRequest(r.Method, url+r.URL.Path, r.Body)
				ask.Header = r.Header
				answer, err := http.DefaultClient.Do(ask)
				if err != nil {
					http.Error(w, err.Error(), http.StatusBadGateway)
					return
				}
				defer answer.Body.Close()
				w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
				w.WriteHeader(answer.StatusCode)
				_, _ = io.Copy(w, answer.Body)
				return
			}
		}
		http.NotFound(w, r)
	})
}

// canned serves an answer by path, whatever is asked there: a whole HTTP response as it was
// recorded, or a JSON body.
func canned(t *testing.T, answers map[string]string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := answers[r.URL.Path]
		switch {
		case !known:
			http.NotFound(w, r)
		case strings.HasPrefix(text, "HTTP/1.1 "):
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, text)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// llamacpp and tgi are servers of which the mock has no face: what llama.cpp answered when it
// was recorded, and what TGI's documents say.
func llamacpp(t *testing.T) string {
	stream, err := os.ReadFile("../client/testdata/recorded/llamacpp-live-stream.http")
	if err != nil {
		t.Fatal(err)
	}
	return canned(t, map[string]string{
		"/completion": string(stream),
		"/props":      `{"default_generation_settings":{"n_ctx":1024},"total_slots":1,"model_path":"tiny.gguf","build_info":"b1"}`,
	})
}

func tgi(t *testing.T) string {
	token := func(i int, rest string) string {
		return fmt.Sprintf("data:{\"index\":%d,\"token\":{\"id\":17,\"text\":\" a\",\"logprob\":-0.5,\"special\":false},%s}\n\n", i, rest)
	}
	const more = `"generated_text":null,"details":null`
	return canned(t, map[string]string{
		"/generate_stream": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + token(1, more) + token(2, more) + token(3, more) +
			token(4, `"generated_text":" a a a a","details":{"finish_reason":"length","generated_tokens":4,"input_length":8,"seed":null}`),
		"/info": `{"model_id":"m","max_total_tokens":4096,"router":"text-generation-router","version":"3.3.6"}`,
	})
}

// A server without OpenAI's routes is found out by what it answers elsewhere, and an API
// that a server does not have is named with the one it has.
func TestAPIFound(t *testing.T) {
	behind := func(face string, paths ...string) string {
		server := httptest.NewServer(only(openFace(t, face, face, "").Dialer.Endpoint.URL(""), paths...))
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, url := range map[string]string{
		"ollama": behind("ollama", "/api/"), "sglang": behind("sglang", "/generate", "/get_model_info"), "tgi": tgi(t), "llamacpp": llamacpp(t),
	} {
		args := []string{url}
		if name == "sglang" || name == "llamacpp" { // which list no models elsewhere
			args = append(args, "--model", "fixed")
		}
		target, err := Open(context.Background(), planned(t, args...), func(string) {})
		if err != nil {
			t.Errorf("%s: %v, %s", name, err, say.HintOf(err))
			continue
		}
		if target.API.Name() != name || len(target.Adaptations) == 0 || target.Adaptations[0].Value != name {
			t.Errorf("%s is taken for %s: %+v", name, target.API.Name(), target.Adaptations)
		}
		target.Close()
	}
	mock := func(face string) string { return openFace(t, face, "openai-chat", "").Dialer.Endpoint.URL("") }
	for _, c := range []struct{ url, named, right string }{
		{mock("vllm"), "ollama", "openai-chat"}, {mock("vllm"), "tgi", "openai-chat"}, {mock("vllm"), "llamacpp", "openai-chat"}, {mock("vllm"), "sglang", "openai-chat"},
		{mock("ollama"), "anthropic", "ollama"}, {mock("ollama"), "tgi", "ollama"}, {mock("sglang"), "llamacpp", "sglang"},
		{llamacpp(t), "tgi", "llamacpp"}, {tgi(t), "ollama", "tgi"},
	} {
		args := []string{c.url, "--api", c.named}
		if c.right == "llamacpp" {
			args = append(args, "--model", "fixed")
		}
		_, err := Open(context.Background(), planned(t, args...), func(string) {})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, "does not have "+c.named) || !strings.HasSuffix(e.Hint, "use --api "+c.right) {
			t.Errorf("%s as %s: %v", c.right, c.named, err)
		}
	}
}

// An API whose route names the model is asked for it, with the one that the server has; a server
// of Gemini's is known by its list of models; and a web page is told as what it is.
func TestAPIHints(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><body>Welcome</body></html>")
	}))
	defer page.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html><head><title>502 Bad Gateway</title></head></html>")
	}))
	defer gateway.Close()
	sglang := openFace(t, "sglang", "sglang", "").Dialer.Endpoint.URL("")
	gemini := canned(t, map[string]string{"/v1beta/models": `{"models":[{"name":"models/fixed","version":"001","inputTokenLimit":4095,"outputTokenLimit":4095,"supportedGenerationMethods":["generateContent","countTokens"]}]}`})
	for args, want := range map[string]string{
		sglang + " --api triton":                 "name it with --model NAME, or take the API that the server has: /get_model_info answers as that of SGLang, so that is --api sglang",
		gemini + " --api tgi --model fixed":      "/v1beta/models answers as that of Gemini: use --api gemini",
		page.URL:                                 "its answer is a web page\ncheck the URL: http://host:port",
		gateway.URL:                              "it answers 502 with a web page\na proxy answers, and its server does not",
		page.URL + " --model x":                  "that is a web page, and no API of an LLM server",
		page.URL + " --model x --api ollama":     "that is a web page, and no API of an LLM server",
		page.URL + " --api openai-responses":     "its answer is a web page",
		page.URL + " --model x --api tei-rerank": "that is a web page, and no API of an LLM server",
	} {
		_, err := Open(context.Background(), planned(t, strings.Fields(args)...), func(string) {})
		hint := say.HintOf(err)
		if e := new(Error); errors.As(err, &e) {
			hint = e.Hint
		}
		if err == nil || !strings.Contains(err.Error()+"\n"+hint, want) {
			t.Errorf("%s: %v\nhint: %s", args, err, hint)
		}
	}
}
