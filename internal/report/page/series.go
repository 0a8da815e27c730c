package page

import (
	"cmp"
	"container/heap"
	"errors"
	"io/fs"
	"math"
	"math/bits"
	"runtime/debug"
	"slices"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
	"pitot/internal/telemetry"
)

// Series holds what happened at a point, in a form that can be drawn. Its size is bounded for any
// number of requests. What is too much is binned, thinned at exact ranks or sampled, and says so.
// Times are seconds since the point's origin, latencies milliseconds.
type Series struct {
	From, To, End float64 // the window and the last stamp
	Bin           float64 // width of a bin of time

	// By bin, from any request: requests that came due and that ended well or
	// did not, and tokens, all per second; the time mean of requests in flight.
	Due, Served, Lost, Tokens, InFlight []float64

	Requests int64 // of any time
	Chunks   int64

	First  Dots            // TTFT by when the request was due, of any time
	Errors map[string]Dots // by error class: when it was reported, and how long after due

	// What the server and its GPUs told, by when: requests that run and that wait, the
	// share of the KV cache in use, tokens a step since the time before, watts.
	Running, Waiting, KVUse, StepTokens, Power Dots

	// Cumulative distributions over the cohort, by the name that the summary
	// has in run.json.
	Spread map[string]Spread

	Input, Output Lengths
	Heat          Heat
	Slow, Random  Traces
}

// Dots are points of a scatter. Of is how many there were before thinning.
type Dots struct {
	X, Y []float64
	Of   int
}

// Spread is a cumulative distribution: Share of N samples is at most Value. The
// values are order statistics, thinned towards the middle; those of gaps are the
// upper edges of bins of 1.6 %, at which the share is exact. Samples that were not
// followed to their end count in N and have no value.
type Spread struct {
	Value, Share []float64
	N            int64
}

// Lengths are tokens planned and served, counted in bins of equal width.
type Lengths struct {
	From, Width     float64 // of the first bin
	Planned, Served []int64
	Alike           bool  // all served as planned, and all planned alike
	Only            int64 // then this many
}

// Heat counts tokens by when their request was due and how long after that they
// came: cell [y*NX+x] covers due times from x·DX s and ages from y·DY ms on.
type Heat struct {
	NX    int     `json:"nx"`
	NY    int     `json:"ny"`
	DX    float64 `json:"dx"`
	DY    float64 `json:"dy"`
	Cells []int64 `json:"cells"`
}

// Traces are requests in full.
type Traces struct {
	Wanted   int
	Requests []Trace
}

// Trace is one request. Its chunks are counted from due, in nanoseconds.
type Trace struct {
	ID              int64
	Due, Sent, Done int64 // nanoseconds since the origin; Unset if it never was
	Chunks          []int64
	Outcome         record.Outcome
	Error           string
	rank            uint64
}

// detail bounds the size of a series.
type detail struct {
	bins, dots, ranks, heatX, heatY int
	traces, stamps                  int // requests in full, and their chunks at most
}

// detailOf returns the detail that there is room for on a page of a number of points.
func detailOf(points int) detail {
	switch {
	case points > 20:
		return detail{bins: 60, dots: 120, ranks: 30, heatX: 24, heatY: 16, traces: 8, stamps: 2000}
	case points > 2:
		return detail{bins: 75, dots: 240, ranks: 50, heatX: 40, heatY: 24, traces: 20, stamps: 5000}
	}
	return detail{bins: 150, dots: 3000, ranks: 200, heatX: 96, heatY: 48, traces: 200, stamps: 300_000}
}

