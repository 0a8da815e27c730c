package report

import (
	"fmt"
	"strings"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/say"
	"pitot/internal/study/inspect"
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
	text := "rate limits, as the server tells them: " + strings.Join(told, "; ")
	if x.Refused > 0 && p.Requests.Due > 0 {
		text += fmt.Sprintf("; %s of %s refused with 429, %s", say.Count(x.Refused), say.Plural(p.Requests.Due, "request"), say.Percent(float64(x.Refused)/float64(p.Requests.Due)))
	}
	m.Remarks = append(m.Remarks, text)
	if n := p.Seconds.Window / longest; longest > 0 && n < fewPeriods && x.Refused+p.HeldByLimits() > 0 {
		m.Remarks = append(m.Remarks, fmt.Sprintf("the window has %s of these times: what was answered in it a second may be up to %s off what the limits allow", say.Decimal(n, 2), say.Percent(2/n)))
	}
}

// fewPeriods is of how many periods of a rate limit a window must be for its own rate to tell
// what the limit allows. A window may begin with a counter that is unspent and end with one that
// was just renewed: two periods' worth more than its share, which is then 5 % of it.
const fewPeriods = 40

// allowed is what the limits that bind let through in the long run, "" where that is not known.
func allowed(p *result.Point) string {
	var parts []string
	if x := p.RateLimits; x != nil {
		if l := x.Requests; l != nil && l.AllowsPerS != nil {
			parts = append(parts, "at most about "+say.Quantity(*l.AllowsPerS)+" requests a second")
		}
		if l := x.Tokens; l != nil && l.AllowsPerS != nil {
			parts = append(parts, "at most about "+say.Quantity(*l.AllowsPerS)+" tokens a second")
		}
	}
	return strings.Join(parts, " and ")
}

// shapedByLimits says whether an outcome that would be laid at the server's door comes of its
// rate limits: most of what was not answered they refused, or what waited they held back.
func shapedByLimits(p *result.Point) bool {
	r := p.Requests
	return p.Outcome != "" && p.Outcome != result.OK && p.WentAway == nil && (2*p.RefusedByLimits() > r.Due-r.OK || p.HeldByLimits() > 0)
}

func moreThanLimits(p *result.Point) string {
	return "the load is more than the server's rate limits allow: " + inspect.LimitsDid(p)
}

// blameRateLimits gives a check the advice that holds where the server's rate limits made
// what it found: its own would blame the server, the client or a proxy.
func blameRateLimits(p *result.Point, m *CheckModel) {
	if m.Name == result.CheckErrors && m.Advice != "" && p.Requests.Errors[record.ErrRateLimited] > 0 {
		m.Advice += " " + refusedAdvice(p)
		return
	}
	if inspect.LimitsDid(p) == "" || m.Advice == "" {
		return
	}
	less := "ask for less than they allow"
	if a := allowed(p); a != "" {
		less += ", " + a
	}
	held := p.HeldByLimits() > 0
	switch m.Name {
	case result.CheckRateLimits:
		m.Advice = "The server's limits shaped this load: its arrivals are not those that were planned. " + strings.ToUpper(less[:1]) + less[1:] + "."
	case result.CheckConnects, result.CheckArrivals, result.CheckWarmup, result.CheckAchieved, result.CheckStability, result.CheckWindow:
		if held {
			m.Advice = "Requests waited for the server's rate limits (--respect-limits): " + less + "."
		}
	}
}

// refusedAdvice says what to do about requests that were refused with 429.
func refusedAdvice(p *result.Point) string {
	text := "The server refused " + say.Plural(p.Requests.Errors[record.ErrRateLimited], "request") + " for its rate limits (429)"
	if x := p.RateLimits; x != nil && x.RetryAfter != nil {
		text += ", with a Retry-After of up to " + say.Seconds(*x.RetryAfter)
	}
	options := []string{"ask for less than they allow"}
	if a := allowed(p); a != "" {
		options[0] += ", " + a
	}
	if p.Retries == nil {
		options = append(options, "send such requests again with --retry 2")
	}
	if byRun := p.Stage == "" || p.Stage == result.StageCold || p.Stage == result.StageWarm; byRun && p.HeldByLimits() == 0 { // searches and sweeps do not have it
		options = append(options, "hold them back with --respect-limits")
	}
	last := len(options) - 1
	if last > 0 {
		options[last] = "or " + options[last]
	}
	return text + ": " + strings.Join(options, ", ") + "."
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
