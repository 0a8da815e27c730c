package api

import (
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/workload"
)

// dialect is an [API]: what can be said of it in words, and what it does in a way of its own.
type dialect struct {
	name      string
	routes    []string
	bare      bool              // it takes a bare prompt, no conversation
	bareRoute string            // the one route that does, "" where all are alike
	models    string            // path of the list of models, "" for none
	key       string            // variable of its users' key
	alias     map[string]string // its name in other tools' files
	sign      Sign
	framing   Framing
	maxField  string // name of the output limit

	decoder func() Decoder
	headers func(key string) []Header                          // nil: events or JSON, and a bearer's key
	list    func(body []byte) []Model                          // nil: as OpenAI's
	prepare func(engine string, o *Options) error              // nil: nothing but maxField
	concede func(refusal string, o *Options) result.Adaptation // of a refusal in lower case; nil: nothing
	asked   func(r *workload.Request, o Options) Asked
	body    func(dst []byte, r *workload.Request, o Options) ([]byte, error)
}

// Name implements [API].
func (d *dialect) Name() string { return d.name }

// Routes implements [API].
func (d *dialect) Routes() []string { return d.routes }

// Messages implements [API].
func (d *dialect) Messages(o Options) bool {
	return !d.bare && (d.bareRoute == "" || o.Route != d.bareRoute)
}

// Models implements [API].
func (d *dialect) Models() string { return d.models }

// KeyVariable implements [API].
func (d *dialect) KeyVariable() string { return d.key }

// Alias implements [API].
func (d *dialect) Alias(tool string) string { return d.alias[tool] }

// Sign implements [API].
func (d *dialect) Sign() Sign { return d.sign }

// Framing implements [API].
func (d *dialect) Framing() Framing { return d.framing }

// Decoder implements [API].
func (d *dialect) Decoder() Decoder { return d.decoder() }

// List implements [API].
func (d *dialect) List(body []byte) []Model {
	if d.list == nil {
		return openaiModels(body)
	}
	return d.list(body)
}

// Headers implements [API].
func (d *dialect) Headers(key string) []Header {
	if d.headers == nil {
		return requestHeaders(eventsOrJSON, bearer(key))
	}
	return d.headers(key)
}

// Prepare implements [API].
func (d *dialect) Prepare(engine string, o *Options) error {
	if engine == "" && d.maxField != "" {
		o.MaxField = d.maxField
	}
	if d.prepare == nil {
		return nil
	}
	return d.prepare(engine, o)
}

// Fault implements [API]: what its decoder reads in the body.
func (d *dialect) Fault(body []byte) string {
	var answer Delta
	answer.Clear()
	if d.decoder().Whole(body, &answer) != nil || answer.Fault == nil {
		return ""
	}
	return answer.Fault.Message
}

// Concede implements [API].
func (d *dialect) Concede(refusal string, o *Options) (none result.Adaptation) {
	if d.concede == nil {
		return none
	}
	return d.concede(strings.ToLower(refusal), o)
}

// Asked implements [API].
func (d *dialect) Asked(r *workload.Request, o Options) Asked { return d.asked(r, o) }

// Body implements [API].
func (d *dialect) Body(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	return d.body(dst, r, o)
}
