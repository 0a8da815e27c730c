package deploy

import (
	"fmt"
	"slices"
	"strconv"

	"pitot/internal/say"
	"pitot/internal/twin"
	"pitot/internal/twin/sglang"
)

// SGLang is the name of that engine; [Deployment.Software] is it, or "vllm".
const SGLang = "sglang"

// SGLang's settings that vLLM has none like.
type sglangSettings struct {
	policy           string
	conservativeness float64
	maxPrefill       int
	mixed            bool
}

func (d *Deployment) isSGLang() bool { return d.Software == SGLang }

// Names of settings that one of the engines alone has, and what the other calls it, "" for
// nothing.
var (
	vllmAlone = map[string]string{
		"max_num_seqs": "max_running_requests", "max_num_batched_tokens": "chunked_prefill_size", "max_model_len": "context_length",
		"num_gpu_blocks_override": "max_total_tokens", "num_gpu_blocks": "max_total_tokens", "gpu_memory_utilization": "mem_fraction_static",
		"enable_prefix_caching": "disable_radix_cache", "async_scheduling": "disable_overlap_schedule", "scheduling_policy": "schedule_policy",
		"max_cudagraph_capture_size": "cuda_graph_max_bs", "block_size": "", "enable_chunked_prefill": "", "scheduler_reserve_full_isl": "",
		"long_prefill_token_threshold": "", "watermark": "", "num_speculative_tokens": "", "num_speculative_tokens_per_batch_size": "",
		"speculative_method": "", "parallel_drafting": "", "acceptance_rate": "", "slow_cv": "", "slow_time": "", "frontend_jitter": "", "frontend_contention": "",
		"api_server_count": "",
	}
	sglangAlone = map[string]string{
		"max_running_requests": "max_num_seqs", "chunked_prefill_size": "max_num_batched_tokens", "context_length": "max_model_len",
		"max_total_tokens": "num_gpu_blocks_override", "mem_fraction_static": "gpu_memory_utilization", "disable_radix_cache": "enable_prefix_caching",
		"disable_overlap_schedule": "async_scheduling", "schedule_policy": "scheduling_policy", "cuda_graph_max_bs": "max_cudagraph_capture_size",
		"schedule_conservativeness": "", "max_prefill_tokens": "", "enable_mixed_chunk": "",
	}
)

// checkSoftware refuses settings of the other engine.
func (d *Deployment) checkSoftware() error {
	alone, name, other := sglangAlone, "SGLang", "vLLM"
	if d.isSGLang() {
		alone, name, other = vllmAlone, "vLLM", "SGLang"
	}
	var keys []string
	for key := range d.Given {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		like, found := alone[key]
		if !found {
			continue
		}
		hint := "leave it out"
		switch {
		case like != "":
			hint = "write " + like + ", " + other + "'s name of it"
		case !d.isSGLang():
			hint = "write engine=sglang besides"
		}
		return say.Errorf("%s is a setting of %s, and the engine is %s", key, name, other).WithHint(hint)
	}
	return nil
}

// Alike says whether the deployment is of the kind that public measurements were held
// against: engines of vLLM that compute each for itself.
func (d *Deployment) Alike() bool { return !d.isSGLang() && !d.Lockstep() && d.pools.prefill == 0 }

// Knob is the engine's name of a setting of vLLM's that does the same, "" where it has none.
func (d *Deployment) Knob(name string) string {
	if !d.isSGLang() {
		return name
	}
	if name == "api_server_count" {
		return "tokenizer_worker_num" // not modelled as a setting, but there is one
	}
	if like, alone := vllmAlone[name]; alone {
		return like
	}
	return name
}

// KnobValue is a value of a setting of vLLM's as the engine has it.
func (d *Deployment) KnobValue(name, value string) string {
	if !d.isSGLang() {
		return value
	}
	switch name {
	case "enable_prefix_caching", "async_scheduling": // its flags say the opposite
		return strconv.FormatBool(value != "true")
	case "kv_cache_dtype":
		if value == "fp8" {
			return "fp8_e4m3"
		}
	}
	return value
}

