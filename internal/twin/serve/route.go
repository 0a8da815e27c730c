package serve

import (
	"net/http"
	"slices"
	"strings"

	"pitot/internal/clock"
	"pitot/internal/twin/serve/prom"
)

// routes are the paths there are, each with its methods.
var routes = map[string]string{
	"/v1/chat/completions": "POST",
	"/v1/completions":      "POST",
	"/tokenize":            "POST",
	"/detokenize":          "POST",
	"/v1/models":           "GET",
	"/health":              "GET",
	"/ping":                "GET, POST",
	"/version":             "GET",
	"/load":                "GET",
	"/metrics":             "GET, POST",
}

// uncounted are the routes that only look after the server.
var uncounted = []string{"/metrics", "/health", "/load", "/ping", "/version"}

// count counts an exchange that was no look after the server. Who has no key is
// turned away before anything counts.
func (s *Server) count(x prom.Exchange) {
	if _, known := routes[x.Route]; !known {
		x.Route = ""
	}
	if x.Status != http.StatusUnauthorized && !slices.Contains(uncounted, x.Route) {
		s.web.Count(x)
	}
}

// route answers a request: with a reply, or with a stream that is to begin.
func (s *Server) route(c *conn, req *http.Request, arrival int64) (reply, *stream) {
	path := req.URL.Path
	if strings.HasPrefix(path, "/v1") && req.Method != http.MethodOptions && !s.admits(req) {
		return reply{status: http.StatusUnauthorized, body: []byte(`{"error":"Unauthorized"}`)}, nil
	}
	methods, known := routes[path]
	if !known {
		return detail(http.StatusNotFound, "Not Found"), nil
	}
	if !slices.Contains(strings.Split(methods, ", "), req.Method) {
		r := detail(http.StatusMethodNotAllowed, "Method Not Allowed")
		r.extra = "allow: " + methods + "\r\n"
		return r, nil
	}
	health := path == "/health" || path == "/ping"
	switch {
	case clock.Now() >= s.ready:
	case health:
		return reply{status: http.StatusServiceUnavailable}, nil
	default:
		return failure(http.StatusServiceUnavailable, "The model is still being loaded."), nil
	}
	if health {
		return reply{status: http.StatusOK}, nil
	}
	if req.Method == http.MethodPost && path != "/metrics" {
		if r := jsonBody(req); r != nil {
			return *r, nil
		}
	}
	switch path {
	case "/version":
		return ok(map[string]string{"version": "pitot-mock"}), nil
	case "/load":
		return ok(map[string]int64{"server_load": s.Stats().Active}), nil
	case "/metrics":
		return s.metrics(), nil
	case "/v1/models":
		return ok(s.models()), nil
	case "/tokenize":
		return s.tokenize(c.body.Bytes()), nil
	case "/detokenize":
		return s.detokenize(c.body.Bytes()), nil
	}
	return s.generate(c, req, arrival)
}

// admits says whether a request has a key, if one is asked for.
func (s *Server) admits(req *http.Request) bool {
	if s.cfg.APIKey == "" && len(s.cfg.APIKeys) == 0 {
		return true
	}
	scheme, key, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && key != "" && (key == s.cfg.APIKey || slices.Contains(s.cfg.APIKeys, key))
}

// generate begins an answer, or refuses to. Each request has its line in the
// truth log, refused or not.
func (s *Server) generate(c *conn, req *http.Request, arrival int64) (reply, *stream) {
	t := Truth{
		RequestID: req.Header.Get("X-Request-Id"),
		N:         s.requests.Add(1) - 1,
		Path:      req.URL.Path,
		Status:    http.StatusOK,
		ArrivalNS: arrival,
	}
	a, refused := s.parse(c.body.Bytes(), req.URL.Path == "/v1/chat/completions", t.N)
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
		t.ID = "" // it got no answer
	}
	t.Status = refused.status
	t.DoneNS = clock.Now()
	s.stats.refused.Add(1)
	s.log(t)
	return *refused, nil
}

// modelCard is one entry of /v1/models.
type modelCard struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"`
	MaxModelLen int          `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

// permission is what clients may do with a model; it is for clients that
// expect one.
type permission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

func (s *Server) models() modelList {
	return modelList{"list", []modelCard{{
		ID: s.cfg.Model, Object: "model", Created: s.begun, OwnedBy: "pitot",
		Root: s.cfg.Model, MaxModelLen: s.cfg.MaxModelLen, Permission: []permission{{
			ID: "modelperm-" + s.cfg.Model, Object: "model_permission", Created: s.begun,
			AllowSampling: true, AllowLogprobs: true, AllowView: true, Organization: "*",
		}},
	}}}
}
