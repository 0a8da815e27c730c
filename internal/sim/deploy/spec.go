package deploy

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/engine"
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
	names string // vLLM's first
	to    any    // what it sets, as [engine.Assign] takes it
}

// engineSetting is the setting that names the engine: it says whose settings the others are.
const engineSetting = "engine"

// settings are those that are no engine's own, in the order in which help shows them.
func (d *Deployment) settings() []setting {
	s, f, e, r := &d.Settings, &d.Settings.Frontend, &d.Efficiency, &d.Routing
	return []setting{
		{engineSetting, d.setEngine},
		{"max_num_seqs", &s.MaxNumSeqs},
		{"max_num_batched_tokens", &s.MaxNumBatchedTokens},
		{"max_model_len", func(v string) error {
			if v == "auto" || v == "-1" {
				s.MaxModelLen = engine.Auto
				return nil
			}
			return engine.Assign(engine.Positive(&s.MaxModelLen), v)
		}},
		{"block_size", &s.BlockSize},
		{"num_gpu_blocks_override num_gpu_blocks", engine.Positive(&s.NumGPUBlocks)},
		{"gpu_memory_utilization", &d.MemoryUtilization},
		{"tensor_parallel_size tp tp_size", &d.TensorParallel},
		{"data_parallel_size dp dp_size", &d.DataParallel},
		{"router", func(v string) error {
			r.Router = strings.ReplaceAll(strings.ToLower(v), "-", "_")
			return nil
		}},
		{"api_server_count", engine.Positive(&r.Frontends)},
		{"cache_threshold", &r.CacheThreshold},
		{"balance_abs_threshold", &r.BalanceAbsThreshold},
		{"balance_rel_threshold", &r.BalanceRelThreshold},
		{"prefill", engine.Positive(&d.pools.prefill)},
		{"decode", engine.Positive(&d.pools.decode)},
		{"kv_transfer_gb_per_s", &d.pools.gbs},
		{"replica_events", &d.events},
		{"enable_expert_parallel", &d.ExpertParallel},
		{"dtype", d.setDType},
		{"quantization", d.setQuantization},
		{"kv_cache_dtype kv_dtype", func(v string) error {
			d.KVDType = shortDType(v)
			return nil
		}},
		{"enable_prefix_caching", &s.EnablePrefixCaching},
		{"async_scheduling", &s.AsyncScheduling},
		{"num_speculative_tokens", &s.NumSpeculativeTokens},
		{"num_speculative_tokens_per_batch_size", d.setSchedule},
		{"speculative_method", d.setMethod},
		{"parallel_drafting", &d.parallelDrafts},
		{"acceptance_rate", &s.AcceptanceRate},
		{"cudagraph_mode", d.setGraphs},
		{"max_cudagraph_capture_size", engine.Positive(&d.CaptureSize)},
		{"enforce_eager", func(v string) error {
			var eagerly bool
			if err := engine.Assign(&eagerly, v); err != nil || !eagerly {
				return err
			}
			return d.setGraphs("none")
		}},
		{"stream_interval", &s.StreamInterval},
		{"scale", &e.Scale},
		{"step_jitter", &s.StepJitter},
		{"slow_cv", &s.SlowCV},
		{"slow_time", &s.SlowTime},
		{"launch_cv", &d.LaunchCV},
		{"host", func(v string) (err error) {
			d.host, err = catalogue.FindHost(v)
			return err
		}},
		{"step_overhead", &e.PerStep},
		{"row_overhead", &e.PerRequest},
		{"prefill_overhead", &e.PerPrefill},
		{"prompt_overhead", &e.PerPrompt},
		{"layer_overhead", &e.PerLayer},
		{"launch_overhead", &e.PerLaunch},
		{"link", d.setLink},
		{"disable_custom_all_reduce", &d.withoutCustomReduce},
		{"allreduce_latency", &e.Collective},
		{"allreduce_gb_per_s", &e.CollectiveGBs},
		{"exchange_latency", &e.Exchange},
		{"exchange_gb_per_s", &e.ExchangeGBs},
		{"bandwidth_efficiency", &e.Bandwidth},
		{"compute_efficiency", &e.Compute},
		{"attention_efficiency", &e.Attention},
		{"prompt_attention_efficiency", &e.PromptAttention},
		{"frontend_latency", &f.Latency},
		{"frontend_request", &f.PerRequest},
		{"frontend_prompt_token", &f.PerPromptToken},
		{"frontend_step", &f.PerStep},
		{"frontend_chunk", &f.PerChunk},
		{"frontend_jitter", &f.Jitter},
		{"frontend_contention", &f.Contention},
		{"usd_per_hour price", &d.USDPerHour},
	}
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
		return fmt.Errorf("%q does not say how many bits weights have; dtype=fp8, int8, int4 or fp4 does", v)
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
