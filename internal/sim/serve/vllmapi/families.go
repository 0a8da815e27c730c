package vllmapi

import (
	_ "embed"
	"maps"
	"strconv"

	"pitot/internal/sim/serve/prom"
)

// layout is the page of a vLLM 0.32 server, with the limits of vllm/v1/metrics/buckets.py.
var layout = prom.ParseLayout(layoutText)

//go:embed metrics.txt
var layoutText string

// writeMetrics writes what a vLLM 0.32 server writes of its process, its engines and
// its routes: the same families in the same
// order, with the same labels and buckets.
func (a *api) writeMetrics(engines []reading, tokens []float64, web *prom.HTTP) []byte {
	l := *layout
	l.Buckets = maps.Clone(layout.Buckets)
	l.Buckets["tokens"] = tokens
	x := prom.NewPage(a.Began)
	x.WritePython()
	x.WriteProcess()
	x.Labels = map[string]string{"model_name": a.Name}
	var sources, settings []prom.Source
	for i := range engines {
		number := []string{"engine", strconv.Itoa(i)}
		sources = append(sources, prom.Source{Labels: number, Values: engines[i].values(), Histograms: engines[i].histograms()})
		settings = append(settings, prom.Source{Labels: append(number, a.cacheConfig()...)})
	}
	if positions := len(engines[0].engine.AcceptedPerPosition); positions > 0 {
		x.WriteSection(&l, "drafts", sources...)
		var all []prom.Series
		for i := range positions {
			for k, source := range sources {
				all = append(all, prom.Series{
					Value:  float64(engines[k].engine.AcceptedPerPosition[i]),
					Labels: append(source.Labels, "position", strconv.Itoa(i)),
				})
			}
		}
		x.WriteCounter("vllm:spec_decode_num_accepted_tokens_per_pos", "Draft tokens that were accepted, by their position.", all...)
	}
	x.WriteSection(&l, "engines", sources...)
	x.WriteSection(&l, "front end", prom.Source{}) // which has no engine's number
	x.WriteSection(&l, "distributions", sources...)
	x.Labels = map[string]string{}
	x.WriteSection(&l, "settings", settings...)
	web.Expose(x)
	x.Labels["model_name"] = a.Name
	x.WriteSection(&l, "tools", prom.Source{Values: a.parsing.values()})
	return x.Bytes()
}

// values are the numbers of an engine by their names in the layout.
func (r *reading) values() map[string]float64 {
	values := map[string]float64{
		"drafts": float64(r.engine.Drafts), "draft_tokens": float64(r.engine.DraftTokens), "accepted_tokens": float64(r.engine.AcceptedTokens),
		"running": float64(r.engine.Running), "waiting": float64(r.engine.Waiting), "kv_cache_usage": r.engine.KVCacheUsage,
		"prefix_queries": float64(r.engine.PrefixQueries), "prefix_hits": float64(r.engine.PrefixHits), "preemptions": float64(r.engine.Preemptions),
		"prompt": float64(r.promptTokens), "cached": float64(r.cachedTokens), "computed": float64(r.promptTokens - r.cachedTokens),
		"generated": float64(r.generationTokens),
	}
	for i, reason := range finishReasons {
		values[reason] = float64(r.success[i])
	}
	return values
}

// histograms are those of an engine by their names in the layout.
func (r *reading) histograms() map[string]*prom.Histogram {
	return map[string]*prom.Histogram{
		"prompt_length": &r.promptLength, "output_length": &r.outputLength, "iteration": &r.iteration, "max_output": &r.maxOutput,
		"params_n": &r.paramsN, "params_max_tokens": &r.paramsMaxTokens, "ttft": &r.ttft, "itl": &r.itl, "tpot": &r.tpot, "e2e": &r.e2e,
		"queue": &r.queue, "inference": &r.inference, "prefill": &r.prefill, "decode": &r.decode,
		"request_preemptions": &r.preemptions, "prefill_computed": &r.prefillComputed,
	}
}

// cacheConfig are the labels of cache_config_info in which this engine is not as vLLM is by
// default.
func (a *api) cacheConfig() (labels []string) {
	if blocks, err := strconv.Atoi(a.Cache["num_gpu_blocks"]); err == nil && a.BlockSize > 0 {
		size, tokens := strconv.Itoa(a.BlockSize), blocks*a.BlockSize
		labels = []string{"block_size", size, "effective_attention_block_size", size, "kv_cache_size_tokens", strconv.Itoa(tokens),
			"kv_cache_max_concurrency", prom.FormatFloat(float64(tokens) / float64(a.MaxModelLen))}
	}
	for name, value := range a.Cache {
		labels = append(labels, name, value)
	}
	return labels
}
