package explain

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/results/metric"
)

// The rules: what facts say for or against a cause, each with its source. A rule
// speaks only where all that it needs is known. To add one, add an entry.

// causes in the order in which they are asked: who measures first, then the way to the
// server, then the server from the outside in.
var causes = []Cause{Client, Hold, Network, Proxy, Foreign, Throttling, Freezes, Frontend, KVCache, Seats, Budget, PrefixCache, Host, Links, Compute, Bandwidth, Steps}

// kind says what a rule claims about the share of the symptom that its cause makes.
type kind uint8

const (
	estimate kind = iota // about so much, where no twin knows better
	measured             // so much: it was seen, and no twin has it
	exact                // so much, counted request by request: no more either
	atMost               // no more than that: below [Least] the cause is ruled out
	second               // above 0: another part of the symptom is larger, and goes before
)

type rule struct {
	cause  Cause
	kind   kind
	of     []metric.Name // the symptoms that it is about
	needs  []Signal      // that which tells most first
	share  func(f Facts, x figure) float64
	source string
}

// figure is the value of a symptom in ms and how often its mean a delay may be there: a
// percentile of an exponential delay is so many means.
type figure struct{ value, tail float64 }

func (s Symptom) newFigure(value float64) figure {
	tail := map[string]float64{"p90": 2.3, "p95": 3, "p99": 4.6}[s.Of]
	return figure{max(value, 1e-9), max(tail, 1)}
}

// unbounded is the bound of a test that tells nothing.
const unbounded = 1

var (
	first  = []metric.Name{metric.TTFT}
	later  = []metric.Name{metric.TPOT, metric.Stall}
	stalls = []metric.Name{metric.Stall}
	tokens = []metric.Name{metric.TPOT}
	every  = []metric.Name{metric.TTFT, metric.TPOT, metric.Stall, metric.E2E}
	whole  = []metric.Name{metric.TTFT, metric.E2E}
)

// shareOfSymptom is that of a part of the symptom in ms.
func shareOfSymptom(s Signal) func(Facts, figure) float64 {
	return func(f Facts, x figure) float64 { return min(f.Get(s)/x.value, 1) }
}

// signalShare gives a known share.
func signalShare(s Signal) func(Facts, figure) float64 {
	return func(f Facts, _ figure) float64 { return f.Get(s) }
}

// boundWhere gives a bound where a condition holds.
func boundWhere(bound float64, holds func(f Facts) bool) func(Facts, figure) float64 {
	return func(f Facts, _ figure) float64 {
		if holds(f) {
			return bound
		}
		return unbounded
	}
}

// frozenShare is the share of the symptom in which the server stood still, of what twins, which
// never do, have not by themselves: silences before a queue of long prompts are theirs too.
// Prompts of others make silences that none of ours explains.
func frozenShare(f Facts, x figure) float64 {
	stood := f.Get(FrozenInTail)
	if f.Get(ForeignShare) < foreignLeast {
		stood = max(stood, f.Get(StoppedInTail))
	}
	return min(stood/x.value, 1-f.Get(OnTwins)/x.value)
}

// foreignLeast is the share of others' tokens from which on they count.
const foreignLeast = 0.02

// queuedShare is the share of the time to the first token that requests wait in the server.
func queuedShare(f Facts) float64 { return min(f.Get(QueueMean)/max(f.Get(TTFTMean), 1e-9), 1) }

// ownTimes reports whether the engine's means are of the requests whose times the client has: of
// other ones nothing follows from a difference.
func ownTimes(f Facts) bool {
	return f.Get(ForeignShare) < foreignLeast && math.Abs(f.Get(EngineServed)-f.Get(Answered)) <= 0.02*f.Get(Answered)
}

// timeOutsideEngine is the mean time to the first token that is neither in the engine's queue nor
// its prefill, in ms: the way there and back, proxies and the API server.
func timeOutsideEngine(f Facts) float64 {
	return max(f.Get(TTFTMean)-f.Get(QueueMean)-f.Get(PrefillMean), 0)
}

// outsideMost bounds what anything outside the engine has of the time to the first token.
func outsideMost(f Facts, x figure) float64 {
	if !ownTimes(f) {
		return unbounded
	}
	return timeOutsideEngine(f) * x.tail / x.value
}

