package sglangapi

import (
	_ "embed"
	"math"
	"strconv"

	"pitot/internal/sim/serve/prom"
)

// layout is the page of SGLang 0.5.23 with --enable-metrics, and the limits of buckets that it has
// by default; those of stages are 0.001 times the powers of 1.62, as Python reckons them.
var layout = prom.ParseLayout(layoutText)

//go:embed metrics.txt
var layoutText string

// writeMetrics writes the page of all engines. A family has series once there was something to
// count, as in the real one.
func (a *api) writeMetrics(engines []reading, web *prom.HTTP) []byte {
	x := prom.NewPage(a.Began)
	x.Joined = true
	x.WriteSection(layout, "router", prom.Source{})
	web.ExposeCodes(x, "sglang:")
	x.Labels = map[string]string{"model_name": a.Name, "engine_type": "unified"}
	x.WriteSection(layout, "requests", requestSource(engines, a.Aborted()))
	x.WriteSection(layout, "start", prom.Source{})
	x.Labels["tp_rank"], x.Labels["pp_rank"], x.Labels["moe_ep_rank"] = "0", "0", "0"
	var sources, caches []prom.Source
	for i := range engines {
		source, rank := engines[i].source(), []string{"dp_rank", strconv.Itoa(i)}
		source.Values["context"] = float64(a.MaxModelLen)
		if len(engines) > 1 {
			source.Labels = rank
		}
		sources = append(sources, source)
		if r := &engines[i].engine.Radix; r.Evicted > 0 {
			times := &prom.Histogram{}
			times.ObserveN(evictBuckets, 0, r.Evictions)
			caches = append(caches, prom.Source{
				Labels: rank, Values: map[string]float64{"evicted": float64(r.Evicted)}, Histograms: map[string]*prom.Histogram{"eviction": times},
			})
		}
	}
	x.WriteSection(layout, "engines", sources...)
	x.Labels = map[string]string{"cache_type": "RadixCache", "tp_rank": "0", "pp_rank": "0"}
	x.WriteSection(layout, "cache", caches...)
	return x.Bytes()
}

// countedSource is a source without what counted nothing.
func countedSource(values map[string]int64, histograms map[string]*prom.Histogram) prom.Source {
	s := prom.Source{Values: map[string]float64{}, Histograms: map[string]*prom.Histogram{}}
	for name, n := range values {
		if n > 0 {
			s.Values[name] = float64(n)
		}
	}
	for name, h := range histograms {
		if h.N() > 0 {
			s.Histograms[name] = h
		}
	}
	return s
}

// requestSource are the numbers of the process that takes requests, over all engines.
func requestSource(engines []reading, aborted int64) prom.Source {
	var all tally
	for i := range engines {
		t := &engines[i].tally
		all.streamed.add(&t.streamed)
		all.whole.add(&t.whole)
		all.cached += t.cached
		all.itl.Add(&t.itl)
		all.prompt.Add(&t.prompt)
		all.uncached.Add(&t.uncached)
		all.reply.Add(&t.reply)
	}
	s := countedSource(map[string]int64{"cached": all.cached, "aborted": aborted}, map[string]*prom.Histogram{
		"itl": &all.itl, "prompt_length": &all.prompt, "uncached_length": &all.uncached, "reply_length": &all.reply,
		"streamed_ttft": &all.streamed.ttft, "streamed_tpot": &all.streamed.tpot, "streamed_e2e": &all.streamed.e2e,
		"whole_ttft": &all.whole.ttft, "whole_tpot": &all.whole.tpot, "whole_e2e": &all.whole.e2e,
	})
	for name, w := range map[string]*way{"streamed": &all.streamed, "whole": &all.whole} {
		if w.requests > 0 {
			s.Values[name+"_prompt"], s.Values[name+"_output"], s.Values[name+"_requests"] = float64(w.prompt), float64(w.output), float64(w.requests)
		}
	}
	return s
}

// source are the numbers of an engine's scheduler.
func (r *reading) source() prom.Source {
	e, x := &r.engine, &r.engine.Radix
	s := countedSource(map[string]int64{
		"computed": x.Computed, "found": x.Found, "generated": e.GenerationTokens, "prompt_steps": x.PromptSteps, "answer_steps": x.AnswerSteps,
		"retracted": e.Preemptions, "retracted_prompt": x.RetractedPrompt, "retracted_answer": x.RetractedAnswer,
	}, map[string]*prom.Histogram{"queue": &r.queue, "received": &r.received, "prefill": &r.prefill})
	s.Histograms["none"] = &prom.Histogram{}
	for name, n := range map[string]int{
		"tokens": x.Tokens, "used": x.Used, "evictable": x.Evictable, "available": x.Tokens - x.Used - x.Evictable, "decoding": x.Context,
		"running": e.Running, "waiting": e.Waiting, "computed_once": int(x.Computed - x.ComputedAgain), "found_once": int(x.Found - x.FoundAgain),
	} {
		s.Values[name] = float64(n)
	}
	s.Values["rate"], s.Values["hit_share"], s.Values["promised"] = x.Rate, x.HitShare, x.Promised
	s.Values["usage"], s.Values["rounded_usage"] = e.KVCacheUsage, math.Round(100*e.KVCacheUsage)/100
	return s
}
