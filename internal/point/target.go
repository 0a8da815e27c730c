// Package point takes a plan to a result: it finds out about the target,
// opens the run directory, runs the load, and measures what was recorded.
package point

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"pitot/internal/clock"
	"pitot/internal/plan"
	"pitot/internal/record"
	"pitot/internal/twin"
	"pitot/internal/twin/mock"
	"pitot/internal/user"
	"pitot/internal/wire"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// Target is a target that can be measured: reached, asked what it is, and
// with every choice made that the user left open.
type Target struct {
	Spec   string
	Kind   string
	Dialer *wire.Dialer
	API    wire.API
	Route  string
	Secret string // one a line

	Headers     []wire.Header
	Options     wire.Options
	Server      map[string]string // what it tells of itself
	Calibration workload.Calibration
	Timeout     time.Duration // for one request
	Residence   time.Duration // how long one request alone takes, 0 if not asked
	Notes       []string      // what was found out on the way and a user should know

	URL    string
	Engine func(seed uint64) twin.Engine // of a sim: target, a fresh one
	close  func()
}

// Close takes an embedded target down.
func (t *Target) Close() {
	if t.close != nil {
		t.close()
	}
	if t.Dialer != nil {
		t.Dialer.Scout.Close()
	}
}

// TargetError is a target that cannot be measured: unreachable, or refusing.
type TargetError struct {
	Msg  string
	Hint string
}

func (e *TargetError) Error() string { return e.Msg }

// dialTimeout is how long one connection may take to make.
const dialTimeout = 30 * time.Second

// OpenTarget finds the target of a plan and asks it what the plan left open.
func OpenTarget(ctx context.Context, p *plan.Plan, say func(string)) (_ *Target, err error) {
	t := &Target{Spec: p.Target, Kind: p.Kind(), Timeout: p.Timeout, Server: map[string]string{}}
	t.Options = wire.Options{Model: p.Model, Stream: !p.NoStream, Vocab: token.Universal(), MaxField: "max_tokens"}
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
	spec := p.Target
	if t.Kind == "mock" {
		url, err := t.openMock(p)
		if err != nil {
			return nil, err
		}
		spec = url
	}
	e, route, err := wire.ParseTarget(spec)
	if err != nil {
		return nil, user.Errorf("for example http://localhost:8000, https://api.example.com/v1, or mock:llama-3.1-8b@h100", "target %q: %v", p.Target, err)
	}
	if err := t.secure(&e, p); err != nil {
		return nil, err
	}
	t.Dialer = &wire.Dialer{Endpoint: e, Timeout: dialTimeout, Stamps: true, Scout: clock.NewScout()}
	if err := t.authorise(p); err != nil {
		return nil, err
	}
	if err := t.chooseAPI(p, route); err != nil {
		return nil, err
	}
	t.URL = e.URL(t.Route)
	if err := t.ready(ctx, p, say); err != nil {
		return nil, err
	}
	if p.NoProbe {
		return t, nil
	}
	if err := t.probe(ctx, p, say); err != nil {
		if ctx.Err() != nil { // stopped: whatever it looked like is no fault of the target
			err = ctx.Err()
		}
		return nil, err
	}
	return t, nil
}

// chooseAPI takes the API from the flag, the route or, until the server has
// been asked, chat.
func (t *Target) chooseAPI(p *plan.Plan, route string) error {
	if p.API != "" {
		var names []string
		for _, a := range wire.APIs() {
			names = append(names, a.Name())
			if a.Name() == p.API {
				t.API = a
			}
		}
		if t.API == nil {
			return user.Errorf(user.Known(p.API, names), "unknown API %q", p.API)
		}
	} else if api, ok := wire.APIOf(route); ok {
		t.API = api
	} else {
		t.API = wire.Chat{}
	}
	t.Route = route
	if route == "" {
		t.Route = t.Dialer.Endpoint.Base + t.API.Route()
	}
	return nil
}

// secure sets up TLS and the proxy.
func (t *Target) secure(e *wire.Endpoint, p *plan.Plan) error {
	e.Config = &tls.Config{InsecureSkipVerify: p.Insecure}
	if p.CACert != "" {
		pem, err := os.ReadFile(p.CACert)
		if err != nil {
			return user.Errorf("", "read --ca-cert: %v", err)
		}
		e.Config.RootCAs = x509.NewCertPool()
		if !e.Config.RootCAs.AppendCertsFromPEM(pem) {
			return user.Errorf("it should begin with -----BEGIN CERTIFICATE-----", "no certificate in %s", p.CACert)
		}
	}
	if p.Proxy != "" {
		u, err := url.Parse(p.Proxy)
		if err != nil {
			return user.Errorf("", "--proxy: malformed URL")
		}
		e.Proxy = u
	}
	return nil
}

