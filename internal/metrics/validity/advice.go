package validity

import (
	"cmp"
	"encoding/json"
	"slices"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// remedy holds what to do about a check that did not pass.
type remedy struct {
	code result.ReasonCode
	or   map[string]result.ReasonCode // in a case
	// inSearch is of a load that a search decided on, where code is about a setting that a search
	// has not.
	inSearch result.ReasonCode
}

// byCase returns the remedies of cases.
type byCase = map[string]result.ReasonCode

var (
	seeHost    = byCase{result.CaseHost: result.AdviseSeeHost}
	seeWorkers = byCase{result.CaseWorkers: result.AdviseSeeWorkers}
)

// remedies are those of the checks, by name.
var remedies = map[string]remedy{
	result.CheckAccounting: {code: result.AdviseReportBug},
	result.CheckRecording:  {code: result.AdviseFreeDisk},
	result.CheckDamage:     {code: result.AdviseMeasureAgain},
	result.CheckOwnErrors:  {code: result.AdviseReportBug},
	result.CheckClientLimits: {code: result.AdviseLargerClient, or: byCase{
		record.ErrOwnMemory: result.AdviseShorterAnswers, record.ErrOwnPorts: result.AdviseMoreClients, record.ErrOwnFiles: result.AdviseMoreFiles,
	}},
	result.CheckWorkers:     {code: result.AdviseLostWorker},
	result.CheckSendLag:     {code: result.AdviseLowerClientLoad, or: seeHost},
	result.CheckClientCPU:   {code: result.AdviseLargerClient},
	result.CheckHost:        {code: result.AdviseIdleMachine, or: byCase{result.CaseThrottled: result.AdviseRaiseContainer}},
	result.CheckPauses:      {code: result.AdviseMoreMemory, or: seeHost},
	result.CheckClockSteps:  {code: result.AdviseStopSteps},
	result.CheckStamps:      {code: result.AdviseFromLinux},
	result.CheckMerged:      {code: result.AdviseQuoteBounds, or: seeHost},
	result.CheckArrivals:    {code: result.AdviseRaiseInFlight, or: seeHost},
	result.CheckConnects:    {code: result.AdviseKeepAlive},
	result.CheckRateLimits:  {code: result.AdviseLessThanLimits},
	result.CheckMaxInFlight: {code: result.AdviseQueueBefore},
	result.CheckOffered:     {code: result.AdviseOtherLoad, or: seeWorkers},
	result.CheckAchieved: {code: result.AdviseLowerRate, inSearch: result.AdviseSearchDecidesLoad, or: byCase{
		result.CaseBacklog: result.AdviseBacklogEnded, result.CaseCut: result.AdviseRaiseTimeout,
		result.CaseGone: result.AdviseServerGone, result.CaseWorkers: result.AdviseSeeWorkers,
	}},
	result.CheckStability:    {code: result.AdviseLowerUnstable, inSearch: result.AdviseSearchDecidesLoad},
	result.CheckLockStep:     {code: result.AdviseBreakLockStep},
	result.CheckLittle:       {code: result.AdviseHeldConnections},
	result.CheckWarmup:       {code: result.AdviseLongerOrLook, inSearch: result.AdviseSearchDecidesWindow},
	result.CheckWindow:       {code: result.AdviseLonger, inSearch: result.AdviseSearchDecidesWindow, or: byCase{result.CaseEmpty: result.AdviseMoreRequests}},
	result.CheckResidences:   {code: result.AdviseLonger, inSearch: result.AdviseSearchDecidesWindow},
	result.CheckSamples:      {code: result.AdviseLowerPercentile},
	result.CheckErrors:       {code: result.AdviseReadServed},
	result.CheckResets:       {code: result.AdviseFindCloser, or: byCase{result.CaseGone: result.AdviseServerGone}},
	result.CheckRetransmits:  {code: result.AdviseLookAtNetwork},
	result.CheckRetries:      {code: result.AdviseServerKeepAlive},
	result.CheckRestarts:     {code: result.AdviseLogAndAgain},
	result.CheckGone:         {code: result.AdviseRestartServer},
	result.CheckServed:       {code: result.AdviseAlone, or: byCase{result.CaseWorkers: result.AdviseSeeWorkers, result.CaseFewer: result.AdviseSeveralServers}},
	result.CheckServedTokens: {code: result.AdviseAlone, or: seeWorkers},
	result.CheckPrompts:      {code: result.AdviseModelsTokenizer},
	result.CheckTokenizer:    {code: result.AdviseOtherTokenizer},
	result.CheckOutputs:      {code: result.AdviseIgnoreEOS},
	result.CheckFinish:       {code: result.AdviseFinishReason},
	result.CheckTextless:     {code: result.AdviseNoText},
	result.CheckUsage:        {code: result.AdviseUsage},
	result.CheckTokenCounts:  {code: result.AdviseWrongCounts, or: byCase{result.CaseTokenizer: result.AdviseTokenizerCounts}},
	result.CheckEvents:       {code: result.AdviseTextTwice},
	result.CheckTokenGaps:    {code: result.AdviseReadICL},
	result.CheckHidden:       {code: result.AdviseFirstVisible},
	result.CheckPrefixCache:  {code: result.AdviseFlushCache, or: byCase{result.CaseUnknown: result.AdviseFreshPrompts}},
	result.CheckRepeated:     {code: result.AdviseMorePrompts},
	result.CheckMix:          {code: result.AdviseReadClasses},
}

// AddAdvice gives every check of a run that did not pass what to do about it.
func AddAdvice(run *result.Run) {
	for i := range run.Points {
		p := &run.Points[i]
		for k := range p.Checks {
			if c := &p.Checks[k]; c.Status != result.Pass {
				c.Advice = adviceFor(run, p, c)
			}
		}
	}
}

// adviceFor returns what to do about one check. There may be nothing.
func adviceFor(run *result.Run, p *result.Point, c *result.Check) []result.Reason {
	of := remedies[c.Name]
	r := result.Reason{Code: cmp.Or(of.or[c.Case], of.code)}
	nothing := p.Requests.Due > 0 && p.Requests.OK == 0
	stopped := nothing && 2*p.Requests.Errors[record.ErrInterrupted] > p.Requests.Due
	switch c.Name {
	case result.CheckErrors:
		if stopped {
			return []result.Reason{{Code: result.AdviseLetItGoOn}}
		}
		if nothing {
			r.Code = result.AdviseSeeErrors
		}
		if n := p.Requests.Errors[record.ErrRateLimited]; n > 0 {
			return append([]result.Reason{r}, refusedAdvice(p, n)...)
		}
		return []result.Reason{r}
	case result.CheckSamples:
		if stopped {
			return []result.Reason{{Code: result.AdviseLetItGoOn}}
		}
		if nothing {
			r.Code = result.AdviseNoLonger
		}
	case result.CheckAchieved, result.CheckStability, result.CheckWindow, result.CheckWarmup, result.CheckResidences, result.CheckOffered:
		if c.Name == result.CheckResidences {
			r.Longer = result.Longer{Seconds: c.Detail["ask_seconds"], Requests: c.Detail["ask_requests"]}
		}
		if nothing {
			r = result.Reason{Code: result.AdviseNotTheLoad}
		}
	case result.CheckOutputs:
		r.Code = outputLengthAdvice(run)
	case result.CheckTokenizer:
		if c.Detail["prompts"] > 0 {
			r.Code = result.AdvisePromptTokenizer
		}
	}
	if c.Case == result.CaseEmpty && p.Load.Concurrency == nil { // of a rate: the run ended before its window
		return nil
	}
	if p.NotKeptUp() {
		switch c.Name {
		case result.CheckWindow, result.CheckWarmup, result.CheckResidences: // of a queue that grows a longer window has more of the same
			return nil
		}
	}
	if ofSearch(p) && of.inSearch != "" && (of.inSearch == result.AdviseSearchDecidesWindow || of.or[c.Case] == "") {
		r = result.Reason{Code: of.inSearch}
	}
	if p.RefusedByLimits()+p.HeldByLimits() > 0 {
		switch c.Name {
		case result.CheckRateLimits:
			r = rateLimitAdvice(p, result.AdviseLessThanLimits)
		case result.CheckConnects, result.CheckArrivals, result.CheckWarmup, result.CheckAchieved, result.CheckStability, result.CheckWindow:
			if p.HeldByLimits() > 0 {
				r = rateLimitAdvice(p, result.AdviseWaitedForLimits)
			}
		}
	}
	return []result.Reason{r}
}

// outputLengthAdvice returns what to do about responses of another length than requested. It
// depends on whether the server had to ignore the end of sequence.
func outputLengthAdvice(run *result.Run) result.ReasonCode {
	var w struct {
		Sampling struct {
			IgnoreEOS bool `json:"ignore_eos"`
		}
	}
	_ = json.Unmarshal(run.Workload, &w) // what is not there was not sent
	switch {
	case slices.ContainsFunc(run.Target.Adaptations, func(a result.Adaptation) bool { return a.Kind == result.NoIgnoreEOS }):
		return result.AdviseEOSRefused
	case run.Target.Kind == "http" && !w.Sampling.IgnoreEOS:
		return result.AdviseEOSNotSent
	}
	return result.AdviseIgnoreEOS
}

// ofSearch reports whether a search decided on the load of a point.
func ofSearch(p *result.Point) bool {
	return !p.IsOfCurve() && !slices.Contains([]string{"", result.StageCold, result.StageWarm}, p.Stage)
}

// refusedAdvice returns what to do about n requests that were refused with 429.
func refusedAdvice(p *result.Point, n int) []result.Reason {
	r := rateLimitAdvice(p, result.AdviseRefusedByLimits)
	r.N = float64(n)
	if x := p.RateLimits; x != nil && x.RetryAfter != nil {
		r.Seconds = *x.RetryAfter
	}
	out := []result.Reason{r}
	if p.Retries == nil {
		out = append(out, result.Reason{Code: result.AdviseOrRetry})
	}
	if byRun := p.Stage == "" || p.Stage == result.StageCold || p.Stage == result.StageWarm; byRun && p.HeldByLimits() == 0 { // searches and sweeps do not have it
		out = append(out, result.Reason{Code: result.AdviseOrHoldBack})
	}
	return out
}

// rateLimitAdvice is an advice with what the rate limits let through in the long run.
func rateLimitAdvice(p *result.Point, code result.ReasonCode) result.Reason {
	r := result.Reason{Code: code}
	per := func(l *result.RateLimit) float64 {
		if l == nil || l.AllowsPerS == nil {
			return 0
		}
		return *l.AllowsPerS
	}
	if x := p.RateLimits; x != nil {
		r.RequestsPerS, r.TokensPerS = per(x.Requests), per(x.Tokens)
	}
	return r
}
