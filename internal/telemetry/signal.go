// Package telemetry is what servers, GPUs and machines tell of themselves while they
// are measured: one vocabulary of signals, the table of what engines and exporters
// call them in their metrics, the parser of Prometheus' text format, and what the
// samples of a window say together. It has no clock, no file and no socket: room
// telemetry/scrape asks.
package telemetry

import "slices"

// Signal is one thing that is told, under one name whoever tells it: what the column
// name of telemetry.parquet says.
type Signal string

// Of an engine, over all its replicas behind one page.
const (
	Running         Signal = "running"          // requests in the batch
	Waiting         Signal = "waiting"          // requests that wait to be scheduled
	WaitingCapacity Signal = "waiting_capacity" // of them, for room
	WaitingDeferred Signal = "waiting_deferred" // of them, for something that passes, as a transfer of KV
	Swapped         Signal = "swapped"          // requests whose KV is in the host's memory
	KVUse           Signal = "kv_use"           // share of the KV cache in use, of the fullest replica
	KVTokens        Signal = "kv_tokens"        // tokens that fit the KV cache
	KVBlock         Signal = "kv_block"         // tokens of one of its blocks
	OutputRate      Signal = "output_rate"      // tokens a second, as the engine reckons it itself
	HitShare        Signal = "hit_share"        // share of prompt tokens found in the prefix cache, likewise

	Requests       Signal = "requests_served" // that ended, whoever sent them
	Rejections     Signal = "rejections"      // requests turned away by a limit of the queue
	Preemptions    Signal = "preemptions"
	PromptTokens   Signal = "prompt_tokens"
	CachedTokens   Signal = "prompt_tokens_cached"   // of them, taken from a cache
	ComputedTokens Signal = "prompt_tokens_computed" // of the requests that ended, not taken from a cache
	OutputTokens   Signal = "output_tokens"
	PrefixQueries  Signal = "prefix_cache_queries" // tokens looked up
	PrefixHits     Signal = "prefix_cache_hits"    // tokens found
	Steps          Signal = "steps"                // of the engine that gave tokens
	StepTokens     Signal = "step_tokens"          // that went through them
	Drafts         Signal = "drafts"               // verifications
	DraftTokens    Signal = "draft_tokens"
	AcceptedTokens Signal = "accepted_tokens"
	Flops          Signal = "flops"       // floating point operations per GPU, as the engine estimates them
	ReadBytes      Signal = "read_bytes"  // of the GPU's memory, likewise
	WriteBytes     Signal = "write_bytes" // likewise

	// Times of requests, as the sum and the count of the engine's histograms, in seconds.
	TTFTSum        Signal = "ttft_s_sum"
	TTFTCount      Signal = "ttft_s_count"
	QueueSum       Signal = "queue_s_sum" // from its arrival at the scheduler to its first step
	QueueCount     Signal = "queue_s_count"
	PrefillSum     Signal = "prefill_s_sum" // from its first step to its first token
	PrefillCount   Signal = "prefill_s_count"
	DecodeSum      Signal = "decode_s_sum" // from its first token to its last
	DecodeCount    Signal = "decode_s_count"
	InferenceSum   Signal = "inference_s_sum" // from its first step to its last token
	InferenceCount Signal = "inference_s_count"
	E2ESum         Signal = "e2e_s_sum"
	E2ECount       Signal = "e2e_s_count"
	ITLSum         Signal = "itl_s_sum" // between two outputs of a request
	ITLCount       Signal = "itl_s_count"
)

// Of the process that answers.
const (
	ProcessStart  Signal = "process_start_time_seconds" // Unix seconds; of several, of the one that began first
	ProcessCPU    Signal = "process_cpu_s"              // seconds of cores
	ProcessMemory Signal = "process_memory_bytes"

	// As the kernel of its machine has them.
	ServerCPU       Signal = "server_cpu_s"    // seconds of cores that all processes of the server took
	ListenerCPU     Signal = "listener_cpu_s"  // likewise one that listens, on average
	ListenerWait    Signal = "listener_wait_s" // seconds for which the first thread of one that listens waited for a core, on average
	ServerProcesses Signal = "server_processes"
)

