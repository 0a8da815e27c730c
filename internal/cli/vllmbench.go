package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/report/export"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/session"
)

// vllmBench is `vllm bench serve` in Pitot's words.
type vllmBench struct {
	native []string    // arguments of pitot run
	as     export.VLLM // what the result file holds in addition to the figures
	notes  []string    // flags that change nothing

	save, append  bool
	dir, filename string
}

func vllmBenchHelp() manual {
	return manual{sections: vllmSections(),
		about: "Measure as vllm bench serve does, with its flags. It prints the same table.",
		usage: "pitot vllm-bench [flags of vllm bench serve]",
		examples: `pitot vllm-bench --model NAME --dataset-name random --input-len 1024 --request-rate 4
			pitot vllm-bench --model NAME --num-prompts 200 --max-concurrency 8 --save-result`,
		notes: `Pitot writes the same result files. It prints the pitot run that does the same, and stores a run directory as any other run.
It names flags without effect and leaves them out. If it cannot honor a flag, it names the
flag, measures nothing and exits with 2. Prompts have the requested length by the server's own
count; --seed draws other prompts than vLLM's.`,
	}
}

// vllmBenchVerb does what vllm bench serve does.
func vllmBenchVerb(ctx context.Context, e *Env) (int, error) {
	b, err := translateVLLM(e.Args)
	if err != nil {
		return Usage, err
	}
	for _, n := range b.notes {
		fmt.Fprintf(e.Stderr, "pitot: %s\n", n)
	}
	fmt.Fprintf(e.Stderr, "pitot: this is\n  %s\n", say.ShellLine(append([]string{"pitot", "run"}, config.RedactArgs(b.native)...)))
	e.Args, e.Command = b.native, append([]string{"pitot", "run"}, b.native...)
	v := oneLoad()
	p, _, err := v.preparePlan(e)
	if err != nil {
		return Usage, err
	}
	if err := b.checkWritable(); err != nil {
		return Usage, err
	}
	view := newProgress(e.Stderr, p.Quiet, e.Getenv)
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	measured, dir, err := v.carryOut(ctx, e, p, view)
	if measured != nil && len(measured.Points) > 0 {
		writePage(e.Stderr, measured, concludedModel(measured, dir), dir)
		err = errors.Join(err, b.writeResult(e, measured, dir))
		has := "has the run"
		if !session.IsSaved(dir, measured) {
			has = "has the records of the run"
		}
		fmt.Fprintf(e.Stderr, "pitot: %s; %s %s, pitot report %s shows it\n", measured.Verdict, dir, has, dir)
		whyNotValid(e.Stderr, measured)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Interrupted, err
	case err != nil:
		return Done, err
	}
	return gatedCode(&config.Output{Undecided: config.UndecidedPass}, e, measured, exitCode(measured)), nil
}

// whyNotValid lists the checks that make a run invalid, which vLLM's output has no
// place for, and counts its flags.
func whyNotValid(w io.Writer, measured *result.Run) {
	flags := 0
	for i := range measured.Points {
		for k := range measured.Points[i].Checks {
			switch c := &measured.Points[i].Checks[k]; c.Status {
			case result.Fail:
				m := report.BuildCheck(c)
				fmt.Fprintf(w, "  %s: %s (limit %s). %s\n", m.Name, m.Value, m.Limit, m.Advice)
			case result.Flag:
				flags++
			}
		}
	}
	if flags > 0 {
		fmt.Fprintf(w, "  other checks that are flagged: %s\n", say.Count(flags))
	}
}

