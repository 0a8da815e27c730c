package result

import "pitot/internal/results/metric"

// RefusedByLimits returns the number of the point's requests that the server refused with 429 while
// it reported rate limits. It returns 0 without such headers, since a 429 may then mean a full
// queue.
func (p *Point) RefusedByLimits() int {
	if p.RateLimits == nil {
		return 0
	}
	return p.RateLimits.Refused
}

// HeldByLimits returns the number of the point's requests that waited for the server's rate limits
// (--respect-limits).
func (p *Point) HeldByLimits() int {
	for i := range p.Checks {
		if c := &p.Checks[i]; c.Name == CheckRateLimits {
			return int(c.Detail["n"])
		}
	}
	return 0
}

// OverByLimits says whether the point does not meet its objective for the server's rate
// limits alone: of the requests that they let through, counted from when those that they held
// back were sent, each limit that is broken holds, as far as that is known. How the server would
// do at the load that was asked for does not follow.
func (p *Point) OverByLimits() bool {
	refused, held := p.RefusedByLimits(), p.HeldByLimits()
	if p.SLO == nil || p.SLO.Met != No || refused+held == 0 || refused >= p.Requests.Due {
		return false
	}
	share := float64(p.Requests.Due) / float64(p.Requests.Due-refused) // of those that were not refused, by that of all
	for i := range p.SLO.Limits {
		l := &p.SLO.Limits[i]
		switch {
		case l.Met == Yes:
		case l.Class != "":
			return false
		case l.Metric == metric.Errors:
			if l.Value == nil || *l.Value*share-float64(refused)/float64(p.Requests.Due-refused) >= l.Limit {
				return false
			}
		case l.Attained == nil || l.Percentile == 0:
			return false
		case *l.Attained*share < l.Percentile/100 && !p.sentWithin(l, held):
			return false
		}
	}
	return true
}

// sentWithin says whether a limit would be met were its times counted from when requests were
// sent, of which so many had been held back.
func (p *Point) sentWithin(l *Limit, held int) bool {
	if held == 0 || p.Requests.OK+p.RefusedByLimits() < p.Requests.Due {
		return false
	}
	for _, v := range p.Metrics.AllViews() {
		if v.Response.Name != l.Metric || v.Service.Summary == nil {
			continue
		}
		for _, k := range []struct {
			key string
			of  float64
		}{{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99_9", 99.9}, {"max", 100}} {
			if x := v.Service.Value(k.key); k.of >= l.Percentile && x != nil && *x < l.Limit {
				return true
			}
		}
	}
	return false
}
