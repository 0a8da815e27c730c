package workload

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/workload/arrival"
)

// Finding is something odd about a workload, with advice on what to do about it.
type Finding struct {
	Name string // one of [LintNames]
	Text string
	Hint string
}

// Conditions holds the conditions that a workload is judged for. Zero means not known.
type Conditions struct {
	Limit   int          // tokens of prompt and answer that the model takes at most
	Law     *arrival.Law // that due times are said to follow
	Seconds float64      // of the window
	Slowest float64      // seconds that the slowest request takes
}

// Names of findings.
const (
	LintRepeated  = "repeated prompts"
	LintAtOnce    = "all at once"
	LintLimit     = "beyond the model's limit"
	LintTruncated = "truncated answers"
	LintRounded   = "rounded times"
	LintLaw       = "another arrival law"
	LintEmpty     = "empty prompts"
	LintClient    = "one client"
	LintShort     = "short run"
	LintReasoning = "hidden reasoning"
	LintBlocks    = "block ids"
	LintUnsorted  = "unsorted rows"
	LintRejected  = "rows left out"
	LintCached    = "served from the cache"
	LintRounding  = "no whole block is shared"
	LintFailed    = "answers of no tokens"
	LintHistory   = "conversations beyond the model's limit"
	LintSingle    = "sessions of one request"
	LintPauses    = "pauses all alike"
	LintSession   = "one session"
	LintUnused    = "fields not used"
	LintTimes     = "times not used"
	LintAbove     = "lines above the header"
)

const (
	// manyRepeated is from what share of repeated prompts on a cache decides.
	manyRepeated = 0.01
	// manyCut is from what share of answers of the greatest length on that length is taken
	// for a limit.
	manyCut  = 0.01
	leastCut = 10
	// otherLaw is by how many times a dispersion may differ from its law's.
	otherLaw = 1.5
	// leastForLaw is the smallest number of times that can judge a law.
	leastForLaw = 200
)

