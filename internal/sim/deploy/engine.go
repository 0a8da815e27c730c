package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/engine"
	"pitot/internal/sim/engines"
)

// settingNames are the names of all settings, aliases left out, in the order in which help
// shows them: the common ones, and the engines' own where these say, else before the last.
var settingNames = func() (names []string) {
	for _, aliases := range common {
		names = append(names, aliases[0])
	}
	for _, k := range engines.All() {
		for _, s := range k.Settings {
			if slices.Contains(names, s.Name) {
				continue
			}
			at := slices.Index(names, s.After) + 1
			if at == 0 {
				at = len(names) - 1
			}
			names = slices.Insert(names, at, s.Name)
		}
	}
	return names
}()

// SettingNames gives the names of all settings, aliases left out.
func SettingNames() []string { return slices.Clone(settingNames) }

// common are the names of each setting that is no engine's own, vLLM's first.
var common = func() (all [][]string) {
	for _, s := range new(Deployment).settings() {
		all = append(all, strings.Fields(s.names))
	}
	return all
}()

// commonSetting is the place of a setting that is no engine's own, by its name or an alias; -1
// where there is none.
func commonSetting(name string) int {
	return slices.IndexFunc(common, func(names []string) bool { return slices.Contains(names, name) })
}

// settingOwner returns the engine that has a setting of a name of its own: the deployment's engine
// before others.
func (d *Deployment) settingOwner(name string) (*engine.Kind, *engine.Setting) {
	for _, k := range append([]*engine.Kind{d.Kind}, engines.All()...) {
		if s, ok := k.OwnSetting(name); ok {
			return k, s
		}
	}
	return nil, nil
}

// IsSetting says whether a setting, or an alias of one, has a name.
func IsSetting(name string) bool {
	return commonSetting(name) >= 0 || slices.Contains(settingNames, name)
}

// IsSwitch says whether a setting is true or false.
func IsSwitch(name string) bool {
	blank := func() *Deployment { return &Deployment{Kind: engines.Default()} }
	return IsSetting(name) && blank().set(name, "true") == nil && blank().set(name, "neither") != nil
}

// Set sets one setting by its name, with dashes or underscores. Its errors
// are the user's.
func (d *Deployment) Set(name, value string) error {
	key := strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	if !IsSetting(key) {
		return say.Errorf("unknown engine setting %q", name).WithHint(say.KnownHint(key, SettingNames()))
	}
	if err := d.set(key, value); err != nil {
		return say.Errorf("setting %s: %v", key, err).WithHint(say.HintOf(err))
	}
	return nil
}

// set sets a setting that there is. Of another engine's own ones, which [Deployment.Complete]
// refuses where they were given, only what is like a common setting is kept.
func (d *Deployment) set(name, value string) error {
	k, s := d.settingOwner(name)
	if s == nil || k != d.Kind {
		if at := commonSetting(name); at >= 0 {
			return d.setCommon(common[at][0], d.settings()[at].to, value)
		}
	}
	own := d.Own
	if k != d.Kind {
		d.Own = k.Own
		defer func() { d.Own = own }()
	}
	return engine.Assign(s.Field(&d.Config), value)
}

// datasheetShares are settings of which zero stands for what the catalogue has.
var datasheetShares = []string{"bandwidth_efficiency", "compute_efficiency", "prompt_attention_efficiency"}

// setCommon sets a setting that is no engine's own.
func (d *Deployment) setCommon(name string, to any, value string) error {
	if err := engine.Assign(to, value); err != nil {
		return err
	}
	if share, ok := to.(*float64); ok && *share == 0 && slices.Contains(datasheetShares, name) {
		return say.Errorf("0 is no share of the datasheet's rate: it is above 0 and at most 1").WithHint("leave it out for what was measured of the accelerator")
	}
	return nil
}

// Field returns a pointer to what a setting that is no engine's own sets: an *int, *float64, *bool,
// *time.Duration or *string, or a function where it is none of these.
func (d *Deployment) Field(name string) any { return d.settings()[commonSetting(name)].to }

// setEngine sets the engine by its name, with its own settings as it has them by default.
func (d *Deployment) setEngine(v string) error {
	v = strings.ToLower(v)
	k, ok := engines.ByName(v)
	if !ok || k.New == nil {
		return say.Errorf("%q is not modelled", v).WithHint(say.KnownHint(v, engines.Names()))
	}
	if k != d.Kind {
		d.Kind, d.Own = k, k.Own
	}
	return nil
}

