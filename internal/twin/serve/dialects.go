package serve

import (
	"pitot/internal/twin/serve/dialect"
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
