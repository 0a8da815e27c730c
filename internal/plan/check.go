package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/slo"
)

// Check says what in a plan for `pitot run` cannot be, or cannot be together.
func (p *Plan) Check() error {
	for _, check := range []func() error{p.checkTarget, p.checkLoad, p.checkUntil, p.checkWorkload, p.checkMock, p.checkObjective, p.checkPrice} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// CheckSweep says what in a plan for `pitot sweep` cannot be.
func (p *Plan) CheckSweep() error { return p.checkMany(p.checkLoads) }

// CheckFind says what in a plan for `pitot find` cannot be.
func (p *Plan) CheckFind() error { return p.checkMany(p.checkFind, p.checkLoads) }

func (p *Plan) checkMany(own ...func() error) error {
	if p.Resume && p.Out == "" {
		return say.Errorf("--resume without --out: no run to go on with").WithHint("name its directory with --out")
	}
	for _, check := range append([]func() error{p.checkTarget}, append(own, p.checkWorkload, p.checkMock, p.checkObjective, p.checkPrice)...) {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLoads holds the loads of a sweep or a search against what they are.
func (p *Plan) checkLoads() error {
	closed := p.Over == "concurrency"
	switch {
	case closed && p.Arrival != Default().Arrival:
		return say.Errorf("--arrival has no meaning with --over concurrency").WithHint("users send when they have their answer: use --arrival with --over rate")
	case closed && p.MaxInFlight > 0:
		return say.Errorf("--max-in-flight has no meaning with --over concurrency").WithHint("users wait for their answers, so there are never more requests than users")
	case !closed && p.Think > 0:
		return say.Errorf("--think has no meaning with --over rate").WithHint("think time belongs to users: use it with --over concurrency")
	}
	for _, x := range append([]float64{p.Verify, p.MaxLoad}, p.Loads...) {
		if closed && x != math.Trunc(x) {
			return say.Errorf("%s is no number of users", decimal(x)).WithHint("users come whole: --over concurrency takes whole numbers")
		}
		if p.MaxLoad > 0 && x > p.MaxLoad {
			return say.Errorf("the load %s is above --max-load %s", decimal(x), decimal(p.MaxLoad)).WithHint("raise --max-load, or leave the load out")
		}
	}
	return nil
}

// checkFind asks for an objective that can be searched for.
func (p *Plan) checkFind() error {
	if p.SLO.None() {
		hint := "write one, or take one of these:"
		for _, s := range slo.Presets() {
			hint += fmt.Sprintf("\n      --slo %-33s %s  (%s)", s.Name, s.Spec, s.Source)
		}
		return say.Errorf("no SLO given").WithHint(hint)
	}
	_, err := p.SLO.Claims()
	return err
}

func (p *Plan) checkTarget() error {
	if p.Target == "" {
		return say.Errorf("no target").WithHint("name one: pitot run http://localhost:8000 --rate 4, or try the embedded target: pitot run mock:llama-3.1-8b@h100 --rate 20")
	}
	if p.CACert != "" && p.Insecure {
		return say.Errorf("--insecure trusts any certificate, so --ca-cert has no meaning beside it").WithHint("leave one of them out")
	}
	if p.Kind() != "http" {
		return nil
	}
	// The URL is kept with the run and shown, so it must not hold a secret;
	// and for the same reason these messages do not repeat it.
	u, err := url.Parse(p.Target)
	if err != nil {
		return nil // said when it is opened
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

func (p *Plan) checkLoad() error {
	switch {
	case p.Rate > 0 && p.Concurrency > 0:
		return say.Errorf("--rate and --concurrency are two different loads").WithHint("give --rate for requests at times of their own, or --concurrency for users who wait for their answers; --max-in-flight caps a rate")
	case p.Rate == 0 && p.Concurrency == 0:
		return say.Errorf("no load given").WithHint("requests at times of their own: pitot run " + p.Target + " --rate 4\n      users who wait for answers:      pitot run " + p.Target + " --concurrency 8")
	case p.Think > 0 && p.Rate > 0:
		return say.Errorf("--think has no meaning with --rate").WithHint("think time belongs to users: use it with --concurrency")
	case p.Concurrency > 0 && p.Arrival != Default().Arrival:
		return say.Errorf("--arrival has no meaning with --concurrency").WithHint("users send when they have their answer: use --arrival with --rate")
	case p.Exactly && (p.Requests == 0 || p.Warmup != 0):
		return say.Errorf("--exactly sends the requests that are counted and no others").WithHint("give --requests N --warmup 0s: whatever is sent is then counted")
	case p.Concurrency > 0 && p.MaxInFlight > 0:
		return say.Errorf("--max-in-flight has no meaning with --concurrency").WithHint("users wait for their answers, so there are never more requests than users: lower --concurrency")
	}
	return nil
}

// checkUntil asks for a window that can be doubled.
func (p *Plan) checkUntil() error {
	switch {
	case p.Until.None():
	case p.Requests > 0:
		return say.Errorf("--until doubles a window of time, --requests counts requests").WithHint("give the first window by --duration")
	case p.NoStream && p.Until.Metric != slo.E2E:
		return say.Errorf("--until %s needs a stream", p.Until).WithHint("take e2e, or leave --no-stream out")
	case p.Duration > p.Budget:
		return say.Errorf("the first window, --duration %s, is longer than --budget %s", p.Duration, p.Budget).WithHint("raise --budget")
	}
	return nil
}

func (p *Plan) checkWorkload() error {
	if p.PrefixShare > 0 && p.Prefix == 0 {
		return say.Errorf("--prefix-share without --prefix").WithHint("say how long it is: --prefix 2048")
	}
	if p.Workload != Default().Workload {
		if p.Prefix > 0 {
			return say.Errorf("--prefix has no meaning with --workload %s", p.Workload).WithHint("a file brings its own prompts")
		}
		if p.Input != Default().Input {
			return say.Errorf("--input has no meaning with --workload %s", p.Workload).WithHint("a file brings its own prompts")
		}
	}
	var body map[string]json.RawMessage
	_ = json.Unmarshal([]byte(p.Body), &body) // "" or an object
	for field, instead := range map[string]string{"stream": "use --no-stream for whole answers", "model": "use --model"} {
		if body[field] != nil {
			return say.Errorf("--body sets %s, which is Pitot's own to set", field).WithHint(instead)
		}
	}
	return nil
}

// checkMock refuses settings of the embedded target where there is none.
func (p *Plan) checkMock() error {
	kind := p.Kind()
	if kind == "mock" {
		return nil
	}
	if kind == "sim" && p.NoStream {
		return say.Errorf("--no-stream needs the embedded target behind a socket, and %s has none", p.Target).WithHint("use mock: in place of sim:")
	}
	for _, s := range Settings() {
		if s.Group != groupMock || s.get == nil || len(s.get(p)) == 0 {
			continue
		}
		switch {
		case kind == "http" && (s.Name == "ttft" || s.Name == "itl"):
			return say.Errorf("--%s is a latency of the embedded target, and %s is none", s.Name, p.Target).WithHint(`a limit is written --slo "p99 ` + s.Name + `<200ms"`)
		case kind == "http":
			return say.Errorf("--%s describes the embedded target, and %s is none", s.Name, p.Target).WithHint("use it with mock:MODEL@GPU")
		case needsSocket(s.Name) && !(s.Name == "faults" && p.onlyFreezes()):
			return say.Errorf("--%s needs the embedded target behind a socket, and %s has none", s.Name, p.Target).WithHint("use mock: in place of sim:")
		}
	}
	if p.Mock.Truth != "" {
		return say.Errorf("--truth needs the embedded target behind a socket, and %s is none", p.Target).WithHint("use it with mock:MODEL@GPU")
	}
	return nil
}

// needsSocket says whether a setting of the embedded target is one of its
// HTTP face, which a target in virtual time has none of.
func needsSocket(setting string) bool {
	return slices.Contains([]string{"speed", "startup-delay", "reasoning", "tool-calls", "eos", "prompt-tokens-details", "faults"}, setting)
}

// onlyFreezes says that the faults are of the whole server's clock: it can stand
// still without a socket too.
func (p *Plan) onlyFreezes() bool {
	for fault := range strings.SplitSeq(p.Mock.Faults, ",") {
		if !strings.HasPrefix(strings.TrimSpace(fault), "freeze:") {
			return false
		}
	}
	return true
}

func (p *Plan) checkObjective() error {
	if p.NoStream && p.SLO.NeedsStream() {
		return say.Errorf("an answer that is not streamed has no ttft, tpot or itl, so %q cannot be judged", p.SLO.String()).WithHint("measure with streaming, or set a limit on e2e")
	}
	for _, l := range p.SLO.Limits {
		if l.Metric != slo.Errors && l.Max >= p.Timeout {
			return say.Errorf("the limit %q lies beyond the timeout of %s: it could never be seen to fail", l.String(), say.Span(p.Timeout)).WithHint("raise --timeout above the limit")
		}
	}
	return nil
}

func (p *Plan) checkPrice() error {
	switch {
	case p.GPUPrice > 0 && p.GPUs == 0:
		return say.Errorf("--gpu-price without --gpus").WithHint("say how many there are: --gpus 1")
	case p.SpendLimit > 0 && p.GPUPrice == 0 && p.TokenPrice == (TokenPrice{}):
		return say.Errorf("--spend-limit without a price").WithHint("give --token-price 0.15/0.60 (USD per million input/output tokens) or --gpus with --gpu-price")
	}
	return nil
}

// checkJSONObject says what keeps a text from being a JSON object.
func checkJSONObject(text string) error {
	var m map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &m)
	if err == nil && m == nil {
		return say.Errorf("not a JSON object: null").WithHint(`for example --body '{"top_p":0.9}'`)
	}
	if err != nil {
		return say.Errorf("not a JSON object: %s", strings.TrimPrefix(err.Error(), "json: ")).WithHint(`for example --body '{"top_p":0.9}'`)
	}
	return nil
}
