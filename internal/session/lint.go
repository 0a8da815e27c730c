package session

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/session/hits"
	"pitot/internal/target"
	"pitot/internal/workload"
	"pitot/internal/workload/profile"
	"pitot/internal/workload/token"
)

// mostRead is the largest file of prompts that is looked through before a run.
const mostRead = 16 << 20

// Lint tells what is odd about what a plan asks of a target, as far as that is known before
// anything is sent: the findings of [workload.Trace.Lint], and those of generated lengths
// and of arrivals.
func Lint(ctx context.Context, p *config.Plan, t *target.Target) (list []workload.Finding) {
	c := workload.Conditions{}
	c.Limit, _ = strconv.Atoi(t.Server["max_model_len"]) // 0 where it is not told
	if p.Requests == 0 && p.Duration > 0 && t.Residence > 0 && p.IsGenerated() {
		c.Seconds = p.Duration.Seconds()
		c.Slowest = t.Residence.Seconds() * float64(p.Ask.Output.Quantile(.999)) / max(p.Ask.Output.Mean(), 1)
	}
	switch {
	case p.IsGenerated():
		list = lintLengths(&p.Ask, c)
	case p.Recorded != nil:
		if sessions, err := workload.OpenTrajectories(p.Workload); err == nil {
			list = sessions.Lint(workload.TrajectoryConfig{Start: p.Start, MaxThink: p.MaxThink}, c.Limit)
		}
	case profile.IsFile(p.Workload): // what was odd was told when it was made
	default:
		list = lintFile(p, c)
	}
	if most := p.Stop.Most; most > 0 && p.IsGenerated() {
		if over := shareAbove(p.Ask.Output, most); over > manyTruncated {
			list = append(list, workload.Finding{Name: workload.LintTruncated,
				Text: fmt.Sprintf("about %s of the answers are planned to be longer than the %s tokens of --stop %s", say.Percent(over), say.Count(most), p.Stop),
				Hint: "raise it, or leave it out: what is cut short is no answer of the model's own length"})
		}
	}
	if law, err := p.ArrivalLaw(); err == nil && p.Open() {
		told := slices.ContainsFunc(list, func(f workload.Finding) bool { return f.Name == workload.LintRounded })
		if step := law.StampStep(); step > 0 && !told {
			list = append(list, workload.Finding{Name: workload.LintRounded,
				Text: fmt.Sprintf("times of %s are rounded to %s: most requests come at once with others", p.Arrival, say.Seconds(step)),
				Hint: "trace(FILE,spread) spreads each over the time that its stamp covers"})
		}
	}
	return append(list, lintCache(ctx, p, t)...)
}

// lintFile looks at a file of prompts, of classes that of each.
func lintFile(p *config.Plan, c workload.Conditions) (list []workload.Finding) {
	if p.Mix != nil {
		for i := range p.Mix.Classes {
			class := &p.Mix.Classes[i]
			if class.Ask.IsGenerated() {
				continue
			}
			for _, f := range unusedIn(class.Ask.Workload) {
				f.Text = "class " + class.Name + ": " + f.Text
				list = append(list, f)
			}
		}
		return list
	}
	if info, err := os.Stat(p.Workload); err == nil && info.Mode().IsRegular() && info.Size() > mostRead {
		list = unusedIn(p.Workload)
	} else if look, err := workload.SummarizeRequests(p.Workload, token.Universal().Count); err == nil {
		list = look.Lint(c)
	}
	return append(list, LintTimes(p)...)
}

// unusedIn tells what of a trace or of a file of prompts is not sent.
func unusedIn(path string) []workload.Finding {
	kind, err := workload.Identify(path)
	if err == nil && kind == workload.Recorded {
		if rows, err := workload.OpenRows(path); err == nil {
			return rows.ListFindings()
		}
	}
	if err != nil || kind != workload.Prompts {
		return nil
	}
	f, err := workload.Open(path, workload.FileOptions{InOrder: true})
	if err != nil {
		return nil
	}
	defer f.Close()
	return f.ListFindings()
}

// LintTimes tells that the prompts of a plan have times, and come at others.
func LintTimes(p *config.Plan) []workload.Finding {
	if p.IsGenerated() || p.Mix != nil || p.InTime {
		return nil
	}
	if kind, err := workload.Identify(p.Workload); err != nil || kind != workload.Prompts {
		return nil
	}
	times, err := workload.PromptTimes(p.Workload)
	if err != nil {
		return nil
	}
	instead := "users ask one after the other"
	if p.Open() {
		instead = "requests come by " + p.Arrival
	}
	hint := ""
	if p.Open() || p.Concurrency > 0 {
		hint = "--arrival 'trace(" + p.Workload + ")', or neither --rate nor --concurrency, sends each at its time"
	}
	have := "have times that are"
	if len(times) == 1 {
		have = "has a time that is"
	}
	return []workload.Finding{{Name: workload.LintTimes, Text: fmt.Sprintf("%s %s not used: %s", say.Plural(len(times), "record"), have, instead), Hint: hint}}
}

// flattering is from what share of hits on that nobody asked for a capacity is that of a warm
// cache.
const flattering = 0.5

// mostLinted bounds the requests that are looked at for what they share.
const mostLinted = 1000

// lintCount returns the number of a plan's requests that are read to find what they share. It is
// the number that the plan sends, where that is known.
func lintCount(l *config.Load) int64 {
	n := int64(mostLinted)
	switch {
	case l.Requests > 0:
		n = l.Requests
	case l.Rate > 0 && l.Duration > 0:
		n = int64(l.Rate * l.Duration.Seconds())
	}
	return min(max(n, 1), mostLinted)
}

