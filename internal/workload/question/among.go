package question

import (
	"math"

	"pitot/internal/workload"
	"pitot/internal/workload/seed"
)

// Sizes says how many questions of each kind are asked alone; none of a kind without any.
type Sizes [Count]int

// BankSize is about how many questions of all kinds are asked alone, in each pass. Greedy ones
// are the same in both passes and under load, for it is their own answers that they are held
// against. Of the other kinds each is asked once: a server that is wrong on some questions
// would else be judged by which of them are in a bank, however many answers came.
const BankSize = 48

// fresh is the first number of the questions under load.
const fresh = 1 << 20

// NumberAlone is the number of the i-th question of a kind in a pass before the load.
func NumberAlone(k Kind, pass, i int) int {
	if k == Greedy {
		return i
	}
	return pass*BankSize + i
}

// leastGreedy is the smallest number of greedy questions that are sent. These alone show how often
// the server differs from itself at one user.
const leastGreedy = 24

// margin is the number of questions of a kind that are sent alone beyond those expected under load.
const margin = 1

// SizesOf returns how many questions of each kind with a share are asked alone, in each pass: about
// as many in both as requests make under load, and no more than a bank's. 0 requests are a number
// that is not known. Of greedy ones, which are the same in both passes, it is as many as under
// load.
func SizesOf(shares [Count]float64, requests float64) (s Sizes) {
	total := 0.
	for _, x := range shares {
		total += x
	}
	for k, x := range shares {
		if x <= 0 {
			continue
		}
		least, passes := 4, Passes
		if Kind(k) == Greedy {
			least, passes = leastGreedy, 1
		}
		s[k] = max(int(BankSize*x/total+.5), least)
		if requests > 0 {
			enough := int(math.Ceil(min(x*requests, BankSize))) + margin
			s[k] = min(s[k], (enough+passes-1)/passes)
		}
	}
	return s
}

// Passes is the number of times that each question is sent alone. What a server does twice it does
// by itself, without any load.
const Passes = 2

// ExpectedAlone returns about how many requests are sent before a load of about so many, 0 where
// that is not known, and of how many tokens, where a target can be asked all kinds.
func ExpectedAlone(s Shares, load float64) (requests int, input, output float64) {
	of, _ := s.Of(func(Kind) bool { return true })
	for k, n := range SizesOf(of, load) {
		words := 32
		switch Kind(k) {
		case Needle:
			words += needleWords
		case Greedy:
			words = greedyWords
		}
		requests += Passes * n
		input += float64(Passes * n * words)
		output += float64(Passes * n * AnswerTokens)
	}
	return requests, input, output
}

// Among is a workload in which some requests are questions: they stand in the place of the
// workload's own, which keep their items, so that nothing else changes. It is pure in the
// item, and safe for concurrent use.
type Among struct {
	inner  workload.Source
	bank   *Bank
	shares [Count]float64
	sizes  Sizes
	seed   uint64
}

// NewAmong puts questions of a bank among the requests of a workload that has no sessions;
// seed says which.
func NewAmong(inner workload.Source, bank *Bank, shares [Count]float64, sizes Sizes, seed uint64) *Among {
	return &Among{inner, bank, shares, sizes, seed}
}

// FindQuestion says which question an item is, false for one of the workload's own.
func (a *Among) FindQuestion(item int64) (k Kind, number int, ok bool) {
	u := seed.Float(seed.At(a.seed, streamItem, uint64(item)))
	for k, x := range a.shares {
		if x == 0 || a.sizes[k] == 0 {
			continue
		}
		if u -= x; u < 0 {
			u := seed.At(a.seed, streamNumber, uint64(item))
			if Kind(k) == Greedy {
				return Greedy, int(u % uint64(a.sizes[k])), true
			}
			return Kind(k), fresh + int(u>>12), true
		}
	}
	return 0, 0, false
}

// At implements [workload.Source].
func (a *Among) At(item int64) (workload.Request, error) {
	k, number, ok := a.FindQuestion(item)
	if !ok {
		return a.inner.At(item)
	}
	r := a.bank.Ask(k, number).Request
	r.ID = item
	return r, nil
}

// Ask gives the question that an item is, false for one of the workload's own.
func (a *Among) Ask(item int64) (Question, bool) {
	k, number, ok := a.FindQuestion(item)
	if !ok {
		return Question{}, false
	}
	return a.bank.Ask(k, number), true
}
