package report

import (
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// formatterFor returns the function that formats values of a unit.
func formatterFor(unit metric.Unit) func(float64) string {
	switch unit {
	case metric.Share:
		return say.Percent
	case metric.USDPerMTokens, metric.USDPerRequest:
		return say.Dollars
	}
	return say.Quantity
}

// formatterOfShare returns the function that formats shares, or other values.
func formatterOfShare(share bool) func(float64) string {
	if share {
		return say.Percent
	}
	return say.Quantity
}

// fromTo writes an interval in a sentence.
func fromTo(v [2]float64) string { return say.Quantity(v[0]) + " to " + say.Quantity(v[1]) }

// intervalCell writes an interval in a cell of a table.
func intervalCell(v *[2]float64) string {
	if v == nil {
		return say.Unknown
	}
	return say.Quantity(v[0]) + "…" + say.Quantity(v[1])
}

// changeSpan writes an interval of changes, of shares or relative.
func changeSpan(v [2]float64, share bool) string {
	return say.SignedChange(v[0], share) + "…" + say.SignedChange(v[1], share)
}

// changeRange writes it in a sentence.
func changeRange(v [2]float64, share bool) string {
	return say.SignedChange(v[0], share) + " to " + say.SignedChange(v[1], share)
}

// LoadSuffix returns the suffix of a load where there is little room, by what the loads are over.
func LoadSuffix(over string) string {
	if over == result.OverRate {
		return "/s"
	}
	return " " + result.LoadUnit(over)
}
