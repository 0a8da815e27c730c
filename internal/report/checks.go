package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/report/reasons"
	"pitot/internal/say"
	"pitot/internal/stat"
)

// The value, limit and advice of each check in words; its numbers are in run.json.

// CheckModel is a check in words.
type CheckModel struct {
	Name   string
	Status result.Status
	Value  string
	Limit  string
	Advice string // what to do when it did not pass
}

// sayings are the words of a check. Without a function a share is written with
// its counts and a count with its unit.
type sayings struct {
	value  func(c *result.Check) string
	limit  func(c *result.Check) string
	advice string
	or     map[string]string // advice in a case
	// inSearch is the advice for a load that a search decided on, where the other is about a
	// setting that a search has not.
	inSearch string
}

// BuildCheckOf puts a check of a point of a run into words, BuildCheck one that stands alone.
func BuildCheckOf(run *result.Run, p *result.Point, c *result.Check) CheckModel {
	m := BuildCheck(c)
	if m.Advice != "" && p.Requests.Due > 0 && p.Requests.OK == 0 {
		switch stopped := 2*p.Requests.Errors[record.ErrInterrupted] > p.Requests.Due; {
		case stopped && (c.Name == result.CheckErrors || c.Name == result.CheckSamples):
			m.Advice = "The run was stopped before they were answered: let it go on."
			return m
		}
		switch c.Name {
		case result.CheckErrors:
			m.Advice = "Nothing was served: look at the errors, they say why."
		case result.CheckSamples:
			m.Advice = "Nothing was served: a longer run tells no more."
		case result.CheckAchieved, result.CheckStability, result.CheckWindow, result.CheckWarmup, result.CheckResidences, result.CheckOffered:
			m.Advice = "Nothing was served: the errors say why, not the load."
		}
	}
	if c.Name == result.CheckOutputs && m.Advice != "" {
		m.Advice = outputsAdvice(run)
	}
	if c.Case == result.CaseEmpty && p.Load.Concurrency == nil { // of a rate the run ended before its window
		m.Advice = ""
	}
	if notKeptUp(p) {
		switch c.Name {
		case result.CheckWindow, result.CheckWarmup, result.CheckResidences: // of a queue that grows a longer look sees more of the same
			m.Advice = ""
		}
	}
	if words := checkWords()[c.Name]; ofSearch(p) && words.inSearch != "" && m.Advice != "" && (words.inSearch == longerWindows || words.or[c.Case] == "") {
		m.Advice = words.inSearch
	}
	blameRateLimits(p, &m)
	return m
}

// outputsAdvice is what to do about responses of another length than requested, by whether
// the server was told to ignore the end of sequence.
func outputsAdvice(run *result.Run) string {
	var w struct {
		Sampling struct {
			IgnoreEOS bool `json:"ignore_eos"`
		}
	}
	_ = json.Unmarshal(run.Workload, &w) // what is not there was not sent
	switch {
	case slices.ContainsFunc(run.Target.Adaptations, func(a result.Adaptation) bool { return a.Kind == result.NoIgnoreEOS }):
		return "The server refused ignore_eos, so responses end where the model ends them: compare tokens, not requests."
	case run.Target.Kind == "http" && !w.Sampling.IgnoreEOS:
		return "Responses end where the model ends them, as ignore_eos was not sent: compare tokens, not requests; --body '{\"ignore_eos\":true}' sends it to a server that takes it."
	}
	return checkWords()[result.CheckOutputs].advice
}

// longerWindows is what takes the place of an advice to measure longer in a search, which has no
// setting of how long.
const longerWindows = "The search decides how long a window is: with more --budget they are longer."

// decidedBeyond is what takes the place of an advice to ask for less in a search, which has no rate to set.
const decidedBeyond = "The search decides on the loads: this one is more than the server keeps up with."

// ofSearch says that a search decided on the load of a point.
func ofSearch(p *result.Point) bool {
	return !slices.Contains([]string{"", result.StageCurve, result.StageCold, result.StageWarm}, p.Stage)
}

