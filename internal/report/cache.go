package report

import (
	"fmt"
	"math"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// unlikeExpected is from what distance on a served share of hits is not as expected, and
// spread from what on the two expected shares are told apart.
const (
	unlikeExpected = 0.02
	spread         = 0.01
	least          = 0.0005 // that is worth a line
)

// CacheText says what a prefix cache had of the prompts and what was expected of it, and
// what follows where these differ. Both are empty where nothing was expected and nothing had.
func CacheText(c *result.PrefixCache) (figures, difference string) {
	if c == nil || c.Expected < least && c.Endless < least && (c.Served == nil || *c.Served < least) {
		return "", ""
	}
	served := "prefix cache: the server does not report what it served"
	if c.Served != nil {
		served = "prefix cache: " + formatPercent(*c.Served) + " % of prompt tokens served from it"
		if c.ByMetrics {
			served += " over the whole load, by its metrics"
		}
	}
	figures = served + "; " + expectedShare(c) + " % expected" + expectedFor(c)
	if c.Asked > 0 {
		figures += "; " + say.Plural(c.Asked, "request") + " sent the shared prefixes before the load, outside all figures"
	}
	if c.Served != nil {
		difference = unexpectedCacheText(c, *c.Served)
	}
	return figures, difference
}

// ExpectedCacheText says what a prefix cache is expected to have of the prompts of a load that
// is not sent yet, "" for nothing.
func ExpectedCacheText(c *result.PrefixCache) string {
	if c == nil || c.Endless < least {
		return ""
	}
	return expectedShare(c) + " % of the prompts' tokens" + expectedFor(c)
}

// expectedShare is the share in percent, from a late to a prompt insertion where that makes
// a difference.
func expectedShare(c *result.PrefixCache) string {
	if c.Expected-c.Late > spread {
		return formatPercent(c.Late) + " to " + formatPercent(c.Expected)
	}
	return formatPercent(c.Expected)
}

// expectedFor says of what cache that is.
func expectedFor(c *result.PrefixCache) string {
	text := fmt.Sprintf(" at %d-token blocks", c.BlockSize)
	if c.Assumed {
		text = fmt.Sprintf(" if blocks are of %d tokens", c.BlockSize)
	}
	switch {
	case c.Off:
		return ", as the target keeps no prefixes"
	case c.Tokens > 0:
		text += fmt.Sprintf(" and %s tokens of cache", say.Count(c.Tokens))
	default:
		text += " and a cache that forgets nothing"
	}
	if c.Tokens > 0 && c.Endless-c.Expected > unlikeExpected {
		text += ", " + formatPercent(c.Endless) + " % if it forgot nothing"
	}
	if !c.All {
		text += ", of the first " + say.Count(c.Requests) + " requests"
	}
	return text
}

func formatPercent(share float64) string { return say.Decimal(100*share, 1) }

// unexpectedCacheText says why a served share may not be the expected one.
func unexpectedCacheText(c *result.PrefixCache, served float64) string {
	apart := " by " + say.Decimal(100*math.Abs(served-c.Expected), 1) + " points"
	switch {
	case served > c.Expected+unlikeExpected && c.Tokens == 0 && !c.Off:
		return "more than expected" + apart + ": the server may have had these prompts before, by an earlier run of the same seed or file, or its blocks are smaller"
	case served > c.Expected+unlikeExpected:
		return "more than expected" + apart + ": the server may have had these prompts before, by an earlier run of the same seed or file, or has a cache besides that on the GPU"
	case served >= c.Late-unlikeExpected:
		return ""
	case served == 0:
		return "less than expected" + apart + ": the server's prefix cache may be off, or its blocks longer than what is shared"
	case c.Tokens == 0:
		return "less than expected" + apart + ": the cache may be too small to keep what is shared, a router may spread requests over several, or others use the server"
	}
	return "less than expected" + apart + ": others may use the server, a router may spread requests over several caches, or part of the cache is not there for prefixes"
}

// addCache shows it.
func (m *PointModel) addCache(p *result.Point) {
	figures, difference := CacheText(p.PrefixCache)
	if figures == "" {
		return
	}
	m.Server = addLine(m.Server, "", []string{figures})
	if p.Answers != nil && p.PrefixCache.Served != nil && *p.PrefixCache.Served > p.PrefixCache.Expected {
		difference = "" // greedy questions were asked alone before, and those of a kind begin alike
	}
	if difference != "" {
		m.Server = addLine(m.Server, "", []string{difference})
	}
}

// effectText says what a warm cache makes of TTFT, "" of a run that does not tell.
func effectText(e *result.CacheEffect) string {
	if e == nil {
		return ""
	}
	times := ""
	if e.WarmMS > 0 && e.ColdMS > 0 {
		times = fmt.Sprintf(", %s %% of it", say.Decimal(100*e.WarmMS/e.ColdMS, 1))
	}
	interval := "too few for an interval"
	if e.CI95 != nil {
		interval = "95 % interval " + fromTo(*e.CI95) + " ms"
	}
	return fmt.Sprintf("warm cache: mean TTFT %s ms where a cold one takes %s ms%s: a difference of %s ms (%s), by %s of requests of the same lengths and due times",
		say.Quantity(e.WarmMS), say.Quantity(e.ColdMS), times, say.Quantity(e.DifferenceMS), interval, say.Plural(e.Pairs, "pair"))
}
