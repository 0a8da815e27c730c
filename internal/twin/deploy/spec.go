package deploy

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/twin/catalogue"
	"pitot/internal/twin/engine"
)

// Parse understands MODEL@GPU, MODEL@2xGPU and either with settings behind
// a question mark: llama-3.1-8b@2xh100?max_num_seqs=64&kv_dtype=fp8. The number
// before the accelerator is of all engines: 8xh100?data_parallel_size=4 is four of two. The
// model is a name of the catalogue or a directory with a config.json. The
// names of the settings are vLLM's. Errors are the user's.
func Parse(spec string) (*Deployment, error) { return ParseWith(spec, nil) }

// ParseWith is Parse with settings from elsewhere, which those of the spec
// override. configure is given a deployment that knows what the spec says:
// Given and Counted.
func ParseWith(spec string, configure func(*Deployment) error) (*Deployment, error) {
	name, query, _ := strings.Cut(spec, "?")
	model, gpu, ok := cutLast(name, "@")
	if !ok || model == "" || gpu == "" {
		return nil, say.Errorf("%q does not name a model and an accelerator", name).WithHint("for example llama-3.1-8b@h100, qwen3-32b@2xa100 or ./my-model@l4")
	}
	m, err := findModel(model)
	if err != nil {
		return nil, err
	}
	tp, counted := 1, false
	if n, rest, ok := strings.Cut(gpu, "x"); ok {
		if k, err := strconv.Atoi(n); err == nil {
			tp, gpu, counted = k, rest, true
		}
	}
	a, err := catalogue.FindAccelerator(gpu)
	if err != nil {
		return nil, err
	}
	d := New(m, a, tp)
	d.Spec, d.Given, d.Counted = name, map[string]string{}, counted
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, say.Errorf("settings %q: %v", query, err).WithHint("for example ?max_num_seqs=64&kv_dtype=fp8")
	}
	for key, v := range values {
		if key != profile {
			d.Given[key] = v[0]
		}
	}
	if configure != nil {
		if err := configure(d); err != nil {
			return nil, err
		}
	}
	if files := values[profile]; len(files) == 1 { // what the spec says itself overrides it
		if err := d.applyProfile(files[0]); err != nil {
			return nil, err
		}
		delete(values, profile)
	}
	for _, key := range inOrder(values) {
		v := values[key]
		if len(v) > 1 {
			return nil, say.Errorf("setting %s is given %d times", key, len(v))
		}
		if err := d.Set(key, v[0]); err != nil {
			return nil, err
		}
	}
	if err := d.countPools(); err != nil {
		return nil, err
	}
	if err := d.divideAccelerators(tp); err != nil {
		return nil, err
	}
	return d, d.Complete()
}

// findModel reads a config.json where the name is a path, and looks in the
// catalogue otherwise.
func findModel(name string) (catalogue.Model, error) {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, ".json") {
		return catalogue.ReadConfig(name)
	}
	m, err := catalogue.FindModel(name)
	if err != nil {
		if st, serr := os.Stat(name); serr == nil && st.IsDir() {
			return catalogue.ReadConfig(name)
		}
	}
	return m, err
}

// profile is the setting that names a profile's file.
const profile = "profile"

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// setting is one thing that can be set by name.
type setting struct {
	names []string // the first is vLLM's
	set   func(d *Deployment, v string) error
}

// engineSetting is the setting that names the engine: it says whose settings the others are.
const engineSetting = "engine"

