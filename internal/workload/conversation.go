package workload

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// ConversationConfig describes [Conversations].
type ConversationConfig struct {
	First  Source  // what conversations begin with: item s begins number s
	Turns  Lengths // requests of a conversation
	Input  Lengths // tokens that each further turn adds to the prompt, besides the answer before it
	Output Lengths // tokens to ask for in further turns
	Think  Pause   // of the user, between an answer and the next turn
	System int     // tokens of a system prompt, the same for all; 0 for none

	SubAgents SubAgents // that their steps start

	// Planned says that the history holds generated words in place of the answers: what
	// is asked then depends on nothing that the server says, and what it answered is not
	// read again from its cache.
	Planned bool

	// Seed and Nonce are as in [RandomConfig].
	Seed, Nonce uint64

	Calibration Calibration
}

// Conversations is a workload of chats: each turn repeats the conversation so far and
// adds a message of the user. A turn that is not answered ends its conversation. It is
// safe for concurrent use.
type Conversations struct {
	config ConversationConfig
	system opening // what all begin with
	sub    opening // what the sub-agents do
}

// opening is a system prompt.
type opening struct {
	messages []Message // none or one
	tokens   int       // of it
}

// Streams of a seed for what is drawn of conversations.
const (
	streamTurns = 0x7475_726e_0000_0000 + iota
	streamTurnInput
	streamTurnOutput
	streamThink
	streamSystem
	streamAnswer
)

// MostTurns bounds the turns of a conversation.
const MostTurns = 100_000

// NewConversations makes the workload, or says what in its description makes none.
func NewConversations(c ConversationConfig) (*Conversations, error) {
	switch {
	case c.First == nil || c.Turns.IsZero() || c.Input.IsZero() || c.Output.IsZero():
		return nil, fmt.Errorf("conversations: what they begin with, their turns or their lengths are missing")
	case c.System < 0 || c.System > MaxLength:
		return nil, fmt.Errorf("conversations: the system prompt is %d, want 0 to %d tokens", c.System, MaxLength)
	case c.mostRequests() > math.MaxInt32:
		return nil, say.Errorf("conversations of up to %s requests: more than %s are not counted", say.Count(int(c.mostRequests())), say.Count(math.MaxInt32)).
			WithHint("lower --turns, or the agents or steps of --sub-agents")
	}
	v := &Conversations{config: c}
	v.system, v.sub = v.systemPrompt(c.System, 0), v.systemPrompt(c.SubAgents.System, 1)
	return v, nil
}

// mostRequests returns the largest number of requests that a conversation may have, including those
// of sub-agents.
func (c *ConversationConfig) mostRequests() int64 {
	turns := int64(min(c.Turns.Quantile(1), MostTurns))
	if c.SubAgents.IsNone() {
		return turns
	}
	return turns * (1 + int64(c.SubAgents.Agents.Quantile(1))*int64(c.SubAgents.Steps.Quantile(1)))
}

// systemPrompt is the k-th system prompt, of so many tokens.
func (v *Conversations) systemPrompt(tokens int, k uint64) (p opening) {
	if tokens > 0 {
		c := &v.config
		template := c.Calibration.withOverhead(c.Calibration.System)
		words := template.wordsAtLeastOne(tokens)
		p.tokens = template.tokensForWords(words)
		p.messages = []Message{NewMessage("system", WordSegment(c.Nonce, streamSystem, k, words))}
	}
	return p
}

// turnCount returns the number of requests of a conversation, without those of sub-agents.
func (v *Conversations) turnCount(session int64) int32 {
	return int32(min(v.config.Turns.Draw(seed.At(v.config.Seed, streamTurns, uint64(session))), MostTurns))
}

// At implements [Source]. Item TurnItem(s, k) is request k of conversation s; those of
// sub-agents stand behind the step that starts them.
func (v *Conversations) At(item int64) (Request, error) {
	session, turn := SplitItem(item)
	if item < 0 {
		return Request{}, fmt.Errorf("conversations: no request %d", item)
	}
	p, total, ok := stepPlace{agent: -1, at: turn}, v.turnCount(session), true
	if !v.config.SubAgents.IsNone() {
		p, total, ok = v.findStep(session, turn)
	}
	if !ok {
		return Request{}, fmt.Errorf("conversations: conversation %d has no request %d", session, turn)
	}
	var r Request
	var err error
	if p.agent >= 0 {
		r = v.subStep(session, &p)
	} else if r, err = v.ownStep(session, turn); err != nil {
		return r, err
	}
	r.ID, r.Session, r.Turn, r.Turns = item, session, turn, total
	return r, nil
}

// ownStep is one of the agent's own.
func (v *Conversations) ownStep(session int64, turn int32) (Request, error) {
	c := &v.config
	r, err := c.First.At(session)
	if err != nil {
		return r, err
	}
	if r.Input >= 0 {
		r.Input += v.system.tokens
	}
	messages := make([]Message, 0, len(v.system.messages)+len(r.Messages)+2*int(turn))
	r.Messages = append(append(messages, v.system.messages...), r.Messages...)
	if c.SubAgents.IsNone() {
		for k := int32(1); k <= turn; k++ {
			v.goOn(&r, session, k-1, k, c.Input, nil)
		}
		return r, nil
	}
	v.eachStep(session, func(p stepPlace) bool {
		if p.next > turn {
			return false
		}
		var read []Segment // what the sub-agents answered in the end
		for _, last := range p.lasts {
			item := TurnItem(session, last)
			read = append(read, v.answerSegment(item, v.outputLength(item)))
		}
		v.goOn(&r, session, p.at, p.next, c.Input, read)
		return true
	})
	return r, nil
}