// ReadSeries reads the records of a run once and gives what is to be drawn of
// each point. What was read before an error counts: the series come with it.
func ReadSeries(dir string, run *result.Run) ([]*Series, error) {
	if len(run.Points) == 0 {
		return nil, nil
	}
	size := detailOf(len(run.Points))
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // little is thrown away, and much kept
	store := spill.New(dir, seriesMemory)
	defer store.Close()
	gathers := make([]*gather, len(run.Points))
	for i := range gathers {
		gathers[i] = newGather(&run.Points[i], size, store)
	}
	var broken error
	for f, err := range record.FrameTimes(dir) {
		if err != nil {
			broken = err
			break
		}
		if int(f.Point) < len(gathers) && f.Point >= 0 {
			gathers[f.Point].addFrame(&f)
		}
	}
	if errors.Is(broken, fs.ErrNotExist) {
		return nil, broken
	}
	var list []*Series
	for _, g := range gathers {
		list = append(list, g.buildSeries())
	}
	return list, errors.Join(broken, store.Err())
}

// seriesMemory is the number of bytes of latencies that stay in memory. The rest goes to a file.
const seriesMemory = 64 << 20

// gather takes in the records of one point.
type gather struct {
	size        detail
	t0, t1, end int64
	bin         int64 // nanoseconds

	definitions []metrics.Definition // whose distributions are drawn
	gatherer    *metrics.Gatherer
	stream      metrics.Stream // of the request whose row has come
	streams     record.Join[[]metrics.Stamp]

	due, served, lost []int64
	tokens            []float64
	partial, whole    []int64 // of what was in flight: time in bins begun or left, and bins passed through
	requests, chunks  int64

	first  dots
	errors map[string]*dots
	spread map[string]*sample    // by key, of metrics of requests
	gaps   map[string]*gapCounts // of metrics of gaps
	in     [2]lengthCounts       // planned, served
	out    [2]lengthCounts
	heat   heat
	slow   top
	random top
	told   telemetry.Samples // what servers and GPUs told
}

type dot struct{ x, y int64 }

// sample is a metric of the cohort: nanoseconds, or nanoseconds a token.
type sample struct {
	values *spill.Numbers
	longer int64 // not followed to their end
}

// addValue takes in the metric of one request, if it has it.
func (s *sample) addValue(x float64, is metrics.State) {
	switch is {
	case metrics.Known:
		s.values.Add(x)
	case metrics.Longer:
		s.longer++
	}
}

func newGather(p *result.Point, size detail, store *spill.Store) *gather {
	const longest = 1e8 // seconds; what is longer is damage
	ns := func(s float64) int64 {
		if !(s > 0) { // or no number at all
			return 0
		}
		return int64(math.Round(min(s, longest) * 1e9))
	}
	g := &gather{
		size: size, t0: ns(p.Seconds.Warmup),
		first: dots{most: size.dots}, errors: map[string]*dots{}, gaps: map[string]*gapCounts{}, spread: map[string]*sample{},
		gatherer: metrics.NewGatherer(nil),
	}
	g.t1 = g.t0 + ns(p.Seconds.Window)
	g.end = max(g.t1+ns(p.Seconds.Drain), 1)
	g.bin = roundBin(g.end, size.bins)
	n := int((g.end-1)/g.bin) + 1
	g.due, g.served, g.lost, g.tokens = make([]int64, n), make([]int64, n), make([]int64, n), make([]float64, n)
	g.partial, g.whole = make([]int64, n), make([]int64, n+1)
	for _, d := range metrics.Definitions() {
		switch {
		case d.Show == metric.Data || d.Unit != metric.Milliseconds:
			continue
		case d.Request != nil:
			g.spread[d.Key] = &sample{values: spill.NewNumbers(store)}
		case d.Gaps != nil:
			g.gaps[d.Key] = newGapCounts()
		default:
			continue
		}
		g.definitions = append(g.definitions, d)
	}
	g.heat = newHeat(g.end, size)
	g.slow.size, g.random.size = size.traces, size.traces
	g.streams = record.Join[[]metrics.Stamp]{
		Chunk: func(stamps *[]metrics.Stamp, c *record.Chunk) {
			*stamps = append(*stamps, metrics.Stamp{T: c.T, Tokens: c.Tokens, Choice: c.Choice})
		},
		Row:   func(r *record.Row, stamps *[]metrics.Stamp) { g.addRow(r, *stamps) },
		Reset: func(stamps *[]metrics.Stamp) { *stamps = (*stamps)[:0] },
	}
	return g
}

