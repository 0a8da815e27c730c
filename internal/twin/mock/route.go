package mock

import (
	"encoding/json"
	"net/http"
	"strings"

	"pitot/internal/clock"
)

// routes are the paths there are, each with its one method.
var routes = map[string]string{
	"/v1/chat/completions": http.MethodPost,
	"/v1/completions":      http.MethodPost,
	"/tokenize":            http.MethodPost,
	"/v1/models":           http.MethodGet,
	"/health":              http.MethodGet,
	"/version":             http.MethodGet,
}

// route answers a request: with a reply, or with a stream that is to begin.
func (s *Server) route(c *conn, req *http.Request, arrival int64) (reply, *stream) {
	path := req.URL.Path
	method, known := routes[path]
	if !known {
		return failure(http.StatusNotFound, "Not Found"), nil
	}
	if req.Method != method && !(req.Method == http.MethodHead && method == http.MethodGet) {
		r := failure(http.StatusMethodNotAllowed, "Method Not Allowed")
		r.extra = "allow: " + method + "\r\n"
		return r, nil
	}
	if s.cfg.APIKey != "" && strings.HasPrefix(path, "/v1/") &&
		req.Header.Get("Authorization") != "Bearer "+s.cfg.APIKey {
		return failure(http.StatusUnauthorized, "Unauthorized"), nil
	}
	switch path {
	case "/health":
		return reply{status: http.StatusOK}, nil
	case "/version":
		return ok(map[string]string{"version": "pitot-mock"}), nil
	case "/v1/models":
		return ok(s.models()), nil
	case "/tokenize":
		return s.tokenize(c.body.Bytes()), nil
	}
	return s.generate(c, req, arrival)
}

// generate begins an answer, or refuses to. Each request has its line in the
// truth log, refused or not.
func (s *Server) generate(c *conn, req *http.Request, arrival int64) (reply, *stream) {
	t := Truth{
		ID:        req.Header.Get("X-Request-Id"),
		N:         s.requests.Add(1) - 1,
		Path:      req.URL.Path,
		Status:    http.StatusOK,
		ArrivalNS: arrival,
	}
	a, refused := s.parse(c.body.Bytes(), req.URL.Path == "/v1/chat/completions")
	if refused == nil {
		t.PromptTokens = a.prompt
		st := newStream(c, a, t)
		for _, f := range st.faults {
			if row := faultRow(f.Name); row.when == before && st.refused == nil {
				row.apply(st, f)
			}
		}
		if st.refused == nil {
			return reply{}, st
		}
		refused, t = st.refused, st.truth
	}
	t.Status = refused.status
	t.DoneNS = clock.Now()
	s.stats.refused.Add(1)
	s.log(t)
	return *refused, nil
}

// modelCard is one entry of /v1/models.
type modelCard struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"`
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	Root        string   `json:"root"`
	Parent      *string  `json:"parent"`
	MaxModelLen int      `json:"max_model_len"`
	Permission  []string `json:"permission"`
}

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

func (s *Server) models() modelList {
	return modelList{"list", []modelCard{{
		ID: s.cfg.Model, Object: "model", Created: s.begun, OwnedBy: "pitot",
		Root: s.cfg.Model, MaxModelLen: s.cfg.MaxModelLen, Permission: []string{},
	}}}
}

// tokenized is the answer of /tokenize. The ids only have the right number.
type tokenized struct {
	Count       int   `json:"count"`
	MaxModelLen int   `json:"max_model_len"`
	Tokens      []int `json:"tokens"`
}

func (s *Server) tokenize(body []byte) reply {
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		return *rejection("", "invalid JSON body: %v", err)
	}
	n, err := s.promptTokens(q, len(q.Messages) > 0)
	if err != nil {
		return *rejection("prompt", "%v", err)
	}
	t := tokenized{Count: n, MaxModelLen: s.cfg.MaxModelLen, Tokens: make([]int, n)}
	for i := range t.Tokens {
		t.Tokens[i] = i
	}
	return ok(t)
}
