// Package target is what is measured: it opens a target, asks it what the plan
// left open, adapts to what it takes, and says why it failed.
package target

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/telemetry/scrape"
	"pitot/internal/tokenizer"
	"pitot/internal/workload"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Target is a target that is ready to be measured: reachable, probed, and with every
// choice made that the user left open.
type Target struct {
	Spec   string
	Kind   string
	Dialer *client.Dialer
	API    api.API
	Route  string
	Secret string         // one a line
	Memory *client.Memory // that answers may take

	Headers     []api.Header
	Options     api.Options
	Tokenizer   *tokenizer.Tokenizer   // the model's, nil where the user gave none
	Server      map[string]string      // facts that the server reports about itself
	Held        *result.TokenizerMatch // of the tokenizer with the server, nil where that is not known
	Calibration workload.Calibration
	KV          KVCache             // as far as it is known
	Timeout     time.Duration       // for one request
	notef       func(string)        // shows what takes time
	answeredBy  string              // the model that the last response to a probe names, "" if none
	waiting     sync.Once           // a wait is shown
	Residence   time.Duration       // how long one request alone takes, 0 if not asked
	changes     string              // of an embedded one: which engines come and go while the load runs, in words
	firstChange time.Duration       // when the first does, from the start of the engine; 0 for never
	began       int64               // when the engine of a mock: started, by the clock of this process
	Notes       []string            // findings of the probing that the user should know
	Adaptations []result.Adaptation // what was changed or chosen because of what the server takes or lists
	Sources     []*scrape.Source    // pages of metrics to ask for while a load goes on, the server's own first
	GPUs        int                 // that serve an embedded target; 0 if not known
	GPUPrice    float64             // dollars an hour of each, its list price; 0 if not known

	URL            string
	Engine         func(seed uint64) sim.Engine                                  // of a sim: target, a fresh one
	Thaw           func(at int64) int64                                          // when something due at a time happens, given its freezes
	Refuse         func(seed uint64, n, at int64) (status int, retryAfter int64) // of a sim: target, the errors that it answers its n-th request with, as [loadgen.VirtualConfig] has it; nil for none
	key            string                                                        // sent as the API wants it
	bearer         bool                                                          // as Authorization instead
	userHeaders    []api.Header                                                  // that the user gave
	keySources     []string                                                      // where the keys that are sent came from
	certificate    bool                                                          // a client certificate is used
	modelsPage     int                                                           // status of a web page in its place, 0 for none
	modelsAnswer   string                                                        // error text in place of a list of models, "" if there was none
	modelsRedirect string                                                        // where it leads in its place, "" if it does not redirect
	hasModelList   bool                                                          // it listed its models
	fullRoute      bool                                                          // the user gave the whole route
	choices        int                                                           // answers to each request
	apiGuessed     bool                                                          // the API was chosen by default or the host, not by the user or the route
	// departures lists where loads leave the range that an embedded target was fitted
	// on, nil if it was not fitted; reportedDepartures are those already reported.
	departures         func(seen deploy.Range) []deploy.Departure
	reportedDepartures []string
	probes             probes
	noProbe            bool          // no request but the load's may be sent
	others             float64       // requests that the server ran before any load
	shortTakes         time.Duration // the slowest of a few short requests then, 0 where none was sent
	close              func()
}

// KVCache describes the KV cache of a server, as far as it is known.
type KVCache struct {
	BlockSize, Blocks int  // 0 where it is not known
	None              bool // there is none, or it keeps no prefix
	Several           bool // engines with a cache each: what one has depends on where requests are sent
}

// Close stops an embedded target.
func (t *Target) Close() {
	if t.close != nil {
		t.close()
	}
	for _, s := range t.Sources {
		s.Close()
	}
	if t.Dialer != nil {
		t.Dialer.Readers.Close()
	}
}

// answerMemory bounds the memory of all answers under way, in bytes.
const answerMemory = 512 << 20

