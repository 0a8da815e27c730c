package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/run/search"
	"pitot/internal/slo"
	"pitot/internal/stat"
	"pitot/internal/study/predict"
	"pitot/internal/twin/deploy"
	"pitot/internal/workload"
)

// server is a deployment that is not quite what the catalogue's twin of it is: other
// kernels, overheads, limits of the scheduler, slow phases, and chances of its own. Its
// twin is that of the spec without them.
type server struct {
	twin          string // MODEL@GPU?settings as a user would name it
	off           string // the settings of the server
	input, output float64
	spread        float64 // coefficient of variation of the lengths
	shape         float64 // of the gamma law of gaps
	slo           string
	claims        []slo.Claim
	fails         float64 // share that is refused at once
	capacity      float64
	residence     float64
	only          bool // no load behind a window
	long          longOf
}

func (s *server) about() string {
	return fmt.Sprintf("%s with %s, %.0f in, %.0f out, cv %g, gamma %g, %s, %g fail", s.twin, s.off, s.input, s.output, s.spread, s.shape, s.slo, s.fails)
}

// deployment of a spec, with settings in place of its own.
func deployment(spec, settings string) *deploy.Deployment {
	if settings != "" {
		spec, _, _ = strings.Cut(spec, "?")
		spec += "?" + settings
	}
	d, err := deploy.Parse(spec)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", spec, err))
	}
	return d
}

const longestPrompt = 30_000

// law is what is asked.
func (s *server) law(rate float64, seed uint64) (interface{ Next() int64 }, func(int64) (int, int)) {
	rng := rand.New(rand.NewPCG(seed, 1))
	input, output := lognormal(s.input, s.spread), lognormal(s.output, s.spread)
	return &gaps{rng: rand.New(rand.NewPCG(seed, 2)), rate: rate, shape: s.shape}, func(int64) (int, int) {
		return min(input(rng), longestPrompt), min(output(rng), longestPrompt)
	}
}

// did is what a window of the server came to.
type did struct {
	schedule predict.Schedule
	times    [][]float64 // of each claim, by how many times the limit, in the order of the window
	failed   []bool
	ttft     []float64 // milliseconds, of all that was asked
	tpot     []float64
	longest  float64 // seconds, from the begin to the last token
	counted
}

// put puts a load on it: a warm-up, a window of n requests, and load to the end of them.
func (s *server) put(rate float64, n int, warmup float64, seed uint64) *did {
	d := deployment(s.twin, s.off)
	arrivals, tokens := s.law(rate, seed)
	out := &did{times: make([][]float64, len(s.claims))}
	source := &noting{tokens: tokens}
	to := &timed{did: out, server: s, from: int64(warmup * 1e9), rows: map[int64]record.Row{}}
	cfg := load.Config{Arrivals: arrivals, Warmup: to.from, Requests: int64(n)}
	if s.only {
		cfg.Total = cfg.Requests
	}
	core := load.NewCore(cfg)
	fails := rand.New(rand.NewPCG(seed, 3))
	load.Run(context.Background(), core, load.NewVirtual(load.VirtualConfig{Engine: d.Engine(seed), Source: source, Sink: to}))
	_, end := core.Window()
	out.seconds = float64(end) / 1e9
	out.schedule.From = -1
	for id := range int64(len(source.asked)) {
		r, a := to.rows[id], source.asked[id]
		out.schedule.Asked = append(out.schedule.Asked, predict.Asked{At: r.Due, Input: int32(a[0]), Output: int32(a[1])})
		light := judged{measure.LatencyOf(&r, &measure.Events{}), r.Outcome == record.OK}
		out.ttft, out.tpot = append(out.ttft, light.Value(metric.TTFT)), append(out.tpot, light.Value(metric.TPOT))
		if r.Due < to.from || int(id)-out.schedule.From >= n && out.schedule.From >= 0 {
			continue
		}
		if out.schedule.From < 0 {
			out.schedule.From, out.schedule.To = int(id), int(id)+n
		}
		one := judged{measure.LatencyOf(&r, &measure.Events{}), r.Outcome == record.OK}
		failed := s.fails > 0 && fails.Float64() < s.fails
		for c := range s.claims {
			x := s.claims[c].Times(&one)
			if failed {
				x = math.Inf(1)
			}
			out.times[c] = append(out.times[c], x)
		}
		out.failed = append(out.failed, failed)
		out.longest = max(out.longest, float64(r.LastToken)/1e9)
		out.residence += float64(r.LastToken-r.Due) / 1e9 / float64(n)
	}
	return out
}

// judged is a request of the server for its limits.
type judged struct {
	measure.Latency
	ok bool
}

func (j *judged) Class() string { return "" }

