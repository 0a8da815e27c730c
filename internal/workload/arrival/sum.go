package arrival

import (
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// sum is several processes at once, independent of each other.
type sum struct {
	parts  []law
	shares []float64 // of the rate, 1 in all
}

func parseSum(terms []string, files Files) (law, float64, error) {
	s := sum{}
	total := 0.0
	for _, term := range terms {
		share, inner, ok := strings.Cut(term, "*")
		if !ok || strings.Contains(share, "(") {
			return nil, 0, say.Errorf("%.60q has no share of the rate", term).WithHint("for example 0.8*poisson + 0.2*on-off(5s,20s)")
		}
		var a arguments
		w := a.value(strings.TrimSpace(share), "share", 1e-6, 1)
		if a.err != nil {
			return nil, 0, a.err
		}
		l, _, err := parseLaw(strings.TrimSpace(inner), files)
		if err != nil {
			return nil, 0, err
		}
		s.parts, s.shares, total = append(s.parts, l), append(s.shares, w), total+w
	}
	if math.Abs(total-1) > 1e-9 {
		return nil, 0, say.Errorf("the shares come to %s, not to 1", say.Decimal(total, 6))
	}
	return s, 0, nil
}

// Superposed is a process of several at once: that of a sum of laws.
type Superposed interface {
	Process
	// NextOf is the next due time, and which of them it is of, in the order of the law.
	NextOf() (due int64, part int)
}

func (s sum) process(rate float64, start uint64, from int64, _ bool) (Process, error) {
	m := &merged{}
	for i, l := range s.parts {
		r := rate * s.shares[i]
		if r < MinRate {
			return nil, say.Errorf("the rate of one of the laws is %s, want %s requests per second at least", say.Exact(r), say.Exact(MinRate))
		}
		p, err := l.process(r, seed.At(start, streamParts, uint64(i)), from, true)
		if err != nil {
			return nil, err
		}
		m.parts, m.due = append(m.parts, p), append(m.due, p.Next())
	}
	return m, nil
}

// merged gives the due times of several processes in order.
type merged struct {
	parts []Process
	due   []int64 // the next of each
}

func (m *merged) Next() int64 {
	due, _ := m.NextOf()
	return due
}

// NextOf implements [Superposed].
func (m *merged) NextOf() (due int64, part int) {
	for i := range m.due {
		if m.due[i] < m.due[part] {
			part = i
		}
	}
	due, m.due[part] = m.due[part], m.parts[part].Next()
	return due, part
}

func (s sum) shape() (e Expected) {
	for i, l := range s.parts {
		of := l.shape()
		e.Varies, e.Cycle = e.Varies || of.Varies, max(e.Cycle, of.Cycle)
		e.Swing += float64(s.shares[i]*s.shares[i]) * of.Swing // rates of their own: variances add
		for _, t := range of.Changes {
			if !slices.Contains(e.Changes, t) {
				e.Changes = append(e.Changes, t)
			}
		}
	}
	slices.Sort(e.Changes)
	return e
}

func (s sum) cv(rate float64) float64 {
	if s.shape().Varies {
		return math.NaN()
	}
	return cvOf(s, rate)
}

func (s sum) none(rate, x float64) float64 {
	p := 1.0
	for i, l := range s.parts {
		if p *= l.none(rate*s.shares[i], x); p < 1e-15 {
			return 0
		}
	}
	return p
}

func (s sum) variance(rate, x float64) (v float64) {
	for i, l := range s.parts {
		v += l.variance(rate*s.shares[i], x)
	}
	return v
}
