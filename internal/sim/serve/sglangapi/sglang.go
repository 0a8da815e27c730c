// Package sglangapi speaks as SGLang's HTTP server does: its OpenAI routes, what it tells
// of itself and of its model, how it refuses, and its metrics. Fields, their order, routes
// and the names of metrics are those of SGLang 0.5.23 (Apache-2.0), read in
// entrypoints/http_server.py, entrypoints/openai and observability/metrics_collector.py;
// testdata has the page of metrics that its own collectors wrote.
package sglangapi

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// api is the dialect.
type api struct {
	dialect.Served
	model *lm.Model
}

// Open gives the dialect for what is served.
func Open(s dialect.Served) dialect.Dialect { return &api{Served: s, model: s.Model} }

// Routes implements [dialect.Dialect].
func (a *api) Routes() []dialect.Route {
	get, post, put := []string{http.MethodGet}, []string{http.MethodPost}, []string{http.MethodGet, http.MethodPost}
	return []dialect.Route{
		{Path: "/v1/chat/completions", Methods: post, Generate: a.beginChat},
		{Path: "/v1/completions", Methods: post, Generate: a.beginCompletion},
		{Path: "/v1/models", Methods: get, Reply: a.answerModels},
		{Path: "/model_info", Methods: get, Reply: a.modelInfo},
		{Path: "/get_model_info", Methods: get, Reply: a.modelInfo},
		{Path: "/server_info", Methods: get, Reply: a.serverInfo},
		{Path: "/get_server_info", Methods: get, Reply: a.serverInfo},
		{Path: "/health", Methods: get, Early: true, Reply: answerHealth},
		{Path: "/health_generate", Methods: get, Early: true, Reply: answerHealth},
		{Path: "/ready", Methods: get, Early: true, Reply: answerHealth},
		{Path: "/ping", Methods: get, Early: true, Reply: answerHealth},
		{Path: "/flush_cache", Methods: put, Reply: keepsCache},
		{Path: "/metrics", Methods: get, Metrics: true},
	}
}

// Guarded implements [dialect.Dialect]: probes and metrics need no key.
func (a *api) Guarded(path string) bool {
	for _, open := range []string{"/health", "/ready", "/metrics"} {
		if strings.HasPrefix(path, open) {
			return false
		}
	}
	return true
}

// Header implements [dialect.Dialect].
func (a *api) Header() string { return "" }

// Preflight implements [dialect.Dialect]: pages of every origin may use it.
func (a *api) Preflight(r *dialect.Request) (dialect.Reply, bool) {
	origin, method := r.Header.Get("Origin"), r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || origin == "" || method == "" || strings.ContainsAny(origin, "\r\n") {
		return dialect.Reply{}, false
	}
	header := "vary: Origin\r\naccess-control-allow-methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\naccess-control-max-age: 600\r\n" +
		"access-control-allow-credentials: true\r\naccess-control-allow-origin: " + origin + "\r\n"
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header += "access-control-allow-headers: " + asked + "\r\n"
	}
	return dialect.Reply{Status: http.StatusOK, Type: "text/plain; charset=utf-8", Header: header, Bare: true, Body: []byte("OK")}, true
}

// answerHealth answers what asks whether the server is there. The real one has a token generated
// first and takes a second for it; this one answers at once.
func answerHealth(r *dialect.Request) dialect.Reply {
	if r.Loading {
		return dialect.Reply{Status: http.StatusServiceUnavailable}
	}
	return dialect.Reply{Status: http.StatusOK}
}

// keepsCache refuses to empty the cache: the engine has no such thing.
func keepsCache(*dialect.Request) dialect.Reply {
	return dialect.Reply{Status: http.StatusBadRequest, Type: "text/plain; charset=utf-8", Body: []byte("The mock does not flush its cache; start it again.\n")}
}

// answerModels answers /v1/models.
func (a *api) answerModels(*dialect.Request) dialect.Reply {
	type card struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		Created     int64   `json:"created"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen int     `json:"max_model_len"`
	}
	return dialect.JSON(http.StatusOK, struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}{"list", []card{{ID: a.Name, Object: "model", Created: int64(a.Began), OwnedBy: "sglang", Root: a.Name, MaxModelLen: a.MaxModelLen}}})
}

// modelInfo answers /model_info.
func (a *api) modelInfo(*dialect.Request) dialect.Reply {
	var reasoning *string
	if name := "mock"; a.model.IsReasoning() {
		reasoning = &name
	}
	return dialect.JSON(http.StatusOK, map[string]any{
		"model_path": a.Name, "served_model_name": a.Name, "tokenizer_path": a.Name, "is_generation": true, "preferred_sampling_params": nil,
		"weight_version": weightVersion, "load_format": "dummy", "reasoning_parser": reasoning, "tool_call_parser": "mock",
		"disaggregation_mode": "null", "has_image_understanding": false, "has_audio_understanding": false,
		"model_type": nil, "architectures": nil,
	})
}

// version is that of the SGLang whose dialect this is; what follows the + says, as
// Python's versions do, that it is another build.
const version = "0.5.23+pitot.mock"

// serverInfo answers /server_info: the settings that the engine has.
func (a *api) serverInfo(*dialect.Request) dialect.Reply {
	info := map[string]any{
		"model_path": a.Name, "served_model_name": a.Name, "tokenizer_path": a.Name, "enable_metrics": true, "enable_cache_report": a.PromptTokensDetails,
		"disaggregation_mode": "null", "launch_command": nil, "version": version, "frontend": "python",
	}
	for name, value := range a.Settings {
		info[name] = typedValue(value)
	}
	if tokens, ok := a.Settings["max_total_tokens"]; ok { // the setting is what was asked for, this is what came of it
		info["max_total_num_tokens"] = typedValue(tokens)
	}
	info["internal_states"] = []map[string]any{{
		"effective_max_running_requests_per_dp": info["max_running_requests"],
		"memory_usage":                          map[string]any{"token_capacity": info["max_total_num_tokens"]},
	}}
	return dialect.JSON(http.StatusOK, info)
}

// typedValue is a setting as JSON has it.
func typedValue(value string) any {
	if n, err := strconv.ParseFloat(value, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
		return n
	}
	if b, err := strconv.ParseBool(value); err == nil {
		return b
	}
	return value
}
