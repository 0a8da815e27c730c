package serve

import (
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim/serve/dialect"
)

// route answers a request: with a reply, or with a stream that is to begin.
func (s *Server) route(c *conn, req *http.Request, arrival int64) (dialect.Reply, *stream) {
	path := req.URL.Path
	asked := dialect.Request{Method: req.Method, Path: path, Header: req.Header, Body: c.body.Bytes(), Loading: clock.Now() < s.ready}
	if req.Method == http.MethodOptions {
		if r, ok := s.dialect.Preflight(&asked); ok {
			return r, nil
		}
	}
	route, known := s.routes[path]
	if !known {
		return s.answerUnknownPath(req), nil
	}
	switch {
	case !slices.Contains(route.Methods, req.Method):
		r := s.dialect.Refuse(dialect.NoMethod)
		r.Header = "allow: " + strings.Join(route.Methods, ", ") + "\r\n"
		return r, nil
	case asked.Loading && !route.Early:
		return s.dialect.Refuse(dialect.Loading), nil
	case route.Metrics:
		return s.answerMetrics(), nil
	case route.Reply != nil:
		return route.Reply(&asked), nil
	}
	return s.generate(c, route, &asked, arrival)
}

// answerUnknownPath answers for a path that there is not: with the one that there is but
// for slashes at its end, as Python's web frameworks do.
func (s *Server) answerUnknownPath(req *http.Request) dialect.Reply {
	path := strings.TrimRight(req.URL.Path, "/")
	if _, known := s.routes[path]; !known || path == req.URL.Path {
		return s.dialect.Refuse(dialect.NoRoute)
	}
	to := url.URL{Scheme: "http", Host: req.Host, Path: path, RawQuery: req.URL.RawQuery}
	return dialect.Reply{Status: http.StatusTemporaryRedirect, Header: "location: " + to.String() + "\r\n"}
}

// hasValidKey says whether a request has a key, where one is asked for.
func (s *Server) hasValidKey(req *http.Request) bool {
	if s.cfg.APIKey == "" && len(s.cfg.APIKeys) == 0 || req.Method == http.MethodOptions || !s.dialect.Guarded(req.URL.Path) {
		return true
	}
	scheme, key, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && key != "" && (key == s.cfg.APIKey || slices.Contains(s.cfg.APIKeys, key))
}

// generate begins an answer, or refuses to. Each request has its line in the
// truth log, refused or not.
func (s *Server) generate(c *conn, route dialect.Route, asked *dialect.Request, arrival int64) (dialect.Reply, *stream) {
	asked.N = s.requests.Add(1) - 1
	t := Truth{
		RequestID: asked.Header.Get("X-Request-Id"),
		N:         asked.N,
		Path:      asked.Path,
		Status:    http.StatusOK,
		ArrivalNS: arrival,
	}
	asked.Garble = s.garblesAnswer(asked.N)
	call, refused := route.Generate(asked)
	if refused == nil && s.deserted.Load() {
		r := s.dialect.Refuse(dialect.NoEngine)
		refused = &r
	}
	limits, reset, allowed := s.countRequest(asked.Path)
	if refused == nil && !allowed {
		r := s.dialect.Refuse(dialect.TooMany)
		r.Header = fmt.Sprintf("retry-after: %d\r\n", int64((reset+time.Second-1)/time.Second))
		refused = &r
	}
	if refused == nil {
		t.PromptTokens = call.Prompt
		if id := asked.Header.Get("X-Session-Id"); id != "" {
			h := fnv.New64a()
			_, _ = io.WriteString(h, id)
			for i := range call.Jobs {
				call.Jobs[i].Session = h.Sum64() | 1 // 0 is none
			}
		}
		st := newStream(c, call, t)
		if asked.Garble {
			st.noteFault("garble")
		}
		st.limits = limits
		for _, f := range st.faults {
			if row := faultRow(f.Name); row.when == before && st.refused == nil {
				row.apply(st, f)
			}
		}
		if st.refused == nil {
			return dialect.Reply{}, st
		}
		refused, t = st.refused, st.truth
		t.ID = "" // it got no answer
	}
	refused.Header += limits
	t.Status = refused.Status
	t.DoneNS = clock.Now()
	s.stats.refused.Add(1)
	s.log(t)
	return *refused, nil
}
