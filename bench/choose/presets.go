package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"pitot/internal/study/choose"
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
		run := exec.Command(pitot, "choose", "--model", "llama-3.1-70b", "--gpus", "h100,h200,a100,l40s:8", "--workload", p.Name, "--slo", limits, "--rate", rate, "--format", "json")
		run.Env = append(os.Environ(), "GOMAXPROCS=1")
		var out, mistake bytes.Buffer
		run.Stdout, run.Stderr = &out, &mistake
		err := run.Run()
		var x choose.Choice
		if e := json.Unmarshal(out.Bytes(), &x); e != nil {
			return fmt.Errorf("choose for %s: %w: %s", p.Name, err, mistake.String())
		}
		n, seconds := x.Counts, (run.ProcessState.UserTime() + run.ProcessState.SystemTime()).Seconds()
		fmt.Printf("| %s | %s/s | %d | %d | %.1f s | %.1f s |\n", p.Name, rate, n.All, n.Simulated, seconds, seconds/float64(n.All)*400)
	}
	return nil
}