// notKeptUp says that fewer requests ended than came due, beyond chance: the server does
// less than the load asks for.
func notKeptUp(p *result.Point) bool {
	return slices.ContainsFunc(p.Checks, func(c result.Check) bool {
		return c.Name == result.CheckAchieved && c.Status == result.Flag && c.Case == ""
	})
}

// BuildCheck puts a check into words.
func BuildCheck(c *result.Check) CheckModel {
	m := CheckModel{Name: say.Plain(c.Name), Status: c.Status}
	words := checkWords()[c.Name]
	value, limit := words.value, words.limit
	if value == nil {
		value = valueOf
	}
	if limit == nil {
		limit = limitOf
	}
	if m.Value = value(c); c.Worker != nil {
		m.Value += fmt.Sprintf(" on worker %d, the worst", *c.Worker)
	}
	m.Value, m.Limit, m.Advice = say.Plain(m.Value), say.Plain(limit(c)), say.Plain(cmp.Or(words.or[c.Case], words.advice))
	if c.Name == result.CheckTokenizer && c.Detail["prompts"] > 0 {
		m.Advice = "The prompts are not those of the file's text for this model, for --prompt-ids makes them by --tokenizer: give the model's own tokenizer."
	}
	if c.Name == result.CheckResidences {
		m.Advice = "Measure longer: " + reasons.LongerFlag(result.Longer{Seconds: c.Detail["ask_seconds"], Requests: c.Detail["ask_requests"]}) + "."
	}
	return m
}

// valueOf writes a check's value: 1.2 % (4 of 342), 3 steps.
func valueOf(c *result.Check) string {
	switch {
	case c.Value == nil:
		return notKnown
	case c.Unit != string(metric.Share):
		return fmt.Sprintf("%s %s", say.Significant(*c.Value, 4), c.Unit)
	}
	text := say.Significant(100**c.Value, 3) + " %"
	if of, counted := c.Detail["of"]; counted {
		text += fmt.Sprintf(" (%.0f of %.0f)", c.Detail["n"], of)
	}
	return text
}

// limitOf writes its limit: ≤ 1 %, none.
func limitOf(c *result.Check) string {
	switch {
	case c.Limit == nil:
		return "none"
	case c.Unit == string(metric.Share):
		return fmt.Sprintf("≤ %g %%", 100**c.Limit)
	case *c.Limit == 0:
		return "none"
	}
	return fmt.Sprintf("≤ %g %s", *c.Limit, c.Unit)
}

