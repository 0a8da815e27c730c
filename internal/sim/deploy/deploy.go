// Package deploy puts a model on accelerators: how much memory is left for
// the KV cache, how long a step of the engine takes, and what bounds it, from
// first principles and datasheets. It makes the engine that the twin runs.
package deploy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/engine"
	"pitot/internal/sim/engines"
	"pitot/internal/sim/fleet"
)

// Deployment is one server: a model on a group of accelerators with an
// engine's settings. Make one with [Parse] or [New].
type Deployment struct {
	Spec           string            // MODEL@GPU as it was given
	Given          map[string]string // settings that came with it
	Counted        bool              // the spec says how many accelerators
	Model          catalogue.Model
	Accelerator    catalogue.Accelerator
	Kind           *engine.Kind // the engine
	TensorParallel int          // accelerators of an engine
	DataParallel   int          // engines
	Routing        fleet.Config // how several share the requests
	ExpertParallel bool         // each accelerator of the group has experts of its own, instead of a part of each
	DType          string       // of the weights
	KVDType        string       // of the KV cache

	engine.Config       // what the engine is started with
	Memory              Memory
	Efficiency          Efficiency
	events              string // replica_events
	pools               pools
	graphs              graphs
	parallelDrafts      bool                 // parallel_drafting
	host                catalogue.Host       // what a step costs besides kernels
	link                Path                 // of collectives, "" for what the accelerators have
	withoutCustomReduce bool                 // disable_custom_all_reduce
	LaunchCV            float64              // coefficient of variation of step times over launches
	USDPerHour          float64              // of one accelerator
	Fitted              *Range               // what its profile was fitted from, nil without one
	FittedOn            []string             // the runs of which
	FittedError         *ExpectedError       // of loads like these, nil where it is not known
	FittedOpen          []map[string]float64 // ways in which what was fitted may be off together, as factors
	Notes               []string
}

// New gives a deployment with vLLM's defaults for the accelerator; set what
// differs and call Complete.
func New(m catalogue.Model, a catalogue.Accelerator, tp int) *Deployment {
	kind := engines.Default()
	host, _ := catalogue.FindHost(a.Host)
	d := &Deployment{
		host:  host,
		Model: m, Accelerator: a, TensorParallel: tp, DataParallel: 1, Routing: fleet.Defaults(0), Kind: kind,
		DType: m.DType, KVDType: "auto", graphs: graphModes["full_and_piecewise"],
		Efficiency: Efficiency{Attention: 1, Scale: 1, PerStep: engine.Open, PerRequest: engine.Open, PerPrefill: engine.Open, PerLaunch: engine.Open, PerLayer: defaultPerLayer}, USDPerHour: a.USDPerHour,
		Config: engine.Config{
			Settings: sim.Settings{MaxNumSeqs: engine.Open, MaxNumBatchedTokens: engine.Open, BlockSize: 16, EnablePrefixCaching: true, AsyncScheduling: true, StreamInterval: 1},
			Own:      kind.Own, MemoryUtilization: 0.92,
		},
	}
	d.Settings.AcceptanceRate = engine.Open
	if a.Name == "cpu" { // CpuPlatform.check_and_update_config
		d.Settings.BlockSize, d.Settings.AsyncScheduling = 128, false
	}
	d.Settings.Frontend, d.Settings.StepJitter = DefaultFrontend, defaultStepJitter
	d.Settings.SlowTime = time.Second // of phases that SlowCV turns on
	return d
}

// defaultStepJitter is an assumption: no recorded run tells how steps of one
// shape differ (SOURCES.md).
const defaultStepJitter = 0.02

// DefaultFrontend is the time that vLLM's API server takes on a core of a server's CPU. It is an
// assumption, of the same order as the values that fits of live servers find: SOURCES.md.
var DefaultFrontend = sim.Frontend{
	Latency: 3 * time.Millisecond, PerRequest: time.Millisecond, PerPromptToken: time.Microsecond,
	PerStep: 50 * time.Microsecond, PerChunk: 30 * time.Microsecond,
}

// HardwareName names the accelerators, and of several engines how many there are: "2×h100",
// "4 engines of 2×h100".
func (d *Deployment) HardwareName() string {
	if d.IsReplicated() {
		return fmt.Sprintf("%d engines of %s", d.DataParallel, d.groupName())
	}
	return d.groupName()
}