// measureRequest returns the request that a row and its events describe, by times as they were
// stamped.
func (g *gather) measureRequest(r *record.Row, chunks []metrics.Stamp) metrics.Request {
	g.stream.Reset()
	var c record.Chunk
	for i := range chunks {
		s := &chunks[i]
		c.T, c.Earliest, c.Tokens, c.Choice = s.T, s.T, s.Tokens, s.Choice
		g.gatherer.Chunk(&g.stream, &c)
	}
	return g.gatherer.Request(&g.stream, r)
}

// roundBin is the least round width of which at most n cover a time.
func roundBin(end int64, n int) int64 {
	for unit := int64(1e6); ; unit *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if end <= k*unit*int64(n) {
				return k * unit
			}
		}
	}
}

func (g *gather) binOf(t int64) int { return int(min(max(t, 0), g.end-1) / g.bin) }

func (g *gather) inWindow(t int64) bool { return t >= g.t0 && t < g.t1 }

func (g *gather) addFrame(f *record.Frame) {
	g.chunks += int64(len(f.Chunks))
	g.streams.Add(f)
	for i := range f.Samples {
		if x := &f.Samples[i]; x.Source != record.SourceClient && x.Source != record.SourceHost {
			g.told.Add(x.Source, telemetry.Signal(x.Name), x.T, x.Value)
		}
	}
}

// addRow takes in a request with its chunks.
func (g *gather) addRow(r *record.Row, chunks []metrics.Stamp) {
	if g.requests++; r.LostWithWorker() {
		return
	}
	q := g.measureRequest(r, chunks)
	g.countFlow(r, chunks, &g.stream.Events)
	if _, is := q.TTFT(metrics.Response, g.end); is == metrics.Known {
		g.first.addDot(dot{r.Due, r.FirstToken - r.Due})
	}
	// What was under way when the load ended and belonged to no window was let go.
	if r.Outcome != record.OK && (r.Outcome == record.Failed || r.Due < g.t1) {
		when := r.Done
		if when < 0 {
			when = r.Due
		}
		if g.errors[r.Error] == nil {
			g.errors[r.Error] = &dots{most: max(20, g.size.dots/10)}
		}
		g.errors[r.Error].addDot(dot{when, when - r.Due})
	}
	g.heat.addRequest(r.Due, chunks)
	if !g.inWindow(r.Due) {
		return
	}
	g.addCohort(r, &q)
	done := r.Done
	if done < 0 {
		done = g.end
	}
	trace := func(rank uint64) Trace {
		return Trace{ID: r.ID, Due: r.Due, Sent: r.Sent, Done: r.Done, Outcome: r.Outcome, Error: r.Error, rank: rank}
	}
	if rank := uint64(max(0, done-r.Due)); g.slow.admitsRank(rank) {
		g.slow.addTrace(trace(rank), chunks)
	}
	if rank := mixBits(uint64(r.ID)); g.random.admitsRank(rank) {
		g.random.addTrace(trace(rank), chunks)
	}
}

