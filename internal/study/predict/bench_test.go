package predict

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pitot/internal/twin/deploy"
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
	c := compare(r, d)
	seed := uint64(0)
	for b.Loop() {
		seed++
		c.residuals(c.momentsOf(c.replayed(d, seed)))
	}
}

// What one load of a predicted curve takes.
func BenchmarkCurve(b *testing.B) {
	d, err := deploy.Parse("llama-3.1-8b@h100")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Curve(d, workload.Fixed(1024), workload.Fixed(128), []int{64})
	}
}

// What a core does in a second of a search's replay, see [WorkPerSecond].
func BenchmarkRehearsal(b *testing.B) {
	for _, spec := range []string{"llama-3.1-8b@h100", "llama-3.1-70b@4xh100", "qwen3-14b@l40s?max_num_seqs=32"} {
		d, err := deploy.Parse(spec)
		if err != nil {
			b.Fatal(err)
		}
		for _, lengths := range [][2]int32{{512, 32}, {1024, 256}} {
			b.Run(fmt.Sprintf("%s/%d-%d", spec, lengths[0], lengths[1]), func(b *testing.B) {
				r := &Rehearsal{Deployment: d, Claims: nil, Alone: true, Law: func(rate float64, seed uint64) (interface{ Next() int64 }, func(int64) Asked, error) {
					rng, at := rand.New(rand.NewPCG(seed, 1)), 0.
					return nextFunc(func() int64 { at += rng.ExpFloat64() / rate * 1e9; return int64(at) }), func(int64) Asked {
						return Asked{Input: lengths[0]/2 + rng.Int32N(lengths[0]), Output: lengths[1]/2 + rng.Int32N(lengths[1])}
					}, nil
				}}
				for b.Loop() {
					if _, err := r.Long(b.Context(), []float64{2, 4}, 4_000); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.spent.Load())/b.Elapsed().Seconds(), "work/s")
			})
		}
	}
}

type nextFunc func() int64

func (f nextFunc) Next() int64 { return f() }