// writeResult writes the result file and prints the table.
func (b *vllmBench) writeResult(e *Env, measured *result.Run, dir string) error {
	as := func(*result.Point) export.VLLM {
		v := b.as
		v.Model = cmp.Or(v.Model, measured.Target.Model)
		if !v.NoTokenizer {
			v.Tokenizer = cmp.Or(v.Tokenizer, v.Model)
		}
		v.Date = time.Now()
		v.Metadata = append(slices.Clone(v.Metadata), [2]string{"measured_by", "pitot " + measured.Pitot.Version}, [2]string{"pitot_verdict", string(measured.Verdict)})
		return v
	}
	return export.VLLMBenchmark(measured, dir, as, func(m *export.Benchmark) error {
		var failed error
		if b.save || b.append {
			path := b.resultPath(m)
			if failed = b.writeBenchmark(path, m); failed == nil {
				fmt.Fprintf(e.Stderr, "pitot: wrote %s\n", path)
			}
		}
		return errors.Join(failed, m.Table(e.Stdout))
	})
}

// checkWritable makes sure, before anything is sent, that the result can be written.
func (b *vllmBench) checkWritable() error {
	if !b.save && !b.append {
		return nil
	}
	for flag, dir := range map[string]string{"--result-dir": b.dir, "--result-filename": filepath.Dir(filepath.Join(b.dir, b.filename))} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return say.Errorf("%s: %v", flag, err).WithHint("choose another place")
		}
	}
	return nil
}

// resultPath is where vLLM would write its result.
func (b *vllmBench) resultPath(m *export.Benchmark) string {
	name := b.filename
	if name == "" {
		rate := pythonFloat(m.RequestRate)
		users := ""
		if m.MaxConcurrency > 0 {
			users = fmt.Sprintf("-concurrency%d", m.MaxConcurrency)
		}
		model := m.Model[strings.LastIndex(m.Model, "/")+1:]
		name = fmt.Sprintf("%s-%sqps%s-%s-%s.json", cmp.Or(m.Label, m.Backend), rate, users, model, m.Date.Format("20060102-150405"))
	}
	return filepath.Join(b.dir, name)
}

// pythonFloat writes a number as Python does: 10.0, inf.
func pythonFloat(x float64) string {
	s := say.Exact(x)
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case !strings.Contains(s, "."):
		return s + ".0"
	}
	return s
}

func (b *vllmBench) writeBenchmark(path string, m *export.Benchmark) error {
	if !b.append {
		return export.ReplaceFile(path, m.JSON)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("append result: %w", err)
	}
	var text bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		text.WriteByte('\n') // as vLLM does: between two, none at the end
	}
	err = m.JSON(&text)
	if err == nil {
		_, err = f.Write(text.Bytes())
	}
	return errors.Join(err, f.Close())
}

// vllmArgs are flags as given, by their name with dashes.
type vllmArgs map[string][]string

// vllmFlag is a flag of vllm bench serve 0.32.
type vllmFlag struct {
	name  string
	arity arity
	fate  fate
	why   string // it changes nothing, or is refused; of one that is honoured, what it takes
}

// arity is the number of values that a flag of vLLM's takes.
type arity uint8

const (
	one  arity = iota
	none       // a switch
	many       // up to the next flag
)

// fate is the treatment of a flag.
type fate uint8

const (
	honoured fate = iota
	idle          // taken, and changes nothing
	refused       // nothing is run
)