// countFlow counts by stamp whatever falls in a bin, from any request.
func (g *gather) countFlow(r *record.Row, chunks []metrics.Stamp, events *metrics.Events) {
	if r.Due >= 0 && r.Due < g.end {
		g.due[g.binOf(r.Due)]++
	}
	done := r.Done
	switch {
	case done < 0:
		done = g.end
	case r.Outcome == record.OK:
		g.served[g.binOf(done)]++
	case r.Outcome == record.Failed || r.Due < g.t1:
		g.lost[g.binOf(done)]++
	}
	if from, to := max(r.Due, 0), min(done, g.end); from < to {
		a, b := g.binOf(from), g.binOf(to)
		if a == b {
			g.partial[a] += to - from
		} else {
			g.partial[a] += int64(a+1)*g.bin - from
			g.partial[b] += to - int64(b)*g.bin
			g.whole[a+1]++
			g.whole[b]--
		}
	}
	switch {
	case r.CompletionTokens >= 0 && len(chunks) == 0:
		end := r.LastToken
		if end < 0 {
			end = r.Done
		}
		if end >= 0 {
			g.tokens[g.binOf(end)] += float64(r.CompletionTokens)
		}
	case len(chunks) > 0:
		each, share := 0.0, 1.0 // tokens of a chunk: the usage spread over them, else as reported
		switch {
		case r.CompletionTokens >= 0 && events.Blind:
			each = float64(r.CompletionTokens) / float64(len(chunks))
		case r.CompletionTokens >= 0:
			share = float64(r.CompletionTokens) / float64(events.Tokens)
		case events.Blind:
			each = 1
		}
		for i := range chunks {
			c := &chunks[i]
			if each > 0 {
				g.tokens[g.binOf(c.T)] += each
			} else {
				g.tokens[g.binOf(c.T)] += share * float64(c.Tokens)
			}
		}
	}
}

// addCohort adds a request that was due in the window to the distributions.
func (g *gather) addCohort(r *record.Row, q *metrics.Request) {
	for i := range g.definitions {
		switch d := &g.definitions[i]; {
		case d.Request != nil:
			g.spread[d.Key].addValue(d.Request(q, g.end))
		case r.Outcome == record.OK || r.Outcome == record.Cut:
			d.Gaps(&g.stream, r, g.gaps[d.Key].countGaps)
		}
	}
	g.in[0].countLength(r.InputPlanned)
	g.out[0].countLength(r.OutputPlanned)
	if r.Outcome == record.OK {
		g.in[1].countLength(r.PromptTokens)
		g.out[1].countLength(q.OutputTokens())
	}
}

// lengthCounts holds the number of requests for each length in tokens.
type lengthCounts map[int32]int64

// countLength takes in a length, if it is known.
func (l *lengthCounts) countLength(n int32) {
	if n < 0 {
		return
	}
	if *l == nil {
		*l = lengthCounts{}
	}
	(*l)[n]++
}

// mixBits puts numbers in an order of its own (splitmix64's finaliser,
// Steele, Lea and Flood 2014): the first of it are a sample at random that is
// the same every time.
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// buildSeries returns the gathered series.
func (g *gather) buildSeries() *Series {
	s := &Series{
		From: float64(g.t0) / 1e9, To: float64(g.t1) / 1e9, End: float64(g.end) / 1e9, Bin: float64(g.bin) / 1e9,
		Requests: g.requests, Chunks: g.chunks, Errors: map[string]Dots{}, Spread: map[string]Spread{},
	}
	var through int64
	for i := range g.due {
		width := float64(min(g.bin, g.end-int64(i)*g.bin))
		through += g.whole[i]
		s.InFlight = append(s.InFlight, roundTo(float64(g.partial[i])/width+float64(through)*float64(g.bin)/width, 3))
		s.Due = append(s.Due, roundTo(float64(g.due[i])/width*1e9, 3))
		s.Served = append(s.Served, roundTo(float64(g.served[i])/width*1e9, 3))
		s.Lost = append(s.Lost, roundTo(float64(g.lost[i])/width*1e9, 3))
		s.Tokens = append(s.Tokens, roundTo(g.tokens[i]/width*1e9, 1))
	}
	s.First = g.first.thin()
	for class, dots := range g.errors {
		s.Errors[class] = dots.thin()
	}
	for name, x := range g.spread {
		if n := x.values.Len(); n > 0 {
			s.Spread[name] = thinRanks(x.values, n+x.longer, g.size.ranks)
		}
		x.values.Free()
	}
	for name, x := range g.gaps {
		if x.n > 0 {
			s.Spread[name] = x.gapSpread(g.size.ranks)
		}
	}
	g.toldSeries(s)
	s.Input, s.Output = lengthsOf(g.in), lengthsOf(g.out)
	s.Heat = g.heat.buildHeat()
	s.Slow, s.Random = g.slow.slowestTraces(g.size.stamps), g.random.slowestTraces(g.size.stamps)
	return s
}