func (j *judged) OK() bool { return j.ok }

func (j *judged) Value(of metric.Name) float64 {
	var x float64
	var state measure.State
	switch of {
	case metric.TTFT:
		x, state = j.TTFT(measure.Response, 0)
	case metric.E2E:
		x, state = j.E2E(measure.Response, 0)
	default:
		x, state = j.TPOT(0)
	}
	if state != measure.Known {
		return math.NaN()
	}
	return x
}

// noting is a source that keeps what it drew; it is asked in order.
type noting struct {
	tokens func(int64) (int, int)
	asked  [][2]int
}

// At implements [workload.Source].
func (n *noting) At(i int64) (workload.Request, error) {
	input, output := n.tokens(i)
	n.asked = append(n.asked, [2]int{input, output})
	return workload.Request{ID: i, Input: input, Output: output, Exact: true, Session: workload.Unknown}, nil
}

// timed is a sink that keeps the rows.
type timed struct {
	*did
	server *server
	from   int64
	rows   map[int64]record.Row
}

// Chunk implements [record.Sink].
func (*timed) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (t *timed) Done(r *record.Row) { t.rows[r.ID] = *r }

// seen is a window as a search sees it.
func (d *did) seen(p search.Probe) search.Seen {
	s := search.Seen{Load: p.Load, N: len(d.failed), Violations: make([]int, len(d.times)), Residence: d.residence, Seconds: d.seconds, Stability: stat.Undecided}
	blocks := max(1, p.Blocks)
	s.Blocks, s.JointBlock = make([][]int, len(d.times)), make([]int, blocks)
	for c := range s.Blocks {
		s.Blocks[c] = make([]int, blocks)
	}
	for i := range d.failed {
		if d.failed[i] {
			s.Errors++
		}
		any := false
		for c := range d.times {
			if d.times[c][i] >= 1 {
				s.Violations[c]++
				s.Blocks[c][i*blocks/s.N]++
				any = true
			}
		}
		if any {
			s.Joint++
			s.JointBlock[i*blocks/s.N]++
		}
	}
	return s
}

// eps is what may violate each claim.
func (s *server) eps() (list []float64) {
	for _, c := range s.claims {
		list = append(list, c.Share)
	}
	return list
}

// drawServer draws a server whose twin is not it. The same seed is the same server. Its
// limits are what it violates as often as may be at about some share of what it can serve.
func drawServer(seed uint64) *server {
	rng := rand.New(rand.NewPCG(seed, 0x7365727665))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	one := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	within := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	s := &server{
		twin:  pick("llama-3.1-8b@h100?max_num_seqs=16", "llama-3.1-8b@h100?max_num_seqs=48", "llama-3.1-8b@l4", "qwen3-14b@l40s", "qwen3-32b@h100", "llama-3.1-70b@4xh100", "mistral-7b@a10g", "gpt-oss-20b@h100?max_num_seqs=64"),
		input: one(256, 512, 1024, 2000), output: one(16, 32, 64), spread: one(0.3, 0.5, 0.5, 1.5), shape: one(0.25, 0.5, 1, 1, 1),
	}
	d := deployment(s.twin, "")
	e, set := &d.Efficiency, &d.Settings
	more := []string{
		fmt.Sprintf("bandwidth_efficiency=%.3f", e.Bandwidth*within(0.7, 1)),
		fmt.Sprintf("compute_efficiency=%.3f", e.Compute*within(0.6, 1)),
		fmt.Sprintf("step_overhead=%v", time.Duration(float64(e.PerStep)*within(1, 3)).Round(time.Microsecond)),
		fmt.Sprintf("step_jitter=%.3f", within(0, 0.1)),
		fmt.Sprintf("max_num_batched_tokens=%d", int(float64(set.MaxNumBatchedTokens)*one(0.25, 0.5, 1, 1))),
		fmt.Sprintf("max_num_seqs=%d", int(float64(set.MaxNumSeqs)*one(0.75, 1, 1))),
	}
	if slow := one(0, 0, 0.1, 0.2); slow > 0 {
		more = append(more, fmt.Sprintf("slow_cv=%.2f&slow_time=%.1fs", slow, within(0.5, 5)))
	}
	s.off = strings.Join(more, "&")
	kind, share := pick("ttft", "ttft", "tpot", "e2e", "joint"), one(0.01, 0.01, 0.01, 0.05, 0.1)
	if s.fails = one(0, 0, 0, 0.3) * share; s.fails > 0 {
		s.fails = math.Round(s.fails*1e4) / 1e4
	}
	at := within(0.6, 0.9)
	s.claims = claims("p50 ttft<1s, p50 tpot<1s, p50 e2e<1s")
	const burst = 1500
	s.only = true
	served := float64(burst) / s.put(1e4, burst, 0, seed).longest
	s.only = false
	s.capacity = at * served
	s.residence = s.put(served/50, 50, 0, seed).residence
	d1 := s.put(s.capacity, 8_000, 20*s.residence, seed)
	limit := func(c int, share float64) float64 { // seconds
		x := slices.Clone(d1.times[c])
		slices.Sort(x)
		return x[int(float64(len(x))*(1-share))]
	}
	spare := share - s.fails
	p := fmt.Sprintf("p%.4g", 100*(1-share))
	switch kind {
	case "ttft":
		s.slo = fmt.Sprintf("%s ttft<%.1fms", p, 1e3*limit(0, spare))
	case "tpot":
		s.slo = fmt.Sprintf("%s tpot<%.2fms", p, 1e3*limit(1, spare))
	case "e2e":
		s.slo = fmt.Sprintf("%s e2e<%.1fms", p, 1e3*limit(2, spare))
	default:
		s.slo = fmt.Sprintf("ttft<%.1fms, tpot<%.2fms @%.4g%%", 1e3*limit(0, 0.6*spare), 1e3*limit(1, 0.6*spare), 100*(1-share))
	}
	s.claims = claims(s.slo)
	return s
}

