package slo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// maxLength keeps an objective to what a person writes, and so every error
// message printable.
const maxLength = 1000

// Grammar is the metrics that an objective may name.
type Grammar struct{ Metrics metric.Catalogue }

// Parse reads an objective on the metrics of the catalogue, see [Grammar.Parse].
func Parse(text string) (Spec, error) { return Grammar{metric.All()}.Parse(text) }

// Parse reads an objective, or the name of one of the [Presets], of all requests or of
// classes of them. Upper and lower
// case and white space do not matter. Every error is a [say.Error].
func (g Grammar) Parse(text string) (Spec, error) {
	if len(text) > maxLength {
		return Spec{}, say.Errorf("objective longer than %d bytes", maxLength)
	}
	plain := withoutSpace(text)
	if plain == "" {
		return Spec{}, say.Errorf("empty objective").WithHint("write for example \"p99 ttft<200ms, p99 tpot<50ms\"")
	}
	var s Spec
	for _, part := range strings.Split(plain, ";") {
		class, limits, named := strings.Cut(part, ":")
		if named && g.limitableMetrics().Find(metric.Name(class)) != nil { // ttft:200ms, which has no <
			limits, named = part, false
		}
		if !named {
			limits = part
		}
		if limits == "" {
			return Spec{}, say.Errorf("a part without limits: %.60q", part).WithHint(classHint)
		}
		own, err := g.parsePart(limits)
		switch {
		case err != nil:
			return Spec{}, err
		case named && CheckClass(class) != nil:
			return Spec{}, CheckClass(class)
		case named && slices.ContainsFunc(s.Classes, func(c Class) bool { return c.Name == class }):
			return Spec{}, say.Errorf("the limits of class %s are given twice", class).WithHint("a comma separates limits of one class: " + class + ": p99 ttft<200ms, p99 tpot<50ms")
		case named && own.LimitsAnswers():
			return Spec{}, say.Errorf("class %s limits wrong answers: questions are of no class", class).WithHint("limit them of all requests: \"wrong<1%; chat: p99 ttft<200ms\"")
		case named:
			s.Classes = append(s.Classes, Class{class, own})
		case len(s.Limits) > 0:
			return Spec{}, say.Errorf("limits of all requests are given twice").WithHint(classHint)
		default:
			s.Limits, s.SharePercent = own.Limits, own.SharePercent
		}
	}
	return s, nil
}

const classHint = "limits of all requests, then those of classes: \"errors<1%; chat: p99 ttft<200ms; batch: p99 e2e<60s\""

// longestClass bounds the name of a class, in bytes.
const longestClass = 40

// CheckClass refuses the name of a class of requests that an objective could not hold.
func CheckClass(name string) error {
	ok := name != "" && len(name) <= longestClass
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		ok = ok && (letter || i > 0 && (r == '-' || r == '_' || r == '.'))
	}
	if !ok {
		return say.Errorf("%.60q is no name of a class", name).WithHint(fmt.Sprintf("write lower-case letters, digits and -_. inside, at most %d of them: chat, rag-eu", longestClass))
	}
	return nil
}

// parsePart reads the limits of all requests, or those of a class, without white space.
func (g Grammar) parsePart(plain string) (Spec, error) {
	if spec, ok := findPreset(plain); ok {
		plain = withoutSpace(spec)
	}
	var s Spec
	for _, term := range strings.Split(plain, ",") {
		if term == "" {
			return Spec{}, say.Errorf("empty limit").WithHint("one comma between two limits")
		}
		body, share, shared := strings.Cut(term, "@")
		if shared {
			if s.SharePercent != 0 {
				return Spec{}, say.Errorf("a second share %q", "@"+share).WithHint("write it once, after the last joint limit")
			}
			p, err := parsePercent(share)
			if err != nil {
				return Spec{}, err
			}
			s.SharePercent = p
		}
		l, err := g.parseLimit(body)
		if err != nil {
			return Spec{}, err
		}
		s.Limits = append(s.Limits, l)
	}
	return s, s.checkLimits()
}

