package target

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

// A server without OpenAI's routes is found out by what it answers elsewhere, and an API
// that a server does not have is named with the one it has.
func TestAPIFound(t *testing.T) {
	for face, paths := range map[string][]string{
		"ollama": {"/api/"}, "tgi": {"/generate", "/info"}, "llamacpp": {"/completion", "/props"}, "sglang": {"/generate", "/get_model_info"},
	} {
		mock := openFace(t, face, face)
		server := httptest.NewServer(only(mock.Dialer.Endpoint.URL(""), paths...))
		defer server.Close()
		args := []string{server.URL}
		if face == "sglang" || face == "llamacpp" { // which list no models elsewhere
			args = append(args, "--model", "fixed")
		}
		target, err := Open(context.Background(), planned(t, args...), func(string) {})
		if err != nil {
			t.Errorf("%s: %v, %s", face, err, say.Hint(err))
			continue
		}
		if target.API.Name() != face || len(target.Adaptations) != 1 || target.Adaptations[0].Value != face {
			t.Errorf("%s is taken for %s: %q", face, target.API.Name(), target.Adaptations)
		}
		target.Close()
	}
	for _, c := range []struct{ face, named, right string }{
		{"vllm", "ollama", "openai-chat"}, {"vllm", "tgi", "openai-chat"}, {"vllm", "llamacpp", "openai-chat"}, {"vllm", "sglang", "openai-chat"},
		{"ollama", "anthropic", "ollama"}, {"ollama", "tgi", "ollama"}, {"llamacpp", "tgi", "llamacpp"}, {"tgi", "ollama", "tgi"}, {"sglang", "llamacpp", "sglang"},
	} {
		mock := openFace(t, c.face, "openai-chat")
		_, err := Open(context.Background(), planned(t, mock.Dialer.Endpoint.URL(""), "--api", c.named), func(string) {})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, "does not have "+c.named) || !strings.HasSuffix(e.Hint, "use --api "+c.right) {
			t.Errorf("%s as %s: %v", c.face, c.named, err)
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
	sglang, gemini := openFace(t, "sglang", "sglang").Dialer.Endpoint.URL(""), openFace(t, "gemini", "gemini").Dialer.Endpoint.URL("")
	for args, want := range map[string]string{
		sglang + " --api triton":                 "name it with --model NAME, or take the API that the server has: /get_model_info answers as that of SGLang, so that is --api sglang",
		gemini + " --api tgi --model fixed":      "/v1beta/models answers as that of Gemini: use --api gemini",
		page.URL:                                 "its answer is a web page\ncheck the URL: http://host:port",
		gateway.URL:                              "it answers 502 with a web page\na proxy answers, and the server behind it does not",
		page.URL + " --model x":                  "that is a web page, and no API of an LLM server",
		page.URL + " --model x --api ollama":     "that is a web page, and no API of an LLM server",
		page.URL + " --api openai-responses":     "its answer is a web page",
		page.URL + " --model x --api tei-rerank": "that is a web page, and no API of an LLM server",
	} {
		_, err := Open(context.Background(), planned(t, strings.Fields(args)...), func(string) {})
		hint := say.Hint(err)
		if e := new(Error); errors.As(err, &e) {
			hint = e.Hint
		}
		if err == nil || !strings.Contains(err.Error()+"\n"+hint, want) {
			t.Errorf("%s: %v\nhint: %s", args, err, hint)
		}
	}
}
