package audit

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/session"
	"pitot/internal/sim/serve"
)

// Numbers are TTFT and gaps of one side, milliseconds; nil where there are
// none. A percentile that too few samples carry is withheld, as in a report.
type Numbers struct {
	TTFT *result.Summary `json:"ttft_ms"` // from sent, or from the request's arrival
	Gap  *result.Summary `json:"gap_ms"`
}

// Accuracy holds the findings on an instrument at one number of streams.
type Accuracy struct {
	EndToEnd    bool    `json:"end_to_end"` // nothing is streamed: what stands for the TTFT is the time to the end
	Reported    Numbers `json:"said"`
	True        Numbers `json:"true"`
	MergedShare float64 `json:"merged_share"`
	// TTFTError is reported minus true, request by request; ChunkError the time a
	// chunk arrived, as recorded, minus the moment before it was written.
	TTFTError  *result.Summary `json:"ttft_error_ms"`
	ChunkError *result.Summary `json:"chunk_error_ms"`
	Lag        *result.Summary `json:"lag_ms"`
}

// Level holds the findings at one number of streams, of all workers together where there are
// several.
type Level struct {
	API         string        `json:"api"`
	Streams     int           `json:"streams"`
	Seconds     float64       `json:"seconds"`
	ChunksPerS  float64       `json:"chunks_per_s"`
	CPUPerChunk time.Duration `json:"cpu_ns_per_chunk"` // all the client spent under load, per chunk
	Accuracy
	Late    serve.Late     `json:"late"` // of the server, by its own account
	Verdict result.Verdict `json:"verdict"`
	Workers []Worker       `json:"workers,omitempty"` // by rank, none where one process asked
}

// Worker is one of several instruments that asked together.
type Worker struct {
	Rank        int           `json:"rank"`
	CPUPerChunk time.Duration `json:"cpu_ns_per_chunk"`
	Accuracy
	// Ahead is by how much its clock is taken to be ahead of the coordinator's, and Bound what
	// that may be off by, milliseconds. The truth is 0: all have the clock of this machine.
	Ahead   float64        `json:"ahead_ms"`
	Bound   float64        `json:"ahead_bound_ms"`
	Start   time.Duration  `json:"start_ns"` // its time 0 is so long after the coordinator's
	Verdict result.Verdict `json:"verdict"`
}

// Figure is one number that both sides have, milliseconds.
type Figure struct {
	Name           string
	N              int64 // samples that the client has
	Reported, True *float64
	Few            bool       // rests on fewer samples than is firm
	Bounds         [2]float64 // printed with Reported: what merged arrivals leave open
}

// Error is reported minus true. It is not known while one of them is withheld.
func (f *Figure) Error() (ms float64, known bool) {
	if f.Reported == nil || f.True == nil {
		return 0, false
	}
	return *f.Reported - *f.True, true
}

// KeyFigures are the four that count: mean and p99 of TTFT, p50 and p99 of gaps.
func (l *Accuracy) KeyFigures() [4]Figure {
	figure := func(name, key string, reported, true *result.Summary, of func(*result.Summary) *float64) Figure {
		f := Figure{Name: name}
		if reported == nil || true == nil {
			return f
		}
		f.N, f.Reported, f.True = reported.N, of(reported), of(true)
		f.Few = slices.Contains(reported.Few, key) || slices.Contains(true.Few, key)
		if f.Reported != nil {
			f.Bounds = [2]float64{*f.Reported, *f.Reported}
		}
		if b, ok := reported.Bounds[key]; ok {
			f.Bounds = b
		}
		return f
	}
	mean := func(s *result.Summary) *float64 { return s.Mean }
	p50 := func(s *result.Summary) *float64 { return s.P50 }
	p99 := func(s *result.Summary) *float64 { return s.P99 }
	what := "TTFT"
	if l.EndToEnd {
		what = "E2E"
	}
	return [...]Figure{
		figure("mean "+what, "mean", l.Reported.TTFT, l.True.TTFT, mean),
		figure("p99 "+what, "p99", l.Reported.TTFT, l.True.TTFT, p99),
		figure("p50 gap", "p50", l.Reported.Gap, l.True.Gap, p50),
		figure("p99 gap", "p99", l.Reported.Gap, l.True.Gap, p99),
	}
}

// worstFigure is the figure whose error is largest, of those that are known; nil for none.
func (l *Accuracy) worstFigure() (worst *Figure) {
	largest := -1.0
	for _, f := range l.KeyFigures() {
		if e, known := f.Error(); known && max(e, -e) > largest {
			worst, largest = &f, max(e, -e)
		}
	}
	return worst
}

