package deploy

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/twin/catalogue"
	"pitot/internal/twin/vllm"
	"pitot/internal/user"
)

func must(t testing.TB, spec string) *Deployment {
	t.Helper()
	d, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParse(t *testing.T) {
	d := must(t, "llama-3.1-8b@2xh100?max_num_seqs=64&kv_dtype=fp8&enable-prefix-caching=false&scheduling_policy=priority&step_overhead=1ms&price=2.5")
	if d.Model.Name != "llama-3.1-8b" || d.Accelerator.Name != "h100" || d.TensorParallel != 2 || d.Settings.MaxNumSeqs != 64 ||
		d.KVDType != "fp8" || d.Settings.EnablePrefixCaching || !d.Settings.Priority || d.Efficiency.PerStep != time.Millisecond || d.USDPerHour != 2.5 {
		t.Errorf("%+v", d)
	}
	for spec, want := range map[string]string{
		"llama-3.1-8b":                                    "does not name",
		"@h100":                                           "does not name",
		"lama-3.1-8b@h100":                                `unknown model "lama-3.1-8b"`,
		"llama-3.1-8b@h1000":                              "unknown accelerator",
		"llama-3.1-8b@3xh100":                             "tensor parallelism of 3",
		"llama-3.1-8b@0xh100":                             "tensor parallelism of 0",
		"llama-3.1-8b@h100?max_num_sqs=3":                 "unknown engine setting",
		"llama-3.1-8b@h100?max_num_seqs=many":             "not a whole number",
		"llama-3.1-8b@h100?watermark=2":                   "watermark",
		"llama-3.1-8b@h100?slow_cv=2.1":                   "slow_cv is 2.1",
		"llama-3.1-8b@h100?slow_cv=0.1&slow_time=0s":      "slow_time is 0s, it must be above 0",
		"llama-3.1-8b@h100?slow_time=-1s":                 "not a duration",
		"llama-3.1-8b@h100?dtype=fp7":                     "unknown data type",
		"llama-3.1-8b@h100?kv_dtype=int4":                 "cannot be kept",
		"llama-3.1-8b@h100?gpu_memory_utilization":        "not a number",
		"llama-3.1-8b@h100?max_num_seqs=1&max_num_seqs=2": "2 times",
		"llama-3.1-70b@h100":                              "does not fit",
		"llama-3.1-8b@rtx4090?max_model_len=100000":       "less than max_model_len",
		"./nowhere@h100":                                  "read model",
		"llama-3.1-8b@h100?profile=/nowhere":              "read profile",
		"llama-3.1-8b@h100?%zz":                           "settings",
	} {
		if _, err := Parse(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// What does not fit says by how much, and what would: and that does.
func TestWhatWouldFit(t *testing.T) {
	_, err := Parse("llama-3.1-70b@a100")
	if err == nil || !strings.Contains(err.Error(), "too much") {
		t.Fatal(err)
	}
	hint := user.Hint(err)
	if !strings.Contains(hint, "dtype=") || !strings.Contains(hint, "@2xa100") && !strings.Contains(hint, "@4xa100") {
		t.Fatal(hint)
	}
	for _, spec := range []string{"llama-3.1-70b@a100?dtype=int4", "llama-3.1-70b@4xa100"} {
		must(t, spec)
	}
}

// vLLM 0.19 found room for 2,588 blocks of 16 tokens beside Llama 3.1 8B on an
// RTX 4090 with gpu_memory_utilization 0.9 (testdata of package predict).
func TestMemoryAsTheEngineFoundIt(t *testing.T) {
	d := must(t, "llama-3.1-8b@rtx4090?gpu_memory_utilization=0.9&max_model_len=32768")
	if off := float64(d.Settings.NumGPUBlocks)/2588 - 1; math.Abs(off) > 0.03 {
		t.Errorf("%d blocks, %.1f %% off", d.Settings.NumGPUBlocks, off*100)
	}
}

// Every model of the catalogue on every accelerator works, or says what would.
func TestEveryPair(t *testing.T) {
	for _, m := range catalogue.Models() {
		for _, a := range catalogue.Accelerators() {
			for _, tp := range []string{"", "8x"} {
				spec := m.Name + "@" + tp + a.Name
				d, err := Parse(spec)
				if err != nil {
					if user.Hint(err) == "" {
						t.Errorf("%s: %v, and no hint", spec, err)
					}
					continue
				}
				b := d.Bounds()
				step := d.Parts(&vllm.Batch{Requests: 1, Tokens: 1, Logits: 1, Decodes: 1, DecodeContext: 1000}).Total()
				if !(step > b.StepFloor) || math.IsInf(step, 0) || b.PrefillToken <= 0 || d.KVTokens() < d.Settings.MaxModelLen {
					t.Errorf("%s: a step takes %v s, floor %v", spec, step, b.StepFloor)
				}
			}
		}
	}
}

// More work takes longer; more hardware or fewer bits do not.
func TestStepTimeIsMonotone(t *testing.T) {
	d := must(t, "llama-3.1-8b@h100")
	moe := must(t, "qwen3-30b-a3b@h100")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 512).Draw(t, "decodes")
		c := rapid.IntRange(1, 4096).Draw(t, "context")
		p := rapid.IntRange(0, 4096).Draw(t, "prompt")
		batch := func(n, c, p int) *vllm.Batch {
			b := &vllm.Batch{Requests: n, Tokens: n + p, Logits: n, Decodes: n, DecodeContext: int64(n * c)}
			if p > 0 {
				b.Requests++
				b.Prefills = []vllm.Chunk{{New: p}}
			}
			return b
		}
		for _, d := range []*Deployment{d, moe} {
			one := d.Parts(batch(n, c, p)).Total()
			for _, more := range []*vllm.Batch{batch(n+1, c, p), batch(n, c+1, p), batch(n, c, p+1)} {
				if d.Parts(more).Total() < one {
					t.Errorf("%+v takes less than %d, %d, %d", more, n, c, p)
				}
			}
			fp8 := *d
			fp8.DType = "fp8"
			if fp8.Parts(batch(n, c, p)).Total() > one {
				t.Error("half the bits take longer")
			}
		}
	})
}

// A mixture of experts touches the experts of one token when there is one
// token, and all of them when there are many.
func TestTouchedExperts(t *testing.T) {
	h := must(t, "qwen3-30b-a3b@h100").hardware()
	if got := h.touched(1); math.Abs(got-8) > 1e-9 {
		t.Errorf("one token touches %v experts, want 8", got)
	}
	if got := h.touched(1000); math.Abs(got-128) > 1e-6 {
		t.Errorf("a thousand tokens touch %v experts, want 128", got)
	}
}

func TestProfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.yaml")
	p := Profile{
		Schema: ProfileSchema, Deployment: "llama-3.1-8b@h100",
		Settings: map[string]string{"step_overhead": "5ms", "max_num_seqs": "32"},
		Range:    Range{Input: [2]int{100, 1000}, Output: [2]int{10, 100}, Running: [2]float64{1, 20}},
	}
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	d := must(t, "llama-3.1-8b@h100?max_num_seqs=16&profile="+path)
	if d.Efficiency.PerStep != 5*time.Millisecond || d.Settings.MaxNumSeqs != 16 {
		t.Errorf("%v, %d: the spec overrides the profile, and nothing else does", d.Efficiency.PerStep, d.Settings.MaxNumSeqs)
	}
	if s := d.Outside(500, 50, 10); s != "" {
		t.Error(s)
	}
	for _, s := range []string{d.Outside(5000, 50, 10), d.Outside(500, 5000, 10), d.Outside(500, 50, 100)} {
		if !strings.Contains(s, "outside the fitted range") {
			t.Errorf("%q", s)
		}
	}
	if d := must(t, "llama-3.1-8b@a100?profile="+path); !strings.Contains(strings.Join(d.Notes, " "), "fitted for llama-3.1-8b@h100") {
		t.Errorf("%q", d.Notes)
	}
	for name, text := range map[string]string{
		"not YAML": ":\n\t-", "other": "schema: something/v1\n", "keys": "schema: pitot.profile/v1\nfoo: 1\n",
		"setting": "schema: pitot.profile/v1\nsettings: {step_overhead: soon}\n", "unknown": "schema: pitot.profile/v1\nsettings: {warp: 9}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("llama-3.1-8b@h100?profile=" + path); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("llama-3.1-8b@2xh100?max_num_seqs=64&kv_dtype=fp8")
	f.Add("qwen2.5-0.5b@cpu?block_size=0&num_gpu_blocks=99999999999")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "profile") || strings.ContainsAny(s, "./") {
			return
		}
		d, err := Parse(s)
		if err == nil && d.Settings.Check() != nil {
			t.Errorf("%q gives impossible settings: %v", s, d.Settings.Check())
		}
	})
}
