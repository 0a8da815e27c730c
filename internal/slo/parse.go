package slo

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pitot/internal/user"
)

// maxLength keeps an objective to what a person writes, and so every error
// message printable.
const maxLength = 1000

// Parse reads an objective, or the name of one of the [Presets]. Upper and lower case and white space do not
// matter. Every error is a [user.Error].
func Parse(text string) (Spec, error) {
	if spec, ok := preset(strings.ToLower(strings.TrimSpace(text))); ok {
		text = spec
	}
	if len(text) > maxLength {
		return Spec{}, user.Errorf("", "objective longer than %d bytes", maxLength)
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	if plain == "" {
		return Spec{}, user.Errorf("write for example \"p99 ttft<200ms, p99 tpot<50ms\"", "empty objective")
	}
	var s Spec
	for _, term := range strings.Split(plain, ",") {
		if term == "" {
			return Spec{}, user.Errorf("one comma between two limits", "empty limit")
		}
		body, share, shared := strings.Cut(term, "@")
		if shared {
			if s.SharePercent != 0 {
				return Spec{}, user.Errorf("write it once, after the last joint limit", "a second share %q", "@"+share)
			}
			p, err := percent(share)
			if err != nil {
				return Spec{}, err
			}
			s.SharePercent = p
		}
		l, err := parseLimit(body)
		if err != nil {
			return Spec{}, err
		}
		s.Limits = append(s.Limits, l)
	}
	return s, s.check()
}

// parseLimit reads "p99ttft<200ms": percentile, metric, <, number, unit.
func parseLimit(term string) (Limit, error) {
	name, bound, ok := strings.Cut(term, "<")
	if !ok {
		if strings.ContainsAny(term, ">≥") {
			return Limit{}, user.Errorf("write metric<value", "limit %q is a lower bound, only upper bounds can be judged", term)
		}
		if strings.ContainsAny(term, "=≤:") {
			return Limit{}, user.Errorf("write metric<value", "limit %q has no <", term)
		}
		if name := user.Nearest(term, presetNames()); name != "" {
			return Limit{}, user.Errorf("did you mean "+name+"?", "no SLO is called %q", term)
		}
		return Limit{}, user.Errorf("write for example p99 ttft<200ms", "limit %q has no <", term)
	}
	bound = strings.TrimPrefix(bound, "=")
	l := Limit{}
	if rest, ok := strings.CutPrefix(name, "p"); ok {
		digits := numberPrefix(rest)
		if digits != "" {
			p, err := strconv.ParseFloat(digits, 64)
			if err != nil || p <= 0 || p >= 100 {
				return Limit{}, user.Errorf("percentiles lie between 0 and 100; for every request write @100%", "percentile p%s", digits)
			}
			l.Percentile, name = p, rest[len(digits):]
		}
	}
	for _, m := range Metrics() {
		if name == string(m) {
			l.Metric = m
		}
	}
	if l.Metric == "" {
		return Limit{}, unknownMetric(name)
	}
	if l.Metric == Errors {
		if l.Percentile != 0 {
			return Limit{}, user.Errorf("write errors<1%", "errors have no percentile")
		}
		p, err := percent(bound)
		l.MaxPercent = p
		return l, err
	}
	d, err := length(bound)
	l.Max = d
	return l, err
}

// check holds the limits against each other.
func (s Spec) check() error {
	joint := 0
	for i, l := range s.Limits {
		if l.Joint() {
			joint++
			if l.Metric.Pooled() {
				return user.Errorf("write p99 "+l.String()+", or limit stall, a request's longest gap",
					"%s is not one number per request", l.Metric)
			}
		}
		for _, k := range s.Limits[:i] {
			if k.Metric == l.Metric && k.Percentile == l.Percentile {
				return user.Errorf("keep one of them", "two limits on the same: %s and %s", k, l)
			}
		}
	}
	switch {
	case joint > 0 && s.SharePercent == 0:
		for _, l := range s.Limits {
			if l.Joint() {
				return user.Errorf("write \"p99 "+l.String()+"\" or \""+l.String()+" @99%\"",
					"limit %q does not say for how many requests", l)
			}
		}
	case joint == 0 && s.SharePercent != 0:
		return user.Errorf("leave the @ out, or leave the percentiles out",
			"a share @%s%% without a limit on single requests", decimal(s.SharePercent))
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

// percent reads "99%".
func percent(s string) (float64, error) {
	digits := numberPrefix(s)
	p, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, user.Errorf("write for example 99%", "%q is no share", s)
	}
	if s[len(digits):] != "%" {
		return 0, user.Errorf("write for example "+digits+"%", "share %q without %%", s)
	}
	if p <= 0 || p > 100 {
		return 0, user.Errorf("above 0 % and at most 100 %", "share %s%%", digits)
	}
	return p, nil
}

// length reads "200ms" as a time.
func length(s string) (time.Duration, error) {
	digits := numberPrefix(s)
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, user.Errorf("write for example 200ms", "%q is no length of time", s)
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
		return 0, user.Errorf("write "+digits+"ms or "+digits+"s", "limit %q without a unit", s)
	default:
		return 0, user.Errorf("units are us, ms and s", "unknown unit %q", name)
	}
	ns := math.Round(x * float64(unit))
	if ns < 1 || ns > 1e15 {
		return 0, user.Errorf("between 0.001us and 1000000s", "limit %q is out of range", s)
	}
	return time.Duration(ns), nil
}
