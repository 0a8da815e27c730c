// Package question is requests whose answers are known: what is asked among a load to see
// whether the server still answers right, and the check of what it answered.
//
// A question is pure in (seed, kind, number), and which one stands at an item of a load is
// pure in (seed, item). Nothing here keeps an answer but the check of greedy ones, which
// compares with the text of the same prompt asked alone.
package question

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
)

// Kind is a kind of question.
type Kind uint8

// The kinds, in the order in which they are shown.
const (
	Numbers Kind = iota // a number in words is to be written in digits
	Echo                // a line of words is to be repeated
	JSON                // an object that the schema in response_format allows
	Needle              // a phrase is to be found in a long prompt
	Tool                // a function is to be called with given arguments
	Greedy              // the answer at temperature 0 is to be that of the prompt asked alone
	kinds
)

// Count is the number of kinds.
const Count = int(kinds)

var names = [Count]string{"numbers", "echo", "json", "needle", "tool", "greedy"}

// String gives the word used in flags and files.
func (k Kind) String() string { return names[min(k, kinds-1)] }

// Kinds lists them.
func Kinds() (list []Kind) {
	for k := range kinds {
		list = append(list, k)
	}
	return list
}

// ParseKind gives the kind of a name.
func ParseKind(name string) (Kind, bool) {
	i := slices.Index(names[:], name)
	return Kind(max(i, 0)), i >= 0
}

// HasKnownAnswer says whether what is right follows from the question alone.
func (k Kind) HasKnownAnswer() bool { return k != Greedy }

// NeedsChat says that the question is put by fields of OpenAI's chat requests.
func (k Kind) NeedsChat() bool { return k == JSON || k == Tool }

// Shares is which shares of the requests are questions. The zero value is none.
type Shares struct {
	All  float64        // spread over the kinds that the target can be asked
	Each [Count]float64 // of the kinds that are named
}

// UsualShares is the share where questions are wanted and none is given.
func UsualShares() Shares { return Shares{All: .05} }

// most is the largest share: what is measured is the workload.
const most = 0.5

// ParseShares reads "5%", of all kinds together, or shares of kinds, "numbers=5%,json=1%".
// Every error is a [say.Error].
func ParseShares(text string) (Shares, error) {
	var s Shares
	const hint = "write a share of the requests, 5%, or shares of kinds: numbers=5%,json=1%"
	for _, part := range strings.Split(text, ",") {
		name, written, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, written = "", name
		}
		number, percent := strings.CutSuffix(strings.TrimSpace(written), "%")
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !percent || math.IsNaN(x) {
			return Shares{}, say.Errorf("%.60q is no share of the requests", strings.TrimSpace(part)).WithHint(hint)
		}
		if x /= 100; x <= 0 || x > most {
			return Shares{}, say.Errorf("a share of %s is out of range", strings.TrimSpace(written)).WithHint("above 0% and at most 50%: what is measured is the workload")
		}
		if !named {
			if s != (Shares{}) {
				return Shares{}, say.Errorf("%q is a share of no kind", strings.TrimSpace(part)).WithHint(hint)
			}
			s.All = x
			continue
		}
		k, ok := ParseKind(strings.ToLower(strings.TrimSpace(name)))
		switch {
		case !ok:
			return Shares{}, say.Errorf("there are no questions of the kind %.60q", strings.TrimSpace(name)).WithHint(say.KnownHint(name, names[:]))
		case s.All > 0:
			return Shares{}, say.Errorf("%q beside a share of all kinds", strings.TrimSpace(part)).WithHint(hint)
		case s.Each[k] > 0:
			return Shares{}, say.Errorf("the share of %s is given twice", k).WithHint("keep one of them")
		}
		s.Each[k] = x
	}
	if s.TotalShare() > most {
		return Shares{}, say.Errorf("the shares come to %s", say.Percent(s.TotalShare())).WithHint("at most 50% together: what is measured is the workload")
	}
	return s, nil
}

// IsNone says that there are no questions.
func (s Shares) IsNone() bool { return s == Shares{} }

// TotalShare is the share of the requests that are questions.
func (s Shares) TotalShare() float64 {
	sum := s.All
	for _, x := range s.Each {
		sum += x
	}
	return sum
}

// String is the canonical spelling, "" for none. It parses to equal shares.
func (s Shares) String() string {
	written := func(x float64) string { return strconv.FormatFloat(100*x, 'g', 12, 64) + "%" }
	if s.All > 0 {
		return written(s.All)
	}
	var parts []string
	for k, x := range s.Each {
		if x > 0 {
			parts = append(parts, names[k]+"="+written(x))
		}
	}
	return strings.Join(parts, ",")
}

// Of gives the share of each kind, where some kinds cannot be asked: those that are named
// and cannot are the error.
func (s Shares) Of(can func(Kind) bool) (of [Count]float64, err error) {
	of = s.Each
	n := 0
	for _, k := range Kinds() {
		if can(k) {
			n++
		} else if of[k] > 0 {
			return of, say.Errorf("questions of the kind %s need fields of OpenAI's chat requests, which this target does not get", k).WithHint("use other kinds: --check-answers numbers=5%, or --api openai-chat")
		}
	}
	if s.All > 0 {
		for _, k := range Kinds() {
			if can(k) {
				of[k] = s.All / float64(n)
			}
		}
	}
	return of, nil
}

// Asks says whether some question of the shares has an answer that is known beforehand.
func (s Shares) Asks() bool {
	known := s.All
	for k, x := range s.Each {
		if Kind(k).HasKnownAnswer() {
			known += x
		}
	}
	return known > 0
}
