package main

import (
	"fmt"

	"pitot/internal/workload"
)

// presets prints how much processor time a choice takes for each workload with a name, of the
// same model, accelerators and limits.
func presets(pitot string) error {
	const limits = "p99 ttft<5s, p99 tpot<40ms"
	fmt.Printf("llama-3.1-70b on h100,h200,a100,l40s:8, %s\n\n| workload | rate | candidates | simulated | processor time | of 400 |\n|---|---|---|---|---|---|\n", limits)
	for _, p := range workload.Presets() {
		rate := "5"
		if p.Turns != "" { // of conversations
			rate = "0.5"
		}
		x, seconds, err := chosen(pitot, "--model", "llama-3.1-70b", "--gpus", "h100,h200,a100,l40s:8", "--workload", p.Name, "--slo", limits, "--rate", rate)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		n := x.Counts
		fmt.Printf("| %s | %s/s | %d | %d | %.1f s | %.1f s |\n", p.Name, rate, n.All, n.Simulated, seconds, seconds/float64(n.All)*400)
	}
	return nil
}
