package deploy

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pitot/internal/say"
	"pitot/internal/sim/engines"
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

// What engines call otherwise, or lack, are settings of the vocabulary; the settings of each
// are its own, and deploy it.
func TestEnginesNameSettings(t *testing.T) {
	for _, k := range engines.Deployed() {
		named := slices.Concat(k.Lacks, slices.Collect(maps.Keys(k.Unmodelled)), slices.Collect(maps.Keys(k.Values)))
		for _, s := range k.Settings {
			if s.Like != "" {
				named = append(named, s.Like)
			}
		}
		for _, name := range named {
			if _, own := engines.Default().OwnSetting(name); commonSetting(name) < 0 && !own {
				t.Errorf("%s names %s, which there is not", k.Name, name)
			}
		}
		d := must(t, "llama-3.1-8b@h100?engine="+k.Name)
		facts, limits := d.ServerFacts(), d.Limits()
		for _, limit := range limits {
			name, _, _ := strings.Cut(limit, " ")
			if facts[name] == "" || !IsSetting(name) {
				t.Errorf("%s: %s is no setting, or not in %v", k.Name, name, facts)
			}
		}
		if limit := string(d.SeatsLimit()); !strings.HasPrefix(limits[0], limit) || d.Engine(1).MaxModelLen() < 2 {
			t.Errorf("%s: %s, %v", k.Name, limit, limits)
		}
	}
}

// A setting of another engine is refused, with what to write instead.
func TestSettingsOfOthers(t *testing.T) {
	for spec, want := range map[string][2]string{
		"?max_running_requests=5":               {"max_running_requests is a setting of SGLang, and the engine is vLLM", "write max_num_seqs, vLLM's name of it"},
		"?enable_mixed_chunk=true":              {"enable_mixed_chunk is a setting of SGLang, and the engine is vLLM", "write engine=sglang besides"},
		"?engine=sglang&num_gpu_blocks=9":       {"num_gpu_blocks is a setting of vLLM, and the engine is SGLang", "write max_total_tokens, SGLang's name of it"},
		"?engine=sglang&scheduling_policy=fcfs": {"scheduling_policy is a setting of vLLM, and the engine is SGLang", "write schedule_policy, SGLang's name of it"},
		"?engine=sglang&watermark=0.1":          {"watermark is a setting of vLLM, and the engine is SGLang", "leave it out"},
		"?engine=sglang&block_size=16":          {"block_size is a setting of vLLM, and the engine is SGLang", "leave it out"},
	} {
		_, err := Parse("llama-3.1-8b@h100" + spec)
		if err == nil || err.Error() != want[0] || say.HintOf(err) != want[1] {
			t.Errorf("%s: %v, hint %q", spec, err, say.HintOf(err))
		}
	}
}
