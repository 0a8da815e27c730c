package workload

import (
	"strconv"
	"strings"

	"pitot/internal/say"
)

// Stop is where answers end. The zero value holds them to the lengths that are planned, as
// far as a server lets itself be held.
type Stop struct {
	Natural bool // where the model ends them
	Most    int  // tokens that one may have at most (max_tokens), 0 to send no such number
}

// ParseStop reads "forced", "natural" or "natural(MOST)". Every error is a [say.Error].
func ParseStop(s string) (Stop, error) {
	const hint = "write forced, natural, or natural(2048) for 2,048 tokens at most"
	text := strings.ToLower(strings.TrimSpace(s))
	switch text {
	case "forced":
		return Stop{}, nil
	case "natural":
		return Stop{Natural: true}, nil
	}
	inner, ok := strings.CutPrefix(text, "natural(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !ok || !closed {
		return Stop{}, say.Errorf("%.40q is no way for answers to end", s).WithHint(hint)
	}
	n, err := strconv.Atoi(strings.TrimSpace(inner))
	if err != nil || n < 1 || n > MaxLength {
		return Stop{}, say.Errorf("%.40q is no number of tokens, 1 to %d", inner, MaxLength).WithHint(hint)
	}
	return Stop{true, n}, nil
}

// String writes it so that ParseStop reads it back.
func (s Stop) String() string {
	switch {
	case !s.Natural:
		return "forced"
	case s.Most > 0:
		return "natural(" + strconv.Itoa(s.Most) + ")"
	}
	return "natural"
}

// Stopped is a source whose answers end where they end by themselves.
type Stopped struct {
	Source
	stop Stop
}

// Of gives a source with its answers ending so; as it is where they are held to what is
// planned.
func (s Stop) Of(src Source) Source {
	switch of, follows := src.(Sessions); {
	case !s.Natural:
		return src
	case follows:
		return stoppedSessions{Stopped{src, s}, of}
	}
	return Stopped{src, s}
}

// At gives an item: the planned length of its answer is the one at which a simulated model
// ends it.
func (s Stopped) At(item int64) (Request, error) {
	r, err := s.Source.At(item)
	r.Ends, r.Output, r.Exact = max(r.Output, 0), Unknown, false
	if s.stop.Most > 0 {
		r.Output = s.stop.Most
	}
	return r, err
}

// Inner is the source whose answers end so.
func (s Stopped) Inner() Source { return s.Source }

// stoppedSessions is one of sessions.
type stoppedSessions struct {
	Stopped
	sessions Sessions
}

// Follow implements [Sessions].
func (s stoppedSessions) Follow(item int64, answered bool) []Next {
	return s.sessions.Follow(item, answered)
}

// WithoutAnswerEnds is a source without what says where its answers end.
func WithoutAnswerEnds(src Source) Source {
	if s, ok := src.(interface{ Inner() Source }); ok {
		return s.Inner()
	}
	return src
}
