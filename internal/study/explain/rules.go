package explain

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/data/metric"
)

// The rules: what facts say for or against a cause, each with its source. A rule
// speaks only where all that it needs is known. To add one, add an entry.

// causes in the order in which they are asked: who measures first, then the way to the
// server, then the server from the outside in.
var causes = []Cause{Client, Network, Proxy, Foreign, Throttling, Freezes, Frontend, KVCache, Seats, Budget, PrefixCache, Host, Links, Compute, Bandwidth}

// kind is what a rule says of the share of the symptom that its cause makes.
type kind uint8

const (
	estimate kind = iota // about so much, where no twin knows better
	measured             // so much: it was seen, and no twin has it
	atMost               // no more than that; 0 excludes the cause
)

type rule struct {
	cause  Cause
	kind   kind
	of     []metric.Name // the symptoms that it is about
	needs  []Signal
	gain   func(f Facts, value float64) float64 // share of the symptom; value is the symptom's in ms
	says   string                               // why it is not the cause, where the share is nothing
	source string
}

var (
	first  = []metric.Name{metric.TTFT}
	later  = []metric.Name{metric.TPOT, metric.Stall}
	stalls = []metric.Name{metric.Stall}
	every  = []metric.Name{metric.TTFT, metric.TPOT, metric.Stall, metric.E2E}
	whole  = []metric.Name{metric.TTFT, metric.E2E}
)

// share is that of a part of the symptom in ms.
func share(s Signal) func(Facts, float64) float64 {
	return func(f Facts, value float64) float64 { return min(f.Get(s)/max(value, 1e-9), 1) }
}

// frozen is the share of the symptom in which the server stood still, of what twins, which
// never do, have not by themselves: silences before a queue of long prompts are theirs too.
func frozen(f Facts, value float64) float64 {
	return min(share(FrozenInTail)(f, value), 1-f.Get(OnTwins)/max(value, 1e-9))
}

// queued is the share of the time to the first token that requests wait in the server.
func queued(f Facts) float64 { return min(f.Get(QueueMean)/max(f.Get(TTFTMean), 1e-9), 1) }

// inFront is the share of the mean time to the first token that is neither in the engine's
// queue nor its prefill, nor on the way.
func inFront(f Facts) float64 {
	return max(f.Get(TTFTMean)-f.Get(QueueMean)-f.Get(PrefillMean)-f.Get(RoundTrip), 0) / max(f.Get(TTFTMean), 1e-9)
}

// engineHasMore says that the engine's queue or its prefill is a larger part of the time to
// the first token than what is in front of it, where that is known.
func engineHasMore(f Facts) bool {
	return f.has(QueueMean, PrefillMean, TTFTMean) && max(f.Get(QueueMean), f.Get(PrefillMean)) > inFront(f)*f.Get(TTFTMean)
}

// lost is the share of the prompts' work that an unlimited prefix cache would have saved
// and the server's did not.
func lost(f Facts) float64 {
	return max(f.Get(PlannedHits)-f.Get(HitShare), 0) / max(1-f.Get(HitShare), 1e-9)
}

// if0 gives 0 where a condition holds, else no limit.
func if0(is func(f Facts) bool) func(Facts, float64) float64 {
	return func(f Facts, _ float64) float64 {
		if is(f) {
			return 0
		}
		return 1
	}
}

// heldShare is the share of the time from which on a clock that is held down counts.
const heldShare = 0.02

// held says that the GPU's clock was held down for long enough to matter, by how fast it
// ran, or, where that is not known, by the time in which something held it.
func held(f Facts) bool {
	if f.has(Throttled) && f.Get(Throttled) < heldShare {
		return false
	}
	if f.has(ClockShare) {
		return slowed(f) >= Least
	}
	return f.has(Throttled)
}

// slowed is the share of the time that a clock below its highest takes.
func slowed(f Facts) float64 { return max(1-f.Get(ClockShare)-0.03, 0) }

