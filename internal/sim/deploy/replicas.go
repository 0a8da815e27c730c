package deploy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/fleet"
)

// GPUs returns the total number of accelerators: tensor parallelism times data parallelism.
func (d *Deployment) GPUs() int { return d.TensorParallel * max(d.DataParallel, 1) }

// IsReplicated says whether there are several engines.
func (d *Deployment) IsReplicated() bool { return d.DataParallel > 1 }

// Engine makes the engine of a launch that is like the mean of all, of several one
// behind their router; the seed decides its chances.
func (d *Deployment) Engine(seed uint64) sim.Model {
	if !d.IsReplicated() {
		return d.newEngine(seed)
	}
	engines := make([]sim.Model, d.DataParallel)
	for i := range engines {
		engines[i] = d.newEngine(d.replicaSeed(seed, i))
	}
	c := d.Routing
	c.Seed = seed
	if n := d.pools.prefill; n > 0 {
		return fleet.NewPools(c, engines[:n], engines[n:], d.transferTime)
	}
	if d.IsLockstep() {
		c.Steps = d.Kind.Lockstep(engines, d.hardware().jointStepTime)
		return fleet.New(c, engines)
	}
	lives := make([]uint64, d.DataParallel)
	c.Again = func(i int) sim.Model {
		lives[i]++
		return d.newEngine(sim.Mix(d.replicaSeed(seed, i) + lives[i]))
	}
	return fleet.New(c, engines)
}

// replicaSeed is of an engine's own chances; the first has those of an engine alone.
func (d *Deployment) replicaSeed(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	return sim.Mix(seed ^ sim.Mix(uint64(i)))
}

// newEngine makes one engine.
func (d *Deployment) newEngine(seed uint64) sim.Model { return d.OneOn(seed, d.hardware()) }

// OneOn makes one engine whose steps take what cost says.
func (d *Deployment) OneOn(seed uint64, cost sim.Cost) sim.Model {
	return d.Kind.New(&d.Config, seed, cost)
}

// IsLockstep says whether the engines share the experts of a model: then each has a part of
// these, and a step takes all engines.
func (d *Deployment) IsLockstep() bool {
	return d.IsReplicated() && d.ExpertParallel && d.Model.Experts > 0
}

// expertSharers returns the number of accelerators that share the experts.
func (d *Deployment) expertSharers() float64 {
	if d.IsLockstep() {
		return float64(d.GPUs())
	}
	return float64(d.TensorParallel)
}

// jointStepTime returns the duration of a step in which every engine computes its batch. The
// experts compute the tokens of all engines. The duration is that of the slowest engine.
func (h *hardware) jointStepTime(batches []*sim.Batch) time.Duration {
	tokens := 0
	for _, b := range batches {
		tokens += b.Tokens
	}
	most := 0.0
	for _, b := range batches {
		most = max(most, h.partsAmong(b, float64(tokens)).Total())
	}
	return stepDuration(most)
}

// mostEngines is the maximum number of engines in a deployment.
const mostEngines = 1024

// divideAccelerators divides the accelerators that the spec counts among the engines: of 8 in 4
// engines each has 2.
func (d *Deployment) divideAccelerators(counted int) error {
	n := d.DataParallel
	if n < 1 || n > mostEngines {
		return say.Errorf("data_parallel_size is %d, it must be between 1 and %d", n, mostEngines)
	}
	if n == 1 || !d.Counted {
		return nil
	}
	given := d.Given["tensor_parallel_size"] + d.Given["tp"] + d.Given["tp_size"]
	switch {
	case given == "" && counted%n != 0:
		return say.Errorf("%d accelerators cannot be divided among %d engines", counted, n).WithHint(fmt.Sprintf("take %dx%s, or data_parallel_size=%d", (counted+n-1)/n*n, d.Accelerator.Name, divisor(counted, n)))
	case given == "":
		d.TensorParallel = counted / n
	case d.TensorParallel*n != counted:
		return say.Errorf("%d engines of %d accelerators each are %d, not %d", n, d.TensorParallel, d.TensorParallel*n, counted).WithHint(fmt.Sprintf("write %dx%s, or leave the number out", d.TensorParallel*n, d.Accelerator.Name))
	}
	return nil
}

// divisor is the largest divisor of n that is at most d.
func divisor(n, d int) int {
	for d = min(d, n); d > 1 && n%d != 0; d-- {
	}
	return max(d, 1)
}

// checkRouting refuses a router that there is not, and one without engines to choose
// from.
func (d *Deployment) checkRouting() error {
	if !d.IsReplicated() {
		for _, name := range routing {
			if _, given := d.Given[name]; given {
				return say.Errorf("%s is for several engines, and this is one", name).WithHint("write data_parallel_size=2, or more")
			}
		}
		return nil
	}
	if d.Routing.Frontends == 0 { // as vllm serve has it
		d.Routing.Frontends = d.DataParallel
	}
	if err := d.Routing.Check(); err != nil {
		if fleet.DescribeRouter(d.Routing.Router) == "" {
			return say.Errorf("there is no router %q", d.Routing.Router).WithHint(say.KnownHint(d.Routing.Router, fleet.Routers()))
		}
		return say.Errorf("impossible router: %v", err)
	}
	return d.checkEvents()
}

