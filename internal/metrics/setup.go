// Package metrics turns records into a result: the metrics by their one
// definition, the attainment of an objective, goodput, the self-checks and
// the verdict. The live view, the end of a run, the recovery of a killed one
// and a merge all go through the same [Fold].
package metrics

import (
	"time"

	"pitot/internal/cost"
	"pitot/internal/metrics/validity"
	"pitot/internal/results/marks"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/slo"
)

// Setup holds what the records of a point cannot say by themselves. The fields with a name in JSON
// are the plan of the point, as the mark [marks.NamePoint] keeps it. Times are nanoseconds since
// the point's origin.
type Setup struct {
	T0    int64     `json:"t0_ns"`          // the window [T0, T1)
	T1    int64     `json:"t1_ns"`          // math.MaxInt64: it ends with the count of its requests
	Began time.Time `json:"began,omitzero"` // the origin by the clock of the client's machine, zero in simulated time

	Load     result.Load `json:"load"`
	SLO      slo.Spec    `json:"slo"`  // zero for none
	GPUs     int         `json:"gpus"` // that serve the target, 0 if not known
	Price    cost.Price  `json:"price"`
	Stamps   string      `json:"stamps"`       // source of the chunk times: "kernel", "user" or "virtual"
	Planned  int         `json:"planned"`      // requests due in the window by the schedule; 0 while not all have ended, or if only the run can tell
	Exact    bool        `json:"exact_output"` // responses of exact lengths are requested
	Requests int64       `json:"requests"`     // the window ends when the request after this many is due, and T1 knows no better; 0 if T1 does
	Cold     bool        `json:"cold"`         // prompts are planned to hit no prefix cache
	Seeded   bool        `json:"seeded"`       // a run before this one may have sent the server the same prompts
	Prompts  int         `json:"prompts"`      // distinct prompts there are, 0 for no end of them
	Stage    string      `json:"stage"`        // what the point is for in a sweep or a search, "" for nothing special

	Residence  int64              `json:"residence_ns"` // what a request takes at a light load, 0 if not known
	AutoWarmup bool               `json:"auto_warmup"`  // the window may begin later than T0, where the load settles later: see [SettleWindows]
	Settling   *validity.Settling `json:"-"`            // what Settle found, nil before

	Metrics []Definition    `json:"-"` // what is measured, nil for [Definitions]
	Signals []metric.Signal `json:"-"` // what the server is asked for, nil for [metric.FromSignals]

	Ended  int64         `json:"-"` // when the load did; 0 where that is not known
	GaveUp bool          `json:"-"` // the window ended early because there was no use in going on, see [validity.IsHopeless]
	Gone   *int64        `json:"-"` // since when a target that went away refused every connection; the load ended then
	Until  *result.Until `json:"-"` // how the looks at the window came out

	PlannedHits *float64 `json:"-"` // share of the prompts that an unlimited prefix cache would have, where the workload tells it by its prompts alone
	Missing     []string `json:"-"` // pages of metrics that were given up, and why

	Alone   []Alone         `json:"questions_alone"` // of the questions among the requests, nil without any
	Sharing int             `json:"workers"`         // processes that carry the load out together, 0 for one
	Workers []result.Worker `json:"-"`               // that carried the load out, by rank, without what their records tell; none: one process did

	Tokenizer *result.TokenizerMatch `json:"tokenizer"` // nil where that is not known

	Reuse *marks.PrefixCache `json:"-"` // what was expected of the prefix cache, and what it had; nil where it is not known
}

// judgeConditions returns the part of the setup that judging the point needs.
func (s *Setup) judgeConditions() validity.Conditions {
	return validity.Conditions{
		T0: s.T0, T1: s.T1, Load: s.Load, Requests: s.Requests, Planned: s.Planned, Residence: s.Residence, Settling: s.Settling,
		Stamps: s.Stamps, Exact: s.Exact, Cold: s.Cold, Seeded: s.Seeded, Prompts: s.Prompts, GaveUp: s.GaveUp, Gone: s.Gone,
		Tokenizer: s.Tokenizer,
	}
}
