package report

import (
	"fmt"
	"math"
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// answersText says what the questions among the requests tell: first of the answers that are
// known, then of greedy ones, then what tells nothing. It is empty without questions.
// They are those of one of so many loads of a run.
func answersText(a *result.Answers, loads int) (lines texts) {
	if a == nil {
		return nil
	}
	if x := a.Wrong; x != nil && x.Answered > 0 {
		text := "answers: " + sharesText(x, "wrong")
		switch {
		case a.Finding == result.AnswersDamaged:
			text += oftenByChance(x, loads)
		case x.AloneAnswered > 0:
			text += ": no more than chance" + damageShownText(x)
		}
		if c := a.CachedShare; c != nil && *c >= mostCached {
			text += fmt.Sprintf("; %s of the tokens of these prompts came from the prefix cache, perhaps of an earlier run of this seed: they do not show how the server computes prompts", say.Percent(*c))
		}
		lines.addText(text)
	}
	if x := a.Differ; x != nil && x.Answered > 0 {
		text := "greedy answers: " + sharesText(x, "unlike the first alone")
		for _, k := range a.Kinds {
			if k.DifferAt != nil {
				text += fmt.Sprintf(", after %s in the median", say.Plural(*k.DifferAt, "token"))
			}
		}
		switch {
		case a.Finding == result.AnswersDamaged && x.Chance != nil && *x.Chance < result.BeyondChance:
			text += ": damage, as the known answers show, and perhaps batch variance"
		case a.Finding == result.AnswersVary || a.Finding == result.AnswersDiffer && a.Wrong != nil && a.Wrong.Answered > 0 && a.Wrong.AloneAnswered > 0:
			text += ": " + batchVarianceText(x, a.Wrong)
		case a.Finding == result.AnswersDiffer:
			text += ": batch variance or damage, which no known answer separates here"
		case x.Wrong > 0 && x.AloneWrong > 0:
			text += ": no more than the server differs from itself" + damageShownText(x)
		case x.AloneAnswered > 0:
			text += ": no more than chance" + damageShownText(x)
		}
		lines.addText(text)
	}
	var silent, missing []string
	for _, k := range a.Kinds {
		switch {
		case k.NotAsked != "":
			missing = append(missing, k.Kind+" ("+say.Truncate(say.PlainLine(k.NotAsked), 120)+")")
		case k.Unusable:
			silent = append(silent, fmt.Sprintf("%s (%s of %s)", k.Kind, say.Count(k.Checked.AloneWrong), say.Count(k.Checked.AloneAnswered)))
		}
	}
	if len(silent) > 0 {
		lines.addText("no use, wrong already at one user: " + strings.Join(silent, ", "))
	}
	if len(missing) > 0 {
		lines.addText("not sent, since alone none was answered: " + strings.Join(missing, ", "))
	}
	if a.Unanswered > 0 {
		lines.addFormat("%s of %s were not answered", say.Count(a.Unanswered), say.Plural(a.Asked, "question"))
	}
	if a.Asked > 0 {
		lines.addFormat("%s replaced requests: they count in the rates of requests and tokens, not in latencies or counts of requests", say.Plural(a.Asked, "question"))
	}
	return lines
}

// mostCached is from which share of the prompts' tokens on it is said that a cache had them.
const mostCached = 0.5

// damageShownText says which share of wrong answers these answers would have shown.
func damageShownText(x *result.Answered) string {
	share, ok := x.DetectableShare()
	if !ok {
		return "; too few answers to show any damage"
	}
	return fmt.Sprintf("; a share of %s or more would show in four loads of five", say.Percent(share))
}

// oftenByChance says how seldom chance makes such a difference, in this load and in any of the
// run's: each is tested, so one of many that are undamaged is found damaged more often.
func oftenByChance(x *result.Answered, loads int) string {
	text := ": chance does this to an undamaged server in at most 1 of 100 loads"
	switch {
	case loads <= 1:
	case x.Chance != nil && *x.Chance*float64(loads) < result.BeyondChance:
		text += fmt.Sprintf(", and in 1 of 100 runs of %s", say.Plural(loads, "load"))
	default:
		text += fmt.Sprintf(", and of %s in one or more of up to %s of runs", say.Plural(loads, "load"), say.Percent(1-math.Pow(1-result.BeyondChance, float64(loads))))
	}
	return text
}

// batchVarianceText says what greedy answers that differ come from where no more known answers are
// wrong than chance explains. That clears the server only of damage that known would have told of.
func batchVarianceText(greedy, known *result.Answered) string {
	share, ok := known.DetectableShare()
	switch {
	case !ok:
		return "batch variance or damage; too few known answers to separate them"
	case greedy.CI95 != nil && greedy.CI95[0] > share:
		return fmt.Sprintf("batch variance: no more known answers are wrong than by chance. Damage to %s of them would show in four loads of five", say.Percent(share))
	}
	return fmt.Sprintf("batch variance, or damage to fewer than %s of such answers: more than that would show in four loads of five", say.Percent(share))
}

// sharesText is the share under the load and alone, each with its interval.
func sharesText(x *result.Answered, what string) string {
	text := fmt.Sprintf("%s of %s %s under this load", say.Count(x.Wrong), say.Count(x.Answered), what) + formatInterval(x.Share, x.CI95)
	if x.AloneAnswered > 0 {
		text += fmt.Sprintf("; %s of %s alone", say.Count(x.AloneWrong), say.Count(x.AloneAnswered)) + formatInterval(x.AloneShare, x.AloneCI95)
	}
	return text
}

func formatInterval(share *float64, ci *[2]float64) string {
	if share == nil || ci == nil {
		return ""
	}
	number := func(x float64) string { return strings.TrimSuffix(say.Percent(x), " %") }
	return fmt.Sprintf(", %s (%s–%s %%)", say.Percent(*share), number(ci[0]), number(ci[1]))
}

// damagedText returns the text that comes first in the report of a server that answers wrong.
func damagedText(a *result.Answers) string {
	return fmt.Sprintf("the server answers wrong under this load: %s of the answers that are known, %s one at a time", say.Percent(*a.Wrong.Share), say.Percent(*a.Wrong.AloneShare))
}

// addAnswers remarks on the questions.
func (m *PointModel) addAnswers(run *result.Run, p *result.Point) {
	if p.Answers != nil && p.Answers.Finding == result.AnswersDamaged && m.Outcome == "" {
		m.Outcome = damagedText(p.Answers)
	}
	m.Answers = answersText(p.Answers, len(run.Points))
	m.Remarks.addText(m.Answers...)
	if own := ownDue(p); own != nil && p.Answers != nil && p.Answers.Asked > 0 {
		m.Remarks.addFormat("of the %s req/s that came due %s are questions", say.Quantity(*p.Throughput.DuePerS), say.Quantity(*p.Throughput.DuePerS-*own))
	}
}

// AnswersTable has a row for each kind of question.
func AnswersTable(a *result.Answers) Table {
	t := NewTable("Questions", "Wrong under load", "95 % interval", "Wrong alone", "95 % interval", "")
	for _, k := range a.Kinds {
		x, note := &k.Checked, ""
		switch {
		case k.NotAsked != "":
			note = "not sent: " + k.NotAsked
		case k.Unusable:
			note = "no use: wrong already at one user"
		case k.DifferAt != nil:
			note = fmt.Sprintf("differ after %s in the median", say.Plural(*k.DifferAt, "token"))
		}
		cells := func(wrong, of int, share *float64, ci *[2]float64) []string {
			if share == nil {
				return []string{say.Unknown, say.Unknown}
			}
			return []string{fmt.Sprintf("%s of %s, %s", say.Count(wrong), say.Count(of), say.Percent(*share)), say.Percent(ci[0]) + " to " + say.Percent(ci[1])}
		}
		row := append([]string{k.Kind}, cells(x.Wrong, x.Answered, x.Share, x.CI95)...)
		t.AddRow(append(append(row, cells(x.AloneWrong, x.AloneAnswered, x.AloneShare, x.AloneCI95)...), note)...)
	}
	return t
}
