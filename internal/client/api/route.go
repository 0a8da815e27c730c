package api

import (
	"net/url"
	"slices"
	"strings"
)

// Where a request of an API goes, and which API a URL is of.

// modelInRoute stands in a route for the name of the model.
const modelInRoute = "{model}"

// NamesModel says whether the route holds the model's name.
func NamesModel(route string) bool { return strings.Contains(route, modelInRoute) }

// RoutePath is a route as it is asked for a model.
func RoutePath(route, model string) string {
	return strings.Replace(route, modelInRoute, url.PathEscape(model), 1)
}

// Match holds what the path of a URL says.
type Match struct {
	API   API
	Route string // of the API's routes
	Base  string // what stands in front of it and of the /v1 in it
	Model string // that it names, "" for none
}

// ByPath gives the API that a URL's path, with or without a query, ends in.
func ByPath(path string) (Match, bool) { return matchRoute(path, All()) }

// RouteOf gives the route of one API that a path ends in.
func RouteOf(a API, path string) (Match, bool) { return matchRoute(path, []API{a}) }

func matchRoute(path string, apis []API) (Match, bool) {
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimRight(path, "/")
	for _, a := range apis {
		for _, route := range a.Routes() {
			bare := withoutVersion(route)
			base, model, ok := cutRoute(path, bare)
			if bare == route && belowVersion(base) {
				continue // servers have their own routes beside /v1, not below it
			}
			if ok {
				return Match{a, route, base, model}, true
			}
		}
	}
	return Match{}, false
}

// belowVersion says whether a base goes down into /v1, or Cohere's /v2.
func belowVersion(base string) bool {
	return strings.Contains(base+"/", "/v1/") || strings.Contains(base+"/", "/v2/")
}

// cutRoute takes a route from the end of a path.
func cutRoute(path, route string) (base, model string, ok bool) {
	head, tail, named := strings.Cut(route, modelInRoute)
	if !named {
		base, ok = strings.CutSuffix(path, route)
		return base, "", ok
	}
	path, ok = strings.CutSuffix(path, tail)
	at := strings.Index(path, head) // a name may have slashes
	if !ok || at < 0 {
		return "", "", false
	}
	model, err := url.PathUnescape(path[at+len(head):])
	return path[:at], model, err == nil && model != ""
}

// RouteEnds returns the ends of the URLs of their routes, wherever a server has them.
func RouteEnds() (ends []string) {
	for _, a := range All() {
		for _, route := range a.Routes() {
			if end := withoutVersion(route); !slices.Contains(ends, end) { // two APIs may differ by the version alone
				ends = append(ends, end)
			}
		}
	}
	return ends
}

// ModelsPath is where an API's models are listed by a server that has one of its
// routes, or another API's, at a path, false for a path of none and for an API that
// has no such list.
func ModelsPath(a API, path string) (string, bool) {
	m, ok := matchRoute(path, append([]API{a}, All()...))
	if !ok || a.Models() == "" {
		return "", false
	}
	return m.Base + withoutVersion(a.Models()), true
}

// RouteBelow is a route as a server has it below a base. Google's has OpenAI's routes without the
// /v1 in them, below a version of its own.
func RouteBelow(base, route string) string {
	if strings.HasSuffix(base, "/v1beta/openai") {
		route = withoutVersion(route)
	}
	return base + route
}

// withoutVersion is a route without the /v1 that some servers have elsewhere.
func withoutVersion(route string) string {
	if rest, ok := strings.CutPrefix(route, "/v1"); ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return route
}
