package result

// Check is one test of the instrument or of the run's conditions: a number
// against its limit. Reports explain what it means and what to do.
type Check struct {
	Name   string             `json:"name"`
	Status Status             `json:"status"`
	Value  *float64           `json:"value"`            // null: not known
	Limit  *float64           `json:"limit"`            // beyond which it does not pass; null where there is none
	Unit   string             `json:"unit"`             // of both
	Case   string             `json:"case,omitempty"`   // which of several things it found
	Worker *int               `json:"worker,omitempty"` // whose it is, the worst of several workers
	Detail map[string]float64 `json:"detail,omitempty"` // what else it counted, by names of its own
	Advice []Reason           `json:"advice,omitempty"` // what to do where it did not pass
}

// Names of the checks.
const (
	CheckAccounting   = "accounting"
	CheckRecording    = "recording"
	CheckDamage       = "damaged records"
	CheckOwnErrors    = "own errors"
	CheckClientLimits = "client limits"
	CheckWorkers      = "workers"
	CheckSendLag      = "send lag"
	CheckClientCPU    = "client cpu"
	CheckHost         = "host"
	CheckPauses       = "gc pauses"
	CheckClockSteps   = "clock steps"
	CheckStamps       = "stamps"
	CheckMerged       = "merged chunks"
	CheckArrivals     = "arrivals"
	CheckConnects     = "connects"
	CheckMaxInFlight  = "max in flight"
	CheckRateLimits   = "rate limits"
	CheckOffered      = "offered rate"
	CheckAchieved     = "achieved rate"
	CheckStability    = "stability"
	CheckLockStep     = "lock-step"
	CheckLittle       = "Little's law"
	CheckWarmup       = "warm-up"
	CheckWindow       = "window"
	CheckResidences   = "residence times"
	CheckSamples      = "samples"
	CheckErrors       = "errors"
	CheckResets       = "resets"
	CheckRetransmits  = "retransmits"
	CheckRetries      = "retries"
	CheckRestarts     = "server restarts"
	CheckGone         = "server went away"
	CheckServed       = "served requests"
	CheckServedTokens = "served tokens"
	CheckPrompts      = "prompt lengths"
	CheckTokenizer    = "tokenizer"
	CheckOutputs      = "output lengths"
	CheckFinish       = "finish reasons"
	CheckTextless     = "responses without text"
	CheckUsage        = "usage"
	CheckTokenCounts  = "token counts"
	CheckEvents       = "events of text"
	CheckTokenGaps    = "token gaps"
	CheckHidden       = "hidden reasoning"
	CheckPrefixCache  = "prefix cache"
	CheckRepeated     = "repeated prompts"
	CheckMix          = "mix"
)

// Cases of checks that may find one of several things.
const (
	CaseUnknown     = "unknown"     // the value could not be had
	CaseGone        = "gone"        // the server went away
	CaseEmpty       = "empty"       // the window has no length
	CaseLate        = "late"        // the load settled too late, or not at all
	CaseDrift       = "drift"       // what was in flight moved within the window
	CaseClosed      = "closed"      // a closed loop: its users bound what is in flight
	CaseChance      = "chance"      // over the limit by no more than chance brings
	CaseBacklog     = "backlog"     // what had piled up before ended in the window too
	CaseCut         = "cut"         // requests were cut off before their end, as by a timeout
	CaseProcess     = "process"     // of the server was restarted
	CaseConnections = "connections" // in use all broke at once
	CaseWorkers     = "workers"     // a worker of the run was lost, which may be why
	CaseHost        = "host"        // the client had to wait: its machine was busy with something else
	CaseThrottled   = "throttled"   // by the container's limit on processors
	CaseForeign     = "foreign"     // more than were sent: somebody else asks the server too
	CaseFewer       = "fewer"       // than were answered
	CaseTokenizer   = "tokenizer"   // it is about the counts of a tokenizer that the user gave
	CaseIDs         = "ids"         // ids of tokens were compared, not how many they are
	CaseBeyond      = "beyond"      // the server has ids that the user's file has not
)

// CheckKind is one of the checks there are.
type CheckKind struct {
	Name    string
	Unit    string
	Asks    string // what it asks
	Flagged string // when the point is flagged, "" for never
	Invalid string // when the measurement is invalid, "" for never
}

// Units of checks that are no metric's.
const (
	share  = "share"
	ms     = "ms"
	s      = "s"
	counts = "requests"
)