// number is a value that may not be known.
func number(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// signed is a number with its sign, also in front of what is added.
func signed(x float64) string {
	if x < 0 {
		return say.Significant(x, 4)
	}
	return "+" + say.Significant(x, 4)
}

func checkWords() map[string]sayings {
	always := func(text string) func(*result.Check) string {
		return func(*result.Check) string { return text }
	}
	// with is a limit on a share and what it is a share of.
	with := func(what string) func(*result.Check) string {
		return func(c *result.Check) string { return limitOf(c) + " " + what }
	}
	const bug = "Report this as a bug of Pitot."
	const longer = "Measure longer with --duration."
	const gone = "The server went away."
	const worker = "See workers: what a lost worker was to send, or had sent, is missing here."
	host := map[string]string{result.CaseHost: "The client's machine was busy with something else: this client had to wait, see host."}
	return map[string]sayings{
		result.CheckAccounting: {
			value: func(c *result.Check) string {
				d := c.Detail
				text := fmt.Sprintf("%.0f = %.0f + %.0f + %.0f + %.0f", d["due"], d["ok"], d["failed"], d["cut"], d["unsent"])
				if n, ok := d["lost_with_worker"]; ok {
					text += fmt.Sprintf(", %.0f lost with their worker", n)
				}
				if n, ok := d["planned"]; ok {
					text += fmt.Sprintf(", %.0f planned", n)
				}
				if n, ok := d["twice"]; ok {
					text += fmt.Sprintf(", %.0f recorded twice", n)
				}
				return text
			},
			limit: always("due = ok + failed + cut + unsent"), advice: bug,
		},
		result.CheckRecording: {
			value: func(c *result.Check) string {
				if c.Status == result.Pass {
					return "no record lost"
				}
				return "records lost"
			},
			limit: always("none lost"), advice: "Free disk space and measure again.",
		},
		result.CheckDamage:    {value: damagedRecords, limit: always("none lost"), advice: "Measure this load again: its journal was damaged on the disk."},
		result.CheckOwnErrors: {value: counted, advice: bug},
		result.CheckClientLimits: {value: counted, advice: "Use a larger client, or several.", or: map[string]string{
			record.ErrOwnMemory: "Ask for shorter answers, or use a client with more memory.",
			record.ErrOwnPorts:  "Use more clients, or a server that keeps connections alive.",
			record.ErrOwnFiles:  "Raise the limit of open files (ulimit -n), or lower the load of this client.",
		}},
		result.CheckWorkers: {value: lostWorkers, limit: always("none lost"), advice: "What it was to send nobody sent in its place: measure again, and see what it says."},
		result.CheckSendLag: {value: sendLag, limit: func(c *result.Check) string {
			if c.Status == result.Fail {
				return "invalid from a shift of 10 % and 2 ms on"
			}
			return "shifts p50 and p99 by ≤ 1 ms or 2 %"
		}, advice: "Lower the load of this client, or use more clients.", or: host},
		result.CheckClientCPU: {
			value:  func(c *result.Check) string { return fmt.Sprintf("%.0f %% of the cores", 100*number(c.Value)) },
			advice: "Use a larger client, or several.",
		},
		result.CheckHost: {value: busyHost, limit: func(c *result.Check) string {
			return fmt.Sprintf("≤ %.0f %%, or tasks wait for a core ≤ %.0[1]f %% of the time", 100*number(c.Limit))
		}, advice: "Measure from a machine that does nothing else and does not serve the model.",
			or: map[string]string{result.CaseThrottled: "Raise the container's limit on processors, or take it away."}},
		result.CheckPauses: {
			value: func(c *result.Check) string {
				return "at most " + say.Significant(number(c.Value), 2) + " ms in a second"
			},
			advice: "Give the client more memory, or measure with fewer requests at once.", or: host,
		},
		result.CheckClockSteps: {value: counted, advice: "Stop the clock's stepping (chrony, ntpd) while measuring."},
		result.CheckStamps: {
			value: func(c *result.Check) string {
				if c.Case == "kernel" && c.Status != result.Pass {
					return fmt.Sprintf("kernel, but %.0f of %.0f reads had none", c.Detail["n"], c.Detail["of"])
				}
				return c.Case
			},
			limit: func(c *result.Check) string {
				if c.Case == "virtual" {
					return "virtual"
				}
				return "kernel"
			},
			advice: "Measure from Linux, or keep the client idle.",
		},
		result.CheckMerged: {advice: "Quote the bounds, or give the client more cores; a server or gateway that sends in bursts looks the same.", or: host},
		result.CheckArrivals: {
			value: func(c *result.Check) string {
				text := "distance of sent from due " + say.Significant(100*number(c.Value), 2) + " %"
				if a2, ok := c.Detail["a2"]; ok {
					text += ", A² of the gaps " + say.Significant(a2, 2)
				}
				return text
			},
			limit: always("< 2 %"), advice: "Lower the load of this client, or raise --max-in-flight.", or: host,
		},
		result.CheckConnects:    {limit: with("waited for a connection"), advice: "Raise the keep-alive timeout of the server, or of the proxy before it."},
		result.CheckRateLimits:  {limit: with("held back"), advice: "The server's limits shaped this load: its arrivals are not those that were planned. Ask for less than they allow."},
		result.CheckMaxInFlight: {limit: with("held back"), advice: "Raise --max-in-flight, or read the latencies as those of a queue before the server."},
		result.CheckOffered: {
			value: func(c *result.Check) string {
				return say.Significant(number(c.Value), 4) + " of " + say.Significant(number(c.Limit), 4) + " requests a second came due"
			},
			limit: always("within 5 %, or chance"), advice: "Measure longer: this window is of another load.",
			or: map[string]string{result.CaseWorkers: worker},
		},
		result.CheckAchieved: {
			value: func(c *result.Check) string {
				text := say.Significant(number(c.Value), 4) + " of " + say.Significant(number(c.Limit), 4) + " requests a second ended"
				if c.Case == result.CaseChance {
					text += ": a difference within chance"
				}
				return text
			},
			limit: always("within 2 %, or chance"), advice: "Lower the rate: the server does not keep up with it.", inSearch: decidedBeyond,
			or: map[string]string{
				result.CaseBacklog: "Measure longer: requests that had queued before the window ended in it too, so its throughput is not this load's.",
				result.CaseCut:     "Raise --timeout, or lower the rate: the requests that are missing were cut off before their end.",
				result.CaseGone:    gone,
				result.CaseWorkers: worker,
			},
		},
		result.CheckStability: {
			value: func(c *result.Check) string {
				if c.Value == nil {
					return "the users bound what is in flight"
				}
				text := say.Significant(100**c.Value, 2) + " % of the arrivals left over"
				if c.Case == result.CaseChance {
					text += ": within chance"
				}
				return text
			},
			limit:  always(fmt.Sprintf("≤ %g %%, or chance", 100*stat.MaxDeficit)),
			advice: "Lower the rate: latencies under this one depend on how long it is kept up.", inSearch: decidedBeyond,
		},
		result.CheckLockStep: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("requests in an eighth of a cycle vary by %.0f %%", 100*number(c.Value))
			},
			limit:  func(c *result.Check) string { return fmt.Sprintf("≤ %.0f %%", 100*number(c.Limit)) },
			advice: "Users ask together and wait for each other: let answers differ in length, as --output 'uniform(96,160)', leave --warmup to itself, or ask at a --rate.",
		},
		result.CheckLittle: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("%s in flight, %s by rate × E2E and %s at the edges", say.Significant(number(c.Value), 4), say.Significant(c.Detail["by_rate"], 4), signed(c.Detail["edges"]))
			},
			limit:  always("within 2 % or 1 ms a request"),
			advice: "Connections are held longer than answers take: look for what the server sends after the last token.",
		},
		result.CheckWarmup: {value: warmedUp, limit: always("steady before the window begins"), advice: "Measure longer with --duration, or look at what the server does meanwhile.", inSearch: longerWindows},
		result.CheckWindow: {
			value: func(c *result.Check) string {
				return say.Significant(number(c.Value), 3) + " s, slowest request " + say.Significant(c.Detail["slowest"], 3) + " s"
			},
			limit: always("≥ 2 × the slowest request"), advice: longer, inSearch: longerWindows,
			or: map[string]string{result.CaseEmpty: "Ask for more --requests than --concurrency, or leave the warm-up on."},
		},
		result.CheckResidences: {
			value: func(c *result.Check) string {
				return say.Significant(number(c.Value), 3) + " in the window, one takes " + say.Significant(c.Detail["one"], 3) + " s"
			},
			limit:    func(c *result.Check) string { return fmt.Sprintf("≥ %g", number(c.Limit)) },
			inSearch: longerWindows,
		},
		result.CheckSamples: {
			value:  func(c *result.Check) string { return fmt.Sprintf("%.0f for p99 %s", number(c.Value), c.Case) },
			limit:  func(c *result.Check) string { return fmt.Sprintf("≥ %g", number(c.Limit)) },
			advice: "Measure longer, or quote a lower percentile.",
		},
		result.CheckErrors:      {advice: "Read the latencies as those of the requests that were served."},
		result.CheckResets:      {advice: "Look for a proxy or a server that closes connections.", or: map[string]string{result.CaseGone: gone}},
		result.CheckRetransmits: {advice: "Look at the network between client and target."},
		result.CheckRetries:     {advice: "Raise the server's keep-alive timeout."},
		result.CheckRestarts: {
			value: func(c *result.Check) string {
				switch c.Case {
				case result.CaseProcess:
					return "its process was restarted"
				case result.CaseConnections:
					return fmt.Sprintf("all %.0f connections in use broke at once, %s s into the window", number(c.Value), say.Significant(c.Detail["at"], 3))
				}
				return "none seen"
			},
			advice: "Look at the server's log, and measure again: these are the numbers of two servers, the second of which began cold.",
		},
		result.CheckGone: {
			value:  func(c *result.Check) string { return say.Significant(number(c.Value), 3) + " s after the load began" },
			advice: "Look at the server's log, restart it and measure again: nothing was served from then on.",
		},
		result.CheckServed: {
			value: func(c *result.Check) string {
				counted, sent, answered := c.Detail["counted"], c.Detail["sent"], c.Detail["answered"]
				switch c.Case {
				case result.CaseForeign:
					return fmt.Sprintf("other traffic on the server: it counted %.0f requests, %.0f were sent to it", counted, sent)
				case result.CaseFewer:
					return fmt.Sprintf("the server counted %.0f requests, and answered %.0f", counted, answered)
				}
				return fmt.Sprintf("the server counted %.0f, %.0f were sent and %.0f answered", counted, sent, answered)
			},
			limit: always("as many as were sent, within 1 %"), advice: "Measure while no one else uses the server: these are the numbers of this load and of another.",
			or: map[string]string{result.CaseWorkers: worker, result.CaseFewer: "Find out whether several servers answer behind this address: its metrics are those of one."},
		},
		result.CheckServedTokens: {
			value: func(c *result.Check) string {
				return say.Percent(number(c.Value)) + " of the tokens that the server counted were not this run's"
			},
			limit: always("1 %"), advice: "Measure while no one else uses the server: these are the numbers of this load and of another.",
			or: map[string]string{result.CaseWorkers: worker},
		},
		result.CheckPrompts: {advice: "Choose the tokenizer of the model, or calibrate the prompt lengths."},
		result.CheckTokenizer: {
			value: func(c *result.Check) string {
				ours, theirs := c.Detail["ours"], c.Detail["theirs"]
				switch {
				case c.Case == result.CaseBeyond:
					return fmt.Sprintf("the server has a token %.0f, and the file ends at %.0f", c.Detail["highest"], c.Detail["size"]-1)
				case number(c.Value) == 0:
					return fmt.Sprintf("%.0f tokens of a text, as the server has", ours)
				case c.Case == result.CaseIDs:
					return fmt.Sprintf("of %.0f tokens that it makes of a text the server has %.0f others", ours, number(c.Value))
				}
				return fmt.Sprintf("it makes %.0f tokens of a text of which the server counts %.0f", ours, theirs)
			},
			limit:  always("the server's own"),
			advice: "The file of --tokenizer is of another model, or damaged: fetch the served model's. As one counter for several providers it may stay: common tok/s is then what to compare.",
		},
		result.CheckOutputs: {
			value: func(c *result.Check) string {
				text := valueOf(c)
				if served, known := c.Detail["served"]; known && c.Status != result.Pass {
					text += fmt.Sprintf(" have another length: %s tokens on average, %s were requested", say.Significant(served, 3), say.Significant(c.Detail["requested"], 3))
				}
				return text
			},
			advice: "Make the server ignore the end of sequence, or compare tokens, not requests.",
		},
		result.CheckFinish: {
			value:  func(c *result.Check) string { return fmt.Sprintf("%s, as %q", valueOf(c), c.Case) },
			advice: "Find out what the server means by it: such responses count as answered.",
		},
		result.CheckTextless: {advice: "They have no TTFT: find out why the model ends at once, or hides what it generates."},
		result.CheckUsage:    {advice: "Find out what the server counts: these counts are impossible and are left out."},
		result.CheckTokenCounts: {advice: "Find out whether usage or the chunks count wrongly.",
			or: map[string]string{result.CaseTokenizer: "The file of --tokenizer counts otherwise than the server, so it is of another model: fetch the served model's. As one counter for several providers it may stay, but not where --prompt-ids makes prompts by it: common tok/s is then what to compare."}},
		result.CheckEvents: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("%s: %s events with text on average, %s tokens counted", valueOf(c), say.Significant(c.Detail["events"], 3), say.Significant(c.Detail["tokens"], 3))
			},
			advice: "See with curl -N whether text comes twice, as from a gateway that tries again, or in pieces of tokens: TPOT rests on the tokens counted.",
		},
		result.CheckTokenGaps: {advice: "Read ICL and stall: ITL leaves out the streams whose tokens per chunk are not known."},
		result.CheckHidden:    {advice: "Read TTFT as the time to the first visible token."},
		result.CheckPrefixCache: {
			value: func(c *result.Check) string {
				if c.Value == nil {
					return "not known: the server does not report cached tokens, and a run with the same seed asks the same prompts"
				}
				return valueOf(c)
			},
			advice: "Change the seed, or flush the server's cache.",
			or:     map[string]string{result.CaseUnknown: "A new run without --seed asks fresh prompts; one of the same seed needs the server's cache flushed before."},
		},
		result.CheckRepeated: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("%s for %s", say.Plural(int(number(c.Limit)), "prompt"), say.Plural(int(number(c.Value)), "request"))
			},
			limit: always("none twice"), advice: "A prefix cache may have answered: give more prompts, or fewer requests.",
		},
		result.CheckMix: {
			value: func(c *result.Check) string {
				if c.Value == nil {
					return "one kind of request"
				}
				return "medians of the classes differ by a factor of " + say.Significant(*c.Value, 3)
			},
			limit: func(c *result.Check) string { return fmt.Sprintf("medians within a factor of %g", number(c.Limit)) }, advice: "Read the classes, not the total.",
		},
	}
}

