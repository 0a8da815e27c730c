package api

import "testing"

func TestOf(t *testing.T) {
	for route, want := range map[string]string{
		"/v1/chat/completions": "openai-chat", "/openai/v1/chat/completions": "openai-chat", "/x/chat/completions?a=b/completions": "openai-chat",
		"/v1/completions": "openai-completions", "/completions": "openai-completions", "/v1/models": "", "/xcompletions": "", "": "",
	} {
		a, _, ok := Of(route)
		if ok != (want != "") || ok && a.Name() != want {
			t.Errorf("%q is of %v", route, a)
		}
	}
}

// Every API can be named, and what it says of itself holds together.
func TestAPIs(t *testing.T) {
	for _, a := range All() {
		if b, ok := Named(a.Name()); !ok || b != a {
			t.Errorf("%s is not found by its name", a.Name())
		}
		if b, _, ok := Of("/some/base" + a.Route()); !ok || b != a {
			t.Errorf("%s is not found by its route %s", a.Name(), a.Route())
		}
		for _, h := range a.Headers("sk-key") {
			if h.Name == "" || h.Value == "" {
				t.Errorf("%s: empty header %q", a.Name(), h)
			}
		}
		if len(a.Headers("")) >= len(a.Headers("sk-key")) {
			t.Errorf("%s does not send its key", a.Name())
		}
		if a.Decoder().Ended() {
			t.Errorf("%s ends before it begins", a.Name())
		}
		if got := a.Fault([]byte("<html>")); got != "" {
			t.Errorf("%s reads a fault in HTML: %s", a.Name(), got)
		}
	}
	if models, ok := ModelsBeside("/openai/chat/completions?api-version=1"); !ok || models != "/openai/models" {
		t.Errorf("models at %q", models)
	}
}
