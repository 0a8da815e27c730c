package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/cost"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// sources are what a plan is decoded from.
type sources struct {
	args string // separated by spaces
	env  map[string]string
	file string
}

func (s sources) decode(t testing.TB) (Plan, []string, error) {
	t.Helper()
	argv := strings.Fields(s.args)
	if s.file != "" {
		path := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(path, []byte(s.file), 0o600); err != nil {
			t.Fatal(err)
		}
		argv = append([]string{"--config", path}, argv...)
	}
	var environ []string
	for name, value := range s.env {
		environ = append(environ, name+"="+value)
	}
	return Decode(VerbRun, argv, environ)
}

// The stronger source wins, setting by setting.
func TestPrecedence(t *testing.T) {
	env := map[string]string{"PITOT_RATE": "2", "PITOT_OUTPUT": "20", "PITOT_WAIT_READY": "2s"}
	file := "rate: 3\noutput: 30\ninput: 300\nwait-ready: 3s\ntarget: http://file\n"
	p, args, err := sources{args: "http://flag --rate 1", env: env, file: file}.decode(t)
	if err != nil {
		t.Fatal(err)
	}
	if p.Rate != 1 || p.Ask.Output != workload.FixedLength(20) || p.Input != workload.FixedLength(300) || p.Wait != 2*time.Second || p.Repeat != 1 {
		t.Errorf("%+v", p)
	}
	if p.Spec != "http://flag" || !slices.Equal(args, []string{"http://flag"}) {
		t.Errorf("target %q of %q", p.Spec, args)
	}
	if p, args, err = (sources{file: file}).decode(t); err != nil || p.Spec != "http://file" || len(args) != 1 {
		t.Errorf("target of the file: %q, %q, %v", p.Spec, args, err)
	}
}

// Of two settings that a run has one of, the stronger source decides; what
// weaker ones say of the other does not count.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		name string
		in   sources
		want func(p *Plan)
	}{
		{"flag over file", sources{args: "--concurrency 8", file: "rate: 50\narrival: constant\nmax-in-flight: 9"},
			func(p *Plan) { p.Concurrency = 8 }},
		{"environment over file", sources{env: map[string]string{"PITOT_RATE": "5"}, file: "concurrency: 8\nthink: 1s"},
			func(p *Plan) { p.Rate = 5 }},
		{"flag over environment", sources{args: "--requests 10", env: map[string]string{"PITOT_DURATION": "9s"}},
			func(p *Plan) { p.Requests = 10 }},
		{"and back", sources{args: "--duration 9s", file: "requests: 10"},
			func(p *Plan) { p.Duration = 9 * time.Second }},
		{"key", sources{args: "--key-file k", env: map[string]string{"PITOT_KEY_ENV": "K"}},
			func(p *Plan) { p.KeyFile = "k" }},
		{"what a file asks beside the other's prompts", sources{args: "--workload f", file: "input: 9\nprefix: 3\nprefix-share: 0.5\noutput: 9"},
			func(p *Plan) { p.Workload, p.Ask.Output = "f", workload.FixedLength(9) }},
		{"what is as usual is beside nothing", sources{args: "--concurrency 8 --arrival poisson --insecure=false --ca-cert f"},
			func(p *Plan) { p.Concurrency, p.CACert = 8, "f" }},
	} {
		want := Default()
		c.want(&want)
		got, _, err := c.in.decode(t)
		got.Origins = nil
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if d := cmp.Diff(want, got, compareLengths); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

var compareLengths = cmp.Options{
	cmp.Comparer(func(a, b workload.Lengths) bool { return a == b }),
	cmp.Comparer(func(a, b workload.Pause) bool { return a == b }),
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]func(p *Plan){
		"x --rate=4":                      func(p *Plan) { p.Spec, p.Rate = "x", 4 },
		"--rate 4 x":                      func(p *Plan) { p.Spec, p.Rate = "x", 4 },
		"-rate 4":                         func(p *Plan) { p.Rate = 4 },
		"--insecure":                      func(p *Plan) { p.Insecure = true },
		"--insecure=false x":              func(p *Plan) { p.Spec = "x" },
		"--insecure=0":                    func(*Plan) {},
		"--no-stream --quiet":             func(p *Plan) { p.NoStream, p.Quiet = true, true },
		"--header A=1 --header B=2=3":     func(p *Plan) { p.Headers = []string{"A=1", "B=2=3"} },
		"--note a= --note b=c":            func(p *Plan) { p.Notes = []string{"a=", "b=c"} },
		"--slo=ttft<1s@99%":               func(p *Plan) { p.SLO = limits("ttft<1s @99%") },
		"--rate 4 -- --rate":              func(p *Plan) { p.Rate, p.Spec = 4, "--rate" },
		"-":                               func(p *Plan) { p.Spec = "-" },
		"--prefix 100":                    func(p *Plan) { p.Prefix = 100 },
		"--prefix 100 --prefix-share 0.5": func(p *Plan) { p.Prefix, p.PrefixShare = 100, .5 },
		"--prefix 100 --prefix-share 0":   func(p *Plan) { p.Prefix, p.PrefixShare = 100, 0 },
		"--warmup auto":                   func(*Plan) {},
		"--warmup 0s":                     func(p *Plan) { p.Warmup = 0 },
		"--model=--rate":                  func(p *Plan) { p.Model = "--rate" },
		"--token-price 0.15/0.60":         func(p *Plan) { p.TokenPrice = cost.Tokens{Input: .15, Output: .6} },
		"--output lognormal(200,50)":      func(p *Plan) { p.Ask.Output, _ = workload.ParseLengths("lognormal(200,50)") },
		"--seed 18446744073709551615":     func(p *Plan) { p.Seed, p.SeedSet = 1<<64-1, true },
		"--rate -0 --concurrency 1":       nil,
		"--set proxy=http://u:p@h:3128 --key-env MY_K": func(p *Plan) { p.Proxy, p.KeyEnv = "http://u:p@h:3128", "MY_K" },
	} {
		got, _, err := sources{args: args}.decode(t)
		if want == nil {
			if err == nil {
				t.Errorf("%s: no error", args)
			}
			continue
		}
		plan := Default()
		want(&plan)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if d := cmp.Diff(plan, got, compareLengths); d != "" {
			t.Errorf("%s: %s", args, d)
		}
	}
}

