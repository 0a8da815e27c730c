// Package reasons makes sentences of typed reasons: why a value is missing, withheld, undecided or
// without an interval, and what to do about a check. The sentences are in texts.json, by code:
// rewording one changes that file and golden files alone.
//
// {n} stands for a figure, {n load} for one in a format. [n !low? and {n} more] is there where n
// is not 0, and low is.
package reasons

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

//go:embed texts.json
var textsJSON []byte

// texts returns the sentences.
var texts = sync.OnceValue(func() (all struct {
	Reasons, Advice map[result.ReasonCode]string
	Adaptations     map[result.AdaptationKind]string
}) {
	if err := json.Unmarshal(textsJSON, &all); err != nil {
		panic(fmt.Sprintf("reasons: read texts.json: %v", err)) // a test reads it
	}
	return all
})

var (
	optionalPart = regexp.MustCompile(`\[([a-z0-9_! ]+)\?([^\]]*)\]`)
	placeholder  = regexp.MustCompile(`\{([a-z0-9_]+)(?: ([a-z0-9]+))?\}`)
)

// formats are the ways in which texts.json writes a figure.
var formats = map[string]func(float64) string{
	"":         func(x float64) string { return fmt.Sprintf("%.0f", x) },
	"2":        func(x float64) string { return fmt.Sprintf("%.2g", x) },
	"3":        func(x float64) string { return fmt.Sprintf("%.3g", x) },
	"count":    func(x float64) string { return say.Count(int64(x)) },
	"requests": func(x float64) string { return say.Plural(int(x), "request") },
	"records":  func(x float64) string { return say.Plural(int(x), "record") },
	"prompts":  func(x float64) string { return say.Plural(int(x), "prompt") },
	"answers":  func(x float64) string { return say.Plural(int(x), "answer") },
	"g":        func(x float64) string { return fmt.Sprintf("%g", x) },
	"s2":       func(x float64) string { return say.Significant(x, 2) },
	"s3":       func(x float64) string { return say.Significant(x, 3) },
	"s4":       func(x float64) string { return say.Significant(x, 4) },
	"load":     func(x float64) string { return say.Significant(x, 4) }, // what tells it from another
	"duration": func(x float64) string { return roundToMillisecond(x).String() },
	"percent":  say.Percent,
	"exact":    say.Exact,
	"seconds":  say.Seconds,
	"time":     say.RoundedTime,
}

// Text returns the words of a reason, "" of none.
func Text(r result.Reason) string {
	if r.IsNone() {
		return ""
	}
	text, known := codeSentence(r)
	if !known { // a reason of a later program
		text = strings.ReplaceAll(string(r.Code), "_", " ")
	}
	if r.Class != "" {
		text = r.Class + ": " + text
	}
	return text
}

// codeSentence returns the sentence of a code, and whether there is one.
func codeSentence(r result.Reason) (text string, known bool) {
	if text, known = texts().Reasons[r.Code]; !known {
		text, known = texts().Advice[r.Code]
	}
	if !strings.ContainsAny(text, "{[") {
		return text, known
	}
	figures := map[string]float64{
		"n": r.N, "of": r.Of, "needed": r.Needed, "firm": r.Firm, "share": r.Share, "low": r.Low, "high": r.High,
		"seconds": r.Seconds, "alone_n": r.AloneN, "alone_of": r.AloneOf, "longer": r.Longer.Seconds + r.Longer.Requests,
		"ms": 1e3 * r.Seconds, "percent": 100 * r.Share, "rate": 100 * r.N / r.Of, "several": r.N - 1, "differ": r.N - r.Of,
	}
	set := func(name string) bool { return figures[name] != 0 }
	return ExpandText(text, set, func(name, format string) string {
		switch {
		case name == "quote":
			return r.Quote
		case name == "longer":
			return LongerFlag(r.Longer)
		case name == "allowed":
			return allowedText(r)
		case format == "near":
			return say.PercentNear(figures[name], r.Share)
		}
		return FormatFigure(figures[name], format)
	}), known
}

// FormatFigure returns a figure in one of the formats of texts.
func FormatFigure(x float64, format string) string { return formats[format](x) }

// ExpandText leaves out the parts of a text that are of what is not set, and puts values in its
// places.
func ExpandText(text string, set func(name string) bool, value func(name, format string) string) string {
	text = optionalPart.ReplaceAllStringFunc(text, func(part string) string {
		conditions, then, _ := strings.Cut(part[1:len(part)-1], "?")
		for _, name := range strings.Fields(conditions) {
			if name, not := strings.CutPrefix(name, "!"); not == set(name) {
				return ""
			}
		}
		return then
	})
	return placeholder.ReplaceAllStringFunc(text, func(place string) string {
		name, format, _ := strings.Cut(place[1:len(place)-1], " ")
		return value(name, format)
	})
}

// AdaptationText returns the sentence of what was adapted.
func AdaptationText(a result.Adaptation) string {
	text, known := texts().Adaptations[a.Kind]
	if !known {
		return strings.TrimSpace(string(a.Kind) + " " + a.Value + " " + Text(a.Why))
	}
	values := map[string]string{"value": a.Value, "of": strings.Join(a.Of, ", "), "why": Text(a.Why)}
	return ExpandText(text, nil, func(name, _ string) string { return values[name] })
}

// allowedText returns what rate limits let through in the long run, as far as it is known.
func allowedText(r result.Reason) string {
	var parts []string
	if r.RequestsPerS > 0 {
		parts = append(parts, "at most about "+say.Quantity(r.RequestsPerS)+" requests a second")
	}
	if r.TokensPerS > 0 {
		parts = append(parts, "at most about "+say.Quantity(r.TokensPerS)+" tokens a second")
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, " and ")
}

// SufficientBudgets returns the budgets that would give an estimate, "" where none is known.
// virtual says that their time is simulated.
func SufficientBudgets(list []result.BudgetFor, virtual bool) string {
	var parts []string
	for i, b := range list {
		s := fmt.Sprintf("±%.0f %% with %s", 100*b.HalfWidth, say.Plural(b.Requests/1000*1000, "request"))
		switch about := map[bool]string{true: "about "}[i == 0]; {
		case b.Seconds > 0 && b.HalfWidth == 0:
			s = "--budget " + say.RoundedTime(b.Seconds) + " would decide it"
		case b.Seconds > 0:
			s = fmt.Sprintf("±%.0f %% in %s%s", 100*b.HalfWidth, about, say.RoundedTime(b.Seconds))
		}
		parts = append(parts, s)
	}
	text := strings.Join(parts, ", ")
	if virtual && text != "" {
		text = "with --budget, of virtual time: " + text
	}
	return text
}

// ShortageText returns what a reason has too few of, without what would give more: "62 residence
// times; 100 needed".
func ShortageText(r result.Reason) string {
	return strings.TrimSuffix(Text(r), ": "+LongerFlag(r.Longer))
}

// LongerFlag returns the flag of a window of a length.
func LongerFlag(l result.Longer) string {
	if l.Requests > 0 {
		return fmt.Sprintf("--requests %.0f", l.Requests)
	}
	text := roundToMillisecond(l.Seconds).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return "--duration " + text
}

// roundToMillisecond returns seconds to the millisecond, which floating point does not hold
// exactly.
func roundToMillisecond(seconds float64) time.Duration {
	return time.Duration(math.Round(1e3*seconds)) * time.Millisecond
}
