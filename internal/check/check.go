// Package check holds the instrument against its reference: how accurate is
// Pitot, or any other client, on this machine?
//
// The reference is the mock server in a process of its own. It logs the
// moment before each write, on a clock that all processes of the machine
// share, so that every chunk time of the client can be laid beside the truth.
// The mock and the client share no parsing code.
package check

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pitot/internal/plan"
	"pitot/internal/point"
	"pitot/internal/record"
	"pitot/internal/result"
	"pitot/internal/stat"
	"pitot/internal/twin/mock"
	"pitot/internal/workload"
)

// Reference is what the server is told to do.
type Reference struct {
	TTFT, ITL time.Duration
	Tokens    int // per answer
}

// Standard is the load that clients of this field are compared with: 50 ms to
// the first token, then 100 tokens a second.
var Standard = Reference{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond, Tokens: 100}

// server is a reference server in its own process.
type server struct {
	cmd   *exec.Cmd
	url   string
	dir   string // of its own, for the caller to remove
	truth string
	says  *lines
	read  chan struct{} // closed when all it said has been read
}

// lines keeps the last line a process wrote.
type lines struct {
	mu   sync.Mutex
	last string
}

// reference starts a server with a directory of its own.
func (c *Checker) reference(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "pitot-check-")
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	srv, err := start(ctx, c.Command, dir, c.Ref)
	if err != nil {
		os.RemoveAll(dir)
	}
	return srv, err
}

// start runs `pitot mock` and waits until it serves. command is this program
// and what must stand before the verb.
func start(ctx context.Context, command []string, dir string, r Reference) (*server, error) {
	truth := filepath.Join(dir, "truth.jsonl")
	args := append(command[1:len(command):len(command)], "mock", "--port", "0", "--model", "reference",
		"--ttft", r.TTFT.String(), "--itl", r.ITL.String(), "--truth", truth)
	s := &server{cmd: exec.CommandContext(ctx, command[0], args...), dir: dir, truth: truth, says: &lines{}, read: make(chan struct{})}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = 10 * time.Second
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start reference server: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start reference server: %w", err)
	}
	stdout := bufio.NewReader(out)
	line, err := stdout.ReadString('\n')
	_, rest, ok := strings.Cut(line, "http://")
	if err != nil || !ok {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		return nil, fmt.Errorf("start reference server: it said %q", line)
	}
	s.url = "http://" + strings.Fields(rest)[0]
	go func() {
		defer close(s.read)
		for {
			line, err := stdout.ReadString('\n')
			if line = strings.TrimSpace(line); line != "" {
				s.says.mu.Lock()
				s.says.last = line
				s.says.mu.Unlock()
			}
			if err != nil {
				return
			}
		}
	}()
	return s, nil
}

// stop ends the server, so that its log is complete.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(os.Interrupt)
	done := make(chan error, 1)
	go func() {
		<-s.read // os/exec: all must be read before Wait
		done <- s.cmd.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(15 * time.Second):
		_ = s.cmd.Process.Kill()
		return errors.New("the reference server does not stop")
	}
}

// Numbers are TTFT and gaps of one side, milliseconds.
type Numbers struct {
	Requests             int        `json:"requests"`
	Chunks               int        `json:"chunks"`
	MeanTTFT, P99TTFT    float64    `json:"-"`
	MedianGap, P99Gap    float64    `json:"-"`
	P50Bounds, P99Bounds [2]float64 `json:"-"`
}

// Level is what was found at one number of streams.
type Level struct {
	Streams     int
	Seconds     float64
	ChunksPerS  float64
	CPUPerChunk time.Duration // all the client spent under load, per chunk
	Said, True  Numbers
	MergedShare float64
	// TTFTError is said minus true, request by request; ChunkError the time a
	// chunk was said to arrive minus the moment before it was written.
	TTFTError, ChunkError Spread
	LagP50, LagP99        time.Duration
	Late                  string // what the server says of its own lateness
	Verdict               result.Verdict
}