// lintCache looks at what requests share: at the first thousand of them.
func lintCache(ctx context.Context, p *config.Plan, t *target.Target) (list []workload.Finding) {
	block := cmp.Or(t.KV.BlockSize, hits.UsualBlock)
	whose := fmt.Sprintf("the server's blocks of %d tokens", block)
	if t.KV.BlockSize == 0 {
		whose = fmt.Sprintf("blocks of %d tokens, as servers usually have", block)
	}
	if shared := p.PrefixMean(); shared > 0 && p.PrefixShare > 0 && int(shared)+t.Calibration.HeadTokens() < block {
		list = append(list, workload.Finding{Name: workload.LintRounding,
			Text: fmt.Sprintf("what requests share, %s tokens, does not fill one of %s: a prefix cache has nothing of it", say.Quantity(shared), whose),
			Hint: fmt.Sprintf("--prefix %d is two blocks", 2*block)})
	}
	asked := p.IsGenerated() && p.WholePreset() == "" // what is shared was said
	if t.KV.None || asked && p.Reused() == 0 {
		return list
	}
	e := expectedHits(ctx, p, t, lintCount(&p.Load))
	switch {
	case e == nil:
	case p.Reused() > 0 && e.Expected < p.Reused()-.02:
		list = append(list, workload.Finding{Name: workload.LintRounding,
			Text: fmt.Sprintf("of %s of the prompts' tokens %s at most can come from the cache: it has whole blocks, and the prompts are short for %s", say.Percent(p.Reused()), say.Percent(e.Expected), whose),
			Hint: "longer prompts, or a lower share"})
	case p.Reused() == 0 && e.Expected > flattering && p.Cache == "":
		list = append(list, workload.Finding{Name: workload.LintCached,
			Text: fmt.Sprintf("a prefix cache serves about %s of the prompts' tokens: capacity and TTFT are those of a warm cache", say.Percent(e.Expected)),
			Hint: "as it should be where users share as much; else ask for prompts with less in common"})
	}
	return list
}

// lintLengths looks at many ranks of the distributions.
func lintLengths(a *config.Ask, c workload.Conditions) (list []workload.Finding) {
	if c.Seconds > 0 && c.Seconds < 3*c.Slowest {
		list = append(list, workload.Finding{Name: workload.LintShort,
			Text: fmt.Sprintf("the window of %s is shorter than three of its slowest requests, which take about %s alone", say.Seconds(c.Seconds), say.Seconds(c.Slowest)),
			Hint: fmt.Sprintf("--duration %.0fs", 10*c.Slowest)})
	}
	if c.Limit == 0 {
		return list
	}
	const ranks = 200
	var out [ranks]int // they rise
	for k := range out {
		out[k] = a.Output.Quantile((float64(k) + .5) / ranks)
	}
	if a.GeneratedTurns() && a.Mix == nil {
		return append(list, lintHistory(a, c.Limit)...)
	}
	over := 0
	for i := range ranks {
		in := int(a.PrefixMean()) + a.Input.Quantile((float64(i)+.5)/ranks)
		k, _ := slices.BinarySearch(out[:], c.Limit-in+1)
		over += ranks - k
	}
	if over > 0 {
		list = append(list, workload.Finding{Name: workload.LintLimit,
			Text: fmt.Sprintf("%s of the requests take more than the %s tokens of the model, prompt and answer together", say.Percent(float64(over)/(ranks*ranks)), say.Count(c.Limit)),
			Hint: "shorten --input or --output, or serve the model with a longer context"})
	}
	return list
}

// LintConversations tells what is odd about generated conversations by what they ask alone,
// for a model that takes so many tokens, 0 where that is not known.
func LintConversations(a *config.Ask, limit int) []workload.Finding {
	if limit == 0 {
		return nil
	}
	return lintHistory(a, limit)
}

// lintHistory looks at how long conversations of a number of turns come to be: with lengths
// as they are on average, but for the first prompt.
func lintHistory(a *config.Ask, limit int) []workload.Finding {
	const ranks = 200
	over, ends := 0, 0.
	each := a.Output.Mean() + a.FurtherInput().Mean()
	_, _, read := a.SubAgents.ExpectedPerStep(a.Output.Mean(), a.FurtherInput().Mean())
	each += read
	for i := range ranks {
		n := a.Turns.Quantile((float64(i) + .5) / ranks)
		for k := range ranks {
			begins := float64(a.System) + a.PrefixMean() + float64(a.Input.Quantile((float64(k)+.5)/ranks)) + a.Output.Mean()
			if fits := math.Floor((float64(limit)-begins)/each) + 1; fits < float64(n) {
				over++
				ends += max(fits, 0)
			}
		}
	}
	if over == 0 {
		return nil
	}
	return []workload.Finding{{Name: workload.LintHistory,
		Text: fmt.Sprintf("about %s of the conversations come to more than the %s tokens of the model, behind %s turns on average: it refuses the next, and they end", say.Percent(float64(over)/(ranks*ranks)), say.Count(limit), say.Decimal(ends/float64(over), 1)),
		Hint: "fewer --turns, a shorter --set turn-input or --output, or serve the model with a longer context"}}
}

// manyTruncated is from what share of planned answers that are cut short on a run says so.
const manyTruncated = 0.01

// shareAbove is about the share of lengths that are more than so many tokens.
func shareAbove(l workload.Lengths, tokens int) float64 {
	const ranks = 1000
	n := 0
	for i := range ranks {
		if l.Quantile((float64(i)+.5)/ranks) > tokens {
			n++
		}
	}
	return float64(n) / ranks
}
