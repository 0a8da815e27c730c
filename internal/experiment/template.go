package experiment

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
)

// start holds the initial values of a new plan for a kind of traffic; each value is there to be
// changed.
type start struct {
	Kind, Limits, Capacity, Hypothesis string

	Target  string
	Expects map[string][]string // by row, what the twin expects: hypotheses; nil where it was not asked
	Of      map[string]string   // by knob, the same in words
}

// expectedHypotheses are the hypotheses of a row, with the one that its preset has.
func (s start) expectedHypotheses(row, usual string) string {
	all := s.Expects[row]
	if usual != "" {
		all = append([]string{usual}, all...)
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "\n    hypothesis: " + all[0]
	}
	return "\n    hypothesis:\n      - " + strings.Join(all, "\n      - ")
}

func templateStarts() []start {
	return []start{
		{Kind: "chat", Limits: "p95 ttft<500ms, p95 tpot<40ms, errors<1%", Capacity: "12/s", Hypothesis: "p95 ttft of F < 500ms"},
		{Kind: "rag", Limits: "p95 ttft<1s, p95 tpot<50ms, errors<1%", Capacity: "8/s", Hypothesis: "p50 ttft of E < 0.5 x p50 ttft of E-cold"},
		{Kind: "batch", Limits: "p95 e2e<60s, errors<1%", Capacity: "15/s", Hypothesis: "output tok/s of D-full > 2 x output tok/s of D"},
		{Kind: "mixed", Limits: "p95 ttft<1s, p95 tpot<60ms, errors<1%", Capacity: "10/s", Hypothesis: "p95 ttft of F < 1s"},
	}
}

// planText are the words of a new plan; what stands in braces is the kind's.
const planText = `# An experiment: which settings of the engine carry this traffic within its limits?
#
#   pitot experiment forecast THIS FILE    what it takes, and what it can show
#   pitot experiment run      THIS FILE    measure; Ctrl-C and run again go on
#   pitot experiment report   THIS FILE    the decision record again
#
# An editor that knows JSON Schema completes it: pitot experiment schema > plan.schema.json

# What a deployment is accepted for. All of it must hold, with the confidence below.
contract:
  kind: {kind}                # chat, rag, batch or mixed
  limits: {limits}
  capacity: {capacity}            # requests per second that must be carried within the limits
  # cost: $0.60             # at most, per million output tokens within the limits

# What all of it may take at most. Without it, all launches are measured.
# budget:
#   time: 8h
#   money: $40

# The baseline. sim: is the twin in virtual time; launch_cv is how far its launches differ,
# as those of servers do.
target: {target}
# A server has a URL, alone, or with how it is started; only run executes commands:
# target:
#   url: http://localhost:8000
#   start: vllm serve MODEL --port 8000 {flags}
#   twin: {target}

# Rows are workloads, each with a load and a question. A to E separate the costs of an engine;
# F is what is really asked, at the contract's capacity and around the load where its limits
# are reached. Put your own traffic in its place: pitot workload profile LOG -o profile.yaml
rows:
  A:                        # one user, 256 tokens in, 128 out: overheads{expected A}
  B:                        # 2,048 in, 128 out: what a prompt costs{expected B}
  C:                        # 256 in, 1,024 out: what a token costs{expected C}
  D:                        # 2,048 in, 1,024 out, 8 users: prompts in the way of answers{expected D}
  E:                        # a warm prefix of 3,072 tokens, 16 users; its cold twin E-cold comes with it{expected E}{full}
  F:
    # workload: profile.yaml
    requests: 500           # at each load{expected F}

# Settings of the engine, each value tried alone against the baseline.
knobs:{of max_num_seqs}
  max_num_seqs: [32, 128]{of max_num_batched_tokens}
  max_num_batched_tokens: [2048, 16384]{of gpu_memory_utilization}
  gpu_memory_utilization: [0.8]{of enable_prefix_caching}
  enable_prefix_caching: [false]

launches: 3                 # of each configuration, one in each block, in an order drawn at random
seed: 1

stop:
  confidence: 95%
  precision: 4%             # how much more another configuration may carry and not be looked for
  early: true               # give up what cannot win, and end, as soon as the launches allow it
`

// Template is a plan of a kind of traffic to begin with, with comments.
func Template(kind string) ([]byte, error) {
	all := templateStarts()
	at := slices.IndexFunc(all, func(s start) bool { return s.Kind == kind })
	if at < 0 {
		return nil, say.Errorf("unknown kind of traffic %q", kind).WithHint(say.KnownHint(kind, Kinds()))
	}
	all[at].Target = "sim:llama-3.1-8b@h100?launch_cv=0.03"
	return all[at].writeTemplate(), nil
}

