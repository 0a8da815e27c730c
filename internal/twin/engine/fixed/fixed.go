// Package fixed is the engine of fixed latencies: it runs on no hardware, and its times do
// not depend on load.
package fixed

import (
	"pitot/internal/twin"
	"pitot/internal/twin/engine"
)

// Kind is the engine of fixed latencies.
var Kind = engine.Kind{
	Name: "fixed", Title: "fixed latencies",
	Scheduler: engine.Scheduler{Latencies: func(c twin.FixedConfig) twin.Engine { return twin.NewFixed(c) }},
}
