// Package target is what is measured: it opens a target, asks it what the plan
// left open, adapts to what it takes, and says why it failed.
package target

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"pitot/internal/plan"
	"pitot/internal/say"
	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/wire"
	"pitot/internal/wire/api"
	"pitot/internal/wire/stamp"
	"pitot/internal/workload"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Target is a target that can be measured: reached, asked what it is, and
// with every choice made that the user left open.
type Target struct {
	Spec   string
	Kind   string
	Dialer *wire.Dialer
	API    api.API
	Route  string
	Secret string       // one a line
	Memory *wire.Memory // that answers may take

	Headers     []api.Header
	Options     api.Options
	Server      map[string]string // what it tells of itself
	Calibration workload.Calibration
	Timeout     time.Duration // for one request
	Residence   time.Duration // how long one request alone takes, 0 if not asked
	Notes       []string      // what was found out on the way and a user should know
	GPUs        int           // that serve an embedded target; 0 if not known
	GPUPrice    float64       // dollars an hour of each, its list price; 0 if not known

	URL         string
	Engine      func(seed uint64) twin.Engine // of a sim: target, a fresh one
	Thaw        func(at int64) int64          // and when what it does at a time can happen: its freezes
	key         string                        // what is sent of it as the API has it
	own         []api.Header                  // that the user gave
	keys        []string                      // where the keys that are sent came from
	certificate bool                          // it is shown one of this client
	unlisted    string                        // what came in place of its models, "" before they were asked for
	listed      bool                          // it has told which models it has
	began       float64                       // when its process did, seconds since 1970, 0 if it does not tell
	tells       bool                          // it has metrics of its own
	untold      int                           // how often in a row these could not be had
	saidSo      bool
	full        bool // the user gave the whole route
	guessed     bool // nobody said which API it speaks
	// outside says in what loads leave what an embedded target was fitted on, nil
	// if it was not; told are the quantities of which it was said.
	outside func(seen deploy.Range) []deploy.Departure
	told    []string
	probes  probes
	close   func()
}

// Close takes an embedded target down.
func (t *Target) Close() {
	if t.close != nil {
		t.close()
	}
	if t.Dialer != nil {
		t.Dialer.Readers.Close()
	}
}

// answerMemory is what the answers of a run may hold together, in bytes.
const answerMemory = 512 << 20

// dialTimeout is how long one connection may take to make, its handshakes
// included, where --timeout is no less.
const dialTimeout = 30 * time.Second

// Wanted are the parts of a plan that say what is measured and what for.
type Wanted struct {
	*plan.Target
	*plan.Ask
	*plan.Embedded
	Users int // of a closed loop, 0 where it is none or not known yet
}

// WantedBy gives those of a whole plan.
func WantedBy(p *plan.Plan) Wanted { return Wanted{&p.Target, &p.Ask, &p.Embedded, p.Concurrency} }

