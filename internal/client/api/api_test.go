package api

import (
	"testing"

	"pitot/internal/say"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

func TestOf(t *testing.T) {
	for route, want := range map[string]string{
		"/v1/chat/completions": "openai-chat", "/openai/v1/chat/completions": "openai-chat", "/x/chat/completions?a=b/completions": "openai-chat",
		"/v1/completions": "openai-completions", "/completions": "openai-completions", "/v1/models": "", "/xcompletions": "", "": "",
	} {
		m, ok := ByPath(route)
		if ok != (want != "") || ok && m.API.Name() != want {
			t.Errorf("%q is of %+v", route, m)
		}
	}
}

// Every API can be named, and what it says of itself holds together.
func TestAPIs(t *testing.T) {
	for _, a := range All() {
		if b, ok := ByName(a.Name()); !ok || b != a {
			t.Errorf("%s is not found by its name", a.Name())
		}
		for _, route := range a.Routes() {
			if m, ok := ByPath("/some/base" + RoutePath(route, "m")); !ok || m.API != a || m.Route != route {
				t.Errorf("%s is not found by its route %s", a.Name(), route)
			}
		}
		if a.KeyVariable() == "" || len(a.Routes()) == 0 {
			t.Errorf("%s has no route, or no variable for its key", a.Name())
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
	if models, ok := ModelsPath(Chat, "/openai/chat/completions?api-version=1"); !ok || models != "/openai/models" {
		t.Errorf("models at %q", models)
	}
}

// What an engine takes beyond the API is known once it has named itself.
func TestPrepare(t *testing.T) {
	var o Options
	for _, engine := range []string{"", "vllm"} {
		if err := Chat.Prepare(engine, &o); err != nil {
			t.Fatal(err)
		}
		if o.MaxField != "max_tokens" || o.IgnoreEOS != (engine == "vllm") || o.RunningUsage != (engine == "vllm") {
			t.Errorf("engine %q: %+v", engine, o)
		}
	}
	for body, refused := range map[string]bool{`{"sampling_params":{"n":2}}`: true, `{"sampling_params":{"n":1}}`: false} {
		o := Options{Body: []byte(body)}
		_, err := SGLang.Body(nil, &workload.Request{Body: o.Body}, Options{Vocab: token.Universal()})
		if got := SGLang.Prepare("", &o); (got != nil) != refused || (err != nil) != refused || refused && say.HintOf(got) == "" {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	list := Chat.List([]byte(`{"data":[{"id":"a","owned_by":"vllm","max_model_len":8192},{"id":"b"}]}`))
	if got := Chat.List([]byte(`{"data":[{"id":"c","owned_by":"llamacpp","meta":{"n_ctx":1024,"n_ctx_train":4096}}]}`)); len(got) != 1 || got[0] != (Model{Name: "c", Engine: "llamacpp", Context: 1024}) {
		t.Errorf("%+v", got)
	}
	if len(list) != 2 || list[0] != (Model{Name: "a", Engine: "vllm", Context: 8192}) || list[1] != (Model{Name: "b"}) {
		t.Errorf("%+v", list)
	}
	for _, a := range All() {
		for _, body := range []string{"", "[]", "null", `{"data":{}}`, `{"data":[7]}`, "<html>"} {
			if got := a.List([]byte(body)); len(got) > 1 || len(got) == 1 && got[0].Name != "" {
				t.Errorf("%s reads models in %q: %+v", a.Name(), body, got)
			}
		}
	}
}