// toldSeries adds the series that the server reported.
func (g *gather) toldSeries(s *Series) {
	most := 4 * g.size.bins
	gauge := func(signal telemetry.Signal, digits int) Dots {
		return thinSamples(g.told.SamplesBetween(signal, 0, g.end+1), most, digits)
	}
	s.Running, s.Waiting, s.KVUse = gauge(telemetry.Running, 2), gauge(telemetry.Waiting, 2), gauge(telemetry.KVUse, 4)
	s.Power = gauge(telemetry.GPUPower, 1)
	tokens, steps := g.told.SamplesBetween(telemetry.StepTokens, 0, g.end+1), g.told.SamplesBetween(telemetry.Steps, 0, g.end+1)
	var each []telemetry.Sample
	for i := 1; i < min(len(tokens), len(steps)); i++ {
		n, of := tokens[i].Value-tokens[i-1].Value, steps[i].Value-steps[i-1].Value
		if tokens[i].T == steps[i].T && of > 0 && n >= 0 {
			each = append(each, telemetry.Sample{T: tokens[i].T, Value: n / of})
		}
	}
	s.StepTokens = thinSamples(each, most, 1)
}

// thinSamples are samples over time; of too many each so many are one, their mean.
func thinSamples(samples []telemetry.Sample, most, digits int) (d Dots) {
	d.Of = len(samples)
	each := (len(samples) + most - 1) / max(most, 1)
	for len(samples) > 0 {
		n := min(each, len(samples))
		sum := 0.
		for _, x := range samples[:n] {
			sum += x.Value
		}
		d.X, d.Y = append(d.X, roundTo(float64(samples[n-1].T)/1e9, 3)), append(d.Y, roundTo(sum/float64(n), digits))
		samples = samples[n:]
	}
	return d
}

func roundTo(x float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(x*unit) / unit
}

// dots are those of a scatter that may be drawn, of as many as there were.
type dots struct {
	most int
	of   int
	list []dot
}

// addDot takes in a dot.
func (d *dots) addDot(x dot) {
	d.of++
	if d.list = append(d.list, x); len(d.list) >= 8*d.most {
		d.list = d.list[:d.selectDots(d.most)]
	}
}

// selectDots puts the highest first, a quarter of most, and behind them others in an
// order of chance, and gives how many of these are so many.
func (d *dots) selectDots(others int) int {
	slices.SortFunc(d.list, func(a, b dot) int { return cmp.Or(cmp.Compare(b.y, a.y), cmp.Compare(a.x, b.x)) })
	high := min(d.most/4, len(d.list))
	slices.SortFunc(d.list[high:], func(a, b dot) int {
		return cmp.Or(cmp.Compare(mixBits(uint64(a.x)), mixBits(uint64(b.x))), cmp.Compare(a.y, b.y))
	})
	return min(high+others, len(d.list))
}

