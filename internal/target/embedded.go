package target

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	kinds "pitot/internal/sim/engine"
	"pitot/internal/sim/engines"

	"pitot/internal/client/api"
	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/serve"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// streamEOS is the random stream from which the lengths of answers that end by
// themselves are drawn.
const streamEOS = 0x656f73

// engine is an engine that runs in this process as an embedded target.
type engine struct {
	make        func(seed uint64) sim.Engine
	model       string
	about       string // description for reports
	maxModelLen int
	notes       []string
	server      map[string]string // its settings, as a server would report them
	cache       map[string]string // of its KV cache, in its metrics
	vocab       int               // size of the model's vocabulary, 0 where it has none
	gpus        int               // 0 where it has none
	engines     int
	changes     string          // which of them come and go, in words
	firstChange time.Duration   // when, from its start
	is          config.Embedded // what the server is like
	dialect     string          // how a server of it speaks, of those of sim/serve
	gpuPrice    float64         // dollars an hour of each, by the catalogue
	// residence is about how long a request takes.
	residence func(a *config.Ask) time.Duration
	// outside says in what loads leave what the engine was fitted on; nil: it has
	// nothing to be fitted.
	outside func(seen deploy.Range) []deploy.Departure
}

// kvCache returns the size of the engine's KV cache.
func (e *engine) kvCache() (kv KVCache) {
	kv.BlockSize, _ = strconv.Atoi(e.cache["block_size"])
	kv.Blocks, _ = strconv.Atoi(e.cache["num_gpu_blocks"])
	kv.Several = e.engines > 1
	kv.None = kv.BlockSize == 0 || e.cache["enable_prefix_caching"] == "False"
	return kv
}

// KVCacheOf is that of an embedded target; nothing is known of another's before it is asked.
func KVCacheOf(p Wanted) (kv KVCache) {
	if p.Kind() == config.KindServer {
		return kv
	}
	e, err := openEngine(p)
	if err != nil {
		return kv // the error is reported when it is opened
	}
	return e.kvCache()
}

// ResidenceOf is about how long a request takes an embedded target; 0 of another.
func ResidenceOf(p Wanted) time.Duration {
	if p.Kind() == config.KindServer {
		return 0
	}
	e, err := openEngine(p)
	if err != nil {
		return 0
	}
	return e.residence(p.Ask)
}

// cacheDType is the type of the KV cache as vLLM's flag has it: auto is the
// model's own.
func cacheDType(d *deploy.Deployment) string {
	if d.KVDType == "fp8" {
		return "fp8"
	}
	return "auto"
}

// GPUs returns the number of GPUs that an embedded target has. It is 0 if the target has none or is
// not embedded.
func GPUs(p Wanted) int {
	if p.Kind() == config.KindServer {
		return 0
	}
	e, err := openEngine(p)
	if err != nil {
		return 0 // the error is reported when it is opened
	}
	return e.gpus
}

// simulated returns the engine of a simulated target, and what its server is like.
func (p *Wanted) simulated() (engine string, is config.Embedded, err error) {
	if p.flags == nil {
		return config.ParseSimulated(p.Spec)
	}
	is = *p.flags
	engine, err = is.ApplyTarget(p.Spec)
	if _, _, fixed := engines.OfLatencies(engine); !fixed && is.MaxModelLen != config.UsualModelLen && !strings.Contains(engine, "max_model_len=") {
		separator := "?"
		if strings.Contains(engine, "?") {
			separator = "&"
		}
		engine += separator + "max_model_len=" + strconv.Itoa(is.MaxModelLen)
	}
	return engine, is, err
}

