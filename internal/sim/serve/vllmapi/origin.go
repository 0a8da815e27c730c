package vllmapi

import (
	"net/http"
	"slices"
	"strings"

	"pitot/internal/sim/serve/dialect"
)

// vLLM lets pages of no other origin use it, unless it is configured to. That is what
// Starlette, the framework under it, makes of this.

// Header implements [dialect.Dialect].
func (a *api) Header() string { return "vary: Origin\r\n" }

// allowedMethods are those that a page may use.
var allowedMethods = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY"}

// Preflight implements [dialect.Dialect].
func (a *api) Preflight(r *dialect.Request) (dialect.Reply, bool) {
	method := r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || r.Header.Get("Origin") == "" || method == "" {
		return dialect.Reply{}, false
	}
	refused := "Disallowed CORS origin"
	if !slices.Contains(allowedMethods, method) {
		refused += ", method"
	}
	header := "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network\r\n" +
		"access-control-allow-methods: " + strings.Join(allowedMethods, ", ") + "\r\naccess-control-max-age: 600\r\n"
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header += "access-control-allow-headers: " + asked + "\r\n"
	}
	return dialect.Reply{Status: http.StatusBadRequest, Type: "text/plain; charset=utf-8", Header: header, Bare: true, Body: []byte(refused)}, true
}