// thin keeps so many dots: the highest quarter, and others at random.
func (d *dots) thin() Dots {
	out, list := Dots{Of: d.of}, d.list
	if len(list) > d.most {
		list = list[:d.selectDots(d.most-d.most/4)]
	}
	slices.SortFunc(list, func(a, b dot) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	for _, d := range list {
		out.X = append(out.X, roundTo(float64(d.x)/1e9, 3))
		out.Y = append(out.Y, roundTo(float64(d.y)/1e6, 3))
	}
	return out
}

// thinRanks thins a sample of n, of which these values are known, to about so many order
// statistics: evenly, with all of the usual percentiles and more of the tail.
func thinRanks(values *spill.Numbers, n int64, even int) Spread {
	s := Spread{N: n}
	known := values.Len()
	list := slices.DeleteFunc(rankList(n, even), func(k int64) bool { return k < 1 || k > known })
	if len(list) == 0 || list[len(list)-1] < known {
		list = append(list, known)
	}
	values.Seek(list...)
	for _, k := range list {
		s.Value = append(s.Value, values.OrderStatistic(k)/1e6)
		s.Share = append(s.Share, float64(k)/float64(n))
	}
	return s
}

// rankList gives ranks from 1 to n: ⌈np⌉ for p in even steps, for the usual
// percentiles, and in equal steps of log(1 − p) above them.
func rankList(n int64, even int) []int64 {
	list := []int64{1, n}
	addRank := func(p float64) { list = append(list, stats.Rank(n, p)) }
	for i := 1; i < even; i++ {
		addRank(float64(i) / float64(even))
	}
	for _, p := range []float64{.5, .9, .95, .99, .999} {
		addRank(p)
	}
	for over := .1; over*float64(n) >= 1; over *= .83 {
		addRank(1 - over)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// gapCounts counts gaps between arrivals in bins of 1.6 % width.
type gapCounts struct {
	counts []int64
	n      int64
	longer int64 // those that a cut request was in
}

// A bin is the exponent of two and the six bits behind the leading one.
const gapBits = 6

func newGapCounts() *gapCounts { return &gapCounts{counts: make([]int64, 64<<gapBits)} }

func gapBin(ns int64) int {
	if ns < 1<<gapBits {
		return int(ns)
	}
	e := bits.Len64(uint64(ns)) - 1 - gapBits
	return (e+1)<<gapBits | int(ns>>e)&(1<<gapBits-1)
}

// gapEdge is the largest gap of a bin.
func gapEdge(bin int) int64 {
	if bin < 1<<gapBits {
		return int64(bin)
	}
	e := bin>>gapBits - 1
	return (int64(1<<gapBits|bin&(1<<gapBits-1))+1)<<e - 1
}

// countGaps counts a gap, if it came to its end.
func (g *gapCounts) countGaps(ns int64, is metrics.State) {
	switch is {
	case metrics.Known:
		g.counts[gapBin(ns)]++
		g.n++
	case metrics.Longer:
		g.longer++
	}
}

// gapSpread is the distribution at the edges of the bins.
func (g *gapCounts) gapSpread(even int) Spread {
	s := Spread{N: g.n + g.longer}
	list := rankList(s.N, even)
	var upTo int64
	for bin, n := range g.counts {
		if n == 0 {
			continue
		}
		upTo += n
		reached := upTo == g.n
		for len(list) > 0 && list[0] <= upTo {
			list, reached = list[1:], true
		}
		if reached {
			s.Value = append(s.Value, float64(gapEdge(bin))/1e6)
			s.Share = append(s.Share, float64(upTo)/float64(s.N))
		}
	}
	return s
}

// maxLengthBins bounds a histogram of lengths.
const maxLengthBins = 40

func lengthsOf(of [2]lengthCounts) Lengths {
	lo, hi := int32(math.MaxInt32), int32(0)
	for _, list := range of {
		for n := range list {
			lo, hi = min(lo, n), max(hi, n)
		}
	}
	if lo > hi {
		return Lengths{}
	}
	width := max(1, int64(math.Ceil(float64(int64(hi)-int64(lo)+1)/maxLengthBins)))
	n := (int64(hi)-int64(lo))/width + 1
	l := Lengths{From: float64(lo), Width: float64(width)}
	for i, to := range []*[]int64{&l.Planned, &l.Served} {
		if len(of[i]) == 0 {
			continue
		}
		*to = make([]int64, n)
		for x, n := range of[i] {
			(*to)[(int64(x)-int64(lo))/width] += n
		}
	}
	l.Alike, l.Only = lo == hi && len(of[0]) > 0 && len(of[1]) > 0, int64(lo)
	return l
}

// heat counts tokens while the ages are not known yet: its rows grow wider as
// later tokens come.
type heat struct {
	nx, ny int
	dx, dy int64 // nanoseconds
	cells  []int64
	any    bool
}

func newHeat(end int64, size detail) heat {
	dx := roundBin(end, size.heatX)
	nx := int((end-1)/dx) + 1
	return heat{nx: nx, ny: size.heatY, dx: dx, dy: 1e6, cells: make([]int64, nx*size.heatY)}
}

func (h *heat) addRequest(due int64, chunks []metrics.Stamp) {
	if len(chunks) == 0 || due < 0 {
		return
	}
	h.any = true
	x := min(int(due/h.dx), h.nx-1)
	for (chunks[len(chunks)-1].T-due)/h.dy >= int64(h.ny) {
		h.widen()
	}
	for i := range chunks {
		y := min(max((chunks[i].T-due)/h.dy, 0), int64(h.ny-1))
		h.cells[int(y)*h.nx+x] += int64(max(chunks[i].Tokens, 1))
	}
}

// widen makes each row twice as wide.
func (h *heat) widen() {
	for y := range h.ny {
		for x := range h.nx {
			n := int64(0)
			for k := 2 * y; k < min(2*y+2, h.ny); k++ {
				n += h.cells[k*h.nx+x]
			}
			h.cells[y*h.nx+x] = n
		}
	}
	h.dy *= 2
}

func (h *heat) buildHeat() Heat {
	if !h.any {
		return Heat{}
	}
	ny := h.ny
	for ny > 1 && !slices.ContainsFunc(h.cells[(ny-1)*h.nx:ny*h.nx], func(n int64) bool { return n > 0 }) {
		ny--
	}
	return Heat{NX: h.nx, NY: ny, DX: float64(h.dx) / 1e9, DY: float64(h.dy) / 1e6, Cells: h.cells[:ny*h.nx]}
}

// top keeps the requests of highest rank, as a heap with the lowest on top.
type top struct {
	size int
	list []Trace
}

func (t *top) Len() int           { return len(t.list) }
func (t *top) Less(i, j int) bool { return t.list[i].rank < t.list[j].rank }
func (t *top) Swap(i, j int)      { t.list[i], t.list[j] = t.list[j], t.list[i] }
func (t *top) Push(x any)         { t.list = append(t.list, x.(Trace)) }
func (t *top) Pop() any           { return nil } // what is on top is replaced

func (t *top) admitsRank(rank uint64) bool {
	return len(t.list) < t.size || t.size > 0 && rank > t.list[0].rank
}

func (t *top) addTrace(r Trace, chunks []metrics.Stamp) {
	full := len(t.list) == t.size
	if full {
		r.Chunks = t.list[0].Chunks[:0] // its memory
	}
	for i := range chunks {
		r.Chunks = append(r.Chunks, max(0, chunks[i].T-r.Due))
	}
	if full {
		t.list[0] = r
		heap.Fix(t, 0)
	} else {
		heap.Push(t, r)
	}
}

// slowestTraces are the requests kept, slowest first, as far as their chunks fit in.
func (t *top) slowestTraces(stamps int) Traces {
	out := Traces{Wanted: len(t.list)}
	slices.SortFunc(t.list, func(a, b Trace) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.ID, b.ID)) })
	for _, r := range t.list {
		if stamps -= len(r.Chunks); stamps < 0 && len(out.Requests) > 0 {
			break
		}
		out.Requests = append(out.Requests, r)
	}
	slices.SortFunc(out.Requests, func(a, b Trace) int {
		return cmp.Or(cmp.Compare(b.duration(), a.duration()), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// duration returns the time from when a request was due for as long as it was followed.
func (t *Trace) duration() int64 {
	if t.Done >= 0 {
		return t.Done - t.Due
	}
	return math.MaxInt64
}
