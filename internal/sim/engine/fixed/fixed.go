// Package fixed is the engine of fixed latencies: it runs on no hardware, and its times do
// not depend on load.
package fixed

import (
	"pitot/internal/sim"
	"pitot/internal/sim/engine"
)

// Kind is the engine of fixed latencies.
var Kind = engine.Kind{
	Name: "fixed", Title: "fixed latencies",
	Scheduler: engine.Scheduler{Latencies: func(c sim.FixedConfig) sim.Engine { return sim.NewFixed(c) }},
}