// openEngine returns the engine that a simulated target names. Errors are the user's.
func openEngine(p Wanted) (engine, error) {
	name, is, err := p.simulated()
	if err != nil {
		return engine{}, err
	}
	if k, query, ok := engines.OfLatencies(name); ok {
		return fixedEngine(p, k, query, is)
	}
	if err := refuseFixed(p, name, &is); err != nil {
		return engine{}, err
	}
	d, err := deploy.Parse(name)
	if err != nil {
		return engine{}, err
	}
	one := d.DrawLaunch(launchNumber(p, name))
	changes, firstChange := d.DescribeChanges()
	return engine{
		is: is, changes: changes, firstChange: firstChange,
		make:        func(seed uint64) sim.Engine { return one.Engine(seed) },
		model:       servedName(d),
		about:       d.Describe(),
		maxModelLen: d.Settings.MaxModelLen,
		notes:       append(d.Notes, launchNotes(d.LaunchCV, launchNumber(p, name))...),
		server:      d.ServerFacts(),
		gpus:        d.GPUs(),
		engines:     d.DataParallel,
		dialect:     d.Kind.Name,
		gpuPrice:    d.USDPerHour,
		vocab:       d.Model.Vocab,
		cache: map[string]string{
			"block_size": strconv.Itoa(d.Settings.BlockSize), "num_gpu_blocks": strconv.Itoa(d.Settings.NumGPUBlocks),
			"gpu_memory_utilization": strconv.FormatFloat(d.MemoryUtilization, 'g', -1, 64),
			"cache_dtype":            cacheDType(d),
			"enable_prefix_caching":  map[bool]string{true: "True", false: "False"}[d.Settings.EnablePrefixCaching], // as Python writes it
		},
		residence: func(a *config.Ask) time.Duration {
			return d.Residence(int(a.PrefixMean()+a.Input.Mean()), int(a.Output.Mean()), 1)
		},
		outside: d.RangeDepartures,
	}, nil
}

// streamLaunch is the random stream from which a launch's speed factor is drawn.
const streamLaunch = 0x6c61756e6368

// launchNumber seeds what differs between launches of an embedded target. It is
// derived from the seed, the launch's name and the target, so that neither the
// launches of one target nor those of two targets are equal.
func launchNumber(p Wanted, name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, p.Launch+"\n"+name)
	return seed.At(p.Seed, streamLaunch, h.Sum64())
}

// launchNotes say how one launch differs from the mean of all, where launches
// differ.
func launchNotes(cv float64, launch uint64) []string {
	if cv == 0 {
		return nil
	}
	return []string{fmt.Sprintf("launch_cv: this launch takes %.4f times as long as the mean of all launches", sim.LaunchFactor(cv, launch))}
}

// servedName is the name that a model is served under: the one that was asked for,
// which may be an alias, or the model's own if a file was given.
func servedName(d *deploy.Deployment) string {
	name := d.Spec[:max(strings.LastIndexByte(d.Spec, '@'), 0)]
	if name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, ".json") {
		return d.Model.Name
	}
	return name
}

// refuseFixed refuses the settings of fixed latencies for a modelled engine, and names
// the engine's own setting instead.
func refuseFixed(p Wanted, name string, m *config.Embedded) error {
	fixed := "use " + p.Kind() + ":fixed with it"
	for _, f := range []struct {
		flag    string
		set     bool
		setting string // the engine's own setting to use instead
		value   string
	}{
		{"ttft", m.TTFT != nil, "", ""}, {"itl", m.ITL != nil, "", ""},
		{"jitter", m.Jitter > 0, "step_jitter", strconv.FormatFloat(m.Jitter, 'g', -1, 64)},
		{"slots", m.Slots > 0, "max_num_seqs", strconv.Itoa(m.Slots)},
		{"tokens_per_chunk", m.TokensPerChunk > 1, "stream_interval", strconv.Itoa(m.TokensPerChunk)},
		{"role_chunk", m.RoleChunk, "", ""},
	} {
		if !f.set {
			continue
		}
		hint, sep := fixed, "?"
		if strings.Contains(name, "?") {
			sep = "&"
		}
		switch {
		case f.setting == "":
		case strings.Contains(name, f.setting+"="):
			hint = "it has " + f.setting + " already; or " + fixed
		default:
			hint = "write " + name + sep + f.setting + "=" + f.value + ", or " + fixed
		}
		return say.Errorf("%s is for fixed latencies; %s has an engine that decides", f.flag, name).WithHint(hint)
	}
	return nil
}