// inFront is the share of the mean time to the first token that is neither in the engine's
// queue nor its prefill, nor on the way.
func inFront(f Facts) float64 {
	return max(timeOutsideEngine(f)-f.Get(RoundTrip), 0) / max(f.Get(TTFTMean), 1e-9)
}

// behindDecode is the share of the mean time of answers that is not the engine's own.
func behindDecode(f Facts) float64 {
	return (f.Get(AnswerMean) - f.Get(DecodeMean)) / max(f.Get(AnswerMean), 1e-9)
}

// behindDecodeMost bounds what anything outside the engine has of the time per token.
func behindDecodeMost(f Facts, x figure) float64 {
	if !ownTimes(f) {
		return unbounded
	}
	return math.Abs(behindDecode(f)) * x.tail
}

// hops is the time of a request on its way between the processes of a server, in ms, besides
// their work.
const hops = 5

// frontMost is the most that the API server takes of a request, in ms: all its work for one,
// and the wait for its thread, which is busy for a known share of the time (Pollaczek and
// Khinchine, of exponential work). Half busy it may queue for long.
func frontMost(f Facts) float64 {
	busy := f.Get(FrontBusy) + f.Get(FrontWaits)
	if busy > 0.5 {
		return math.Inf(1)
	}
	return f.Get(FrontWork)/(1-busy) + hops
}

// lostCacheShare is the share of the prompts' work that an unlimited prefix cache would have saved
// and the server's did not.
func lostCacheShare(f Facts) float64 {
	return max(f.Get(PlannedHits)-f.Get(HitShare), 0) / max(1-f.Get(HitShare), 1e-9)
}

// isCalm reports whether hardly a request waited in the server. Where many do a small cause may add
// much to the wait.
func isCalm(f Facts) bool { return f.Get(WaitingOften) < 0.1 }

// isWellSampled reports whether a gauge was sampled often enough for its highest value to be near
// the truth.
func isWellSampled(f Facts) bool { return f.Get(Samples) >= 5 }

// seatsFull reports whether usually as many run as may, while others wait.
func seatsFull(f Facts) bool {
	most := f.Get(RunningMost)
	if f.hasAll(MaxSeats) {
		most = f.Get(MaxSeats)
	}
	return f.Get(WaitingOften) >= 0.5 && max(f.Get(RunningUsual), f.Get(Running)) >= 0.9*most
}

// heldShare is the share of the time from which on a clock that is held down counts.
const heldShare = 0.02

// isClockHeld says that the GPU's clock was held down for long enough to matter, by how fast it
// ran, or, where that is not known, by the time in which something held it.
func isClockHeld(f Facts) bool {
	if f.hasAll(Throttled) && f.Get(Throttled) < heldShare {
		return false
	}
	if f.hasAll(ClockShare) {
		return slowClockShare(f) >= Least
	}
	return f.hasAll(Throttled)
}

// slowClockShare is the share of the time that a clock below its highest takes.
func slowClockShare(f Facts) float64 { return max(1-f.Get(ClockShare)-0.03, 0) }

