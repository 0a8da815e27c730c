package predict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/stat"
	"pitot/internal/twin/catalogue"
	"pitot/internal/twin/deploy"
)

// The twin of a server that nobody named: of the deployments that it may be, the one whose
// light loads are most alike, slowed by as much as the server is slower there.

// LightLoad is a load under which requests hardly meet each other, as a server served it.
type LightLoad struct {
	Schedule *Schedule
	// TTFT and TPOT are those of Schedule.Asked, in milliseconds, NaN where one has none.
	TTFT, TPOT []float64
}

const (
	// lightSteps is how many of a search's first loads are asked about: it begins with one
	// request at a time and doubles. lightUpTo is how many times as long as at the first
	// first tokens may take there.
	lightSteps, lightUpTo = 6, 3
	// likely is how many deployments are asked about more than the lightest load.
	likely = 12
	// offMost is up to which factor a deployment may be faster or slower than the server; it
	// weighs offWeight of what its loads differ in shape.
	offMost, offWeight = 8, 0.25
	// firstLook is how many requests of the first load every one of them is asked, of which there
	// may be hundreds.
	firstLook = 40
	// unlikeMost is by which factor a light load's first tokens, or further ones, may be off on the
	// nearest of them, slowed as it is: of one that is further away nothing is taken for the server's.
	unlikeMost = 1.5
)

// Candidates are the deployments that a server may be by what is known of it, any of which may
// be "": its model, as it calls it; the GPU, with how many of them where that is known
// (4xh100); and its engine's settings, by their names. Where the model is none of the
// catalogue, each of these on the least of an accelerator stands for it.
func Candidates(model, gpu string, told map[string]string) (list []*deploy.Deployment) {
	models := catalogue.Models()
	known, err := catalogue.FindModel(model)
	if err == nil {
		models = []catalogue.Model{known}
	}
	groups := []string{"", "2x", "4x", "8x"}
	var gpus []string
	for _, a := range catalogue.Accelerators() {
		gpus = append(gpus, a.Name)
	}
	if gpu != "" {
		gpus = []string{gpu}
		if strings.ContainsAny(gpu[:1], "0123456789") {
			groups = []string{""}
		}
	}
	for _, m := range models {
		name := m.Name
		if err == nil {
			name = model // what its name says of how it is quantised
		}
		for _, g := range gpus {
			for _, n := range groups {
				d, failed := deploy.ParseWith(name+"@"+n+g, func(d *deploy.Deployment) error { return setTold(d, told) })
				if failed != nil {
					continue
				}
				list = append(list, d)
				if err != nil {
					break // the least group that it fits on
				}
			}
		}
	}
	return list
}

// tellable are settings that servers tell, and that a deployment is the same with.
var tellable = map[string]string{
	"max_num_seqs": "max_num_seqs", "max_num_batched_tokens": "max_num_batched_tokens", "max_model_len": "max_model_len",
	"num_gpu_blocks": "num_gpu_blocks_override", "block_size": "block_size", "enable_prefix_caching": "enable_prefix_caching",
}

// setTold sets what a server tells of its engine, as far as the deployment can have it.
func setTold(d *deploy.Deployment, told map[string]string) error {
	if n := told["tensor_parallel_size"]; n != "" && n != "None" && n != fmt.Sprint(d.TensorParallel) {
		return errors.New("the server has another number of GPUs")
	}
	for _, name := range slices.Sorted(maps.Keys(tellable)) {
		v := strings.ToLower(told[name])
		if v == "" || v == "none" || v == "auto" {
			continue
		}
		if err := d.Set(tellable[name], v); err != nil {
			return fmt.Errorf("set %s as the server tells it: %w", name, err)
		}
	}
	return nil
}

