package experiment

import (
	"bytes"
	"slices"
	"text/template"

	"pitot/internal/say"
)

// start is what a new plan of a kind of traffic says first; each value is there to be
// changed.
type start struct {
	Kind, Limits, Capacity, Hypothesis string
}

func starts() []start {
	return []start{
		{"chat", "p95 ttft<500ms, p95 tpot<40ms, errors<1%", "12/s", "p95 ttft of F < 500ms"},
		{"rag", "p95 ttft<1s, p95 tpot<50ms, errors<1%", "8/s", "p50 ttft of E < 0.5 x p50 ttft of E-cold"},
		{"batch", "p95 e2e<60s, errors<1%", "15/s", "output tok/s of D-full > 2 x output tok/s of D"},
		{"mixed", "p95 ttft<1s, p95 tpot<60ms, errors<1%", "10/s", "p95 ttft of F < 1s"},
	}
}

// plan files are written with these words; Template fills in the kind's.
var planTemplate = template.Must(template.New("plan").Parse(`# An experiment: which settings of the engine carry this traffic within its limits?
#
#   pitot experiment check  THIS FILE    what it takes, part by part
#   pitot experiment run    THIS FILE    measure; Ctrl-C and run again go on
#   pitot experiment report THIS FILE    the decision record again
#
# An editor that knows JSON Schema completes it: pitot experiment schema > plan.schema.json

# What a deployment is accepted for. All of it must hold, with the confidence below.
contract:
  kind: {{.Kind}}                # chat, rag, batch or mixed
  limits: {{.Limits}}
  capacity: {{.Capacity}}            # requests per second that must be carried within the limits
  # cost: $0.60             # at most, per million output tokens within the limits

# What all of it may take at most. Without it, all launches are measured.
# budget:
#   time: 8h
#   money: $40

# The baseline. sim: is the twin in virtual time; launch_cv is how far its launches differ,
# as those of servers do.
target: sim:llama-3.1-8b@h100?launch_cv=0.03

# Rows are workloads, each with a load and a question. A to E tell one cost from another;
# F is what is really asked, at the contract's capacity and around the load where its limits
# are reached. Put your own traffic in its place: pitot workload profile LOG -o profile.yaml
rows:
  A:                        # one user, 256 tokens in, 128 out: overheads
  B:                        # 2,048 in, 128 out: what a prompt costs
    hypothesis: p50 ttft of B > 2 x p50 ttft of A
  C:                        # 256 in, 1,024 out: what a token costs
    hypothesis: p50 tpot of C within 15% of p50 tpot of A
  D:                        # 2,048 in, 1,024 out, 8 users: prompts in the way of answers
  E:                        # a warm prefix of 3,072 tokens, 16 users; its cold twin E-cold comes with it
    hypothesis: p50 ttft of E < 0.5 x p50 ttft of E-cold
{{- if eq .Kind "batch"}}
  D-full:                   # D with 64 users: what is served at most
    hypothesis: {{.Hypothesis}}
{{- end}}
  F:
    # workload: profile.yaml
    requests: 500           # at each load
{{- if and (ne .Kind "rag") (ne .Kind "batch")}}
    hypothesis: {{.Hypothesis}}
{{- end}}

# Settings of the engine, each value tried alone against the baseline.
knobs:
  max_num_seqs: [32, 128]
  max_num_batched_tokens: [2048, 16384]
  gpu_memory_utilization: [0.8]
  enable_prefix_caching: [false]

launches: 3                 # of each configuration, one in each block, in an order drawn at random
seed: 1

stop:
  confidence: 95%
  precision: 4%             # how much more another configuration may carry and not be looked for
  early: true               # give up what cannot win, and end, as soon as the launches allow it
`))

// Template is a plan of a kind of traffic to begin with, with comments.
func Template(kind string) ([]byte, error) {
	all := starts()
	at := slices.IndexFunc(all, func(s start) bool { return s.Kind == kind })
	if at < 0 {
		return nil, say.Errorf("unknown kind of traffic %q", kind).WithHint(say.Known(kind, Kinds()))
	}
	var b bytes.Buffer
	err := planTemplate.Execute(&b, all[at])
	return b.Bytes(), err
}
