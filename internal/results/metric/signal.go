package metric

import "pitot/internal/telemetry"

// Signal is a metric that follows from what servers and GPUs tell of themselves: from
// which signals of the vocabulary, and how.
//
// To add one, add an entry to signals; what engines call its signals stands in
// telemetry/names.go. One that is [Derived] has a function in package measure.
type Signal struct {
	*Metric

	From, Per telemetry.Signal // Per of a [Ratio]
	Combine   Combine
	Scale     float64 // from the signal's unit to the metric's, 0 for 1
}

// Combine is the way in which the samples of a point become one value.
type Combine uint8

const (
	Growth  Combine = iota // of a counter: what it grew by over the window
	Ratio                  // of two counters: what one grew by for each that the other grew by
	Average                // of a gauge, over its samples within the window
	Most                   // the largest of those
	Least                  // the smallest
	Total                  // of a counter: what it grew by over the whole load, warm-up and drain included
	Derived                // by a function of its own
)

// String is the word for it.
func (c Combine) String() string {
	return [...]string{"growth", "ratio", "average", "most", "least", "growth over the whole load", "derived"}[c]
}

// ProcessStart is when a server's process began, in seconds since 1970.
const ProcessStart = string(telemetry.ProcessStart)

// Metrics that have a function in package measure.
const (
	ServerClientTTFT  Name = "client ttft mean"
	ServerFront       Name = "network and front end"
	ServerPrefillRate Name = "server prefill rate"
	ServerForeign     Name = "foreign tokens"
	ServerPlannedHits Name = "planned prefix hits"
	ServerCPU         Name = "server cpu"
	ServerAllCPU      Name = "server cpu all"
)

// Metrics that reports show in sentences of their own.
const (
	ServerRunning     Name = "server running"
	ServerRunningMost Name = "server running max"
	ServerWaiting     Name = "server waiting"
	ServerWaitingMost Name = "server waiting max"
	ServerKVUse       Name = "kv cache"
	ServerKVUseMost   Name = "kv cache max"
	ServerPreemptions Name = "preemptions"
	ServerStepTokens  Name = "tokens a step"
	ServerQueue       Name = "server queue"
	ServerPrefill     Name = "server prefill"
	ServerTTFT        Name = "server ttft"
	ServerDecode      Name = "server decode"
	ServerHits        Name = "prefix hits"
	ServerAccepted    Name = "accepted drafts"
	ServerRequests    Name = "requests counted"
	ServerPrompt      Name = "prompt tokens counted"
	ServerOutput      Name = "output tokens counted"
	ServerSamples     Name = "server samples"
	ServerProcesses   Name = "server processes"
	GPUActive         Name = "gpu busy"
	GPUMemory         Name = "gpu memory busy"
	GPUTensor         Name = "gpu tensor busy"
	GPUPower          Name = "gpu power"
	GPUEnergy         Name = "gpu energy"
	GPUClock          Name = "gpu clock"
	GPUHeat           Name = "gpu temperature"
)

// serverMetric is a metric that the server tells. None is compared or limited by itself: which
// way is better is clear of few.
func serverMetric(name Name, key, label, help string, unit Unit, better Better, show Show) *Metric {
	return &Metric{Name: name, Key: "server." + key, Label: label, Help: help, Of: Server, Unit: unit, Better: better, Show: show}
}

