package result

import "pitot/internal/stats"

// Answers holds the results of the questions that were due in the window. Those of a kind are
// compared with the same questions sent alone before the load.
type Answers struct {
	Asked      int            `json:"asked"`      // due in the window, in place of requests of the workload
	Unanswered int            `json:"unanswered"` // of them, that failed, were cut or never sent
	Kinds      []AnswersOf    `json:"kinds"`
	Wrong      *Answered      `json:"wrong"`  // of all kinds with known answers that are right at one user; null: there are none
	Differ     *Answered      `json:"differ"` // of greedy answers: the wrong ones differ from that of the same prompt alone; null: there are none
	Finding    AnswersFinding `json:"finding"`

	// CachedShare is the share of the prompts of known answers that came from the server's prefix
	// cache. It is there where the server reports it. These prompts show nothing of how the server
	// computes prompts.
	CachedShare *float64 `json:"cached_share,omitempty"`
}

// AnswersOf is the questions of one kind.
type AnswersOf struct {
	Kind     string   `json:"kind"`
	Checked  Answered `json:"checked"`
	Asked    int      `json:"asked"`
	Unusable bool     `json:"unusable"`                   // half or more are wrong alone already
	NotAsked string   `json:"not_asked,omitempty"`        // why there are none
	DifferAt *int     `json:"differ_at_tokens,omitempty"` // tokens before the first that differs, of greedy answers: the median
}

// Answered is answers that came to their end, under the load and alone, and how many of them
// are wrong. Intervals are Clopper and Pearson's, which take answers for independent.
type Answered struct {
	Answered      int         `json:"answered"`
	Wrong         int         `json:"wrong"`
	Share         *float64    `json:"wrong_share"` // null: none
	CI95          *[2]float64 `json:"ci95"`
	AloneAnswered int         `json:"alone_answered"`
	AloneWrong    int         `json:"alone_wrong"`
	AloneShare    *float64    `json:"alone_wrong_share"`
	AloneCI95     *[2]float64 `json:"alone_ci95"`
	Chance        *float64    `json:"chance"` // the probability of as many more wrong answers under the load if it makes no difference (Fisher's exact test)
}

// DetectableShare returns the share of wrong answers that four loads of five would show to be more
// than chance; false where no share would.
func (x *Answered) DetectableShare() (share float64, ok bool) {
	return stats.DetectableShare(x.Answered, x.AloneWrong, x.AloneAnswered, BeyondChance, 0.8)
}

// AnswersFinding is the conclusion that the answers allow on the server.
type AnswersFinding string

// The findings that there are.
const (
	AnswersDamaged      AnswersFinding = "damaged"      // more are wrong under the load than alone
	AnswersVary         AnswersFinding = "vary"         // greedy answers differ, and no more known ones are wrong, which would have told of as much damage: batch variance
	AnswersDiffer       AnswersFinding = "differ"       // greedy answers differ, and known ones do not tell whether by batch variance or by damage
	AnswersSame         AnswersFinding = "same"         // no more than chance
	AnswersInconclusive AnswersFinding = "inconclusive" // wrong alone already, or too few
)

// BeyondChance is the probability below which chance does not explain the additional wrong answers
// under the load. The probability is that of as many more where the load makes no difference.
const BeyondChance = 0.01
