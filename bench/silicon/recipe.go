package main

import (
	"fmt"
	"strings"
)

// recipe is what InferenceMAX starts servers of vLLM with, as settings: its scripts in
// github.com/SemiAnalysisAI/InferenceX, benchmarks (70b_fp8_*.sh, gptoss_fp4_*.sh,
// single_node/minimaxm2.5_*.sh and kimik2.5_*.sh), in the versions of the time.
func (r *row) recipe() string {
	seqs, memory, size, more := r.users, 0.9, 0, ""
	blackwell := strings.HasPrefix(r.accelerator, "b") || strings.HasPrefix(r.accelerator, "gb")
	narrow := strings.HasPrefix(r.dtype, "fp") // checkpoints by modelopt ask for a cache in fp8
	switch {
	case r.engine != "vllm":
	case strings.Contains(r.model, "Llama-3"):
		if blackwell {
			seqs, more = 512, "&cudagraph_mode=full_decode_only"
		}
	case strings.Contains(r.model, "gpt-oss"):
		narrow, size = blackwell, 2048
		if blackwell {
			seqs = 512
		}
	case strings.Contains(r.model, "MiniMax") && r.dtype == "fp8_block":
		narrow = r.accelerator == "b300"
		memory = 0.95
		if seqs = 1024; r.accelerator == "h100" {
			seqs, memory, more = 256, 0.9, "&cudagraph_mode=piecewise"
		}
	}
	if narrow {
		more += "&kv_dtype=fp8"
	}
	if size == 0 { // the default of the time
		size = min(2*seqs, 512)
	}
	return fmt.Sprintf("&max_num_seqs=%d&max_num_batched_tokens=8192&gpu_memory_utilization=%v&max_cudagraph_capture_size=%d", seqs, memory, size) + more
}

// divided says that a row's experts are divided whatever the file says: that script asks
// for it with one part too.
func (r *row) divided() bool {
	return strings.Contains(r.model, "MiniMax") && r.dtype == "fp8_block" && (r.accelerator == "b200" || r.accelerator == "b300") && r.engine == "vllm"
}
