package explain

// Signal names a fact.
type Signal string

// What a client sees.
const (
	TTFTMean      Signal = "mean TTFT"                   // ms, from sent, of all requests
	TTFTLeast     Signal = "ttft of the fastest"         // ms, the 5th percentile
	TPOTMean      Signal = "mean TPOT"                   // ms
	AnswerMean    Signal = "time of answers"             // ms, mean from a first token to the last
	AnswerError   Signal = "error of that mean"          // ms, its standard error
	LagShare      Signal = "share of send lag"           // share of the symptom that goes if nothing were sent late
	HeldShare     Signal = "share of the client's hold"  // likewise if nothing were held
	LagMean       Signal = "send lag"                    // ms, mean
	HeldMean      Signal = "held by the client"          // ms, mean time from due to a free slot or turn
	ConnectMean   Signal = "wait for a connection"       // ms, mean
	Answered      Signal = "answered requests"           // of the warm-up too
	PromptMost    Signal = "longest prompt"              // tokens
	SilentInTail  Signal = "silence in the tail"         // ms in which no stream had a token while the symptom lasted, mean of the requests that have it
	StoppedInTail Signal = "standstill without a prompt" // ms, likewise of long silences that no prompt explains
	RoundTrip     Signal = "round trip"                  // ms, median time of a TCP connect
	PerArrival    Signal = "tokens per arrival"          // mean, behind the first
	Evenness      Signal = "gap evenness"                // interquartile range ÷ median of the gaps between arrivals of a stream
	GapMedian     Signal = "gap median"                  // ms, between arrivals of a stream
	FrozenInTail  Signal = "standstill in the tail"      // ms of it in the symptom, mean of the requests that have it
	Standstill    Signal = "standstill"                  // ms, the median length of those that come by the clock
	AtFirsts      Signal = "stalls at first tokens"      // share of the longest gaps that end as another's first token comes
	AtFirstsBy    Signal = "the same by chance"          // share that would by chance
	Beside        Signal = "stalls beside prompts"       // share of the longest gaps that lie between another request and its first token
	BesideBy      Signal = "so by chance"                // share that would by chance
	InFlight      Signal = "requests in flight"          // mean, over the load
	Unanswered    Signal = "requests not answered"       // share
	SentAgain     Signal = "answered by a later attempt" // share of the requests
	Growing       Signal = "growth of the queue"         // share of the arrivals that are never served
	PromptMean    Signal = "prompt tokens"               // mean
	CachedShare   Signal = "prompt tokens cached"        // share, by the usage of answers
)

// What a server's metrics show, over the window.
const (
	Running      Signal = "running"         // mean of the samples
	RunningMost  Signal = "running at most" // of the samples
	Samples      Signal = "samples of the server"
	Waiting      Signal = "waiting"                    // mean of the samples
	WaitingOften Signal = "samples with a queue"       // share
	KVUse        Signal = "KV cache use"               // mean of the samples
	KVMost       Signal = "KV cache use at most"       // of the samples
	Preempted    Signal = "preemptions"                // a request
	QueueMean    Signal = "time in the server's queue" // ms, mean
	PrefillMean  Signal = "time of prefill"            // ms, mean
	DecodeMean   Signal = "time of decode"             // ms, mean
	ForeignShare Signal = "tokens of others"           // share of the server's prompt and generation tokens
	HitShare     Signal = "prefix cache hits"          // share of the tokens looked up
	PlannedHits  Signal = "prompts begin alike"        // share of the prompts that an unlimited prefix cache would have
	ClockShare   Signal = "GPU clock"                  // share of the highest
	Throttled    Signal = "time throttled"             // share, by power or by heat
	ByPower      Signal = "time throttled by power"    // share
	ByHeat       Signal = "time throttled by heat"     // share
	PowerLimit   Signal = "power limit"                // W, of a GPU
	MemoryBusy   Signal = "memory busy"                // share
	TensorBusy   Signal = "tensor cores busy"          // share
	EngineServed Signal = "requests of the engine's times"
	RunningUsual Signal = "running, median"
	FrontWork    Signal = "API server's work" // ms of a core, a request
	FrontBusy    Signal = "API server busy"   // cores that a process that listens took
	FrontWaits   Signal = "API server waits"  // share of the time in which it waited for a core
)

// What is known of the server as it was started.
const (
	MostInFlight Signal = "--max-in-flight"
	MaxSeats     Signal = "max_num_seqs"
	MaxTokens    Signal = "max_num_batched_tokens"
	PowerMost    Signal = "power limit at most" // W, of a GPU by its datasheet
)

// Source is where a fact is read that a test lacks.
func (s Signal) Source() string {
	switch s {
	case ClockShare, Throttled, MemoryBusy, TensorBusy:
		return FromGPU
	case MaxSeats, MaxTokens:
		return FromStated
	case PlannedHits:
		return FromRecords
	case LagShare, HeldShare, SilentInTail, PerArrival, GapMedian, TTFTMean, AnswerMean, PromptMost:
		return FromClient
	}
	return FromServer
}

// OnTwins is the symptom's value on twins, which have nothing around them.
const OnTwins Signal = "the same in simulation" // ms

// Where a fact was read.
const (
	FromClient  = "client"
	FromServer  = "server metrics"
	FromGPU     = "GPU metrics"
	FromKernel  = "kernel of the server's machine"
	FromStated  = "stated of the server"
	FromRecords = "run.json"
	FromTwins   = "simulation"
)

// Reading is a fact's value, its unit ("ms", "share", "") and where it was read.
type Reading struct {
	Value float64
	Unit  string
	From  string
}

// Facts are those that are known.
type Facts map[Signal]Reading

// Get gives a value that is known, else 0.
func (f Facts) Get(s Signal) float64 { return f[s].Value }

// Set puts a fact in.
func (f Facts) Set(s Signal, x float64, unit, from string) { f[s] = Reading{x, unit, from} }

// hasAll says that all are known.
func (f Facts) hasAll(all ...Signal) bool {
	for _, s := range all {
		if _, ok := f[s]; !ok {
			return false
		}
	}
	return true
}

// missingSignals are those that are not known.
func (f Facts) missingSignals(all []Signal) (list []Signal) {
	for _, s := range all {
		if !f.hasAll(s) {
			list = append(list, s)
		}
	}
	return list
}

// metricsRead says that the server's metrics were.
func (f Facts) metricsRead() bool {
	for _, r := range f {
		if r.From == FromServer {
			return true
		}
	}
	return false
}

// evidenceOf are some of them.
func (f Facts) evidenceOf(of []Signal) (list []Evidence) {
	for _, s := range of {
		if r, ok := f[s]; ok {
			list = append(list, Evidence{s, r.Value, r.Unit, r.From})
		}
	}
	return list
}
