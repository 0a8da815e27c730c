package report

import (
	"pitot/internal/data/metric"
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
