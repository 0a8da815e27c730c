package report

import (
	"fmt"
	"strings"

	"pitot/internal/analysis/inspect"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// rateLimits remarks on what the server told of its rate limits, and how far the window's own
// rate tells what they allow.
func (m *PointModel) rateLimits(p *result.Point) {
	x := p.RateLimits
	if x == nil {
		return
	}
	var told []string
	longest := 0. // time until one that was used up is whole
	of := func(l *result.RateLimit, unit string) {
		if l == nil {
			return
		}
		var parts []string
		if l.Limit != nil {
			parts = append(parts, say.Plural(int(*l.Limit), unit))
		}
		if l.Whole != nil {
			parts = append(parts, "whole again after at most "+say.Seconds(*l.Whole))
			if l.Least != nil && *l.Least <= 0 { // else it let all through
				longest = max(longest, *l.Whole)
			}
		}
		if l.Least != nil {
			parts = append(parts, say.Plural(int(*l.Least), unit)+" left at the least")
		}
		if l.AllowsPerS != nil {
			parts = append(parts, "which allows at most about "+say.Quantity(*l.AllowsPerS)+" a second in the long run")
		}
		told = append(told, strings.Join(parts, ", "))
	}
	of(x.Requests, "request")
	of(x.Tokens, "token")
	if x.RetryAfter != nil {
		told = append(told, "Retry-After up to "+say.Seconds(*x.RetryAfter))
	}
	text := "rate limits that the server reports: " + strings.Join(told, "; ")
	if x.Refused > 0 && p.Requests.Due > 0 {
		text += fmt.Sprintf("; %s of %s refused with 429, %s", say.Count(x.Refused), say.Plural(p.Requests.Due, "request"), say.Percent(float64(x.Refused)/float64(p.Requests.Due)))
	}
	m.Remarks.addText(text)
	if n := p.Seconds.Window / longest; longest > 0 && n < fewPeriods && x.Refused+p.HeldByLimits() > 0 {
		m.Remarks.addFormat("the window has %s of these times: what was answered in it a second may be up to %s off what the limits allow", say.Decimal(n, 2), say.Percent(2/n))
	}
}

// fewPeriods is of how many periods of a rate limit a window must be for its own rate to tell
// what the limit allows. A window may begin with a counter that is unspent and end with one that
// was just renewed: two periods' worth more than its share, which is then 5 % of it.
const fewPeriods = 40

// shapedByLimits says whether an outcome that would be laid at the server's door comes of its
// rate limits: most of what was not answered they refused, or what waited they held back.
func shapedByLimits(p *result.Point) bool {
	r := p.Requests
	return p.Outcome != "" && p.Outcome != result.OK && p.WentAway == nil && (2*p.RefusedByLimits() > r.Due-r.OK || p.HeldByLimits() > 0)
}

func moreThanLimits(p *result.Point) string {
	return "the load is more than the server's rate limits allow: " + inspect.LimitsDid(p)
}

// limitsDidIt are the facts of an objective that is not met for the rate limits' sake.
func limitsDidIt(p *result.Point) []string {
	did := inspect.LimitsDid(p)
	if did == "" || p.SLO.Met != result.No {
		return nil
	}
	if p.OverByLimits() {
		return []string{"this is the doing of the server's rate limits: " + did + "; " + inspect.ServedWithin(p)}
	}
	return []string{"the server's rate limits have a part in this: " + did}
}
