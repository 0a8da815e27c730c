package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// A hypothesis is an inequality that was written down before anything was measured:
//
//	p50 ttft of B > 3 x p50 ttft of A
//	p95 tpot of F with max_num_seqs=64 < p95 tpot of F
//	p50 tpot of C within 15% of 7.2ms
//	p50 tpot of C within 15% of the bandwidth bound
//
// It is about the baseline where no configuration is named.

// Hypothesis is one of a plan.
type Hypothesis struct {
	Text        string
	Left, Right Side
	Relation    string  // "<", ">" or "within"
	Within      float64 // the share
	line        int
}

// Side is one side of it: so many times a metric of a row, or a number.
type Side struct {
	Times         float64 // of the metric, or the number, in the unit of the other side's metric
	Metric        Figure
	Row           string // "" of a number
	Configuration string // "" for the baseline
	Bound         string // "bandwidth" or "compute": that of the other side's metric in its row; else ""
	unit          string // of a number: "ms", "%", or "" for none
}

// Figure is a metric of a row that launches have one value of each.
type Figure struct {
	Name      string // the one spelling: "p95 ttft", "output tok/s", "capacity"
	Statistic string // "p95", "mean", or "" where there is only one value
	Metric    *metric.Metric
}

// Share says that it is a share of requests.
func (f Figure) Share() bool { return f.Metric.Unit == metric.Share }

// capacityFigure returns the figure of the load carried within the limits.
func capacityFigure() Figure {
	m := metric.All().Find(metric.Capacity)
	return Figure{Name: string(m.Name), Metric: m}
}

// parseFigure reads a metric as comparisons write it.
func parseFigure(text string) (f Figure, err error) {
	name := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	statistic, rest, _ := strings.Cut(name, " ")
	if _, ok := metric.PercentileOf(statistic); !ok && statistic != "mean" {
		statistic, rest = "", name
	}
	m := metric.All().Find(metric.Name(rest))
	var known []string
	for _, x := range metric.All() {
		if x.HasPercentiles() || x.Of == metric.Window || x.Name == metric.Capacity {
			known = append(known, string(x.Name))
		}
	}
	if m == nil || !slices.Contains(known, string(m.Name)) {
		hint := "for example p50 ttft, p95 tpot, mean e2e, output tok/s, errors, capacity"
		if near := say.NearestName(rest, known); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return f, say.Errorf("%.60q is no metric", text).WithHint(hint)
	}
	switch {
	case m.HasPercentiles() && statistic == "":
		return f, say.Errorf("%s needs a percentile or the mean", m.Name).WithHint("write p50 " + string(m.Name) + ", p95 " + string(m.Name) + " or mean " + string(m.Name))
	case !m.HasPercentiles() && statistic != "":
		return f, say.Errorf("%s has no %s", m.Name, statistic).WithHint("a row has one value of it: " + string(m.Name))
	}
	f = Figure{Name: strings.TrimSpace(statistic + " " + string(m.Name)), Statistic: statistic, Metric: m}
	return f, nil
}

var (
	within  = regexp.MustCompile(`^(.+?)\s+within\s+([0-9.]+)\s*%\s+of\s+(.+)$`)
	factor  = regexp.MustCompile(`^([0-9.]+)\s*(?:x|×|\*)\s*(.+)$`)
	aNumber = regexp.MustCompile(`^([0-9.]+)\s*(ms|s|us|%|/s|)$`)
	aBound  = regexp.MustCompile(`^(?:the\s+)?(bandwidth|compute)\s+bound(?:\s+of\s+(\S+))?$`)
	ofRow   = regexp.MustCompile(`^(.+?)\s+of\s+(\S+)(?:\s+with\s+(\S+))?$`)
)

const hypothesisForm = "for example p50 ttft of B > 3 x p50 ttft of A, p95 ttft of F < 500ms, or p50 tpot of C within 15% of 7.2ms"

