package compare

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/stats"
)

// Paired holds what the same requests show one by one, sent at the same times to both sides. What
// arrivals and lengths do to both sides cancels in the differences.
type Paired struct {
	Requests int         `json:"requests"` // that were due on both sides
	Rows     []PairedRow `json:"rows"`

	partly bool // one side answered requests that the other did not
}

// PairedRow is one latency: B less A of each request.
type PairedRow struct {
	Metric     string        `json:"metric"`
	Pairs      int           `json:"pairs"` // that have both values
	Mean       float64       `json:"mean_ms"`
	CI95       *[2]float64   `json:"ci95_ms"` // of the mean; of these two runs
	NoInterval result.Reason `json:"no_interval,omitzero"`
	P50        float64       `json:"p50_ms"` // of the differences
	P90        float64       `json:"p90_ms"`
}

// samePart is the share of the requests due in the windows of both sides that have to be the same.
const samePart = 0.9

const (
	leastPairs = 40 // from so many on their mean has an interval
	fewBatch   = 8  // pairs of a batch where they are few: neighbours are alike
)

// pairedRequests compares two runs request by request, nil where they did not send the same
// ones at the same times, or where their records are not there.
func pairedRequests(x, y *loadOfSide) *Paired {
	if x.load.Rate == nil || len(x.launches) != 1 || len(y.launches) != 1 || len(x.launches[0].points) != 1 || len(y.launches[0].points) != 1 {
		return nil
	}
	a, b := x.source.Run, y.source.Run
	if a.Seed != b.Seed || workloadKey(a) != workloadKey(b) {
		return nil
	}
	rowsA, rowsB := x.requestRows(), y.requestRows()
	p := &Paired{Rows: []PairedRow{}}
	p.partly = keepCommonRequests(rowsA, rowsB)
	if len(rowsA) == 0 || len(rowsB) == 0 {
		return nil
	}
	names := []metric.Name{metric.TTFT, metric.TPOT, metric.E2E}
	differences := make([][]float64, len(names))
	var took [2][]float64 // E2E of both sides, in ms
	due := make([]int64, 0, len(rowsA))
	for id := range rowsA {
		due = append(due, id)
	}
	slices.SortFunc(due, func(i, j int64) int { return cmp.Compare(rowsA[i].Due, rowsA[j].Due) })
	for _, id := range due {
		r, other := rowsA[id], rowsB[id]
		if other == nil || r.Due != other.Due || r.InputPlanned != other.InputPlanned || r.OutputPlanned != other.OutputPlanned {
			continue
		}
		p.Requests++
		before, after := metrics.OfRow(r), metrics.OfRow(other)
		p.partly = p.partly || before.OK() != after.OK()
		if !before.OK() || !after.OK() {
			continue
		}
		for i, name := range names {
			if ns := after.Value(name) - before.Value(name); !math.IsNaN(ns) {
				differences[i] = append(differences[i], ns/1e6)
			}
		}
		took[0], took[1] = append(took[0], before.Value(metric.E2E)/1e6), append(took[1], after.Value(metric.E2E)/1e6)
	}
	if float64(p.Requests) < samePart*float64(max(len(rowsA), len(rowsB))) {
		return nil
	}
	p.partly = p.partly || p.Requests < max(len(rowsA), len(rowsB))
	sa, sb := x.launches[0].points[0].Seconds, y.launches[0].points[0].Seconds
	window := 1e3 * (min(sa.Warmup+sa.Window, sb.Warmup+sb.Window) - max(sa.Warmup, sb.Warmup))
	caution := max(cautionOf(took[0], window), cautionOf(took[1], window))
	for i, name := range names {
		if len(differences[i]) > 0 {
			p.Rows = append(p.Rows, pairedRow(string(name), differences[i], caution))
		}
	}
	return p
}

// keepCommonRequests leaves of both sides the requests that were due within the windows of both:
// warm-ups that end by what a server shows are of unlike lengths. It reports whether there were
// others.
func keepCommonRequests(a, b map[int64]*record.Row) (left bool) {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	for _, rows := range []map[int64]*record.Row{a, b} {
		first, last := int64(math.MaxInt64), int64(math.MinInt64)
		for _, r := range rows {
			first, last = min(first, r.Due), max(last, r.Due)
		}
		from, to = max(from, first), min(to, last)
	}
	for _, rows := range []map[int64]*record.Row{a, b} {
		n := len(rows)
		maps.DeleteFunc(rows, func(_ int64, r *record.Row) bool { return r.Due < from || r.Due > to })
		left = left || len(rows) < n
	}
	return left
}