// CheckKinds lists them, in the order in which they are explained.
func CheckKinds() []CheckKind {
	return []CheckKind{
		{CheckAccounting, counts, "is due = ok + failed + cut + unsent, and as many as planned?", "", "if not"},
		{CheckRecording, "losses", "was every record written?", "", "if not"},
		{CheckDamage, "records", "can every record be read again? Only where the journal is damaged ([data](data.md))", "foreign bytes in it, nothing lost", "any lost"},
		{CheckOwnErrors, counts, "did requests fail by Pitot's own fault?", "", "any"},
		{CheckClientLimits, counts, "did requests fail for want of files, ports or memory of the client? ([limits](limits.md))", "", "any"},
		{CheckWorkers, "workers", "was every worker of a fleet there to the end? Of a load that lost one the window ends where it was last heard of ([scale](scale.md))", "one was lost behind half of the window", "one was lost before"},
		{CheckSendLag, ms, "by how much does the client's own delay move p50 and p99 of TTFT?", "over 1 ms and 2 %", "over 2 ms and 10 %"},
		{CheckClientCPU, share, "share of the cores that the client used", "over 60 %", "over 90 %"},
		{CheckHost, share, "was the client's machine busy with something else, by its kernel?", "others hold over 20 % of the cores while tasks wait for one over 20 % of the time; over 2 % taken by a hypervisor or a container's limit", ""},
		{CheckPauses, ms, "how long the collector stopped the client within a second", "over 10 ms", ""},
		{CheckClockSteps, "steps", "was the machine's clock set?", "any", ""},
		{CheckStamps, share, "did chunk times come from the kernel?", "if over 1 % did not", ""},
		{CheckMerged, share, "chunks that shared a read, whose times are intervals", "over 0.1 %", ""},
		{CheckArrivals, share, "were requests sent when they were due?", "2 % late at once", ""},
		{CheckConnects, share, "requests that waited 1 ms or more for a connection", "over 1 %", ""},
		{CheckMaxInFlight, share, "requests that the cap held back", "over 1 %", ""},
		{CheckRateLimits, share, "requests that --respect-limits held back: the load is then not the one that was planned", "any", ""},
		{CheckOffered, "req/s", "did as many requests arrive in the window as the rate implies?", "5 % and 3.5 standard deviations apart", ""},
		{CheckAchieved, "req/s", "did as many requests end as came due?", "2 % apart, beyond chance", ""},
		{CheckStability, share, "does the queue grow?", "if unstable", ""},
		{CheckLockStep, share, "do the users of a closed loop ask together, cycle after cycle?", "if so", ""},
		{CheckLittle, counts, "is concurrency = rate × time in the system, or are connections held open after their answers?", "2 % apart", ""},
		{CheckWarmup, s, "had the load settled when the window began?", "if not", ""},
		{CheckWindow, s, "is it twice as long as the slowest request?", "if not", ""},
		{CheckResidences, "residence times", "how many of them the window has", "under 15", ""},
		{CheckSamples, "samples", "are there enough for p99?", "under 100; the tables of a sweep or a search mark few instead", ""},
		{CheckErrors, share, "requests that were not answered well", "over 1 %", ""},
		{CheckResets, share, "connections that broke", "over 0.1 %", ""},
		{CheckRetransmits, share, "requests with segments sent again", "over 1 %", ""},
		{CheckRetries, share, "requests sent again, because a reused connection was closed", "over 1 %", ""},
		{CheckRestarts, "connections", "was its process restarted, or did all connections break at once?", "if so", ""},
		{CheckGone, s, "did it refuse every connection from some time on?", "if so", ""},
		{CheckServed, share, "did the server count as many requests as it was sent, by its own metrics? More is other traffic on it", "over 1 % more than were sent, or fewer than were answered", ""},
		{CheckServedTokens, share, "share of the tokens that the server counted over the load, by its own metrics, that were not this run's", "over 1 %", ""},
		{CheckPrompts, share, "were prompts as long as planned, by the server's count?", "over 1 % not", ""},
		{CheckTokenizer, "tokens", "does --tokenizer make the same of a text as the server, which was asked before the load? ([tokenizers](tokenizers.md))", "any other", ""},
		{CheckOutputs, share, "were responses as long as requested?", "over 1 % not", ""},
		{CheckFinish, share, "responses that ended with a finish reason that is in no list", "any", ""},
		{CheckTextless, share, "responses that ended without any text, as where a model ends at once; of more than four tokens they are `empty` errors", "any", ""},
		{CheckUsage, share, "answers whose usage cannot be, and is left out ([limits](limits.md#what-a-server-counts))", "any", ""},
		{CheckTokenCounts, share, "do usage and chunks count the same tokens?", "over 1 % apart", ""},
		{CheckEvents, share, "streams with more events of text than the tokens that the server counts: text sent twice, or in pieces of tokens", "over 1 %", ""},
		{CheckTokenGaps, share, "streams left out of ITL, as the tokens in their chunks are not known; vLLM, SGLang and the mock are asked to tell them (`continuous_usage_stats`)", "over 1 %", ""},
		{CheckHidden, share, "requests with reasoning that was counted and never streamed", "any", ""},
		{CheckPrefixCache, share, "tokens of prompts that should be cold and were cached", "over 1 %", ""},
		{CheckRepeated, counts, "were prompts asked twice, for want of others?", "if so", ""},
		{CheckMix, "factor", "do the classes of requests differ?", "medians by a factor of 3", ""},
	}
}

// NewCheck is a check that passes, of a value that is known.
func NewCheck(name string, value, limit float64) Check {
	c := Check{Name: name, Status: Pass, Value: &value, Limit: &limit}
	for _, k := range CheckKinds() {
		if k.Name == name {
			c.Unit = k.Unit
		}
	}
	return c
}

// WithDetail adds numbers that a check counted besides, by name.
func (c Check) WithDetail(detail map[string]float64) Check {
	c.Detail = detail
	return c
}

// NotKeptUp reports whether fewer requests ended than came due, beyond chance: the server does
// less than the load asks for.
func (p *Point) NotKeptUp() bool {
	for i := range p.Checks {
		if c := &p.Checks[i]; c.Name == CheckAchieved && c.Status == Flag && c.Case == "" {
			return true
		}
	}
	return false
}
