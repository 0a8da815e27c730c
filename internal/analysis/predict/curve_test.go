package predict

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"pitot/internal/config"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/session"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// ran is a run of a simulated target, without its report.
func ran(t testing.TB, target string, args ...string) (dir string, p result.Point) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	pl, _, err := config.Decode(config.VerbRun, append(args, "--out", dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	pl.Spec = target
	measured, _, err := (&session.Runner{}).Run(t.Context(), &pl)
	if err != nil {
		t.Fatal(err)
	}
	return dir, measured.Points[0]
}

// Requests per second times the time that one stays are the users (Little's
// law), and the curve says what a run of the same load on sim: measures.
func TestCurveIsWhatARunMeasures(t *testing.T) {
	for _, c := range []struct {
		spec, in, out string
		users         []int
	}{
		{"llama-3.1-8b@h100", "1024", "128", []int{1, 16, 64}},
		{"qwen3-30b-a3b@h200", "uniform(100,2000)", "uniform(20,300)", []int{4, 32}},
		{"qwen3-32b@2xa100?dtype=fp8", "300", "lognormal(100,60)", []int{16}},
		{"llama-3.1-8b@l4", "1024", "128", []int{64}}, // more than its KV cache holds
	} {
		if testing.Short() {
			if c.spec != "llama-3.1-8b@h100" {
				continue
			}
			c.users = c.users[:2]
		}
		d, err := deploy.Parse(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		in, _ := workload.ParseLengths(c.in)
		out, _ := workload.ParseLengths(c.out)
		for _, x := range Curve(d, in, out, c.users) {
			stay := x.E2E.Mean / 1e3
			if l := x.RequestsPerS * stay / float64(x.Users); math.Abs(l-1) > 0.01 {
				t.Errorf("%s: %d users, but %.4g/s of %.4g s each are %.4g", c.spec, x.Users, x.RequestsPerS, stay, l*float64(x.Users))
			}
			_, p := ran(t, "sim:"+c.spec, "--concurrency", fmt.Sprint(x.Users), "--input", c.in, "--output", c.out, "--seed", "1",
				"--duration", fmt.Sprintf("%.0fs", stay*float64(max(10, 600/x.Users))))
			m := p.Metrics
			for _, f := range []struct {
				name            string
				curve, measured float64
				within          float64
			}{
				{"TTFT", x.TTFT.Mean, *m.SummaryOf(metric.TTFT).Mean, 0.08},
				{"TPOT", x.TPOT.Mean, *m.SummaryOf(metric.TPOT).Mean, 0.03},
				{"E2E", x.E2E.Mean, *m.SummaryOf(metric.E2E).Mean, 0.04},
				{"requests/s", x.RequestsPerS, *p.Throughput.RequestsPerS, 0.04},
				{"output tokens/s", x.OutputTokens, *p.Throughput.OutputTokensPerS, 0.04},
			} {
				if r := f.curve/f.measured - 1; math.Abs(r) > f.within {
					t.Errorf("%s, %d users: %s %.4g, a run measures %.4g (%+.1f %%)", c.spec, x.Users, f.name, f.curve, f.measured, 100*r)
				}
			}
		}
	}
}

// The first token comes of the prompt: an answer of one token has no step of
// its own.
func TestBoundOfRequests(t *testing.T) {
	d, err := deploy.Parse("llama-3.1-8b@h100")
	if err != nil {
		t.Fatal(err)
	}
	one, two := Curve(d, workload.FixedLength(16), workload.FixedLength(1), []int{1})[0], Curve(d, workload.FixedLength(16), workload.FixedLength(2), []int{1})[0]
	if b := d.Bounds(); math.Abs(one.BoundRequests*16*b.PrefillToken-1) > 1e-9 {
		t.Errorf("%v requests/s of one token at most", one.BoundRequests)
	}
	if floor := d.DecodeFloor(1, 17); math.Abs(two.BoundRequests*floor-1) > 1e-3 {
		t.Errorf("%v requests/s of two tokens, one step takes %v s", two.BoundRequests, floor)
	}
}

// A run on sim: and a replay of it on the same twin are one plan in one world,
// measured by one definition: every request is the same to the nanosecond, and the
// figures are those of run.json, open loop and closed.
func TestReplayIsTheRun(t *testing.T) {
	const spec = "llama-3.1-8b@h100?step_jitter=0&frontend_jitter=0"
	for name, args := range map[string][]string{
		"open":   {"--rate", "20", "--duration", "8s"},
		"closed": {"--concurrency", "24", "--requests", "200"},
		"prefix": {"--rate", "20", "--duration", "8s", "--prefix", "200", "--prefix-share", "0.5"},
	} {
		dir, p := ran(t, "sim:"+spec, append(args, "--input", "uniform(50,500)", "--output", "uniform(1,100)", "--seed", "5")...)
		d, err := deploy.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRun(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		again := r.serve(d, 1, func(int64, int64) bool { return true })
		for i, q := range r.Requests {
			if q.measured && again[i] != q.seen {
				t.Fatalf("%s: request %d: %+v, in the run %+v", name, i, again[i], q.seen)
			}
		}
		m := r.Replay(d).Metrics()
		for _, f := range []struct {
			metric metric.Name
			got    Quantities
		}{{metric.TTFT, m.TTFT}, {metric.TPOT, m.TPOT}, {metric.E2E, m.E2E}} {
			s := p.Metrics.SummaryOf(f.metric)
			for i, x := range [][2]float64{{f.got.Mean, *s.Mean}, {f.got.P50, *s.P50}, {f.got.P90, *s.P90}, {f.got.P99, *s.P99}} {
				if math.Abs(x[0]/x[1]-1) > 1e-12 { // seconds here, nanoseconds there
					t.Errorf("%s: %s, figure %d: %v, in run.json %v", name, f.metric, i, x[0], x[1])
				}
			}
		}
		if s := p.Metrics.SummaryOf(metric.Stall); math.Abs(quantities(r.RecordedSeries().Stall).P99/(*s.P99)-1) > 1e-12 {
			t.Errorf("%s: stall %v, in run.json %v", name, quantities(r.RecordedSeries().Stall).P99, *s.P99)
		}
	}
}
