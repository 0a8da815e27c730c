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

// CheckKinds lists them, in the order in which docs/reference/checks.md explains them.
func CheckKinds() []CheckKind {
	return []CheckKind{
		{CheckAccounting, counts, "", "if not"},
		{CheckRecording, "losses", "", "if not"},
		{CheckDamage, "records", "foreign bytes in it, nothing lost", "any lost"},
		{CheckOwnErrors, counts, "", "any"},
		{CheckClientLimits, counts, "", "any"},
		{CheckWorkers, "workers", "one was lost after half of the window", "one was lost before"},
		{CheckSendLag, ms, "over 1 ms and 2 %", "over 2 ms and 10 %"},
		{CheckClientCPU, share, "over 60 %", "over 90 %"},
		{CheckHost, share, "others hold over 20 % of the cores while tasks wait for one over 20 % of the time; over 2 % taken by a hypervisor or a container's limit", ""},
		{CheckPauses, ms, "over 10 ms", ""},
		{CheckClockSteps, "steps", "any", ""},
		{CheckStamps, share, "if over 1 % did not", ""},
		{CheckMerged, share, "over 0.1 %", ""},
		{CheckArrivals, share, "2 % late at once", ""},
		{CheckConnects, share, "over 1 %", ""},
		{CheckMaxInFlight, share, "over 1 %", ""},
		{CheckRateLimits, share, "any", ""},
		{CheckOffered, "req/s", "5 % and 3.5 standard deviations apart", ""},
		{CheckAchieved, "req/s", "2 % apart, beyond chance", ""},
		{CheckStability, share, "if unstable", ""},
		{CheckLockStep, share, "if so", ""},
		{CheckLittle, counts, "2 % apart", ""},
		{CheckWarmup, s, "if not", ""},
		{CheckWindow, s, "if not", ""},
		{CheckResidences, "residence times", "under 15", ""},
		{CheckSamples, "samples", "under 100; the tables of a sweep or a search mark few instead", ""},
		{CheckErrors, share, "over 1 %", ""},
		{CheckResets, share, "over 0.1 %", ""},
		{CheckRetransmits, share, "over 1 %", ""},
		{CheckRetries, share, "over 1 %", ""},
		{CheckRestarts, "connections", "if so", ""},
		{CheckGone, s, "if so", ""},
		{CheckServed, share, "over 1 % more than were sent, or fewer than were answered", ""},
		{CheckServedTokens, share, "over 1 %", ""},
		{CheckPrompts, share, "over 1 % not", ""},
		{CheckTokenizer, "tokens", "any other", ""},
		{CheckOutputs, share, "over 1 % not", ""},
		{CheckFinish, share, "any", ""},
		{CheckTextless, share, "any", ""},
		{CheckUsage, share, "any", ""},
		{CheckTokenCounts, share, "over 1 % apart", ""},
		{CheckEvents, share, "over 1 %", ""},
		{CheckTokenGaps, share, "over 1 %", ""},
		{CheckHidden, share, "any", ""},
		{CheckPrefixCache, share, "over 1 %", ""},
		{CheckRepeated, counts, "if so", ""},
		{CheckMix, "factor", "medians by a factor of 3", ""},
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