// inOrder is the names of settings in the order in which they are set: the engine first,
// which says whose the others are.
func inOrder[V any](settings map[string]V) []string {
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		if (a == engineSetting) != (b == engineSetting) {
			if a == engineSetting {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}

// checkEngine refuses settings of other engines.
func (d *Deployment) checkEngine() error {
	for _, key := range slices.Sorted(maps.Keys(d.Given)) {
		k, s := d.settingOwner(key)
		name := key // that the setting has in the vocabulary
		if at := commonSetting(key); at >= 0 && k != d.Kind {
			k, name = engines.Default(), common[at][0]
			if d.Kind.SettingName(name) == name {
				continue
			}
		} else if k == d.Kind || k == nil {
			continue
		} else if s.Like != "" {
			name = s.Like
		}
		hint := "leave it out"
		switch like := d.Kind.SettingName(name); {
		case d.hasSetting(like):
			hint = "write " + like + ", " + d.Kind.Title + "'s name of it"
		case d.Kind == engines.Default():
			hint = "write engine=" + k.Name + " besides"
		}
		return say.Errorf("%s is a setting of %s, and the engine is %s", key, k.Title, d.Kind.Title).WithHint(hint)
	}
	return nil
}

// hasSetting reports whether the engine has a setting of a name.
func (d *Deployment) hasSetting(name string) bool {
	_, own := d.Kind.OwnSetting(name)
	return own || commonSetting(name) >= 0
}

// Alike says whether the deployment is of the kind that public measurements were held
// against: engines of vLLM that compute each for itself.
func (d *Deployment) Alike() bool { return d.Kind.Held && !d.IsLockstep() && d.pools.prefill == 0 }

// Knob is the engine's name of a setting of vLLM's that does the same, "" where it has none.
func (d *Deployment) Knob(name string) string {
	if k, s := d.settingOwner(name); s != nil && k != d.Kind && d.Kind.SettingName(name) == name {
		return ""
	}
	return d.Kind.Knob(name)
}

// engineHost is the deployment as its engine sees it when it starts.
func (d *Deployment) engineHost() *engine.Host {
	return &engine.Host{
		Accelerator: d.Accelerator.Name, MemoryGiB: d.Accelerator.MemoryGiB, TensorParallel: d.TensorParallel,
		Model: d.Model.Name, MaxPosition: d.Model.MaxPosition,
		Given: func(name string) bool { _, given := d.Given[name]; return given },
		Fit:   d.fitContext,
		Note:  func(text string) { d.Notes = append(d.Notes, text) },
	}
}

// fitContext works out KV blocks and the longest context, and refuses what is not modelled of the
// engine.
func (d *Deployment) fitContext() error {
	if err := d.fitMemory(); err != nil {
		return err
	}
	if s := &d.Settings; !d.Kind.Hybrid && (s.WindowShare > 0 || s.StateBlocks > 0) {
		return say.Errorf("%s has layers that do not keep all tokens, whose memory in %s is not modelled", d.Model.Name, d.Kind.Title).WithHint("leave engine=" + d.Kind.Name + " out")
	}
	if d.IsLockstep() && d.Kind.Lockstep == nil {
		return say.Errorf("engines that share experts are modelled of %s alone", engineTitles(func(k *engine.Kind) bool { return k.Lockstep != nil })).WithHint("leave enable_expert_parallel or engine=" + d.Kind.Name + " out")
	}
	return nil
}

// engineTitles names the engines of which something is so.
func engineTitles(is func(*engine.Kind) bool) string {
	var names []string
	for _, k := range engines.Deployed() {
		if is(k) {
			names = append(names, k.Title)
		}
	}
	return strings.Join(names, " and ")
}

// Limits returns the engine's limits under its own names: requests, tokens of a step, and tokens of
// a request.
func (d *Deployment) Limits() [3]string {
	s, called := &d.Settings, d.Kind.SettingName
	return [3]string{
		fmt.Sprintf("%s %d", called("max_num_seqs"), s.MaxNumSeqs),
		fmt.Sprintf("%s %s", called("max_num_batched_tokens"), say.Count(s.MaxNumBatchedTokens)),
		fmt.Sprintf("%s %s", called("max_model_len"), say.Count(s.MaxModelLen)),
	}
}

// SeatsLimit is the limit on requests that run at once, under the engine's own name.
func (d *Deployment) SeatsLimit() Limit { return Limit(d.Kind.SettingName(string(Seats))) }

// engineFacts puts what the record of a run says of settings under the engine's own names.
func (d *Deployment) engineFacts(to map[string]string) {
	for _, name := range []string{"max_num_seqs", "max_num_batched_tokens", "max_model_len", "block_size", "num_gpu_blocks"} {
		as := name
		if at := commonSetting(name); at >= 0 {
			as = d.Kind.SettingName(common[at][0])
			if as == common[at][0] {
				continue
			}
		}
		if as != name {
			value := to[name]
			delete(to, name)
			if as != "" {
				to[as] = value
			}
		}
	}
	if d.Kind.Facts != nil {
		d.Kind.Facts(&d.Config, to)
	}
}