// vllmFlags are the flags of vllm bench serve: what is read, and what the help
// says of it.
func vllmFlags() []vllmFlag {
	return []vllmFlag{
		{"backend", one, honoured, "openai, vllm or openai-chat"},
		{"base-url", one, honoured, ""}, {"host", one, honoured, ""}, {"port", one, honoured, ""}, {"endpoint", one, honoured, ""},
		{"header", many, honoured, ""}, {"insecure", none, honoured, ""}, {"ready-check-timeout-sec", one, honoured, ""},
		{"model", one, honoured, ""}, {"served-model-name", one, honoured, ""}, {"tokenizer", one, honoured, ""}, {"skip-tokenizer-init", none, honoured, ""},
		{"dataset-name", one, honoured, "random, sharegpt or custom"}, {"dataset-path", one, honoured, ""},
		{"input-len", one, honoured, ""}, {"output-len", one, honoured, ""}, {"random-input-len", one, honoured, ""}, {"random-output-len", one, honoured, ""},
		{"random-range-ratio", one, honoured, ""}, {"random-prefix-len", one, honoured, ""}, {"random-batch-size", one, honoured, "1 alone, a request holds one prompt"},
		{"sharegpt-output-len", one, honoured, ""}, {"custom-output-len", one, honoured, ""},
		{"num-prompts", one, honoured, ""}, {"request-rate", one, honoured, ""}, {"burstiness", one, honoured, ""}, {"max-concurrency", one, honoured, ""},
		{"probe-request-rate", one, honoured, "0 alone, one load is measured at a time"}, {"seed", one, honoured, ""},
		{"temperature", one, honoured, ""}, {"top-p", one, honoured, ""}, {"top-k", one, honoured, ""}, {"min-p", one, honoured, ""},
		{"frequency-penalty", one, honoured, ""}, {"presence-penalty", one, honoured, ""}, {"repetition-penalty", one, honoured, ""},
		{"logprobs", one, honoured, ""}, {"ignore-eos", none, honoured, ""}, {"extra-body", one, honoured, ""},
		{"goodput", many, honoured, ""}, {"percentile-metrics", one, honoured, ""}, {"metric-percentiles", one, honoured, ""},
		{"save-result", none, honoured, ""}, {"save-detailed", none, honoured, ""}, {"append-result", none, honoured, ""},
		{"result-dir", one, honoured, ""}, {"result-filename", one, honoured, ""}, {"label", one, honoured, ""}, {"metadata", many, honoured, ""},

		{"disable-tqdm", none, idle, "Pitot has no such progress bar"},
		{"trust-remote-code", none, idle, "no tokenizer is loaded"},
		{"tokenizer-mode", one, idle, "no tokenizer is loaded"},
		{"no-stream", none, idle, "no dataset is loaded from a hub"},
		{"no-oversample", none, idle, "Pitot repeats a file that is too short"},
		{"disable-shuffle", none, idle, "the order of a file follows --seed"},
		{"skip-chat-template", none, idle, "prompts are sent as they are in the file"},
		{"num-warmups", one, idle, "the target is primed before every run"},
		{"request-id-prefix", one, idle, "requests have ids of their own"},
		{"timeline-itl-thresholds", one, idle, "there is no timeline without --plot-timeline"},

		{"lora-modules", many, refused, "requests go to one model; name the module with --served-model-name"},
		{"lora-assignment", one, refused, "requests go to one model"},
		{"ramp-up-strategy", one, refused, "a rate that grows is measured as a curve: pitot sweep"},
		{"ramp-up-start-rps", one, refused, "a rate that grows is measured as a curve: pitot sweep"},
		{"ramp-up-end-rps", one, refused, "a rate that grows is measured as a curve: pitot sweep"},
		{"profile", none, refused, "vLLM's profiler is not started from here"},
		{"plot-timeline", none, refused, "pitot report RUN --export perfetto=trace.json draws a timeline"},
		{"plot-dataset-stats", none, refused, "the lengths are in requests.parquet of the run"},
		{"self-timed", none, refused, "traces are not replayed yet"},
		{"no-self-timed", none, refused, "traces are not replayed yet"},
		{"use-beam-search", none, refused, "beam search answers have no stream to measure"},
		{"chat-template-kwargs", one, refused, `templates are the server's: --extra-body '{"chat_template_kwargs": …}'`},
		{"enable-multimodal-chat", none, refused, "prompts are text alone"},
		{"no-reranker", none, refused, "generation is measured, not ranking"},
		{"custom-ensure-client-side-data", none, refused, "prompts are text alone"},
	}
}

