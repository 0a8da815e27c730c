package api

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// named is an API like Gemini's: its routes name the model, and another is asked for
// answers that are not streamed.
type named struct{ API }

func (named) Name() string        { return "named" }
func (named) KeyVariable() string { return "NAMED_API_KEY" }
func (named) Models() string      { return "/v1beta/models" }
func (named) Routes() []string {
	return []string{"/v1beta/models/{model}:streamGenerateContent", "/v1beta/models/{model}:generateContent"}
}

func (a named) Prepare(engine string, o *Options) error {
	if !o.Stream {
		o.Route = a.Routes()[1]
	}
	return nil
}

// twofold is an API like Ollama's, which takes a chat at one route and a bare prompt
// at another.
type twofold struct{ API }

func (twofold) Name() string            { return "twofold" }
func (twofold) Alias(string) string     { return "" }
func (twofold) Routes() []string        { return []string{"/api/chat", "/api/generate"} }
func (twofold) Messages(o Options) bool { return o.Route == "/api/chat" }

func (a twofold) Body(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	switch {
	case a.Messages(o):
		return Chat.Body(dst, r, o)
	case o.Route == "/api/generate":
		return Completions.Body(dst, r, o)
	}
	return nil, errors.New("no route")
}

// Paths are taken apart as they are put together, whichever form a route has.
func TestRoutes(t *testing.T) {
	apis := []API{named{Chat}, twofold{Chat}, Chat, Completions}
	for path, want := range map[string]Match{
		"/v1beta/models/gem-2:streamGenerateContent":       {API: named{Chat}, Route: named{Chat}.Routes()[0], Model: "gem-2"},
		"/p/v1beta/models/gem-2:generateContent?alt=sse":   {API: named{Chat}, Route: named{Chat}.Routes()[1], Base: "/p", Model: "gem-2"},
		"/v1beta/models/tuned/gem%203:generateContent/":    {API: named{Chat}, Route: named{Chat}.Routes()[1], Model: "tuned/gem 3"},
		"/v1beta/models/:generateContent":                  {},
		"/v1beta/models":                                   {},
		"/api/generate":                                    {API: twofold{Chat}, Route: "/api/generate"},
		"/behind/api/chat":                                 {API: twofold{Chat}, Route: "/api/chat", Base: "/behind"},
		"/openai/chat/completions":                         {API: Chat, Route: "/v1/chat/completions", Base: "/openai"},
		"/v1beta/models/%zz:generateContent":               {},
		"/v1beta/models/a:generateContent:generateContent": {API: named{Chat}, Route: named{Chat}.Routes()[1], Model: "a:generateContent"},
	} {
		if m, ok := matchRoute(path, apis); m != want || ok != (want.API != nil) {
			t.Errorf("%s: %+v, want %+v", path, m, want)
		}
	}
	if withoutVersion("/v1/models") != "/models" || withoutVersion("/v1beta/models") != "/v1beta/models" || withoutVersion("/v1") != "/v1" {
		t.Error("a version is not what it seems")
	}
	if at, ok := ModelsPath(named{Chat}, "/p/v1beta/models/x:generateContent"); !ok || at != "/p/v1beta/models" {
		t.Errorf("models at %q", at)
	}
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.StringN(1, 20, -1).Filter(func(s string) bool { return len([]byte(s)) > 0 }).Draw(t, "model")
		route := rapid.SampledFrom(named{Chat}.Routes()).Draw(t, "route")
		m, ok := matchRoute("/base"+RoutePath(route, model), apis)
		if !ok || m.Model != model || m.Route != route || m.Base != "/base" {
			t.Fatalf("%q: %+v", RoutePath(route, model), m)
		}
	})
}

// What is asked follows from the route.
func TestBodyOfARoute(t *testing.T) {
	r := workload.Request{Messages: user(workload.Segment{Text: "Hi"})}
	for route, want := range map[string]string{
		"/api/chat":     `{"model":"m","messages":[{"role":"user","content":"Hi"}],"temperature":0}`,
		"/api/generate": `{"model":"m","prompt":"Hi","temperature":0}`,
	} {
		if got, err := (twofold{Chat}).Body(nil, &r, Options{Model: "m", Route: route, Vocab: token.Universal()}); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", route, got, err)
		}
	}
}

// Google's server has OpenAI's routes below a version of its own.
func TestBelow(t *testing.T) {
	for _, c := range [][3]string{
		{"/v1beta/openai", "/v1/chat/completions", "/v1beta/openai/chat/completions"},
		{"/x/v1beta/openai", "/v1/models", "/x/v1beta/openai/models"},
		{"/openai", "/v1/models", "/openai/v1/models"},
		{"", "/v1/models", "/v1/models"},
	} {
		if got := RouteBelow(c[0], c[1]); got != c[2] {
			t.Errorf("%s below %s: %s", c[1], c[0], got)
		}
	}
}