// Spread is a distribution of errors, milliseconds.
type Spread struct{ Mean, P99, Max float64 }

// Worst is the largest of the errors that count: mean and p99 of TTFT, p50
// and p99 of gaps, in milliseconds.
func (l *Level) Worst() float64 {
	worst := 0.0
	for _, e := range []float64{
		l.Said.MeanTTFT - l.True.MeanTTFT, l.Said.P99TTFT - l.True.P99TTFT,
		l.Said.MedianGap - l.True.MedianGap, l.Said.P99Gap - l.True.P99Gap,
	} {
		worst = max(worst, e, -e)
	}
	return worst
}

// Within says whether the true gaps lie inside the printed bounds, give or
// take what the kernel needs to hand a segment over.
func (l *Level) Within(tolerance float64) bool {
	in := func(x float64, b [2]float64) bool { return x >= b[0]-tolerance && x <= b[1]+tolerance }
	return in(l.True.MedianGap, l.Said.P50Bounds) && in(l.True.P99Gap, l.Said.P99Bounds)
}

// Checker does checks.
type Checker struct {
	Command []string // this program
	Version result.Version
	Ref     Reference
	Seconds time.Duration // of each level
	Err     io.Writer
}

// Level loads the reference with so many streams and compares.
func (c *Checker) Level(ctx context.Context, streams int) (*Level, error) {
	srv, err := c.reference(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(srv.dir)
	p := plan.Default()
	p.Target, p.API, p.Model = srv.url, "openai-completions", "reference"
	p.Input, p.Output = workload.Fixed(16), workload.Fixed(c.Ref.Tokens)
	p.Concurrency, p.Duration, p.Out = streams, c.Seconds, filepath.Join(srv.dir, "run")
	p.Warmup, p.Timeout = 1500*time.Millisecond, time.Minute
	var origin int64
	var spent point.Spent
	r := point.Runner{Command: []string{"pitot", "check"}, Version: c.Version,
		Loaded: func(s point.Spent) { origin, spent = s.Origin, s }}
	run, runDir, err := r.Run(ctx, &p)
	stopped := srv.stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if stopped != nil {
		return nil, stopped
	}
	if len(run.Points) == 0 || run.Points[0].Requests.OK == 0 {
		return nil, errors.New("check: nothing was answered")
	}
	l := &Level{Streams: streams, Verdict: run.Verdict}
	srv.says.mu.Lock()
	l.Late = srv.says.last
	srv.says.mu.Unlock()
	return l, l.compare(run, runDir, srv.truth, origin, spent)
}

// told is one request as the client recorded it.
type told struct {
	row    record.Row
	chunks []record.Chunk
}

// compare lays records and truth beside each other.
func (l *Level) compare(run *result.Run, dir, truthPath string, origin int64, spent point.Spent) error {
	requests := map[int64]*told{}
	chunks := 0
	for f, err := range record.Frames(dir) {
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		for _, c := range f.Chunks {
			t := requests[c.Request]
			if t == nil {
				t = &told{}
				requests[c.Request] = t
			}
			t.chunks = append(t.chunks, c)
			chunks++
		}
		for _, r := range f.Rows {
			t := requests[r.ID]
			if t == nil {
				t = &told{}
				requests[r.ID] = t
			}
			t.row = r
		}
	}
	pt := run.Points[0]
	t0 := int64(pt.Seconds.Warmup * 1e9)
	t1 := t0 + int64(pt.Seconds.Window*1e9)
	l.Seconds = pt.Seconds.Window
	f, err := os.Open(truthPath)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer f.Close()
	var truth gaps
	var saidTTFT, ttftErrors, chunkErrors []float64
	merged, inWindow := 0, 0
	for t, err := range mock.ReadTruth(f) {
		if err != nil {
			return fmt.Errorf("check: read truth: %w", err)
		}
		var id int64
		if i := strings.LastIndexByte(t.ID, '-'); i < 0 {
			continue // a probe
		} else if _, err := fmt.Sscanf(t.ID[i+1:], "%d", &id); err != nil {
			continue
		}
		said := requests[id]
		if said == nil || said.row.Outcome != record.OK || said.row.Due < t0 || said.row.Due >= t1 || len(t.EmitNS) == 0 {
			continue
		}
		truth.add(&t)
		saidTTFT = append(saidTTFT, float64(said.row.FirstToken-said.row.Sent)/1e6)
		ttftErrors = append(ttftErrors, float64((said.row.FirstToken-said.row.Sent)-(t.EmitNS[0]-t.ArrivalNS))/1e6)
		merged += int(said.row.Merged)
		inWindow += len(said.chunks)
		for i, c := range said.chunks {
			if i < len(t.EmitNS) {
				chunkErrors = append(chunkErrors, float64(c.T+origin-t.EmitNS[i])/1e6)
			}
		}
	}
	l.True = truth.numbers()
	m := &pt.Metrics
	value := func(x *float64) float64 {
		if x == nil {
			return 0
		}
		return *x
	}
	l.Said = Numbers{Requests: pt.Requests.OK, Chunks: inWindow}
	if len(saidTTFT) > 0 { // of the requests that both sides have, also where a report would withhold it for their number
		l.Said.MeanTTFT, _ = stat.Moments(saidTTFT)
		stat.SortFloat64(saidTTFT)
		l.Said.P99TTFT = stat.Percentile(saidTTFT, 0.99)
	}
	if g := m.ICL; g != nil {
		l.Said.MedianGap, l.Said.P99Gap = value(g.P50), value(g.P99)
		l.Said.P50Bounds, l.Said.P99Bounds = [2]float64{value(g.P50), value(g.P50)}, [2]float64{value(g.P99), value(g.P99)}
		if b, ok := g.Bounds["p50"]; ok {
			l.Said.P50Bounds = b
		}
		if b, ok := g.Bounds["p99"]; ok {
			l.Said.P99Bounds = b
		}
	}
	l.TTFTError, l.ChunkError = spread(ttftErrors), spread(chunkErrors)
	if inWindow > 0 {
		l.MergedShare = float64(merged) / float64(inWindow)
	}
	l.ChunksPerS = float64(chunks) / spent.Wall.Seconds()
	l.CPUPerChunk = spent.CPU / time.Duration(max(chunks, 1))
	if lag := m.Lag; lag != nil {
		l.LagP50 = time.Duration(value(lag.P50) * 1e6)
		l.LagP99 = time.Duration(lagP99(requests, t0, t1))
	}
	return nil
}

// lagP99 is the 99th percentile of the lag of sends, nanoseconds.
func lagP99(requests map[int64]*told, t0, t1 int64) float64 {
	var v []float64
	for _, t := range requests {
		if r := &t.row; r.Outcome == record.OK && r.Due >= t0 && r.Due < t1 {
			v = append(v, float64(r.Sent-r.Ready))
		}
	}
	if len(v) == 0 {
		return 0
	}
	stat.SortFloat64(v)
	return stat.Percentile(v, 0.99)
}

func spread(x []float64) Spread {
	if len(x) == 0 {
		return Spread{}
	}
	mean, _ := stat.Moments(x)
	stat.SortFloat64(x)
	return Spread{mean, stat.Percentile(x, 0.99), x[len(x)-1]}
}

// gaps collects what was true.
type gaps struct {
	ttft, gap []float64
	requests  int
	arrivals  []int64
}

func (g *gaps) add(t *mock.Truth) {
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

func (g *gaps) numbers() Numbers {
	n := Numbers{Requests: g.requests, Chunks: len(g.gap) + len(g.ttft)}
	if len(g.ttft) > 0 {
		n.MeanTTFT, _ = stat.Moments(g.ttft)
		stat.SortFloat64(g.ttft)
		n.P99TTFT = stat.Percentile(g.ttft, 0.99)
	}
	if len(g.gap) > 0 {
		stat.SortFloat64(g.gap)
		n.MedianGap, n.P99Gap = stat.Percentile(g.gap, 0.5), stat.Percentile(g.gap, 0.99)
	}
	return n
}