// vllmFlagNamed finds a flag by its name with dashes.
func vllmFlagNamed(name string) (vllmFlag, bool) {
	flags := vllmFlags()
	i := slices.IndexFunc(flags, func(f vllmFlag) bool { return f.name == name })
	if i < 0 {
		return vllmFlag{}, false
	}
	return flags[i], true
}

// vllmSections lists the flags by their treatment.
func vllmSections() []section {
	titles := []config.Group{
		{Title: "Honored", Topic: "honored", About: "flags with an effect"},
		{Title: "Without effect", Topic: "ignored", About: "flags without effect"},
		{Title: "Refused", Topic: "refused", About: "flags that stop the run"},
	}
	var sections []section
	for i, g := range titles {
		s := section{Group: g}
		for _, f := range vllmFlags() {
			if f.fate == fate(i) {
				about := cmp.Or(f.why, "as in vllm bench serve")
				s.items = append(s.items, item{name: f.name, head: "--" + f.name, brief: about, text: about, rare: true})
			}
		}
		sections = append(sections, s)
	}
	return sections
}

// parseVLLM reads arguments as vLLM's parser does: --name value, --name=value,
// underscores for dashes, and for some flags several values.
func parseVLLM(argv []string) (vllmArgs, error) {
	args := vllmArgs{}
	for i := 0; i < len(argv); i++ {
		name, value, has := strings.Cut(strings.TrimPrefix(argv[i], "--"), "=")
		if !strings.HasPrefix(argv[i], "--") {
			return nil, say.Errorf("unexpected argument %q", argv[i]).WithHint("flags begin with two dashes, see pitot vllm-bench --help")
		}
		name = strings.ReplaceAll(name, "_", "-")
		f, known := vllmFlagNamed(name)
		if !known && isDatasetFlag(name) {
			return nil, say.Errorf("--%s belongs to a dataset that is not read here", name).WithHint("datasets are random, sharegpt and custom")
		}
		if !known {
			var names []string
			for _, f := range vllmFlags() {
				names = append(names, f.name)
			}
			slices.Sort(names)
			hint := "pitot vllm-bench --help=all lists them"
			if near := say.NearestName(name, names); near != "" {
				hint = "did you mean --" + near + "?"
			}
			return nil, say.Errorf("unknown flag --%s", name).WithHint(hint)
		}
		switch {
		case f.arity == none && has:
			return nil, say.Errorf("--%s takes no value", name).WithHint("leave the value out")
		case f.arity == none:
			args[name] = []string{}
		case has:
			args[name] = []string{value}
		case f.arity == one:
			if i+1 >= len(argv) || strings.HasPrefix(argv[i+1], "--") {
				return nil, say.Errorf("--%s needs a value", name)
			}
			i++
			args[name] = []string{argv[i]}
		default:
			args[name] = []string{}
			for i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "--") {
				i++
				args[name] = append(args[name], argv[i])
			}
		}
	}
	return args, nil
}

