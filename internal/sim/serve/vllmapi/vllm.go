// Package vllmapi speaks as vLLM 0.32's API server does: its OpenAI routes, what
// it says of requests that it does not take (in pydantic's words), the bytes of
// its answers, and its metrics. testdata has what a real server sent.
package vllmapi

import (
	"net/http"
	"strings"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// api is the dialect.
type api struct {
	dialect.Served
	model   *lm.Model
	parsing parsing
}

// Open gives the dialect for what is served.
func Open(s dialect.Served) dialect.Dialect { return &api{Served: s, model: s.Model} }

// Routes implements [dialect.Dialect]. A new API of vLLM's is a file that reads
// its requests and writes its answers, and a line here.
func (a *api) Routes() []dialect.Route {
	get, post, both := []string{http.MethodGet}, []string{http.MethodPost}, []string{http.MethodGet, http.MethodPost}
	return []dialect.Route{
		{Path: "/v1/chat/completions", Methods: post, Generate: a.beginChat},
		{Path: "/v1/completions", Methods: post, Generate: a.beginCompletion},
		{Path: "/v1/responses", Methods: post, Generate: a.beginResponses},
		{Path: "/v1/messages", Methods: post, Generate: a.beginMessages},
		{Path: "/v1/messages/count_tokens", Methods: post, Reply: a.countTokens},
		{Path: "/v1/chat/completions/render", Methods: post, Reply: answerDisabled},
		{Path: "/v1/completions/render", Methods: post, Reply: answerDisabled},
		{Path: "/v1/messages/render", Methods: post, Reply: answerDisabled},
		{Path: "/v1/responses/render", Methods: post, Reply: answerDisabled},
		{Path: "/tokenize", Methods: post, Reply: a.tokenize},
		{Path: "/detokenize", Methods: post, Reply: a.answerDetokenize},
		{Path: "/v1/models", Methods: get, Reply: a.answerModels},
		{Path: "/health", Methods: get, Early: true, Uncounted: true, Reply: answerHealth},
		{Path: "/ping", Methods: both, Early: true, Uncounted: true, Reply: answerHealth},
		{Path: "/version", Methods: get, Uncounted: true, Reply: answerVersion},
		{Path: "/load", Methods: get, Uncounted: true, Reply: a.answerLoad},
		{Path: "/metrics", Methods: both, Uncounted: true, Metrics: true},
	}
}

// Guarded implements [dialect.Dialect].
func (a *api) Guarded(path string) bool { return strings.HasPrefix(path, "/v1") }

func answerHealth(r *dialect.Request) dialect.Reply {
	if r.Loading {
		return dialect.Reply{Status: http.StatusServiceUnavailable}
	}
	return dialect.Reply{Status: http.StatusOK}
}

// answerVersion is that of the vLLM whose dialect this is; what follows the + says,
// as Python's versions do, that it is another build.
func answerVersion(*dialect.Request) dialect.Reply {
	return dialect.JSON(http.StatusOK, map[string]string{"version": "0.32.0+pitot.mock"})
}

// answerDisabled answers the routes that vLLM has only when it is started for them.
func answerDisabled(*dialect.Request) dialect.Reply {
	return errorReply(http.StatusForbidden, "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.")
}

func (a *api) answerLoad(*dialect.Request) dialect.Reply {
	return dialect.JSON(http.StatusOK, map[string]int64{"server_load": a.Active()})
}
