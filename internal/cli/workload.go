package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/report/page"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/tokenizer"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// workloadAction is one thing that pitot workload does.
type workloadAction struct {
	name, args, about string
	flags             string // what its flags do
	run               func(e *Env, args []string) error
}

func workloadActions() []workloadAction {
	return []workloadAction{
		{"list", "", "list the presets", "", listWorkloads},
		{"show", "NAME|FILE…", "show lengths, gaps between arrivals and sources", "--html FILE writes a page with charts", showWorkload},
		{"stats", "NAME|FILE", "summarize the requests of a preset, trace or file of prompts", "--tokenizer FILE counts tokens as the model does", workloadStats},
		{"profile", "LOG… -o FILE", "make a profile of logs, without their text",
			"The profile reports only what at least --k requests of --clients clients share", profileWorkload},
		{"sample", "NAME|FILE", "print requests as they would be sent", "-n 5 is how many, --seed N draws others, --text prints the prompts alone", sampleWorkload},
		{"lint", "FILE", "report oddities of a file", "--arrival LAW tests its times against that law, --max-model-len N finds requests that are too long", lintWorkload},
		{"convert", "IN --to FORMAT", "write the requests in another format",
			"The formats are " + strings.Join(workload.ConvertTo(), ", ") + ". -o OUT is the file to write", convertWorkload},
	}
}

// workloadVerb shows what can be asked of a target.
func workloadVerb(_ context.Context, e *Env) (int, error) {
	if len(e.Args) == 0 {
		return Usage, say.Errorf("what of the workloads?").WithHint("pitot workload list, or pitot workload show chat")
	}
	var names []string
	for _, a := range workloadActions() {
		if a.name == e.Args[0] {
			if err := a.run(e, e.Args[1:]); err != nil {
				return Usage, err
			}
			return Done, nil
		}
		names = append(names, a.name)
	}
	return Usage, say.Errorf("unknown action %q", e.Args[0]).WithHint(say.KnownHint(e.Args[0], names))
}

func listWorkloads(e *Env, args []string) error {
	if len(args) > 0 {
		return say.Errorf("list takes no more: %q", args[0]).WithHint("pitot workload show " + args[0])
	}
	return report.WritePresets(e.Stdout, e.styleOf(e.Stdout))
}

func showWorkload(e *Env, args []string) error {
	if len(args) == 0 {
		return say.Errorf("no workload named").WithHint("for example pitot workload show chat; pitot workload list has their names")
	}
	path, args, err := takePage(args)
	if err != nil {
		return err
	}
	if path != "" {
		return drawOne(e, args[0], path)
	}
	for _, name := range args {
		if err := showOne(e, name, e.styleOf(e.Stdout)); err != nil {
			return err
		}
	}
	return nil
}

// takePage takes --html FILE out of what a workload is shown with.
func takePage(args []string) (path string, names []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		switch {
		case name == "--html" && !given && i+1 < len(args):
			i++
			path = args[i]
		case name == "--html" && value != "":
			path = value
		case name == "--html":
			return "", nil, say.Errorf("--html names no file").WithHint("for example pitot workload show chat --html chat.html")
		case strings.HasPrefix(name, "-") && name != "-":
			return "", nil, say.Errorf("unknown flag %s", name).WithHint(say.KnownHint(name, []string{"--html"}))
		default:
			names = append(names, args[i])
		}
	}
	if path != "" && len(names) != 1 {
		return "", nil, say.Errorf("a page shows one workload, and %s are named", say.Count(len(names))).WithHint("for example pitot workload show chat --html chat.html")
	}
	return path, names, nil
}

// drawOne writes the page of a workload.
func drawOne(e *Env, name, path string) error {
	d, err := drawingOf(name)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.WriteWorkload(&b, d, []string{"pitot", "workload", "show", name, "--html", path}); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return say.Errorf("--html: %v", err).WithHint("choose another place")
	}
	fmt.Fprintf(e.Stdout, "%s\n", say.PlainLine("open "+path))
	return nil
}

// drawingOf returns the drawing of a workload.
func drawingOf(name string) (d report.Drawing, err error) {
	if p, ok := workload.PresetNamed(name); ok {
		return report.DrawPreset(p), nil
	}
	m, err := config.ReadMix(name)
	switch {
	case err != nil:
		return d, err
	case m != nil:
		return report.DrawMix(m.Path, m.About, classesOf(m)), nil
	case !fileExists(name):
		return d, workload.UnknownPreset(name)
	}
	t, err := workload.SummarizeRequests(name, token.Universal().Count)
	if err != nil {
		return d, err
	}
	return report.DrawFile(name, t), nil
}

