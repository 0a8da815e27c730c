package sim

// Observable is an engine that tells what it does.
type Observable interface {
	Stats() Stats
	// Watch has f called with each step when it is planned; nil ends it.
	Watch(f func(StepInfo))
}

// Queueing is an engine that has no steps to tell of, and seats.
type Queueing interface {
	// Queue returns the number of jobs that have a seat, and the number that wait for one.
	Queue() (running, waiting int)
}

// Replicated is an engine that is several, each with steps and counts of its own.
type Replicated interface {
	// Replicas gives them in the order of the numbers that emissions and steps have.
	Replicas() []Observable
}

// Deserted is an engine that may have nobody who takes a job: whoever stands in front
// of it asks before it adds one.
type Deserted interface {
	// Serves says whether a job may be added at a time.
	Serves(now int64) bool
}

// Model is an engine of hardware that can be looked into: what a deployment
// makes, whichever scheduler it runs.
type Model interface {
	Engine
	Observable
	Limited
	// Pace has the duration of each step multiplied by what f says for the time
	// it begins, in nanoseconds; nil ends it.
	Pace(f func(start int64) float64)
	// Brief has it hand on of each answer the first tokens and the last, these with all
	// that came between. When they come is the same; where an engine dies, what had come of
	// an answer may be untold. For those who ask for nothing else, in less than half the time.
	Brief()
}

// Limited is an engine that takes only so many tokens of a prompt and its
// answer. Whoever stands in front of it refuses longer requests.
type Limited interface{ MaxModelLen() int }

// Warmable is an engine with a prefix cache.
type Warmable interface {
	// Warm puts a prompt into the cache, as a request would have that ended before.
	Warm(j Job)
}

// Resumable is several engines with prefix caches.
type Resumable interface {
	// Resume puts what a conversation has said into the cache of one: that which a router
	// sends it to.
	Resume(j Job)
}

// Stats are an engine's state and its counts since the start.
type Stats struct {
	Running, Waiting int
	KVCacheUsage     float64 // 0 to 1

	Steps            int64
	Preemptions      int64
	PrefixQueries    int64 // tokens looked up in the prefix cache
	PrefixHits       int64 // of these, found
	GenerationTokens int64

	// Speculative decoding.
	Drafts              int64 // verifications
	DraftTokens         int64
	AcceptedTokens      int64
	AcceptedPerPosition []int64 // one for each token that is drafted at once; none: nothing is drafted

	Radix Radix
}

// Radix holds the statistics of an engine that keeps its KV cache token by token in a radix tree.
// Other engines report none.
type Radix struct {
	Tokens, Used, Evictable int // of the KV cache; of requests that run; of the tree alone
	Context                 int // tokens of the requests that go on with their answers

	// Tokens of prompts that went through the model and that were found in the tree, and
	// of these those of requests that had been there before and were retracted.
	Computed, Found           int64
	ComputedAgain, FoundAgain int64
	HitShare                  float64 // found of the prompts of the last step that had any

	RetractedPrompt, RetractedAnswer int64 // tokens of requests that were retracted
	Evicted, Evictions               int64 // tokens, and times
	PromptSteps, AnswerSteps         int64
	Rate                             float64 // tokens a second, over the last forty steps of answers
	Promised                         float64 // share of the rest of their answers that running requests are promised
}

// add adds another engine's: shares count as
// the higher.
func (r *Radix) add(t *Radix) {
	r.Tokens += t.Tokens
	r.Used += t.Used
	r.Evictable += t.Evictable
	r.Context += t.Context
	r.Computed += t.Computed
	r.Found += t.Found
	r.ComputedAgain += t.ComputedAgain
	r.FoundAgain += t.FoundAgain
	r.HitShare = max(r.HitShare, t.HitShare)
	r.RetractedPrompt += t.RetractedPrompt
	r.RetractedAnswer += t.RetractedAnswer
	r.Evicted += t.Evicted
	r.Evictions += t.Evictions
	r.PromptSteps += t.PromptSteps
	r.AnswerSteps += t.AnswerSteps
	r.Rate += t.Rate
	r.Promised = max(r.Promised, t.Promised)
}

// Add adds another engine's: all but the usage of the KV cache are sums, of which the
// fuller counts.
func (s *Stats) Add(t *Stats) {
	s.Running += t.Running
	s.Waiting += t.Waiting
	s.KVCacheUsage = max(s.KVCacheUsage, t.KVCacheUsage)
	s.Steps += t.Steps
	s.Preemptions += t.Preemptions
	s.PrefixQueries += t.PrefixQueries
	s.PrefixHits += t.PrefixHits
	s.GenerationTokens += t.GenerationTokens
	s.Drafts += t.Drafts
	s.DraftTokens += t.DraftTokens
	s.AcceptedTokens += t.AcceptedTokens
	s.Radix.add(&t.Radix)
	for i, n := range t.AcceptedPerPosition {
		if i == len(s.AcceptedPerPosition) {
			s.AcceptedPerPosition = append(s.AcceptedPerPosition, 0)
		}
		s.AcceptedPerPosition[i] += n
	}
}

// CountVerification counts one verification of drafts, of which there are at most as many
// as AcceptedPerPosition has.
func (s *Stats) CountVerification(drafts, accepted int) {
	if drafts == 0 {
		return
	}
	s.Drafts++
	s.DraftTokens += int64(drafts)
	s.AcceptedTokens += int64(accepted)
	for i := range accepted {
		s.AcceptedPerPosition[i]++
	}
}

// StepInfo is a step that has been planned.
type StepInfo struct {
	Number       int64 // from 1
	Start, End   int64 // ns
	Requests     int   // that are part of it
	Tokens       int   // that go through the model
	Running      int
	Waiting      int
	KVCacheUsage float64 // 0 to 1
	Engine       int     // of several that are one; all the above is of this one alone
}