// LargestError is the largest of the errors that are known, milliseconds: of all together, and of
// each worker.
func (l *Level) LargestError() (worst float64) {
	of := []*Accuracy{&l.Accuracy}
	for i := range l.Workers {
		of = append(of, &l.Workers[i].Accuracy)
	}
	for _, a := range of {
		if f := a.worstFigure(); f != nil {
			e, _ := f.Error()
			worst = max(worst, e, -e)
		}
	}
	return worst
}

// WorstWorker is the one that has the largest error, and the figure that it is of; nil where
// none is known.
func (l *Level) WorstWorker() (worst *Worker, of *Figure) {
	largest := -1.0
	for i := range l.Workers {
		if f := l.Workers[i].worstFigure(); f != nil {
			if e, _ := f.Error(); max(e, -e) > largest {
				worst, of, largest = &l.Workers[i], f, max(e, -e)
			}
		}
	}
	return worst, of
}

// Tolerance is the largest distance of a true gap outside the printed bounds. The kernel stamps a
// segment when it hands it over, not when it is written. That delay differs from chunk to chunk.
const Tolerance = 100 * time.Microsecond

// TrueRange is where the true value may lie: the printed bounds, give or take
// [Tolerance], in milliseconds to the microsecond, as it is printed.
func (f *Figure) TrueRange() (lo, hi float64) {
	const ms = float64(Tolerance) / 1e6
	return roundToMicroseconds(f.Bounds[0] - ms), roundToMicroseconds(f.Bounds[1] + ms)
}

// IsWithinBounds says whether the true value lies in its range. All are rounded as they are
// printed, so that the answer agrees with the printed figures. It is not known where
// a value is withheld.
func (f *Figure) IsWithinBounds() (inside, known bool) {
	if f.Reported == nil || f.True == nil {
		return false, false
	}
	lo, hi := f.TrueRange()
	x := roundToMicroseconds(*f.True)
	return lo <= x && x <= hi, true
}

// roundToMicroseconds are milliseconds without what is smaller.
func roundToMicroseconds(ms float64) float64 { return math.Round(ms*1e3) / 1e3 }

// IsWithinBounds says whether the true p50 and p99 of gaps lie in their ranges. It is not
// known where one is withheld.
func (l *Accuracy) IsWithinBounds() (inside, known bool) {
	inside = true
	figures := l.KeyFigures()
	for _, f := range figures[2:] {
		in, known := f.IsWithinBounds()
		if !known {
			return false, false
		}
		inside = inside && in
	}
	return inside, true
}

// clientRequest is one request as the client recorded it.
type clientRequest struct {
	sent, first, due int64
	done             int64
	merged           int32
	ok               bool
	worker           int32
	chunks           []int64 // when they came
}

// readRecorded reads what the client wrote; each hands over the frames of the load.
func readRecorded(dir string, each func(*record.Frame)) (requests map[int64]*clientRequest, err error) {
	requests = map[int64]*clientRequest{}
	worker := int32(0)
	join := record.Join[[]int64]{
		Chunk: func(times *[]int64, c *record.Chunk) { *times = append(*times, c.T) },
		Row: func(r *record.Row, times *[]int64) {
			requests[r.ID] = &clientRequest{r.Sent, r.FirstToken, r.Due, r.Done, r.Merged, r.Outcome == record.OK, worker, *times}
		},
		Reset: func(times *[]int64) { *times = nil }, // they are kept
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
		if f.Point < 0 { // asked before the load
			continue
		}
		worker = f.Worker
		join.Add(&f)
		each(&f)
	}
	return requests, nil
}

// comparison holds what a client recorded against the truth.
type comparison struct {
	Accuracy
	truth                               truths
	recordedTTFT, ttftErrors, chunkErrs []float64
	merged, inWindow                    int
}

// add compares a request; origin is what its client takes for time 0.
func (c *comparison) add(q *clientRequest, t *serve.Truth, origin int64) {
	first, chunks := q.first, q.chunks
	if first < 0 {
		c.EndToEnd, first, chunks = true, q.done, nil
		t.EmitNS = []int64{t.DoneNS}
	}
	c.truth.addTruth(t)
	ttft := first - q.sent
	c.recordedTTFT = append(c.recordedTTFT, float64(ttft)/1e6)
	c.ttftErrors = append(c.ttftErrors, float64(ttft-(t.EmitNS[0]-t.ArrivalNS))/1e6)
	c.merged += int(q.merged)
	c.inWindow += len(chunks)
	for i, at := range chunks {
		if i < len(t.EmitNS) {
			c.chunkErrs = append(c.chunkErrs, float64(at+origin-t.EmitNS[i])/1e6)
		}
	}
}