// signals are in the order in which they are shown.
var signals = []Signal{
	{serverMetric(ServerRunning, "running", "running", "requests in the server's batch, on average", Count, Neither, Data), telemetry.Running, "", Average, 0},
	{serverMetric(ServerRunningMost, "running_max", "running max", "the most of them in a sample", Count, Neither, Data), telemetry.Running, "", Most, 0},
	{serverMetric(ServerWaiting, "waiting", "waiting", "requests that waited in the server to be scheduled, on average", Count, Lower, Data), telemetry.Waiting, "", Average, 0},
	{serverMetric(ServerWaitingMost, "waiting_max", "waiting max", "the most of them in a sample", Count, Lower, Data), telemetry.Waiting, "", Most, 0},
	{serverMetric(ServerKVUse, "kv_use", "KV cache", "share of the KV cache in use, on average, of the fullest replica", Share, Neither, Data), telemetry.KVUse, "", Average, 0},
	{serverMetric(ServerKVUseMost, "kv_use_max", "KV cache max", "the most of it in a sample", Share, Neither, Data), telemetry.KVUse, "", Most, 0},
	{serverMetric(ServerPreemptions, "preemptions", "preemptions", "requests that had to give back their KV within the window", Count, Lower, Data), telemetry.Preemptions, "", Growth, 0},
	{serverMetric(ServerStepTokens, "step_tokens", "tokens a step", "tokens that went through a step of the engine, on average", Tokens, Neither, Data), telemetry.StepTokens, telemetry.Steps, Ratio, 0},
	{serverMetric(ServerClientTTFT, "client_ttft_ms", "client TTFT", "mean TTFT, from when a request was sent, of the requests that ended within the window: the sum of the next three", Milliseconds, Lower, Data), "", "", Derived, 0},
	{serverMetric(ServerFront, "front_ms", "network and front end", "what is left of that beside the server's queue and prefill: the network, the API server, the client", Milliseconds, Lower, Data), "", "", Derived, 0},
	{serverMetric(ServerQueue, "queue_ms", "server queue", "how long a request waited in the server to be scheduled, on average", Milliseconds, Lower, Row), telemetry.QueueSum, telemetry.QueueCount, Ratio, 1e3},
	{serverMetric(ServerPrefill, "prefill_ms", "server prefill", "from its first step to its first token, on average", Milliseconds, Lower, Data), telemetry.PrefillSum, telemetry.PrefillCount, Ratio, 1e3},
	{serverMetric(ServerTTFT, "ttft_ms", "server TTFT", "mean TTFT as the server counts it, of the requests whose first token came within the window", Milliseconds, Lower, Data), telemetry.TTFTSum, telemetry.TTFTCount, Ratio, 1e3},
	{serverMetric(ServerDecode, "decode_ms", "server decode", "from a request's first token to its last, on average", Milliseconds, Lower, Data), telemetry.DecodeSum, telemetry.DecodeCount, Ratio, 1e3},
	{serverMetric(ServerPrefillRate, "prefill_tokens_per_s", "server prefill rate", "prompt tokens that no cache had by the time from a request's first step to its first token: without the queue", TokensPerS, Higher, Data), "", "", Derived, 0},
	{serverMetric(ServerHits, "prefix_hit_share", "prefix cache hits", "share of the tokens looked up in the prefix cache that were there", Share, Higher, Row), telemetry.PrefixHits, telemetry.PrefixQueries, Ratio, 0},
	{serverMetric(ServerPlannedHits, "planned_hit_share", "planned prefix hits", "share of the prompts' tokens that an unlimited cache would have, as far as the workload shows", Share, Neither, Data), "", "", Derived, 0},
	{serverMetric(ServerAccepted, "accepted_share", "accepted drafts", "share of the drafted tokens that were accepted", Share, Higher, Data), telemetry.AcceptedTokens, telemetry.DraftTokens, Ratio, 0},
	{serverMetric(ServerRequests, "requests", "requests counted", "requests that the server ended over the whole load, from any client", Count, Neither, Data), telemetry.Requests, "", Total, 0},
	{serverMetric(ServerPrompt, "prompt_tokens", "prompt tokens counted", "tokens of prompts that it counted over the whole load", Tokens, Neither, Data), telemetry.PromptTokens, "", Total, 0},
	{serverMetric(ServerOutput, "output_tokens", "output tokens counted", "tokens that it generated over the whole load", Tokens, Neither, Data), telemetry.OutputTokens, "", Total, 0},
	{serverMetric(ServerForeign, "foreign_share", "foreign tokens", "share of both that were not this run's", Share, Lower, Data), "", "", Derived, 0},
	{serverMetric(ServerCPU, "cpu_cores", "server CPU", "cores that the process that answers took, on average", Count, Lower, Data), "", "", Derived, 0},
	{serverMetric(ServerAllCPU, "cpu_all_cores", "CPU of all its processes", "cores that all processes of the server took, on average, where it runs on this machine", Count, Lower, Data), "", "", Derived, 0},
	{serverMetric(ServerProcesses, "processes", "processes", "of the server, on average", Count, Neither, Data), telemetry.ServerProcesses, "", Average, 0},
	{serverMetric(GPUActive, "gpu_active_share", "GPU busy", "share of the time in which anything ran on the GPUs", Share, Neither, Data), telemetry.GPUActive, "", Average, 0},
	{serverMetric(GPUTensor, "gpu_tensor_share", "GPU matrix units busy", "share of the time in which their matrix units worked", Share, Neither, Data), telemetry.GPUTensorActive, "", Average, 0},
	{serverMetric(GPUMemory, "gpu_memory_share", "GPU memory busy", "share of the time in which their memory was read or written", Share, Neither, Data), telemetry.GPUMemoryActive, "", Average, 0},
	{serverMetric(GPUPower, "gpu_power_w", "GPU power", "mean power of all GPUs that report it", Watts, Lower, Data), telemetry.GPUPower, "", Average, 0},
	{serverMetric(GPUEnergy, "gpu_energy_j", "GPU energy", "energy of all GPUs that report it, over the window", Joules, Lower, Data), telemetry.GPUEnergy, "", Growth, 0},
	{serverMetric(GPUClock, "gpu_clock_mhz", "GPU clock", "clock of the slowest GPU, on average", Megahertz, Higher, Data), telemetry.GPUClock, "", Average, 0},
	{serverMetric(GPUHeat, "gpu_temperature_c", "GPU temperature", "temperature of the hottest GPU, the most in a sample", Celsius, Lower, Data), telemetry.GPUTemperature, "", Most, 0},
	{serverMetric(ServerSamples, "samples", "server samples", "scrapes within the window that have the number of running requests", Count, Neither, Data), "", "", Derived, 0},
}

// FromSignals are the metrics that follow from what servers and GPUs tell.
func FromSignals() []Signal { return append([]Signal(nil), signals...) }
