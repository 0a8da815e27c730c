package serve

import (
	"slices"

	"pitot/internal/sim/engine"
	"pitot/internal/sim/engines"
	"pitot/internal/sim/serve/dialect"
)

// APIs lists what can be asked of one way of speaking or another, the usual first.
func APIs() (names []string) {
	for _, f := range engines.Faces() {
		names = append(names, f.APIs...)
	}
	return names
}

// DialectOf is the way of speaking of a server that has an API, false where none has.
func DialectOf(api string) (name string, ok bool) {
	for _, f := range engines.Faces() {
		if slices.Contains(f.APIs, api) {
			return f.Name, true
		}
	}
	return "", false
}

// openDialect gives the dialect with a name, the usual one where there is none.
func openDialect(name string, s dialect.Served) dialect.Dialect {
	faces := engines.Faces()
	i := max(slices.IndexFunc(faces, func(f engine.Face) bool { return f.Name == name }), 0)
	return faces[i].Open(s)
}