// Nearest gives the one of some deployments whose light loads are most like a server's, slowed
// by as much as the server is slower there.
func Nearest(ctx context.Context, of []*deploy.Deployment, loads []LightLoad) (*deploy.Deployment, error) {
	if len(loads) == 0 || len(of) == 0 {
		return nil, errors.New("nothing is known of its light loads")
	}
	type asked struct {
		*deploy.Deployment
		off, slower float64
		farthest    float64 // by which factor a load's times are off at the most
	}
	list := make([]asked, len(of))
	ask := func(loads []LightLoad) {
		InParallel(len(list), func(i int) {
			if ctx.Err() == nil {
				list[i].off, list[i].slower, list[i].farthest = unlike(ctx, list[i].Deployment, loads)
			}
		})
		slices.SortStableFunc(list, func(a, b asked) int {
			switch {
			case a.off < b.off:
				return -1
			case a.off > b.off:
				return 1
			}
			return 0
		})
	}
	for i, d := range of {
		list[i] = asked{Deployment: d}
	}
	ask([]LightLoad{loads[0].beginning(firstLook)})
	list = list[:min(len(list), likely)]
	if len(loads) > 1 {
		ask(loads)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	best := list[0]
	if math.IsInf(best.off, 1) {
		return nil, fmt.Errorf("none of %d deployments serves light loads as it does", len(of))
	}
	if best.farthest > unlikeMost {
		return nil, fmt.Errorf("the nearest of %d deployments, %s, serves light loads otherwise: some times are off by a factor of %.1f", len(of), best.Named(), best.farthest)
	}
	d := *best.Deployment
	d.Efficiency.Scale *= best.slower
	return &d, nil
}

// beginning is a load's first requests.
func (l LightLoad) beginning(n int) LightLoad {
	s := *l.Schedule
	s.To = min(s.To, s.From+n)
	s.Asked = s.Asked[:s.To]
	l.Schedule = &s
	return l
}

// unlike is how far a deployment's light loads are from a server's, and how much slower the
// server is: its first tokens and each further one, in the middle over the requests of a load;
// and by which factor one of these is off at the most when it is slowed so.
func unlike(ctx context.Context, d *deploy.Deployment, loads []LightLoad) (off, slower, farthest float64) {
	var all []float64
	for i := range loads {
		for _, x := range timesAsLong(ctx, d, &loads[i]) {
			if !math.IsNaN(x) {
				all = append(all, x)
			}
		}
	}
	if len(all) == 0 {
		return math.Inf(1), 1, 1
	}
	mean, sd := all[0], 0.
	if len(all) > 1 {
		mean, sd = stat.Moments(all)
	}
	if math.Abs(mean) > math.Log(offMost) {
		return math.Inf(1), 1, 1
	}
	for _, x := range all {
		farthest = max(farthest, math.Exp(math.Abs(x-mean)))
	}
	return math.Hypot(sd, offWeight*mean), math.Exp(mean), farthest
}

// timesAsLong is the logarithm of how many times as long as on the twin first tokens took, and
// further ones: the median over requests.
func timesAsLong(ctx context.Context, d *deploy.Deployment, l *LightLoad) [2]float64 {
	to := serveOn(ctx, d, l.Schedule.Asked, rehearsalSeed)
	middle := func(server, twin []float64) float64 {
		var list []float64
		for i := l.Schedule.From; i < l.Schedule.To; i++ {
			if x := math.Log(server[i] / twin[i]); !math.IsNaN(x) && !math.IsInf(x, 0) {
				list = append(list, x)
			}
		}
		if len(list) == 0 {
			return math.NaN()
		}
		stat.SortFloat64(list)
		return stat.Percentile(list, 0.5)
	}
	return [2]float64{middle(l.TTFT, to.ttft), middle(l.TPOT, to.tpot)}
}

// serveOn is how a deployment serves requests.
func serveOn(ctx context.Context, d *deploy.Deployment, asked []Asked, seed uint64) *latencies {
	to := &latencies{ttft: make([]float64, len(asked)), tpot: make([]float64, len(asked))}
	n := int64(len(asked))
	core := load.NewCore(load.Config{Arrivals: &compressed{asked: asked, by: 1}, Requests: n, Total: n})
	source := &rehearsed{next: func(i int64) Asked { return asked[i] }}
	load.Run(ctx, core, load.NewVirtual(load.VirtualConfig{Engine: unlimited{d.Engine(seed)}, Source: source, Sink: to, Content: source.contentOf}))
	return to
}

// latencies is a sink that keeps TTFT and TPOT by request.
type latencies struct{ ttft, tpot []float64 }

// Chunk implements [record.Sink].
func (*latencies) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (l *latencies) Done(r *record.Row) {
	if r.ID >= 0 && r.ID < int64(len(l.ttft)) {
		x := Judged(r)
		l.ttft[r.ID], l.tpot[r.ID] = x.Value(metric.TTFT), x.Value(metric.TPOT)
	}
}
