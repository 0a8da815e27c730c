package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/say"
	"pitot/internal/session/estimate"
	"pitot/internal/target"
	"pitot/internal/workload"
	"pitot/internal/workload/question"
	"pitot/internal/workload/seed"
)

// aloneAtMost is the longest time for which the questions are sent one at a time. A server that
// needs more gets fewer of them, alone and under load.
const aloneAtMost = 2 * time.Minute

// answers is the questions of a session, and what was answered to them alone.
type answers struct {
	bank   *question.Bank
	shares [question.Count]float64
	sizes  question.Sizes
	alone  []metrics.Alone
	greedy [][]byte // texts of the first pass, by number
}

// streamQuestions is the stream of a run's seed that questions are of: the same for all of
// its loads.
const streamQuestions = 0x7665726966

// bankOf is the questions of a run, as long as a target takes.
func bankOf(runSeed uint64, t *target.Target) *question.Bank {
	longest, _ := strconv.Atoi(t.Server["max_model_len"])
	return question.NewBank(seed.At(runSeed, streamQuestions, 0), longest)
}

// askAlone asks questions one at a time, in the order of their numbers and the kinds in
// turn, and then as many again: greedy ones the same, of the others new ones. They are about as
// many as a load of so many requests has, 0 for a number that is not known.
func (s *Session) askAlone(ctx context.Context, requests float64) (*answers, error) {
	r, p, t := s.runner, s.plan, s.Target
	shares, err := sharesFor(p, t.API)
	if err != nil {
		return nil, err
	}
	q := &answers{bank: bankOf(p.Seed, t), shares: shares, sizes: question.SizesOf(shares, requests)}
	var of [question.Count]metrics.Alone
	var why [question.Count]string // one was not answered
	begun, all, largest, sent := time.Now(), 0, 0, 0
	for _, n := range q.sizes {
		all, largest = all+question.Passes*n, max(largest, n)
	}
	q.greedy = make([][]byte, q.sizes[question.Greedy])
	line := fmt.Sprintf("asking %s alone before the load, one at a time", say.Plural(all, "question"))
	if n := q.sizes[question.Greedy]; n > 0 {
		line += fmt.Sprintf(", %s greedy ones twice", say.Count(n))
	}
	r.showLine(line + ": " + aloneTime(all, t.Residence, p.Ask.Output.Mean()))
	live, _ := r.Progress.(interface{ Line(text string) })
	for pass := range question.Passes {
		for number := range largest {
			if late := time.Since(begun) > aloneAtMost*time.Duration(pass+1)/question.Passes; late && number > 0 {
				if pass == 0 {
					for k := range q.sizes {
						q.sizes[k] = min(q.sizes[k], number)
					}
					r.showLine(fmt.Sprintf("note: alone the answers take long: %s of a kind are sent", say.Plural(number, "question")))
				}
				break
			}
			for _, k := range question.Kinds() {
				if number >= q.sizes[k] {
					continue
				}
				sent++
				if why[k] != "" && of[k].Answered == 0 {
					continue
				}
				if live != nil {
					live.Line(fmt.Sprintf("asking %d of %d questions alone, %s", sent, all, formatMinutes(time.Since(begun))))
				}
				asked := q.bank.Ask(k, question.NumberAlone(k, pass, number))
				row, chunks, text, spelt := t.Answer(ctx, asked.Request)
				if ctx.Err() != nil {
					return nil, nil
				}
				if row.Outcome != record.OK {
					why[k] = row.Error
					if row.Detail != "" {
						why[k] += ": " + row.Detail
					}
					continue
				}
				answer := answerOf(chunks, text, spelt)
				switch {
				case k != question.Greedy:
					of[k].Answered++
					if !asked.IsRight(answer) {
						of[k].Wrong++
					}
				case pass == 0:
					q.greedy[number] = append([]byte{}, answer.Text...)
				case q.greedy[number] != nil:
					of[k].Answered++
					if _, differs := question.FirstDifference(q.greedy[number], answer.Text); differs {
						of[k].Wrong++
					}
				}
			}
		}
	}
	if n := slices.IndexFunc(q.greedy, func(text []byte) bool { return text == nil }); n >= 0 { // from there on some have nothing to be held against
		q.sizes[question.Greedy] = min(q.sizes[question.Greedy], n)
	}
	for _, k := range question.Kinds() {
		if q.shares[k] == 0 {
			continue
		}
		a := of[k]
		if a.Kind = k.String(); a.Answered == 0 {
			a.Why = why[k]
			if a.Why == "" {
				a.Why = "none was answered in time"
			}
			q.sizes[k] = 0
			r.showLine("note: no questions of the kind " + a.Kind + ": alone none was answered, " + a.Why)
		}
		q.alone = append(q.alone, a)
	}
	return q, nil
}