// isDatasetFlag knows the flags of vLLM's other datasets.
func isDatasetFlag(name string) bool {
	for prefix := range strings.FieldsSeq("hf- spec-bench- speed-bench- timed-trace- blazedit- asr- bfcl- prefix-repetition- random-mm-") {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// translateVLLM translates the flags of vllm bench serve to Pitot's. All flags that
// cannot be honoured are reported at once.
func translateVLLM(argv []string) (*vllmBench, error) {
	args, err := parseVLLM(argv)
	if err != nil {
		return nil, err
	}
	t := vllmTranslation{vllmArgs: args, b: &vllmBench{}, body: map[string]any{}}
	for _, f := range vllmFlags() {
		switch given := args[f.name] != nil; {
		case given && f.fate == idle:
			t.b.notes = append(t.b.notes, "--"+f.name+" changes nothing: "+f.why)
		case given && f.fate == refused:
			t.addRefusal("--%s: %s", f.name, f.why)
		}
	}
	t.translateTarget()
	t.translateWorkload()
	t.translateLoad()
	t.translateSampling()
	t.translateResult()
	if len(t.refused) > 0 {
		return nil, say.Errorf("cannot do what vllm bench serve would:\n  %s", strings.Join(t.refused, "\n  ")).WithHint("leave them out; pitot vllm-bench --help=honored lists what works")
	}
	return t.b, nil
}

// vllmTranslation is a translation under way.
type vllmTranslation struct {
	vllmArgs
	b       *vllmBench
	body    map[string]any
	refused []string
	n       int // prompts
}

func (t *vllmTranslation) addRefusal(format string, args ...any) {
	t.refused = append(t.refused, fmt.Sprintf(format, args...))
}

func (t *vllmTranslation) addArgs(args ...string) { t.b.native = append(t.b.native, args...) }

// stringFlag gives a flag's value, or what it is by default.
func (t *vllmTranslation) stringFlag(name, usual string) string {
	if v := t.vllmArgs[name]; len(v) > 0 {
		return v[0]
	}
	return usual
}

func (t *vllmTranslation) boolFlag(name string) bool { return t.vllmArgs[name] != nil }

// intFlag gives a flag's whole number of at least least.
func (t *vllmTranslation) intFlag(name string, usual, least int) int {
	v := t.stringFlag(name, "")
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least {
		t.addRefusal("--%s: %q is not a whole number of at least %d", name, v, least)
		return usual
	}
	return n
}

// floatFlag gives a flag's number, which may be inf.
func (t *vllmTranslation) floatFlag(name string, usual float64) float64 {
	v := t.stringFlag(name, "")
	if v == "" {
		return usual
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0) {
		t.addRefusal("--%s: %q is not a number above 0", name, v)
		return usual
	}
	return x
}

func (t *vllmTranslation) translateTarget() {
	b := t.b
	b.as.Backend = t.stringFlag("backend", "openai")
	api := map[string]string{"openai": "openai-completions", "vllm": "openai-completions", "openai-chat": "openai-chat"}[b.as.Backend]
	if api == "" {
		t.addRefusal("--backend %s: the backends are openai, vllm and openai-chat", b.as.Backend)
	}
	endpoint := t.stringFlag("endpoint", "/v1/completions")
	if suffix := map[string]string{"openai-completions": "completions", "openai-chat": "chat/completions"}[api]; !strings.HasSuffix(endpoint, suffix) {
		t.addRefusal("--endpoint %s: with --backend %s it ends with %s", endpoint, b.as.Backend, suffix)
	}
	host := t.stringFlag("host", "127.0.0.1")
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	base := t.stringFlag("base-url", fmt.Sprintf("http://%s:%d", host, t.intFlag("port", 8000, 1)))
	t.addArgs(strings.TrimSuffix(base, "/")+endpoint, "--api", cmp.Or(api, "openai-chat"))
	b.as.Model, b.as.Tokenizer = t.stringFlag("model", ""), t.stringFlag("tokenizer", "")
	if name := t.stringFlag("served-model-name", b.as.Model); name != "" {
		t.addArgs("--model", name)
	}
	b.as.NoTokenizer = t.boolFlag("skip-tokenizer-init")
	for _, h := range t.vllmArgs["header"] {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			t.addRefusal("--header: one of the values is not KEY=VALUE") // it may be a secret
			continue
		}
		t.addArgs("--header", strings.TrimSpace(name)+"="+strings.TrimSpace(value))
	}
	if t.boolFlag("insecure") {
		t.addArgs("--insecure")
	}
	if n := t.intFlag("ready-check-timeout-sec", 0, 0); n > 0 {
		t.addArgs("--wait-ready", fmt.Sprintf("%ds", n))
	}
}

func (t *vllmTranslation) translateWorkload() {
	name, path := t.stringFlag("dataset-name", "random"), t.stringFlag("dataset-path", "")
	output := t.intFlag("output-len", 0, 1)
	if n := t.intFlag("random-batch-size", 1, 1); n != 1 {
		t.addRefusal("--random-batch-size: a request holds one prompt")
	}
	switch name {
	case "random":
		if path != "" {
			t.addRefusal("--dataset-path: --dataset-name random takes none")
		}
		in, out := t.rangeRatios()
		length := func(n int, ratio float64) string {
			lo, hi := max(1, int(math.Floor(float64(n)*(1-ratio)))), max(1, int(math.Ceil(float64(n)*(1+ratio))))
			if lo == hi {
				return strconv.Itoa(lo)
			}
			return fmt.Sprintf("uniform(%d,%d)", lo, hi)
		}
		t.addArgs("--input", length(t.intFlag("input-len", t.intFlag("random-input-len", 1024, 1), 1), in),
			"--output", length(cmp.Or(output, t.intFlag("random-output-len", 128, 1)), out))
		if n := t.intFlag("random-prefix-len", 0, 0); n > 0 {
			t.addArgs("--prefix", strconv.Itoa(n))
		}
	case "sharegpt", "custom":
		if path == "" {
			t.addRefusal("--dataset-name %s: name its file with --dataset-path", name)
			return
		}
		t.addArgs("--workload", path)
		if name == "sharegpt" {
			output = cmp.Or(output, t.intFlag("sharegpt-output-len", 0, 1))
		} else if v := t.stringFlag("custom-output-len", "256"); output == 0 && v != "-1" {
			output = t.intFlag("custom-output-len", 256, 1)
		}
		if output > 0 {
			t.body["max_tokens"] = output
		}
		if name == "custom" && !t.boolFlag("skip-chat-template") && t.b.as.Backend != "openai-chat" {
			t.b.notes = append(t.b.notes, "prompts are sent as they are in the file: vLLM's client puts the model's chat template around them")
		}
	default:
		t.addRefusal("--dataset-name %s: the datasets are random, sharegpt and custom", name)
	}
}

// rangeRatios are those of --random-range-ratio, one for both or an object.
func (t *vllmTranslation) rangeRatios() (in, out float64) {
	v := t.stringFlag("random-range-ratio", "0")
	var each struct{ Input, Output float64 }
	if x, err := strconv.ParseFloat(v, 64); err == nil {
		each.Input, each.Output = x, x
	} else if json.Unmarshal([]byte(v), &each) != nil {
		each.Input = -1
	}
	if !(each.Input >= 0 && each.Input < 1 && each.Output >= 0 && each.Output < 1) {
		t.addRefusal("--random-range-ratio: %q is no number from 0 to below 1, nor an object of two", v)
		return 0, 0
	}
	return each.Input, each.Output
}

func (t *vllmTranslation) translateLoad() {
	as := &t.b.as
	t.n = t.intFlag("num-prompts", 1000, 1)
	as.NumPrompts = t.n
	as.RequestRate, as.Burstiness = t.floatFlag("request-rate", math.Inf(1)), t.floatFlag("burstiness", 1)
	as.MaxConcurrency = t.intFlag("max-concurrency", 0, 1)
	users := t.n
	if as.MaxConcurrency > 0 {
		users = min(users, as.MaxConcurrency)
	}
	if math.IsInf(as.RequestRate, 1) {
		as.QueueFromStart = true // vLLM makes all requests at once, and lets so many through
		t.addArgs("--concurrency", strconv.Itoa(users))
	} else {
		t.addArgs("--rate", say.Exact(as.RequestRate))
		switch {
		case math.IsInf(as.Burstiness, 1):
			t.addArgs("--arrival", "constant")
		case as.Burstiness != 1:
			t.addArgs("--arrival", "gamma("+say.Exact(as.Burstiness)+")")
		}
		if as.MaxConcurrency > 0 {
			t.addArgs("--max-in-flight", strconv.Itoa(as.MaxConcurrency))
		}
	}
	t.addArgs("--requests", strconv.Itoa(t.n), "--exactly", "--warmup", "0s", "--seed", strconv.Itoa(t.intFlag("seed", 0, 0)))
	if v := t.stringFlag("probe-request-rate", "0"); v != "0" && v != "0.0" {
		t.addRefusal("--probe-request-rate: one load is measured at a time")
	}
}

// translateSampling makes the sampling fields of the body. vLLM sends no temperature unless one
// is given.
func (t *vllmTranslation) translateSampling() {
	t.body["temperature"] = nil
	for flag := range strings.FieldsSeq("top-p top-k min-p temperature frequency-penalty presence-penalty repetition-penalty") {
		v := t.stringFlag(flag, "")
		if v == "" {
			continue
		}
		x, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			t.addRefusal("--%s: %q is not a number", flag, v)
			continue
		}
		t.body[strings.ReplaceAll(flag, "-", "_")] = x
	}
	if n := t.intFlag("logprobs", 0, 0); t.boolFlag("logprobs") {
		t.body["logprobs"] = n
		if t.b.as.Backend == "openai-chat" {
			t.body["logprobs"], t.body["top_logprobs"] = true, n
		}
	}
	if t.boolFlag("ignore-eos") {
		t.body["ignore_eos"] = true
	}
	if v := t.stringFlag("extra-body", ""); v != "" {
		var extra map[string]any
		d := json.NewDecoder(strings.NewReader(v))
		d.UseNumber()
		if err := d.Decode(&extra); err != nil || extra == nil {
			t.addRefusal("--extra-body: not a JSON object")
		}
		for k, x := range extra {
			t.body[k] = x
		}
	}
	text, err := json.Marshal(t.body)
	if err != nil {
		t.addRefusal("--extra-body: %v", err)
		return
	}
	t.addArgs("--body", string(text))
}