// subStep is one of a sub-agent's.
func (v *Conversations) subStep(session int64, p *stepPlace) (r Request) {
	c := &v.config
	input := c.SubAgents.Input
	if input.IsZero() {
		input = c.Input
	}
	item := TurnItem(session, p.begin)
	words := c.Calibration.wordsAtLeastOne(input.Draw(seed.At(c.Seed, streamTurnInput, uint64(item))))
	r = Request{Input: v.sub.tokens + c.Calibration.tokensForWords(words), Output: v.outputLength(item), Exact: true}
	r.Messages = append(make([]Message, 0, len(v.sub.messages)+1+2*int(p.step)), v.sub.messages...)
	own := WordSegment(c.Nonce, streamContent, uint64(item), words)
	r.Messages = append(r.Messages, NewMessage("user", own))
	for k := p.begin + 1; k <= p.begin+p.step; k++ {
		v.goOn(&r, session, k-1, k, input, nil)
	}
	return r
}

// SharedRequests gives requests that ask once for all that conversations begin with in common: the
// system prompts, and behind the first one what requests of [Random.SharedRequests] ask for.
func (v *Conversations) SharedRequests(firsts []Request) (list []Request) {
	for _, r := range firsts {
		r.Messages = append(slices.Clone(v.system.messages), r.Messages...)
		r.Input += v.system.tokens
		list = append(list, r)
	}
	alone := func(p opening, k int64) {
		if p.tokens == 0 {
			return
		}
		own := WordSegment(v.config.Nonce, streamSystem, uint64(2+k), 1)
		list = append(list, Request{
			ID: math.MaxInt32/2 - k, Messages: append(slices.Clone(p.messages), NewMessage("user", own)),
			Input: p.tokens + v.config.Calibration.tokensForWords(1), Output: 1, Exact: true, Session: Unknown,
		})
	}
	if len(firsts) == 0 {
		alone(v.system, 0)
	}
	alone(v.sub, 1)
	return list
}

// goOn makes a request the one that follows it: the answer to it is repeated, and a message
// is added that begins with what is read of other answers.
func (v *Conversations) goOn(r *Request, session int64, before, now int32, input Lengths, read []Segment) {
	c, item := &v.config, TurnItem(session, now)
	answer := v.answerSegment(TurnItem(session, before), r.Output)
	template := c.Calibration.withOverhead(c.Calibration.Turn)
	words := template.wordsAtLeastOne(input.Draw(seed.At(c.Seed, streamTurnInput, uint64(item))))
	own := WordSegment(c.Nonce, streamContent, uint64(item), words)
	r.Messages = append(r.Messages, NewMessage("assistant", answer), NewMessage("user", append(read, own)...))
	if r.Input >= 0 {
		r.History = r.Input + answer.Words
		r.Input = r.History + template.tokensForWords(words)
		for _, s := range read {
			r.Input += s.Words
		}
	}
	r.Output = v.outputLength(item)
}

// answerSegment stands for the answer to an item, of so many tokens.
func (v *Conversations) answerSegment(item int64, tokens int) Segment {
	s := WordSegment(v.config.Nonce, streamAnswer, uint64(item), max(tokens, 1))
	s.Served, s.Item = !v.config.Planned, item
	return s
}

// outputLength returns the planned length of the answer to a further turn.
func (v *Conversations) outputLength(item int64) int {
	return v.config.Output.Draw(seed.At(v.config.Seed, streamTurnOutput, uint64(item)))
}

// Follow implements [Sessions].
func (v *Conversations) Follow(item int64, answered bool) []Next {
	if !answered {
		return nil
	}
	session, turn := SplitItem(item)
	p, ok := stepPlace{agent: -1, next: turn + 1, own: turn+1 < v.turnCount(session)}, true
	if !v.config.SubAgents.IsNone() {
		p, _, ok = v.findStep(session, turn)
	}
	to := func(turn int32) Next {
		next := TurnItem(session, turn)
		return Next{Item: next, After: v.config.Think.Draw(seed.At(v.config.Seed, streamThink, uint64(next)))}
	}
	switch {
	case !ok || !p.own:
		return nil
	case p.agent >= 0 && p.step+1 < p.steps:
		return []Next{to(turn + 1)}
	case p.agent >= 0: // whoever waits for the last of them goes on at once
		return []Next{{Item: TurnItem(session, p.next), Join: len(p.group)}}
	case len(p.group) == 0:
		return []Next{to(p.next)}
	}
	var list []Next
	for _, first := range p.group { // all start at once
		list = append(list, Next{Item: TurnItem(session, first)})
	}
	return list
}

// TurnMoments returns the mean number of requests of a conversation whose turns are drawn from
// lengths, those of sub-agents too. cluster is the mean of the conversation of a random request.
// This is more, because more requests belong to long ones.
func TurnMoments(turns Lengths, of SubAgents) (mean, cluster float64) {
	const draws = 1024
	started, square := of.requestMoments()
	sum, squares := 0., 0.
	for i := range draws {
		n := float64(min(turns.Quantile((float64(i)+0.5)/draws), MostTurns))
		all := n + (n-1)*started
		sum, squares = sum+all, squares+all*all+(n-1)*(square-started*started)
	}
	return sum / draws, squares / sum
}
