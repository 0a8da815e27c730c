package predict

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// worst is the error that is farthest from zero.
func worst(m Metrics) float64 {
	w := 0.0
	for _, q := range []Quantities{m.TTFT, m.TPOT, m.E2E} {
		for _, v := range []float64{q.Mean, q.P50, q.P90, q.P99} {
			w = max(w, math.Abs(v))
		}
	}
	return w
}

// The twin against what vLLM did on real GPUs: every figure within 4 % with
// one scalar fitted on the mean TPOT, and within 5 % with none.
func TestReplay(t *testing.T) {
	for dir, spec := range map[string]string{
		"rtx4090-llama-3.1-8b":    "", // the recording names both
		"rtxpro6000-llama-3.1-8b": "llama-3.1-8b@rtxpro6000",
	} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			r, err := ReadRecording(filepath.Join("testdata", dir))
			if err != nil {
				t.Fatal(err)
			}
			d, err := r.Deployment(spec)
			if err != nil {
				t.Fatal(err)
			}
			x := r.Compare(d)
			if !x.InSample {
				t.Error("constants of the twin were chosen on it, and it is not said")
			}
			if w := worst(x.ErrorPct); w > 4 {
				t.Errorf("fitted: off by %.1f %%: %+v", w, x.ErrorPct)
			}
			if w := worst(x.Unfitted.ErrorPct); w > 5 {
				t.Errorf("unfitted: off by %.1f %%: %+v", w, x.Unfitted.ErrorPct)
			}
			if math.Abs(x.ErrorPct.TPOT.Mean) > 0.1 {
				t.Errorf("the scalar was fitted on the mean TPOT, which is off by %.2f %%", x.ErrorPct.TPOT.Mean)
			}
			r.Requests[0].Input++
			if r.InSample() {
				t.Error("another recording is taken for it")
			}
			t.Logf("scalar %.4f, worst error %.2f %% fitted, %.2f %% unfitted", x.Scalar, worst(x.ErrorPct), worst(x.Unfitted.ErrorPct))
		})
	}
}

// The directory's name tells the accelerator where meta.json does not.
func TestReplayNamesTheDevice(t *testing.T) {
	r, err := ReadRecording("testdata/rtxpro6000-llama-3.1-8b")
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.Deployment("")
	if err != nil || d.Accelerator.Name != "rtxpro6000" || d.Settings.MaxNumSeqs != 128 {
		t.Errorf("%+v, %v", d, err)
	}
	// What is given on the command line comes last.
	if d, err = r.Deployment("llama-3.1-8b@2xrtx4090?max_num_seqs=7"); err != nil || d.Settings.MaxNumSeqs != 7 || d.Accelerator.Name != "rtx4090" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestDamagedRecordings(t *testing.T) {
	const meta, line = `{"model":"m"}`, `{"input_length":5,"output_length":2,"arrival_s":0,"queue_s":0,"first_token_s":1,"last_token_s":2}`
	for name, c := range map[string]struct{ meta, requests, want string }{
		"no meta":      {"", line, "no such file"},
		"bad meta":     {"{", line, "meta.json"},
		"no requests":  {meta, "\n\n", "no requests"},
		"bad line":     {meta, line + "\n{", "line 2"},
		"lengths":      {meta, strings.Replace(line, "5", "0", 1), "lengths"},
		"back in time": {meta, strings.Replace(line, `"last_token_s":2`, `"last_token_s":0.5`, 1), "before the first"},
		"hashes":       {meta, strings.Replace(line, `"queue_s"`, `"hash_ids":[1,2],"queue_s"`, 1), "more than a prompt of 5 tokens has"},
		"times":        {meta, strings.Replace(line, `"arrival_s":0`, `"arrival_s":-1`, 1), "impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.meta != "" {
				if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(c.meta), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "requests.jsonl"), []byte(c.requests), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadRecording(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || say.HintOf(err) == "" {
				t.Errorf("%v, want %q and a hint", err, c.want)
			}
		})
	}
}

func FuzzRecording(f *testing.F) {
	f.Add(`{"input_length":5,"output_length":2,"arrival_s":0,"first_token_s":1,"last_token_s":2,"hash_ids":[1]}`)
	f.Fuzz(func(t *testing.T, s string) {
		list, err := readRequests(strings.NewReader(s))
		if err == nil && len(list) == 0 {
			t.Error("nothing, and no error")
		}
	})
}

// The twin obeys the bounds that the datasheet sets, and less load is never
// slower.
func TestCurveKeepsTheBounds(t *testing.T) {
	specs := []string{"llama-3.1-8b@rtx4090", "qwen3-30b-a3b@h100", "qwen3-32b@2xa100?dtype=fp8", "qwen2.5-0.5b@l4"}
	if testing.Short() {
		specs = specs[:1]
	}
	for _, spec := range specs {
		d, err := deploy.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Predict(d, workload.FixedLength(1024), workload.FixedLength(32))
		if err != nil {
			t.Fatal(err)
		}
		last := 0.0
		for _, e := range x.Curve {
			if e.TPOT.Mean < e.BoundTPOT || e.RequestsPerS > e.BoundRequests || e.TTFT.P50 < x.Bounds.PrefillToken*1e3*1024 {
				t.Errorf("%s at %d users: better than possible: %+v", spec, e.Users, e)
			}
			if e.TPOT.Mean < last*0.99 {
				t.Errorf("%s at %d users: TPOT %v ms, with fewer %v", spec, e.Users, e.TPOT.Mean, last)
			}
			last = e.TPOT.Mean
		}
	}
}