// common are the settings that are no engine's own, in the order in which help shows them.
var common = []setting{
	{[]string{engineSetting}, (*Deployment).setEngine},
	{[]string{"max_num_seqs"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.Settings.MaxNumSeqs })},
	{[]string{"max_num_batched_tokens"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.Settings.MaxNumBatchedTokens })},
	{[]string{"max_model_len"}, func(d *Deployment, v string) error {
		if v == "auto" || v == "-1" {
			d.Settings.MaxModelLen = engine.Auto
			return nil
		}
		return engine.PositiveSetter(func(d *Deployment) *int { return &d.Settings.MaxModelLen })(d, v)
	}},
	{[]string{"block_size"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.Settings.BlockSize })},
	{[]string{"num_gpu_blocks_override", "num_gpu_blocks"}, engine.PositiveSetter(func(d *Deployment) *int { return &d.Settings.NumGPUBlocks })},
	{[]string{"gpu_memory_utilization"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.MemoryUtilization })},
	{[]string{"tensor_parallel_size", "tp", "tp_size"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.TensorParallel })},
	{[]string{"data_parallel_size", "dp", "dp_size"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.DataParallel })},
	{[]string{"router"}, func(d *Deployment, v string) error {
		d.Routing.Router = strings.ReplaceAll(strings.ToLower(v), "-", "_")
		return nil
	}},
	{[]string{"api_server_count"}, engine.PositiveSetter(func(d *Deployment) *int { return &d.Routing.Frontends })},
	{[]string{"cache_threshold"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Routing.CacheThreshold })},
	{[]string{"balance_abs_threshold"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.Routing.BalanceAbsThreshold })},
	{[]string{"balance_rel_threshold"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Routing.BalanceRelThreshold })},
	{[]string{"prefill"}, engine.PositiveSetter(func(d *Deployment) *int { return &d.pools.prefill })},
	{[]string{"decode"}, engine.PositiveSetter(func(d *Deployment) *int { return &d.pools.decode })},
	{[]string{"kv_transfer_gb_per_s"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.pools.gbs })},
	{[]string{"replica_events"}, func(d *Deployment, v string) error {
		d.events = v
		return nil
	}},
	{[]string{"enable_expert_parallel"}, engine.BooleanSetter(func(d *Deployment) *bool { return &d.ExpertParallel })},
	{[]string{"dtype"}, (*Deployment).setDType},
	{[]string{"quantization"}, (*Deployment).setQuantization},
	{[]string{"kv_cache_dtype", "kv_dtype"}, func(d *Deployment, v string) error {
		d.KVDType = shortDType(v)
		return nil
	}},
	{[]string{"enable_prefix_caching"}, engine.BooleanSetter(func(d *Deployment) *bool { return &d.Settings.EnablePrefixCaching })},
	{[]string{"async_scheduling"}, engine.BooleanSetter(func(d *Deployment) *bool { return &d.Settings.AsyncScheduling })},
	{[]string{"num_speculative_tokens"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.Settings.NumSpeculativeTokens })},
	{[]string{"num_speculative_tokens_per_batch_size"}, (*Deployment).setSchedule},
	{[]string{"speculative_method"}, (*Deployment).setMethod},
	{[]string{"parallel_drafting"}, (*Deployment).setParallel},
	{[]string{"acceptance_rate"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Settings.AcceptanceRate })},
	{[]string{"cudagraph_mode"}, (*Deployment).setGraphs},
	{[]string{"max_cudagraph_capture_size"}, engine.PositiveSetter(func(d *Deployment) *int { return &d.CaptureSize })},
	{[]string{"enforce_eager"}, func(d *Deployment, v string) error {
		no, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		if no {
			return d.setGraphs("none")
		}
		return nil
	}},
	{[]string{"stream_interval"}, engine.IntegerSetter(func(d *Deployment) *int { return &d.Settings.StreamInterval })},
	{[]string{"scale"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Efficiency.Scale })},
	{[]string{"step_jitter"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Settings.StepJitter })},
	{[]string{"slow_cv"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Settings.SlowCV })},
	{[]string{"slow_time"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Settings.SlowTime })},
	{[]string{"launch_cv"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.LaunchCV })},
	{[]string{"host"}, func(d *Deployment, v string) (err error) {
		d.host, err = catalogue.FindHost(v)
		return err
	}},
	{[]string{"step_overhead"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.PerStep })},
	{[]string{"row_overhead"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.PerRequest })},
	{[]string{"prefill_overhead"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.PerPrefill })},
	{[]string{"prompt_overhead"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.PerPrompt })},
	{[]string{"layer_overhead"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.PerLayer })},
	{[]string{"launch_overhead"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.PerLaunch })},
	{[]string{"link"}, (*Deployment).setLink},
	{[]string{"disable_custom_all_reduce"}, engine.BooleanSetter(func(d *Deployment) *bool { return &d.withoutCustomReduce })},
	{[]string{"allreduce_latency"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.Collective })},
	{[]string{"allreduce_gb_per_s"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Efficiency.CollectiveGBs })},
	{[]string{"exchange_latency"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Efficiency.Exchange })},
	{[]string{"exchange_gb_per_s"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Efficiency.ExchangeGBs })},
	{[]string{"bandwidth_efficiency"}, shareSetter(func(d *Deployment) *float64 { return &d.Efficiency.Bandwidth })},
	{[]string{"compute_efficiency"}, shareSetter(func(d *Deployment) *float64 { return &d.Efficiency.Compute })},
	{[]string{"attention_efficiency"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Efficiency.Attention })},
	{[]string{"prompt_attention_efficiency"}, shareSetter(func(d *Deployment) *float64 { return &d.Efficiency.PromptAttention })},
	{[]string{"frontend_latency"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Settings.Frontend.Latency })},
	{[]string{"frontend_request"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Settings.Frontend.PerRequest })},
	{[]string{"frontend_prompt_token"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Settings.Frontend.PerPromptToken })},
	{[]string{"frontend_step"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Settings.Frontend.PerStep })},
	{[]string{"frontend_chunk"}, engine.DurationSetter(func(d *Deployment) *time.Duration { return &d.Settings.Frontend.PerChunk })},
	{[]string{"frontend_jitter"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Settings.Frontend.Jitter })},
	{[]string{"frontend_contention"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.Settings.Frontend.Contention })},
	{[]string{"usd_per_hour", "price"}, engine.NumberSetter(func(d *Deployment) *float64 { return &d.USDPerHour })},
}

