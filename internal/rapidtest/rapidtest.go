// Package rapidtest makes property tests draw the same cases each time.
// A package whose tests use rapid imports it for its side effect.
//
// RAPID_SEED=0, or -rapid.seed=0, draws other cases each time.
package rapidtest

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // registers the flag
)

func init() {
	if _, given := os.LookupEnv("RAPID_SEED"); given {
		return
	}
	seed := flag.Lookup("rapid.seed")
	seed.DefValue = "1"
	if err := seed.Value.Set(seed.DefValue); err != nil {
		panic(err)
	}
}
