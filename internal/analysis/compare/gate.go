package compare

import (
	"strconv"
	"strings"

	"pitot/internal/say"
)

// Clause is one condition of --fail-if: "p99 ttft slower by 5%". Its metric is
// pre-registered: named before anyone looked, it is not corrected for the number
// of the others.
type Clause struct {
	Spec   string
	metric figure
	better bool    // the clause is about an improvement
	by     float64 // relative, or a share
}

// Primary is the metric that a comparison is made for, named before anyone looked:
// it is tested alone, at 5 %, and answered first.
type Primary struct{ metric figure }

// ParsePrimary reads "p99 itl" and the like. Every error is a [say.Error].
func ParsePrimary(text string) (*Primary, error) {
	m, err := parseMetric(text)
	if err != nil {
		return nil, err
	}
	return &Primary{m}, nil
}

// ParseClauses reads clauses that are separated by commas. Every error is a
// [say.Error].
func ParseClauses(text string) (out []Clause, err error) {
	for part := range strings.SplitSeq(text, ",") {
		c, err := parseClause(part)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

const clauseHint = `for example "p99 ttft slower by 5%, output tok/s slower by 3%, errors worse by 1%"`

func parseClause(text string) (Clause, error) {
	words := strings.Fields(strings.ToLower(text))
	c := Clause{Spec: strings.Join(words, " ")}
	at := -1
	for i, w := range words {
		switch w {
		case "slower", "worse", "faster", "better", "lower", "higher":
			at = i
		}
	}
	if at < 0 {
		return c, say.Errorf("%q does not say slower, faster, worse or better", strings.TrimSpace(text)).WithHint(clauseHint)
	}
	m, err := parseMetric(strings.Join(words[:at], " "))
	if err != nil {
		return c, err
	}
	c.metric = m
	switch words[at] {
	case "slower", "faster":
		if m.share {
			return c, say.Errorf("%s are neither slower nor faster", m.name).WithHint("write " + m.name + " worse by 1%")
		}
		c.better = words[at] == "faster"
	case "lower", "higher":
		c.better = m.more == (words[at] == "higher")
	default:
		c.better = words[at] == "better"
	}
	switch rest := words[at+1:]; {
	case len(rest) == 0:
	case rest[0] == "by" && len(rest) > 1:
		c.by, err = ParseShare(strings.Join(rest[1:], ""))
		if err != nil {
			return c, err
		}
	default:
		return c, say.Errorf("%q: after %s comes nothing, or by and a percentage", c.Spec, words[at]).WithHint(clauseHint)
	}
	return c, nil
}

// ParseShare reads a percentage below 100 %: "5%", or 0.05. Every error is a
// [say.Error].
func ParseShare(text string) (float64, error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0) || x >= 1 {
		return 0, say.Errorf("%q is no percentage below 100 %%", text).WithHint("write for example 5%")
	}
	return x, nil
}