func claims(text string) []slo.Claim {
	spec, err := slo.Parse(text)
	if err != nil {
		panic(err)
	}
	list, err := spec.Claims()
	if err != nil {
		panic(err)
	}
	return list
}

// system is the server as one whose capacity can be measured.
func (s *server) system() system {
	return system{about: s.about(), capacity: s.capacity, residence: s.residence, limits: len(s.claims), allowed: s.claims[0].Share,
		measure: func(p search.Probe, seed uint64) counted {
			d := s.put(p.Load, p.Requests, p.Residences*p.Residence, seed)
			d.violations = make([]uint8, p.Requests)
			for i := range d.violations {
				for c := range d.times {
					if d.times[c][i] >= 1 {
						d.violations[i] |= 1 << c
					}
				}
			}
			return d.counted
		}}
}

// twinned is how a twin was come by.
type twinned string

const (
	none         twinned = "none"          // the counts alone
	named        twinned = "named"         // what the server is but for what nobody knows of it
	nearest      twinned = "nearest"       // the catalogue's that serves its light loads most as it does
	anotherSize  twinned = "another size"  // wrong, as are the next: of a model of another size
	anotherGPU   twinned = "another GPU"   // of the model on another accelerator
	anotherCount twinned = "another count" // of the model on twice as many of them
)

// wrongs are twins that a server is not, by what it is.
var wrongs = map[string]map[twinned]string{
	"llama-3.1-8b@h100?max_num_seqs=16": {anotherSize: "qwen3-32b@h100?max_num_seqs=16", anotherGPU: "llama-3.1-8b@l40s?max_num_seqs=16", anotherCount: "llama-3.1-8b@2xh100?max_num_seqs=16"},
	"llama-3.1-8b@h100?max_num_seqs=48": {anotherSize: "qwen3-14b@h100?max_num_seqs=48", anotherGPU: "llama-3.1-8b@a100?max_num_seqs=48", anotherCount: "llama-3.1-8b@2xh100?max_num_seqs=48"},
	"llama-3.1-8b@l4":                   {anotherSize: "llama-3.2-3b@l4", anotherGPU: "llama-3.1-8b@a10g", anotherCount: "llama-3.1-8b@2xl4"},
	"qwen3-14b@l40s":                    {anotherSize: "llama-3.1-8b@l40s", anotherGPU: "qwen3-14b@a100", anotherCount: "qwen3-14b@2xl40s"},
	"qwen3-32b@h100":                    {anotherSize: "qwen3-14b@h100", anotherGPU: "qwen3-32b@h200", anotherCount: "qwen3-32b@2xh100"},
	"llama-3.1-70b@4xh100":              {anotherSize: "qwen3-32b@4xh100", anotherGPU: "llama-3.1-70b@4xa100", anotherCount: "llama-3.1-70b@8xh100"},
	"mistral-7b@a10g":                   {anotherSize: "llama-3.2-3b@a10g", anotherGPU: "mistral-7b@l4", anotherCount: "mistral-7b@2xa10g"},
	"gpt-oss-20b@h100?max_num_seqs=64":  {anotherSize: "qwen3-32b@h100?max_num_seqs=64", anotherGPU: "gpt-oss-20b@a100?max_num_seqs=64", anotherCount: "gpt-oss-20b@2xh100?max_num_seqs=64"},
}

