package report

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
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

// checkText returns the words of a check. Where there is none a share is written with its counts,
// and a count with its unit.
type checkText struct {
	Value, Limit string
	Invalid      string // what it says of a measurement that it makes INVALID
}

//go:embed checks.json
var checksJSON []byte

// checkWords returns the texts of checks by their names, as [reasons.ExpandText] takes them.
var checkWords = sync.OnceValue(func() (words map[string]checkText) {
	if err := json.Unmarshal(checksJSON, &words); err != nil {
		panic(fmt.Sprintf("report: read checks.json: %v", err)) // a test reads it
	}
	return words
})

// valuesInWords are the values of checks that take more than a text.
var valuesInWords = map[string]func(*result.Check) string{
	result.CheckSendLag: sendLag,
	result.CheckHost:    busyHost,
	result.CheckWarmup:  warmedUp,
}

// BuildCheck puts a check into words.
func BuildCheck(c *result.Check) CheckModel {
	words := checkWords()[c.Name]
	m := CheckModel{Name: c.Name, Status: c.Status}
	m.Value, m.Limit = expandCheck(words.Value, c, valueOf(c)), expandCheck(words.Limit, c, limitOf(c))
	if value := valuesInWords[c.Name]; value != nil {
		m.Value = value(c)
	}
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

// expandCheck fills in a text of a check: with what it counted by name, its value and its limit,
// also in percent; usual stands for what is said without a text. A part may be of a case, of a
// status, of a value that is known or more than nothing, and of what was counted.
func expandCheck(text string, c *result.Check, usual string) string {
	value, limit := valueOrZero(c.Value), valueOrZero(c.Limit)
	set := func(name string) bool {
		switch name {
		case "value":
			return c.Value != nil
		case "some":
			return value > 0
		case "pass", "fail":
			return string(c.Status) == name
		}
		_, counted := c.Detail[name]
		return counted || name == "case_"+c.Case
	}
	figures := map[string]float64{
		"value": value, "value_percent": 100 * value, "limit": limit, "limit_percent": 100 * limit,
		"max_deficit": stats.MaxDeficit, "last": c.Detail["size"] - 1,
	}
	return reasons.ExpandText(cmp.Or(text, "{usual}"), set, func(name, format string) string {
		switch {
		case name == "usual":
			return usual
		case name == "unit":
			return c.Unit
		case name == "case" && format == "quoted":
			return strconv.Quote(c.Case)
		case name == "case":
			return c.Case
		case format == "signed":
			return signedText(c.Detail[name])
		}
		x, known := figures[name]
		if !known {
			x = c.Detail[name]
		}
		return reasons.FormatFigure(x, format)
	})
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
