package metrics

import (
	"pitot/internal/metrics/validity"
	"pitot/internal/results/record"
)

// common is the text of answers in the tokens of the user's own tokenizer (--tokenizer):
// one counter for servers that have different ones.
type common struct {
	tokens    int64 // millionths of those that came in the window
	counted   int64 // answers of which it has them
	uncounted int64 // answers of which it has not
	behind    int64 // millionths of those behind the first event, of answers that ended in the window
	took      int64 // nanoseconds from their first token to their last
}

// countRow counts a request of any time by its chunks in the window.
func (c *common) countRow(r *record.Row, s *Stream, window *validity.Conditions) {
	const million = 1_000_000
	switch {
	case r.Question != "": // calls of tools have no text
		return
	case r.Counted < 0:
		if r.Outcome == record.OK && (s.inside > 0 || (r.TextBytes > 0 || s.Count > 0) && window.InWindow(r.Done)) {
			c.uncounted++
		}
		return
	case s.Count == 0: // all at its end
		if c.counted++; window.InWindow(r.Done) {
			c.tokens += int64(r.Counted) * million
		}
		return
	}
	c.counted++
	inside := float64(s.inside) / float64(s.Count)
	first := 1 / float64(s.Count) // the share of the first event
	if !s.Blind && s.Tokens > 0 {
		inside = float64(s.tokensIn) / float64(s.Tokens)
		first = float64(max(r.FirstTokens, 0)) / float64(s.Tokens)
	}
	c.tokens += int64(float64(r.Counted) * inside * million)
	if took := r.LastToken - r.FirstToken; r.Outcome == record.OK && r.FirstToken >= 0 && took > 0 && r.Choices <= 1 && first < 1 && window.InWindow(r.Done) {
		c.behind += int64(float64(r.Counted) * (1 - first) * million)
		c.took += took
	}
}

// isComplete reports whether a --tokenizer counted every answer: of a part it would be no rate.
func (c *common) isComplete() bool { return c.counted > 0 && c.uncounted == 0 }

// tokensPerSecond is the tokens a second of a window of so many seconds.
func (c *common) tokensPerSecond(seconds float64) (float64, bool) {
	return float64(c.tokens) / 1e6 / seconds, c.isComplete()
}

// answerSpeed returns the tokens per second of one answer after its first event.
func (c *common) answerSpeed() (float64, bool) {
	if !c.isComplete() || c.took == 0 {
		return 0, false
	}
	return float64(c.behind) / 1e6 / (float64(c.took) / 1e9), true
}