// fixedEngine gives an engine of fixed latencies. query may hold launch_cv, the engine's own
// setting.
func fixedEngine(p Wanted, k *kinds.Kind, query string, is config.Embedded) (engine, error) {
	cv, err := fixedSpread(query)
	if err != nil {
		return engine{}, err
	}
	number := launchNumber(p, k.Name+"?"+query)
	factor := sim.LaunchFactor(cv, number)
	cfg := sim.FixedConfig{
		TTFT: config.FixedTTFT, ITL: config.FixedITL,
		JitterCV: is.Jitter, Slots: is.Slots, TokensPerChunk: is.TokensPerChunk, RoleChunk: is.RoleChunk,
	}
	if is.TTFT != nil {
		cfg.TTFT = *is.TTFT
	}
	if is.ITL != nil {
		cfg.ITL = *is.ITL
	}
	if p.Kind() == config.KindSim && cfg.TTFT <= 0 {
		return engine{}, say.Errorf("a simulated target needs a time to first token: virtual time would stand still").WithHint("give it one: sim:fixed?ttft=1ms")
	}
	return engine{
		is: is,
		make: func(seed uint64) sim.Engine {
			c := cfg
			c.Seed = seed
			c.TTFT, c.ITL = time.Duration(float64(c.TTFT)*factor), time.Duration(float64(c.ITL)*factor)
			return k.Latencies(c)
		},
		model:       k.Name,
		about:       k.Title + ": " + describeFixed(cfg),
		maxModelLen: is.MaxModelLen,
		notes:       launchNotes(cv, number),
		residence:   func(a *config.Ask) time.Duration { return cfg.TTFT + time.Duration(a.Output.Mean())*cfg.ITL },
	}, nil
}

// fixedSpread reads launch_cv, the one setting that is the engine's own.
func fixedSpread(query string) (cv float64, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, say.Errorf("settings %q: %v", query, err).WithHint("for example fixed?launch_cv=0.03")
	}
	for name, v := range values {
		if name != "launch_cv" || len(v) != 1 {
			return 0, say.Errorf("fixed latencies have no setting %q", name).WithHint(say.KnownHint(name, fixedSettings()))
		}
		if cv, err = strconv.ParseFloat(v[0], 64); err != nil || !(cv >= 0 && cv <= 1) {
			return 0, say.Errorf("launch_cv is %s, it must be a number between 0 and 1", v[0]).WithHint("0.03 makes the launches of a server differ by some percent, as launches do")
		}
	}
	return cv, nil
}

// fixedSettings returns the names of the settings of mock:fixed.
func fixedSettings() []string {
	names := []string{"launch_cv"}
	for _, s := range config.TargetSettings() {
		names = append(names, s.TargetKey())
	}
	return names
}

