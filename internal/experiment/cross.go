package experiment

import (
	"math"
	"slices"

	"pitot/internal/experiment/decide"
	"pitot/internal/stat"
)

// InteractionRecord is what two knobs do to what is carried together, beyond what each does
// alone.
type InteractionRecord struct {
	Configuration string      `json:"configuration"`
	Change        *float64    `json:"change"`   // ratio less 1; null: too few launches have all four
	Interval      *[2]float64 `json:"interval"` //
	PAdjusted     *float64    `json:"p_adjusted"`
}

// interactions are those of all crossings, corrected for their number.
func (x *Experiment) interactions(d *decide.Decision, q *decide.Problem) (list []InteractionRecord) {
	all := x.Plan.Configurations()
	at := func(knob, value string) int {
		return slices.IndexFunc(all, func(c Configuration) bool { return c.Knob == knob && c.Value == value && c.And[0] == "" })
	}
	var ps []float64
	var known []int
	for i, c := range all {
		if c.And[0] == "" {
			continue
		}
		r := InteractionRecord{Configuration: c.Name}
		if a, b := at(c.Knob, c.Value), at(c.And[0], c.And[1]); a > 0 && b > 0 {
			if t, ok := decide.Interaction(*q, *d, a, b, i); ok {
				change := math.Expm1(t.Estimate)
				r.Change, r.Interval = &change, &[2]float64{math.Expm1(t.Lo), math.Expm1(t.Hi)}
				ps, known = append(ps, t.P), append(known, len(list))
			}
		}
		list = append(list, r)
	}
	for n, p := range stat.Holm(ps) {
		list[known[n]].PAdjusted = &p
	}
	return list
}