// Of the GPUs of a machine, all of them.
const (
	GPUs              Signal = "gpus"              // how many tell of themselves
	GPUActive         Signal = "gpu_active"        // share of the time in which anything ran, mean of the GPUs
	GPUTensorActive   Signal = "gpu_tensor_active" // share of the time in which the matrix units worked
	GPUMemoryActive   Signal = "gpu_memory_active" // share of the time in which memory was read or written
	GPUPower          Signal = "gpu_power_w"       // sum
	GPUPowerLimit     Signal = "gpu_power_limit_w" // sum
	GPUEnergy         Signal = "gpu_energy_j"      // sum, a counter
	GPUClock          Signal = "gpu_clock_mhz"     // of the slowest
	GPUClockMost      Signal = "gpu_clock_max_mhz" //
	GPUMemoryClock    Signal = "gpu_memory_clock_mhz"
	GPUTemperature    Signal = "gpu_temperature_c" // of the hottest
	GPUMemory         Signal = "gpu_memory_bytes"  // in use, sum
	GPUMemoryTotal    Signal = "gpu_memory_total_bytes"
	GPUThrottledPower Signal = "gpu_throttled_power_s" // seconds in which power held clocks down, a counter, sum
	GPUThrottledHeat  Signal = "gpu_throttled_heat_s"  // likewise heat
)

// Of a machine.
const (
	HostCPU   Signal = "host_cpu_s" // seconds in which its cores worked, a counter
	HostCores Signal = "host_cores"
)

// Kind says how the samples of a signal are to be read.
type Kind uint8

const (
	Gauge   Kind = iota // a value that goes up and down
	Counter             // a count since the process began: what it grew by is what it tells
	Fact                // a value that does not change while a process lives
)

// String is the word for it.
func (k Kind) String() string { return [...]string{"gauge", "counter", "fact"}[k] }

// Of is the thing that a signal describes.
type Of uint8

const (
	Engine Of = iota
	Process
	GPU
	Host
)

// String is the word for it.
func (o Of) String() string { return [...]string{"engine", "process", "GPU", "host"}[o] }

// Across is the way in which several values become one. The values are those of replicas or GPUs on
// one page, or of the pages of several replicas.
type Across uint8

const (
	Sum Across = iota
	Mean
	Highest
	Lowest
)

// String is the word for it.
func (a Across) String() string { return [...]string{"sum", "mean", "highest", "lowest"}[a] }

// Definition says what a signal is.
type Definition struct {
	Signal Signal
	Of     Of
	Kind   Kind
	Across Across
	Unit   string // "" for a count of requests, tokens or events
	Help   string
}