// aloneTime says how long so many questions take at most, one at a time, of a target that takes a
// time, 0 where it is not known, for an answer of so many tokens.
func aloneTime(questions int, residence time.Duration, tokens float64) string {
	most := "at most " + formatMinutes(aloneAtMost)
	if residence <= 0 || tokens <= 0 {
		return most
	}
	each := residence.Seconds() * max(1, question.AnswerTokens/tokens)
	if about := float64(questions) * each; about < aloneAtMost.Seconds() {
		return "up to about " + formatMinutes(time.Duration(about*float64(time.Second))+time.Second)
	}
	return most
}

// formatMinutes writes a time as 0:14 or 2:00.
func formatMinutes(d time.Duration) string {
	n := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}

// expectedRequests returns how many requests are expected of all loads of the session together, 0
// where that is not known.
func (s *Session) expectedRequests() float64 {
	p := s.plan
	parts := estimate.Parts{Ask: &p.Ask, Load: &p.Load, Good: &p.Good}
	switch s.runner.planVerb() {
	case config.VerbRun:
		e := parts.ForLoad(p.MaxDuration)
		if e.Requests == 0 && s.Target.Residence > 0 {
			return float64(p.Concurrency) * e.Time.Seconds() / s.Target.Residence.Seconds()
		}
		return e.Requests
	case config.VerbSweep:
		return parts.ForSweep(&p.Search).Requests
	}
	return 0
}

// sharesFor is the share of each kind of question that an API can put; nil is one that is not
// known yet.
func sharesFor(p *config.Plan, a api.API) ([question.Count]float64, error) {
	return p.VerifiedShares().Of(func(k question.Kind) bool { return !k.NeedsChat() || a == nil || a.Name() == api.Chat.Name() })
}

// answerOf returns the content of an answer from its chunks. The kind of a chunk shows whether it
// is a call. An answer that was not streamed has no chunks, and is nothing but text or a call.
func answerOf(chunks []record.Chunk, text, spelt []byte) question.Answer {
	a := question.Answer{Text: text}
	at := 0
	for i := range chunks {
		end := min(at+int(chunks[i].Bytes), len(spelt))
		if chunks[i].Kind == record.ToolCall && chunks[i].Choice == 0 {
			a.Call = append(a.Call, spelt[at:end]...)
		}
		at = end
	}
	if len(chunks) == 0 && len(text) == 0 {
		a.Call = spelt
	}
	return a
}

// addQuestions puts the questions among the requests of a load; of is the seed of its point.
func (q *answers) addQuestions(src workload.Source, of uint64) *checker {
	return &checker{question.NewAmong(src, q.bank, q.shares, q.sizes, seed.At(of, streamQuestions, 0)), q}
}

// checker is the requests of a load with the questions among them, and checks their answers.
type checker struct {
	*question.Among
	asked *answers
}

// Question implements [loadgen.Checker].
func (c *checker) Question(item int64) string {
	k, number, ok := c.FindQuestion(item)
	if !ok {
		return ""
	}
	return question.Name(k, number)
}

// Check implements [loadgen.Checker].
func (c *checker) Check(item int64, r *record.Row, chunks []record.Chunk, text, spelt []byte) {
	q, ok := c.Ask(item)
	if !ok {
		return
	}
	answer := answerOf(chunks, text, spelt)
	if q.Kind != question.Greedy {
		r.Wrong = !q.IsRight(answer)
		return
	}
	alone := c.asked.greedy[q.Number]
	at, differs := question.FirstDifference(alone, answer.Text)
	if r.Wrong = differs; differs {
		r.DiffersAt = tokensBefore(chunks, at, r.CompletionTokens, len(text))
	}
}

// tokensBefore returns the number of tokens of an answer that end before a byte of its text. It
// counts by the chunks where each states its tokens or is one, else by the mean of them all. It
// returns Unset where no count is known.
func tokensBefore(chunks []record.Chunk, at int, tokens int32, length int) int32 {
	byChunks, sum, bytes := int32(0), int32(0), 0
	for i := range chunks {
		c := &chunks[i]
		if c.Kind != record.Answer || c.Choice != 0 {
			continue
		}
		n := max(c.Tokens, 1)
		if bytes += int(c.Bytes); bytes <= at {
			byChunks += n
		}
		sum += n
	}
	switch {
	case sum > 0 && (tokens < 0 || sum >= tokens-1): // the last token may have no text
		return byChunks
	case tokens > 0 && length > 0:
		return int32(int64(tokens) * int64(at) / int64(length))
	}
	return record.Unset
}

// sendQuestions asks the questions of the plan alone, where it has any and they have not been.
func (s *Session) sendQuestions(ctx context.Context) (err error) {
	if s.answers == nil && !s.plan.VerifiedShares().IsNone() && s.Target.Kind != "sim" {
		s.answers, err = s.askAlone(ctx, s.expectedRequests())
	}
	return err
}