var rules = []rule{
	// Who measures.
	{Client, exact, whole, []Signal{LagShare}, signalShare(LagShare),
		"lag = sent − ready is the instrument's own (docs/concepts/how-pitot-measures.md)"},
	{Hold, exact, whole, []Signal{HeldShare, MostInFlight}, signalShare(HeldShare),
		"held = eligible − due: the client's own queue (docs/concepts/how-pitot-measures.md)"},

	// The way to the server. A connect times its first hop alone, so it rules out nothing.
	{Network, measured, whole, []Signal{RoundTrip}, shareOfSymptom(RoundTrip),
		"a TCP connect takes one round trip (RFC 9293), a request and its first byte another"},
	{Network, atMost, whole, []Signal{QueueMean, PrefillMean, TTFTMean, EngineServed, ForeignShare}, outsideMost,
		"client's TTFT less queue and prefill has all of the way in it"},
	{Proxy, measured, stalls, []Signal{PerArrival, Evenness, GapMedian, TPOTMean}, func(f Facts, x figure) float64 {
		if !isBuffered(f) {
			return 0
		}
		return max(1-max(f.Get(TPOTMean), f.Get(OnTwins))/x.value, 0)
	}, "a buffer that is flushed by the clock: even gaps with uneven numbers of tokens; vLLM itself sends one chunk a step (vllm/v1/engine/output_processor.py)"},
	{Proxy, measured, first, []Signal{PerArrival, Evenness, GapMedian, TPOTMean}, func(f Facts, x figure) float64 {
		if !isBuffered(f) {
			return 0
		}
		return min(0.6*f.Get(GapMedian)/x.value, 1) // a first token waits half a flush in the mean, in the tail longer
	}, "as of stalls"},
	{Proxy, measured, whole, []Signal{QueueMean, PrefillMean, TTFTMean, EngineServed, ForeignShare, FrontWork, FrontBusy}, func(f Facts, x figure) float64 {
		if !ownTimes(f) || 1.5*frontMost(f) > timeOutsideEngine(f) {
			return 0
		}
		// While a server stands still answers wait outside its engine too.
		return (timeOutsideEngine(f)-frontMost(f)-f.Get(RoundTrip))/max(f.Get(TTFTMean), 1e-9) - max(frozenShare(f, x), 0)
	}, "what is outside the engine and is neither the first hop nor the API server's work is a proxy, or the way beyond it"},
	{Proxy, atMost, whole, []Signal{QueueMean, PrefillMean, TTFTMean, EngineServed, ForeignShare}, outsideMost, "as of the network"},
	{Proxy, atMost, stalls, []Signal{GapMedian, PerArrival}, func(f Facts, x figure) float64 {
		if f.Get(PerArrival) > 1.1 {
			return unbounded
		}
		return f.Get(GapMedian) / x.value
	}, "tokens that come one by one are flushed more often than they are made"},

	// Others, and the machine.
	{Foreign, atMost, every, []Signal{ForeignShare}, boundWhere(foreignLeast, func(f Facts) bool { return f.Get(ForeignShare) < foreignLeast/4 }),
		"what the server counted, against what was sent and answered"},
	{Foreign, measured, every, []Signal{ForeignShare}, func(f Facts, _ figure) float64 {
		x := f.Get(ForeignShare)
		if x < foreignLeast {
			return 0
		}
		return x
	}, "as above; at a load in the steady state a share of the work is about that share of the time"},
	{Throttling, measured, every, []Signal{ClockShare}, func(f Facts, _ figure) float64 { return slowClockShare(f) },
		"DCGM_FI_DEV_SM_CLOCK: below nine tenths of the highest is throttled (NVIDIA DCGM)"},
	{Throttling, atMost, every, []Signal{ClockShare}, func(f Facts, x figure) float64 { return 1.5 * (1 - f.Get(ClockShare)) }, "as above"},
	{Throttling, atMost, every, []Signal{Throttled}, boundWhere(heldShare, func(f Facts) bool { return f.Get(Throttled) < heldShare }),
		"DCGM_FI_DEV_POWER_VIOLATION, DCGM_FI_DEV_THERMAL_VIOLATION: time in which clocks were held down"},
	{Freezes, measured, stalls, []Signal{FrozenInTail, StoppedInTail}, frozenShare,
		"times at which nothing came from any stream, by the clock (metrics/validity/standstill.go) or while no prompt was computed"},
	{Freezes, measured, first, []Signal{FrozenInTail, StoppedInTail}, frozenShare, "as of stalls"},
	{Freezes, atMost, []metric.Name{metric.TTFT, metric.Stall}, []Signal{SilentInTail}, shareOfSymptom(SilentInTail), "while a server stands still no stream has a token"},

	// The server's front.
	{Frontend, atMost, every, []Signal{PerArrival, Evenness, GapMedian, TPOTMean}, func(f Facts, _ figure) float64 {
		if isBuffered(f) {
			return 2 * Least // no more is claimed, and nothing is ruled out
		}
		return unbounded
	}, "a twin has no proxy, and takes its time for the API server's"},
	{Frontend, atMost, whole, []Signal{FrontWork, FrontBusy}, func(f Facts, x figure) float64 { return frontMost(f) * x.tail / x.value },
		"the processor time of what listens (proc(5), process_cpu_seconds_total): one thread of Python serves"},
	{Frontend, estimate, first, []Signal{QueueMean, PrefillMean, TTFTMean}, func(f Facts, _ figure) float64 {
		if f.hasAll(FrontWork, FrontBusy) {
			return min(inFront(f), frontMost(f)/max(f.Get(TTFTMean), 1e-9))
		}
		return inFront(f)
	}, "client's TTFT less queue and prefill (vLLM issues 580, 8033, 12287)"},
	{Frontend, atMost, first, []Signal{QueueMean, PrefillMean, TTFTMean, EngineServed, ForeignShare}, func(f Facts, x figure) float64 {
		return 2 * outsideMost(f, x) // users who wait for answers come in other groups without it
	}, "as above"},
	{Frontend, second, first, []Signal{QueueMean, PrefillMean, TTFTMean}, func(f Facts, _ figure) float64 {
		return max(f.Get(QueueMean), f.Get(PrefillMean)) - inFront(f)*f.Get(TTFTMean)
	}, "as above: what is relieved first is the largest part"},
	{Frontend, estimate, first, []Signal{InFlight, Running, Waiting, Samples, TTFTMean, AnswerMean, Evenness}, func(f Facts, _ figure) float64 {
		out := f.Get(InFlight) - f.Get(Running) - f.Get(Waiting)
		if !isWellSampled(f) || isBuffered(f) || out < sampled*math.Sqrt(f.Get(InFlight)/f.Get(Samples)) {
			return 0
		}
		outside := out / max(f.Get(InFlight), 1e-9) * (f.Get(TTFTMean) + f.Get(AnswerMean))
		return min(max(outside-f.Get(RoundTrip), 0)/max(f.Get(TTFTMean), 1e-9), 1)
	}, "Little's law: requests in flight at the client, less num_requests_running and num_requests_waiting"},
	{Frontend, estimate, tokens, []Signal{AnswerMean, AnswerError, DecodeMean}, func(f Facts, _ figure) float64 {
		if f.Get(ForeignShare) > foreignLeast || f.Get(AnswerMean)-f.Get(DecodeMean) < cohorts*f.Get(AnswerError) { // of others' answers too
			return 0
		}
		return behindDecode(f)
	}, "the engine stamps its tokens itself, before the API server has them (vllm/v1/engine: EngineCoreOutput, FinishedRequestStats.decode_time)"},
	{Frontend, atMost, tokens, []Signal{DecodeMean, AnswerMean, EngineServed, ForeignShare}, behindDecodeMost, "as above"},
	{Frontend, second, tokens, []Signal{DecodeMean, AnswerMean}, func(f Facts, _ figure) float64 { return 0.5 - behindDecode(f) }, "as above: the largest part first"},
	{Steps, estimate, tokens, []Signal{DecodeMean, AnswerMean}, func(f Facts, _ figure) float64 {
		return max(1-max(behindDecode(f), 0), 0) / 4 // a third faster
	}, "as above"},

	// Its limits.
	{Seats, atMost, every, []Signal{RunningMost, MaxSeats, Samples}, boundWhere(0, func(f Facts) bool { return isWellSampled(f) && f.Get(RunningMost) < 0.85*f.Get(MaxSeats) }),
		"num_requests_running against max_num_seqs (vllm/v1/core/sched/scheduler.py)"},
	{Seats, atMost, first, []Signal{QueueMean, EngineServed, ForeignShare}, func(f Facts, x figure) float64 {
		if !ownTimes(f) {
			return unbounded
		}
		return f.Get(QueueMean) * x.tail / x.value
	}, "request_queue_time_seconds: who waits for a place waits there"},
	{Seats, estimate, first, []Signal{QueueMean, TTFTMean, WaitingOften, Running, RunningMost, KVMost}, func(f Facts, _ figure) float64 {
		if !seatsFull(f) || f.Get(KVMost) > 0.9 || f.Get(Preempted) > 0 {
			return 0
		}
		return 0.7 * queuedShare(f)
	}, "a queue while as many run as ever and the KV cache has room: p99 TTFT rises where p50 stays"},
	{KVCache, atMost, every, []Signal{KVMost, Preempted, Samples, PlannedHits}, boundWhere(0, func(f Facts) bool {
		return isWellSampled(f) && f.Get(KVMost) < 0.85 && f.Get(Preempted) == 0 && lostCacheShare(f) < 0.02
	}), "kv_cache_usage_perc, num_preemptions (vLLM, Optimization and Tuning)"},
	{KVCache, estimate, first, []Signal{QueueMean, TTFTMean, WaitingOften, KVUse, KVMost, Preempted}, func(f Facts, _ figure) float64 {
		if f.Get(Preempted) == 0 && (f.Get(KVUse) < 0.85 || f.Get(WaitingOften) < 0.3) {
			return 0
		}
		return 0.7 * queuedShare(f)
	}, "KV cache use at 0.95 and more with a queue, or preemptions (vLLM, Optimization and Tuning)"},
	{KVCache, estimate, later, []Signal{Preempted}, func(f Facts, _ figure) float64 {
		if f.Get(Preempted) < 0.1 {
			return 0
		}
		return 0.3
	}, "a preempted request is computed again from its start (Scheduler._preempt_request)"},
	{Budget, atMost, every, []Signal{PromptMost, MaxTokens, RunningMost, QueueMean, TTFTMean}, boundWhere(0.02, func(f Facts) bool {
		return queuedShare(f) < 0.05 && f.Get(PromptMost)+f.Get(RunningMost) < f.Get(MaxTokens)/2
	}), "two of the longest prompts fit into one step, and none waits for it"},

	// Its work.
	{Compute, estimate, first, []Signal{PrefillMean, QueueMean, TTFTMean}, func(f Facts, _ figure) float64 {
		if queuedShare(f) > 0.2 {
			return 0
		}
		return 0.25 * f.Get(PrefillMean) / max(f.Get(TTFTMean), 1e-9)
	}, "prompts are bound by computing above some hundred tokens (docs/guides/find-capacity.md)"},
	{Compute, estimate, stalls, []Signal{AtFirsts, AtFirstsBy, Beside, BesideBy}, func(f Facts, _ figure) float64 {
		if !(f.Get(AtFirsts) > 0.8 && f.Get(AtFirsts)-f.Get(AtFirstsBy) > 0.35) && !(f.Get(Beside) > 0.7 && f.Get(Beside)-f.Get(BesideBy) > 0.35) {
			return 0
		}
		return 0.15
	}, "a prompt in a step makes it longer for all that decode (9 to 50 ms: chunked prefill)"},
	{Bandwidth, atMost, every, []Signal{MemoryBusy, WaitingOften}, func(f Facts, _ figure) float64 {
		if !isCalm(f) {
			return unbounded
		}
		return f.Get(MemoryBusy) / 4 // a third faster
	}, "DCGM_FI_PROF_DRAM_ACTIVE: slow tokens alone are no sign of the memory's limit"},
	{Compute, atMost, every, []Signal{TensorBusy, MemoryBusy, WaitingOften}, boundWhere(0.02, func(f Facts) bool { return isCalm(f) && f.Get(TensorBusy) < 0.05 && f.Get(MemoryBusy) > 0.5 }),
		"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"},
	{PrefixCache, estimate, first, []Signal{PlannedHits, HitShare, PrefillMean, QueueMean, TTFTMean}, func(f Facts, _ figure) float64 {
		work := f.Get(PrefillMean)
		if f.Get(WaitingOften) < 0.5 || f.Get(KVMost) < 0.9 { // else what waits may wait for memory
			work += f.Get(QueueMean)
		}
		return lostCacheShare(f) * min(work/max(f.Get(TTFTMean), 1e-9), 1)
	}, "what the prompts have in common, against prefix_cache_hits ÷ prefix_cache_queries; a token that is found is not computed"},
	{PrefixCache, atMost, every, []Signal{PlannedHits}, func(f Facts, _ figure) float64 { return 2 * lostCacheShare(f) }, "as above"},
}

