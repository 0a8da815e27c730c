package workload

import (
	"fmt"
	"math"

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
	system []Message // none or one
	tokens int       // of it
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
	}
	v := &Conversations{config: c}
	if c.System > 0 {
		words := c.Calibration.besides(c.Calibration.System, c.System)
		v.tokens = c.Calibration.length(c.Calibration.System, words)
		v.system = []Message{{Role: "system", Segments: []Segment{{Seed: seed.At(c.Nonce, streamSystem, 0), Words: words}}}}
	}
	return v, nil
}

// turns is how many requests a conversation has.
func (v *Conversations) turns(session int64) int32 {
	return int32(min(v.config.Turns.Draw(seed.At(v.config.Seed, streamTurns, uint64(session))), MostTurns))
}

// At implements [Source]. Item TurnItem(s, k) is turn k of conversation s.
func (v *Conversations) At(item int64) (Request, error) {
	c := &v.config
	session, last := SplitItem(item)
	if item < 0 {
		return Request{}, fmt.Errorf("conversations: no request %d", item)
	}
	r, err := c.First.At(session)
	if err != nil {
		return r, err
	}
	r.ID, r.Session, r.Turn, r.Turns = item, session, last, v.turns(session)
	if r.Input >= 0 {
		r.Input += v.tokens
	}
	messages := make([]Message, 0, len(v.system)+len(r.Messages)+2*int(last))
	r.Messages = append(append(messages, v.system...), r.Messages...)
	for turn := int32(1); turn <= last; turn++ {
		before, now := TurnItem(session, turn-1), TurnItem(session, turn)
		answer := Segment{Seed: seed.At(c.Nonce, streamAnswer, uint64(before)), Words: max(r.Output, 1), Served: !c.Planned, Item: before}
		words := c.Calibration.besides(c.Calibration.Turn, c.Input.Draw(seed.At(c.Seed, streamTurnInput, uint64(now))))
		own := Segment{Seed: seed.At(c.Nonce, streamContent, uint64(now)), Words: words}
		r.Messages = append(r.Messages, Message{Role: "assistant", Segments: []Segment{answer}}, Message{Role: "user", Segments: []Segment{own}})
		if r.Input >= 0 {
			r.History = r.Input + answer.Words
			r.Input = r.History + c.Calibration.length(c.Calibration.Turn, words)
		}
		r.Output = c.Output.Draw(seed.At(c.Seed, streamTurnOutput, uint64(now)))
	}
	return r, nil
}

// Follow implements [Sessions].
func (v *Conversations) Follow(item int64, answered bool) []Next {
	session, turn := SplitItem(item)
	if !answered || turn+1 >= v.turns(session) {
		return nil
	}
	next := TurnItem(session, turn+1)
	return []Next{{Item: next, After: v.config.Think.Draw(seed.At(v.config.Seed, streamThink, uint64(next)))}}
}

// MeanTurns is how many requests a conversation has on average, if all its turns are
// answered.
func (v *Conversations) MeanTurns() float64 { return MeanTurns(v.config.Turns) }

// MeanTurns is the mean of turns that are drawn from lengths.
func MeanTurns(turns Lengths) float64 {
	mean, _ := turnsOf(turns)
	return mean
}

// ClusterOf is how many requests the conversation has that a request is of, on average,
// where turns are drawn from lengths: more than conversations have on average, since more
// requests are of long ones.
func ClusterOf(turns Lengths) float64 {
	_, cluster := turnsOf(turns)
	return cluster
}

func turnsOf(turns Lengths) (mean, cluster float64) {
	const draws = 1024
	sum, squares := 0., 0.
	for i := range draws {
		n := float64(min(turns.Quantile((float64(i)+0.5)/draws), MostTurns))
		sum, squares = sum+n, squares+n*n
	}
	return sum / draws, squares / sum
}

// besides is how many words come nearest to so many tokens of a message that has an
// overhead of its own: one at least.
func (c Calibration) besides(overhead float64, tokens int) int {
	if !c.known() {
		return max(tokens, 1)
	}
	return max(int(math.Round((float64(tokens)-overhead)/c.PerWord)), 1)
}

// length is how many tokens so many words come to with an overhead.
func (c Calibration) length(overhead float64, words int) int {
	if !c.known() {
		return words
	}
	return int(math.Round(overhead + c.PerWord*float64(words)))
}
