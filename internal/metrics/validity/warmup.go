package validity

import (
	"fmt"
	"math"

	"pitot/internal/results/record"
	"pitot/internal/stats"
)

// The load of a point begins on an empty server, perhaps a cold one, and takes
// its time to come round to a steady state. When it has is read from series
// that all metrics share, over equal time blocks. It is never chosen so that a
// reported metric comes out steady: that picks the runs that came out well.

const (
	// courseBlocks is the number of time blocks that a load is cut into.
	courseBlocks = 120
	// settledBlocks is the number of successive blocks that must look like the end.
	settledBlocks = 4
	// margin is the number of residence times that are left out after the load has settled.
	// strictMargin is the number where violations of an objective are counted. They come from the
	// longest queues, which form last.
	margin, strictMargin = 5, 10
	// keptBlocks is the number of blocks of two residence times that it takes to compare the halves
	// of what is kept.
	keptBlocks = 8
)

// Settling is when the load of a point came to its steady state. Times are
// nanoseconds since the origin.
type Settling struct {
	Settled int64  // from here on the series look like the end of the load
	Cut     int64  // and this is far enough behind for the window to begin
	Planned int64  // where the window was to begin
	Begin   int64  // where it does
	Why     string // why there is no steady state, "" if there is
	// Drift is the load in flight in the first half of what is kept and in the second, where that
	// is the reason.
	Drift [2]float64
}

// courseSeries are series over equal blocks of a load, from its origin to the end
// of its window. A block without a value is NaN.
type courseSeries struct {
	width    float64 // of a block, seconds
	inFlight []float64
	rest     [][]float64 // mean TTFT and TPOT of the requests due in a block
}

// firstSettledBlock is the first block from which on settledBlocks look like the end in
// every series: within two standard deviations of the mean of its last third.
// It is len(inFlight) if there is none.
func (c *courseSeries) firstSettledBlock() (first int) {
	for _, s := range append([][]float64{c.inFlight}, c.rest...) {
		first = max(first, settledSeries(s))
	}
	return first
}

func settledSeries(s []float64) int {
	var end []float64
	for _, x := range s[len(s)*2/3:] {
		if !math.IsNaN(x) {
			end = append(end, x)
		}
	}
	if len(end) < 2 { // nothing to compare with
		return 0
	}
	mean, sd := stats.Moments(end)
	near := max(2*sd, .01*math.Abs(mean)) // latencies may be constant
	run := 0
	for i, x := range s {
		if math.IsNaN(x) || math.Abs(x-mean) <= near {
			run++
		} else {
			run = 0
		}
		if run == settledBlocks {
			return i + 1 - run
		}
	}
	return len(s)
}

// halvesDrift gives what was in flight in both halves of what is kept, zeros if it did
// not move from the one to the other: by more than 3.5 standard errors and 10 %. Blocks
// are two residence times long, so that they hardly depend on each other; of
// fewer than keptBlocks it says nothing.
func (c *courseSeries) halvesDrift(from int, residence float64) (halves [2]float64) {
	per := max(1, int(math.Ceil(2*residence/c.width)))
	half := (len(c.inFlight) - from) / per / 2
	if half < keptBlocks/2 {
		return halves
	}
	from = len(c.inFlight) - 2*half*per
	side := func(from int) (mean, variance float64) {
		blocks := make([]float64, half)
		for i := range blocks {
			blocks[i], _ = stats.Moments(c.inFlight[from+i*per : from+(i+1)*per])
		}
		mean, sd := stats.Moments(blocks)
		return mean, sd * sd / float64(half)
	}
	a, va := side(from)
	b, vb := side(from + half*per)
	if d := math.Abs(b - a); d > 3.5*math.Sqrt(va+vb) && d > .1*max(a, b) {
		return [2]float64{a, b}
	}
	return halves
}