// groupName names the accelerators of one engine.
func (d *Deployment) groupName() string {
	if d.TensorParallel > 1 {
		return fmt.Sprintf("%d×%s", d.TensorParallel, d.Accelerator.Name)
	}
	return d.Accelerator.Name
}

// Complete works out what was left open and checks the whole; its errors are
// the user's.
func (d *Deployment) Complete() error {
	if err := d.checkEngine(); err != nil {
		return err
	}
	if d.KVDType == "auto" {
		d.KVDType = "bf16"
		if d.DType == "fp32" {
			d.KVDType = "fp32"
		}
	} else if d.KVDType == "fp32" || bytesOf[d.KVDType] > 0 && !slices.Contains(kvTypes, d.KVDType) {
		return say.Errorf("the KV cache cannot be kept in %s", d.KVDType).WithHint("take auto, bfloat16, float16 or fp8")
	}
	if err := d.checkTypes(); err != nil {
		return err
	}
	reduces := d.Efficiency.Collective > 0 && d.Efficiency.CollectiveGBs > 0
	exchanges := d.Efficiency.Exchange > 0 && d.Efficiency.ExchangeGBs > 0
	d.fillEfficiency()
	for _, check := range []func() error{d.checkParallel, d.checkPath, func() error { return d.checkLinks(reduces, exchanges) }, d.checkPools, d.checkRouting, d.checkKnobs, d.checkDrafts} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := d.Kind.Complete(&d.Config, d.engineHost()); err != nil {
		return err
	}
	if err := d.checkStep(); err != nil {
		return err
	}
	d.noteCaveats(reduces)
	return nil
}

// checkStep refuses knobs that are possible each, and together make steps
// without an end.
func (d *Deployment) checkStep() error {
	s := &d.Settings
	n := s.MaxNumSeqs
	prompt := min(s.MaxNumBatchedTokens, s.MaxModelLen)
	for _, fullest := range []sim.Batch{
		{Requests: n, Tokens: s.MaxNumBatchedTokens, Logits: n, Decodes: n, DecodeContext: int64(d.KVTokens()), Drafts: s.NumSpeculativeTokens},
		{Requests: 1, Tokens: prompt, Logits: 1, Drafts: s.NumSpeculativeTokens, Prefills: []sim.Chunk{{New: prompt, Context: s.MaxModelLen - prompt}}},
	} {
		if t := d.hardware().Step(&fullest); t >= longestStep {
			return say.Errorf("the fullest step of this deployment takes a day or more").WithHint("look at scale and at the efficiencies")
		}
	}
	return nil
}

// kvTypes are those that the KV cache can be kept in and that are modelled, of
// vLLM's CacheDType.
var kvTypes = []string{"bf16", "fp16", "fp8"}

// checkLinks refuses an engine, and engines in lock step, of more accelerators than links of one
// machine reach: how fast what lies between machines is stands in no datasheet, and over it an
// all-reduce takes many times as long. Where the deployment says how long its all-reduces take, or
// what such engines exchange, it is as it says.
func (d *Deployment) checkLinks(reduces, exchanges bool) error {
	name, reach := d.Accelerator.Name, d.Accelerator.Link.LinkedAccelerators()
	unknown := fmt.Sprintf("the links of %s reach %d, and what lies between machines is not known", name, reach)
	near := *d // an engine that one machine holds
	for near.TensorParallel = min(d.TensorParallel, reach); near.TensorParallel > 1 && near.checkParallel() != nil; {
		near.TensorParallel--
	}
	each := near.TensorParallel
	if n := d.TensorParallel; n > reach && !reduces {
		return say.Errorf("tensor parallelism of %d spans machines: %s", n, unknown).WithHint(fmt.Sprintf(
			"the nearest is %dx%s, or several such engines, as in %dx%s?data_parallel_size=%d; or say what an all-reduce takes there, as in allreduce_latency=40us&allreduce_gb_per_s=25", each, name, each*max(n/each, 2), name, max(n/each, 2)))
	}
	if n := d.GPUs(); d.IsLockstep() && n > reach && !exchanges {
		return say.Errorf("experts that are divided among %d accelerators span machines: %s", n, unknown).WithHint(fmt.Sprintf(
			"the nearest is %dx%s?data_parallel_size=%d&enable_expert_parallel=true; or say what an exchange takes there, as in exchange_latency=100us&exchange_gb_per_s=25", reach/each*each, name, reach/each))
	}
	return nil
}

