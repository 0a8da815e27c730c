package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Questions among the requests are checked, and are in no latency, no count of requests and
// no limit but those on wrong answers: their lengths are not the workload's. They are part of
// the load, and what they make of it is in throughput and in the queue.

// Alone holds the results of the questions of a kind that went out one at a time before the load.
// Of greedy ones the first pass is the reference for the others.
type Alone struct {
	Kind     string `json:"kind"`
	Answered int    `json:"answered"`
	Wrong    int    `json:"wrong"`
	Why      string `json:"why"` // they are not sent under load
}

// asked holds the results of the questions of a kind in the window.
type asked struct {
	kind                 string
	due, answered, wrong int
	differAt             []int // of those whose place is known
}

// questions are those of the window.
type questions struct {
	alone  []Alone
	kinds  map[string]*asked
	inTurn []checked // whose answers are known and came

	prompt, cached int64 // tokens of the prompts of these whose usage tells what came from a cache
}

// checked is an answer that was: when it was due, and of which kind.
type checked struct {
	due   int64
	kind  string
	wrong bool
}

// greedyKind are the questions whose right answer is what the server said alone.
const greedyKind = "greedy"

// telling is the share of wrong answers alone from which on those of a kind tell nothing of a
// load.
const telling = 0.5

// addQuestion takes in a question that was due in the window.
func (q *questions) addQuestion(r *record.Row) {
	kind, _, _ := strings.Cut(r.Question, "/")
	k := q.kinds[kind]
	if k == nil {
		kind = strings.Clone(kind) // of a text of the whole row
		k = &asked{kind: kind}
		if q.kinds == nil {
			q.kinds = map[string]*asked{}
		}
		q.kinds[kind] = k
	}
	k.due++
	if r.Outcome != record.OK {
		return
	}
	k.answered++
	if r.Wrong {
		k.wrong++
	}
	if r.DiffersAt >= 0 {
		k.differAt = append(k.differAt, int(r.DiffersAt))
	}
	if kind != greedyKind {
		q.inTurn = append(q.inTurn, checked{r.Due, k.kind, r.Wrong})
		if r.CachedTokens >= 0 && r.PromptTokens > 0 {
			q.prompt, q.cached = q.prompt+int64(r.PromptTokens), q.cached+int64(r.CachedTokens)
		}
	}
}

// dueCount returns the number of questions that came due.
func (q *questions) dueCount() (n int) {
	for _, k := range q.kinds {
		n += k.due
	}
	return n
}

// isTelling says whether wrong answers of a kind would tell of the load.
func (q *questions) isTelling(kind string) bool {
	for _, a := range q.alone {
		if a.Kind == kind {
			return a.Why == "" && a.Answered > 0 && float64(a.Wrong) < telling*float64(a.Answered)
		}
	}
	return true // what they were alone is not known
}

// ofLoad are the answers by which the share of wrong ones is judged, as they were due.
func (q *questions) ofLoad() []checked {
	list := slices.DeleteFunc(slices.Clone(q.inTurn), func(c checked) bool { return !q.isTelling(c.kind) })
	slices.SortStableFunc(list, func(a, b checked) int { return cmp.Compare(a.due, b.due) })
	return list
}

// result returns the results of the questions. It returns nil where there were none.
func (q *questions) result() *result.Answers {
	if len(q.kinds) == 0 && len(q.alone) == 0 {
		return nil
	}
	out := &result.Answers{Kinds: []result.AnswersOf{}}
	var known, greedy result.Answered
	seen := map[string]bool{}
	one := func(kind string, a Alone) {
		seen[kind] = true
		k := cmp.Or(q.kinds[kind], &asked{})
		of := result.AnswersOf{Kind: kind, Asked: k.due, NotAsked: a.Why,
			Checked: result.Answered{Answered: k.answered, Wrong: k.wrong, AloneAnswered: a.Answered, AloneWrong: a.Wrong}}
		of.Unusable = kind != greedyKind && a.Why == "" && !q.isTelling(kind)
		if len(k.differAt) > 0 {
			slices.Sort(k.differAt)
			of.DifferAt = &k.differAt[len(k.differAt)/2]
		}
		switch {
		case kind == greedyKind:
			greedy = of.Checked
		case !of.Unusable:
			known.Answered, known.Wrong = known.Answered+k.answered, known.Wrong+k.wrong
			known.AloneAnswered, known.AloneWrong = known.AloneAnswered+a.Answered, known.AloneWrong+a.Wrong
		}
		setShares(&of.Checked)
		out.Kinds = append(out.Kinds, of)
		out.Asked += k.due
		out.Unanswered += k.due - k.answered
	}
	for _, a := range q.alone {
		one(a.Kind, a)
	}
	var rest []string // of a run whose questions alone are lost
	for kind := range q.kinds {
		if !seen[kind] {
			rest = append(rest, kind)
		}
	}
	slices.Sort(rest)
	for _, kind := range rest {
		one(kind, Alone{Kind: kind})
	}
	if known.Answered+known.AloneAnswered > 0 {
		setShares(&known)
		known.Chance = chanceOf(out.Kinds)
		out.Wrong = &known
	}
	if greedy.Answered+greedy.AloneAnswered > 0 {
		setShares(&greedy)
		out.Differ = &greedy
	}
	if q.prompt > 0 {
		out.CachedShare = shareOf(q.cached, q.prompt)
	}
	out.Finding = answersFinding(out)
	return out
}