func describeFixed(c sim.FixedConfig) string {
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
func (t *Target) openSim(p Wanted) error {
	e, err := openEngine(p)
	if err != nil {
		return err
	}
	faults, err := e.faults()
	if err != nil {
		return err
	}
	t.Engine, t.Thaw = e.make, faults.ThawTime
	if len(faults) > 0 {
		t.Refuse = func(seed uint64, n, at int64) (int, int64) {
			status, after := faults.RefusalStatus(seed, n, time.Duration(at))
			return status, int64(after)
		}
	}
	t.API = api.Chat
	t.Options.Model = e.model
	t.noteEmbedded("pitot sim, "+e.about, p, e)
	t.Residence = e.residence(p.Ask)
	if p.NoProbe { // as with a server, lengths are not checked
		return nil
	}
	return t.checkContextLength(p.Ask)
}

// noteEmbedded records the description, GPUs and settings of an embedded engine.
func (t *Target) noteEmbedded(about string, p Wanted, e engine) {
	if e.is.Speed != 1 {
		about += fmt.Sprintf(", run %v times as fast", e.is.Speed)
	}
	t.Server["engine"] = about
	for k, v := range e.server {
		t.Server[k] = v
	}
	t.GPUs, t.GPUPrice, t.KV = e.gpus, e.gpuPrice, e.kvCache()
	t.changes, t.firstChange = e.changes, e.firstChange
	t.Notes = append(t.Notes, e.notes...)
	if e.outside != nil {
		t.departures = e.outside
		t.Notes = append(t.Notes, t.FitDepartures(wantedRange(p))...)
	}
}

// EngineChanges says which engines of an embedded target come and go and from when on their
// times count, and how long it is until the first does if a load began now; "" and 0 where
// none does, or none any more.
func (t *Target) EngineChanges() (told string, first time.Duration) {
	switch {
	case t.changes == "":
		return "", 0
	case t.began == 0: // each load has an engine of its own
		return t.changes + " (from the start of the load and its warm-up)", t.firstChange
	}
	ago := time.Duration(clock.Now() - t.began)
	return fmt.Sprintf("%s (from the start of the server, %s before the run)", t.changes, say.Duration(ago.Round(time.Millisecond))), max(t.firstChange-ago, 0)
}

// NewMock makes the server of `pitot mock`; name is MODEL@GPU, or "fixed" or "" for
// fixed latencies. about says what it is, notes what a user should know of it.
func NewMock(s *config.Serving, m *config.Embedded, name string) (srv *serve.Server, about string, notes []string, err error) {
	p := Wanted{Target: &config.Target{}, Ask: &config.Ask{}, flags: m}
	p.Spec, p.Model, p.KeyFile = "mock:"+name, s.Model, s.KeyFile
	if s.Seed != nil {
		p.Seed = *s.Seed
	} else { // each start is a launch of its own
		p.Launch = strconv.FormatUint(rand.Uint64(), 36)
	}
	e, err := openEngine(p)
	if err != nil {
		return nil, "", nil, err
	}
	about = e.about
	if face := e.is.Face; face != "" && face != engines.Default().Name {
		about += ", with the face of " + face
	}
	srv, err = e.newServer(p, p.Seed)
	return srv, about, e.notes, err
}

// newServer makes a server of the engine; chances is the seed of the engine.
func (e *engine) newServer(p Wanted, chances uint64) (*serve.Server, error) {
	faults, err := e.faults()
	if err != nil {
		return nil, err
	}
	mc := serve.Config{
		Engine: e.make(chances), Dialect: e.dialect, Settings: e.server, Model: e.model, MaxModelLen: e.maxModelLen,
		Tokenize: token.Universal().Split, Words: token.Universal(), Vocab: e.vocab, PromptOverhead: ChatOverhead, Cache: e.cache, Faults: faults, Seed: p.Seed,
		Speed: e.is.Speed, Startup: e.is.StartupDelay, Reasoning: e.is.Reasoning, ToolCalls: e.is.ToolCalls, PromptTokensDetails: e.is.TellCached,
		RateLimit: serve.RateLimit{Requests: e.is.RateLimit.Requests, Every: e.is.RateLimit.Every},
	}
	if e.is.Face != "" {
		mc.Dialect = e.is.Face
	}
	eos := e.is.EOS
	if eos.IsZero() && p.Ask != nil && p.Stop.Natural { // it has no way to be told of each request's
		eos = p.Output
	}
	if !eos.IsZero() {
		mc.Ends = func(n int64) int { return eos.Draw(seed.At(p.Seed, streamEOS, uint64(n))) }
	}
	if p.Model != "" {
		mc.Model = p.Model
	}
	if e.is.Truth != "" {
		err := os.MkdirAll(filepath.Dir(e.is.Truth), 0o755) // as --export does
		if err != nil {
			return nil, say.Errorf("truth: %v", err).WithHint("name a file in a directory that can be written")
		}
		f, err := os.Create(e.is.Truth)
		if err != nil {
			return nil, say.Errorf("truth: %v", err).WithHint("name a file that can be written")
		}
		mc.Truth = f
	}
	if p.KeyFile != "" {
		if mc.APIKey, err = readKey(p.KeyFile, "a file that holds the key alone which clients have to send"); err != nil {
			return nil, err
		}
	}
	return serve.New(mc), nil
}

// ChatOverhead is the number of tokens that the embedded targets' chat template adds to a prompt.
const ChatOverhead = 8