var rules = []rule{
	// Who measures.
	{Client, measured, first, []Signal{LagInTail}, share(LagInTail), "requests were sent in time",
		"lag = sent − ready is the instrument's own (docs/measuring.md)"},

	// The way to the server.
	{Network, measured, whole, []Signal{RoundTrip}, share(RoundTrip), "a round trip is short beside it",
		"a TCP connect takes one round trip (RFC 9293), a request and its first byte another"},
	{Proxy, measured, stalls, []Signal{PerArrival, Evenness, GapMedian, TPOTMean}, func(f Facts, value float64) float64 {
		if !buffered(f) {
			return 0
		}
		return max(1-max(f.Get(TPOTMean), f.Get(OnTwins))/max(value, 1e-9), 0)
	}, "tokens come one by one, or as many at a time as the engine sends",
		"a buffer that is flushed by the clock: even gaps with uneven numbers of tokens; vLLM itself sends one chunk a step (vllm/v1/engine/output_processor.py)"},
	{Proxy, measured, first, []Signal{PerArrival, Evenness, GapMedian, TPOTMean}, func(f Facts, value float64) float64 {
		if !buffered(f) {
			return 0
		}
		return min(0.6*f.Get(GapMedian)/max(value, 1e-9), 1) // a first token waits half a flush in the mean, in the tail longer
	}, "tokens come one by one, or as many at a time as the engine sends", "as of stalls"},

	// Others, and the machine.
	{Foreign, atMost, every, []Signal{ForeignShare}, if0(func(f Facts) bool { return f.Get(ForeignShare) < 0.02 }),
		"the server's counters grew by what was sent", "what the server counted, against what was sent and answered"},
	{Foreign, measured, every, []Signal{ForeignShare}, func(f Facts, _ float64) float64 {
		x := f.Get(ForeignShare)
		if x < 0.02 {
			return 0
		}
		return x
	}, "the server's counters grew by what was sent", "as above; at a load in the steady state a share of the work is about that share of the time"},
	{Throttling, measured, every, []Signal{ClockShare}, func(f Facts, _ float64) float64 { return slowed(f) },
		"the GPU's clock was near its highest", "DCGM_FI_DEV_SM_CLOCK: below nine tenths of the highest is throttled (NVIDIA DCGM)"},
	{Throttling, atMost, every, []Signal{Throttled}, if0(func(f Facts) bool { return f.Get(Throttled) < heldShare }),
		"nothing held the GPU's clock down", "DCGM_FI_DEV_POWER_VIOLATION, DCGM_FI_DEV_THERMAL_VIOLATION: time in which clocks were held down"},
	{Freezes, measured, stalls, []Signal{FrozenInTail}, frozen, "nothing stood still by the clock",
		"times at which nothing came from any stream, again and again after the same time (measure/judge/standstill.go)"},
	{Freezes, measured, first, []Signal{FrozenInTail}, frozen, "nothing stood still by the clock", "as of stalls"},

	// The server's front.
	{Frontend, atMost, every, []Signal{PerArrival, Evenness, GapMedian, TPOTMean}, if0(buffered), "what something in front of it holds back is not its own",
		"a twin has no proxy, and takes its time for the API server's"},
	{Frontend, atMost, every, []Signal{FrontBusy, FrontWaits}, if0(func(f Facts) bool { return f.Get(FrontBusy)+f.Get(FrontWaits) < 0.2 }), "its process slept four fifths of the time, and waited for no core",
		"/proc/PID/stat and schedstat of what listens (proc(5)): one thread of Python serves, with at most a core"},
	{Frontend, estimate, first, []Signal{QueueMean, PrefillMean, TTFTMean}, func(f Facts, _ float64) float64 { return inFront(f) }, "the engine's own times make up the client's", "client's TTFT less queue and prefill (vLLM issues 580, 8033, 12287)"},
	{Frontend, atMost, first, []Signal{QueueMean, PrefillMean, TTFTMean}, func(f Facts, _ float64) float64 {
		rest := inFront(f)
		if rest < 0.03 {
			return 0
		}
		return min(2*rest+0.1, 1)
	}, "the engine's queue and prefill make up the client's time", "as above; means, while the symptom may be a tail"},
	{Frontend, atMost, first, []Signal{QueueMean, PrefillMean, TTFTMean}, if0(engineHasMore), "the engine's queue or prefill is a larger part of the client's time",
		"as above: what is relieved first is the largest part"},
	{Frontend, estimate, first, []Signal{InFlight, Running, Waiting, Samples, TTFTMean, AnswerMean, Evenness}, func(f Facts, _ float64) float64 {
		out := f.Get(InFlight) - f.Get(Running) - f.Get(Waiting)
		if f.Get(Samples) < 5 || buffered(f) || out < sampled*math.Sqrt(f.Get(InFlight)/f.Get(Samples)) {
			return 0
		}
		outside := out / max(f.Get(InFlight), 1e-9) * (f.Get(TTFTMean) + f.Get(AnswerMean))
		return min(max(outside-f.Get(RoundTrip), 0)/max(f.Get(TTFTMean), 1e-9), 1)
	}, "what is under way is in the engine", "Little's law: requests in flight at the client, less num_requests_running and num_requests_waiting"},
	{Frontend, estimate, []metric.Name{metric.TPOT}, []Signal{AnswerMean, AnswerError, DecodeMean, PerArrival, Evenness, GapMedian, TPOTMean}, func(f Facts, _ float64) float64 {
		if f.Get(ForeignShare) > 0.02 { // the server's mean is of others' answers too
			return 0
		}
		apart := f.Get(AnswerMean) - f.Get(DecodeMean)
		if apart < cohorts*f.Get(AnswerError) {
			return 0
		}
		return max(apart, 0) / max(f.Get(AnswerMean), 1e-9)
	}, "the engine's own time of answers makes up the client's",
		"the engine stamps its tokens itself, before the API server has them (vllm/v1/engine: EngineCoreOutput, FinishedRequestStats.decode_time)"},

	// Its limits.
	{Seats, atMost, every, []Signal{RunningMost, MaxSeats}, if0(func(f Facts) bool { return f.Get(RunningMost) < 0.97*f.Get(MaxSeats) }),
		"fewer requests ran than there are places", "num_requests_running against max_num_seqs (vllm/v1/core/sched/scheduler.py)"},
	{Seats, atMost, every, []Signal{WaitingOften, QueueMean, TTFTMean}, if0(func(f Facts) bool { return f.Get(WaitingOften) == 0 && queued(f) < 0.1 }),
		"no request waited", "num_requests_waiting"},
	{KVCache, atMost, every, []Signal{KVMost, Preempted}, if0(func(f Facts) bool { return f.Get(KVMost) < 0.85 && f.Get(Preempted) == 0 }),
		"the KV cache had room and nothing was preempted", "kv_cache_usage_perc, num_preemptions (vLLM, Optimization and Tuning)"},
	{Seats, estimate, first, []Signal{QueueMean, TTFTMean, WaitingOften, Running, RunningMost, KVMost}, func(f Facts, _ float64) float64 {
		if f.Get(WaitingOften) < 0.5 || f.Get(Running) < 0.9*f.Get(RunningMost) || f.Get(KVMost) > 0.9 || f.Get(Preempted) > 0 || f.Get(PrefillMean) > 0.2*f.Get(TTFTMean) {
			return 0
		}
		return 0.7 * queued(f)
	}, "no queue stood before full seats", "a queue while as many run as ever and the KV cache has room: p99 TTFT rises where p50 stays"},
	{KVCache, estimate, first, []Signal{QueueMean, TTFTMean, WaitingOften, KVUse, KVMost, Preempted}, func(f Facts, _ float64) float64 {
		if f.Get(Preempted) == 0 && (f.Get(KVUse) < 0.85 || f.Get(WaitingOften) < 0.3) {
			return 0
		}
		return 0.7 * queued(f)
	}, "the KV cache had room and nothing was preempted", "KV cache use at 0.95 and more with a queue, or preemptions (vLLM, Optimization and Tuning)"},
	{KVCache, estimate, later, []Signal{Preempted}, func(f Facts, _ float64) float64 {
		if f.Get(Preempted) < 0.1 {
			return 0
		}
		return 0.3
	}, "nothing was preempted", "a preempted request is computed again from its start (Scheduler._preempt_request)"},

	// Its work.
	{Compute, estimate, first, []Signal{PrefillMean, QueueMean, TTFTMean}, func(f Facts, _ float64) float64 {
		if queued(f) > 0.2 {
			return 0
		}
		return 0.25 * f.Get(PrefillMean) / max(f.Get(TTFTMean), 1e-9)
	}, "requests wait longer than their prompts take", "prompts are bound by computing above some hundred tokens (docs/curve.md)"},
	{Compute, estimate, stalls, []Signal{AtFirsts, AtFirstsBy, Beside, BesideBy}, func(f Facts, _ float64) float64 {
		if !(f.Get(AtFirsts) > 0.8 && f.Get(AtFirsts)-f.Get(AtFirstsBy) > 0.35) && !(f.Get(Beside) > 0.7 && f.Get(Beside)-f.Get(BesideBy) > 0.35) {
			return 0
		}
		return 0.15
	}, "the longest gaps are not where others' prompts are computed", "a prompt in a step makes it longer for all that decode (9 to 50 ms: chunked prefill)"},
	{Bandwidth, atMost, every, []Signal{MemoryBusy}, if0(func(f Facts) bool { return f.Get(MemoryBusy) < 0.3 }),
		"memory was idle most of the time", "DCGM_FI_PROF_DRAM_ACTIVE: slow tokens alone are no sign of the memory's limit"},
	{Compute, atMost, every, []Signal{TensorBusy, MemoryBusy}, if0(func(f Facts) bool { return f.Get(TensorBusy) < 0.05 && f.Get(MemoryBusy) > 0.5 }),
		"tensor cores were idle", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"},
	{PrefixCache, estimate, first, []Signal{PlannedHits, HitShare, PrefillMean, QueueMean, TTFTMean}, func(f Facts, _ float64) float64 {
		work := f.Get(PrefillMean)
		if f.Get(WaitingOften) < 0.5 || f.Get(KVMost) < 0.9 { // else what waits may wait for memory
			work += f.Get(QueueMean)
		}
		return lost(f) * min(work/max(f.Get(TTFTMean), 1e-9), 1)
	}, "what prompts share was found, or they take no time", "what the prompts have in common, against prefix_cache_hits ÷ prefix_cache_queries; a token that is found is not computed"},
	{PrefixCache, atMost, every, []Signal{PlannedHits, HitShare}, if0(func(f Facts) bool { return lost(f) < 0.02 }),
		"as much was found as prompts have in common", "as above"},
	{PrefixCache, atMost, every, []Signal{HitShare}, if0(func(f Facts) bool { return f.Get(HitShare) > 0.9 }),
		"nearly all that was looked up was there", "prefix_cache_hits ÷ prefix_cache_queries"},
}

// cohorts is how many standard errors means of answers must be apart: the client's is of the
// requests that began in the window, the server's of those that ended in it.
const cohorts = 3

// sampled is how many standard errors the requests in the engine must be fewer than those in
// flight: their mean is of samples, in each of which they vary as a Poisson count does.
const sampled = 3

// buffered says that something between holds tokens back and lets them go by the clock:
// gaps are even and about as long as the tokens that come with them take. A server that
// now and then hands on several tokens at once has gaps of a token.
func buffered(f Facts) bool {
	return f.Get(PerArrival) > 1.5 && f.Get(Evenness) < 0.25 && f.Get(GapMedian) > 0.75*f.Get(PerArrival)*f.Get(TPOTMean)
}

// Twins further off than this from what was measured are no evidence: most that is not
// modelled (another engine, another deployment) is. The mean of |ln(twin ÷ measured)|.
const farOff = 0.2

// agree is the share of twins that must name a cause.
const agree = 0.7

// Steps that take so much longer than the catalogue says are those of a server that is
// held down or shared, more likely than of one that is as it is: servers differ from it by
// a tenth to four tenths in each constant, and less in their sum.
const heldDown = 1.4

// muchSlower is how much slower steps have to be than those of a server like it for others
// to be sure to hold them up.
const muchSlower = 1.5

// doubt says why none of the candidates is claimed, "" where the first is.
func doubt(c *Case, open []candidate) string {
	switch {
	case c.Facts.has(Unanswered) && c.Facts.Get(Unanswered) > 0.2:
		return "many requests were not answered"
	case sentAgain(c):
		return "failed requests that were sent again are in it, with their wait between attempts"
	case len(open) == 0 && c.Twin == nil:
		return "no fact that is known points to a cause"
	case len(open) == 0:
		return "nothing that could be relieved would make it better by a twentieth"
	case open[0].measured:
		return ""
	case c.Symptom.Metric == metric.Stall && c.Facts.has(PerArrival, Evenness, GapMedian, TPOTMean) && buffered(c.Facts):
		return "something between holds tokens back, and what stalls are behind it cannot be seen"
	case c.Twin != nil && c.Twin.Off > farOff:
		return "no twin of " + c.Twin.Name + " comes near what was measured"
	case c.Twin != nil && c.Twin.Slower > heldDown && !(c.Facts.has(ForeignShare) && (c.Facts.has(ClockShare) || c.Facts.has(Throttled))):
		return "its steps take far longer than those of any server like it: its clock may be held down, or others use it"
	case c.Twin != nil && open[0].among < agree:
		return "twins that all agree with the measurement name different causes" + named(open)
	}
	return ""
}

// sentAgain says that a symptom that counts from when requests were due is of those that
// failed at first: half as many as its tail has are enough.
func sentAgain(c *Case) bool {
	tail := map[string]float64{"p50": .5, "p90": .1, "p95": .05, "p99": .01, "mean": .02}[c.Symptom.Of]
	return slices.Contains(whole, c.Symptom.Metric) && c.Facts.has(SentAgain) && c.Facts.Get(SentAgain) >= tail/2
}

// named are the causes that twins name.
func named(open []candidate) (text string) {
	for i := range open[:min(len(open), 3)] {
		if x := &open[i]; x.among > 0 {
			text += fmt.Sprintf("%s%s (%.0f of 100)", map[bool]string{true: ": ", false: ", "}[text == ""], x.cause, 100*x.among)
		}
	}
	return text
}

// Standard errors by which one cause must bring more than another: to be told from it, and
// so that another schedule of the same load does not name the other first, but once in fifty
// (of two schedules the error is √2 times that of one).
const toldApart, surelyApart = 2, 3

// confidence is that of the first candidate. The limits were chosen on the design half of
// `go run ./bench/why`.
func confidence(c *Case, open []candidate) Confidence {
	x := &open[0]
	second, alone := 0.0, true
	for i := range open[1:] {
		second = math.Max(second, open[1+i].gain)
		alone = alone && x.apart(&open[1+i], surelyApart)
	}
	if x.cause != Throttling && held(c.Facts) { // a slower GPU looks like each cause of its own work
		alone = false
	}
	stall := c.Symptom.Metric == metric.Stall // one stall hangs on the step it falls into
	switch {
	case x.cause == Foreign && (stall || c.Twin != nil && c.Twin.Slower < muchSlower):
		return Likely // a share of the work is no share of the time: batches have room
	case x.measured && x.gain > 0.3 && x.gain > 2*second && (x.cause == Throttling || !held(c.Facts)):
		return Sure
	case c.Twin != nil && !stall && !x.measured && x.among >= 0.99 && c.Twin.Off < 0.12 && x.gain > 0.1 && x.gain > 1.1*second && alone && c.Facts.has(Running):
		return Sure
	case x.measured && x.gain > second, c.Twin != nil && x.among >= 0.75:
		return Likely
	}
	return Possible
}
