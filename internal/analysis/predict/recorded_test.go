package predict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// written makes a recording of a meta.json and lines of requests.
func written(t *testing.T, meta string, lines ...string) *Recording {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"meta.json": meta, "requests.jsonl": strings.Join(lines, "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := ReadRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	someRequest = `{"input_length":50,"output_length":20,"arrival_s":0,"queue_s":0,"first_token_s":1,"last_token_s":2}`
	onH100      = `"hardware":{"device_name":"NVIDIA H100 80GB HBM3"}`
)

// What the twin is not is refused, whether it was asked for or is what the
// engine resolved.
func TestRecordingsOfOtherEngines(t *testing.T) {
	for meta, want := range map[string]string{
		`"engine_kwargs":{"pipeline_parallel_size":2}`:                                          "pipeline_parallel_size is 2",
		`"resolved_config":{"parallel_config":{"prefill_context_parallel_size":2}}`:             "prefill_context_parallel_size is 2",
		`"engine_kwargs":{"speculative_config":{"method":"eagle3","num_speculative_tokens":3}}`: "decoded speculatively",
		`"resolved_config":{"speculative_config":{"method":"mtp","num_speculative_tokens":1}}`:  "decoded speculatively",
		`"engine_kwargs":{"quantization":"quark"}`:                                              "does not say how many bits",
		`"engine_kwargs":{"max_num_seqs":4096,"max_num_batched_tokens":2048}`:                   "smaller than max_num_seqs",
		`"kv_cache":{"num_gpu_blocks":0}`:                                                       "num_gpu_blocks",
		`"kv_cache":{"num_gpu_blocks":"many"}`:                                                  "num_gpu_blocks",
		`"kv_cache":{"num_gpu_blocks":75638}`:                                                   "75,638 KV blocks",
		`"kv_cache":{"block_size":0}`:                                                           "block_size is 0",
		`"kv_cache":{"gpu_memory_utilization":7}`:                                               "gpu_memory_utilization is 7",
	} {
		r := written(t, `{"model":"Qwen/Qwen3-30B-A3B",`+onH100+`,`+meta+`}`, someRequest)
		if d, err := r.Deployment(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", meta, d, err, want)
		}
	}
	// What a recording does not tell, the spec can.
	r := written(t, `{"model":"Qwen/Qwen3-8B",`+onH100+`,"engine_kwargs":{"speculative_config":{"method":"eagle3","num_speculative_tokens":3}}}`, someRequest)
	if d, err := r.Deployment("qwen3-8b@h100?num_speculative_tokens=3&acceptance_rate=0.6"); err != nil || d.Settings.NumSpeculativeTokens != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := r.Deployment(""); !strings.Contains(say.HintOf(err), "num_speculative_tokens=3&acceptance_rate=") {
		t.Errorf("%v, hint %q", err, say.HintOf(err))
	}
}

// What is taken, and what is said of the rest.
func TestWhatARecordingSays(t *testing.T) {
	for name, c := range map[string]struct {
		meta, spec string
		is         func(*deploy.Deployment) bool
		note       string // "" for none
	}{
		"nothing": {`"model":"llama-3.1-8b"`, "", func(d *deploy.Deployment) bool { return d.Settings.MaxNumSeqs == 1024 }, ""},
		"neutral": {`"model":"llama-3.1-8b","engine_kwargs":{"seed":42,"data_parallel_size":1,"enable_expert_parallel":false,"enforce_eager":false,"load_format":"auto","quantization":null}`, "",
			func(d *deploy.Deployment) bool { return d.DType == "bf16" }, ""},
		"eager": {`"model":"llama-3.1-8b","engine_kwargs":{"enforce_eager":true,"compilation_config":{"mode":0,"pass_config":{"x":1}}}`, "", nil, "not modelled: compilation_config"},
		"experts": {`"model":"Qwen/Qwen3-30B-A3B","engine_kwargs":{"tensor_parallel_size":2,"enable_expert_parallel":true}`, "",
			func(d *deploy.Deployment) bool { return d.TensorParallel == 2 && d.ExpertParallel }, "experts are divided among the accelerators"},
		"engines": {`"model":"llama-3.1-8b","engine_kwargs":{"data_parallel_size":4,"tensor_parallel_size":2}`, "llama-3.1-8b@8xh100",
			func(d *deploy.Deployment) bool {
				return d.DataParallel == 4 && d.TensorParallel == 2 && !d.IsLockstep()
			}, ""},
		"engines in lock step": {`"model":"Qwen/Qwen3-30B-A3B","engine_kwargs":{"data_parallel_size":2,"enable_expert_parallel":true}`, "",
			func(d *deploy.Deployment) bool { return d.DataParallel == 2 && d.TensorParallel == 1 && d.IsLockstep() }, "engines that share experts"},
		"experts of one": {`"model":"Qwen/Qwen3-30B-A3B","engine_kwargs":{"enable_expert_parallel":true}`, "", nil, ""},
		"quantization":   {`"model":"llama-3.1-8b","engine_kwargs":{"quantization":"fp8"}`, "", func(d *deploy.Deployment) bool { return d.DType == "fp8" }, ""},
		"resolved quantization": {`"model":"llama-3.1-8b","resolved_config":{"model_config":{"quantization":"awq_marlin","max_model_len":9000}}`, "",
			func(d *deploy.Deployment) bool { return d.DType == "int4" && d.Settings.MaxModelLen == 9000 }, ""},
		"quantised checkpoint": {`"model":"Qwen/Qwen3-8B-FP8","engine_kwargs":{"dtype":"bfloat16","quantization":"compressed-tensors"}`, "",
			func(d *deploy.Deployment) bool { return d.DType == "fp8_block" }, "weights in fp8_block: its name ends in -FP8"},
		"another's bits": {`"model":"Qwen/Qwen3-8B-FP8"`, "qwen3-8b@h100", func(d *deploy.Deployment) bool { return d.DType == "bf16" }, "whose weights are in fp8"},
		"another model":  {`"model":"Qwen/Qwen3-8B"`, "llama-3.1-8b@h100", nil, "the recording is of qwen3-8b, not of llama-3.1-8b"},
		"a directory":    {`"model":"/data/model/Qwen3-8B"`, "", func(d *deploy.Deployment) bool { return d.Model.Name == "qwen3-8b" }, ""},
		"its accelerators": {`"model":"qwen3-8b","engine_kwargs":{"tensor_parallel_size":2},"kv_cache":{"num_gpu_blocks":5000}`, "qwen3-8b@h100",
			func(d *deploy.Deployment) bool { return d.TensorParallel == 2 && d.Settings.NumGPUBlocks == 5000 }, ""},
		"other accelerators": {`"model":"qwen3-8b","engine_kwargs":{"tensor_parallel_size":2},"kv_cache":{"num_gpu_blocks":5000}`, "qwen3-8b@4xh100",
			func(d *deploy.Deployment) bool { return d.TensorParallel == 4 && d.Settings.NumGPUBlocks != 5000 }, "tensor_parallel_size is 4, as set; the recording is of 2"},
		"other by a setting": {`"model":"qwen3-8b","engine_kwargs":{"tensor_parallel_size":2},"kv_cache":{"num_gpu_blocks":5000}`, "qwen3-8b@h100?tp=1",
			func(d *deploy.Deployment) bool { return d.TensorParallel == 1 && d.Settings.NumGPUBlocks != 5000 }, "tensor_parallel_size is 1, as set; the recording is of 2"},
		"another kind": {`"model":"qwen3-8b","kv_cache":{"num_gpu_blocks":5000}`, "qwen3-8b@h200",
			func(d *deploy.Deployment) bool { return d.Settings.NumGPUBlocks != 5000 }, "of another deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := written(t, "{"+c.meta+","+onH100+"}", someRequest).Deployment(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if c.is != nil && !c.is(d) {
				t.Errorf("%+v", d)
			}
			if got := strings.Join(d.Notes, "\n"); c.note == "" && got != "" || !strings.Contains(got, c.note) {
				t.Errorf("notes %q, want %q", got, c.note)
			}
		})
	}
}