const saturate = "to saturate the server: --concurrency 256 in its place, users who each wait for their answer, or a rate above what it serves"

// Each mistake gives one sentence and, where there is one, the way out.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		in        sources
		msg, hint string
	}{
		{sources{args: "--rat 4"}, "unknown flag --rat", "did you mean --rate?"},
		{sources{args: "--conc 4"}, "unknown flag --conc", "did you mean --concurrency?"},
		{sources{args: "--hlep"}, "unknown flag --hlep", "did you mean --help?"},
		{sources{args: "--wibble"}, "unknown flag --wibble", "see --help=all"},
		{sources{args: "--port 1"}, "unknown flag --port", "--port belongs to another verb"},
		{sources{args: "--request-rate 4"}, "unknown flag --request-rate", "write --rate"},
		{sources{args: "--num-prompts=4"}, "unknown flag --num-prompts", "write --requests"},
		{sources{args: "--api-key=sk-secret"}, "unknown flag --api-key", "a key is never an argument, where others can read it: export OPENAI_API_KEY, or --key-env VAR, or --key-file FILE"},
		{sources{args: "--rate"}, "--rate needs a value", "for example --rate 4"},
		{sources{args: "--config="}, "--config: empty", "for example --config plan.yaml"},
		{sources{args: "--rate inf"}, "--rate: an open loop has no infinite rate", saturate},
		{sources{args: "--rate=+Inf"}, "--rate: an open loop has no infinite rate", saturate},
		{sources{env: map[string]string{"PITOT_RATE": "infinity"}}, "PITOT_RATE: an open loop has no infinite rate", saturate},
		{sources{args: "--config"}, "--config needs a value", "for example --config config.yaml"},
		{sources{args: "--model --rate 4"}, "--model needs a value", "for example --model meta-llama/Llama-3.1-8B-Instruct"},
		{sources{args: "--model -- x"}, "--model needs a value", "for example --model meta-llama/Llama-3.1-8B-Instruct"},
		{sources{args: "--model -h"}, "--model needs a value", "for example --model meta-llama/Llama-3.1-8B-Instruct"},
		{sources{args: "--model --help"}, "--model needs a value", "for example --model meta-llama/Llama-3.1-8B-Instruct"},
		{sources{args: "--rate 4 --rate=5"}, "--rate is given twice", "keep one of them"},
		{sources{args: "--config a --config b"}, "--config is given twice", "keep one of them"},
		{sources{args: "--insecure false"}, "--insecure takes no value of its own", "write --insecure=false"},
		{sources{args: "--insecure=maybe"}, `--insecure: "maybe" is neither true nor false`, ""},
		{sources{args: "--model="}, "--model: empty", ""},
		{sources{args: "--duration 60"}, `--duration: "60" has no unit`, "write 60s or 60ms"},
		{sources{args: "--duration 1d"}, `--duration: "1d" is not a time such as 500ms, 60s or 10m`, ""},
		{sources{args: "--duration 0s"}, "--duration: 0s is shorter than 1 ms", ""},
		{sources{args: "--duration 9000h"}, "--duration: 9000h is longer than a year", ""},
		{sources{args: "--warmup -1ns"}, "--warmup: -1ns is shorter than 0 s", "or in a word: auto"},
		{sources{args: "--warmup soon"}, `--warmup: "soon" is not a time such as 500ms, 60s or 10m`, "or in a word: auto"},
		{sources{args: "--rate 0"}, "--rate: 0 is not between 0.000001 and 1,000,000", ""},
		{sources{args: "--rate 1e999"}, "--rate: 1e999 is not between 0.000001 and 1,000,000", ""},
		{sources{args: "--rate nan"}, `--rate: "nan" is not a number`, ""},
		{sources{args: "--concurrency 0"}, "--concurrency: 0 is not between 1 and 1,000,000", ""},
		{sources{args: "--concurrency 2000000000"}, "--concurrency: 2000000000 is not between 1 and 1,000,000", ""},
		{sources{args: "--concurrency 1.5"}, `--concurrency: "1.5" is not a whole number`, ""},
		{sources{args: "--requests 0"}, `--requests: "0" is not a whole number of at least 1`, ""},
		{sources{args: "--prefix-share 1.5"}, "--prefix-share: 1.5 is not between 0 and 1", ""},
		{sources{args: "--seed -1"}, `--seed: "-1" is not a whole number`, ""},
		{sources{args: "--arrival poison"}, `--arrival: unknown arrival process "poison"`, "did you mean poisson?"},
		{sources{args: "--format xml"}, `--format: unknown format "xml"`, "known: csv, html, json, md, text"},
		{sources{args: "--input 1k"}, `--input: length "1k": not a length`, "write a number of tokens as 1024, or uniform(a,b), normal(mean,sd), lognormal(mean,sd), gamma(mean,sd), zipf(exponent,most), quantiles(0:1,50:200,100:4000) quantiles(FILE,input), or pairs(FILE,input) with pairs(FILE,output)"},
		{sources{args: "--input uniform(9,1)"}, `--input: length "uniform(9,1)": the ends of uniform are the wrong way round`, "did you mean uniform(1,9)?"},
		{sources{args: "--slo p99ttff<1s"}, `--slo: unknown metric "ttff"`, "did you mean ttft?"},
		{sources{args: "--slo ttft<200"}, `--slo: limit "200" without a unit`, "write 200ms or 200s"},
		{sources{args: "--body [1]"}, "--body: not a JSON object: cannot unmarshal array into Go value of type map[string]json.RawMessage", `for example --body '{"top_p":0.9}'`},
		{sources{args: "--body null"}, "--body: not a JSON object: null", `for example --body '{"top_p":0.9}'`},
		{sources{args: "--gpu-price 5kr"}, `--gpu-price: "5kr" is no price of a GPU and hour`, "give USD, as 2.49, or what it costs its owner: owned:30000,4y,700W,0.12/kWh"},
		{sources{args: "--gpu-price owned:5,4"}, `--gpu-price: "4" is not years, as 4y`, "for example owned:30000,4y,700W,0.12/kWh: purchase in USD, years, power and USD for a kilowatt-hour"},
		{sources{args: "--set discount=100%"}, `--set discount: "100%" is no share below 100%`, "for example 30%"},
		{sources{args: "--token-price 5"}, `--token-price: "5" is not IN/OUT or IN/CACHED/OUT`, "for example 0.15/0.60, or 0.15/0.075/0.60 where input from the prompt cache has a price of its own"},
		{sources{args: "--header sk-secret"}, "--header: not NAME=VALUE", ""},
		{sources{args: "--header Host=x"}, "--header: header Host is Pitot's own to set", ""},
		{sources{args: "--set proxy=https://u:sk-secret@h"}, "--set proxy: not the URL of an HTTP proxy", "for example http://proxy.example:3128"},
		{sources{args: "--key-env sk-secret"}, "--key-env: not the name of an environment variable", "for example export OPENAI_API_KEY=… and --key-env OPENAI_API_KEY"},
		{sources{args: "--note x"}, `--note: "x" is not KEY=VALUE`, ""},
		{sources{args: "--duration 5s --requests 5"}, "--duration and --requests both say when the window ends", "keep one of them; --timeout bounds each request"},
		{sources{args: "--key-env A --key-file b"}, "--key-env and --key-file both say where the key is", "keep one of them"},
		{sources{args: "--model \xff"}, "--model: not UTF-8 text", ""},
		{sources{args: "--config /nowhere/x.yaml"}, "read config /nowhere/x.yaml: no such file or directory", "a config is a YAML file of flags, as rate: 4; every run leaves one, config.yaml in its directory"},
		{sources{env: map[string]string{"PITOT_MAX_IN_FLIGHT": "x"}}, `PITOT_MAX_IN_FLIGHT: "x" is not a whole number`, ""},
		{sources{env: map[string]string{"PITOT_HEADER": "A=1\nsk-secret"}}, "PITOT_HEADER: not NAME=VALUE", ""},

		{sources{file: "rate: 4\n\tx: 1"}, "FILE:2: found a tab character that violates indentation", "use spaces, not tabs; no line of a config needs any in front"},
		{sources{file: "rate: \"4"}, "FILE: found unexpected end of stream", "a quote or bracket is not closed"},
		{sources{file: "rate: 4\nfoo\n"}, "FILE:2: could not find expected ':'", "a line is KEY: VALUE, for example rate: 4; put quotes around a value that has : # { or [ in it"},
		{sources{file: "\xff\x00"}, "FILE: invalid leading UTF-8 octet", "this is no text; a config is a YAML file of flags, as rate: 4"},
		{sources{file: "rate: 4\nrat: 5"}, `FILE:2: unknown key "rat"`, "did you mean rate?"},
		{sources{file: "\n\nwibble: 5"}, `FILE:3: unknown key "wibble"`, "keys are the names of flags, see pitot run --help=all"},
		{sources{file: "rate: 4\nduration: 60"}, `FILE:2: duration: "60" has no unit`, "write 60s or 60ms"},
		{sources{file: "rate: 4\nrate: 5"}, "FILE:2: rate is given twice, first on line 1", "keep one of them"},
		{sources{file: "rate: [4, 5]"}, "FILE:1: rate: want one value, not a list", "write KEY: VALUE; put quotes around a value that has : # { or [ in it"},
		{sources{file: "rate: []"}, "FILE:1: rate: want one value, not a list", "write KEY: VALUE; put quotes around a value that has : # { or [ in it"},
		{sources{file: "target: [a, b]"}, "FILE:1: target: want one value, not a list", "write KEY: VALUE; put quotes around a value that has : # { or [ in it"},
		{sources{file: "rate: {a: b}"}, "FILE:1: rate: want a plain value", "write KEY: VALUE; put quotes around a value that has : # { or [ in it"},
		{sources{file: "header: [[a]]"}, "FILE:1: header: a list holds plain values", "write KEY: VALUE; put quotes around a value that has : # { or [ in it"},
		{sources{file: "[a]: b"}, "FILE:1: a key is a plain word", "a line is KEY: VALUE, for example rate: 4"},
		{sources{file: "model:"}, "FILE:1: model: empty", ""},
		{sources{file: "- rate"}, "FILE:1: want key: value", "for example: rate: 4"},
		{sources{file: "rate: 4\nx: y: z"}, "FILE:2: mapping values are not allowed in this context", "a line is KEY: VALUE, for example rate: 4; put quotes around a value that has : # { or [ in it"},
		{sources{file: "rate: 4\n---\nrate: 5"}, "FILE:2: a second document begins", "one file is one run: leave out what begins with ---"},
		{sources{file: "requests: 5\nduration: 5s"}, "--duration and --requests both say when the window ends", "keep one of them; --timeout bounds each request"},
	} {
		_, _, err := c.in.decode(t)
		if key, _, ok := strings.Cut(c.in.file, ":"); ok && say.HintOf(err) != "" {
			c.hint = strings.Replace(c.hint, "write KEY:", "write "+key+":", 1)
		}
		name := c.in.args + c.in.file
		if err == nil {
			t.Errorf("%q: no error", name)
			continue
		}
		msg := err.Error()
		if i := strings.Index(msg, "plan.yaml"); i >= 0 {
			msg = "FILE" + msg[i+len("plan.yaml"):]
		}
		var u *say.Error
		if !errors.As(err, &u) {
			t.Errorf("%q: %v is not the user's", name, err)
		}
		if msg != c.msg || say.HintOf(err) != c.hint {
			t.Errorf("%q:\n got %s\n     %s\nwant %s\n     %s", name, msg, say.HintOf(err), c.msg, c.hint)
		}
		if strings.Contains(err.Error()+say.HintOf(err), "sk-secret") {
			t.Errorf("%q: a secret is told: %v", name, err)
		}
	}
}