// showOne draws a preset, a mix of classes, or what a file tells of its requests.
func showOne(e *Env, name string, s report.Style) error {
	if p, ok := workload.PresetNamed(name); ok {
		return report.WritePreset(e.Stdout, p, s)
	}
	m, err := config.ReadMix(name)
	switch {
	case err != nil:
		return err
	case m != nil:
		return report.WriteMix(e.Stdout, m.Path, m.About, classesOf(m), s)
	case !fileExists(name):
		return workload.UnknownPreset(name)
	}
	t, err := workload.SummarizeRequests(name, token.Universal().Count)
	if err != nil {
		return err
	}
	return report.WriteTrace(e.Stdout, name, t, s)
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// classesOf are the classes of a mix as they are shown.
func classesOf(m *config.Mix) (list []report.MixedClass) {
	for i := range m.Classes {
		c := &m.Classes[i]
		of := "requests"
		if c.Ask.HasConversations() {
			of = "conversations of " + say.Decimal(c.Ask.MeanTurns(), 2) + " turns"
		}
		what := say.Percent(c.Share) + " of the " + of
		if m.HasConversations() {
			what = say.Percent(c.Share) + " of what begins: " + of
		}
		if c.Rate > 0 {
			what = say.Exact(c.Rate) + " " + of + "/s"
		}
		if c.Ask.Workload != config.RandomWorkload {
			what += ", " + c.Ask.Workload
		}
		if c.Arrival != "" {
			what += ", " + c.Arrival
		}
		if !c.SLO.IsNone() {
			what += "; " + c.SLO.String()
		}
		if c.Ask.System > 0 {
			what += "; a system prompt of " + say.Plural(c.Ask.System, "token")
		}
		if pause := c.Ask.Think; !pause.IsNone() {
			what += "; " + pause.String() + " before each further turn"
		}
		one := report.MixedClass{Name: c.Name, What: what}
		if c.Ask.IsGenerated() {
			one.Input, one.Output, one.Prefix = c.Ask.Input, c.Ask.Output, int(c.Ask.PrefixMean())
		}
		list = append(list, one)
	}
	return list
}

// lookedAt are workloads that are looked at, and what for.
type lookedAt struct {
	names      []string
	conditions workload.Conditions
	count      func(text []byte) int
	failed     *error // why a text could not be counted
	counted    string // by what tokens are counted, "" for by none of a model
}

// parseLook reads names and the flags of lint.
func parseLook(action string, args []string) (l lookedAt, err error) {
	l.count = token.Universal().Count
	for len(args) > 0 {
		name, value, valued := strings.Cut(args[0], "=")
		args = args[1:]
		if !strings.HasPrefix(name, "--") {
			l.names = append(l.names, name)
			continue
		}
		if !valued && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch name {
		case "--arrival":
			if l.conditions.Law, err = config.ReadArrivals(value); err != nil {
				return l, say.Errorf("--arrival: %v", err).WithHint(say.HintOf(err))
			}
		case "--max-model-len":
			if l.conditions.Limit, err = strconv.Atoi(value); err != nil || l.conditions.Limit < 1 {
				return l, say.Errorf("--max-model-len: %q is not a number of tokens", value)
			}
		case "--tokenizer":
			t, err := tokenizer.Open(value)
			if err != nil {
				return l, err
			}
			e := t.NewEncoder()
			l.counted, l.failed = t.Name(), new(error)
			l.count = func(text []byte) int {
				n, err := e.Count(text)
				if err != nil && *l.failed == nil {
					*l.failed = err
				}
				return n
			}
		default:
			return l, say.Errorf("unknown flag %s", name).WithHint(say.KnownHint(name, []string{"--arrival", "--max-model-len", "--tokenizer"}))
		}
	}
	if len(l.names) == 0 {
		return l, say.Errorf("no workload named").WithHint("for example pitot workload " + action + " trace.jsonl, or pitot workload " + action + " chat")
	}
	return l, nil
}

// eachWorkload reads each of the workloads and hands it on with what is odd about it.
func eachWorkload(action string, args []string, then func(name, counted string, t *workload.Trace, found []workload.Finding) error) error {
	l, err := parseLook(action, args)
	if err != nil {
		return err
	}
	for _, name := range l.names {
		if kind, err := workload.Identify(name); action == "lint" && err == nil && kind == workload.Sessioned {
			sessions, err := workload.OpenTrajectories(name)
			if err != nil {
				return say.Errorf("%v", err)
			}
			if err := then(name, l.counted, nil, sessions.Lint(workload.TrajectoryConfig{}, l.conditions.Limit)); err != nil {
				return err
			}
			continue
		}
		if preset, _ := workload.PresetNamed(name); action == "lint" && preset.Turns != "" {
			p, _, err := config.Decode(config.VerbRun, []string{"sim:fixed", "--workload", name, "--rate", "1"}, nil)
			if err != nil {
				return err
			}
			if err := then(name, l.counted, nil, session.LintConversations(&p.Ask, l.conditions.Limit)); err != nil {
				return err
			}
			continue
		}
		t, err := workload.SummarizeRequests(name, l.count)
		if err == nil && l.failed != nil {
			err = *l.failed
		}
		if err != nil {
			return err
		}
		if err := then(name, l.counted, t, t.Lint(l.conditions)); err != nil {
			return err
		}
	}
	return nil
}

func workloadStats(e *Env, args []string) error {
	return eachWorkload("stats", args, func(name, counted string, t *workload.Trace, found []workload.Finding) error {
		return report.WorkloadStats(e.Stdout, name, counted, t, found, e.styleOf(e.Stdout))
	})
}

func lintWorkload(e *Env, args []string) error {
	return eachWorkload("lint", args, func(name, _ string, _ *workload.Trace, found []workload.Finding) error {
		return report.WorkloadLint(e.Stdout, name, found, e.styleOf(e.Stdout))
	})
}

// convertWorkload writes the requests of a file in another format.
func convertWorkload(e *Env, args []string) error {
	var in, to, out string
	for len(args) > 0 {
		name, value, valued := strings.Cut(args[0], "=")
		args = args[1:]
		if !strings.HasPrefix(name, "-") {
			if in != "" {
				return say.Errorf("one file at a time: %q and %q", in, name)
			}
			in = name
			continue
		}
		if !valued {
			if len(args) == 0 {
				return say.Errorf("%s wants a value", name)
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "--to":
			to = value
		case "-o", "--out":
			out = value
		default:
			return say.Errorf("unknown flag %s", name).WithHint(say.KnownHint(name, []string{"--to", "-o"}))
		}
	}
	switch {
	case in == "":
		return say.Errorf("no file named").WithHint("for example pitot workload convert trace.csv --to mooncake -o trace.jsonl")
	case to == "":
		return say.Errorf("no format named").WithHint("--to " + strings.Join(workload.ConvertTo(), "|"))
	}
	w := e.Stdout
	if out != "" {
		if a, err := os.Stat(out); err == nil {
			if b, err := os.Stat(in); err == nil && os.SameFile(a, b) {
				return say.Errorf("%s is the file that is read", out).WithHint("write to another with -o")
			}
		}
		f, err := os.Create(out)
		if err != nil {
			return say.Errorf("write %s: %v", out, err).WithHint("choose another file with -o")
		}
		defer f.Close()
		w = f
	}
	n, lost, err := workload.Convert(w, in, to)
	if err != nil {
		return err
	}
	if f, ok := w.(*os.File); ok && out != "" {
		if err := f.Close(); err != nil {
			return say.Errorf("write %s: %v", out, err).WithHint("choose another file with -o")
		}
	}
	for _, sentence := range lost {
		fmt.Fprintln(e.Stderr, "note: "+sentence)
	}
	if out != "" {
		fmt.Fprintln(e.Stdout, say.Plural(n, "request")+" in "+out)
	}
	return nil
}

func workloadHelp() manual {
	actions := section{Group: config.Group{Title: "Actions", Topic: "actions"}}
	for _, a := range workloadActions() {
		actions.items = append(actions.items, item{name: a.name, head: strings.TrimSpace(a.name + " " + a.args), brief: a.about, text: strings.TrimSuffix(a.about+". "+a.flags, ". ")})
	}
	return manual{sections: []section{actions},
		about: "List, inspect and convert workloads (presets, traces, prompts).",
		usage: "pitot workload ACTION [arguments]",
		examples: `pitot workload list
			pitot workload show chat
			pitot workload stats trace.jsonl
			pitot workload convert prompts.json --to mooncake -o trace.jsonl`,
	}
}

// workloadArguments completes an action, and names of workloads.
func workloadArguments(args []string, _ string) (found completion) {
	switch {
	case len(args) == 0:
		for _, a := range workloadActions() {
			found.words = append(found.words, config.Choice{Name: a.name, About: a.about})
		}
	case slices.Contains([]string{"show", "stats", "lint", "profile", "sample", "convert"}, args[0]):
		found.files = true
		for _, p := range workload.Presets() {
			found.words = append(found.words, config.Choice{Name: p.Name, About: p.About})
		}
	}
	return found
}
