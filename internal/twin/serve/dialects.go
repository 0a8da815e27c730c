package serve

import (
	"slices"

	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/native"
	"pitot/internal/twin/serve/sglangapi"
	"pitot/internal/twin/serve/vllmapi"
)

// dialects are the ways of speaking that a server may have, each named after the engine
// whose API server it is, in the order of [dialect.Names]. A new one is a package next to
// vllmapi and a line here, with the APIs that are first its own, by the names that clients
// have for them, as far as these generate; the first is what a [Config] without a dialect
// means.
var dialects = []struct {
	name string
	open func(dialect.Served) dialect.Dialect
	apis []string
}{
	{"vllm", vllmapi.Open, []string{"openai-completions", "openai-chat", "openai-responses", "anthropic"}},
	{"sglang", sglang, []string{"sglang"}},
	{"ollama", beside(native.Ollama), []string{"ollama"}},
	{"vllm-pooling", beside(native.VLLMPooling), nil},
}

// beside is a dialect whose routes stand beside some of vLLM's.
func beside(open func(dialect.Served, dialect.Dialect) dialect.Dialect) func(dialect.Served) dialect.Dialect {
	return func(s dialect.Served) dialect.Dialect { return open(s, vllmapi.Open(s)) }
}

// sglang is SGLang's, with its own route beside OpenAI's.
func sglang(s dialect.Served) dialect.Dialect {
	return widened{sglangapi.Open(s), []dialect.Route{native.Generate(s)}}
}

// widened is a dialect with more routes.
type widened struct {
	dialect.Dialect
	more []dialect.Route
}

// Routes implements [dialect.Dialect].
func (w widened) Routes() []dialect.Route { return append(w.Dialect.Routes(), w.more...) }

// APIs lists what can be asked of one of them or another, the usual first.
func APIs() (names []string) {
	for _, d := range dialects {
		names = append(names, d.apis...)
	}
	return names
}

// DialectOf is the way of speaking of a server that has an API, false where none has.
func DialectOf(api string) (name string, ok bool) {
	for _, d := range dialects {
		if slices.Contains(d.apis, api) {
			return d.name, true
		}
	}
	return "", false
}

// openDialect gives the dialect with a name.
func openDialect(name string, s dialect.Served) dialect.Dialect {
	for _, d := range dialects {
		if d.name == name {
			return d.open(s)
		}
	}
	return dialects[0].open(s)
}