func (s start) writeTemplate() []byte {
	full, asked := "", s.Hypothesis
	switch s.Kind {
	case "batch":
		full = "\n  D-full:                   # D with 64 users: what is served at most" + s.expectedHypotheses("D-full", s.Hypothesis)
		asked = ""
	case "rag": // its hypothesis is that of E
		asked = ""
	}
	of := func(knob string) string {
		if s.Of[knob] == "" {
			return ""
		}
		return "\n  # " + s.Of[knob]
	}
	return []byte(strings.NewReplacer(
		"{kind}", s.Kind, "{limits}", s.Limits, "{capacity}", s.Capacity, "{target}", s.Target, "{full}", full,
		"{expected A}", s.expectedHypotheses("A", ""),
		"{expected B}", s.expectedHypotheses("B", "p50 ttft of B > 2 x p50 ttft of A"),
		"{expected C}", s.expectedHypotheses("C", "p50 tpot of C within 15% of p50 tpot of A"),
		"{expected D}", s.expectedHypotheses("D", ""),
		"{expected E}", s.expectedHypotheses("E", "p50 ttft of E < 0.5 x p50 ttft of E-cold"),
		"{expected F}", s.expectedHypotheses("F", asked),
		"{of max_num_seqs}", of("max_num_seqs"),
		"{of max_num_batched_tokens}", of("max_num_batched_tokens"),
		"{of gpu_memory_utilization}", of("gpu_memory_utilization"),
		"{of enable_prefix_caching}", of("enable_prefix_caching"),
	).Replace(planText))
}

// usualModel is the one of a new plan that names a GPU alone.
const usualModel = "llama-3.1-8b"

// Share of what the twin carries that a new plan asks for, and how far a server may be from
// the twin for its expectation to hold.
const (
	askedOfTwin = 0.8
	nearTwin    = "25%"
)

// TemplateFor is Template for a model on a GPU, with what the twin expects: hypotheses with
// numbers, and what each knob is expected to do. gpu is MODEL@GPU, or a GPU alone.
func TemplateFor(ctx context.Context, kind, gpu string, version result.Version, view View) ([]byte, error) {
	if !strings.Contains(gpu, "@") {
		gpu = usualModel + "@" + gpu
	}
	if strings.Contains(gpu, "?") {
		return nil, say.Errorf("--deployment %s has settings", gpu).WithHint("name the model and the GPU alone; settings of the baseline belong in the plan, under target")
	}
	if _, err := deploy.Parse(gpu); err != nil {
		return nil, say.Errorf("--deployment: %v", err).WithHint(say.HintOf(err))
	}
	all := templateStarts()
	at := slices.IndexFunc(all, func(s start) bool { return s.Kind == kind })
	if at < 0 {
		return Template(kind)
	}
	s := all[at]
	s.Target = "sim:" + gpu + "?launch_cv=0.03"
	p, err := Parse("new.yaml", bytes.Replace(s.writeTemplate(), []byte("requests: 500"), []byte("requests: 150"), 1)) // enough to see what matters
	if err != nil {
		return nil, err
	}
	x := &Experiment{Plan: p, runs: map[string]*result.Run{}}
	if err := x.Simulate(ctx, true, version, view); err != nil {
		return nil, err
	}
	x.Dir = x.twin.Dir // that is removed: nothing is measured
	r := x.Forecast().Power
	s.Capacity = strconv.FormatFloat(r.Carries*askedOfTwin, 'g', 2, 64) + "/s"
	if x := r.Carries * askedOfTwin; x >= 100 {
		s.Capacity = say.Exact(math.Round(x)) + "/s"
	}
	s.Expects, s.Of = map[string][]string{}, map[string]string{}
	for _, l := range r.Lines {
		of := map[string]string{"A": "p50 ttft", "B": "p50 ttft", "C": "p50 tpot", "D": "p50 tpot", "E": "p50 ttft", "D-full": "output tok/s"}[l.Row]
		if l.Metric != of {
			continue
		}
		unit := ""
		if l.Unit == "ms" {
			unit = "ms"
		}
		s.Expects[l.Row] = append(s.Expects[l.Row], fmt.Sprintf("%s of %s within %s of %s%s", l.Metric, l.Row, nearTwin, strings.ReplaceAll(say.Quantity(l.Baseline), ",", ""), unit))
	}
	for _, k := range r.Knobs {
		name, value, _ := strings.Cut(k.Configuration, "=")
		text := value + ": no difference that " + say.Plural(r.Launches, "launch") + " would show"
		if len(k.Effects) > 0 {
			e := k.Effects[0]
			for _, other := range k.Effects {
				if other.Metric == "capacity" {
					e = other
				}
			}
			text = fmt.Sprintf("%s: %s %s", value, e.Of(), say.RelativeChange(e.Change, e.OfShare))
		}
		if s.Of[name] != "" {
			text = s.Of[name] + "; " + text
		} else {
			text = "the twin expects of " + text
		}
		s.Of[name] = text
	}
	return s.writeTemplate(), nil
}
