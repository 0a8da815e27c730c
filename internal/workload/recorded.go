package workload

import (
	"fmt"
	"slices"
	"time"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// RecordedConfig describes [RecordedConversations].
type RecordedConfig struct {
	Turns Lengths // at most so many turns of each
	Think Pause   // of the user, where a file says none
	// Recorded says that the history holds the answers that the file has, in place of those
	// that the server gives: what is asked then depends on nothing that it says.
	Recorded bool
	Seed     uint64
}

// RecordedConversations are those of a file, asked turn after turn. A turn that is not
// answered ends its conversation. It is safe for concurrent use.
type RecordedConversations struct {
	file   *File
	config RecordedConfig
}

// NewConversations asks the conversations of a file that has such.
func (f *File) NewConversations(c RecordedConfig) (*RecordedConversations, error) {
	if f.stats.Later == 0 {
		return nil, say.Errorf("%s has no conversations, only first questions", f.path).WithHint("leave --turns out")
	}
	return &RecordedConversations{f, c}, nil
}

// Begin says which conversation item 0 begins.
func (v *RecordedConversations) Begin(row int64) { v.file.Begin(row) }

// mostTurns returns the largest number of turns of a conversation that are sent.
func (v *RecordedConversations) mostTurns(session int64) int {
	return min(v.config.Turns.Draw(seed.At(v.config.Seed, streamTurns, uint64(session))), MostTurns)
}

// read gives the record of a conversation without the turns that are not asked.
func (v *RecordedConversations) read(session int64) (record, error) {
	r, err := v.file.read(session)
	if err == nil {
		r.later = r.later[:min(len(r.later), v.mostTurns(session)-1)]
	}
	return r, err
}

// At implements [Source]. Item TurnItem(s, k) is turn k of conversation s.
func (v *RecordedConversations) At(item int64) (Request, error) {
	session, last := SplitItem(item)
	if item < 0 {
		return Request{}, fmt.Errorf("workload %s: no request %d", v.file.path, item)
	}
	r, err := v.read(session)
	if err != nil {
		return Request{}, err
	}
	if int(last) > len(r.later) {
		return Request{}, fmt.Errorf("workload %s: no turn %d of conversation %d", v.file.path, last, session)
	}
	q := v.file.makeRequest(session, r)
	q.ID, q.Session, q.Turn, q.Turns = item, session, last, int32(1+len(r.later))
	q.Messages = slices.Clone(q.Messages)
	for k, t := range r.later[:last] {
		before := TurnItem(session, int32(k))
		answer := Segment{Text: t.answer}
		if !v.config.Recorded || t.answer == "" {
			words := q.Output
			if words == Unknown {
				words = unknownAnswer
			}
			answer = WordSegment(v.config.Seed, streamAnswer, uint64(before), words)
			answer.Served, answer.Item = !v.config.Recorded, before
		}
		q.Messages = append(q.Messages, NewMessage("assistant", answer), NewMessage("user", Segment{Text: t.text}))
		if q.Output = t.output; q.Output == Unknown {
			q.Output = v.file.options.Output.Draw(seed.At(v.file.options.Seed, streamOutput, uint64(TurnItem(session, int32(k+1)))))
		}
	}
	q.Exact = v.file.options.Exact && q.Output != Unknown
	return q, nil
}

// unknownAnswer stands for the length of an answer that nothing says, in tokens.
const unknownAnswer = 128

// Follow implements [Sessions].
func (v *RecordedConversations) Follow(item int64, answered bool) []Next {
	session, turn := SplitItem(item)
	r, err := v.read(session)
	if !answered || err != nil || int(turn) >= len(r.later) {
		return nil
	}
	next := Next{Item: TurnItem(session, turn+1), After: r.later[turn].after}
	if next.After == time.Duration(Unknown) {
		next.After = v.config.Think.Draw(seed.At(v.config.Seed, streamThink, uint64(next.Item)))
	}
	return []Next{next}
}

// MeanTurns returns the mean number of requests of a conversation if the server answers all its
// turns. It is the mean over the first conversations of the file.
func (v *RecordedConversations) MeanTurns() float64 {
	n, sum := min(int64(len(v.file.entries)), 1000), 0
	for i := range n {
		if r, err := v.read(i); err == nil {
			sum += 1 + len(r.later)
		}
	}
	return float64(sum) / float64(n)
}

// Describe describes what follows the first turn.
func (v *RecordedConversations) Describe() *ConversationDescription {
	d := &ConversationDescription{Turns: v.config.Turns.String(), Think: v.config.Think.String(), History: "served"}
	if v.config.Recorded {
		d.History = "planned"
	}
	return d
}