// checkTypes refuses data types that are none, and those that the accelerator
// is not known to compute in.
func (d *Deployment) checkTypes() error {
	if d.DType == "" {
		return say.Errorf("it is not known how many bits the weights of %s have: %s", d.Model.Name, d.Model.Quantised).WithHint("say so with ?dtype=fp8, int8, int4 or fp4")
	}
	for _, t := range []string{d.DType, d.KVDType} {
		if bytesOf[t] == 0 {
			return say.Errorf("unknown data type %q", t).WithHint(say.KnownHint(t, []string{"bf16", "fp16", "fp32", "fp8", "fp8_block", "int8", "w8a16", "int4", "fp4"}))
		}
	}
	if d.densePeak() == 0 {
		return say.Errorf("the rate of %s in %s is not in the catalogue", d.Accelerator.Name, d.DType).WithHint("vLLM casts such weights to 16 bits by itself: leave dtype out")
	}
	return nil
}

// checkParallel refuses what the heads cannot be divided among: each
// accelerator has as many, and of those of keys and values too or one that
// others have as well (ModelConfig.verify_with_parallel_config, the attention
// layers of vLLM's models).
func (d *Deployment) checkParallel() error {
	n, m := d.TensorParallel, &d.Model
	possible := func(n int) bool {
		return n >= 1 && n <= 64 && m.Heads%n == 0 && (m.KVHeads%n == 0 || n%m.KVHeads == 0)
	}
	if possible(n) {
		return nil
	}
	near := 1 // and on to the nearest, of two the larger
	for k := 1; k <= 64; k++ {
		if possible(k) && max(n-k, k-n) <= max(n-near, near-n) {
			near = k
		}
	}
	hint := fmt.Sprintf("take a number that divides the model's %d attention heads", m.Heads)
	if n >= 1 && n <= 64 && m.Heads%n == 0 {
		hint = fmt.Sprintf("take a number that divides its %d heads of keys and values, or a multiple of them", m.KVHeads)
	}
	return say.Errorf("tensor parallelism of %d is impossible for %s", n, m.Name).WithHint(fmt.Sprintf("%s: the nearest is %d", hint, near))
}

// checkKnobs refuses numbers that would make hardware of nothing, or free.
func (d *Deployment) checkKnobs() error {
	const (
		share  = "it is a share of the datasheet's rate: above 0 and at most 1"
		faster = "a machine that is faster than its datasheet has a scale below 1"
		least  = 1e-6 // a fit goes down to a hundred-thousandth: a CPU as the stand-in is faster
		rates  = "it must be between 0.001 and 100000"
	)
	for _, k := range []struct {
		name        string
		least, most float64
		must, hint  string
	}{
		{"gpu_memory_utilization", math.SmallestNonzeroFloat64, 1, "it must be above 0 and at most 1", "vLLM's default is 0.92"},
		{"bandwidth_efficiency", least, 1, share, faster},
		{"compute_efficiency", least, 1, share, faster},
		{"attention_efficiency", least, 1, share, faster},
		{"prompt_attention_efficiency", least, 1, share, faster},
		{"allreduce_gb_per_s", 1e-3, 1e5, rates, ""},
		{"exchange_gb_per_s", 1e-3, 1e5, rates, ""},
		{"scale", 1e-3, 1e4, "it must be between 0.001 and 10000", "it is a factor on the duration of steps"},
		{"launch_cv", 0, 1, "it must be between 0 and 1", "0.03 makes the launches of a server differ by some percent, as launches do"},
		{"frontend_contention", 0, 1, "it must be between 0 and 1", ""},
	} {
		v, _ := d.Field(k.name).(*float64)
		if matters := k.name != "exchange_gb_per_s" || d.IsLockstep(); matters && !(*v >= k.least && *v <= k.most) {
			return say.Errorf("%s is %v, %s", k.name, *v, k.must).WithHint(k.hint)
		}
	}
	for _, k := range []struct {
		most  time.Duration
		names []string
	}{
		{time.Minute, []string{"step_overhead", "row_overhead", "prefill_overhead", "prompt_overhead"}},
		{time.Second, []string{"layer_overhead", "launch_overhead", "allreduce_latency", "exchange_latency"}},
		{time.Minute, []string{"frontend_latency", "frontend_request"}},
		{time.Second, []string{"frontend_prompt_token"}},
		{time.Minute, []string{"frontend_step", "frontend_chunk"}},
		{24 * time.Hour, []string{"slow_time"}},
	} {
		for _, name := range k.names {
			if t, _ := d.Field(name).(*time.Duration); *t < 0 || *t > k.most {
				return say.Errorf("%s is %v, it must be at most %v", name, *t, k.most)
			}
		}
	}
	s := &d.Settings
	const widest = 1 << 12
	if s.BlockSize < 1 || s.BlockSize > widest {
		return say.Errorf("block_size is %d, it must be between 1 and %d", s.BlockSize, widest).WithHint("vLLM's default is 16 tokens, on a CPU 128")
	}
	return nil
}

