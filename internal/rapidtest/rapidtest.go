// Package rapidtest makes property tests draw the same cases each time, and half as many
// as rapid does by default. A package whose tests use rapid imports it for its side effect.
//
// RAPID_SEED=0 draws as many as rapid does, and other cases each time; -rapid.seed and
// -rapid.checks say it one by one.
package rapidtest

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // registers the flags
)

func init() {
	if _, given := os.LookupEnv("RAPID_SEED"); given {
		return
	}
	setFlagDefault("rapid.seed", "1")
	if _, given := os.LookupEnv("RAPID_CHECKS"); !given {
		setFlagDefault("rapid.checks", "50")
	}
}

// setFlagDefault gives a flag another default.
func setFlagDefault(name, value string) {
	f := flag.Lookup(name)
	f.DefValue = value
	if err := f.Value.Set(value); err != nil {
		panic(err)
	}
}
