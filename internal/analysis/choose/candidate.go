package choose

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/engine"
	"pitot/internal/sim/engines"
	"pitot/internal/stats"
)

// Offer is an accelerator that can be had.
type Offer struct {
	Accelerator catalogue.Accelerator
	Most        int     // of them, in one machine: an engine's tensor parallelism ends there
	USDPerHour  float64 // of one; 0 where it is not known
}

// Set is one setting of an engine, by vLLM's name.
type Set struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EngineShape holds the settings that engines share which differ in their settings alone.
type EngineShape struct {
	Offer          Offer
	Engine         *engine.Kind
	TensorParallel int
	DType          string // of the weights
}

// Candidate is an engine that can be deployed, of which a deployment has one or more.
type Candidate struct {
	EngineShape
	Settings   []Set  // other than the engine's defaults
	Spec       string // MODEL@GPU?settings
	Deployment *deploy.Deployment

	joined *deploy.Deployment // that serves in its place: all engines together
	common []Set              // settings that all candidates have
	// converses says that it is asked conversations, which a router has to keep together.
	converses bool
	curve     curve
	asked     int     // requests of each load of the curve, if it was looked at closely
	spread    float64 // standard deviation of the logarithm of the capacity, by a second look; 0: none
	took      float64 // of conversations: by how many times what was reckoned a request took at the last load; 0: none
}

// conversationSlowdown is by how many times what is reckoned requests of conversations take, as far
// as is known.
func (c *Candidate) conversationSlowdown() float64 {
	return cmp.Or(c.took, 1)
}

// hardwareKey returns what candidates have in common that differ in their settings alone.
func (c *Candidate) hardwareKey() string {
	return fmt.Sprintf("%s %d %s %s", c.Offer.Accelerator.Name, c.TensorParallel, c.DType, c.Engine.Name)
}

// PerHour returns the cost of an engine in an hour, in USD.
func (c *Candidate) PerHour() float64 { return float64(c.TensorParallel) * c.Offer.USDPerHour }

// Refused is why deployments cannot exist, and how many.
type Refused struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// tensorParallel are the groups of accelerators that engines run on.
var tensorParallel = []int{1, 2, 4, 8}

// usualEngine is the one that is meant where none is named.
var usualEngine = engines.Default()

// batchTried are the settings of a batch by vLLM's names, with the values that are tried
// besides the defaults.
var batchTried = []struct {
	name   string
	values []int
}{
	{"max_num_seqs", []int{64, 128, 512}}, {"max_num_batched_tokens", []int{2048, 4096, 16384}},
}

// EngineNames are those that can be asked for.
func EngineNames() (names []string) { return engines.Names() }

// engineKinds are those that are tried: the usual one unless others were asked for.
func (w *Wanted) engineKinds() (list []*engine.Kind, err error) {
	if len(w.Engines) == 0 {
		return []*engine.Kind{engines.Default()}, nil
	}
	for _, name := range w.Engines {
		k, ok := engines.ByName(name)
		if !ok || k.New == nil {
			return nil, say.Errorf("engine %q is not modelled", name).WithHint(say.KnownHint(name, EngineNames()))
		}
		list = append(list, k)
	}
	return list, nil
}

