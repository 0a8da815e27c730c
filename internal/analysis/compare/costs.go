package compare

import (
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// Cost holds the cost of something on both sides of a pair, nil where it is not known. It follows
// from prices and rates and is not tested: the rates are.
type Cost struct {
	Metric string   `json:"metric"`
	Label  string   `json:"label"` // "million output tokens"
	A      *float64 `json:"a_usd"` // for all that the label says, as a thousand requests
	B      *float64 `json:"b_usd"`
}

// CachedUnknown says how input is paid where usage tells nothing of a prompt cache.
const CachedUnknown = "usage does not say what was cached: all input at the full price"

// costsOf are those of a load, medians over launches. Dollars for tokens of unlike tokenizers
// are shown too, and labelled: they are what the bill has.
func costsOf(x, y *loadOfSide, alike bool, counter string) (list []Cost) {
	own := ""
	if !alike {
		own = ", each by its own tokenizer"
	}
	for _, c := range []struct {
		of    metric.Name
		label string
		n     float64 // of what the metric is of
	}{
		{metric.OutputCost, "million output tokens" + own, 1}, {metric.GoodOutputCost, "million output tokens within the SLO" + own, 1},
		{metric.CommonCost, "million output tokens by --tokenizer", 1}, {metric.InputCost, "million input tokens" + own, 1}, {metric.RequestCost, "thousand requests", 1000},
	} {
		m := windowFigure(metric.All().Find(c.of))
		if c.of == metric.CommonCost && counter == "" {
			continue
		}
		usd := func(l *loadOfSide) *float64 {
			s, why := l.valuesByLaunch(m, "")
			if why != "" || len(s.values) == 0 {
				return nil
			}
			return new(c.n * median(s.values))
		}
		if a, b := usd(x), usd(y); a != nil || b != nil {
			list = append(list, Cost{string(c.of), c.label, a, b})
		}
	}
	return list
}

// cachedUnknown says whether input that may have been cached was paid in full.
func (l *loadOfSide) cachedUnknown() bool {
	return slices.ContainsFunc(pointsOf(l), func(p *result.Point) bool { return p.Cost != nil && p.Cost.CachedUnknown })
}
