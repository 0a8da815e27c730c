package report

import (
	"fmt"
	"strings"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
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
	value func(c *result.Check) string
	limit func(c *result.Check) string
}

// BuildCheck puts a check into words.
func BuildCheck(c *result.Check) CheckModel {
	m := CheckModel{Name: c.Name, Status: c.Status}
	words := checkWords()[c.Name]
	value, limit := words.value, words.limit
	if value == nil {
		value = valueOf
	}
	if limit == nil {
		limit = limitOf
	}
	m.Value, m.Limit = value(c), limit(c)
	if c.Worker != nil {
		m.Value += fmt.Sprintf(" on worker %d, the worst", *c.Worker)
	}
	var advice []string
	for _, r := range c.Advice {
		advice = append(advice, ReasonText(r))
	}
	m.Advice = strings.Join(advice, " ")
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

// valueOrZero is a value that may not be known.
func valueOrZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// signedText is a number with its sign, also in front of what is added.
func signedText(x float64) string {
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
			limit: always("due = ok + failed + cut + unsent"),
		},
		result.CheckRecording: {
			value: func(c *result.Check) string {
				if c.Status == result.Pass {
					return "no record lost"
				}
				return "records lost"
			},
			limit: always("none lost"),
		},
		result.CheckDamage:       {value: damagedRecords, limit: always("none lost")},
		result.CheckOwnErrors:    {value: countText},
		result.CheckClientLimits: {value: countText},
		result.CheckWorkers:      {value: lostWorkers, limit: always("none lost")},
		result.CheckSendLag: {value: sendLag, limit: func(c *result.Check) string {
			if c.Status == result.Fail {
				return "invalid from a shift of 10 % and 2 ms on"
			}
			return "shifts p50 and p99 by ≤ 1 ms or 2 %"
		}},
		result.CheckClientCPU: {
			value: func(c *result.Check) string { return fmt.Sprintf("%.0f %% of the cores", 100*valueOrZero(c.Value)) },
		},
		result.CheckHost: {value: busyHost, limit: func(c *result.Check) string {
			return fmt.Sprintf("≤ %.0f %%, or tasks wait for a core ≤ %.0[1]f %% of the time", 100*valueOrZero(c.Limit))
		}},
		result.CheckPauses: {
			value: func(c *result.Check) string {
				return "at most " + say.Significant(valueOrZero(c.Value), 2) + " ms in a second"
			},
		},
		result.CheckClockSteps: {value: countText},
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
		},
		result.CheckMerged: {},
		result.CheckArrivals: {
			value: func(c *result.Check) string {
				text := "distance of sent from due " + say.Significant(100*valueOrZero(c.Value), 2) + " %"
				if a2, ok := c.Detail["a2"]; ok {
					text += ", A² of the gaps " + say.Significant(a2, 2)
				}
				return text
			},
			limit: always("< 2 %"),
		},
		result.CheckConnects:    {limit: with("waited for a connection")},
		result.CheckRateLimits:  {limit: with("held back")},
		result.CheckMaxInFlight: {limit: with("held back")},
		result.CheckOffered: {
			value: func(c *result.Check) string {
				return say.Significant(valueOrZero(c.Value), 4) + " of " + say.Significant(valueOrZero(c.Limit), 4) + " requests a second came due"
			},
			limit: always("within 5 %, or chance"),
		},
		result.CheckAchieved: {
			value: func(c *result.Check) string {
				text := say.Significant(valueOrZero(c.Value), 4) + " of " + say.Significant(valueOrZero(c.Limit), 4) + " requests a second ended"
				if c.Case == result.CaseChance {
					text += ": a difference within chance"
				}
				return text
			},
			limit: always("within 2 %, or chance"),
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
			limit: always(fmt.Sprintf("≤ %g %%, or chance", 100*stat.MaxDeficit)),
		},
		result.CheckLockStep: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("requests in an eighth of a cycle vary by %.0f %%", 100*valueOrZero(c.Value))
			},
			limit: func(c *result.Check) string { return fmt.Sprintf("≤ %.0f %%", 100*valueOrZero(c.Limit)) },
		},
		result.CheckLittle: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("%s in flight, %s by rate × E2E and %s at the edges", say.Significant(valueOrZero(c.Value), 4), say.Significant(c.Detail["by_rate"], 4), signedText(c.Detail["edges"]))
			},
			limit: always("within 2 % or 1 ms a request"),
		},
		result.CheckWarmup: {value: warmedUp, limit: always("steady before the window begins")},
		result.CheckWindow: {
			value: func(c *result.Check) string {
				return say.Significant(valueOrZero(c.Value), 3) + " s, slowest request " + say.Significant(c.Detail["slowest"], 3) + " s"
			},
			limit: always("≥ 2 × the slowest request"),
		},
		result.CheckResidences: {
			value: func(c *result.Check) string {
				return say.Significant(valueOrZero(c.Value), 3) + " in the window, one takes " + say.Significant(c.Detail["one"], 3) + " s"
			},
			limit: func(c *result.Check) string { return fmt.Sprintf("≥ %g", valueOrZero(c.Limit)) },
		},
		result.CheckSamples: {
			value: func(c *result.Check) string { return fmt.Sprintf("%.0f for p99 %s", valueOrZero(c.Value), c.Case) },
			limit: func(c *result.Check) string { return fmt.Sprintf("≥ %g", valueOrZero(c.Limit)) },
		},
		result.CheckErrors:      {},
		result.CheckResets:      {},
		result.CheckRetransmits: {},
		result.CheckRetries:     {},
		result.CheckRestarts: {
			value: func(c *result.Check) string {
				switch c.Case {
				case result.CaseProcess:
					return "its process was restarted"
				case result.CaseConnections:
					return fmt.Sprintf("all %.0f connections in use broke at once, %s s into the window", valueOrZero(c.Value), say.Significant(c.Detail["at"], 3))
				}
				return "none seen"
			},
		},
		result.CheckGone: {
			value: func(c *result.Check) string {
				return say.Significant(valueOrZero(c.Value), 3) + " s after the load began"
			},
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
			limit: always("as many as were sent, within 1 %"),
		},
		result.CheckServedTokens: {
			value: func(c *result.Check) string {
				return say.Percent(valueOrZero(c.Value)) + " of the tokens that the server counted were not this run's"
			},
			limit: always("1 %"),
		},
		result.CheckPrompts: {},
		result.CheckTokenizer: {
			value: func(c *result.Check) string {
				ours, theirs := c.Detail["ours"], c.Detail["theirs"]
				switch {
				case c.Case == result.CaseBeyond:
					return fmt.Sprintf("the server has a token %.0f, and the file ends at %.0f", c.Detail["highest"], c.Detail["size"]-1)
				case valueOrZero(c.Value) == 0:
					return fmt.Sprintf("%.0f tokens of a text, as the server has", ours)
				case c.Case == result.CaseIDs:
					return fmt.Sprintf("of %.0f tokens that it makes of a text the server has %.0f others", ours, valueOrZero(c.Value))
				}
				return fmt.Sprintf("it makes %.0f tokens of a text of which the server counts %.0f", ours, theirs)
			},
			limit: always("the server's own"),
		},
		result.CheckOutputs: {
			value: func(c *result.Check) string {
				text := valueOf(c)
				if served, known := c.Detail["served"]; known && c.Status != result.Pass {
					text += fmt.Sprintf(" have another length: %s tokens on average, %s were requested", say.Significant(served, 3), say.Significant(c.Detail["requested"], 3))
				}
				return text
			},
		},
		result.CheckFinish: {
			value: func(c *result.Check) string { return fmt.Sprintf("%s, as %q", valueOf(c), c.Case) },
		},
		result.CheckTextless:    {},
		result.CheckUsage:       {},
		result.CheckTokenCounts: {},
		result.CheckEvents: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("%s: %s events with text on average, %s tokens counted", valueOf(c), say.Significant(c.Detail["events"], 3), say.Significant(c.Detail["tokens"], 3))
			},
		},
		result.CheckTokenGaps: {},
		result.CheckHidden:    {},
		result.CheckPrefixCache: {
			value: func(c *result.Check) string {
				if c.Value == nil {
					return "not known: the server does not report cached tokens, and a run with the same seed asks the same prompts"
				}
				return valueOf(c)
			},
		},
		result.CheckRepeated: {
			value: func(c *result.Check) string {
				return fmt.Sprintf("%s for %s", say.Plural(int(valueOrZero(c.Limit)), "prompt"), say.Plural(int(valueOrZero(c.Value)), "request"))
			},
			limit: always("none twice"),
		},
		result.CheckMix: {
			value: func(c *result.Check) string {
				if c.Value == nil {
					return "one kind of request"
				}
				return "medians of the classes differ by a factor of " + say.Significant(*c.Value, 3)
			},
			limit: func(c *result.Check) string {
				return fmt.Sprintf("medians within a factor of %g", valueOrZero(c.Limit))
			},
		},
	}
}

// countText writes a whole number of things.
func countText(c *result.Check) string { return fmt.Sprintf("%.0f %s", valueOrZero(c.Value), c.Unit) }

// busyHost says what else the client's machine did.
func busyHost(c *result.Check) string {
	text := fmt.Sprintf("other processes held %.0f %% of the cores", 100*valueOrZero(c.Value))
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
	for _, p := range usualPercentiles() {
		if _, ok := d["shift_"+p]; ok {
			judged = append(judged, p)
		} else {
			open = append(open, p)
		}
	}
	text := "p99 " + say.Significant(d["lag_p99"], 3) + " ms"
	switch {
	case len(open) == 0:
		text += ", shift " + say.Significant(valueOrZero(c.Value), 3) + " ms"
	case len(judged) > 0:
		text += fmt.Sprintf(", shift of %s %s ms", strings.Join(judged, " and "), say.Significant(valueOrZero(c.Value), 3))
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
	begin, planned := valueOrZero(c.Limit), c.Detail["planned"]
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
	return fmt.Sprintf("%.0f of %.0f lost", valueOrZero(c.Value), c.Detail["of"])
}