// Variables of other verbs, of other programs and empty ones are let be.
func TestVariablesLetBe(t *testing.T) {
	env := map[string]string{"PITOT_PORT": "x", "PITOT_CPUPROFILE": "f", "PITOT_WIBBLE": "", "PITOTS": "1", "PITOT_RATE": "2",
		"PITOT_VERSION": "3", "PITOT_NATS_PORT": "tcp://10.96.0.9:4222"}
	p, _, err := sources{env: env}.decode(t)
	if err != nil || p.Rate != 2 {
		t.Errorf("%v, %v", p.Rate, err)
	}
	var serving Serving
	if _, err := DecodeParts(VerbMock, nil, []string{"PITOT_PORT=tcp://10.96.0.9:4222"}, &serving, new(Embedded)); err != nil || serving.Port != 8000 {
		t.Errorf("the link to a service named pitot: port %d, %v", serving.Port, err)
	}
}

// A variable that nothing reads is named, with the one that was meant; service links are not.
func TestIgnoredVariables(t *testing.T) {
	const ignored = " is no setting of pitot and is ignored"
	for env, want := range map[string]string{
		"PITOT_RAET=4":                "PITOT_RAET" + ignored + ": did you mean PITOT_RATE?",
		"PITOT_MAX_INFLIGHT=4":        "PITOT_MAX_INFLIGHT" + ignored + ": did you mean PITOT_MAX_IN_FLIGHT?",
		"PITOT_CPUPROFIL=x":           "PITOT_CPUPROFIL" + ignored + ": did you mean PITOT_CPUPROFILE?",
		"PITOT_WIBBLE=4":              "PITOT_WIBBLE" + ignored,
		"PITOT_PORT_SECRET=sk-secret": "PITOT_PORT_SECRET" + ignored,
		"PITOT_TARGET=x":              "PITOT_TARGET" + ignored + ": the target is an argument, the key target of a config, or OPENAI_BASE_URL",
		"PITOT_API_KEY=sk-secret": "PITOT_API_KEY" + ignored +
			": a key is never an argument, where others can read it: export OPENAI_API_KEY, or --key-env VAR, or --key-file FILE",
		"PITOT_NATS_SERVICE_HOST=10.96.0.9":          "",
		"PITOT_NATS_SERVICE_PORT=4222":               "",
		"PITOT_NATS_SERVICE_PORT_NATS=4222":          "",
		"PITOT_NATS_PORT=tcp://10.96.0.9:4222":       "",
		"PITOT_NATS_PORT_4222_TCP=tcp://10.96.0.9:1": "",
		"PITOT_NATS_PORT_4222_TCP_PROTO=tcp":         "",
		"PITOT_NATS_PORT_4222_TCP_PORT=4222":         "",
		"PITOT_NATS_PORT_4222_TCP_ADDR=10.96.0.9":    "",
		"PITOT_SERVICE_HOST=10.96.0.9":               "",
		"PITOT_PORT=tcp://10.96.0.9:4222":            "",
		"PITOT_SERVER_PORT=1":                        "",
		"PITOT_RATE=4":                               "",
		"PITOT_EMPTY=":                               "",
	} {
		if got := strings.Join(IgnoredVariables([]string{env}), "\n"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", env, got, want)
		}
	}
}