// cohorts is the number of standard errors that means of answers must be apart. The client's mean
// is of the requests that began in the window, the server's of those that ended in it.
const cohorts = 3

// sampled is the number of standard errors by which the engine must have fewer requests than are in
// flight. The mean of the requests in the engine is of samples. In each sample they vary as a
// Poisson count does.
const sampled = 3

// isBuffered says that something between holds tokens back and lets them go by the clock:
// gaps are even and about as long as the tokens that come with them take. A server that
// now and then hands on several tokens at once has gaps of a token.
func isBuffered(f Facts) bool {
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

// muchSlower is the factor by which steps must be slower than those of a similar server. Only then
// is it sure that others hold them up.
const muchSlower = 1.5

// doubtText says why none of the candidates is claimed, "" where the first is.
func doubtText(c *Case, open []candidate) string {
	switch {
	case c.Facts.hasAll(Unanswered) && c.Facts.Get(Unanswered) > 0.2:
		return "many requests were not answered"
	case sentAgain(c):
		return "failed requests that were sent again are in it, with their wait between attempts"
	case len(open) == 0 && c.Twin == nil:
		return "no fact that is known points to a cause"
	case len(open) == 0:
		return "nothing that could be relieved would make it better by a twentieth"
	case open[0].measured:
		return ""
	case c.Symptom.Metric == metric.Stall && c.Facts.hasAll(PerArrival, Evenness, GapMedian, TPOTMean) && isBuffered(c.Facts):
		return "something between holds tokens back, and hides stalls of the server"
	case c.Twin != nil && c.Twin.Off > farOff:
		return "no twin of " + c.Twin.Name + " comes near what was measured"
	case c.Twin != nil && c.Twin.Slower > heldDown && !(c.Facts.hasAll(ForeignShare) && (c.Facts.hasAll(ClockShare) || c.Facts.hasAll(Throttled))):
		return "its steps take far longer than those of any server like it: its clock may be held down, or others use it"
	case c.Twin != nil && open[0].among < agree:
		return "twins that all agree with the measurement name different causes" + namedCauses(open)
	}
	return ""
}

// sentAgain says that a symptom that counts from when requests were due is of those that
// failed at first: half as many as its tail has are enough.
func sentAgain(c *Case) bool {
	tail := map[string]float64{"p50": .5, "p90": .1, "p95": .05, "p99": .01, "mean": .02}[c.Symptom.Of]
	return slices.Contains(whole, c.Symptom.Metric) && c.Facts.hasAll(SentAgain) && c.Facts.Get(SentAgain) >= tail/2
}

// namedCauses are the causes that twins name.
func namedCauses(open []candidate) (text string) {
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

// confidenceInFirst is that of the first candidate. The limits were chosen on the design half of
// `go run ./bench/why`.
func confidenceInFirst(c *Case, open []candidate) Confidence {
	x := &open[0]
	second, alone := 0.0, true
	for i := range open[1:] {
		second = math.Max(second, open[1+i].gain)
		alone = alone && x.isSeparate(&open[1+i], surelyApart)
	}
	if x.cause != Throttling && isClockHeld(c.Facts) { // a slower GPU looks like each cause of its own work
		alone = false
	}
	stall := c.Symptom.Metric == metric.Stall // one stall hangs on the step it falls into
	switch {
	case x.cause == Foreign && (stall || c.Twin != nil && c.Twin.Slower < muchSlower):
		return Likely // a share of the work is no share of the time: batches have room
	case x.cause == Freezes && c.Twin == nil || x.cause == Proxy && !isBuffered(c.Facts):
		return Likely // users who wait for each other, or others' prompts, make silences too
	case x.measured && x.gain > 0.3 && x.gain > 2*second && (x.cause == Throttling || !isClockHeld(c.Facts)):
		return Sure
	case c.Twin != nil && !stall && !x.measured && x.among >= 0.99 && c.Twin.Off < 0.12 && x.gain > 0.1 && x.gain > 1.1*second && alone && c.Facts.hasAll(Running):
		return Sure
	case x.measured && x.gain > second, c.Twin != nil && x.among >= 0.75:
		return Likely
	}
	return Possible
}
