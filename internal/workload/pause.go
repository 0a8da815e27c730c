package workload

import (
	"fmt"
	"math"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// LongestPause bounds a pause, far below the overflow of nanoseconds.
const LongestPause = 365 * 24 * time.Hour

// Pause is a distribution of lengths of time: how long a user reads and types, or a
// tool runs. The zero value is no pause at all. Pauses can be compared with ==.
type Pause struct {
	kind pauseKind
	a, b time.Duration // the times in the parentheses
}

// pauseKind is the name of a distribution.
type pauseKind string

const (
	fixedPause       pauseKind = ""
	uniformPause     pauseKind = "uniform"
	lognormalPause   pauseKind = "lognormal"
	exponentialPause pauseKind = "exponential"
)

const pauseHint = "write a time as 5s, or uniform(1s,10s), exponential(10s), lognormal(45s,40s)"

// evenly is from what standard deviation over the mean on pauses are not alike any more.
const evenly = 0.2

// IsRegular says that pauses are alike, so that who asks together does so again behind them.
func (p Pause) IsRegular() bool {
	mean := p.Mean().Seconds()
	switch p.kind {
	case uniformPause:
		return (p.b - p.a).Seconds() < evenly*math.Sqrt(12)*mean
	case lognormalPause:
		return p.b.Seconds() < evenly*mean
	case exponentialPause:
		return false
	}
	return mean > 0
}

// ParsePause reads "5s", "uniform(least,most)", "exponential(mean)" or
// "lognormal(mean,sd)": mean and standard deviation are those of the time itself. Every
// error is a [say.Error].
func ParsePause(s string) (Pause, error) {
	fail := func(hint, format string, args ...any) (Pause, error) {
		return Pause{}, say.Errorf("pause %.60q: %s", s, fmt.Sprintf(format, args...)).WithHint(hint)
	}
	text := strings.ToLower(strings.TrimSpace(s))
	name, inner, call := strings.Cut(text, "(")
	p, want := Pause{}, 1
	if call {
		var closed bool
		p.kind = pauseKind(strings.TrimSpace(name))
		inner, closed = strings.CutSuffix(inner, ")")
		switch {
		case closed && p.kind == exponentialPause:
		case closed && (p.kind == uniformPause || p.kind == lognormalPause):
			want = 2
		default:
			return fail(pauseHint, "not a length of time")
		}
	} else {
		inner = text
	}
	parts := strings.Split(inner, ",")
	if len(parts) != want {
		return fail(pauseHint, "it has %s, want %d", say.Plural(len(parts), "time"), want)
	}
	for i, part := range parts {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil {
			return fail(pauseHint, "%.40q is not a length of time", strings.TrimSpace(part))
		}
		if d < 0 || d > LongestPause {
			return fail("", "%s is not between 0 and %s", d, LongestPause)
		}
		if i == 0 {
			p.a = d
		} else {
			p.b = d
		}
	}
	switch {
	case p.kind == uniformPause && p.b < p.a:
		return fail(fmt.Sprintf("did you mean uniform(%s,%s)?", p.b, p.a), "the ends of uniform are the wrong way round")
	case p.kind == lognormalPause && p.a == 0:
		return fail("", "the mean of a lognormal is 0")
	}
	return p, nil
}

// IsNone says that there is never a pause.
func (p Pause) IsNone() bool { return p == Pause{} }

// Draw is the pause that a draw u, even over all 64-bit numbers, stands for: the
// quantile u/2⁶⁴, at most [LongestPause].
func (p Pause) Draw(u uint64) time.Duration {
	x, a, b := seed.Float(u), float64(p.a), float64(p.b)
	switch p.kind {
	case uniformPause:
		x = a + float64(x*(b-a))
	case exponentialPause:
		x = -a * math.Log1p(-x)
	case lognormalPause: // its moments, solved for its parameters as those of lengths
		ratio := b / a
		variance := math.Log1p(float64(ratio * ratio))
		x = math.Exp(math.Log(a) - float64(variance/2) + float64(math.Sqrt(variance)*normalQuantile(u)))
	default:
		return p.a
	}
	return time.Duration(math.Round(min(x, float64(LongestPause))))
}

// Mean is the mean pause.
func (p Pause) Mean() time.Duration {
	if p.kind == uniformPause {
		return p.a/2 + p.b/2
	}
	return p.a
}

// String writes the pause so that ParsePause reads it back.
func (p Pause) String() string {
	switch p.kind {
	case fixedPause:
		return p.a.String()
	case exponentialPause:
		return string(p.kind) + "(" + p.a.String() + ")"
	}
	return string(p.kind) + "(" + p.a.String() + "," + p.b.String() + ")"
}