// Open finds the target that is wanted and asks it what was left open.
func Open(ctx context.Context, p Wanted, notef func(string)) (_ *Target, err error) {
	t := &Target{Spec: p.Spec, Kind: p.Kind(), Timeout: p.Timeout, Server: map[string]string{}}
	t.Options = api.Options{Model: p.Model, Stream: !p.NoStream, Vocab: token.Universal()}
	if p.Body != "" {
		t.Options.Body = []byte(p.Body)
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
	if t.Kind == "mock" {
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
	if err := t.secure(&e, p.Target); err != nil {
		return nil, err
	}
	t.Memory = wire.NewMemory(answerMemory)
	t.Dialer = &wire.Dialer{Endpoint: e, Timeout: shorter(dialTimeout, p.Timeout), Stamps: true, Readers: stamp.NewReaders()}
	if err := t.authorise(p.Target, p.Secrets()); err != nil {
		return nil, err
	}
	if err := t.chooseAPI(p.Target, route); err != nil {
		return nil, err
	}
	if err := t.ready(ctx, p.Wait, notef); err != nil {
		return nil, err
	}
	if p.NoProbe {
		return t, nil
	}
	if err := t.probe(ctx, p); err != nil {
		if ctx.Err() != nil { // stopped: whatever it looked like is no fault of the target
			err = ctx.Err()
		}
		return nil, err
	}
	return t, nil
}

// chooseAPI takes the API from the flag, from the route or, until the server has
// been asked, the one that most speak.
func (t *Target) chooseAPI(p *plan.Target, route string) error {
	if p.API != "" {
		a, ok := api.Named(p.API)
		if !ok {
			return say.Errorf("unknown API %q", p.API).WithHint(say.Known(p.API, api.Names()))
		}
		return t.speak(a, route)
	}
	a, _, ok := api.Of(route)
	if !ok {
		a, t.guessed = api.Default(), route == ""
	}
	return t.speak(a, route)
}

// authorise reads the key and takes the headers that the user gave. The key is
// nowhere but in memory; secrets are others that are sent.
func (t *Target) authorise(p *plan.Target, secrets []string) error {
	key, from := "", ""
	switch {
	case p.KeyFile != "":
		var err error
		if key, err = readKey(p.KeyFile, keyHint); err != nil {
			return err
		}
		from = "the file " + p.KeyFile
	case t.Kind == "http":
		key = strings.TrimSpace(os.Getenv(p.KeyEnv))
		if key == "" && p.KeyEnv != plan.Default().KeyEnv {
			return say.Errorf("--key-env: %s is not set", p.KeyEnv).WithHint("export " + p.KeyEnv + "=… first")
		}
		from = p.KeyEnv
	}
	if strings.ContainsAny(key, "\r\n\x00 ") {
		return say.Errorf("the API key from %s holds a space or line break", from).WithHint("the file or variable should hold the key alone")
	}
	for _, h := range p.PublicHeaders {
		name, value, _ := strings.Cut(h, "=")
		t.own = append(t.own, api.Header{Name: name, Value: value})
	}
	for _, h := range p.Headers {
		name, value, _ := strings.Cut(h, "=")
		t.own = append(t.own, api.Header{Name: name, Value: value})
		if !plan.PublicHeader(name) {
			t.hide(value)
		}
		if plan.IsSecret(name) {
			t.keys = append(t.keys, "--header "+name)
		}
	}
	for _, value := range secrets {
		t.hide(value)
	}
	if key != "" && !t.gives("authorization") {
		t.key = key
		t.hide(key)
		t.keys = append(t.keys, from)
	}
	return nil
}

// speak takes an API, at its own route where none is given. The headers of its requests
// are what it needs, but for those that the user gave.
func (t *Target) speak(a api.API, route string) error {
	t.API, t.Route, t.full = a, route, route != ""
	if !t.full {
		t.Route = t.Dialer.Endpoint.Base + a.Route()
	}
	t.URL = t.Dialer.Endpoint.URL(t.Route)
	needed := []api.Header{{Name: "User-Agent", Value: "pitot"}, {Name: "Content-Type", Value: "application/json"}}
	t.Headers = nil
	for _, h := range append(needed, a.Headers(t.key)...) {
		if !t.gives(h.Name) {
			t.Headers = append(t.Headers, h)
		}
	}
	t.Headers = append(t.Headers, t.own...)
	return t.prepare("")
}

// prepare sets what requests to an engine need, "" for that of any.
func (t *Target) prepare(engine string) error {
	if err := t.API.Prepare(engine, &t.Options); err != nil {
		return say.Errorf("--api %s: %v", t.API.Name(), err).WithHint(say.Hint(err))
	}
	return nil
}

// gives says whether the user gave a header of this name.
func (t *Target) gives(name string) bool {
	return slices.ContainsFunc(t.own, func(own api.Header) bool { return strings.EqualFold(own.Name, name) })
}

// hide adds a header's value to the secrets, and what follows its scheme, as
// in "Bearer …": a server may repeat that alone.
func (t *Target) hide(value string) {
	t.Secret += value + "\n"
	if _, rest, ok := strings.Cut(value, " "); ok {
		t.Secret += rest + "\n"
	}
}

// openMock starts the embedded target on a loopback socket and gives its URL.
func (t *Target) openMock(p Wanted) (string, error) {
	e, err := openEngine(p)
	if err != nil {
		return "", err
	}
	srv, err := e.serve(p, seed.Point(p.Seed, 0)) // as in virtual time
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the embedded target: %w", err)
	}
	go srv.Serve(l)
	t.close = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
	}
	t.tell("pitot mock, "+e.about, p, e)
	return "http://" + l.Addr().String(), nil
}