// authorise reads the key and makes the headers. The key is nowhere but in
// memory.
func (t *Target) authorise(p *plan.Plan) error {
	key := ""
	switch {
	case p.KeyFile != "":
		b, err := os.ReadFile(p.KeyFile)
		if err != nil {
			return user.Errorf("", "read --key-file: %v", err)
		}
		key = strings.TrimSpace(string(b))
	case t.Kind == "http":
		key = strings.TrimSpace(os.Getenv(p.KeyEnv))
		if key == "" && p.KeyEnv != plan.Default().KeyEnv {
			return user.Errorf("export "+p.KeyEnv+"=… first", "--key-env: %s is not set", p.KeyEnv)
		}
	}
	if strings.ContainsAny(key, "\r\n\x00 ") {
		return user.Errorf("the file or variable should hold the key alone", "the API key holds a space or line break")
	}
	t.Headers = []wire.Header{
		{Name: "User-Agent", Value: "pitot"},
		{Name: "Content-Type", Value: "application/json"},
		{Name: "Accept", Value: "text/event-stream, application/json"},
	}
	own := map[string]bool{}
	for _, h := range p.Headers {
		name, value, _ := strings.Cut(h, "=")
		own[strings.ToLower(name)] = true
		t.Headers = append(t.Headers, wire.Header{Name: name, Value: value})
		if plan.IsSecret(name) {
			t.hide(value)
		}
	}
	if key != "" && !own["authorization"] {
		t.Headers = append(t.Headers, wire.Header{Name: "Authorization", Value: "Bearer " + key})
		t.hide(key)
	}
	return nil
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
func (t *Target) openMock(p *plan.Plan) (string, error) {
	srv, model, err := NewMock(p, strings.TrimPrefix(p.Target, "mock:"))
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
	t.Server["engine"] = "pitot mock, fixed latencies: " + model
	return "http://" + l.Addr().String(), nil
}

// openSim prepares the engine for the virtual world.
func (t *Target) openSim(p *plan.Plan) error {
	cfg, name, err := fixedEngine(p, strings.TrimPrefix(p.Target, "sim:"))
	if err != nil {
		return err
	}
	if cfg.TTFT <= 0 {
		return user.Errorf("give it one with --ttft", "a simulated target needs a time to first token: virtual time would stand still")
	}
	t.Engine = func(seed uint64) twin.Engine {
		cfg.Seed = seed
		return twin.NewFixed(cfg)
	}
	t.API = wire.Chat{}
	t.Options.Model = name
	t.Server["engine"] = "pitot sim, fixed latencies: " + describe(cfg)
	t.Residence = cfg.TTFT + time.Duration(p.Output.Mean())*cfg.ITL
	return nil
}

// NewMock makes the server that a plan describes; name is MODEL@GPU or "".
func NewMock(p *plan.Plan, name string) (srv *mock.Server, about string, err error) {
	cfg, model, err := fixedEngine(p, name)
	if err != nil {
		return nil, "", err
	}
	faults, err := mock.ParseFaults(p.Mock.Faults)
	if err != nil {
		return nil, "", user.Errorf(user.Hint(err), "--faults: %v", err)
	}
	if p.Model != "" {
		model = p.Model
	}
	mc := mock.Config{
		Engine: twin.NewFixed(cfg), Model: model, MaxModelLen: p.Mock.MaxModelLen,
		Count: token.Universal().Count, PromptOverhead: 8, Faults: faults, Seed: p.Seed,
	}
	if p.Mock.Truth != "" {
		f, err := os.Create(p.Mock.Truth)
		if err != nil {
			return nil, "", user.Errorf("", "--truth: %v", err)
		}
		mc.Truth = f
	}
	if p.KeyFile != "" {
		b, err := os.ReadFile(p.KeyFile)
		if err != nil {
			return nil, "", user.Errorf("", "read --key-file: %v", err)
		}
		mc.APIKey = strings.TrimSpace(string(b))
	}
	return mock.New(mc), describe(cfg), nil
}

// fixedEngine gives the latencies that a name or the flags ask for.
func fixedEngine(p *plan.Plan, name string) (cfg twin.FixedConfig, model string, err error) {
	cfg = twin.FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond}
	model, _, _ = strings.Cut(name, "@")
	if name != "" && name != "fixed" {
		var ok bool
		if cfg, ok = mock.Preset(name); !ok {
			return cfg, "", user.Errorf(user.Known(name, mock.PresetNames())+"; or mock:fixed with --ttft 50ms --itl 10ms", "unknown embedded target %q", name)
		}
	}
	if model == "" {
		model = "fixed"
	}
	if p.Mock.TTFT >= 0 {
		cfg.TTFT = p.Mock.TTFT
	}
	if p.Mock.ITL >= 0 {
		cfg.ITL = p.Mock.ITL
	}
	cfg.JitterCV, cfg.Slots, cfg.TokensPerChunk, cfg.RoleChunk = p.Mock.Jitter, p.Mock.Slots, p.Mock.TokensPerChunk, p.Mock.RoleChunk
	cfg.Seed = p.Seed
	return cfg, model, nil
}

func describe(c twin.FixedConfig) string {
	s := fmt.Sprintf("TTFT %v, ITL %v", c.TTFT, c.ITL)
	if c.JitterCV > 0 {
		s += fmt.Sprintf(", CV %.2g", c.JitterCV)
	}
	if c.Slots > 0 {
		s += fmt.Sprintf(", %d slots", c.Slots)
	}
	if c.TokensPerChunk > 1 {
		s += fmt.Sprintf(", %d tokens a chunk", c.TokensPerChunk)
	}
	return s
}

// hints say what to do about a class of error.
func hint(class, target string) string {
	switch class {
	case record.ErrConnect:
		return "is the server running there? try curl " + target + ", or wait for it with --wait-ready 10m"
	case record.ErrDNS:
		return "check the host's name"
	case record.ErrTLS:
		return "check the scheme and the certificate; --ca-cert FILE trusts an authority of your own, --insecure trusts anything"
	case record.ErrProxy:
		return "check --proxy"
	case record.ErrAuth:
		return "set the key: export OPENAI_API_KEY=…, or --key-env VAR, or --key-file FILE"
	case record.ErrNotFound:
		return "check the URL's path and --model; curl " + target + " shows what the server knows"
	case record.ErrTimeout:
		return "the server accepts connections and does not answer; is it still loading? --wait-ready 10m waits"
	case record.ErrContextLength:
		return "ask for less with --input and --output"
	case record.ErrRateLimited:
		return "the server limits your rate; wait, or ask for less"
	}
	return ""
}
