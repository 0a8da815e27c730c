package audit

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/run"
	"pitot/internal/twin/serve"
)

// Numbers are TTFT and gaps of one side, milliseconds; nil where there are
// none. A percentile that too few samples carry is withheld, as in a report.
type Numbers struct {
	TTFT *result.Summary `json:"ttft_ms"` // from sent, or from the request's arrival
	Gap  *result.Summary `json:"gap_ms"`
}

// Level is what was found at one number of streams.
type Level struct {
	API         string        `json:"api"`
	Streams     int           `json:"streams"`
	EndToEnd    bool          `json:"end_to_end"` // nothing is streamed: what stands for the TTFT is the time to the end
	Seconds     float64       `json:"seconds"`
	ChunksPerS  float64       `json:"chunks_per_s"`
	CPUPerChunk time.Duration `json:"cpu_ns_per_chunk"` // all the client spent under load, per chunk
	Reported    Numbers       `json:"said"`
	True        Numbers       `json:"true"`
	MergedShare float64       `json:"merged_share"`
	// TTFTError is reported minus true, request by request; ChunkError the time a
	// chunk arrived, as recorded, minus the moment before it was written.
	TTFTError  *result.Summary `json:"ttft_error_ms"`
	ChunkError *result.Summary `json:"chunk_error_ms"`
	Lag        *result.Summary `json:"lag_ms"`
	Late       string          `json:"late"` // what the server says of its own lateness
	Verdict    result.Verdict  `json:"verdict"`
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

// Figures are the four that count: mean and p99 of TTFT, p50 and p99 of gaps.
func (l *Level) Figures() [4]Figure {
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

// Worst is the largest of the errors that are known, milliseconds.
func (l *Level) Worst() float64 {
	worst := 0.0
	for _, f := range l.Figures() {
		if e, known := f.Error(); known {
			worst = max(worst, e, -e)
		}
	}
	return worst
}

// Tolerance is how far outside the printed bounds a true gap may lie: the
// kernel stamps a segment when it hands it over, not when it is written, and
// how long that takes differs from chunk to chunk.
const Tolerance = 100 * time.Microsecond

// Range is where the true value may lie: the printed bounds, give or take
// [Tolerance], in milliseconds to the microsecond, as it is printed.
func (f *Figure) Range() (lo, hi float64) {
	const ms = float64(Tolerance) / 1e6
	return microseconds(f.Bounds[0] - ms), microseconds(f.Bounds[1] + ms)
}

// Inside says whether the true value lies in its range. All are rounded as they are
// printed, so that the answer agrees with the printed figures. It is not known where
// a value is withheld.
func (f *Figure) Inside() (inside, known bool) {
	if f.Reported == nil || f.True == nil {
		return false, false
	}
	lo, hi := f.Range()
	x := microseconds(*f.True)
	return lo <= x && x <= hi, true
}

// microseconds are milliseconds without what is smaller.
func microseconds(ms float64) float64 { return math.Round(ms*1e3) / 1e3 }

// Inside says whether the true p50 and p99 of gaps lie in their ranges. It is not
// known where one is withheld.
func (l *Level) Inside() (inside, known bool) {
	inside = true
	figures := l.Figures()
	for _, f := range figures[2:] {
		in, known := f.Inside()
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
	chunks           []int64 // when they came
}

// recorded reads what the client wrote.
func recorded(dir string) (requests map[int64]*clientRequest, chunks int, err error) {
	requests = map[int64]*clientRequest{}
	join := record.Join[[]int64]{
		Chunk: func(times *[]int64, c *record.Chunk) { *times = append(*times, c.T) },
		Row: func(r *record.Row, times *[]int64) {
			requests[r.ID] = &clientRequest{r.Sent, r.FirstToken, r.Due, r.Done, r.Merged, r.Outcome == record.OK, *times}
		},
		Reset: func(times *[]int64) { *times = nil }, // they are kept
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			return nil, 0, fmt.Errorf("check: %w", err)
		}
		if f.Point < 0 { // asked before the load
			continue
		}
		join.Add(&f)
		chunks += len(f.Chunks)
	}
	return requests, chunks, nil
}

// compare compares the records with the truth: the requests due in the
// window that ended well.
func (l *Level) compare(pt *result.Point, dir, truthPath string, spent run.Spent) error {
	requests, chunks, err := recorded(dir)
	if err != nil {
		return err
	}
	t0 := int64(pt.Seconds.Warmup * 1e9)
	t1 := t0 + int64(pt.Seconds.Window*1e9)
	f, err := os.Open(truthPath)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer f.Close()
	var truth truths
	var recordedTTFT, ttftErrors, chunkErrors []float64
	merged, inWindow := 0, 0
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
		recorded := requests[id]
		if recorded == nil || !recorded.ok || recorded.due < t0 || recorded.due >= t1 || len(t.EmitNS) == 0 {
			continue
		}
		if recorded.first < 0 {
			l.EndToEnd, recorded.first, recorded.chunks = true, recorded.done, nil
			t.EmitNS = []int64{t.DoneNS}
		}
		truth.addTruth(&t)
		ttft := recorded.first - recorded.sent
		recordedTTFT = append(recordedTTFT, float64(ttft)/1e6)
		ttftErrors = append(ttftErrors, float64(ttft-(t.EmitNS[0]-t.ArrivalNS))/1e6)
		merged += int(recorded.merged)
		inWindow += len(recorded.chunks)
		for i, c := range recorded.chunks {
			if i < len(t.EmitNS) {
				chunkErrors = append(chunkErrors, float64(c+spent.Origin-t.EmitNS[i])/1e6)
			}
		}
	}
	l.Seconds = pt.Seconds.Window
	l.True = truth.numbers()
	l.Reported = Numbers{TTFT: measure.Summarize(recordedTTFT), Gap: pt.Metrics.SummaryOf(metric.ICL)}
	l.TTFTError, l.ChunkError = measure.Summarize(ttftErrors), measure.Summarize(chunkErrors)
	l.Lag = pt.Metrics.SummaryOf(metric.Lag)
	if inWindow > 0 {
		l.MergedShare = float64(merged) / float64(inWindow)
	}
	l.ChunksPerS = float64(chunks) / spent.Wall.Seconds()
	l.CPUPerChunk = spent.CPU / time.Duration(max(chunks, 1))
	return nil
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
	return Numbers{TTFT: measure.Summarize(g.ttft), Gap: measure.Summarize(g.gap)}
}
