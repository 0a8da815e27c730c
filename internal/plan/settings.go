package plan

import (
	"strconv"
	"strings"
	"time"

	"pitot/internal/slo"
	"pitot/internal/workload"
)

// Setting is one thing a user can set: a flag, a key in YAML and a PITOT_
// variable of the same name.
type Setting struct {
	Name    string
	Arg     string // placeholder in the help, "" for a switch
	Default string // as shown in the help
	Help    string
	Group   string
	Many    bool // may be given more than once
	set     func(p *Plan, v string) error
	get     func(p *Plan) []string // nil or empty: as by default
}

// Groups of settings, in the order of the help.
const (
	groupTarget   = "Target"
	groupWorkload = "What is asked"
	groupLoad     = "How hard"
	groupSearch   = "Which loads"
	groupJudge    = "What is good"
	groupRun      = "The run"
	groupMock     = "The embedded target"
	groupCheck    = "The check"
	groupPredict  = "The prediction"
	groupCompare  = "The comparison"
)

// Settings lists all there is to set.
func Settings() []Setting {
	return []Setting{
		{Name: "api", Arg: "NAME", Default: "asked", Group: groupTarget,
			Help: "openai-chat or openai-completions; by default from the URL, else by asking the server",
			set:  str(func(p *Plan) *string { return &p.API }), get: text(func(p *Plan) string { return p.API })},
		{Name: "model", Arg: "NAME", Default: "asked", Group: groupTarget, Help: "model to ask for; by default the server's first",
			set: str(func(p *Plan) *string { return &p.Model }), get: text(func(p *Plan) string { return p.Model })},
		{Name: "key-env", Arg: "VAR", Default: "OPENAI_API_KEY", Group: groupTarget, Help: "environment variable that holds the API key",
			set: setKeyEnv, get: unless("OPENAI_API_KEY", func(p *Plan) string { return p.KeyEnv })},
		{Name: "key-file", Arg: "FILE", Group: groupTarget, Help: "file that holds the API key",
			set: str(func(p *Plan) *string { return &p.KeyFile }), get: text(func(p *Plan) string { return p.KeyFile })},
		{Name: "header", Arg: "NAME=VALUE", Many: true, Group: groupTarget, Help: "header to send; values of secrets are not stored",
			set: setHeader, get: storedHeaders},
		{Name: "ca-cert", Arg: "FILE", Group: groupTarget, Help: "certificate authority to trust, PEM",
			set: str(func(p *Plan) *string { return &p.CACert }), get: text(func(p *Plan) string { return p.CACert })},
		{Name: "insecure", Group: groupTarget, Help: "do not verify the server's certificate",
			set: toggle(func(p *Plan) *bool { return &p.Insecure }), get: on(func(p *Plan) bool { return p.Insecure })},
		{Name: "proxy", Arg: "URL", Group: groupTarget, Help: "HTTP proxy to reach the target through, by CONNECT",
			set: setProxy, get: text(func(p *Plan) string { return withoutPassword(p.Proxy) })},
		{Name: "timeout", Arg: "TIME", Default: "10m", Group: groupTarget, Help: "how long a request is followed",
			set: duration(func(p *Plan) *time.Duration { return &p.Timeout }, time.Millisecond), get: unless("10m0s", func(p *Plan) string { return p.Timeout.String() })},
		{Name: "wait-ready", Arg: "TIME", Default: "0", Group: groupTarget, Help: "how long to wait for the target to answer at all",
			set: duration(func(p *Plan) *time.Duration { return &p.Wait }, 0), get: unless("0s", func(p *Plan) string { return p.Wait.String() })},

		{Name: "input", Arg: "TOKENS", Default: "1024", Group: groupWorkload, Help: "prompt length: 1024, uniform(a,b), normal(mean,sd) or lognormal(mean,sd)",
			set: lengths(func(p *Plan) *workload.Lengths { return &p.Input }), get: unless("1024", func(p *Plan) string { return p.Input.String() })},
		{Name: "output", Arg: "TOKENS", Default: "128", Group: groupWorkload, Help: "answer length, likewise",
			set: lengths(func(p *Plan) *workload.Lengths { return &p.Output }), get: unless("128", func(p *Plan) string { return p.Output.String() })},
		{Name: "prefix", Arg: "TOKENS", Default: "0", Group: groupWorkload, Help: "prefix in front of the prompts that share it",
			set: count(func(p *Plan) *int { return &p.Prefix }, 0, many), get: unless("0", func(p *Plan) string { return strconv.Itoa(p.Prefix) })},
		{Name: "prefix-share", Arg: "SHARE", Default: "1 with --prefix", Group: groupWorkload, Help: "share of requests that begin with the prefix, 0 to 1",
			set: number(func(p *Plan) *float64 { return &p.PrefixShare }, 0, 1), get: storedShare},
		{Name: "workload", Arg: "FILE", Default: "random", Group: groupWorkload, Help: "prompts from a file: ShareGPT JSON, OpenAI chat JSONL, one prompt per line",
			set: str(func(p *Plan) *string { return &p.Workload }), get: unless("random", func(p *Plan) string { return p.Workload })},
		{Name: "body", Arg: "JSON", Group: groupWorkload, Help: "object merged over each request's body",
			set: setBody, get: storedBody},
		{Name: "no-stream", Group: groupWorkload, Help: "ask for whole answers: no TTFT, TPOT or ITL then",
			set: toggle(func(p *Plan) *bool { return &p.NoStream }), get: on(func(p *Plan) bool { return p.NoStream })},
		{Name: "seed", Arg: "N", Default: "fresh", Group: groupWorkload, Help: "seed of arrivals and prompts; the same seed asks the same again",
			set: setSeed, get: func(p *Plan) []string { return []string{strconv.FormatUint(p.Seed, 10)} }},

		{Name: "rate", Arg: "R", Group: groupLoad, Help: "open loop: requests per second, at times of their own",
			set: setRate, get: unless("0", func(p *Plan) string { return decimal(p.Rate) })},
		{Name: "concurrency", Arg: "N", Group: groupLoad, Help: "closed loop: users who each wait for their answer",
			set: count(func(p *Plan) *int { return &p.Concurrency }, 1, many), get: unless("0", func(p *Plan) string { return strconv.Itoa(p.Concurrency) })},
		{Name: "arrival", Arg: "NAME", Default: "poisson", Group: groupLoad, Help: "poisson, constant, or gamma(SHAPE): bursts below 1, more even above",
			set: setArrival, get: unless("poisson", func(p *Plan) string { return p.Arrival })},
		{Name: "think", Arg: "TIME", Default: "0", Group: groupLoad, Help: "closed loop: pause of a user between answer and next request",
			set: duration(func(p *Plan) *time.Duration { return &p.Think }, 0), get: unless("0s", func(p *Plan) string { return p.Think.String() })},
		{Name: "max-in-flight", Arg: "N", Default: "none", Group: groupLoad, Help: "most requests at once; the others wait, and their wait counts",
			set: count(func(p *Plan) *int { return &p.MaxInFlight }, 1, many), get: unless("0", func(p *Plan) string { return strconv.Itoa(p.MaxInFlight) })},
		{Name: "duration", Arg: "TIME", Default: "1m", Group: groupLoad, Help: "length of the measured window; warm-up comes on top. With --warmup auto the window begins later where the load settles later, and goes on for up to 2.25 times as long where it has not",
			set: duration(func(p *Plan) *time.Duration { return &p.Duration }, time.Millisecond), get: unless("1m0s", func(p *Plan) string { return p.Duration.String() })},
		{Name: "requests", Arg: "N", Group: groupLoad, Help: "or: measure this many requests",
			set: setRequests, get: unless("0", func(p *Plan) string { return strconv.FormatInt(p.Requests, 10) })},
		{Name: "exactly", Group: groupLoad, Help: "with --requests and --warmup 0s: send these and no more; the load falls off while the last answers end",
			set: toggle(func(p *Plan) *bool { return &p.Exactly }), get: on(func(p *Plan) bool { return p.Exactly })},
		{Name: "warmup", Arg: "TIME", Default: "auto", Group: groupLoad, Help: "load before the window; auto takes it from the answers' length",
			set: setWarmup, get: unless("-1ns", func(p *Plan) string { return p.Warmup.String() })},
		{Name: "until", Arg: "PRECISION", Group: groupLoad, Help: `double the window until a value is known well enough, for example "p99 ttft +-5%", within --budget`,
			set: func(p *Plan, v string) (err error) { p.Until, err = slo.ParsePrecision(v); return err },
			get: func(p *Plan) []string {
				if p.Until.None() {
					return nil
				}
				return []string{p.Until.String()}
			}},
		{Name: "repeat", Arg: "N", Default: "1", Group: groupLoad, Help: "measure each load this many times, with fresh prompts and arrivals",
			set: count(func(p *Plan) *int { return &p.Repeat }, 1, many), get: unless("1", func(p *Plan) string { return strconv.Itoa(p.Repeat) })},

		{Name: "over", Arg: "NAME", Default: "rate", Group: groupSearch, Help: "what a load is: rate (requests per second, open loop) or concurrency (users, closed loop)",
			set: oneOf(func(p *Plan) *string { return &p.Over }, "over", []string{"rate", "concurrency"}), get: unless("rate", func(p *Plan) string { return p.Over })},
		{Name: "loads", Arg: "LIST", Default: "chosen", Group: groupSearch, Help: "loads to measure, for example 1,2,4,8",
			set: setLoads, get: func(p *Plan) []string {
				var list []string
				for _, x := range p.Loads {
					list = append(list, decimal(x))
				}
				return nonEmpty(strings.Join(list, ","))
			}},
		{Name: "points", Arg: "N", Default: "12", Group: groupSearch, Help: "how many loads to choose",
			set: count(func(p *Plan) *int { return &p.Points }, 4, 100), get: unless("12", func(p *Plan) string { return strconv.Itoa(p.Points) })},
		{Name: "budget", Arg: "TIME", Default: "20m", Group: groupSearch, Help: "how long the search may take, or the window with --until",
			set: duration(func(p *Plan) *time.Duration { return &p.Budget }, time.Second), get: unless("20m0s", func(p *Plan) string { return p.Budget.String() })},
		{Name: "verify", Arg: "LOAD", Group: groupSearch, Help: "search nothing: find out whether this load meets the SLO",
			set: number(func(p *Plan) *float64 { return &p.Verify }, 1e-6, 1e6), get: unless("0", func(p *Plan) string { return decimal(p.Verify) })},
		{Name: "max-load", Arg: "LOAD", Default: "none", Group: groupSearch, Help: "try no higher load",
			set: number(func(p *Plan) *float64 { return &p.MaxLoad }, 1e-6, 1e6), get: unless("0", func(p *Plan) string { return decimal(p.MaxLoad) })},

		{Name: "slo", Arg: "LIMITS", Group: groupJudge, Help: `for example "p99 ttft<200ms, p99 tpot<50ms" or "ttft<200ms, tpot<50ms @99%"; or a preset: chat, mlperf-llama3.1-8b, …`,
			set: setSLO, get: func(p *Plan) []string {
				if p.SLO.None() {
					return nil
				}
				return []string{p.SLO.String()}
			}},
		{Name: "gpus", Arg: "N", Group: groupJudge, Help: "GPUs behind the target, for figures per GPU",
			set: count(func(p *Plan) *int { return &p.GPUs }, 1, many), get: unless("0", func(p *Plan) string { return strconv.Itoa(p.GPUs) })},
		{Name: "gpu-price", Arg: "USD", Group: groupJudge, Help: "price of a GPU and hour",
			set: number(func(p *Plan) *float64 { return &p.GPUPrice }, 0, 1e6), get: unless("0", func(p *Plan) string { return decimal(p.GPUPrice) })},
		{Name: "token-price", Arg: "IN/OUT", Group: groupJudge, Help: "price of a million input and output tokens, USD",
			set: setTokenPrice, get: func(p *Plan) []string {
				if p.TokenPrice == (TokenPrice{}) {
					return nil
				}
				return []string{decimal(p.TokenPrice.Input) + "/" + decimal(p.TokenPrice.Output)}
			}},
		{Name: "spend-limit", Arg: "USD", Group: groupJudge, Help: "do not start what is expected to cost more",
			set: number(func(p *Plan) *float64 { return &p.SpendLimit }, 0, 1e9), get: unless("0", func(p *Plan) string { return decimal(p.SpendLimit) })},

		{Name: "out", Arg: "DIR", Default: "runs/DATE-NAME", Group: groupRun, Help: "run directory",
			set: str(func(p *Plan) *string { return &p.Out })},
		{Name: "resume", Group: groupRun, Help: "go on with the run in --out: the points it has are not measured again",
			set: toggle(func(p *Plan) *bool { return &p.Resume })},
		{Name: "format", Arg: "NAME", Default: "text", Group: groupRun, Help: "what standard output gets: text, json, md, csv (a line for each point) or html",
			set: oneOf(func(p *Plan) *string { return &p.Format }, "format", []string{"text", "json", "md", "csv", "html"})},
		{Name: "open", Group: groupRun, Help: "open the run's report.html in a browser",
			set: toggle(func(p *Plan) *bool { return &p.ShowPage })},
		{Name: "export", Arg: "NAME=PATH", Many: true, Group: groupRun, Help: "also write the run to a file in another tool's format: pitot report --help lists them",
			set: func(p *Plan, v string) error { p.Export = append(p.Export, v); return nil }},
		{Name: "launch", Arg: "ID", Group: groupRun, Help: "name of this start of the server",
			set: str(func(p *Plan) *string { return &p.Launch }), get: text(func(p *Plan) string { return p.Launch })},
		{Name: "note", Arg: "KEY=VALUE", Many: true, Group: groupRun, Help: "fact to keep with the run",
			set: setNote, get: func(p *Plan) []string { return p.Notes }},
		{Name: "no-probe", Group: groupTarget, Help: "ask nothing beforehand: no model list, no length calibration, no priming",
			set: toggle(func(p *Plan) *bool { return &p.NoProbe }), get: on(func(p *Plan) bool { return p.NoProbe })},
		{Name: "dry-run", Group: groupRun, Help: "say what would be sent and what it would take, and send nothing",
			set: toggle(func(p *Plan) *bool { return &p.DryRun })},
		{Name: "strict", Group: groupJudge, Help: "flags of the checks fail too: exit with 4 unless plainly VALID",
			set: toggle(func(p *Plan) *bool { return &p.Strict })},
		{Name: "quiet", Group: groupRun, Help: "no progress on standard error",
			set: toggle(func(p *Plan) *bool { return &p.Quiet })},

		{Name: "port", Arg: "N", Default: "8000", Group: groupMock, Help: "port to listen on, 0 for any",
			set: count(func(p *Plan) *int { return &p.Mock.Port }, 0, 65535)},
		{Name: "host", Arg: "ADDR", Default: "127.0.0.1", Group: groupMock, Help: "address to listen on",
			set: str(func(p *Plan) *string { return &p.Mock.Host })},
		{Name: "ttft", Arg: "TIME", Group: groupMock, Help: "time to first token",
			set: duration(func(p *Plan) *time.Duration { return &p.Mock.TTFT }, 0), get: ifSet(func(p *Plan) time.Duration { return p.Mock.TTFT })},
		{Name: "itl", Arg: "TIME", Group: groupMock, Help: "time between tokens",
			set: duration(func(p *Plan) *time.Duration { return &p.Mock.ITL }, 0), get: ifSet(func(p *Plan) time.Duration { return p.Mock.ITL })},
		{Name: "jitter", Arg: "CV", Default: "0", Group: groupMock, Help: "coefficient of variation of both",
			set: number(func(p *Plan) *float64 { return &p.Mock.Jitter }, 0, 10), get: unless("0", func(p *Plan) string { return decimal(p.Mock.Jitter) })},
		{Name: "slots", Arg: "N", Default: "0", Group: groupMock, Help: "requests served at once, 0 for any number",
			set: count(func(p *Plan) *int { return &p.Mock.Slots }, 0, many), get: unless("0", func(p *Plan) string { return strconv.Itoa(p.Mock.Slots) })},
		{Name: "tokens-per-chunk", Arg: "N", Default: "1", Group: groupMock, Help: "tokens in each event",
			set: count(func(p *Plan) *int { return &p.Mock.TokensPerChunk }, 1, many), get: unless("1", func(p *Plan) string { return strconv.Itoa(p.Mock.TokensPerChunk) })},
		{Name: "role-chunk", Group: groupMock, Help: "name the role in an event of its own, at once",
			set: toggle(func(p *Plan) *bool { return &p.Mock.RoleChunk }), get: on(func(p *Plan) bool { return p.Mock.RoleChunk })},
		{Name: "speed", Arg: "FACTOR", Default: "1", Group: groupMock, Help: "how many times as fast as in reality it runs",
			set: number(func(p *Plan) *float64 { return &p.Mock.Speed }, 0.001, 1000), get: unless("1", func(p *Plan) string { return decimal(p.Mock.Speed) })},
		{Name: "startup-delay", Arg: "TIME", Default: "0", Group: groupMock, Help: "how long it loads its model first: until then it answers 503",
			set: duration(func(p *Plan) *time.Duration { return &p.Mock.StartupDelay }, 0), get: unless("0s", func(p *Plan) string { return p.Mock.StartupDelay.String() })},
		{Name: "reasoning", Arg: "SHARE", Default: "0", Group: groupMock, Help: "share of a chat's answer that comes as reasoning before the rest, 0 to 1",
			set: number(func(p *Plan) *float64 { return &p.Mock.Reasoning }, 0, 1), get: unless("0", func(p *Plan) string { return decimal(p.Mock.Reasoning) })},
		{Name: "tool-calls", Arg: "SHARE", Default: "0", Group: groupMock, Help: "share of the chats with tools in which the model calls one where it may choose (tool_choice auto), 0 to 1; after a tool's result it answers in words",
			set: number(func(p *Plan) *float64 { return &p.Mock.ToolCalls }, 0, 1), get: unless("0", func(p *Plan) string { return decimal(p.Mock.ToolCalls) })},
		{Name: "eos", Arg: "TOKENS", Default: "never", Group: groupMock, Help: "length at which the model ends an answer by itself, unless the request says ignore_eos: 200, uniform(a,b), normal(mean,sd) or lognormal(mean,sd)",
			set: lengths(func(p *Plan) *workload.Lengths { return &p.Mock.EOS }), get: text(func(p *Plan) string { return p.Mock.EOS.String() })},
		{Name: "prompt-tokens-details", Group: groupMock, Help: "tell in the usage how many tokens of the prompt were cached, as vLLM's flag of that name does",
			set: toggle(func(p *Plan) *bool { return &p.Mock.TellCached }), get: on(func(p *Plan) bool { return p.Mock.TellCached })},
		{Name: "faults", Arg: "LIST", Many: true, Group: groupMock, Help: `what goes wrong, for example "429:1%,reset:0.5%,stall:2%:3s"`,
			set: setFaults, get: text(func(p *Plan) string { return p.Mock.Faults })},
		{Name: "truth", Arg: "FILE", Group: groupMock, Help: "log the true times of each request",
			set: str(func(p *Plan) *string { return &p.Mock.Truth })},
		{Name: "max-model-len", Arg: "TOKENS", Default: "131072", Group: groupMock, Help: "longest prompt and answer together",
			set: count(func(p *Plan) *int { return &p.Mock.MaxModelLen }, 1, many), get: unless("131072", func(p *Plan) string { return strconv.Itoa(p.Mock.MaxModelLen) })},
		{Name: "drain", Arg: "TIME", Default: "5s", Group: groupMock, Help: "how long answers under way may go on when the server is stopped; those that take longer are cut",
			set: duration(func(p *Plan) *time.Duration { return &p.Mock.Drain }, 0)},
		{Name: "until-eof", Group: groupMock, Help: "end with standard input, for programs that start it",
			set: toggle(func(p *Plan) *bool { return &p.Mock.UntilEOF })},

		{Name: "replay", Arg: "DIR", Group: groupPredict, Help: "a recording to replay: a directory with meta.json and requests.jsonl",
			set: str(func(p *Plan) *string { return &p.Replay })},
		{Name: "run", Arg: "DIR", Group: groupPredict, Help: "a measured run to lay beside the twin's",
			set: str(func(p *Plan) *string { return &p.Beside })},
		{Name: "list", Group: groupPredict, Help: "list the models and accelerators that have a name",
			set: toggle(func(p *Plan) *bool { return &p.List })},
		{Name: "fail-if", Arg: "CLAUSES", Many: true, Group: groupCompare, Help: `end with exit code 6 if this is so, for example "p99 ttft slower by 5%, errors worse by 1%"; the metrics named here are not corrected for the number of the others`,
			set: func(p *Plan, v string) error { p.FailIf = append(p.FailIf, v); return nil }},
		{Name: "equivalent-within", Arg: "X%", Default: "5%", Group: groupCompare, Help: "times and rates that differ by less are equivalent; shares of requests are within 1 point",
			set: str(func(p *Plan) *string { return &p.Equivalent })},
		{Name: "allow", Arg: "LIST", Group: groupCompare, Help: "compare all the same: workloads (unlike ones), tokenizers (tokens of different ones)",
			set: str(func(p *Plan) *string { return &p.Allow })},
		{Name: "save-baseline", Arg: "FILE", Group: groupCompare, Help: "compare nothing: write what a comparison needs of these runs to a small file, to be committed and compared with later",
			set: str(func(p *Plan) *string { return &p.SaveBaseline })},
		{Name: "page", Arg: "FILE", Group: groupCompare, Help: "write the comparison as a page with charts: one file that asks no network for anything",
			set: str(func(p *Plan) *string { return &p.Page })},
		{Name: "client", Arg: "COMMAND", Group: groupCheck, Help: "check another client: a shell command with {url}, and {host}, {port}, {model}, {dir}",
			set: str(func(p *Plan) *string { return &p.Client })},
		{Name: "streams", Arg: "LIST", Default: "1,10,100,1000 and more", Group: groupCheck, Help: "numbers of streams to check at",
			set: setStreams},
	}
}

// Groups lists the groups of settings in the order of the help.
func Groups() []string {
	return []string{groupTarget, groupWorkload, groupLoad, groupSearch, groupJudge, groupRun, groupMock, groupPredict, groupCompare, groupCheck}
}
