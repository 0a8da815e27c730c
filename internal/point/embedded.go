package point

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"pitot/internal/plan"
	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/twin/mock"
	"pitot/internal/user"
	"pitot/internal/wire"
	"pitot/internal/workload/token"
)

// embedded is the name of an embedded target, MODEL@GPU.
func embedded(p *plan.Plan) string {
	_, name, _ := strings.Cut(p.Target, ":")
	return name
}

// engine is what stands behind an embedded target.
type engine struct {
	make        func(seed uint64) twin.Engine
	model       string
	about       string // for people
	maxModelLen int
	notes       []string
	server      map[string]string // what it would tell of itself
	cache       map[string]string // of its KV cache, in its metrics
	// residence is about how long a request takes.
	residence func(p *plan.Plan) time.Duration
}

// openEngine gives the engine that MODEL@GPU or the flags of fixed latencies
// ask for. Errors are the user's.
func openEngine(p *plan.Plan, name string) (engine, error) {
	if name == "" || name == "fixed" {
		return fixedEngine(p)
	}
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"--ttft", p.Mock.TTFT >= 0}, {"--itl", p.Mock.ITL >= 0}, {"--jitter", p.Mock.Jitter > 0},
		{"--slots", p.Mock.Slots > 0}, {"--tokens-per-chunk", p.Mock.TokensPerChunk > 1},
	} {
		if f.set {
			return engine{}, user.Errorf("use "+strings.SplitN(p.Target+":", ":", 2)[0]+":fixed with it, or a setting of the engine such as ?max_num_seqs=64",
				"%s is for fixed latencies; the latencies of %s come from its engine", f.flag, name)
		}
	}
	d, err := deploy.Parse(name)
	if err != nil {
		return engine{}, err
	}
	if s := d.Outside(p.Prefix+int(p.Input.Mean()), int(p.Output.Mean()), float64(p.Concurrency)); s != "" {
		d.Notes = append(d.Notes, s)
	}
	return engine{
		make:        func(seed uint64) twin.Engine { return d.Engine(seed) },
		model:       d.Model.Name,
		about:       d.Describe(),
		maxModelLen: d.Settings.MaxModelLen,
		notes:       d.Notes,
		server:      d.Facts(),
		cache: map[string]string{
			"block_size": strconv.Itoa(d.Settings.BlockSize), "num_gpu_blocks": strconv.Itoa(d.Settings.NumGPUBlocks),
		},
		residence: func(p *plan.Plan) time.Duration {
			return d.Residence(p.Prefix+int(p.Input.Mean()), int(p.Output.Mean()), max(p.Concurrency, 1))
		},
	}, nil
}

// fixedEngine gives an engine of fixed latencies.
func fixedEngine(p *plan.Plan) (engine, error) {
	cfg := twin.FixedConfig{
		TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond,
		JitterCV: p.Mock.Jitter, Slots: p.Mock.Slots, TokensPerChunk: p.Mock.TokensPerChunk, RoleChunk: p.Mock.RoleChunk,
	}
	if p.Mock.TTFT >= 0 {
		cfg.TTFT = p.Mock.TTFT
	}
	if p.Mock.ITL >= 0 {
		cfg.ITL = p.Mock.ITL
	}
	if p.Kind() == "sim" && cfg.TTFT <= 0 {
		return engine{}, user.Errorf("give it one with --ttft", "a simulated target needs a time to first token: virtual time would stand still")
	}
	return engine{
		make: func(seed uint64) twin.Engine {
			c := cfg
			c.Seed = seed
			return twin.NewFixed(c)
		},
		model:       "fixed",
		about:       "fixed latencies: " + describe(cfg),
		maxModelLen: p.Mock.MaxModelLen,
		residence:   func(p *plan.Plan) time.Duration { return cfg.TTFT + time.Duration(p.Output.Mean())*cfg.ITL },
	}, nil
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

// openSim prepares the engine for the virtual world.
func (t *Target) openSim(p *plan.Plan) error {
	e, err := openEngine(p, embedded(p))
	if err != nil {
		return err
	}
	t.Engine = e.make
	t.API = wire.Chat{}
	t.Options.Model = e.model
	t.tell("pitot sim, "+e.about, e)
	t.Residence = e.residence(p)
	return nil
}

// tell notes what an embedded engine is.
func (t *Target) tell(about string, e engine) {
	t.Server["engine"] = about
	for k, v := range e.server {
		t.Server[k] = v
	}
	t.Notes = append(t.Notes, e.notes...)
}

// NewMock makes the server that a plan describes; name is MODEL@GPU or "".
// about says what it is.
func NewMock(p *plan.Plan, name string) (srv *mock.Server, about string, err error) {
	e, err := openEngine(p, name)
	if err != nil {
		return nil, "", err
	}
	srv, err = e.serve(p)
	return srv, e.about, err
}

// serve puts the engine behind a server.
func (e *engine) serve(p *plan.Plan) (*mock.Server, error) {
	faults, err := parseFaults(p)
	if err != nil {
		return nil, err
	}
	mc := mock.Config{
		Engine: e.make(p.Seed), Model: e.model, MaxModelLen: e.maxModelLen,
		Tokenize: token.Universal().Split, PromptOverhead: 8, Cache: e.cache, Faults: faults, Seed: p.Seed,
	}
	if p.Model != "" {
		mc.Model = p.Model
	}
	if p.Mock.Truth != "" {
		f, err := os.Create(p.Mock.Truth)
		if err != nil {
			return nil, user.Errorf("name a file in a directory that is there", "--truth: %v", err)
		}
		mc.Truth = f
	}
	if p.KeyFile != "" {
		if mc.APIKey, err = readKey(p.KeyFile); err != nil {
			return nil, err
		}
	}
	return mock.New(mc), nil
}