// Lint tells what is odd about a workload.
func (t *Trace) Lint(c Conditions) (list []Finding) {
	found := func(name, hint, format string, args ...any) {
		list = append(list, Finding{name, fmt.Sprintf(format, args...), hint})
	}
	n := t.Requests()
	if n == 0 {
		return nil
	}
	share := func(k int) string { return say.Percent(float64(k) / float64(n)) }
	if k := t.countRepeated(); float64(k) > manyRepeated*float64(n) {
		found(LintRepeated, "a server's prefix cache answers these for nothing; take each once, or say that it is meant", "%s of the %s prompts were there before", share(k), say.Count(n))
	}
	if len(t.At) > 1 {
		if t.At[len(t.At)-1] == t.At[0] {
			found(LintAtOnce, "replay it as a batch (--concurrency), or give it a law (--arrival poisson)", "all %s requests come at the same time", say.Count(n))
		} else if step := arrival.StampRounding(t.At); step > 0 {
			found(LintRounded, "trace(FILE,spread) spreads each over the time that its stamp covers", "times are rounded to %s: most requests come at once with others", say.Seconds(float64(step)/1e9))
		}
	}
	if c.Limit > 0 {
		over := 0
		for i := range n {
			if t.valueAt(t.Input, i)+max(t.valueAt(t.Output, i), 1) > c.Limit {
				over++
			}
		}
		if over > 0 {
			found(LintLimit, "leave them out, or serve the model with a longer context", "%s of the requests (%d) take more than the %s tokens of the model, prompt and answer together", share(over), over, say.Count(c.Limit))
		}
	}
	if most, k := t.mostOutput(); k >= leastCut && float64(k) >= manyCut*float64(n) {
		found(LintTruncated, "answers that a limit cut would have been longer: a run that lets them end takes more", "%s of the answers have exactly the %s tokens of the longest: they were cut there", share(k), say.Count(most))
	}
	if c.Law != nil && len(t.At) >= leastForLaw {
		if text := t.otherThan(c.Law); text != "" {
			found(LintLaw, "replay the times themselves with trace(FILE), or take a law with such bursts", "%s", text)
		}
	}
	empty := t.Empty
	for _, x := range t.Input {
		if x == 0 {
			empty++
		}
	}
	if empty > 0 {
		found(LintEmpty, "servers refuse them, or answer something else", "%s without a prompt", say.Plural(empty, "request"))
	}
	failed := 0
	for _, x := range t.Output {
		if x == 0 {
			failed++
		}
	}
	if failed > 0 {
		found(LintFailed, "as BurstGPT has them of requests that failed; replayed, they request one token", "%s of the answers (%d) have no tokens", share(failed), failed)
	}
	if client, k := t.topClient(); 2*k > n && len(t.Clients) > 1 {
		found(LintClient, "what is measured is mostly this client's", "%s of the requests are of %.40q", share(k), client)
	}
	if c.Seconds > 0 && c.Slowest > 0 && c.Seconds < 3*c.Slowest {
		found(LintShort, fmt.Sprintf("--duration %.0fs", math.Ceil(10*c.Slowest)), "the window of %s is shorter than three of its slowest requests, which take about %s", say.Seconds(c.Seconds), say.Seconds(c.Slowest))
	}
	if t.Thinking > 0 {
		found(LintReasoning, "clients leave reasoning out of the history that they send back", "%s of the prompts hold the reasoning of earlier answers", share(t.Thinking))
	}
	if size, k := t.BlockSize(); k > 0 {
		found(LintBlocks, "ids name blocks of that many tokens each, the last one not full", "%s of the rows have another number of hash_ids than their input_length has blocks of %d tokens", share(k), size)
	}
	if t.Unsorted > 0 {
		found(LintUnsorted, "", "%s came before the one above: they are put in order", say.Plural(t.Unsorted, "row"))
	}
	hint := unusedOfTrace
	if t.Counted {
		hint = unusedOfPrompts
	}
	list = append(list, unusedFields(t.Unused, hint)...)
	if t.Above > 0 {
		found(LintAbove, "", "%s above the header are left out", say.Plural(t.Above, "line"))
	}
	if k := t.Records - n; k > 0 {
		found(LintRejected, "", "%s of %s%s", say.Plural(k, "row"), say.Count(t.Records), t.rejectReasons())
	}
	return list
}

// ListFindings tells what of a file of prompts is not asked as it stands there.
func (f *File) ListFindings() []Finding { return unusedFields(f.stats.Unused, unusedOfPrompts) }

// ListFindings tells what of a trace is not sent as it stands there.
func (r *Rows) ListFindings() []Finding { return unusedFields(r.count.Unused, unusedOfTrace) }

// Hints on fields that are not used.
const (
	unusedOfPrompts = "what is sent is not all that the file has: put it into messages, or into --body for all requests"
	unusedOfTrace   = "of a trace its times, lengths, sessions and shared blocks are replayed: --body sends a field with all requests"
)

// unusedFields tells which fields are not used, though they change what is sent, or when, and how
// many records have each.
func unusedFields(unused map[string]int, hint string) []Finding {
	if len(unused) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(unused))
	first, alike := unused[names[0]], true
	for _, n := range unused {
		alike = alike && n == first
	}
	shown, more := names, ""
	if k := len(names) - mostNamed; k > 0 {
		shown, more = names[:mostNamed], fmt.Sprintf(" and %d more", k)
	}
	var text string
	switch {
	case len(names) == 1:
		text = fmt.Sprintf("a field of %s is not used: %.80s", say.Plural(first, "record"), names[0])
	case alike:
		text = fmt.Sprintf("%d fields of %s each are not used: %.200s%s", len(names), say.Plural(first, "record"), strings.Join(shown, ", "), more)
	default:
		each := make([]string, len(shown))
		for i, name := range shown {
			each[i] = fmt.Sprintf("%.80s (%s)", name, say.Plural(unused[name], "record"))
		}
		text = fmt.Sprintf("%d fields are not used: %s%s", len(names), strings.Join(each, ", "), more)
	}
	return []Finding{{Name: LintUnused, Text: text, Hint: hint}}
}

// mostNamed bounds the fields that are named.
const mostNamed = 12

