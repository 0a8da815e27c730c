package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// What a sweep over users says to someone who has no SLO: how fast one user is served, how many users
// still are at a comfortable speed, and where more users no longer get more out of the server.

// A user is served at a comfortable speed if half of the requests begin within a second and then go on
// at 20 tokens/s or more, which is faster than people read.
const (
	comfortableTTFT = 1000. // ms
	comfortableTPOT = 50.   // ms
)

// stillGrows is the factor of throughput, for twice the users, from which it counts as growing.
const stillGrows = 1.1

// userLoad is one number of users.
type userLoad struct {
	users      int
	point      *result.Point
	ttft, tpot float64 // medians in ms, 0 where not known
	begins     string  // ttft as it is shown, with its mark
	tokens     float64 // output tokens/s of all together, 0 where not known
}

// pace returns the tokens/s that half of the users get at least, 0 where that is not known.
func (l *userLoad) pace() float64 {
	if l.tpot <= 0 {
		return 0
	}
	return 1000 / l.tpot
}

func (l *userLoad) isComfortable() bool {
	return l.ttft > 0 && l.ttft <= comfortableTTFT && l.tpot > 0 && l.tpot <= comfortableTPOT
}

// userLoads returns the loads of a sweep over users that has no SLO, by the number of users. It is
// empty for other runs.
func userLoads(run *result.Run) (list []userLoad) {
	if run.Curve == nil || run.Curve.Over != result.OverConcurrency {
		return nil
	}
	median := func(p *result.Point, name metric.Name) float64 {
		s := p.Metrics.SummaryOf(name)
		if s == nil {
			return 0
		}
		return valueOrZero(s.P50)
	}
	for i := range run.Points {
		p := &run.Points[i]
		if p.SLO != nil {
			return nil
		}
		if p.Load.Concurrency == nil || p.Outcome == result.Failing || p.Requests.OK == 0 || i == run.UnderWay() {
			continue
		}
		list = append(list, userLoad{
			users: *p.Load.Concurrency, point: p, ttft: median(p, metric.TTFT), tpot: median(p, metric.TPOT),
			begins: cellText(p.Metrics.SummaryOf(metric.TTFT), "p50"), tokens: valueOrZero(p.Throughput.OutputTokensPerS),
		})
	}
	stats.SortStable(list, func(a, b userLoad) int { return cmp.Compare(a.users, b.users) })
	return list
}

// usersAnswer holds the loads that make the answer.
type usersAnswer struct {
	one         *userLoad // one user, nil if not measured
	comfortable *userLoad // most users at a comfortable speed, nil for none
	most        *userLoad // highest throughput
	saturated   bool      // more users got no more out of the server
}

func answerOfUsers(list []userLoad) (a usersAnswer) {
	for i := range list {
		l := &list[i]
		if l.users == 1 {
			a.one = l
		}
		if l.isComfortable() && (a.comfortable != nil || i == 0 || list[i-1].isComfortable()) {
			a.comfortable = l
		}
		if l.tokens > 0 && (a.most == nil || l.tokens > a.most.tokens) {
			a.most = l
		}
	}
	if n := len(list); n > 1 {
		last, before := &list[n-1], &list[n-2]
		doublings := math.Log2(float64(last.users) / float64(before.users))
		a.saturated = last.tokens < before.tokens*math.Pow(stillGrows, doublings)
	}
	return a
}

// usersSentence is the answer of a sweep over users, "" if too little is known.
func usersSentence(run *result.Run) string {
	a := answerOfUsers(userLoads(run))
	if a.one == nil || a.one.pace() == 0 || a.most == nil {
		return ""
	}
	text := fmt.Sprintf("one user gets %s tok/s", say.Quantity(a.one.pace()))
	if c := a.comfortable; c != nil && c.users > 1 {
		text += fmt.Sprintf(", %s %s each", say.Plural(c.users, "user"), say.Quantity(c.pace()))
	}
	if isSimulated(run) {
		text = "Simulated: " + text
	} else {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if a.saturated {
		return text + fmt.Sprintf("; about %s in all", say.Quantity(a.most.tokens))
	}
	return text + fmt.Sprintf("; %s tok/s with %s", say.Quantity(a.most.tokens), say.Plural(a.most.users, "user"))
}

// comfortText says up to how many users the speed is comfortable.
func comfortText(list []userLoad, a *usersAnswer) string {
	switch c := a.comfortable; {
	case c == nil:
		return "no number of users: 20 tok/s each, first token in 1 s (median)"
	case c == &list[len(list)-1]:
		return fmt.Sprintf("%s at least: %s tok/s each, first token in 1 s (median)", say.Plural(c.users, "user"), say.Quantity(c.pace()))
	default:
		return fmt.Sprintf("up to %s: 20 tok/s each or more, first token in 1 s (median)", say.Plural(c.users, "user"))
	}
}

// numbersOfUsers are the most quoted numbers of a sweep over users.
func numbersOfUsers(run *result.Run) (list []Number) {
	a := answerOfUsers(userLoads(run))
	add := func(name, value, unit, note string) {
		if run.Verdict == result.Invalid {
			value, unit, note = say.Unknown, "", "withheld: INVALID"
		}
		list = append(list, Number{Name: name, Value: value, Unit: unit, Note: note})
	}
	add("One user", say.Quantity(a.one.pace()), "tok/s", "median")
	add("TTFT, one user", a.one.begins, "ms", "median")
	if c := a.comfortable; c != nil {
		add("Comfortable", say.Count(c.users), "users", say.Quantity(c.pace())+" tok/s each")
	} else {
		add("Comfortable", "0", "users", "20 tok/s each, first token in 1 s")
	}
	note := "the most"
	if !a.saturated {
		note = "still growing"
	}
	add("All together", say.Quantity(a.most.tokens), "tok/s", say.Plural(a.most.users, "user")+", "+note)
	return list
}

// usersFacts are the facts behind the answer.
func usersFacts(run *result.Run) (facts []labelled) {
	list := userLoads(run)
	a := answerOfUsers(list)
	add := func(label, value string) { facts = addLine(facts, label, []string{value}) }
	if l := a.one; l != nil && l.pace() > 0 {
		text := say.Quantity(l.pace()) + " tok/s once it streams"
		if l.ttft > 0 {
			text += ", first token after " + l.begins + " ms"
		}
		add("One user", text+" (median)")
	}
	if a.one != nil && a.one.pace() > 0 {
		add("Comfortable", comfortText(list, &a))
	}
	if c := a.comfortable; c != nil && c.point.Cost != nil && c.point.Cost.USDPerMOutput != nil {
		add("Cost", fmt.Sprintf("$%s per million output tokens with %s", say.Quantity(*c.point.Cost.USDPerMOutput), say.Plural(c.users, "user")))
	}
	if m := a.most; m != nil {
		text := fmt.Sprintf("at about %s tok/s, with %s", say.Quantity(m.tokens), say.Plural(m.users, "user"))
		if n := len(list); a.saturated && list[n-2].tokens > 0 {
			text += fmt.Sprintf(": %s tok/s with %d", say.Quantity(list[n-2].tokens), list[n-2].users)
		}
		if !a.saturated {
			text = fmt.Sprintf("not reached: %s still raised it to %s tok/s", say.Plural(m.users, "user"), say.Quantity(m.tokens))
		}
		add("Saturates", text)
	}
	return facts
}