// find searches for its capacity with so many requests, and replays the search on a twin.
func (s *server) find(by twinned, budget int, seed uint64, had measuredWindows[*did]) (c search.Capacity, sent int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	var schedules []*predict.Schedule
	var light []predict.LightLoad
	rehearsal := &predict.Rehearsal{Claims: s.claims, Alone: true,
		Schedule: func(step int) (*predict.Schedule, error) { return schedules[step], nil },
		Law: func(rate float64, seed uint64) (interface{ Next() int64 }, func(int64) predict.Asked, error) {
			arrivals, tokens := s.law(rate, seed)
			return arrivals, func(i int64) predict.Asked {
				input, output := tokens(i)
				return predict.Asked{Input: int32(input), Output: int32(output)}
			}, nil
		}}
	cfg := search.FindConfig{Eps: s.eps(), Residence: s.residence, Budget: search.Budget{Requests: budget}, Seed: rng.Uint64()}
	switch by {
	case none:
	case nearest:
		cfg.Twin = &unnamed{rehearsal, func() []predict.LightLoad { return light }}
	case named:
		rehearsal.Deployment = deployment(s.twin, "")
		cfg.Twin = &kept{long: s.long.of(by), Rehearsal: rehearsal}
	default:
		rehearsal.Deployment = deployment(wrongs[s.twin][by], "")
		cfg.Twin = &kept{long: s.long.of(by), Rehearsal: rehearsal}
	}
	c, err := search.Find(context.Background(), cfg, func(_ context.Context, p search.Probe) (search.Seen, error) {
		d := had.of(&p, rng.Uint64(), func(seed uint64) *did { return s.put(p.Load, p.Requests, p.Residences*p.Residence, seed) })
		schedules = append(schedules, &d.schedule)
		if len(light) < lightLoads {
			light = append(light, predict.LightLoad{Schedule: &d.schedule, TTFT: d.ttft, TPOT: d.tpot})
		}
		sent += len(d.schedule.Asked)
		return d.seen(p), nil
	})
	if err != nil {
		panic(err)
	}
	return c, sent
}

// lightLoads are by one request at a time, two and four.
const lightLoads = 3

// measuredWindows are those of a server in searches of the same seed: up to where a twin first
// has a say they are the same.
type measuredWindows[D any] map[windowKey]D

type windowKey struct {
	seed             uint64
	load, residences float64
	requests, blocks int
}

func (m measuredWindows[D]) of(p *search.Probe, seed uint64, measure func(seed uint64) D) D {
	key := windowKey{seed, p.Load, p.Residences * p.Residence, p.Requests, p.Blocks}
	had, ok := m[key]
	if !ok {
		had = measure(seed)
		m[key] = had
	}
	return had
}

// unnamed is a twin that is chosen when it is first asked.
type unnamed struct {
	*predict.Rehearsal
	light func() []predict.LightLoad
}

func (u *unnamed) choose(ctx context.Context) (err error) {
	if u.Deployment == nil {
		u.Deployment, err = predict.Nearest(ctx, predict.Candidates("", "", nil), u.light())
	}
	return err
}

// Again implements [search.Twin].
func (u *unnamed) Again(ctx context.Context, steps []int, k float64) ([][]int, error) {
	if err := u.choose(ctx); err != nil {
		return nil, err
	}
	return u.Rehearsal.Again(ctx, steps, k)
}

// Long implements [search.Twin].
func (u *unnamed) Long(ctx context.Context, loads []float64, n int) ([][][]float64, error) {
	if err := u.choose(ctx); err != nil {
		return nil, err
	}
	return u.Rehearsal.Long(ctx, loads, n)
}

// kept is a twin whose long runs are made once for all searches of a system.
type kept struct {
	*predict.Rehearsal
	long *longRuns
}

// Long implements [search.Twin].
func (c *kept) Long(ctx context.Context, loads []float64, n int) (all [][][]float64, err error) {
	for _, load := range loads {
		x, err := c.long.of([2]float64{load, float64(n)}, func() ([][]float64, error) {
			one, err := c.Rehearsal.Long(ctx, []float64{load}, n)
			return one[0], err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// longRuns are those of a twin, by load and requests.
type longRuns struct{ runs map[[2]float64][][]float64 }

func (l *longRuns) of(key [2]float64, run func() ([][]float64, error)) ([][]float64, error) {
	if had := l.runs[key]; had != nil {
		return had, nil
	}
	x, err := run()
	if l.runs == nil {
		l.runs = map[[2]float64][][]float64{}
	}
	l.runs[key] = x
	return x, err
}

// longOf are those of each twin.
type longOf map[twinned]*longRuns

func (l *longOf) of(by twinned) *longRuns {
	if *l == nil {
		*l = longOf{}
	}
	if (*l)[by] == nil {
		(*l)[by] = &longRuns{}
	}
	return (*l)[by]
}
