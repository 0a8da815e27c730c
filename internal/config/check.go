package config

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/workload"
)

// Check reports what is wrong with the plan of a verb that measures, apart from
// conflicts between settings, which are reported when they are decoded.
func (p *Plan) Check(v Verb) error {
	checks := []func() error{func() error { return p.checkTarget(v) }, p.readSessions}
	switch v {
	case VerbFind:
		checks = append(checks, p.checkFind, p.checkLoads, p.checkSteady)
	case VerbSweep:
		checks = append(checks, p.checkLoads, p.checkSteady)
	default:
		checks = append(checks, p.checkLoad, p.checkUntil, p.checkArrival)
	}
	for _, check := range append(checks, p.checkWorkload, func() error { return p.checkCache(v) }, p.checkTargets, p.checkObjective, p.checkQuestions, p.checkPromptIDs, p.checkFleet) {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// CheckTarget reports what is wrong with the plan of a verb that measures loads of its
// own choice.
func (p *Plan) CheckTarget(v Verb) error {
	for _, check := range []func() error{func() error { return p.checkTarget(v) }, p.checkTargets} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLoads checks the loads of a sweep or a search for --over rate or concurrency.
func (p *Plan) checkLoads() error {
	if p.Over == OverAgents && !p.HasConversations() {
		return say.Errorf("--over agents without sessions: each request stands alone").WithHint("say what an agent does: --workload agentic-coding, recorded sessions, or --turns 20; users who ask one thing after the other are --over concurrency")
	}
	for _, x := range append([]float64{p.At, p.MaxLoad}, p.Loads...) {
		if p.IsClosedLoop() && x != math.Trunc(x) {
			return say.Errorf("%s is no number of users", say.Exact(x)).WithHint("users come whole: --over " + p.Over + " takes whole numbers")
		}
		if p.MaxLoad > 0 && x > p.MaxLoad {
			return say.Errorf("the load %s is above --max-load %s", say.Exact(x), say.Exact(p.MaxLoad)).WithHint("raise --max-load, or leave the load out")
		}
	}
	return nil
}

// checkFind requires an SLO that can be searched for.
func (p *Plan) checkFind() error {
	if p.SLO.IsNone() {
		hint := `write one, as --slo "p99 ttft<500ms, p99 tpot<50ms", or take one by its name:`
		for _, s := range slo.Presets() {
			hint += fmt.Sprintf("\n      --slo %-33s %s", s.Name, s.Spec) // pitot find --help=slo shows their sources
		}
		return say.Errorf("no SLO given").WithHint(hint)
	}
	if _, err := p.SLO.SplitClaims(); err != nil {
		return err
	}
	return nil
}

func (p *Plan) checkTarget(v Verb) error {
	switch {
	case p.Spec == "" && p.Resume && p.Out != "": // else it is in the config.yaml there
		return say.Errorf("%s holds nothing to resume", p.Out).WithHint("name the directory of the run to continue, or a target to begin with")
	case p.Spec == "":
		return noTarget(v)
	}
	for _, public := range p.PublicHeaders {
		if name, _, _ := strings.Cut(public, "="); slices.ContainsFunc(p.Headers, func(h string) bool { return headerName(h) == headerName(public) }) {
			return say.Errorf("header %s is given with --header and with --header-public", name).WithHint("a header is sent once: keep one of them")
		}
	}
	if p.Kind() != KindServer {
		return p.checkSimulated()
	}
	// The URL is kept with the run and shown, so it must not hold a secret;
	// and for the same reason these messages do not repeat it.
	u, err := url.Parse(p.Spec)
	if err != nil {
		return nil // reported when it is opened
	}
	if u.User != nil {
		return say.Errorf("the target's URL holds a user or password").WithHint("give a key with --key-env or --key-file, or a header with --header")
	}
	for name := range u.Query() {
		if IsSecret(name) {
			return say.Errorf("the target's URL holds a secret, %s", name).WithHint("give a key with --key-env or --key-file, or a header with --header")
		}
	}
	return nil
}

// noTarget asks for the target of a verb, with what it takes besides at the least.
func noTarget(v Verb) error {
	server, embedded := "", ""
	switch v {
	case VerbFind:
		server, embedded = " --slo chat", " --slo chat"
	case VerbSweep:
	case VerbCalibrate:
		server = " --deployment 'llama-3.1-8b@h100?max_num_seqs=256'"
	default:
		server, embedded = " --rate 4", " --rate 20"
	}
	begin := "pitot " + string(v)
	return say.Errorf("no target").WithHint("name one: " + begin + " http://localhost:8000" + server + ", or try the embedded target: " + begin + " mock:llama-3.1-8b@h100" + embedded)
}

func (p *Plan) checkLoad() error {
	if p.Rate == 0 && p.Concurrency == 0 {
		command := say.ShellLine(append([]string{"pitot", "run", p.Spec}, p.reachingArgs()...))
		return say.Errorf("no load given").WithHint("requests at times of their own: " + command + " --rate 4\n      users who wait for answers:      " + command + " --concurrency 8")
	}
	if n := p.Rate * p.Duration.Seconds(); p.Rate > 0 && p.Requests == 0 && p.Duration > 0 && n < 1 {
		return say.Errorf("a window of %s at %s requests/s is expected to have %s requests: it would measure nothing", say.Duration(p.Duration), say.Exact(p.Rate), say.Significant(n, 2)).
			WithHint(fmt.Sprintf("--duration %s has about 10, or count them: --requests 10", say.Duration(time.Duration(math.Ceil(10/p.Rate))*time.Second)))
	}
	return nil
}

// checkUntil requires a window that can be doubled.
func (p *Plan) checkUntil() error {
	switch {
	case p.Until.IsNone():
	case p.NoStream && p.Until.Metric.NeedsStreaming():
		return say.Errorf("--until %s needs a stream", p.Until).WithHint("take e2e, or leave --no-stream out")
	case p.Duration > p.MaxDuration:
		return say.Errorf("the first window, --duration %s, is longer than --max-duration %s", p.Duration, p.MaxDuration).WithHint("raise --max-duration")
	}
	return nil
}

// checkCache requires something that is shared, or nothing where a share of its own is.
func (p *Plan) checkCache(v Verb) error {
	shared := p.Prefix > 0 || p.Tree != nil
	begins := shared && p.PrefixShare > 0 || p.HasConversations() && (p.System > 0 || p.SubAgents.System > 0)
	warm := p.Cache == CacheWarm || p.Cache == CacheBoth
	switch {
	case warm && !begins:
		return say.Errorf("--cache %s, and requests share nothing", p.Cache).WithHint("say what they begin with: --prefix 2048, --prefix 'tree(8x1024 zipf(1.1), 64x256)', or of conversations --system 800")
	case warm && p.Tree.LeafCount() > workload.MostShared:
		return say.Errorf("--cache %s asks for each of %s prefixes before the load, which are too many", p.Cache, say.Count(p.Tree.LeafCount())).WithHint("at most " + say.Count(workload.MostShared) + ": let the warm-up ask for them, with --warmup")
	case p.HasConversations() && p.Cache == CacheBoth:
		return say.Errorf("--cache both compares request by request, and the timing of a turn depends on the answers before it").WithHint("compare two runs: --cache warm, and without")
	case p.HasConversations() && p.Reused() > 0:
		return say.Errorf("--cache %s is for requests that stand alone: what the turns of a conversation share follows from their history", p.Cache).WithHint("say what they share: --system 800, --prefix 2048; --cache warm asks for it before the load")
	case p.Cache == CacheBoth && p.Repeat > 1:
		return say.Errorf("--cache both is two loads, and --repeat %d several of one", p.Repeat).WithHint("leave --repeat out: a longer --duration has more pairs")
	case p.Cache == CacheBoth && v != VerbRun:
		return say.Errorf("--cache both compares two points of one load").WithHint("use it with pitot run, or " + string(v) + " with --cache warm and without")
	case p.Reused() > 0 && shared:
		return say.Errorf("--cache %s shares a part of the prompts, and --prefix another", p.Cache).WithHint("keep one of them")
	}
	return nil
}

// readSessions finds out what recorded sessions are like, where the workload is some.
func (p *Ask) readSessions() error {
	kind := workload.Prompts
	if !p.IsGenerated() && p.Mix == nil {
		kind, _ = workload.Identify(p.Workload) // what is wrong with it is reported when it is opened
	}
	if p.Mix != nil {
		for i := range p.Mix.Classes {
			if err := p.Mix.Classes[i].Ask.readSessions(); err != nil {
				return say.Errorf("class %s: %v", p.Mix.Classes[i].Name, err).WithHint(say.HintOf(err))
			}
		}
	}
	if kind != workload.Sessioned {
		if p.Start != (workload.StartShare{}) || p.MaxThink > 0 {
			name := "--set start"
			if p.MaxThink > 0 {
				name = "--set max-think"
			}
			return say.Errorf("%s without recorded sessions", name).WithHint("it is for --workload with sessions of agents: docs/guides/conversations-and-agents.md")
		}
		return nil
	}
	t, err := workload.OpenTrajectories(p.Workload)
	if err != nil {
		return say.Errorf("--workload: %v", err).WithHint("recorded sessions are Weka's JSON files, a directory or a tar archive of them")
	}
	shape := t.Shape(workload.TrajectoryConfig{Start: p.Start, MaxThink: p.MaxThink})
	p.Recorded = &shape
	return nil
}

func (p *Plan) checkWorkload() error {
	if p.Correlation != 0 && p.Ask.Input.Pairs(p.Ask.Output) {
		return say.Errorf("--set correlation has no meaning with lengths that are drawn in pairs: they have that of their file").WithHint("leave it out, or give the lengths apart with quantiles(FILE,input)")
	}
	var body map[string]json.RawMessage
	_ = json.Unmarshal([]byte(p.Body), &body) // "" or an object
	if p.Choices > 1 && body["n"] != nil {
		return say.Errorf("--set n=%d and the n of --body both say how many answers a request has", p.Choices).WithHint("keep one of them")
	}
	for field, instead := range map[string]string{"stream": "use --no-stream for whole answers", "model": "use --model"} {
		if body[field] != nil {
			return say.Errorf("--body sets %s, which is Pitot's own to set", field).WithHint(instead)
		}
	}
	return nil
}

// checkFleet refuses what several processes cannot keep to together.
func (p *Plan) checkFleet() error {
	if p.Workers > 0 && p.Respect {
		return say.Errorf("--respect-limits keeps to what the server says is left, and each worker of --fleet would take all of it for its own").WithHint("leave --fleet out, or bound the load by --rate or --max-in-flight")
	}
	if p.Workers > mostHere && !p.IsRemote() {
		return say.Errorf("--fleet %d is more processes than one machine may start", p.Workers).WithHint("at most " + strconv.Itoa(mostHere) + ", or let workers join from others: --fleet 'nats://HOST:4222?workers=" + strconv.Itoa(p.Workers) + "'")
	}
	return nil
}

func (p *Plan) checkObjective() error {
	for _, c := range p.SLO.Classes {
		if names := p.classNames(); names != nil && !slices.Contains(names, c.Name) {
			return say.Errorf("--slo has limits of class %s, and %s has none", c.Name, p.Workload).WithHint(say.KnownHint(c.Name, names))
		}
		if p.classNames() == nil && p.IsGenerated() {
			return say.Errorf("--slo has limits of class %s, and --workload %s has no classes", c.Name, p.Workload).WithHint("name a file of classes with --workload: docs/guides/model-your-traffic.md")
		}
	}
	if p.NoStream && p.SLO.NeedsStream() {
		return say.Errorf("an answer that is not streamed has no ttft, tpot or itl, so %q cannot be judged", p.SLO.String()).WithHint("measure with streaming, or set a limit on e2e")
	}
	for _, l := range p.SLO.All() {
		if l.Max > 0 && l.Max >= p.Timeout {
			return say.Errorf("the limit %q lies beyond the timeout of %s: it could never be seen to fail", l.String(), say.Duration(p.Timeout)).WithHint("raise --timeout above the limit")
		}
	}
	return nil
}

// classNames are the classes that the requests are known to have, nil where that is not
// known.
func (p *Plan) classNames() (names []string) {
	if p.Mix != nil {
		for i := range p.Mix.Classes {
			names = append(names, p.Mix.Classes[i].Name)
		}
	}
	return names
}