// dialTimeout bounds the making of one connection, handshakes included, unless
// --timeout is less.
const dialTimeout = 30 * time.Second

// Wanted are the parts of a plan that opening a target needs.
type Wanted struct {
	*config.Target
	*config.Ask
	Users int // of a closed loop, 0 where it is none or not known yet

	flags *config.Embedded // of pitot mock, nil for none
}

// WantedBy gives them from a whole plan.
func WantedBy(p *config.Plan) Wanted {
	return Wanted{Target: &p.Target, Ask: &p.Ask, Users: p.Concurrency}
}

// Open connects to the target and probes it. notef is called with what takes time.
func Open(ctx context.Context, p Wanted, notef func(string)) (*Target, error) {
	return openKind(ctx, p, p.Kind(), notef)
}

// openKind does so for a target of a kind. One that stands behind a socket already is opened by
// its URL, whatever the kind: no other process serves it anew.
func openKind(ctx context.Context, p Wanted, kind string, notef func(string)) (_ *Target, err error) {
	t := &Target{Spec: p.Spec, Kind: kind, Timeout: p.Timeout, notef: notef, Server: map[string]string{}}
	t.Options = api.Options{Model: p.Model, Stream: !p.NoStream, Vocab: token.Universal(), IDs: p.PromptIDs}
	t.choices = p.Choices
	if p.Tokenizer != "" {
		if t.Tokenizer, err = tokenizer.Open(p.Tokenizer); err != nil {
			return nil, err
		}
		t.Server["tokenizer"] = t.Tokenizer.Name() + ", SHA-256 " + t.Tokenizer.Sum()
		if p.PromptIDs && (p.OwnText() || p.HasConversations()) {
			t.Options.Encode = encodeBy(t.Tokenizer)
		}
	}
	if fields := p.BodyFields(); fields != "" {
		t.Options.Body = []byte(fields)
	}
	if t.Kind == "sim" {
		return t, t.openSim(p)
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	spec := p.Spec
	if p.Kind() == "mock" {
		url, err := t.openMock(p)
		if err != nil {
			return nil, err
		}
		spec = url
	}
	e, route, err := parseTarget(spec)
	if err != nil {
		return nil, err
	}
	if err := t.configureTLS(&e, p.Target); err != nil {
		return nil, err
	}
	t.Memory = client.NewMemory(answerMemory)
	t.Dialer = &client.Dialer{Endpoint: e, Timeout: minTimeout(dialTimeout, p.Timeout), Stamps: true, Readers: stamp.NewReaders()}
	a, err := t.chooseAPI(p.Target, route)
	if err != nil {
		return nil, err
	}
	if err := t.setCredentials(p.Target, a, p.SecretValues()); err != nil {
		return nil, err
	}
	if err := t.useAPI(a, route); err != nil {
		return nil, err
	}
	if err := t.sourcesNamed(p.Target); err != nil {
		return nil, err
	}
	if err := t.waitReady(ctx, p.Wait, notef); err != nil {
		return nil, err
	}
	if t.noProbe = p.NoProbe; t.noProbe {
		if t.Tokenizer != nil && p.GeneratedWords() && t.takeWords() {
			t.lengthsByTokenizer(result.NoProbe)
		}
		return t, t.needsModel()
	}
	if err := t.probe(ctx, p); err != nil {
		if ctx.Err() != nil { // interrupted: not an error of the target
			err = ctx.Err()
		}
		return nil, err
	}
	return t, nil
}

// encodeBy makes token ids of prompts, one at a time.
func encodeBy(t *tokenizer.Tokenizer) api.Encode {
	var mu sync.Mutex
	e := t.NewEncoder()
	return func(ids []uint32, text []byte) ([]uint32, error) {
		mu.Lock()
		defer mu.Unlock()
		return e.AppendPrompt(ids, text)
	}
}

// chooseAPI takes the API from the flag, else from the route, else the default.
func (t *Target) chooseAPI(p *config.Target, route string) (api.API, error) {
	if p.API != "" {
		a, ok := api.ByName(p.API)
		if !ok {
			return nil, say.Errorf("unknown API %q", p.API).WithHint(say.KnownHint(p.API, api.Names()))
		}
		return a, nil
	}
	e := &t.Dialer.Endpoint
	if host, _, err := net.SplitHostPort(e.Addr); err == nil && route == "" {
		// Below a path of its own a host may have the API of another.
		if a, ok := api.ByHost(host); ok && (e.Base == "" || strings.HasPrefix(a.Routes()[0], e.Base+"/")) {
			e.Base, t.apiGuessed = "", true
			return a, nil
		}
	}
	m, ok := api.ByPath(route)
	if !ok {
		t.apiGuessed = route == ""
		if t.Options.IDs {
			return api.Completions, nil
		}
		return api.Default(), nil
	}
	return m.API, nil
}

// useAPI sets the API, its usual route if route is "", and the headers that it
// needs; headers of the user replace them.
func (t *Target) useAPI(a api.API, route string) error {
	if t.choices > 1 && a.Name() != "openai-chat" && a.Name() != "openai-completions" {
		return say.Errorf("--set n=%d: a request of %s has one answer", t.choices, a.Name()).WithHint("ask by --api openai-chat or openai-completions, or leave --set n out")
	}
	if t.Options.IDs && !api.TakesIDs(a) {
		return say.Errorf("--set prompt-ids: %s takes no prompt of token ids", a.Name()).WithHint("ask by --api openai-completions or sglang, or leave --set prompt-ids out")
	}
	t.API, t.Route, t.fullRoute = a, route, route != ""
	t.Options.Route = a.Routes()[0]
	if m, ok := api.RouteOf(a, route); ok {
		t.Options.Route = m.Route
		if m.Model != "" && t.Options.Model != "" && m.Model != t.Options.Model {
			return say.Errorf("--model %s, but the target's URL names %s", t.Options.Model, m.Model).WithHint("leave one of them out")
		}
		t.Options.Model = cmp.Or(t.Options.Model, m.Model)
	}
	t.setHeaders()
	return t.prepareOptions("")
}

// prepareOptions sets the options of requests for an engine, "" while it is not known.
func (t *Target) prepareOptions(engine string) error {
	if err := t.API.Prepare(engine, &t.Options); err != nil {
		return say.Errorf("--api %s: %v", t.API.Name(), err).WithHint(say.HintOf(err))
	}
	t.setRoute()
	return nil
}

// setRoute sets the path of the requests to the API's route for the options, unless
// the user gave the whole path.
func (t *Target) setRoute() {
	if !t.fullRoute {
		t.Route = api.RouteBelow(t.Dialer.Endpoint.Base, api.RoutePath(t.Options.Route, t.Options.Model))
	}
	t.URL = t.Dialer.Endpoint.URL(t.Route)
}

// askFor sets the model that is asked for.
func (t *Target) askFor(model string) {
	t.Options.Model = model
	t.setRoute()
}

// needsModel says that the requests cannot be sent for want of the model's name.
func (t *Target) needsModel() error {
	if t.Options.Model == "" && !t.fullRoute && api.NamesModel(t.Options.Route) {
		return say.Errorf("the route %s of %s names the model", t.Options.Route, t.API.Name()).WithHint("name it with --model NAME")
	}
	return nil
}

// openMock starts the embedded target on a loopback socket and gives its URL.
func (t *Target) openMock(p Wanted) (string, error) {
	e, err := openEngine(p)
	if err != nil {
		return "", err
	}
	srv, err := e.newServer(p, seed.Point(p.Seed, 0)) // as in virtual time
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the embedded target: %w", err)
	}
	t.began = clock.Now()
	go srv.Serve(l)
	t.close = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
	}
	t.noteEmbedded("pitot mock, "+e.about, p, e)
	return "http://" + l.Addr().String(), nil
}