// completeSGLang works out what was left open as SGLang does (memory_hook.py,
// kv_cache_configurator.py of 0.5.23), in place of memory and batch of vLLM.
func (d *Deployment) completeSGLang() error {
	s, m := &d.Settings, d.Accelerator.MemoryGiB
	chunk, graphs := 16384, 512
	switch {
	case m < 20:
		chunk, graphs = 2048, 8
	case m < 35:
		chunk, graphs = 4096, 48
	case m < 60:
		chunk, graphs = 4096, 32
	case m < 160:
		chunk, graphs = 8192, 256
	}
	if d.TensorParallel >= 4 && m >= 20 {
		graphs = max(min(graphs*5, 512), 160)
	}
	if s.MaxNumBatchedTokens == open {
		s.MaxNumBatchedTokens = chunk
	}
	if d.graphs.size == 0 {
		d.graphs.size = graphs
	}
	if _, given := d.Given["mem_fraction_static"]; !given {
		reserved := 0.5 + 1.5*float64(max(s.MaxNumBatchedTokens, 2048))/1024 + float64(d.TensorParallel)/8 + 2*float64(d.graphs.size)/1024 // GiB
		if m > 60 {
			reserved = max(reserved, 10)
		}
		d.MemoryUtilization = max((m-reserved)/m, 0.01)
	}
	seats, length := s.MaxNumSeqs, s.MaxModelLen
	if seats == open {
		s.MaxNumSeqs = 1 // for the account of memory
	}
	s.BlockSize, s.MaxModelLen = 1, auto
	if s.NumGPUBlocks > 0 {
		s.NumGPUBlocks++ // vLLM's null block
	}
	if err := d.fitMemory(); err != nil {
		return err
	}
	if s.WindowShare > 0 || s.StateBlocks > 0 {
		return say.Errorf("%s has layers that do not keep all tokens, whose memory in SGLang is not modelled", d.Model.Name).WithHint("leave engine=sglang out")
	}
	tokens := d.KVTokens()
	s.MaxModelLen = min(d.Model.MaxPosition, tokens-2)
	if length > 0 {
		s.MaxModelLen = min(length, tokens-2)
	}
	if s.MaxNumSeqs = seats; seats == open {
		s.MaxNumSeqs = min(max(int(float64(tokens)/float64(d.Model.MaxPosition)*512), 2048), 4096)
	}
	if d.Lockstep() {
		return say.Errorf("engines that share experts are modelled of vLLM alone").WithHint("leave enable_expert_parallel or engine=sglang out")
	}
	x := d.sglangEngine(0)
	if err := x.Check(); err != nil {
		return say.Errorf("impossible engine settings: %v", err).WithHint("the settings are SGLang's; schedule_policy is one of fcfs, lpm, dfs-weight, lof, shortest-prefill-first")
	}
	d.Notes = append(d.Notes, "SGLang's scheduler on the step times of vLLM's kernels and host, with pages of one token; whom it admits is held against SGLang's code, its times against no running one")
	return nil
}

// sglangEngine is the settings of the engine.
func (d *Deployment) sglangEngine(seed uint64) sglang.Settings {
	s := &d.Settings
	return sglang.Settings{
		MaxRunningRequests: s.MaxNumSeqs, MaxTotalTokens: d.KVTokens(), ContextLength: s.MaxModelLen, ChunkedPrefillSize: s.MaxNumBatchedTokens,
		MaxPrefillTokens: d.sglang.maxPrefill, SchedulePolicy: d.sglang.policy, ScheduleConservativeness: d.sglang.conservativeness,
		EnableMixedChunk: d.sglang.mixed, DisableOverlapSchedule: !s.AsyncScheduling, DisableRadixCache: !s.EnablePrefixCaching, StreamInterval: s.StreamInterval,
		Frontend:   s.Frontend,
		StepJitter: s.StepJitter, Seed: seed,
	}
}

// sglangOne makes one engine.
func (d *Deployment) sglangOne(seed uint64) twin.Model {
	return sglang.New(d.sglangEngine(seed), d.hardware())
}

// Limits are how much the engine takes at once, under its own names: requests, tokens of a
// step, and of a request.
func (d *Deployment) Limits() [3]string {
	names := [3]string{"max_num_seqs", "max_num_batched_tokens", "max_model_len"}
	if d.isSGLang() {
		names = [3]string{"max_running_requests", "chunked_prefill_size", "context_length"}
	}
	s := &d.Settings
	return [3]string{fmt.Sprintf("%s %d", names[0], s.MaxNumSeqs), fmt.Sprintf("%s %s", names[1], say.Count(s.MaxNumBatchedTokens)), fmt.Sprintf("%s %s", names[2], say.Count(s.MaxModelLen))}
}

// SeatsLimit is the limit on requests that run at once, under the engine's own name.
func (d *Deployment) SeatsLimit() Limit {
	if d.isSGLang() {
		return "max_running_requests"
	}
	return Seats
}

// sglangFacts are what the record of a run says of SGLang's settings, in place of vLLM's.
func (d *Deployment) sglangFacts(to map[string]string) {
	if !d.isSGLang() {
		return
	}
	for old, now := range map[string]string{"max_num_seqs": "max_running_requests", "max_num_batched_tokens": "chunked_prefill_size", "max_model_len": "context_length"} {
		to[now] = to[old]
		delete(to, old)
	}
	delete(to, "block_size")
	delete(to, "num_gpu_blocks")
	to["max_total_tokens"], to["schedule_policy"] = strconv.Itoa(d.KVTokens()), d.sglang.policy
	to["schedule_conservativeness"] = strconv.FormatFloat(d.sglang.conservativeness, 'g', -1, 64)
}
