// Package slo parses and judges service level objectives: limits on latency
// metrics and on the share of errors.
//
//	p99 ttft<200ms, p99 tpot<50ms     each on a percentile
//	ttft<200ms, tpot<50ms @99%        joint: both, for 99 % of the requests
//	p50 e2e<2s, errors<1%             any mix
//	chat: p99 ttft<200ms; batch: p99 e2e<60s     of classes of requests, each its own
package slo

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// Limit is one upper bound.
type Limit struct {
	Metric     metric.Name
	Percentile float64       // in percent; 0 for a joint limit and for errors
	Max        time.Duration // the metric must be below it; 0 for errors
	MaxPercent float64       // of errors: their share must be below it, in percent
}

// IsJoint says that the limit holds for single requests, together with the
// other joint limits.
func (l Limit) IsJoint() bool { return l.Percentile == 0 && !l.OfShare() }

// OfShare says that the limit is on a share, of errors or of wrong answers.
func (l Limit) OfShare() bool { return l.Metric == metric.Errors || l.Metric == metric.Wrong }

// P is the limit's percentile as a fraction, 0.99 for p99.
func (l Limit) P() float64 { return l.Percentile / 100 }

// String gives the limit as it is written, "p99 ttft<200ms".
func (l Limit) String() string {
	if l.OfShare() {
		return string(l.Metric) + "<" + say.Exact(l.MaxPercent) + "%"
	}
	s := string(l.Metric) + "<" + formatDuration(l.Max)
	if l.Percentile != 0 {
		s = "p" + say.Exact(l.Percentile) + " " + s
	}
	return s
}

// Spec is a whole objective. The zero Spec is none.
type Spec struct {
	Limits []Limit
	// SharePercent of all due requests must meet every joint limit; 0 when
	// there is no joint limit.
	SharePercent float64
	// Classes are objectives that single classes of requests have besides.
	Classes []Class
}

// Class is the objective of the requests of one class. It has no classes itself.
type Class struct {
	Name string
	Spec Spec
}

// IsNone says that there is no objective.
func (s Spec) IsNone() bool { return len(s.Limits) == 0 && len(s.Classes) == 0 }

// All are the limits, those of classes too.
func (s Spec) All() []Limit {
	list := slices.Clone(s.Limits)
	for _, c := range s.Classes {
		list = append(list, c.Spec.Limits...)
	}
	return list
}

// LimitsPrefix returns the text before a class's limits: "chat: ".
func (c Class) LimitsPrefix() string { return c.Name + ": " }

// Share is SharePercent as a fraction.
func (s Spec) Share() float64 { return s.SharePercent / 100 }

// String is the canonical spelling: percentile limits first, then joint ones
// with their share, then errors, then those of classes. It parses to an equal objective.
func (s Spec) String() string {
	var percentile, joint, errors []string
	for _, l := range s.Limits {
		switch {
		case l.OfShare():
			errors = append(errors, l.String())
		case l.IsJoint():
			joint = append(joint, l.String())
		default:
			percentile = append(percentile, l.String())
		}
	}
	if len(joint) > 0 {
		joint[len(joint)-1] += " @" + say.Exact(s.SharePercent) + "%"
	}
	var parts []string
	if own := append(append(percentile, joint...), errors...); len(own) > 0 {
		parts = append(parts, strings.Join(own, ", "))
	}
	for _, c := range s.Classes {
		parts = append(parts, c.LimitsPrefix()+c.Spec.String())
	}
	return strings.Join(parts, "; ")
}

// MarshalText returns the canonical spelling.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads an objective; none from an empty text.
func (s *Spec) UnmarshalText(text []byte) (err error) {
	if *s = (Spec{}); len(text) > 0 {
		*s, err = Parse(string(text))
	}
	return err
}

// LimitsAnswers says that some limit is on the share of wrong answers.
func (s Spec) LimitsAnswers() bool {
	return slices.ContainsFunc(s.All(), func(l Limit) bool { return l.Metric == metric.Wrong })
}

// NeedsStream says that the objective cannot be judged without streaming.
func (s Spec) NeedsStream() bool {
	for _, l := range s.All() {
		if l.Metric.NeedsStreaming() {
			return true
		}
	}
	return false
}

// formatDuration spells d in the largest unit that keeps it above 1.
func formatDuration(d time.Duration) string {
	unit, name := time.Microsecond, "us"
	switch {
	case d >= time.Second && d%time.Second == 0:
		unit, name = time.Second, "s"
	case d >= time.Millisecond:
		unit, name = time.Millisecond, "ms"
	}
	s := strconv.FormatInt(int64(d/unit), 10)
	if rest := d % unit; rest != 0 {
		digits := strconv.FormatInt(int64(unit+rest), 10)[1:] // leading zeros kept
		s += "." + strings.TrimRight(digits, "0")
	}
	return s + name
}