// Lint tells what is odd about recorded sessions as they are asked.
func (t *Trajectories) Lint(c TrajectoryConfig, limit int) (list []Finding) {
	found := func(name, hint, format string, args ...any) {
		list = append(list, Finding{name, fmt.Sprintf(format, args...), hint})
	}
	n, requests := len(t.list), t.stepCount()
	over, single, largest, pauses, usual := 0, 0, 0, 0, map[time.Duration]int{}
	for i := range t.list {
		one := &t.list[i]
		first := one.firstAt((c.Start.Least + c.Start.Most) / 2)
		if steps := one.steps[first:]; limit > 0 && slices.ContainsFunc(steps, func(q step) bool { return int(q.input)+int(q.output) > limit }) {
			over++
		}
		if one.remainingRequests(first) == 1 {
			single++
		}
		largest = max(largest, len(one.steps))
		for k := range one.steps {
			if q := &one.steps[k]; q.join > 0 {
				pauses++
				usual[q.after]++
			}
		}
	}
	share := func(k int) string { return say.Percent(float64(k) / float64(n)) }
	if over > 0 {
		found(LintHistory, "serve the model with a longer context; a request that it refuses ends its session, and its later requests are never sent", "%s of the sessions (%d of %d) come to requests of more than the %s tokens of the model", share(over), over, n, say.Count(limit))
	}
	if 2*single > n {
		found(LintSingle, "begin earlier in them, with --set start; else these are requests that stand alone", "%s of the sessions have one request left", share(single))
	}
	if n > 1 && 2*largest > requests {
		found(LintSession, "what is measured is mostly this session's; take more of them", "one session has %s of the %s requests of all %d", say.Count(largest), say.Count(requests), n)
	}
	for pause, k := range usual {
		if pauses >= leastPauses && k == pauses {
			found(LintPauses, "recorded pauses of users and tools spread; a log that does not have them makes sessions that run in step", "all %s pauses are %s", say.Count(k), say.Seconds(pause.Seconds()))
		}
	}
	if len(t.Left) > 0 {
		left := 0
		for _, l := range t.Left {
			left += l.N
		}
		found(LintRejected, "", "%s of %d%s", say.Plural(left, "session"), left+n, strings.TrimSuffix(t.leftText(), ";"))
	}
	return list
}

// leastPauses is the smallest number of pauses that shows that all are alike.
const leastPauses = 10

func (t *Trace) valueAt(column []int32, i int) int {
	if column == nil || column[i] < 0 {
		return 0
	}
	return int(column[i])
}

// countRepeated returns the number of prompts that came before, counting only those that are known
// to be the same.
func (t *Trace) countRepeated() (k int) {
	if t.Same > 0 {
		return t.Same
	}
	seen := map[string]bool{}
	for i, blocks := range t.Blocks {
		if len(blocks) == 0 {
			continue
		}
		key := fmt.Sprint(t.valueAt(t.Input, i), blocks)
		if seen[key] {
			k++
		}
		seen[key] = true
	}
	return k
}

// mostOutput is the longest answer, and how many pile up at its length: none where all have
// it, or where about as many have each of the lengths below.
func (t *Trace) mostOutput() (most, k int) {
	if len(t.Output) == 0 || slices.Min(t.Output) == slices.Max(t.Output) {
		return 0, 0
	}
	top := slices.Max(t.Output)
	below := 0 // within the ten lengths below
	for _, x := range t.Output {
		switch {
		case x == top:
			k++
		case x >= top-10:
			below++
		}
	}
	if 10*k < 5*below { // no more than other lengths have
		return int(top), 0
	}
	return int(top), k
}

