package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// What became of a load that changes with time or comes in bursts.

// overTime makes the table of blocks of the window, and remarks on how the target
// followed jumps of the rate and what its arrivals were to be like.
func (m *PointModel) overTime(p *result.Point) {
	if x := p.Load.Expected; x != nil {
		text := ArrivalsText(x)
		if !x.Varies {
			text = "arrivals expected: " + text
		}
		m.Remarks.addText(text)
	}
	o := p.OverTime
	if o == nil {
		return
	}
	name := strings.ToUpper(o.Metric)
	t := &Table{Head: []string{"over time", "due/s", "in flight", name + " p50, ms", "p90", "max"}, Spare: []int{5}}
	long := slices.ContainsFunc(o.Blocks, func(b result.Block) bool { return b.TPOT != nil || b.P95 != nil })
	if long {
		t = &Table{Head: []string{"over time", "due/s", "in flight", name + " p50, ms", "p90", "p95", "TPOT p50"}, Spare: []int{4}}
	}
	if o.Began != "" {
		t.Head[0] = "time of day"
	}
	for i, b := range o.Blocks {
		row := []string{blockTime(o, i), say.Quantity(b.DuePerS), say.Optional(b.InFlight), say.Optional(b.P50), say.Optional(b.P90)}
		if long {
			row = append(row, say.Optional(b.P95), say.Optional(b.TPOT))
		} else {
			row = append(row, say.Optional(b.Max))
		}
		t.AddRow(row...)
	}
	m.OverTime = t
	m.addSlowPeriods(o)
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
		m.Remarks.addText(text)
	}
}

// blockTime is when a block was: by the clock of the client's machine, with the day where the
// window has several; else since the window began.
func blockTime(o *result.OverTime, block int) string {
	from, to := float64(block)*o.BlockS, float64(block+1)*o.BlockS
	began, err := time.Parse(time.RFC3339, o.Began)
	switch {
	case err != nil && to-from < 60:
		return say.Decimal(from, 1) + "–" + say.Decimal(to, 1) + " s"
	case err != nil:
		return say.Decimal(from/60, 1) + "–" + say.Decimal(to/60, 1) + " min"
	}
	layout := "15:04"
	if float64(len(o.Blocks))*o.BlockS > 24*60*60 {
		layout = "2 Jan 15:04"
	}
	at := func(s float64) string { return began.Add(time.Duration(s * 1e9)).Format(layout) }
	return at(from) + "–" + at(to)
}

// addSlowPeriods remarks on the times at which the server was slower than chance makes one that is
// always alike.
func (m *PointModel) addSlowPeriods(o *result.OverTime) {
	var parts texts
	for _, d := range o.SlowerBlocks() {
		parts.addFormat("%s p50 %s ms at %s, %s× the %s ms at %s",
			strings.ToUpper(d.Metric), say.Quantity(d.Most), blockTime(o, d.Slowest), say.Decimal(d.Most/d.Least, 1), say.Quantity(d.Least), blockTime(o, d.Quickest))
	}
	if len(parts) > 0 {
		m.Remarks.addText("the server was slower at some times than at others: " + strings.Join(parts, "; ") + " (of servers that are always alike " + falseLevels + " runs show as much)")
	}
	if !o.Unknown.IsNone() {
		m.Remarks.addText("whether the server slowed down at times is unknown: " + ReasonText(o.Unknown))
	}
}

// falseLevels is the rate at which a test says that a server differs that is always alike. It is
// the rate at the highest utilisation that was tried: `go run ./bench/stat -only levels`. What a
// test says of a single run is far less, and not to be believed of queues near what is served.
const falseLevels = "at most 3 in 100"

// ArrivalsText says what an arrival process makes one expect.
func ArrivalsText(x *result.Arrivals) string {
	if x == nil {
		return ""
	}
	var parts texts
	if x.CV != nil {
		parts.addText("gaps with CV " + say.Decimal(*x.CV, 2))
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
		parts.addFormat("counts in %s s with dispersion %s", strings.Join(lengths, ", "), strings.Join(counts, ", "))
	}
	switch {
	case !x.Varies:
		return strings.Join(parts, "; ")
	case len(parts) == 0:
		return rateVaries
	case x.CV != nil && *x.CV == 1 && len(counts) == 1:
		return rateVaries + "; about the rate, arrivals are a Poisson process"
	}
	return rateVaries + "; " + strings.Join(parts, "; ")
}

// rateVaries begins what is said of a load without a steady state.
const rateVaries = "the rate changes with time: no steady state, and no interval for one"
