package config

import (
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/question"
)

// VerifiedShares is which requests are questions whose answers are checked: those that are asked
// for, and the usual share where the objective has a limit on wrong answers.
func (p *Plan) VerifiedShares() question.Shares {
	switch {
	case !p.Ask.Questions.IsNone():
		return p.Ask.Questions
	case p.SLO.LimitsAnswers():
		return question.UsualShares()
	}
	return question.Shares{}
}

// questionShares is shares of the requests that are questions.
func questionShares() kind[question.Shares] {
	return kind[question.Shares]{parse: question.ParseShares, write: question.Shares.String}
}

// kindsOfQuestions lists them for the help.
func kindsOfQuestions() string {
	var names []string
	for _, k := range question.Kinds() {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// checkQuestions refuses questions where nothing would be learnt of their answers.
func (p *Plan) checkQuestions() error {
	s := p.VerifiedShares()
	if s.IsNone() {
		return nil
	}
	what := "--check-answers"
	if p.Ask.Questions.IsNone() {
		what = "a limit on wrong answers"
	}
	switch {
	case p.Kind() == KindSim:
		return say.Errorf("%s looks at what is answered, and %s answers in no words", what, p.Spec).WithHint("use mock: in place of sim:, or a server")
	case p.NoProbe:
		return say.Errorf("%s asks each question alone before the load, which --no-probe forbids", what).WithHint("keep one of them")
	case p.Workers > 0:
		return say.Errorf("%s asks each question alone, and the workers of --fleet would all ask at once", what).WithHint("leave --fleet out, or verify in a run of its own")
	case p.HasConversations():
		return say.Errorf("%s and conversations: a question would replace a whole conversation and change the load", what).WithHint("verify with requests that stand alone: leave --turns out, or take --workload random")
	case p.Choices > 1:
		return say.Errorf("%s and --set n=%d: answers at temperature 1 are drawn, and right or wrong by chance", what, p.Choices).WithHint("leave --set n out")
	case p.SLO.LimitsAnswers() && !s.Asks():
		return say.Errorf("a limit on wrong answers, and all questions are greedy ones, which have no right answer").WithHint("ask others too: --check-answers numbers=5%,greedy=1%")
	}
	return nil
}