// listCandidates lists what a model can be deployed as, the default settings of each hardware
// before others, and counts what cannot be: too little memory, heads that do not divide.
func listCandidates(w *Wanted) (list []*Candidate, refused []Refused, err error) {
	counts := map[string]*Refused{}
	refuse := func(n int, err error) {
		why := refusalReason(err)
		if counts[why] == nil {
			counts[why] = &Refused{Why: why}
		}
		counts[why].Count += n
	}
	for _, set := range w.Settings {
		if !deploy.IsSetting(set.Name) {
			return nil, nil, say.Errorf("unknown engine setting %q", set.Name).WithHint(say.KnownHint(set.Name, deploy.SettingNames()))
		}
	}
	tried, err := w.engineKinds()
	if err != nil {
		return nil, nil, err
	}
	var last error
	each := func(x EngineShape) {
		variants := settingsTried(x.Engine, w.Settings)
		for i, settings := range variants {
			c, err := w.newCandidate(x, settings)
			switch {
			case err != nil && i == 0: // with others it cannot be either
				refuse(len(variants), err)
				last = err
				return
			case err != nil:
				refuse(1, err)
			case i == 0 || !c.isKnown(list):
				list = append(list, c)
			}
		}
	}
	for _, offer := range w.Offers {
		for _, tp := range tensorParallel {
			for _, dtype := range w.dtypesOn(offer.Accelerator) {
				for _, kind := range tried {
					if tp <= offer.Most {
						each(EngineShape{offer, kind, tp, dtype})
					}
				}
			}
		}
	}
	for _, r := range counts {
		refused = append(refused, *r)
	}
	stats.SortStable(refused, func(a, b Refused) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Why, b.Why)) })
	if len(list) == 0 {
		return nil, refused, say.Errorf("no deployment of %s exists on what is offered: %v", w.Model, last).WithHint(asFlags(say.HintOf(last)))
	}
	return list, refused, nil
}

// asFlags has a hint on a deployment say what to ask for instead.
func asFlags(hint string) string {
	hint = accelerators.ReplaceAllString(hint, "--gpus $2:$1")
	return strings.NewReplacer("dtype=", "--dtypes ", "max_num_seqs=", "--settings max_num_seqs=").Replace(hint)
}

// accelerators are written so in a deployment.
var accelerators = regexp.MustCompile(`@(\d+)x(\S+)`)

// settingsTried are all combinations of those that are not given, the defaults first.
func settingsTried(kind *engine.Kind, given []Set) [][]Set {
	all := [][]Set{nil}
	for _, b := range batchTried {
		name := kind.SettingName(b.name)
		if name == "" || slices.ContainsFunc(given, func(g Set) bool { return g.Name == name }) {
			continue
		}
		for _, before := range slices.Clone(all) {
			for _, v := range b.values {
				all = append(all, append(slices.Clone(before), Set{name, strconv.Itoa(v)}))
			}
		}
	}
	return all
}

// newCandidate makes one.
func (w *Wanted) newCandidate(x EngineShape, settings []Set) (*Candidate, error) {
	spec := w.deploymentSpec(x, settings, 1, Router{})
	d, err := deploy.Parse(spec)
	if err != nil {
		// The model's whole context may not fit where all that is asked does.
		settings = append(slices.Clone(settings), Set{x.Engine.SettingName("max_model_len"), strconv.Itoa(w.context)})
		spec = w.deploymentSpec(x, settings, 1, Router{})
		var again error
		if d, again = deploy.Parse(spec); again != nil {
			return nil, err
		}
	}
	x.DType = d.DType
	return &Candidate{EngineShape: x, Settings: settings, Spec: spec, Deployment: d, common: w.Settings, converses: w.Ask.HasConversations()}, nil
}

// deploymentSpec writes so many engines, of several behind a router, as a deployment is written.
func (w *Wanted) deploymentSpec(x EngineShape, settings []Set, engines int, router Router) string {
	var query []string
	with := func(name, value string) { query = append(query, name+"="+value) }
	if engines > 1 {
		with("tensor_parallel_size", strconv.Itoa(x.TensorParallel))
		with("data_parallel_size", strconv.Itoa(engines))
		if router.Policy != "" {
			with("router", router.Policy)
		}
		if router.BalanceAbsThreshold > 0 {
			with("balance_abs_threshold", strconv.Itoa(router.BalanceAbsThreshold))
		}
	}
	if x.Engine != usualEngine {
		with("engine", x.Engine.Name)
	}
	if x.DType != w.publishedDType() {
		with("dtype", x.DType)
	}
	for _, s := range slices.Concat(settings, w.Settings) {
		with(s.Name, s.Value)
	}
	where := x.Offer.Accelerator.Name
	if n := x.TensorParallel * engines; n > 1 {
		where = fmt.Sprintf("%dx%s", n, where)
	}
	spec := w.Model + "@" + where
	if len(query) > 0 {
		spec += "?" + strings.Join(query, "&")
	}
	return spec
}

