package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pitot/internal/data/rundir"
)

// Whatever a result says follows from what is kept beside it: one that is gone, as
// after a kill at the last moment, is made again to the byte.
func TestResultMadeAgain(t *testing.T) {
	for name, args := range map[string][]string{
		"run":      {"run", "sim:fixed", "--rate", "20", "--duration", "3s", "--warmup", "1s"},
		"repeated": {"run", "sim:fixed", "--rate", "20", "--duration", "3s", "--warmup", "1s", "--repeat", "3"},
		"sweep":    {"sweep", "sim:llama-3.1-8b@h100", "--points", "4", "--max-load", "20", "--duration", "2s"},
		"find":     {"find", "sim:llama-3.1-8b@h100", "--slo", "p90 ttft<60ms", "--budget", "30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			code, _, stderr := pitot(t, append(args, "--seed", "7", "--input", "64", "--output", "8", "--quiet", "--out", dir)...)
			path := filepath.Join(dir, rundir.Result)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			again, _, stderr := pitot(t, "report", dir)
			if again != code {
				t.Errorf("exit code %d, then %d\n%s", code, again, stderr)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("another result: %v", err)
			}
		})
	}
}
