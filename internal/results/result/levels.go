package result

import "math"

// SlowerBy is from how many times the quickest block on the slowest is worth telling: what
// many requests tell from chance need not matter.
const SlowerBy = 1.1

// Slower is a metric at which a server was slower at some times of a load than at others, by more
// than chance and by more than [SlowerBy].
type Slower struct {
	Metric            string
	Slowest, Quickest int     // index of the block
	Most, Least       float64 // their medians, in milliseconds
}

// SlowerBlocks is where the blocks of a load differ enough to be told.
func (o *OverTime) SlowerBlocks() (list []Slower) {
	for _, d := range o.Differ {
		if min(d.Slowest, d.Quickest) < 0 || max(d.Slowest, d.Quickest) >= len(o.Blocks) { // a file that is damaged
			continue
		}
		of := func(k int) float64 {
			x := o.Blocks[k].P50
			if d.Metric == "tpot" {
				x = o.Blocks[k].TPOT
			}
			if x == nil {
				return math.NaN()
			}
			return *x
		}
		if s := (Slower{d.Metric, d.Slowest, d.Quickest, of(d.Slowest), of(d.Quickest)}); s.Least > 0 && s.Most >= SlowerBy*s.Least {
			list = append(list, s)
		}
	}
	return list
}
