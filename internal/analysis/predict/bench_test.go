package predict

import (
	"testing"

	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// What a replay of a recording takes, of which a prediction makes some dozens.
func BenchmarkReplay(b *testing.B) {
	r, err := ReadRecording("testdata/rtx4090-llama-3.1-8b")
	if err != nil {
		b.Fatal(err)
	}
	d, err := r.Deployment("")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.Replay(d)
	}
}

// What a fit takes for one replay of a run, of which it makes hundreds.
func BenchmarkFitted(b *testing.B) {
	const spec = "llama-3.1-8b@h100?step_jitter=0.05"
	dir, _ := ran(b, "sim:"+spec, "--concurrency", "16", "--requests", "600", "--input", "uniform(50,500)", "--output", "uniform(20,200)", "--seed", "1")
	d, err := deploy.Parse(spec)
	if err != nil {
		b.Fatal(err)
	}
	r, err := ReadRun(dir, 0)
	if err != nil {
		b.Fatal(err)
	}
	c := newComparison(r, d)
	seed := uint64(0)
	for b.Loop() {
		seed++
		c.momentResiduals(c.momentsOf(c.replayRun(d, seed)))
	}
}

// What one load of a predicted curve takes.
func BenchmarkCurve(b *testing.B) {
	d, err := deploy.Parse("llama-3.1-8b@h100")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Curve(d, workload.FixedLength(1024), workload.FixedLength(128), []int{64})
	}
}
