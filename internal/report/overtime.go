package report

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/data/result"
	"pitot/internal/say"
)

// What became of a load that changes with time or comes in bursts.

// overTime makes the table of blocks of the window, and remarks on how the target
// followed jumps of the rate and what its arrivals were to be like.
func (m *PointModel) overTime(p *result.Point) {
	if text := ArrivalsText(p.Load.Expected); text != "" {
		m.Remarks = append(m.Remarks, text)
	}
	o := p.OverTime
	if o == nil {
		return
	}
	name := strings.ToUpper(say.Plain(o.Metric))
	t := &Table{Head: []string{"over time", "due/s", "in flight", name + " p50, ms", "p90", "max"}, Spare: []int{5}}
	number := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return say.Quantity(*x)
	}
	for i, b := range o.Blocks {
		from := float64(i) * o.BlockS
		t.Rows = append(t.Rows, []string{
			say.Decimal(from, 1) + "–" + say.Decimal(from+o.BlockS, 1) + " s", say.Quantity(b.DuePerS), number(b.InFlight), number(b.P50), number(b.P90), number(b.Max),
		})
	}
	m.OverTime = t
	for _, r := range o.Reactions {
		if r.Before == nil || r.After == nil || r.Peak == nil {
			continue
		}
		text := fmt.Sprintf("the rate jumped at %s s of the window: %s went from %s to %s ms (medians)", say.Decimal(r.AtS, 1), name, say.Quantity(*r.Before), say.Quantity(*r.After))
		if *r.Peak > 1.2**r.After {
			text += fmt.Sprintf(", over %s ms %s behind the jump", say.Quantity(*r.Peak), say.Seconds(r.PeakS))
		}
		switch {
		case r.SettledS == nil:
			text += "; it was still changing when the rate changed again or the window ended"
		case *r.SettledS == 0:
			text += "; at once"
		default:
			text += fmt.Sprintf("; there after %s", say.Seconds(*r.SettledS))
		}
		m.Remarks = append(m.Remarks, text)
	}
}

// ArrivalsText says what an arrival process makes one expect.
func ArrivalsText(x *result.Arrivals) string {
	if x == nil {
		return ""
	}
	var parts []string
	if x.CV != nil {
		parts = append(parts, "gaps with CV "+say.Decimal(*x.CV, 2))
	}
	var counts, lengths []string
	for _, s := range []string{"1", "10", "60"} {
		if d, ok := x.Dispersion[s]; ok {
			counts, lengths = append(counts, say.Decimal(d, 2)), append(lengths, s)
		}
	}
	if len(slices.Compact(slices.Clone(counts))) == 1 && len(counts) > 1 {
		counts = counts[:1]
	}
	if len(counts) > 0 {
		parts = append(parts, fmt.Sprintf("counts in %s s with dispersion %s", strings.Join(lengths, ", "), strings.Join(counts, ", ")))
	}
	switch {
	case !x.Varies:
		return "arrivals expected: " + strings.Join(parts, "; ")
	case len(parts) == 0:
		return rateVaries
	case x.CV != nil && *x.CV == 1 && len(counts) == 1:
		return rateVaries + "; about the rate, arrivals are a Poisson process"
	}
	return rateVaries + "; " + strings.Join(parts, "; ")
}

// rateVaries begins what is said of a load without a steady state.
const rateVaries = "the rate changes with time: no steady state, and no interval for one"
