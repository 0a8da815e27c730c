package vllm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pitot/internal/sim"
)

// waits gives an engine a Poisson stream of jobs and returns the mean time
// from a job's arrival to its first step, with the half width of its 99 %
// confidence interval from batch means (Law, Simulation Modeling and Analysis,
// section 9.5.3). The first tenth of the jobs is left out.
func waits(t *testing.T, s Settings, perStep time.Duration, meanGap float64, jobs int, output func(*rand.Rand) int) (mean, half float64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	e := New(s, Flat{PerStep: perStep})
	wait := make([]float64, jobs)
	collect := func(out []sim.Emission) {
		for _, o := range out {
			if o.Trace != nil {
				wait[o.ID] = float64(o.Trace.Scheduled - o.Trace.Arrived)
			}
		}
	}
	at := 0.0
	free := make([]int64, s.MaxNumSeqs) // when each slot will be, in a queue without steps
	exact := make([]int64, jobs)
	for id := range jobs {
		at += rnd.ExpFloat64() * meanGap
		collect(late(e, 0, int64(at)))
		n := output(rnd)
		e.Add(int64(at), sim.Job{ID: int64(id), Prompt: 1, Output: n})
		slot := slices.Index(free, slices.Min(free))
		exact[id] = max(0, free[slot]-int64(at))
		free[slot] = int64(at) + exact[id] + int64(n)*int64(perStep)
	}
	collect(late(e, 0, forever))
	for id, w := range wait {
		// Kiefer and Wolfowitz, 1955: each takes the slot that is free first.
		// With one slot the steps begin with the jobs. With more a job waits
		// for the next step besides, and so may those behind it.
		if d := w - float64(exact[id]); d < 0 || s.MaxNumSeqs == 1 && d > 0 {
			t.Fatalf("job %d waits %.0f ns, in a queue without steps %d ns", id, w, exact[id])
		}
	}

	const batches, quantile = 30, 2.756 // Student's t, 29 degrees of freedom, 0.995
	wait = wait[jobs/10:]
	size := len(wait) / batches
	var sum, squares float64
	for b := range batches {
		m := 0.0
		for _, w := range wait[b*size : (b+1)*size] {
			m += w / float64(size)
		}
		sum, squares = sum+m, squares+m*m
	}
	mean = sum / batches
	return mean, quantile * math.Sqrt((squares/batches-mean*mean)/(batches-1))
}

// queueing are settings under which only max_num_seqs is short.
func queueing(slots int) Settings {
	return Settings{
		sim.Settings{
			MaxNumSeqs: slots, MaxNumBatchedTokens: 64, MaxModelLen: 1 << 14, BlockSize: 1 << 14, NumGPUBlocks: slots + 2,
			StreamInterval: 1 << 20,
		},
		Own{
			EnableChunkedPrefill: true, SchedulerReserveFullISL: true,
		},
	}
}

// One slot and one step for each job is M/D/1, whose mean wait is
// Pollaczek and Khinchine's: rho D / (2 (1 - rho)).
func TestQueueMD1(t *testing.T) {
	const d = 1e6
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		want := rho * d / (2 * (1 - rho))
		mean, half := waits(t, queueing(1), d, d/rho, 60_000, func(*rand.Rand) int { return 1 })
		t.Logf("rho %.1f: wait %.4f D, interval ± %.4f, theory %.4f", rho, mean/d, half/d, want/d)
		if math.Abs(mean-want) > half || half > 0.15*want {
			t.Errorf("rho %.1f: mean wait %.4f D ± %.4f, theory has %.4f D", rho, mean/d, half/d, want/d)
		}
	}
}

// Several slots, exponential lengths and steps that last the same however many
// run are M/M/c, whose mean wait is Erlang's C / (c mu - lambda). A job that
// finds a free slot still waits for the running step, so the steps are short
// beside the jobs.
func TestQueueMMc(t *testing.T) {
	const length, perStep = 60.0, 1000 // mean steps of a job; ns
	for _, q := range []struct {
		slots int
		rho   float64
	}{{1, 0.6}, {4, 0.8}, {8, 0.8}} {
		c := float64(q.slots)
		service := length * perStep
		want := erlangC(q.slots, q.rho*c) * service / (c * (1 - q.rho))
		mean, half := waits(t, queueing(q.slots), perStep, service/(c*q.rho), 30_000, func(r *rand.Rand) int {
			return int(math.Ceil(r.ExpFloat64() * length))
		})
		t.Logf("c %d, rho %.1f: wait %.4f of a service, interval ± %.4f, theory %.4f", q.slots, q.rho, mean/service, half/service, want/service)
		if math.Abs(mean-want) > half+perStep {
			t.Errorf("c %d, rho %.1f: mean wait %.4f ± %.4f, theory has %.4f", q.slots, q.rho, mean/service, half/service, want/service)
		}
	}
}

// erlangC is the probability that a job finds all c slots taken at an offered
// load of a (Erlang, 1917), by the recurrence for the loss probability.
func erlangC(c int, a float64) float64 {
	b := 1.0
	for i := 1; i <= c; i++ {
		b = a * b / (float64(i) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho*(1-b))
}