// noteCaveats notes what a user should know of the deployment besides what was
// noted already. reducesTold says that the deployment sets what an all-reduce takes.
func (d *Deployment) noteCaveats(reducesTold bool) {
	note := func(format string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, args...)) }
	if d.Model.Quantised != "" {
		note("weights in %s: %s", d.DType, d.Model.Quantised)
	}
	d.Notes = append(d.Notes, d.Model.Caveats...)
	switch k := d.Settings.NumSpeculativeTokens; {
	case k > 0 && !d.hasDrafter():
		note("%d drafts a step by n-grams at an acceptance rate of %v give %.2f tokens a step: each request is taken to have them in every step, and looking them up to take no time. Not compared with a real engine", k, d.Settings.AcceptanceRate, d.TokensPerStep())
	case k > 0:
		note("%d drafts a step at an acceptance rate of %v give %.2f tokens a step; the drafter is taken to be one more layer and the model's head, as in EAGLE, whose passes, weights and KV cache are counted. Not compared with a real engine", k, d.Settings.AcceptanceRate, d.TokensPerStep())
	}
	if d.ExpertParallel && d.TensorParallel > 1 {
		note("experts are divided among the accelerators as if tokens chose them independently; a router that is less even makes the others wait longer")
	}
	switch {
	case d.IsLockstep():
		note("not compared with a measured deployment: engines that share experts, whose exchange of tokens is taken to be an all-reduce in two halves")
	case d.IsReplicated() && d.Model.Experts > 0:
		note("each engine is taken to be a server of its own with all experts; vllm serve --data-parallel-size divides them among all engines: enable_expert_parallel=true")
	}
	switch n := int(d.expertSharers()); {
	case n > d.Accelerator.Link.LinkedAccelerators():
		note("%d accelerators are more than one machine: what they exchange takes as long as is said of it", n)
	case n > 1:
		as := d.Path() == usualPath(&d.Accelerator.Link) && !d.withoutCustomReduce
		if _, ok := catalogue.KernelsOf(d.Accelerator.Name).Reduce[n]; !ok || !as {
			note("the times of collectives among %d accelerators are assumed, not measured", n)
		}
	}
	if path := d.pathNote(); path != "" && !reducesTold {
		note("%s", path)
	}
	if s := &d.Settings; s.MaxModelLen > d.Model.MaxPosition {
		note("max_model_len is more than the %s that %s's config allows: vLLM wants VLLM_ALLOW_LONG_MAX_MODEL_LEN=1, a scaled rope or a longer version of the model", say.Count(d.Model.MaxPosition), d.Model.Name)
	}
}

// densePeak is the dense peak of matrix products with the weights' data type, in
// operations/s of one accelerator. Weights of a type that the hardware does
// not compute in are unpacked to 16 bits.
func (d *Deployment) densePeak() float64 {
	t := d.Accelerator.TFLOPS
	switch f := t[strings.TrimSuffix(d.DType, "_block")]; {
	case f > 0:
		return f * 1e12
	case d.DType == "fp32":
		return 0
	}
	return t["bf16"] * 1e12
}

// Parts says what a step's time is spent on.
func (d *Deployment) Parts(b *sim.Batch) Parts { return d.hardware().parts(b) }

// DrawLaunch is the deployment as one launch of it is: LaunchCV is drawn, and is a
// factor on every step. The same number is the same launch.
func (d *Deployment) DrawLaunch(launch uint64) *Deployment {
	one := *d
	one.Efficiency.Scale *= sim.LaunchFactor(d.LaunchCV, launch)
	return &one
}

// StepCost returns the step-time model of the deployment.
func (d *Deployment) StepCost() sim.Cost { return d.hardware() }
