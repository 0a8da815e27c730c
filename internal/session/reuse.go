package session

import (
	"cmp"
	"context"
	"time"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/session/hits"
	"pitot/internal/sim"
	"pitot/internal/target"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// What a server's prefix cache is expected to have of the prompts: when the load has ended
// its requests are put to the engine's own cache, at the times at which they were sent and
// answered. It takes no time of a load.

// mostReused is the largest number of requests of a point that are kept for it, at about 60 bytes
// each.
const mostReused = 200_000

// sentRequest holds what is kept of a request.
type sentRequest struct {
	id                     int64
	due, sent, first, done int64
	prompt, answer, cached int32
	choices                int32
	ok                     bool
}

// reused keeps what was sent for [Session.cacheReuse].
type reused struct {
	list []sentRequest
	all  bool
}

func (u *reused) keep(r *record.Row) {
	if r.Sent < 0 || r.Outcome == record.Unsent {
		return
	}
	if len(u.list) == mostReused {
		u.all = false
		return
	}
	x := sentRequest{id: r.ID, due: r.Due, sent: r.Sent, first: r.FirstToken, done: r.Done, prompt: r.PromptTokens, answer: max(r.CompletionTokens, 0) / max(r.Choices, 1), choices: r.Choices, cached: r.CachedTokens, ok: r.Outcome == record.OK}
	if x.choices > 1 { // it is told of one of them
		x.cached = record.Unset
	}
	if x.prompt < 0 {
		x.prompt = r.InputPlanned
	}
	if x.first < 0 { // it came as a whole, or not at all
		x.first = x.sent
		if !x.ok {
			return
		}
	}
	u.list = append(u.list, x)
}

// itemized notes which item each request asks where its id does not say it.
type itemized struct {
	loadgen.World
	items map[int64]int64
}

// Do implements [loadgen.World].
func (w *itemized) Do(a loadgen.Action) {
	if a.Kind == loadgen.Start && a.Item != a.ID && len(w.items) < mostReused {
		w.items[a.ID] = a.Item
	}
	w.World.Do(a)
}

func (w *itemized) itemOf(id int64) int64 {
	if item, ok := w.items[id]; ok {
		return item
	}
	return id
}

// laying describes how segments become tokens on a target.
type laying struct {
	simulated bool
	head      int
	perWord   float64
}

// layingOf is that of a target; texts whose tokens are not known are taken to have so many
// a word.
func layingOf(t *target.Target, perWord float64) laying {
	l := laying{simulated: t.Kind == config.KindSim, perWord: perWord}
	if c := t.Calibration; c.PerWord > 0 {
		l.perWord, l.head = c.PerWord, c.HeadTokens()
	}
	return l
}

func (l laying) promptContent(r *workload.Request, prompt int) sim.Content {
	if l.simulated {
		return loadgen.PromptContent(r, prompt)
	}
	return loadgen.LaidOutContent(r, l.head, l.perWord)
}

// cacheOf returns what is known of a target's cache.
func cacheOf(kv target.KVCache) hits.Cache {
	return hits.Cache{BlockSize: kv.BlockSize, Blocks: kv.Blocks}
}

// cacheReuse says what the prefix cache of the target is expected to have had of a point's prompts,
// nil where that cannot be known, as of several engines. A simulated target begins with an empty
// cache; another one has what earlier points left there.
func (s *Session) cacheReuse(src workload.Source, sent *reused, items *itemized, t0, t1 int64) *marks.PrefixCache {
	t := s.Target
	if t.KV.Several {
		return nil
	}
	if s.cache.model == nil || t.Kind == config.KindSim {
		s.cache.model = hits.New(cacheOf(t.KV))
	}
	perWord := 1.
	if !s.plan.IsGenerated() {
		perWord = tokensBySize(src, sent.list, items)
	}
	lay := layingOf(t, perWord)
	for i := range s.cache.sent {
		s.cache.model.Ask(lay.promptTokens(&s.cache.sent[i]), lay.promptContent(&s.cache.sent[i], s.cache.sent[i].Input))
	}
	s.cache.sent = nil
	known := true
	width := max((t1-t0)/reuseParts, 1)
	part := func(x *sentRequest) int {
		if !x.ok || x.due < t0 || x.due >= t1 {
			return -1
		}
		return int(min((x.due-t0)/width, reuseParts-1))
	}
	list := make([]hits.Request, 0, len(sent.list))
	for i := range sent.list {
		x := &sent.list[i]
		if x.prompt < 1 {
			continue
		}
		list = append(list, hits.Request{
			Sent: x.sent, First: max(x.first, x.sent), Done: max(x.done, x.first, x.sent), Prompt: int(x.prompt), Answer: int(x.answer), Choices: int(x.choices),
			Part: part(x), Served: int(x.cached),
			Content: func() sim.Content {
				r, err := src.At(items.itemOf(x.id))
				if err != nil {
					known = false // the file is gone or another one
					return nil
				}
				return lay.promptContent(&r, int(x.prompt))
			},
		})
	}
	parts, all := s.cache.model.SimulateRequests(list, reuseParts)
	if !known {
		return nil
	}
	m := cacheMark(parts, t.KV, all && sent.all)
	m.Asked, m.Mode = s.cache.warmed, s.plan.Cache
	s.cache.warmed = 0
	for i := range m.Parts {
		m.Parts[i].From = t0 + int64(i)*width
	}
	return m
}

// reuseParts is in how many parts a window is looked at, since it may turn out to begin
// later.
const reuseParts = 200

// cacheMark returns the result as a mark, as it is written.
func cacheMark(parts []marks.CachePart, kv target.KVCache, all bool) *marks.PrefixCache {
	m := &marks.PrefixCache{All: all, BlockSize: kv.BlockSize, Tokens: max(kv.Blocks-1, 0) * kv.BlockSize, Off: kv.None}
	if kv.BlockSize == 0 {
		m.BlockSize, m.Assumed = hits.UsualBlock, !kv.None
	}
	for _, p := range parts {
		if kv.None {
			p.Expected, p.Late = 0, 0
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// promptTokens returns the number of tokens of a request's prompt, as far as that is known before
// it is sent.
func (l laying) promptTokens(r *workload.Request) int {
	if r.Input > 0 {
		return r.Input
	}
	return l.head + int(float64(loadgen.Size(r))*l.perWord)
}

// tokensBySize returns the number of tokens to a word, or to four bytes of text, in the first
// answers.
func tokensBySize(src workload.Source, list []sentRequest, items *itemized) float64 {
	const enough = 500
	tokens, units := 0., 0.
	for i := range list[:min(len(list), enough)] {
		r, err := src.At(items.itemOf(list[i].id))
		if err != nil || list[i].prompt < 1 {
			continue
		}
		tokens, units = tokens+float64(list[i].prompt), units+float64(loadgen.Size(&r))
	}
	if units == 0 {
		return 1
	}
	return tokens / units
}

// expectedAlone stands for how long a request takes where that is not known.
const expectedAlone = time.Second

// What is looked at of a plan's requests before it is carried out: the first of them.
const (
	mostForeseen       = 20_000  // requests
	mostForeseenTokens = 4 << 20 // of their prompts
)

// ExpectedHits returns what a plan's requests are expected to find in the prefix cache, before
// anything is sent. Due times are as planned, and each request holds its blocks for the time that
// one takes alone. n is the number of requests, 0 where that is not known. The result is nil where
// it cannot be known, or where ctx has ended. A request may need a shared prefix while another
// computes it for the first time. Expected counts that as found; Late does not until that other
// request has ended.
func ExpectedHits(ctx context.Context, p *config.Plan, n int64) *result.PrefixCache {
	t := &target.Target{Kind: p.Kind(), KV: target.KVCacheOf(target.WantedBy(p)), Residence: target.ResidenceOf(target.WantedBy(p))}
	t.Options.Vocab = token.Universal()
	return expectedHits(ctx, p, t, n)
}

// expectedHits is that of a target of which some is known.
func expectedHits(ctx context.Context, p *config.Plan, t *target.Target, n int64) *result.PrefixCache {
	if p.HasConversations() { // when later turns come depends on the answers
		return nil
	}
	alone := cmp.Or(t.Residence, expectedAlone)
	point := int32(0)
	if p.Cache == config.CacheBoth {
		point = 1 // of the cold one nothing is expected
	}
	src, err := newSource(&p.Ask, t, point)
	if err != nil {
		return nil
	}
	defer src.close()
	if _, turns := src.Source.(workload.Sessions); turns {
		return nil
	}
	if n <= 0 {
		n = 1000
	}
	due, err := dueTimes(p, t, alone, int(min(n, mostForeseen)))
	if err != nil {
		return nil
	}
	list, all := foreseeRequests(ctx, src.Source, layingOf(t, 1), due, alone)
	if list == nil {
		return nil
	}
	lay := layingOf(t, 1)
	simulated := func(list []hits.Request) marks.CachePart {
		cache := hits.New(cacheOf(t.KV))
		for i := range src.shared {
			cache.Ask(lay.promptTokens(&src.shared[i]), lay.promptContent(&src.shared[i], lay.promptTokens(&src.shared[i])))
		}
		found, _ := cache.SimulateRequests(list, 1)
		return found[0]
	}
	got := simulated(list)
	for i := range list {
		list[i].First = list[i].Done
	}
	late := simulated(list)
	if got.Requests == 0 || ctx.Err() != nil {
		return nil
	}
	got.Late = min(late.Late, got.Expected)
	m := cacheMark([]marks.CachePart{got}, t.KV, all && n <= mostForeseen)
	m.Asked = len(src.shared)
	return (&metrics.Setup{Reuse: m}).PrefixCache()
}

// foreseeRequests gives the first requests of a workload as they are put to a cache, until there
// are mostForeseenTokens of prompts; all says that there is one for each due time. It reads each
// request once. list is nil where a request cannot be read, or ctx has ended.
func foreseeRequests(ctx context.Context, src workload.Source, lay laying, due []int64, alone time.Duration) (list []hits.Request, all bool) {
	for i, tokens := 0, 0; i < len(due); i++ {
		if tokens > mostForeseenTokens {
			return list, false
		}
		r, err := src.At(int64(i))
		if err != nil || ctx.Err() != nil {
			return nil, false
		}
		prompt := lay.promptTokens(&r)
		content := lay.promptContent(&r, prompt)
		list = append(list, hits.Request{Sent: due[i], First: due[i], Done: due[i] + int64(alone), Prompt: prompt, Answer: max(r.Output, 1), Served: -1,
			Content: func() sim.Content { return content }})
		tokens += prompt
	}
	return list, true
}

// dueTimes are those of the first n requests of a plan, as far as answers have no part in
// them: users who wait are taken to have their answers after the time of a request alone.
func dueTimes(p *config.Plan, t *target.Target, alone time.Duration, n int) ([]int64, error) {
	due := make([]int64, n)
	if p.Rate == 0 {
		users := max(p.Concurrency, 1)
		each := int64(alone + p.Think.Mean())
		for i := range due {
			due[i] = int64(i/users)*each + int64(i%users)*each/int64(users)
		}
		return due, nil
	}
	cfg, err := scheduleConfig(p, &p.Load, t, &source{}, 0)
	if err != nil {
		return nil, err
	}
	for i := range due {
		due[i] = cfg.Arrivals.Next()
	}
	return due, nil
}
