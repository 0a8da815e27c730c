package cli

import (
	"os"
	"runtime/pprof"
)

// startCPUProfile writes a CPU profile of the whole run to the file that
// PITOT_CPUPROFILE names, for those who work on Pitot.
func startCPUProfile(getenv func(string) string) (stop func()) {
	path := getenv("PITOT_CPUPROFILE")
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err != nil || pprof.StartCPUProfile(f) != nil {
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}
}