// addPaired gives the means of latencies the test that pairs allow, which is far sharper than
// that of two runs whose arrivals and lengths differ.
func (p *Pair) addPaired(x, y *loadOfSide, o Options) {
	var partly []string
	for _, paired := range p.Paired.Rows {
		if paired.CI95 == nil {
			continue
		}
		m := percentile(metric.All().Find(metric.Name(paired.Metric)), metric.Mean)
		at := slices.IndexFunc(p.Rows, func(r Row) bool { return r.Metric == m.name })
		if at < 0 {
			a, whyA := x.valuesByLaunch(m, p.A)
			b, whyB := y.valuesByLaunch(m, p.B)
			if whyA != "" || whyB != "" {
				continue
			}
			p.addTested(m, a, b, o)
			at = slices.IndexFunc(p.Rows, func(r Row) bool { return r.Metric == m.name })
		}
		if at < 0 {
			continue
		}
		p.Rows[at].testPaired(paired)
		if p.Paired.partly {
			partly = append(partly, m.name)
		}
	}
	if len(partly) > 0 {
		p.Notes = append(p.Notes, "the change of "+strings.Join(partly, ", ")+" is that of the requests that were due in both windows and that both sides answered")
	}
}

// testPaired takes over the change that pairs show, with its interval: of the same requests both.
func (r *Row) testPaired(p PairedRow) {
	if !(r.A > 0) {
		return
	}
	// No time falls below 0. A mean may end there all the same, where the interval is wide.
	const least = -1 + 1e-9
	change := func(ms float64) float64 { return max(ms/r.A, least) }
	back := func(ms float64) float64 { return r.scale.back(change(ms)) }
	r.Change = change(p.Mean)
	r.testWithin(back(p.Mean), stats.Interval{Lo: back(p.CI95[0]), Hi: back(p.CI95[1])})
}

// cautionOf is [stats.CautionOfTime] of requests that took so long, over a window in the same unit.
func cautionOf(took []float64, window float64) float64 {
	mean, sd := stats.Moments(took)
	if !(mean > 0) {
		return 1
	}
	return stats.CautionOfTime(window/mean, sd*sd/mean/mean)
}

// pairedRow summarizes differences in the order in which their requests were due. Near saturation
// they are alike for long, and a window may have missed the slow periods that make most of them. So
// their interval is as much wider than their batches say as those of single runs are: ofTime is by
// how much at least.
func pairedRow(name string, differences []float64, ofTime float64) PairedRow {
	n := len(differences)
	r := PairedRow{Metric: name, Pairs: n}
	batches := stats.NewBatches(int64(n), stats.FineBatches)
	for _, d := range differences {
		batches.Add(d)
		r.Mean += d / float64(n)
	}
	if mean, half, ok := batches.WidestInterval(level); ok {
		half *= stats.WideningFactor(ofTime, batches.MemoryLength())
		r.CI95 = &[2]float64{mean - half, mean + half}
	} else if m, ok := stats.BatchMeans(differences, n/fewBatch, level); ok && n >= leastPairs {
		alike := max(0, stats.AutoCorrelation(differences))
		half := (m.Hi - m.Lo) / 2 * stats.WideningFactor(ofTime, 2*alike/(1-alike)/float64(n))
		r.CI95 = &[2]float64{m.Mean - half, m.Mean + half}
	} else {
		r.NoInterval = result.Reason{Code: result.FewPairs}
	}
	sorted := slices.Sorted(slices.Values(differences))
	at := func(p float64) float64 { return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)] }
	r.P50, r.P90 = at(.5), at(.9)
	return r
}

// requestRows returns the requests that the one point of a side at its load had in its window, by
// their ids; nil where the records cannot be read.
func (x *loadOfSide) requestRows() map[int64]*record.Row {
	index := int32(-1)
	for i := range x.source.Run.Points {
		p := &x.source.Run.Points[i]
		if p.Verdict != result.Invalid && describeLoad(p.Load) == describeLoad(x.load) {
			index = int32(i)
		}
	}
	dir := x.source.Path
	if filepath.Base(dir) == rundir.Result {
		dir = filepath.Dir(dir)
	}
	if index < 0 || rundir.StateOf(dir) == rundir.Nothing {
		return nil
	}
	p := &x.source.Run.Points[index]
	from := int64(math.Round(p.Seconds.Warmup * 1e9))
	to := from + int64(math.Round(p.Seconds.Window*1e9))
	rows := map[int64]*record.Row{}
	for f, err := range record.Rows(dir) {
		if err != nil {
			return nil
		}
		if f.Point != index || f.Worker != 0 { // ids of several workers are not the same requests
			continue
		}
		for i := range f.Rows {
			if r := f.Rows[i]; r.Due >= from && r.Due < to && r.Question == "" {
				rows[r.ID] = &r
			}
		}
	}
	return rows
}
