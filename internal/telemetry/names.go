package telemetry

import (
	"slices"
	"strings"
)

// What exporters call the signals, and engines that no twin is of; those of others are
// with them, in sim/engine. To read another one, add an entry to sources; to read another
// signal of one, a line to its entry.
//
// A name is written as the page has it. Pages are matched with : and _ alike, since
// gateways and collectors rewrite the one into the other.

// Source is an engine or an exporter, and what it calls the signals.
type Source struct {
	Name  string
	Known string // where the names come from
	Names []Name
}

// Name is one series of a source.
type Name struct {
	Signal Signal
	Series string
	Where  string  // labels that a series must not contradict: "mode=prefill|decode, tp_rank=0"
	Scale  float64 // from its unit to that of the signal; 0 for 1
	Rank   int     // of several names for one signal those of the lowest rank that is there count, together
	Once   string  // a label: of the series in which it says the same only the first counts
	Count  bool    // not the values count but the series
	From   string  // labels whose product is the value, where it stands in them: "num_gpu_blocks*block_size"
	NoZero bool    // 0 says that it is not measured
}

// HistogramNames returns the lines for the sum and the count of a histogram.
func HistogramNames(sum, count Signal, series string, rank int) []Name {
	return []Name{{Signal: sum, Series: series + "_sum", Rank: rank}, {Signal: count, Series: series + "_count", Rank: rank}}
}

// Where names come from.
const (
	Live       = "recorded from a live server"
	Documented = "its documentation and source"
)

const (
	mebi  = 1 << 20
	share = 0.01 // of a percentage
	milli = 1e-3
	micro = 1e-6
)