// otherThan says by what times do not follow a law, "" where they do.
func (t *Trace) otherThan(law *arrival.Law) string {
	got := arrival.ObserveTimes(t.At)
	want := law.ExpectedAt(min(max(got.Rate, arrival.MinRate), arrival.MaxRate))
	var parts []string
	compare := func(what string, got, want float64) {
		if !math.IsNaN(got) && !math.IsNaN(want) && (got > otherLaw*want+.05 || want > otherLaw*got+.05) {
			parts = append(parts, fmt.Sprintf("%s is %s, not %s", what, say.Decimal(got, 2), say.Decimal(want, 2)))
		}
	}
	compare("the CV of the gaps", got.CV, want.CV)
	for i, s := range arrival.Scales {
		if span := float64(t.At[len(t.At)-1]-t.At[0]) / 1e9; span > 30*s { // else there are too few windows
			compare(fmt.Sprintf("the dispersion at %g s", s), got.Dispersion[i], want.Dispersion[i])
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "they do not come as " + law.String() + ": " + strings.Join(parts, ", ")
}

func (t *Trace) topClient() (name string, most int) {
	counts := map[string]int{}
	for _, c := range t.Clients {
		if c != "" {
			counts[c]++
		}
	}
	for c, k := range counts {
		if k > most || k == most && c < name {
			name, most = c, k
		}
	}
	return name, most
}

// knownSizes are those of the blocks of the traces that are known, in tokens.
var knownSizes = [...]int{512, 16, 64, 128, 256, 1024, 32}

// blockSizes finds out of how many tokens the ids of blocks are.
type blockSizes struct {
	rows    int                  // that have ids
	misfits [len(knownSizes)]int // of these, those whose length has another number of blocks
}

// add takes the ids of a row, nil for none, and the tokens of its prompt.
func (s *blockSizes) add(ids []int64, input int) {
	if ids == nil {
		return
	}
	s.rows++
	for i, size := range knownSizes {
		if len(ids) != (max(input, 0)+size-1)/size {
			s.misfits[i]++
		}
	}
}

// best is the size that fits most rows, and how many it does not fit; 0 where there are no ids.
func (s *blockSizes) best() (size, misfits int) {
	if s.rows == 0 {
		return 0, 0
	}
	misfits = slices.Min(s.misfits[:])
	return knownSizes[slices.Index(s.misfits[:], misfits)], misfits
}

// BlockSize is of how many tokens the ids of blocks are: the size that fits most rows; and
// how many it does not fit. 0 where there are no ids.
func (t *Trace) BlockSize() (size, misfits int) {
	if t.Input == nil {
		return 0, 0
	}
	var sizes blockSizes
	for i, ids := range t.Blocks {
		sizes.add(ids, t.valueAt(t.Input, i))
	}
	return sizes.best()
}

// BlockSharing returns how much the prompts of a trace share, by the ids of their blocks. It gives
// the share of blocks and the share of tokens that a request finds from an earlier request. The
// cache forgets nothing. ok is false where there are no ids.
func (t *Trace) BlockSharing() (blocks, tokens float64, ok bool) {
	size, _ := t.BlockSize()
	if size == 0 {
		return 0, 0, false
	}
	seen := map[int64]bool{}
	var all, hits, prompt, cached int
	for i, ids := range t.Blocks {
		k := 0
		for k < len(ids) && seen[ids[k]] {
			k++
		}
		for _, id := range ids {
			seen[id] = true
		}
		n := t.valueAt(t.Input, i)
		all, hits, prompt, cached = all+len(ids), hits+k, prompt+n, cached+min(k*size, n)
	}
	if all == 0 || prompt == 0 {
		return 0, 0, false
	}
	return float64(hits) / float64(all), float64(cached) / float64(prompt), true
}

// LengthCorrelation is Spearman's of prompts' and answers' lengths, NaN where one is not known or
// all are equal.
func (t *Trace) LengthCorrelation() float64 {
	if t.Input == nil || t.Output == nil {
		return math.NaN()
	}
	a, b := meanRanks(t.Input), meanRanks(t.Output)
	n := float64(len(a))
	var sum, sa, sb, mean float64
	mean = (n + 1) / 2
	for i := range a {
		sum, sa, sb = sum+(a[i]-mean)*(b[i]-mean), sa+(a[i]-mean)*(a[i]-mean), sb+(b[i]-mean)*(b[i]-mean)
	}
	return sum / math.Sqrt(sa*sb)
}

// meanRanks are from 1 on; equal values share their mean rank.
func meanRanks(x []int32) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int { return int(x[i]) - int(x[k]) })
	out := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return out
}
