package serve

import (
	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/native"
	"pitot/internal/twin/serve/vllmapi"
)

// dialects are the ways of speaking that a server may have, each named after
// the engine whose API server it is. A new one is a package next to vllmapi and a
// line here; the first is what a [Config] without a dialect means.
var dialects = []struct {
	name string
	open func(dialect.Served) dialect.Dialect
}{
	{"vllm", vllmapi.Open},
	{"sglang", beside(native.SGLang)},
	{"tgi", beside(native.TGI)},
	{"ollama", beside(native.Ollama)},
	{"llamacpp", beside(native.LlamaCpp)},
}

// beside is a dialect whose routes stand beside some of vLLM's.
func beside(open func(dialect.Served, dialect.Dialect) dialect.Dialect) func(dialect.Served) dialect.Dialect {
	return func(s dialect.Served) dialect.Dialect { return open(s, vllmapi.Open(s)) }
}

// Dialects lists the ways of speaking, the usual one first.
func Dialects() (names []string) {
	for _, d := range dialects {
		names = append(names, d.name)
	}
	return names
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