// sources are in the order in which they are documented, behind the engines.
var sources = []Source{
	{Name: "tgi", Known: Documented, Names: slices.Concat([]Name{
		{Signal: Running, Series: "tgi_batch_current_size"},
		{Signal: Waiting, Series: "tgi_queue_size"},
		{Signal: Requests, Series: "tgi_request_success"},
		{Signal: PromptTokens, Series: "tgi_request_input_length_sum"},
		{Signal: OutputTokens, Series: "tgi_request_generated_tokens_sum"},
		{Signal: Steps, Series: "tgi_batch_inference_count"},
	},
		HistogramNames(QueueSum, QueueCount, "tgi_request_queue_duration", 0),
		HistogramNames(InferenceSum, InferenceCount, "tgi_request_inference_duration", 0),
		HistogramNames(E2ESum, E2ECount, "tgi_request_duration", 0),
	)},
	{Name: "tensorrt-llm", Known: Documented, Names: slices.Concat([]Name{
		{Signal: Running, Series: "trtllm_num_requests_running"},
		{Signal: Waiting, Series: "trtllm_num_requests_waiting"},
		{Signal: KVUse, Series: "trtllm_kv_cache_utilization"},
		{Signal: HitShare, Series: "trtllm_kv_cache_hit_rate"},
		{Signal: Requests, Series: "trtllm_request_success_total"},
		{Signal: PromptTokens, Series: "trtllm_prompt_tokens_total"},
		{Signal: CachedTokens, Series: "trtllm_prompt_cached_tokens_total"},
		{Signal: OutputTokens, Series: "trtllm_generation_tokens_total"},
		{Signal: DraftTokens, Series: "trtllm_spec_decode_drafted_tokens_total"},
		{Signal: AcceptedTokens, Series: "trtllm_spec_decode_accepted_tokens_total"},
	},
		HistogramNames(TTFTSum, TTFTCount, "trtllm_time_to_first_token_seconds", 0),
		HistogramNames(QueueSum, QueueCount, "trtllm_request_queue_time_seconds", 0),
		HistogramNames(PrefillSum, PrefillCount, "trtllm_request_prefill_time_seconds", 0),
		HistogramNames(DecodeSum, DecodeCount, "trtllm_request_decode_time_seconds", 0),
		HistogramNames(InferenceSum, InferenceCount, "trtllm_request_inference_time_seconds", 0),
		HistogramNames(E2ESum, E2ECount, "trtllm_e2e_request_latency_seconds", 0),
	)},
	{Name: "llamacpp", Known: Documented, Names: []Name{
		{Signal: Running, Series: "llamacpp:requests_processing"},
		{Signal: Waiting, Series: "llamacpp:requests_deferred"},
		{Signal: KVUse, Series: "llamacpp:kv_cache_usage_ratio"}, // of older ones
		{Signal: PromptTokens, Series: "llamacpp:prompt_tokens_total"},
		{Signal: PromptTokens, Series: "llamacpp:prompt_tokens_cached_total"}, // those above are without them
		{Signal: CachedTokens, Series: "llamacpp:prompt_tokens_cached_total"},
		{Signal: ComputedTokens, Series: "llamacpp:prompt_tokens_total"},
		{Signal: OutputTokens, Series: "llamacpp:tokens_predicted_total"},
		{Signal: PrefillSum, Series: "llamacpp:prompt_seconds_total"},
		{Signal: DecodeSum, Series: "llamacpp:tokens_predicted_seconds_total"},
		{Signal: Steps, Series: "llamacpp:n_decode_total"},
		{Signal: Drafts, Series: "llamacpp:spec_decode_num_drafts_total"},
		{Signal: DraftTokens, Series: "llamacpp:spec_decode_num_draft_tokens_total"},
		{Signal: AcceptedTokens, Series: "llamacpp:spec_decode_num_accepted_tokens_total"},
	}},
	{Name: "dcgm", Known: Documented, Names: []Name{
		{Signal: GPUs, Series: "DCGM_FI_DEV_POWER_USAGE", Count: true, Once: "UUID"},
		{Signal: GPUs, Series: "DCGM_FI_DEV_GPU_UTIL", Count: true, Once: "UUID", Rank: 1},
		{Signal: GPUActive, Series: "DCGM_FI_PROF_GR_ENGINE_ACTIVE"},
		{Signal: GPUActive, Series: "DCGM_FI_DEV_GPU_UTIL", Scale: share, Rank: 1},
		{Signal: GPUTensorActive, Series: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"},
		{Signal: GPUMemoryActive, Series: "DCGM_FI_PROF_DRAM_ACTIVE"},
		{Signal: GPUMemoryActive, Series: "DCGM_FI_DEV_MEM_COPY_UTIL", Scale: share, Rank: 1},
		{Signal: GPUPower, Series: "DCGM_FI_DEV_POWER_USAGE", Once: "UUID"}, // repeated for each instance of a partitioned GPU
		{Signal: GPUPowerLimit, Series: "DCGM_FI_DEV_POWER_MGMT_LIMIT", Once: "UUID"},
		{Signal: GPUEnergy, Series: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Scale: milli, Once: "UUID"},
		{Signal: GPUClock, Series: "DCGM_FI_DEV_SM_CLOCK", Once: "UUID"},
		{Signal: GPUClockMost, Series: "DCGM_FI_DEV_MAX_SM_CLOCK", Once: "UUID"},
		{Signal: GPUMemoryClock, Series: "DCGM_FI_DEV_MEM_CLOCK", Once: "UUID"},
		{Signal: GPUTemperature, Series: "DCGM_FI_DEV_GPU_TEMP"},
		{Signal: GPUMemory, Series: "DCGM_FI_DEV_FB_USED", Scale: mebi},
		{Signal: GPUMemoryTotal, Series: "DCGM_FI_DEV_FB_USED", Scale: mebi},
		{Signal: GPUMemoryTotal, Series: "DCGM_FI_DEV_FB_FREE", Scale: mebi},
	}},
	{Name: "amd", Known: Documented, Names: slices.Concat(withPrefix("amd_", []Name{
		{Signal: GPUs, Series: "gpu_gfx_activity", Count: true, Once: "serial_number"},
		{Signal: GPUActive, Series: "gpu_gfx_activity", Scale: share},
		{Signal: GPUTensorActive, Series: "gpu_prof_tensor_active_percent", Scale: share},
		{Signal: GPUMemoryActive, Series: "gpu_umc_activity", Scale: share},
		{Signal: GPUPower, Series: "gpu_package_power", NoZero: true}, // 0 where another partition tells it
		{Signal: GPUPower, Series: "gpu_power_usage", NoZero: true, Rank: 1},
		{Signal: GPUEnergy, Series: "gpu_energy_consumed", Scale: micro},
		{Signal: GPUClock, Series: "gpu_clock", Where: "clock_type=GPU_CLOCK_TYPE_SYSTEM"},
		{Signal: GPUMemoryClock, Series: "gpu_clock", Where: "clock_type=GPU_CLOCK_TYPE_MEMORY"},
		{Signal: GPUTemperature, Series: "gpu_junction_temperature"},
		{Signal: GPUMemory, Series: "gpu_used_vram", Scale: mebi},
		{Signal: GPUMemoryTotal, Series: "gpu_total_vram", Scale: mebi},
	}))},
	{Name: "node", Known: Documented, Names: []Name{
		{Signal: HostCPU, Series: "node_cpu_seconds_total", Where: "mode=user|nice|system|irq|softirq"},
		{Signal: HostCores, Series: "node_cpu_seconds_total", Where: "mode=idle", Count: true},
	}},
}

// process lists the process metrics that the Python, Go and Rust clients export. It comes from the
// pages of engines alone: an exporter's own process is no part of the server.
var process = []Name{
	{Signal: ProcessStart, Series: "process_start_time_seconds", NoZero: true},
	{Signal: ProcessCPU, Series: "process_cpu_seconds_total"},
	{Signal: ProcessMemory, Series: "process_resident_memory_bytes"},
}

// withPrefix are names with a prefix and without it.
func withPrefix(prefix string, names []Name) (all []Name) {
	for _, n := range names {
		all = append(all, n)
		n.Series = prefix + n.Series
		all = append(all, n)
	}
	return all
}

// condition holds the values that a label may have, if it is there.
type condition struct {
	label string
	is    []string
}

// line is a [Name] as it is looked up.
type line struct {
	*Name
	where []condition
	from  []string
}

// Table maps the names that engines and exporters use to signals. Pages are read with it.
type Table struct {
	sources []Source
	byName  map[string][]*line // what a series is, by its name with _ for :
}

// NewTable returns the table of some engines and of all sources that this package knows.
func NewTable(engines []Source) *Table {
	t := &Table{slices.Concat(engines, sources), map[string][]*line{}}
	for i := range t.sources {
		t.addNames(t.sources[i].Names)
	}
	t.addNames(process)
	return t
}

// addNames takes in names.
func (t *Table) addNames(names []Name) {
	for i := range names {
		l := &line{Name: &names[i]}
		for text := range strings.SplitSeq(l.Where, ",") {
			if name, is, ok := strings.Cut(strings.TrimSpace(text), "="); ok {
				l.where = append(l.where, condition{name, strings.Split(is, "|")})
			}
		}
		if l.From != "" {
			l.from = strings.Split(l.From, "*")
		}
		key := strings.ReplaceAll(l.Series, ":", "_")
		t.byName[key] = append(t.byName[key], l)
	}
}