// definitions are in the order in which they are documented.
var definitions = []Definition{
	{Running, Engine, Gauge, Sum, "", "requests in the batch"},
	{Waiting, Engine, Gauge, Sum, "", "requests that wait to be scheduled"},
	{WaitingCapacity, Engine, Gauge, Sum, "", "of them, those that wait for room"},
	{WaitingDeferred, Engine, Gauge, Sum, "", "of them, those that wait for something that passes, as a transfer of KV"},
	{Swapped, Engine, Gauge, Sum, "", "requests whose KV is in the host's memory"},
	{KVUse, Engine, Gauge, Highest, "share", "share of the KV cache in use, of the fullest replica"},
	{KVTokens, Engine, Fact, Sum, "", "tokens that fit the KV cache"},
	{KVBlock, Engine, Fact, Mean, "", "tokens of one of its blocks"},
	{OutputRate, Engine, Gauge, Sum, "1/s", "output tokens a second, as the engine reckons them itself"},
	{HitShare, Engine, Gauge, Mean, "share", "share of prompt tokens found in the prefix cache, as the engine reckons it itself"},
	{Requests, Engine, Counter, Sum, "", "requests that ended, from any client"},
	{Rejections, Engine, Counter, Sum, "", "requests turned away by a limit of the queue"},
	{Preemptions, Engine, Counter, Sum, "", "requests that had to give back their KV"},
	{PromptTokens, Engine, Counter, Sum, "", "tokens of prompts, counted with their first token"},
	{CachedTokens, Engine, Counter, Sum, "", "of them, those that a cache had"},
	{ComputedTokens, Engine, Counter, Sum, "", "tokens of prompts that no cache had, counted when a request ends"},
	{OutputTokens, Engine, Counter, Sum, "", "tokens that were generated"},
	{PrefixQueries, Engine, Counter, Sum, "", "tokens looked up in the prefix cache"},
	{PrefixHits, Engine, Counter, Sum, "", "of them, those that were there"},
	{Steps, Engine, Counter, Sum, "", "steps of the engine that gave tokens"},
	{StepTokens, Engine, Counter, Sum, "", "tokens that went through them"},
	{Drafts, Engine, Counter, Sum, "", "verifications of drafts"},
	{DraftTokens, Engine, Counter, Sum, "", "tokens that were drafted"},
	{AcceptedTokens, Engine, Counter, Sum, "", "of them, those that were accepted"},
	{Flops, Engine, Counter, Mean, "", "floating point operations per GPU, as the engine estimates them"},
	{ReadBytes, Engine, Counter, Mean, "B", "bytes read from a GPU's memory, as the engine estimates them"},
	{WriteBytes, Engine, Counter, Mean, "B", "bytes written to a GPU's memory, as the engine estimates them"},
	{TTFTSum, Engine, Counter, Sum, "s", "time from a request's arrival to its first token, sum"},
	{TTFTCount, Engine, Counter, Sum, "", "of how many requests"},
	{QueueSum, Engine, Counter, Sum, "s", "time a request waited to be scheduled, sum"},
	{QueueCount, Engine, Counter, Sum, "", "of how many requests"},
	{PrefillSum, Engine, Counter, Sum, "s", "time from a request's first step to its first token, sum"},
	{PrefillCount, Engine, Counter, Sum, "", "of how many requests"},
	{DecodeSum, Engine, Counter, Sum, "s", "time from a request's first token to its last, sum"},
	{DecodeCount, Engine, Counter, Sum, "", "of how many requests"},
	{InferenceSum, Engine, Counter, Sum, "s", "time from a request's first step to its last token, sum"},
	{InferenceCount, Engine, Counter, Sum, "", "of how many requests"},
	{E2ESum, Engine, Counter, Sum, "s", "time from a request's arrival to its end, sum"},
	{E2ECount, Engine, Counter, Sum, "", "of how many requests"},
	{ITLSum, Engine, Counter, Sum, "s", "time between two outputs of a request, sum"},
	{ITLCount, Engine, Counter, Sum, "", "of how many"},
	{ProcessStart, Process, Fact, Lowest, "s", "when the process began, else when the first of its counters was made: Unix seconds"},
	{ProcessCPU, Process, Counter, Sum, "s", "time of cores that the process took"},
	{ProcessMemory, Process, Gauge, Sum, "B", "memory of the process"},
	{ServerCPU, Process, Counter, Sum, "s", "time of cores that all processes of the server took since they were found, by the kernel"},
	{ListenerCPU, Process, Counter, Sum, "s", "likewise a process that listens at its address, on average"},
	{ListenerWait, Process, Counter, Sum, "s", "time for which the first thread of such a process was ready and waited for a core, on average"},
	{ServerProcesses, Process, Gauge, Sum, "", "how many processes the server has"},
	{GPUs, GPU, Fact, Sum, "", "GPUs that report metrics"},
	{GPUActive, GPU, Gauge, Mean, "share", "share of the time in which anything ran"},
	{GPUTensorActive, GPU, Gauge, Mean, "share", "share of the time in which the matrix units worked"},
	{GPUMemoryActive, GPU, Gauge, Mean, "share", "share of the time in which memory was read or written; about 0.8 is all that there is"},
	{GPUPower, GPU, Gauge, Sum, "W", "power"},
	{GPUPowerLimit, GPU, Gauge, Sum, "W", "what it may be"},
	{GPUEnergy, GPU, Counter, Sum, "J", "energy"},
	{GPUClock, GPU, Gauge, Lowest, "MHz", "clock of the multiprocessors, of the slowest GPU"},
	{GPUClockMost, GPU, Gauge, Highest, "MHz", "what it may be"},
	{GPUMemoryClock, GPU, Gauge, Lowest, "MHz", "clock of the memory"},
	{GPUTemperature, GPU, Gauge, Highest, "°C", "temperature of the hottest GPU"},
	{GPUMemory, GPU, Gauge, Sum, "B", "memory in use"},
	{GPUMemoryTotal, GPU, Gauge, Sum, "B", "memory"},
	{GPUThrottledPower, GPU, Counter, Sum, "s", "time in which a limit of power held clocks down"},
	{GPUThrottledHeat, GPU, Counter, Sum, "s", "time in which heat held clocks down"},
	{HostCPU, Host, Counter, Sum, "s", "time in which the machine's cores worked"},
	{HostCores, Host, Fact, Sum, "", "cores of the machine"},
}

// AllSignals is every signal there is.
func AllSignals() []Definition { return slices.Clone(definitions) }

// index finds a definition.
var index = func() map[Signal]*Definition {
	m := make(map[Signal]*Definition, len(definitions))
	for i := range definitions {
		m[definitions[i].Signal] = &definitions[i]
	}
	return m
}()

// LookUpDefinition returns the definition of a signal. It returns false for a signal outside the
// vocabulary, such as one from a later program's records.
func LookUpDefinition(s Signal) (Definition, bool) {
	d, ok := index[s]
	if !ok {
		return Definition{Signal: s}, false
	}
	return *d, true
}