// A request that the engine would not have taken is refused by its line.
func TestRequestsThatDoNotFit(t *testing.T) {
	long := strings.Replace(someRequest, "50", "5000", 1)
	r := written(t, `{"model":"qwen3-8b",`+onH100+`,"engine_kwargs":{"max_model_len":4000}}`, someRequest, long)
	if _, err := r.Deployment(""); err == nil || !strings.Contains(err.Error(), "line 2: 5,020 tokens of prompt and answer are more than max_model_len (4,000)") {
		t.Error(err)
	}
	if _, err := r.Deployment("qwen3-8b@h100?max_model_len=5020"); err != nil {
		t.Error(err)
	}
	r = written(t, `{"model":"qwen3-8b",`+onH100+`,"kv_cache":{"num_gpu_blocks":100}}`, someRequest, long)
	if _, err := r.Deployment(""); err == nil || !strings.Contains(say.HintOf(err), "contradicts itself") {
		t.Errorf("%v, hint %q", err, say.HintOf(err))
	}
}

// Ids are of blocks of 16 tokens whatever the engine's blocks have: a prefix of
// 64 tokens is shared in 64 tokens, as far as whole blocks go.
func TestHashesOfOtherBlockSizes(t *testing.T) {
	a := &Recorded{Input: 100, Hashes: []int64{0, 1, 2, 3, 4, 5}}
	b := &Recorded{Input: 100, Hashes: []int64{0, 1, 2, 3, 8, 9}}
	for size, want := range map[int]int{1: 64, 8: 64, 16: 64, 24: 48, 32: 64, 48: 48, 64: 64, 128: 0} {
		x, y := newHashed(0, a), newHashed(1, b)
		shared := 0
		for from := 0; from+size <= 100 && x.Tokens(from, from+size) == y.Tokens(from, from+size); from += size {
			shared += size
		}
		if shared != want {
			t.Errorf("blocks of %d: %d tokens shared, want %d", size, shared, want)
		}
	}
	// An id of a block that the prompt does not fill says nothing of its answer.
	c, d := newHashed(0, &Recorded{Input: 20, Hashes: []int64{0, 1}}), newHashed(1, &Recorded{Input: 20, Hashes: []int64{0, 1}})
	if c.Tokens(0, 16) != d.Tokens(0, 16) || c.Tokens(16, 32) == d.Tokens(16, 32) {
		t.Error("the answers of two requests are the same")
	}
}

// With drafts too no prediction is better than its bound.
func TestDraftsKeepTheBounds(t *testing.T) {
	for _, spec := range []string{
		"llama-3.1-8b@h100?num_speculative_tokens=4&acceptance_rate=0.9", "llama-3.1-8b@h100?num_speculative_tokens=100&acceptance_rate=1",
		"qwen3-30b-a3b@h100?num_speculative_tokens=2&acceptance_rate=0.5", "llama-3.1-8b@h100?num_speculative_tokens=3&acceptance_rate=0",
	} {
		d, err := deploy.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range Curve(d, workload.FixedLength(512), workload.FixedLength(128), []int{1, 8, 64}) {
			if e.TPOT.Mean < e.BoundTPOT || e.RequestsPerS > e.BoundRequests {
				t.Errorf("%s at %d users: TPOT %v of %v ms, %v of %v req/s", spec, e.Users, e.TPOT.Mean, e.BoundTPOT, e.RequestsPerS, e.BoundRequests)
			}
		}
	}
}