// checkEvents reads who comes and goes, and notes when nobody is left.
func (d *Deployment) checkEvents() (err error) {
	if d.events == "" {
		return nil
	}
	if d.IsLockstep() {
		return say.Errorf("replica_events: engines that share experts take every step together, so none can come or go alone").WithHint("leave enable_expert_parallel out: then each has all experts")
	}
	if d.Routing.Changes, err = fleet.ParseChanges(d.events, d.DataParallel); err != nil {
		return say.Errorf("replica_events: %v", err).WithHint("for example replica_events=30s:die:2,60s:add:2,90s:drain:0")
	}
	for _, span := range fleet.SpansWithoutEngines(d.Routing.Changes, d.DataParallel) {
		last := d.lastToGo(span[0])
		if span[0] == 0 && span[1] == math.MaxInt64 {
			return say.Errorf("replica_events: no engine takes a request at any time").WithHint(fmt.Sprintf("leave 0s:%s:%d out", last.What, last.Engine))
		}
		until, back := "on", ""
		if span[1] < math.MaxInt64 {
			until = "to " + time.Duration(span[1]).String()
		} else {
			back = fmt.Sprintf("; %v:add:%d in replica_events would bring one back", time.Duration(span[0]), last.Engine)
		}
		d.Notes = append(d.Notes, fmt.Sprintf("from %v %s no engine takes requests: all are refused with status 503%s", time.Duration(span[0]), until, back))
	}
	return nil
}

// lastToGo is the change by which the last engine goes at a time.
func (d *Deployment) lastToGo(at int64) (last fleet.Change) {
	for _, c := range d.Routing.Changes {
		if c.At == at && c.What != fleet.Add {
			last = c
		}
	}
	return last
}

// DescribeChanges says in words which engines come and go and when none takes requests, and when
// the first does, from the start of the engine; "" and 0 where all stay.
func (d *Deployment) DescribeChanges() (told string, first time.Duration) {
	if len(d.Routing.Changes) == 0 {
		return "", 0
	}
	var list []string
	gone := map[int]bool{}
	for _, c := range d.Routing.Changes {
		does := map[fleet.What]string{fleet.Die: "died", fleet.Drain: "was drained", fleet.Add: "was added"}[c.What]
		if c.What == fleet.Add && gone[c.Engine] {
			does = "came back"
		}
		gone[c.Engine] = c.What != fleet.Add
		list = append(list, fmt.Sprintf("engine %d %s at %s", c.Engine, does, say.Duration(time.Duration(c.At))))
	}
	for _, span := range fleet.SpansWithoutEngines(d.Routing.Changes, d.DataParallel) {
		until := "on"
		if span[1] < math.MaxInt64 {
			until = "to " + say.Duration(time.Duration(span[1]))
		}
		list = append(list, fmt.Sprintf("no engine took requests from %s %s", say.Duration(time.Duration(span[0])), until))
	}
	return strings.Join(list, ", "), time.Duration(d.Routing.Changes[0].At)
}

// routing are the settings that mean something to several engines alone.
var routing = []string{"router", "api_server_count", "cache_threshold", "balance_abs_threshold", "balance_rel_threshold", "replica_events"}

// describeEngines says how many there are and how they share the requests, "" of one.
func (d *Deployment) describeEngines() string {
	if !d.IsReplicated() {
		return ""
	}
	if d.IsLockstep() {
		return fmt.Sprintf("%d engines in lock step with experts divided among all, behind the router %s, each ", d.DataParallel, d.Routing.Router)
	}
	if p := &d.pools; p.prefill > 0 {
		return fmt.Sprintf("%d engines (prefill %d, decode %d), %s GB/s between them, behind the router %s, each ", d.DataParallel, p.prefill, p.decode, strconv.FormatFloat(p.gbs, 'g', 4, 64), d.Routing.Router)
	}
	return fmt.Sprintf("%d engines behind the router %s, each ", d.DataParallel, d.Routing.Router)
}

// routingFacts adds the facts about several engines to the record of a run.
func (d *Deployment) routingFacts(to map[string]string) {
	if d.IsReplicated() {
		to["data_parallel_size"], to["tensor_parallel_size"], to["router"] = strconv.Itoa(d.DataParallel), strconv.Itoa(d.TensorParallel), d.Routing.Router
		if p := &d.pools; p.prefill > 0 {
			to["prefill"], to["decode"], to["kv_transfer_gb_per_s"] = strconv.Itoa(p.prefill), strconv.Itoa(p.decode), strconv.FormatFloat(p.gbs, 'g', -1, 64)
		}
		if d.events != "" {
			to["replica_events"] = d.events
		}
	}
}