// countViolations are those of a limit on wrong answers, in equal blocks of the answers that it is
// about.
func (q *questions) countViolations(v *Violations, claim, blocks int) {
	list := q.ofLoad()
	n := len(list)
	v.Due[claim], v.Of[claim], v.Blocks[claim] = n, 0, make([]int, min(blocks, n))
	for i := range list {
		if list[i].wrong {
			v.Of[claim]++
			v.Blocks[claim][min(i*len(v.Blocks[claim])/n, len(v.Blocks[claim])-1)]++
		}
	}
}

// judgeLimit judges a limit on the share of wrong answers. They are a sample of what the server
// answers: it is met or not met where the interval of their share lies on one side.
func (q *questions) judgeLimit(out *result.Limit) {
	a := q.result()
	out.Attained, out.Met = nil, undecided
	if a == nil || a.Wrong == nil || a.Wrong.Answered == 0 {
		out.Why = result.Reason{Code: result.NoAnswerTells}
		if a != nil && slices.ContainsFunc(a.Kinds, func(k result.AnswersOf) bool { return k.Unusable }) {
			out.Why = result.Reason{Code: result.WrongAtOneUser}
		}
		return
	}
	x := a.Wrong
	out.Value = x.Share
	why := result.Reason{N: float64(x.Wrong), Of: float64(x.Answered), Low: x.CI95[0], High: x.CI95[1], Share: out.Limit}
	switch {
	case x.CI95[1] < out.Limit:
		out.Met = yes
	case x.CI95[0] >= out.Limit:
		why.Code = result.WrongAnswers
		if x.AloneCI95 != nil && x.AloneCI95[0] >= out.Limit {
			why.AloneN, why.AloneOf = float64(x.AloneWrong), float64(x.AloneAnswered)
		}
		out.Met, out.Why = no, why
	default:
		why.Code = result.WrongUndecided
		if x.Wrong == 0 {
			why.Needed = float64(enoughRight(out.Limit))
		} else if enough, ok := enoughAt(x.Wrong, x.Answered, out.Limit); ok {
			why.Needed = float64(enough)
		}
		out.Why = why
	}
}

// enoughRight is of how many answers all have to be right for their share of wrong ones to be
// below a limit.
func enoughRight(limit float64) int {
	return int(math.Ceil(math.Log((1-level)/2) / math.Log1p(-limit)))
}

// enoughAt is of about how many answers the interval lies on one side of a limit if the share of
// wrong ones stays what it is; false where no number of note is enough.
func enoughAt(wrong, of int, limit float64) (int, bool) {
	const most = 1 << 20
	tells := func(n int) bool {
		v := stats.ClopperPearson(int(math.Round(float64(wrong)/float64(of)*float64(n))), n, 1, level)
		return v.Hi < limit || v.Lo >= limit
	}
	n := 2 * of
	for ; !tells(n); n *= 2 {
		if n > most {
			return 0, false
		}
	}
	few, enough := n/2, n
	for enough-few > max(few/50, 1) {
		if mid := (few + enough) / 2; tells(mid) {
			enough = mid
		} else {
			few = mid
		}
	}
	return enough, true
}

// setShares works out shares with their intervals, and how likely chance makes such a difference.
func setShares(a *result.Answered) {
	of := func(wrong, n int) (*float64, *[2]float64) {
		if n == 0 {
			return nil, nil
		}
		v := stats.ClopperPearson(wrong, n, 1, level)
		return shareOf(int64(wrong), int64(n)), &[2]float64{v.Lo, v.Hi}
	}
	a.Share, a.CI95 = of(a.Wrong, a.Answered)
	a.AloneShare, a.AloneCI95 = of(a.AloneWrong, a.AloneAnswered)
	if a.Answered > 0 && a.AloneAnswered > 0 {
		p := stats.MoreOften(a.Wrong, a.Answered, a.AloneWrong, a.AloneAnswered)
		a.Chance = &p
	}
}

// chanceOf returns the probability that as many more answers are wrong under the load by chance. It
// compares kind by kind. Pooled, a kind that is wrong often would look like damage where the load
// has more of it than ran alone.
func chanceOf(kinds []result.AnswersOf) *float64 {
	var strata []stats.Compared
	for i := range kinds {
		if k := &kinds[i]; k.Kind != greedyKind && !k.Unusable && k.Checked.Chance != nil {
			strata = append(strata, stats.Compared{K: k.Checked.Wrong, N: k.Checked.Answered, J: k.Checked.AloneWrong, M: k.Checked.AloneAnswered})
		}
	}
	if len(strata) == 0 {
		return nil
	}
	p := stats.MoreOftenIn(strata)
	return &p
}

// tellsDamage says whether known answers would have told of damage to as many answers as greedy
// ones differ: only then is it batch variance that these differ by.
func tellsDamage(greedy, known *result.Answered) bool {
	share, ok := known.DetectableShare()
	return ok && greedy.CI95 != nil && greedy.CI95[0] > share
}

// answersFinding returns what the answers of a load say of the server.
func answersFinding(a *result.Answers) result.AnswersFinding {
	more := func(x *result.Answered) bool { return x != nil && x.Chance != nil && *x.Chance < result.BeyondChance }
	tells := a.Wrong != nil && a.Wrong.Answered > 0 && a.Wrong.AloneAnswered > 0
	switch {
	case tells && more(a.Wrong):
		return result.AnswersDamaged
	case more(a.Differ) && tells && tellsDamage(a.Differ, a.Wrong):
		return result.AnswersVary
	case more(a.Differ):
		return result.AnswersDiffer
	case tells || a.Differ != nil && a.Differ.Chance != nil:
		return result.AnswersSame
	}
	return result.AnswersInconclusive
}