// findSteadyState finds the steady state of a course. residence is in seconds; margin
// is how many of them are left out behind the first settled block.
//
// The procedure and its limits were chosen by simulation of several queues:
// the bias of TTFT, the share that is thrown away where nothing had to be, and
// the runs that are refused for nothing.
func (c *courseSeries) findSteadyState(residence, margin float64) (settled, cut float64, halves [2]float64, why string) {
	blocks := len(c.inFlight)
	first := c.firstSettledBlock()
	settled = float64(first) * c.width
	cut = settled + margin*residence
	if 2*first > blocks {
		return settled, cut, halves, "the load settled too late, or not at all"
	}
	if halves = c.halvesDrift(min(int(math.Ceil(cut/c.width)), blocks/2), residence); halves != [2]float64{} {
		why = fmt.Sprintf("%.3g in flight in the first half of the window, %.3g in the second", halves[0], halves[1])
	}
	return settled, cut, halves, why
}

// Course holds how a load went from its origin to a time, by blocks.
type Course struct {
	end       int64
	any       bool
	until     int64 // the latest end
	inFlight  *inFlight
	ttft      [courseBlocks]average // of the requests due in a block
	tpot      [courseBlocks]average
	residence average // of those due in the last third, seconds
}

// average is a mean in the making.
type average struct{ sum, n float64 }

func (a *average) include(x float64) {
	if !math.IsNaN(x) {
		a.sum, a.n = a.sum+x, a.n+1
	}
}

// mean is NaN without values.
func (a *average) mean() float64 { return a.sum / a.n }

// NewCourse is that of a load without requests; the window ends at end.
func NewCourse(end int64) *Course {
	return &Course{end: end, until: end, inFlight: newInFlight(0, end, courseBlocks)}
}

// Add takes in a request with its TTFT and TPOT in nanoseconds, NaN where it has
// none.
func (c *Course) Add(r *record.Row, ttft, tpot float64) {
	v := visitOf(r)
	c.any = true
	c.until = max(c.until, v.done)
	c.inFlight.addVisit(&v)
	if v.due < 0 || v.due >= c.end {
		return
	}
	b := min(int(float64(v.due)/1e9/c.blockWidth()), courseBlocks-1)
	if v.end >= 0 {
		c.ttft[b].include(ttft / 1e9)
		c.tpot[b].include(tpot / 1e9)
		if v.due >= c.end/3*2 {
			c.residence.include(float64(v.end-v.due) / 1e9)
		}
	}
}

// blockWidth is that of a block, in seconds.
func (c *Course) blockWidth() float64 { return float64(c.end) / courseBlocks / 1e9 }

// gatheredSeries returns the gathered series.
func (c *Course) gatheredSeries() courseSeries {
	means := func(of *[courseBlocks]average) []float64 {
		list := make([]float64, courseBlocks)
		for b := range of {
			list[b] = of[b].mean()
		}
		return list
	}
	return courseSeries{width: c.blockWidth(), inFlight: c.inFlight.blockMeans(c.until), rest: [][]float64{means(&c.ttft), means(&c.tpot)}}
}

// FindSettling finds when the load had settled, and where the window begins then:
// where it was planned to, unless more than half of the load is left behind that.
// strict says that violations of an objective are counted. Without answers it
// is nil.
func (c *Course) FindSettling(point *Conditions, strict bool) *Settling {
	residence := c.residence.mean()
	if !c.any || !(residence > 0) {
		return nil
	}
	leave := float64(margin)
	if strict {
		leave = strictMargin
	}
	series := c.gatheredSeries()
	settled, cut, halves, why := series.findSteadyState(residence, leave)
	out := &Settling{Settled: int64(settled * 1e9), Cut: int64(cut * 1e9), Planned: point.T0, Begin: point.T0, Why: why, Drift: halves}
	// A window that counts requests keeps those that it was asked for.
	if why == "" && point.Requests == 0 && out.Cut > point.T0 && out.Cut <= point.T1/2 {
		out.Begin = out.Cut
	}
	return out
}
