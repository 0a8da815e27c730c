package deploy

import (
	"math"
	"testing"
)

// What SGLang takes where nothing is said, by memory_hook.py and kv_cache_configurator.py.
func TestSGLangsDefaults(t *testing.T) {
	for spec, want := range map[string]struct {
		chunk, graphs int
		fraction      float64
	}{
		"llama-3.1-8b@h100": {8192, 256, (79.2 - 12.5) / 79.2}, "llama-3.1-8b@4xh100": {8192, 512, 0}, "llama-3.1-8b@l4": {4096, 48, 0},
		"llama-3.1-8b@b200": {16384, 512, 0}, "llama-3.1-8b@l40s": {4096, 32, 0},
	} {
		d := must(t, spec+"?engine=sglang")
		s := &d.Settings
		if s.MaxNumBatchedTokens != want.chunk || d.CaptureSize != want.graphs || s.MaxNumSeqs < 2048 || s.MaxNumSeqs > 4096 || s.MaxModelLen > d.KVTokens()-2 {
			t.Errorf("%s: %+v, graphs up to %d", spec, s, d.CaptureSize)
		}
		reserved := (1 - d.MemoryUtilization) * d.Accelerator.MemoryGiB
		if d.Accelerator.MemoryGiB > 60 && reserved < 10-1e-9 || reserved < 0.5 {
			t.Errorf("%s: %.2f GiB are left free", spec, reserved)
		}
		if left := d.Memory.Requested - d.Memory.Weights - d.Memory.Other - d.Memory.KV; math.Abs(left) > 1 {
			t.Errorf("%s: %+v", spec, d.Memory)
		}
	}
	d := must(t, "llama-3.1-8b@h100?engine=sglang&max_total_tokens=5000&context_length=9000&disable_radix_cache=true&disable_overlap_schedule=true")
	if s := &d.Settings; s.KVTokens() != 5000 || s.MaxModelLen != 4998 || s.EnablePrefixCaching || s.AsyncScheduling {
		t.Errorf("%+v", s)
	}
}

func TestKnobsOfSGLang(t *testing.T) {
	v, s := must(t, "llama-3.1-8b@h100"), must(t, "llama-3.1-8b@h100?engine=sglang")
	for name, want := range map[string]string{"max_num_seqs": "max_running_requests", "quantization": "quantization", "async_scheduling": "disable_overlap_schedule", "api_server_count": "tokenizer_worker_num", "watermark": ""} {
		if v.Knob(name) != name || s.Knob(name) != want {
			t.Errorf("%s is %q of vLLM, %q of SGLang", name, v.Knob(name), s.Knob(name))
		}
	}
	for _, x := range [][3]string{{"enable_prefix_caching", "true", "false"}, {"kv_cache_dtype", "fp8", "fp8_e4m3"}, {"max_num_seqs", "8", "8"}} {
		if v.Kind.KnobValue(x[0], x[1]) != x[1] || s.Kind.KnobValue(x[0], x[1]) != x[2] {
			t.Errorf("%s %s is %q of SGLang", x[0], x[1], s.Kind.KnobValue(x[0], x[1]))
		}
	}
}
