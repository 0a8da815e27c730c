// Package measure turns records into a result: the metrics by their one
// definition, the attainment of an objective, goodput, the self-checks and
// the verdict. The live view, the end of a run, the recovery of a killed one
// and a merge all go through the same [Fold].
package measure

import (
	"time"

	"pitot/internal/cost"
	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/measure/judge"
	"pitot/internal/slo"
)

// Setup holds what the records of a point cannot say by themselves.
type Setup struct {
	T0, T1 int64     // the window [T0, T1) in nanoseconds since the point's origin
	Began  time.Time // the origin by the clock of the client's machine, zero in simulated time

	Load     result.Load
	SLO      slo.Spec // zero for none
	GPUs     int      // that serve the target, 0 if not known
	Price    cost.Price
	Listed   bool   // the price is the list price of a GPU that is simulated
	Stamps   string // source of the chunk times: "kernel", "user" or "virtual"
	Planned  int    // requests due in the window by the schedule; 0 while not all have ended, or if only the run can tell
	Exact    bool   // responses of exact lengths are requested
	Requests int64  // the window ends when the request after so many of it is due, and T1 knows no better; 0 if T1 does
	Cold     bool   // prompts are planned to hit no prefix cache
	Seeded   bool   // a run before this one may have asked the server for the same prompts
	Prompts  int    // distinct prompts there are, 0 for no end of them
	Stage    string // what the point is for in a sweep or a search, "" for nothing special

	Residence  int64           // what a request takes at a light load, nanoseconds, 0 if not known
	AutoWarmup bool            // the window may begin later than T0, where the load settles later: see [SettleWindows]
	Settling   *judge.Settling // what Settle found, nil before

	Metrics []Definition    // what is measured, nil for [Definitions]
	Signals []metric.Signal // what the server is asked for, nil for [metric.FromSignals]

	Ended  int64         // when the load did, nanoseconds since its begin; 0 where that is not known
	GaveUp bool          // the window ended early because there was no use in going on, see [judge.IsHopeless]
	Gone   *int64        // since when a target that went away refused every connection, nanoseconds; the load ended then
	Until  *result.Until // how the looks at the window came out

	PlannedHits *float64 // share of the prompts that an unlimited prefix cache would have, where the workload tells it by its prompts alone
	Missing     []string // pages of metrics that were given up, and why

	Alone   []Alone         // of the questions among the requests, nil without any
	Sharing int             // processes that carry the load out together, 0 for one
	Workers []result.Worker // that carried the load out, by rank, without what their records tell; none: one process did

	Tokenizer *judge.Tokenizer // the user's, held against the server's; nil where that is not known

	Reuse *Reuse // what was expected of the prefix cache, beside what it had; nil where it is not known
}

// judgeConditions returns the part of the setup that judging the point needs.
func (s *Setup) judgeConditions() judge.Conditions {
	return judge.Conditions{
		T0: s.T0, T1: s.T1, Load: s.Load, Requests: s.Requests, Planned: s.Planned, Residence: s.Residence, Settling: s.Settling,
		Stamps: s.Stamps, Exact: s.Exact, Cold: s.Cold, Seeded: s.Seeded, Prompts: s.Prompts, GaveUp: s.GaveUp, Gone: s.Gone,
		Tokenizer: s.Tokenizer,
	}
}
