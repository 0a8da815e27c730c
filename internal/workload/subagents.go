package workload

import (
	"fmt"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// SubAgents describes how the steps of generated conversations start others, which run at the same
// time. After a share of the steps an agent starts several sub-agents. Each sub-agent sends several
// requests, one after the other. The agent's next step waits for the last of them and reads the
// final answer of each. The zero value means none. Values can be compared with ==.
type SubAgents struct {
	Share  float64 // of the steps behind which some are started, but for a conversation's last
	Agents Lengths // how many are started at once
	Steps  Lengths // requests of one
	System int     // tokens of a system prompt that all sub-agents share, and no other request
	Input  Lengths // tokens that each of their requests adds; zero: as further turns do
}

// Bounds of what is started behind one step.
const (
	MostSubAgents = 64
	mostSubSteps  = 1000
)

// IsNone says that there are none.
func (s SubAgents) IsNone() bool { return s == SubAgents{} }

const subAgentsHint = "write share(5%), agents(uniform(1,3)), steps(uniform(2,10)), system(2000), input(500); system and input can be left out"

// ParseSubAgents reads "share(5%), agents(uniform(1,3)), steps(8), system(2000),
// input(500)", in any order: agents are one, system none and input that of further turns
// where they are left out. "none" are none. Every error is a [say.Error].
func ParseSubAgents(text string) (s SubAgents, err error) {
	fail := func(format string, args ...any) (SubAgents, error) {
		return SubAgents{}, say.Errorf("sub-agents %.80q: %s", text, fmt.Sprintf(format, args...)).WithHint(subAgentsHint)
	}
	if strings.TrimSpace(text) == noSubAgents {
		return s, nil
	}
	seen := map[string]bool{}
	s.Agents = FixedLength(1)
	parts, ok := arrival.SplitOutside(text, ',')
	if !ok {
		return fail("its parentheses do not match")
	}
	for _, part := range parts {
		name, inner, call := strings.Cut(strings.TrimSpace(part), "(")
		inner, closed := strings.CutSuffix(inner, ")")
		name = strings.ToLower(strings.TrimSpace(name))
		if !call || !closed || seen[name] {
			return fail("%.40q is no part of them, or there twice", strings.TrimSpace(part))
		}
		seen[name] = true
		switch name {
		case "share":
			percent, isPercent := strings.CutSuffix(strings.TrimSpace(inner), "%")
			x, err := strconv.ParseFloat(percent, 64)
			if isPercent {
				x /= 100
			}
			if err != nil || !(x > 0 && x <= 1) {
				return fail("%.40q is no share of the steps", inner)
			}
			s.Share = x
		case "agents":
			s.Agents, err = ParseLengths(inner)
		case "steps":
			s.Steps, err = ParseLengths(inner)
		case "input":
			s.Input, err = ParseLengths(inner)
		case "system":
			if s.System, err = strconv.Atoi(strings.TrimSpace(inner)); err != nil || s.System < 0 || s.System > MaxLength {
				return fail("system(%.40s) is no number of tokens", inner)
			}
		default:
			return fail("unknown part %.40q", name)
		}
		if err != nil {
			return SubAgents{}, say.Errorf("sub-agents: %s: %v", name, err).WithHint(say.HintOf(err))
		}
	}
	switch {
	case s.Share == 0 || s.Steps.IsZero():
		return fail("behind which share of the steps they start, and how many requests one has, have to be there")
	case s.Agents.Quantile(1) > MostSubAgents:
		return fail("more than %d at once", MostSubAgents)
	case s.Steps.Quantile(1) > mostSubSteps:
		return fail("more than %s requests of one", say.Count(mostSubSteps))
	}
	return s, nil
}

// noSubAgents is the text form of no sub-agents.
const noSubAgents = "none"

// String writes them so that ParseSubAgents reads them back.
func (s SubAgents) String() string {
	if s.IsNone() {
		return noSubAgents
	}
	text := fmt.Sprintf("share(%s%%), agents(%s), steps(%s)", strconv.FormatFloat(100*s.Share, 'g', -1, 64), s.Agents, s.Steps)
	if s.System > 0 {
		text += fmt.Sprintf(", system(%d)", s.System)
	}
	if !s.Input.IsZero() {
		text += fmt.Sprintf(", input(%s)", s.Input)
	}
	return text
}

// requestMoments are the mean number of requests that are started behind a step, and the mean of
// its square.
func (s SubAgents) requestMoments() (mean, square float64) {
	if s.IsNone() {
		return 0, 0
	}
	const draws = 1024
	agents, agents2, steps, steps2 := 0., 0., 0., 0.
	for i := range draws {
		q := (float64(i) + .5) / draws
		a, n := float64(s.Agents.Quantile(q)), float64(s.Steps.Quantile(q))
		agents, agents2, steps, steps2 = agents+a/draws, agents2+a*a/draws, steps+n/draws, steps2+n*n/draws
	}
	return s.Share * agents * steps, s.Share * (agents*(steps2-steps*steps) + agents2*steps*steps)
}

// ExpectedPerStep returns what one step starts on average, for the given tokens of an answer and of
// a further turn. It returns the requests, the tokens of their prompts, and the tokens that the
// agent reads of them.
func (s SubAgents) ExpectedPerStep(answer, further float64) (requests, prompts, read float64) {
	if s.IsNone() {
		return 0, 0, 0
	}
	if !s.Input.IsZero() {
		further = s.Input.Mean()
	}
	const draws = 1024
	one := 0. // tokens of the prompts of one
	for i := range draws {
		n := float64(s.Steps.Quantile((float64(i) + .5) / draws))
		one += (n*(float64(s.System)+further) + n*(n-1)/2*(answer+further)) / draws
	}
	requests, _ = s.requestMoments()
	started := s.Share * s.Agents.Mean()
	return requests, started * one, started * answer
}

const (
	streamSubAgents = 0x7375_6261_0000_0000 + iota
	streamSubCount
	streamSubSteps
)

// stepPlace is where a request of a conversation stands among its items: those of sub-agents
// behind the step that starts them.
type stepPlace struct {
	at    int32   // where the agent's own step stands that it is, or that started it
	agent int     // the sub-agent, -1 of the agent's own steps
	step  int32   // of the sub-agent
	begin int32   // where the sub-agent's first step stands
	steps int32   // that it has
	group []int32 // where the first step of each of those stands that were started with it
	lasts []int32 // and the last
	next  int32   // where the agent's own next step stands
	own   bool    // there is a next step
}

// eachStep goes through the agent's own steps of a conversation, in order, until yield says
// that it is enough.
func (v *Conversations) eachStep(session int64, yield func(p stepPlace) bool) {
	s, turns := &v.config.SubAgents, v.turnCount(session)
	at := int32(0)
	for k := range turns {
		p := stepPlace{at: at, agent: -1, own: k+1 < turns}
		at++
		if p.own && !s.IsNone() {
			draw := func(stream, i uint64) uint64 {
				return seed.At(seed.At(v.config.Seed, stream, uint64(TurnItem(session, k))), 0, i)
			}
			if seed.Float(draw(streamSubAgents, 0)) < s.Share {
				for i := range min(max(s.Agents.Draw(draw(streamSubCount, 0)), 1), MostSubAgents) {
					n := int32(min(max(s.Steps.Draw(draw(streamSubSteps, uint64(i))), 1), mostSubSteps))
					p.group, p.lasts = append(p.group, at), append(p.lasts, at+n-1)
					at += n
				}
			}
		}
		p.next = at
		if !yield(p) {
			return
		}
	}
}

// findStep is where an item stands that is turn of a conversation, and how many there are.
func (v *Conversations) findStep(session int64, turn int32) (found stepPlace, total int32, ok bool) {
	v.eachStep(session, func(p stepPlace) bool {
		if total = p.next; ok || turn < p.at || turn >= p.next {
			return true
		}
		found, ok = p, true
		for i, first := range p.group {
			if turn >= first && turn <= p.lasts[i] {
				found.agent, found.step, found.begin, found.steps = i, turn-first, first, p.lasts[i]-first+1
			}
		}
		return true
	})
	return found, total, ok
}