// Router describes the router that shares requests out to several engines.
type Router struct {
	Policy string `json:"policy"` // "": vLLM itself
	// BalanceAbsThreshold is, of a cache-aware one, by how many requests engines may differ
	// before all go to the one with the fewest; 0: what the router has unless it is told.
	BalanceAbsThreshold int `json:"balance_abs_threshold,omitempty"`
}

// The policies of the routers in front of several engines: to the one with fewer requests of
// any two; and where conversations repeat what was said, to the one that was sent it, as the
// router remembers prompts, or by the name of the conversation that a request comes with.
const (
	PowerOfTwo = "power_of_two"
	CacheAware = "cache_aware"
	Session    = "session"
)

// router returns the router for the requests. In one machine it is vLLM itself, for which nothing
// needs to be said. Otherwise it is the routers of vLLM and SGLang: those alone know which engine
// has the beginning of a conversation in its cache.
func (w *Wanted) router(x EngineShape, engines int) Router {
	switch {
	case w.Ask.HasConversations():
		return Router{Policy: CacheAware}
	case x.Engine.Shares && x.TensorParallel*engines <= x.Offer.Most:
		return Router{}
	}
	return Router{Policy: PowerOfTwo}
}

// otherRouter returns the router to try where engines miss the limits with the usual one. It is for
// conversations: where many begin alike, the usual router keeps them all at few engines. vLLM's
// router can go by the name of a conversation. SGLang's goes by prompts, and may balance sooner.
func (w *Wanted) otherRouter(kind *engine.Kind) (other Router, ok bool) {
	const soon = 8 // requests
	switch {
	case !w.Ask.HasConversations():
		return Router{}, false
	case !kind.RouterSessions:
		return Router{Policy: CacheAware, BalanceAbsThreshold: soon}, true
	}
	return Router{Policy: Session}, true
}

// isKnown says that a candidate on the same hardware comes to the same settings.
func (c *Candidate) isKnown(list []*Candidate) bool {
	return slices.ContainsFunc(list, func(o *Candidate) bool {
		a, b := &o.Deployment.Settings, &c.Deployment.Settings
		return o.hardwareKey() == c.hardwareKey() && a.MaxNumSeqs == b.MaxNumSeqs && a.MaxNumBatchedTokens == b.MaxNumBatchedTokens
	})
}

// publishedDType is the data type of the model's weights as they are published.
func (w *Wanted) publishedDType() string { return w.model.DType }

// dtypesOn are the data types of weights that are tried on an accelerator: those asked for,
// or the published one and fp8 where it computes in that.
func (w *Wanted) dtypesOn(a catalogue.Accelerator) []string {
	if len(w.DTypes) > 0 {
		return w.DTypes
	}
	list := []string{w.publishedDType()}
	if a.TFLOPS["fp8"] > 0 && w.publishedDType() != "fp8" && isWideType(w.publishedDType()) {
		list = append(list, "fp8")
	}
	return list
}

func isWideType(dtype string) bool { return dtype == "bf16" || dtype == "fp16" || dtype == "fp32" }

// refusalReason is why a deployment cannot be, in few words that many have in common.
func refusalReason(err error) string {
	var mistake *say.Error
	if !errors.As(err, &mistake) {
		return err.Error()
	}
	text := mistake.Error()
	for _, known := range []struct{ has, why string }{
		{"does not fit on", "too little memory"}, {"are left after the weights", "too little memory"}, {"the KV cache holds", "too little memory"},
		{"tensor parallelism of", "heads that cannot be divided"},
	} {
		if strings.Contains(text, known.has) {
			return known.why
		}
	}
	return text
}