// Where what is not on the command line came from is told by name alone.
func TestProvenance(t *testing.T) {
	for _, c := range []struct {
		in   sources
		want string
	}{
		{sources{args: "http://x --rate 4"}, ""},
		{sources{args: "--rate 4", env: map[string]string{"OPENAI_BASE_URL": "http://e"}}, "OPENAI_BASE_URL from the environment"},
		{sources{args: "http://x", env: map[string]string{"OPENAI_BASE_URL": "http://e", "PITOT_RATE": "4", "PITOT_HEADER": "X-Api-Key=sk-secret"}},
			"PITOT_RATE, PITOT_HEADER from the environment"},
		{sources{args: "--rate 4", file: "output: 9\ntarget: http://x\nrate: 5\nduration: 5s"}, "target, output, duration from FILE; overridden: rate of FILE"},
		{sources{args: "http://x --concurrency 2", env: map[string]string{"PITOT_RATE": "4", "PITOT_OUTPUT": "7"}, file: "target: http://y\noutput: 8\narrival: constant"},
			"PITOT_OUTPUT from the environment; overridden: target of FILE, PITOT_RATE, output of FILE, arrival of FILE"},
		{sources{file: "seed: 1\ninput: 1\noutput: 2\nrate: 5\ntarget: http://x\nduration: 5s\nmodel: m"}, "target, rate, seed, input, output and 2 more from FILE"},
	} {
		p, _, err := c.in.decode(t)
		if err != nil {
			t.Errorf("%+v: %v", c.in, err)
			continue
		}
		for i, o := range p.Origins {
			if o.File != "" {
				p.Origins[i].File = "FILE"
			}
		}
		if got := p.Provenance(); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// In a file, lists are for what may be given more than once, and values are
// text whatever YAML would make of them.
func TestFile(t *testing.T) {
	p, _, err := sources{file: "header: [A=1, B=2]\nnote: one=1\ninsecure: yes\nlaunch: 007\nmodel: null\n"}.decode(t)
	if err == nil || !strings.Contains(err.Error(), "neither true nor false") {
		t.Fatalf("yes is no switch: %v", err)
	}
	p, _, err = sources{file: "header: [A=1, B=2]\nnote: one=1\ninsecure: true\nlaunch: 007\nmodel: null\nbody: '{\"a\":1}'\n"}.decode(t)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Headers, []string{"A=1", "B=2"}) || !slices.Equal(p.Notes, []string{"one=1"}) || !p.Insecure || p.Launch != "007" || p.Model != "null" || p.Body != `{"a":1}` {
		t.Errorf("%+v", p)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "{}"} {
		if p, _, err := (sources{file: empty + " "}).decode(t); err != nil || p.Rate != 0 {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// A run that is resumed says itself what it is to do; what is said again is
// stronger, and what only other verbs know is let be.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("target: http://x\nover: concurrency\npoints: 7\nbudget: 1h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, args, err := Decode(VerbSweep, []string{"--resume", "--out", dir, "--points", "9"}, nil)
	if err != nil || p.Spec != "http://x" || len(args) != 1 || p.Over != "concurrency" || p.Points != 9 || !p.Resume || p.Out != dir {
		t.Errorf("%+v, %q, %v", p.Search, args, err)
	}
	p, _, err = Decode(VerbSweep, []string{"http://y", "--resume", "--out", dir, "--config", filepath.Join(t.TempDir(), "none")}, nil)
	if err == nil {
		t.Errorf("another config is named and not read: %+v", p.Search)
	}
	if p, _, err = Decode(VerbSweep, []string{"http://y", "--resume", "--out", filepath.Join(dir, "new")}, nil); err != nil || p.Spec != "http://y" {
		t.Errorf("a run that is not there yet: %v", err)
	}
	if p, _, err = Decode(VerbSweep, []string{"http://y", "--out", dir}, nil); err != nil || p.Points != 12 {
		t.Errorf("without --resume: %v, %v", p.Points, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("x\x00--rate\x004", "rate: 4\nslo: p99 ttft<1s\n")
	f.Add("--insecure=false\x00--\x00--x", "header: [A=1, 'B=\"2']\n# c\n")
	f.Add("--model\x00--rate", "&a rate: *a\n")
	f.Add("-\x00--\x00---", "? [x]\n: y\n--- \n...")
	f.Add("--header=A=\x00--body={}", "target: !!binary aGVsbG8=\n")
	f.Add("--=\x00-=1", "<<: {rate: 1}\n")
	f.Fuzz(func(t *testing.T, args, file string) {
		argv := strings.Split(args, "\x00")
		if slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, "config") }) {
			return // of the machine's own files
		}
		p, _, err := Decode(VerbRun, argv, nil)
		if err == nil {
			_ = p.Check(VerbRun)
			_ = RedactArgs(argv)
		}
		var of Plan
		d := newDecoder(VerbRun, of.settingParts())
		var u *say.Error
		if _, err := d.readYAML("f", []byte(file)); err == nil {
			_ = of.Check(VerbRun)
			_ = of.YAML(VerbRun)
		} else if !errors.As(err, &u) || u.Msg == "" {
			t.Fatalf("%v is not the user's", err)
		}
	})
}

// A value puts away what clashes with it as a setting does, and of a list its keys.
func TestClashWithValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte("arrival: constant\nmax-in-flight: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, err := Decode(VerbSweep, []string{"http://x", "--over", "concurrency", "--config", path}, nil)
	if err != nil || p.Arrival != Default().Arrival || p.MaxInFlight != 0 {
		t.Errorf("%+v, %v", p.Load, err)
	}
	p, _, err = Decode(VerbSweep, []string{"http://x", "--over", "rate", "--config", path}, nil)
	if err != nil || p.Arrival != "constant" || p.MaxInFlight != 9 {
		t.Errorf("%+v, %v", p.Load, err)
	}
	d := newDecoder(VerbRun, p.settingParts())
	p.Notes = []string{"gpu=h100", "why=x=y"}
	for condition, want := range map[string]bool{"note=gpu": true, "note=why": true, "note=gpu=h100": true, "note=x": false, "note=h100": false, "note": false} {
		if got := d.conditionHolds(condition); got != want {
			t.Errorf("%s: %v", condition, got)
		}
	}
}

// What is noted of a setting stands among the notes, as far as it may be seen.
func TestKeptNotes(t *testing.T) {
	p, _, err := Decode(VerbRun, []string{"http://x", "--rate", "1", "--note", "gpu=h100", "--note", "why=x=y", "--launch", "7", "--header", "X-Key=secret", "--header", "X-Other=two"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings()
	for i := range settings {
		switch settings[i].Name {
		case "launch", "header", "model":
			settings[i].Noted = true
		}
	}
	got := keptNotes(settings, &p)
	if strings.Contains(got["header"], "secret") || !strings.HasPrefix(got["header"], "X-Key=") {
		t.Errorf("header: %q", got["header"])
	}
	delete(got, "header")
	if d := cmp.Diff(map[string]string{"gpu": "h100", "why": "x=y", "launch": "7"}, got); d != "" {
		t.Error(d)
	}
	if got := p.KeptNotes(); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// Help is asked for by -h and --help, but not in the place of a value.
func TestHelpAsked(t *testing.T) {
	for args, want := range map[string]bool{
		"-h": true, "--help": true, "-help": true, "sim:fixed --rate 5 --help": true, "--quiet -h": true, "--rate=5 -h": true, "--unknown -h": true,
		"": false, "sim:fixed --rate 5 --model -h": false, "--config --help": false, "--model=-h": false, "-- -h": false, "--help=x": true, "--rate=5 -h=slo": true,
	} {
		if _, got := HelpAsked(VerbRun, strings.Fields(args)); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	if topic, _ := HelpAsked(VerbRun, []string{"mock:fixed", "--help=slo", "--quiet"}); topic != "slo" {
		t.Errorf("topic %q", topic)
	}
}