// accuracy returns the result of the comparison, with the client's own report of its gaps and its
// lag.
func (c *comparison) accuracy(gap, lag *result.Summary) Accuracy {
	c.Reported, c.True = Numbers{TTFT: metrics.Summarize(c.recordedTTFT), Gap: gap}, c.truth.numbers()
	c.TTFTError, c.ChunkError, c.Lag = metrics.Summarize(c.ttftErrors), metrics.Summarize(c.chunkErrs), lag
	if c.inWindow > 0 {
		c.MergedShare = float64(c.merged) / float64(c.inWindow)
	}
	return c.Accuracy
}

// compareRecords compares the records with the truth: the requests due in the
// window that ended well.
func (l *Level) compareRecords(pt *result.Point, dir, truthPath string, spent session.Spent) error {
	t0 := int64(pt.Seconds.Warmup * 1e9)
	t1 := t0 + int64(pt.Seconds.Window*1e9)
	origins := []int64{spent.Origin}
	if len(spent.Workers) > 0 {
		origins = nil
		for _, w := range spent.Workers {
			origins = append(origins, w.Origin)
		}
	}
	own := make([]*metrics.Fold, len(spent.Workers)) // what each would report by itself
	for rank := range own {
		own[rank] = metrics.NewFold(gapsAlone(t0, t1))
	}
	chunks := make([]int, len(origins))
	requests, err := readRecorded(dir, func(f *record.Frame) {
		if rank := int(f.Worker); rank < len(chunks) {
			chunks[rank] += len(f.Chunks)
		}
		if rank := int(f.Worker); rank < len(own) {
			own[rank].Add(*f)
		}
	})
	if err != nil {
		return err
	}
	f, err := os.Open(truthPath)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer f.Close()
	var all comparison
	each := make([]comparison, len(own))
	for t, err := range serve.ReadTruth(f) {
		if err != nil {
			return fmt.Errorf("check: read truth: %w", err)
		}
		var id int64
		if i := strings.LastIndexByte(t.RequestID, '-'); i < 0 {
			continue // a probe
		} else if _, err := fmt.Sscanf(t.RequestID[i+1:], "%d", &id); err != nil {
			continue
		}
		q := requests[id]
		if q == nil || !q.ok || q.due < t0 || q.due >= t1 || len(t.EmitNS) == 0 || int(q.worker) >= len(origins) {
			continue
		}
		origin := origins[q.worker]
		all.add(q, &t, origin)
		if int(q.worker) < len(each) {
			each[q.worker].add(q, &t, origin)
		}
	}
	l.Seconds = pt.Seconds.Window
	l.Accuracy = all.accuracy(pt.Metrics.SummaryOf(metric.ICL), pt.Metrics.SummaryOf(metric.Lag))
	n := 0
	for _, c := range chunks {
		n += c
	}
	l.ChunksPerS = float64(n) / spent.Wall.Seconds()
	l.CPUPerChunk = spent.CPU / time.Duration(max(n, 1))
	for rank, fold := range own {
		by := fold.Point()
		l.Workers = append(l.Workers, Worker{
			Rank: rank, CPUPerChunk: spent.Workers[rank].CPU / time.Duration(max(chunks[rank], 1)),
			Accuracy: each[rank].accuracy(by.Metrics.SummaryOf(metric.ICL), by.Metrics.SummaryOf(metric.Lag)),
			Start:    time.Duration(spent.Workers[rank].Origin - spent.Origin),
		})
		if rank < len(pt.Workers) {
			w, of := &l.Workers[rank], &pt.Workers[rank]
			w.Ahead, w.Bound, w.Verdict = of.Ahead, of.AheadBound, of.Verdict
		}
	}
	return nil
}

// gapsAlone returns the settings with which one worker's records are read.
func gapsAlone(t0, t1 int64) metrics.Setup {
	return metrics.Setup{T0: t0, T1: t1, Signals: []metric.Signal{}, Metrics: slices.DeleteFunc(metrics.Definitions(), func(d metrics.Definition) bool {
		return d.Name != metric.TTFT && d.Name != metric.E2E && d.Name != metric.ICL && d.Name != metric.Lag
	})}
}

// truths collects what was true.
type truths struct {
	ttft, gap []float64 // milliseconds
	requests  int
	arrivals  []int64
}

func (g *truths) addTruth(t *serve.Truth) {
	g.requests++
	g.arrivals = append(g.arrivals, t.ArrivalNS)
	if len(t.EmitNS) == 0 {
		return
	}
	g.ttft = append(g.ttft, float64(t.EmitNS[0]-t.ArrivalNS)/1e6)
	for i := 1; i < len(t.EmitNS); i++ {
		g.gap = append(g.gap, float64(t.EmitNS[i]-t.EmitNS[i-1])/1e6)
	}
}

func (g *truths) numbers() Numbers {
	return Numbers{TTFT: metrics.Summarize(g.ttft), Gap: metrics.Summarize(g.gap)}
}