// counted writes a whole number of things.
func counted(c *result.Check) string { return fmt.Sprintf("%.0f %s", number(c.Value), c.Unit) }

// busyHost says what else the client's machine did.
func busyHost(c *result.Check) string {
	text := fmt.Sprintf("other processes held %.0f %% of the cores", 100*number(c.Value))
	if waited, known := c.Detail["waited"]; known {
		text += fmt.Sprintf(", some task waited for a core %.0f %% of the time", 100*waited)
	}
	const shown = .005
	if x := c.Detail["stolen"]; x >= shown {
		text += fmt.Sprintf(", the hypervisor took %.1f %%", 100*x)
	}
	if x := c.Detail["throttled"]; x >= shown {
		text += fmt.Sprintf(", the container's limit held this client back %.1f %%", 100*x)
	}
	return text
}

// sendLag says how large the lag was, and by how much it shifts what can be
// judged.
func sendLag(c *result.Check) string {
	d := c.Detail
	if d == nil {
		return "nothing sent"
	}
	var judged, open []string
	for _, p := range usual() {
		if _, ok := d["shift_"+p]; ok {
			judged = append(judged, p)
		} else {
			open = append(open, p)
		}
	}
	text := "p99 " + say.Significant(d["lag_p99"], 3) + " ms"
	switch {
	case len(open) == 0:
		text += ", shift " + say.Significant(number(c.Value), 3) + " ms"
	case len(judged) > 0:
		text += fmt.Sprintf(", shift of %s %s ms", strings.Join(judged, " and "), say.Significant(number(c.Value), 3))
	}
	if len(open) > 0 {
		text += fmt.Sprintf("; that of %s cannot be judged, it falls among requests that were not followed to their end: at most %s ms",
			strings.Join(open, " and "), say.Significant(d["lag_max"], 3))
	}
	return text
}

// warmedUp says when the load had settled and when the window began.
func warmedUp(c *result.Check) string {
	seconds := func(s float64) string { return say.Significant(s, 3) + " s" }
	begin, planned := number(c.Limit), c.Detail["planned"]
	switch {
	case c.Case == result.CaseDrift:
		return fmt.Sprintf("not settled: %s in flight in the first half of the window, %s in the second", say.Significant(c.Detail["first_half"], 3), say.Significant(c.Detail["second_half"], 3))
	case c.Value == nil:
		return "not settled: the load settled too late, or not at all"
	}
	text := "settled after " + seconds(*c.Value)
	switch {
	case begin > planned:
		return text + fmt.Sprintf(", the window begins at %s instead of %s", seconds(begin), seconds(planned))
	case begin < *c.Value:
		return text + ", but the window begins at " + seconds(begin)
	}
	return text + ", the window begins at " + seconds(begin)
}

// lostWorkers counts those that were lost.
func lostWorkers(c *result.Check) string {
	if c.Status == result.Pass {
		return "none lost"
	}
	return fmt.Sprintf("%.0f of %.0f lost", number(c.Value), c.Detail["of"])
}