// setDType sets what is computed in, which is what weights are kept in unless
// they are quantised: of a quantised checkpoint 16 bits change nothing. Unlike
// vLLM's, it takes the types of quantised weights too.
func (d *Deployment) setDType(v string) error {
	t := shortDType(v)
	if t == "auto" || bytesOf[t] >= 2 && d.Model.Quantised != "" {
		return nil
	}
	d.DType = t
	return nil
}

// setQuantization sets what weights are kept in by the name of a method, or of
// a type.
func (d *Deployment) setQuantization(v string) error {
	t := catalogue.WeightDType(v)
	if t == "" && bytesOf[shortDType(v)] > 0 {
		t = shortDType(v)
	}
	switch {
	case t != "":
		d.DType = t
	case d.Model.Quantised == "":
		return fmt.Errorf("%q does not tell how many bits weights have; dtype=fp8, int8, int4 or fp4 does", v)
	}
	return nil
}

// shortDType is the short name of a data type.
func shortDType(t string) string {
	switch t = strings.ToLower(t); t {
	case "bfloat16":
		return "bf16"
	case "half", "float16":
		return "fp16"
	case "float", "float32":
		return "fp32"
	case "fp8_e4m3", "fp8_e5m2":
		return "fp8"
	}
	return t
}

// OfTwin says that a setting is of the model alone: no engine has a flag for it.
func OfTwin(name string) bool {
	for _, part := range []string{"overhead", "frontend_", "efficiency", "allreduce_", "exchange_", "slow_"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return slices.Contains([]string{"engine", "scale", "step_jitter", "launch_cv", "host", "link", "acceptance_rate", "usd_per_hour", "price", "replica_events", "prefill", "decode", "kv_transfer_gb_per_s", "router", "cache_threshold", "balance_abs_threshold", "balance_rel_threshold"}, name)
}

// shareSetter is a number of which zero stands for what the catalogue has.
func shareSetter(p func(*Deployment) *float64) func(*Deployment, string) error {
	set := engine.NumberSetter(p)
	return func(d *Deployment, v string) error {
		if err := set(d, v); err != nil {
			return err
		}
		if *p(d) == 0 {
			return say.Errorf("0 is no share of the datasheet's rate: it is above 0 and at most 1").WithHint("leave it out for what was measured of the accelerator")
		}
		return nil
	}
}