// parseLimit reads "p99ttft<200ms": percentile, metric, <, number, unit.
func (g Grammar) parseLimit(term string) (Limit, error) {
	name, bound, ok := strings.Cut(term, "<")
	if !ok {
		if strings.ContainsAny(term, ">≥") {
			return Limit{}, say.Errorf("limit %q is a lower bound, only upper bounds can be judged", term).WithHint("write metric<value")
		}
		if strings.ContainsAny(term, "=≤:") {
			return Limit{}, say.Errorf("limit %q has no <", term).WithHint("write metric<value")
		}
		if name := say.NearestName(term, presetNames()); name != "" {
			return Limit{}, say.Errorf("no SLO is called %q", term).WithHint("did you mean " + name + "?")
		}
		return Limit{}, say.Errorf("limit %q has no <", term).WithHint("write for example p99 ttft<200ms")
	}
	bound = strings.TrimPrefix(bound, "=")
	l := Limit{}
	if rest, ok := strings.CutPrefix(name, "p"); ok {
		digits := numberPrefix(rest)
		if digits != "" {
			p, err := strconv.ParseFloat(digits, 64)
			if err != nil || p <= 0 || p >= 100 {
				return Limit{}, say.Errorf("percentile p%s", digits).WithHint("percentiles lie between 0 and 100; for every request write @100%")
			}
			l.Percentile, name = p, rest[len(digits):]
		}
	}
	m := g.limitableMetrics().Find(metric.Name(name))
	if m == nil {
		return Limit{}, g.unknownMetric(name)
	}
	l.Metric = m.Name
	if l.OfShare() {
		if l.Percentile != 0 {
			return Limit{}, say.Errorf("a share has no percentile").WithHint("write " + name + "<1%")
		}
		p, err := parsePercent(bound)
		l.MaxPercent = p
		return l, err
	}
	d, err := parseDuration(bound)
	l.Max = d
	return l, err
}

// checkLimits holds the limits against each other.
func (s Spec) checkLimits() error {
	joint := 0
	for i, l := range s.Limits {
		if l.IsJoint() {
			joint++
			if l.Metric.IsPooled() {
				return say.Errorf("%s is not one number per request", l.Metric).WithHint("write p99 " + l.String() + ", or limit stall, a request's longest gap")
			}
		}
		for _, k := range s.Limits[:i] {
			if k.Metric == l.Metric && k.Percentile == l.Percentile {
				return say.Errorf("two limits on the same: %s and %s", k, l).WithHint("keep one of them")
			}
		}
	}
	switch {
	case joint > 0 && s.SharePercent == 0:
		for _, l := range s.Limits {
			if l.IsJoint() {
				return say.Errorf("limit %q does not say for how many requests", l).WithHint("write \"p99 " + l.String() + "\" or \"" + l.String() + " @99%\"")
			}
		}
	case joint == 0 && s.SharePercent != 0:
		return say.Errorf("a share @%s%% without a limit on single requests", say.Exact(s.SharePercent)).WithHint("leave the @ out, or leave the percentiles out")
	}
	return nil
}

// numberPrefix is the decimal number s begins with.
func numberPrefix(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(s)
	}
	return s[:end]
}

// parsePercent reads "99%".
func parsePercent(s string) (float64, error) {
	digits := numberPrefix(s)
	p, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, say.Errorf("%q is no share", s).WithHint("write for example 99%")
	}
	if s[len(digits):] != "%" {
		return 0, say.Errorf("share %q without %%", s).WithHint("write for example " + digits + "%")
	}
	if p <= 0 || p > 100 {
		return 0, say.Errorf("share %s%%", digits).WithHint("above 0 % and at most 100 %")
	}
	return p, nil
}

// parseDuration reads "200ms" as a time.
func parseDuration(s string) (time.Duration, error) {
	digits := numberPrefix(s)
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, say.Errorf("%q is no length of time", s).WithHint("write for example 200ms")
	}
	var unit time.Duration
	switch name := s[len(digits):]; name {
	case "s":
		unit = time.Second
	case "ms":
		unit = time.Millisecond
	case "us", "µs", "μs": // micro sign and Greek mu
		unit = time.Microsecond
	case "":
		return 0, say.Errorf("limit %q without a unit", s).WithHint("write " + digits + "ms or " + digits + "s")
	default:
		return 0, say.Errorf("unknown unit %q", name).WithHint("units are us, ms and s")
	}
	ns := math.Round(x * float64(unit))
	if ns < 1 || ns > 1e15 {
		return 0, say.Errorf("limit %q is out of range", s).WithHint("between 0.001us and 1000000s")
	}
	return time.Duration(ns), nil
}

// withoutSpace is a text in lower case without white space.
func withoutSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}
