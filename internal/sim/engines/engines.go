// Package engines lists the inference engines that Pitot knows, and the ways of speaking
// that servers have. A new engine is a package below sim/engine and a line here.
package engines

import (
	"cmp"
	"slices"
	"strings"

	"pitot/internal/sim/engine"
	"pitot/internal/sim/engine/fixed"
	"pitot/internal/sim/engine/sglang"
	"pitot/internal/sim/engine/vllm"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/native"
	"pitot/internal/sim/serve/vllmapi"
	"pitot/internal/telemetry"
)

// all are the engines. The first is the one that is meant where none is named.
var all = []*engine.Kind{
	&vllm.Kind,
	&sglang.Kind,
	&fixed.Kind,
}

// All returns the engines, the usual one first.
func All() []*engine.Kind { return all }

// Default returns the engine that is meant where none is named.
func Default() *engine.Kind { return all[0] }

// ByName returns the engine of a name.
func ByName(name string) (*engine.Kind, bool) {
	for _, k := range all {
		if k.Name == name {
			return k, true
		}
	}
	return nil, false
}

// Deployed returns the engines that run on hardware.
func Deployed() []*engine.Kind {
	return slices.DeleteFunc(slices.Clone(all), func(k *engine.Kind) bool { return k.New == nil })
}

// OfLatencies returns the engine that a target without hardware names, and its settings:
// NAME, NAME?settings, or nothing for fixed latencies.
func OfLatencies(target string) (k *engine.Kind, settings string, ok bool) {
	name, settings, _ := strings.Cut(target, "?")
	k, ok = ByName(cmp.Or(name, fixed.Kind.Name))
	return k, settings, ok && k.Latencies != nil
}

// Names returns the names of the engines that run on hardware.
func Names() (names []string) {
	for _, k := range Deployed() {
		names = append(names, k.Name)
	}
	return names
}

// Metrics returns what the engines call signals.
func Metrics() (sources []telemetry.Source) {
	for _, k := range all {
		if k.Metrics.Name != "" {
			sources = append(sources, k.Metrics)
		}
	}
	return sources
}

// Faces returns the ways of speaking that a server may have, the usual one first: those of
// the engines, and others whose routes stand beside some of vLLM's.
func Faces() (faces []engine.Face) {
	for _, k := range all {
		if f := k.Face; f.Open != nil {
			f.Name = k.Name
			faces = append(faces, f)
		}
	}
	return append(faces,
		engine.Face{Name: "ollama", About: " (/api/chat)", Open: openBeside(native.OllamaDialect), APIs: []string{"ollama"}},
		engine.Face{Name: "vllm-pooling", About: ", of embeddings and scores (/v1/embeddings, /v1/rerank)", Open: openBeside(native.VLLMPooling)})
}

// FaceNames returns the names of the ways of speaking.
func FaceNames() (names []string) {
	for _, f := range Faces() {
		names = append(names, f.Name)
	}
	return names
}

// openBeside opens a face whose routes stand beside some of vLLM's.
func openBeside(open func(dialect.Served, dialect.Dialect) dialect.Dialect) func(dialect.Served) dialect.Dialect {
	return func(s dialect.Served) dialect.Dialect { return open(s, vllmapi.Open(s)) }
}