func (t *vllmTranslation) translateResult() {
	b := t.b
	b.save, b.append = t.boolFlag("save-result"), t.boolFlag("append-result")
	b.dir, b.filename, b.as.Label = t.stringFlag("result-dir", ""), t.stringFlag("result-filename", ""), t.stringFlag("label", "")
	b.as.Detailed = t.boolFlag("save-detailed")
	for _, m := range t.vllmArgs["metadata"] {
		k, v, ok := strings.Cut(m, "=")
		if !ok {
			t.addRefusal("--metadata: %q is not KEY=VALUE", m)
			continue
		}
		b.as.Metadata = append(b.as.Metadata, [2]string{strings.TrimSpace(k), strings.TrimSpace(v)})
	}
	known := strings.Fields("ttft tpot itl e2el client_queue_time e2el_including_client_queue")
	for m := range strings.SplitSeq(t.stringFlag("percentile-metrics", "ttft,tpot,itl"), ",") {
		if !slices.Contains(known, m) {
			t.addRefusal("--percentile-metrics: %q is none of %s", m, strings.Join(known, ", "))
		}
		b.as.Metrics = append(b.as.Metrics, m)
	}
	for v := range strings.SplitSeq(t.stringFlag("metric-percentiles", "99"), ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			t.addRefusal("--metric-percentiles: %q is not a number from 0 to 100", v)
			continue
		}
		b.as.Percentiles = append(b.as.Percentiles, p)
	}
	for _, pair := range t.vllmArgs["goodput"] {
		name, v, ok := strings.Cut(pair, ":")
		limit, err := strconv.ParseFloat(v, 64)
		if !ok || err != nil || !(limit >= 0) || !slices.Contains([]string{"ttft", "tpot", "e2el"}, name) {
			t.addRefusal("--goodput: %q is not ttft, tpot or e2el with a limit in ms, as ttft:200", pair)
			continue
		}
		if b.as.Goodput == nil {
			b.as.Goodput = map[string]float64{}
		}
		b.as.Goodput[name] = limit
	}
}
