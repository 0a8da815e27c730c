// Package arrival says when requests are due: pure streams of times, from a
// rate and a seed, that no answer has a part in. It has no clock and no I/O.
package arrival

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pitot/internal/say"
)

// Process is a stream of due times that never ends.
type Process interface {
	// Next is the next due time in nanoseconds since the start of the load.
	// It never goes back, and stays at math.MaxInt64 once it has come there.
	Next() int64
}

// Rates that a process can have, per second: from one in twelve days to one a
// nanosecond.
const (
	MinRate = 1e-6
	MaxRate = 1e9
)

// maker makes one kind of process.
type maker struct {
	name string
	make func(rate float64, seed uint64) (Process, error)
}

// makers is the one list of the kinds there are, in the order of the help.
func makers() []maker {
	return []maker{
		{"poisson", NewPoisson},
		{"constant", func(rate float64, _ uint64) (Process, error) { return NewConstant(rate) }},
	}
}

// Names are the names that Parse knows.
func Names() []string {
	var names []string
	for _, m := range makers() {
		names = append(names, m.name)
	}
	return names
}

// Parse makes the process of that name with so many requests per second. The
// hint of an unknown name tells the nearest one there is.
//
// gamma(SHAPE) is a family of kinds.
func Parse(name string, rate float64, seed uint64) (Process, error) {
	if rest, ok := strings.CutPrefix(name, "gamma"); ok {
		number, closed := strings.CutSuffix(strings.TrimPrefix(rest, "("), ")")
		shape, err := strconv.ParseFloat(number, 64)
		if err != nil || !closed || !strings.HasPrefix(rest, "(") {
			return nil, say.Errorf("%.60q wants its shape", name).WithHint("for example gamma(0.5): gaps with a coefficient of variation of 1/√shape")
		}
		return NewGamma(rate, shape, seed)
	}
	for _, m := range makers() {
		if m.name == name {
			return m.make(rate, seed)
		}
	}
	return nil, say.Errorf("unknown arrival process %.60q", name).WithHint(say.Known(name, Names()))
}

func checkRate(rate float64) error {
	if math.IsNaN(rate) || rate < MinRate || rate > MaxRate {
		return fmt.Errorf("rate %g is out of range: want %g to %g requests per second", rate, MinRate, MaxRate)
	}
	return nil
}