// ParseHypothesis reads one. Errors are the user's.
func ParseHypothesis(text string) (h Hypothesis, err error) {
	h.Text = strings.Join(strings.Fields(text), " ")
	if len(h.Text) > 300 {
		return h, say.Errorf("longer than 300 characters").WithHint(hypothesisForm)
	}
	var left, right string
	if m := within.FindStringSubmatch(h.Text); m != nil {
		h.Relation, left, right = "within", m[1], m[3]
		x, err := strconv.ParseFloat(m[2], 64)
		if h.Within = x / 100; err != nil || !(x > 0 && x < 100) {
			return h, say.Errorf("%s%% is no share", m[2]).WithHint("between 0 and 100%")
		}
	} else {
		at := strings.IndexAny(h.Text, "<>")
		if at < 0 {
			return h, say.Errorf("has neither < nor > nor within").WithHint(hypothesisForm)
		}
		h.Relation, left, right = h.Text[at:at+1], h.Text[:at], strings.TrimPrefix(h.Text[at+1:], "=")
	}
	if h.Left, err = parseSide(left); err != nil {
		return h, err
	}
	if h.Right, err = parseSide(right); err != nil {
		return h, err
	}
	for _, pair := range [][2]*Side{{&h.Left, &h.Right}, {&h.Right, &h.Left}} {
		if bound, other := pair[0], pair[1]; bound.Bound != "" {
			if other.Row == "" || other.Bound != "" {
				return h, say.Errorf("a bound compares with METRIC of ROW").WithHint(hypothesisForm)
			}
			if bound.Metric = other.Metric; bound.Row == "" {
				bound.Row = other.Row
			}
		}
	}
	switch {
	case h.Left.Row == "" && h.Right.Row == "":
		return h, say.Errorf("both sides are numbers").WithHint(hypothesisForm)
	case h.Left.Row == "":
		return h, h.Left.convertNumber(h.Right.Metric)
	case h.Right.Row == "":
		return h, h.Right.convertNumber(h.Left.Metric)
	case h.Left.Metric.Metric.Unit != h.Right.Metric.Metric.Unit:
		return h, say.Errorf("%s and %s have different units", h.Left.Metric.Name, h.Right.Metric.Name).WithHint("compare a time with a time, a rate with a rate")
	}
	return h, nil
}

func parseSide(text string) (s Side, err error) {
	text = strings.TrimSpace(text)
	s.Times = 1
	if m := aNumber.FindStringSubmatch(text); m != nil {
		if s.Times, err = strconv.ParseFloat(m[1], 64); err != nil || !(s.Times > 0) {
			return s, say.Errorf("%.40q is no number above 0", text).WithHint(hypothesisForm)
		}
		s.unit = m[2]
		return s, nil
	}
	if m := factor.FindStringSubmatch(text); m != nil {
		if s.Times, err = strconv.ParseFloat(m[1], 64); err != nil || !(s.Times > 0) {
			return s, say.Errorf("%.40q is no number above 0", m[1]).WithHint(hypothesisForm)
		}
		text = m[2]
	}
	if m := aBound.FindStringSubmatch(text); m != nil {
		s.Bound, s.Row = m[1], m[2]
		return s, nil
	}
	m := ofRow.FindStringSubmatch(text)
	if m == nil {
		return s, say.Errorf("%.60q is neither METRIC of ROW nor a number", text).WithHint(hypothesisForm)
	}
	if s.Metric, err = parseFigure(m[1]); err != nil {
		return s, err
	}
	s.Row, s.Configuration = m[2], m[3]
	return s, nil
}

// convertNumber puts a number into the unit of the other side's metric.
func (s *Side) convertNumber(other Figure) error {
	want := other.Metric.Unit
	switch {
	case want == metric.Milliseconds && (s.unit == "ms" || s.unit == "s" || s.unit == "us"):
		d, err := time.ParseDuration(strconv.FormatFloat(s.Times, 'f', -1, 64) + s.unit)
		if err != nil {
			return say.Errorf("%v", err)
		}
		s.Times = d.Seconds() * 1e3
	case want == metric.Share && s.unit == "%":
		s.Times /= 100
	case want != metric.Milliseconds && want != metric.Share && (s.unit == "" || s.unit == "/s"):
	default:
		return say.Errorf("%s is compared with a number in another unit", other.Name).WithHint("times have ms or s, shares %, rates /s or nothing")
	}
	s.Metric = other
	return nil
}

// checkHypothesis says whether what it names is there.
func (p *Plan) checkHypothesis(h *Hypothesis) error {
	for _, s := range []Side{h.Left, h.Right} {
		if s.Row == "" {
			continue
		}
		if p.Row(s.Row) == nil {
			var names []string
			for _, r := range p.Rows {
				names = append(names, r.Name)
			}
			return say.Errorf("there is no row %s", s.Row).WithHint("the rows are " + strings.Join(names, ", "))
		}
		if s.Metric.Metric.Name == metric.Capacity && s.Row != p.Contract.Row {
			return say.Errorf("row %s has one load, and so no capacity", s.Row).WithHint("the capacity is that of row " + p.Contract.Row)
		}
		if s.Bound != "" {
			if err := p.checkBound(&s); err != nil {
				return err
			}
		}
		if s.Configuration == "" {
			continue
		}
		var names []string
		for _, c := range p.Configurations() {
			names = append(names, c.Name)
		}
		if !slices.Contains(names, s.Configuration) {
			return say.Errorf("there is no configuration %s", s.Configuration).WithHint(say.KnownHint(s.Configuration, names))
		}
	}
	return nil
}

// String is a side in words.
func (s Side) String() string {
	if s.Row == "" {
		return fmt.Sprintf("%g%s", s.Times, s.unit)
	}
	text := s.Metric.Name + " of " + s.Row
	if s.Bound != "" {
		text = s.Bound + " bound of " + s.Row
	}
	if s.Configuration != "" {
		text += " with " + s.Configuration
	}
	if s.Times != 1 {
		text = fmt.Sprintf("%g x %s", s.Times, text)
	}
	return text
}
