// Package result is the contract of run.json, schema "pitot.run/v1": what a
// run was and what it measured. Times are milliseconds, rates are per second,
// a value that is not known is null, with the reason next to it. It has no clock, no
// file and no socket: rundir reads and writes the file.
package result

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/stats"
)

// Schema names this version of the contract.
const Schema = "pitot.run/v1"

// Run is run.json.
type Run struct {
	Schema      string            `json:"schema"`
	Pitot       Version           `json:"pitot"`
	Command     []string          `json:"command"` // secrets redacted
	Seed        uint64            `json:"seed"`
	Started     string            `json:"started"` // RFC 3339
	Ended       string            `json:"ended"`
	Environment Environment       `json:"environment"`
	Target      Target            `json:"target"`
	Workload    json.RawMessage   `json:"workload"` // as planned: lengths, prompts, sampling
	Notes       map[string]string `json:"notes"`
	Launch      string            `json:"launch,omitempty"` // which start of the server: the unit of replication
	Points      []Point           `json:"points"`
	Repeats     *Repeated         `json:"repeats,omitempty"`      // of one load that was measured several times
	CacheEffect *CacheEffect      `json:"cache_effect,omitempty"` // of a load that was measured with a cold and with a warm cache
	Curve       *Curve            `json:"curve,omitempty"`        // of a sweep
	Capacity    *Capacity         `json:"capacity,omitempty"`     // of a search
	Findings    *Findings         `json:"findings,omitempty"`     // what limits it, null where it was not worked out
	Sent        *Sent             `json:"sent,omitempty"`         // all that went to the server: what its own counters grew by, where no one else sent it requests
	Verdict     Verdict           `json:"verdict"`
	Interrupted bool              `json:"interrupted,omitempty"` // stopped by the user
	Recovered   bool              `json:"recovered,omitempty"`   // finished from the journal of a run that died
	Damage      []Damage          `json:"damage,omitempty"`      // of the journal: stretches that could not be read
	Unplanned   int               `json:"unplanned,omitempty"`   // requests in the records whose plan was in such a stretch: they are in no point
}

// Sent counts what a run sent to the server.
type Sent struct {
	Load   Traffic  `json:"load"`             // all points: warm-up, window and drain; and loads that were begun and left no point
	Probes *Traffic `json:"probes,omitempty"` // besides: what was asked to find out what the target is and takes
}

// Traffic is requests that were sent, and their tokens as the server counted them.
type Traffic struct {
	Requests     int64 `json:"requests"`
	OK           int64 `json:"ok"`
	PromptTokens int64 `json:"prompt_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	NoUsage      int64 `json:"without_usage"` // requests whose tokens the server did not report, as of those that were cut off
}

// Damage is a stretch of a run's journal that could not be read when the run was
// finished. What it held is in no figure.
type Damage struct {
	Point     int   `json:"point"` // index of the first point that it may be of
	LastPoint int   `json:"last_point"`
	Requests  int64 `json:"requests"` // records of requests, written when each ended
	Chunks    int64 `json:"chunks"`
	Others    int64 `json:"others"` // samples of the client and the server, and notes of how the run went
	Exact     bool  `json:"exact"`  // false: how many of each is not known
}

// Version says which pitot it was.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Environment is the client's machine.
type Environment struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	Kernel      string `json:"kernel"`
	Clocksource string `json:"clocksource"`
	Stamps      string `json:"stamps"` // "kernel", "user" or "virtual": source of the chunk times
}

// Target describes the measured target.
type Target struct {
	Spec   string            `json:"spec"` // as given
	Kind   string            `json:"kind"` // "http", "mock" or "sim"
	URL    string            `json:"url"`
	API    string            `json:"api"`
	Model  string            `json:"model"`
	Server map[string]string `json:"server"` // what the server tells of itself: engine, version, max_model_len, …

	Settings map[string]string `json:"settings,omitempty"` // of an embedded target, as they were ordered: faults, jitter, …; those left alone are not here

	Adaptations []Adaptation `json:"adaptations,omitempty"` // what Pitot changed or chose by itself
}

// Point is one workload at one load.
type Point struct {
	Stage      string     `json:"stage,omitempty"` // what it is for in a sweep or a search
	Load       Load       `json:"load"`
	Seconds    Seconds    `json:"seconds"`
	Requests   Requests   `json:"requests"`
	Throughput Throughput `json:"throughput"`
	// Window and Server are other metrics of the window, and what the server reports of
	// itself over the load, by their names in the catalogue behind "window." and
	// "server.". One that is not known is not here.
	Window map[string]float64 `json:"window,omitempty"`
	Server map[string]float64 `json:"server,omitempty"`
	// PrefixCache compares the expected hits of the server's prefix cache among the prompts with
	// the actual ones.
	PrefixCache *PrefixCache `json:"prefix_cache,omitempty"`
	// Answers is what became of the questions among the requests whose answers are checked;
	// nil without --check-answers. They are in no other count of requests and in no latency.
	Answers *Answers `json:"answers,omitempty"`
	// Retries holds the results of failed requests that were sent again; nil without --retry.
	Retries *Retries `json:"retries,omitempty"`
	// RateLimits holds the server's own statements of its rate limits; nil where it made none.
	RateLimits *RateLimits `json:"rate_limits,omitempty"`
	// ServerMissing are pages of metrics that were given up under the load, each with why.
	ServerMissing []string `json:"server_missing,omitempty"`

	Energy    *Energy         `json:"energy,omitempty"`
	Cost      *Cost           `json:"cost"`
	Metrics   Metrics         `json:"metrics"`
	SLO       *SLO            `json:"slo"`
	Goodput   *Goodput        `json:"goodput"`
	Stability stats.Stability `json:"stability"`
	// StabilityWhy says what it rests on, or what would decide it.
	StabilityWhy Reason           `json:"stability_why,omitzero"`
	InFlight     []float64        `json:"in_flight,omitempty"`   // time means in equal blocks of the window, of requests between due and done
	OverTime     *OverTime        `json:"over_time,omitempty"`   // of a load that changes, comes in bursts, or lasts for long
	Sessions     *Sessions        `json:"sessions,omitempty"`    // where requests follow one another
	Growth       *Growth          `json:"growth,omitempty"`      // of the requests in flight; none in a closed loop
	Standstills  *Standstills     `json:"standstills,omitempty"` // that come by the clock, null if none do
	EndedEarly   bool             `json:"ended_early,omitempty"` // the load was hopeless: the window is shorter than planned
	WentAway     *float64         `json:"went_away_s,omitempty"` // seconds after the load began, from when on the target refused every connection
	Until        *Until           `json:"until,omitempty"`       // of a window that was to end when a value is known well enough
	Outcome      Outcome          `json:"outcome"`
	Classes      map[string]Class `json:"classes,omitempty"`
	Workers      []Worker         `json:"workers,omitempty"` // that carried the load out together; none: one process did
	Checks       []Check          `json:"checks"`
	Verdict      Verdict          `json:"verdict"`
}

// Worker is one of several processes that carried a load out. Marks have it too, without what only
// its records say.
type Worker struct {
	Rank int    `json:"rank"` // its number, from 0
	Host string `json:"host"`
	CPUs int    `json:"cpus"` // that it may use

	Requests     int     `json:"requests"`       // of the window, that were its own
	Ahead        float64 `json:"ahead_ms"`       // of the coordinator's clock was its own
	AheadBound   float64 `json:"ahead_bound_ms"` // and by how much that may be wrong
	ClockSteps   int     `json:"clock_steps"`    // of either, as far as their distance shows
	JournalBytes int64   `json:"journal_bytes"`  // that came home; 0 in a run that was recovered: it is not known how it was divided
	Lost         *Lost   `json:"lost,omitempty"` // it was lost
	Verdict      Verdict `json:"verdict"`        // of its instrument
}

// Lost describes a worker that was lost.
type Lost struct {
	At     float64 `json:"at_s"`   // when it was last heard of, since the load began
	Why    string  `json:"why"`    //
	Missed int     `json:"missed"` // requests of the window that it did not send, or whose end is not known
	Early  bool    `json:"early"`  // the window would have been too short up to there, and goes on behind it
}

// TokenizerMatch compares the tokens of one text by the user's tokenizer with those by the server.
// The server counted them before the load.
type TokenizerMatch struct {
	Ours    int  `json:"ours"` // tokens, by the tokenizer's file
	Theirs  int  `json:"theirs"`
	Differ  int  `json:"differ"`            // by which they differ
	IDs     bool `json:"ids"`               // their ids were compared, else only their number
	Size    int  `json:"size"`              // where IDs: ids in the user's file
	Highest int  `json:"highest_id"`        // where IDs: the highest of the server's
	Prompts bool `json:"prompts,omitempty"` // the prompts are ids that the user's file makes (--set prompt-ids)
}

// SinceBegin returns when the worker was last heard of, since the load began.
func (l *Lost) SinceBegin() time.Duration { return time.Duration(math.Round(l.At * 1e9)) }

// CacheEffect is the effect of a warm prefix cache on TTFT. It compares pairs of requests of the
// same lengths and due times. One is of the point in which nothing is shared. The other is of the
// point in which every shared prefix had been sent before.
type CacheEffect struct {
	Cold         int         `json:"cold"` // index of the point
	Warm         int         `json:"warm"`
	Pairs        int         `json:"pairs"`        // that were answered in both windows
	ColdMS       float64     `json:"cold_ttft_ms"` // means of the pairs
	WarmMS       float64     `json:"warm_ttft_ms"`
	DifferenceMS float64     `json:"difference_ms"` // warm less cold
	CI95         *[2]float64 `json:"ci95_ms"`       // of the difference, by the means of batches of pairs; null: too few of them
}

// PrefixCache compares the expected hits of a server's prefix cache among the prompts of the window
// with the actual ones. Shares are of the prompts' tokens. A model of vLLM's cache received the
// requests at the times at which they were sent and answered.
type PrefixCache struct {
	Expected  float64  `json:"expected_share"`      // where a prompt can be found from when its prefill begins
	Late      float64  `json:"expected_late_share"` // where it can be found only behind its first token
	Endless   float64  `json:"endless_share"`       // of a cache that forgets nothing
	Served    *float64 `json:"served_share"`        // by the usage of the answers; null: it does not tell
	ByMetrics bool     `json:"served_by_metrics"`   // answers do not tell it, and the server\'s own counters do, of the whole load
	Requests  int      `json:"requests"`            // that both are of
	All       bool     `json:"all"`                 // not only the first of the load were looked at
	BlockSize int      `json:"block_size"`          // tokens
	Assumed   bool     `json:"block_size_assumed"`  // the server does not tell it
	Tokens    int      `json:"capacity_tokens"`     // 0: not known, a cache that forgets nothing was taken
	Off       bool     `json:"off"`                 // the server keeps no prefixes
	Asked     int      `json:"asked_before"`        // requests that asked for shared prefixes before the load, and are in no figure
	Mode      string   `json:"mode,omitempty"`      // what --cache asked for: "cold", "warm", "60%"
}

// RateLimits holds the rate limits in the headers of the answers to the window's requests.
type RateLimits struct {
	Requests *RateLimit `json:"requests"` // null where nothing was said
	Tokens   *RateLimit `json:"tokens"`
	Refused  int        `json:"refused"` // requests that ended with status 429: they count as failed
	// RetryAfter is the longest Retry-After of these refusals, missing if none had one.
	RetryAfter *float64 `json:"longest_retry_after_seconds,omitempty"`
}

// RateLimit is one of them.
type RateLimit struct {
	Limit *int64 `json:"limit"`           // the lowest that was reported, null if none was
	Least *int64 `json:"least_remaining"` // likewise of what was left
	// Whole is the longest time after which it was said to be whole again, missing if none was
	// told.
	Whole *float64 `json:"longest_reset_seconds,omitempty"`
	// AllowsPerS is the number per second that the limit lets through in the long run. It is the
	// limit divided by the longest time until it is whole. It is missing unless the limit was used
	// up and was seen to become whole again. Where a part is left, that time need not be its
	// period.
	AllowsPerS *float64 `json:"allows_per_s,omitempty"`
}

// Retries holds the results of the window's requests where failed ones are sent again. All its
// shares are of the requests due: first_ok + later_ok is ok of requests. The repeats are in no
// other count.
type Retries struct {
	Attempts      int            `json:"attempts"`      // sent, or refused a connection, for the requests due in the window
	Amplification *float64       `json:"amplification"` // attempts for each request that was sent; null: none was
	FirstOK       int            `json:"first_ok"`      // requests that the first attempt answered
	LaterOK       int            `json:"later_ok"`      // that a later one did
	FirstErrors   map[string]int `json:"first_errors"`  // error class of the first attempt: count, of all others
	BackoffMS     *float64       `json:"backoff_ms"`    // mean wait between attempts of the requests that were sent again; null: none was
}

// Until describes the end of a window that was to last until a value is known well enough. It is a
// rule for stopping. The interval that it looks at is narrow by chance more often than a 95 %
// interval is.
type Until struct {
	Spec             string   `json:"spec"`               // "p99 ttft +-5%"
	Reached          bool     `json:"reached"`            //
	HalfWidthPercent *float64 `json:"half_width_percent"` // at the last look
	Looks            int      `json:"looks"`              // each at twice the window of the one before
	Why              Reason   `json:"why,omitzero"`       // there is no half-width, or no further look
}

// Standstills are times at which nothing came from any stream while answers were
// under way, again and again after the same time.
type Standstills struct {
	EveryS float64 `json:"every_s"`
	ForMS  float64 `json:"for_ms"` // the median
	N      int     `json:"n"`      // that were seen
}

// Sessions holds the results of the conversations that began in the window. They are followed for
// as long as the load went on. It also has the window's requests by their position in their
// conversations. The turns of a conversation are alike, so intervals here are of whole
// conversations.
type Sessions struct {
	Begun      int `json:"begun"`       // = finished + ended early + going on
	Finished   int `json:"finished"`    // all their requests were answered
	EndedEarly int `json:"ended_early"` // a request was not, and so the next was never asked
	GoingOn    int `json:"going_on"`    // when the load ended
	NeverAsked int `json:"never_asked"` // requests of those that ended early

	FailedShare     *float64    `json:"failed_share,omitempty"`      // of those that came to an end, that ended early; null where none did
	FailedShareCI95 *[2]float64 `json:"failed_share_ci95,omitempty"` // by batches of whole conversations; null where there is none

	FinalS       Ranks    `json:"final_s"`       // from when the first request was due to the end of the last answer
	RereadTokens *float64 `json:"reread_tokens"` // of the prompts of a finished one, that were asked or answered in it before; mean
	PromptTokens *float64 `json:"prompt_tokens"` // of the prompts of a finished one; mean

	ByTurn    []Placed `json:"by_turn"`    // from 1
	ByHistory []Placed `json:"by_history"` // tokens of the prompt that were asked or answered before
}

// Ranks are two order statistics, null where no more is known than that the value is
// longer than it was followed.
type Ranks struct {
	P50 *float64 `json:"p50"`
	P90 *float64 `json:"p90"`

	// Of the median, by batches of whole conversations; null where there is none.
	P50CI95 *[2]float64 `json:"p50_ci95,omitempty"`
}

// Placed is the requests of the window that stand in a range of places of their
// conversations.
type Placed struct {
	From          int64    `json:"from"`
	To            int64    `json:"to"`
	Requests      int      `json:"requests"`
	TTFT          Ranks    `json:"ttft_ms"`
	CachedShare   *float64 `json:"cached_share"`   // of the prompt tokens, reported by the server; null where it does not
	HistoryTokens float64  `json:"history_tokens"` // mean
}

// OverTime holds the results of a load over its window: equal blocks of time, by when requests were
// due.
type OverTime struct {
	// Began is when the window did, by the clock of the client's machine: RFC 3339. It is
	// missing in simulated time, and of loads that do not last for long.
	Began  string  `json:"began,omitempty"`
	BlockS float64 `json:"block_s"`
	Blocks []Block `json:"blocks"`
	// Metric is the metric of the reactions: "ttft", or "e2e" where nothing streams.
	Metric    string     `json:"metric"`
	Reactions []Reaction `json:"reactions,omitempty"`
	// Every says that the blocks have every Nth request only; missing: all.
	Every int `json:"every,omitempty"`
	// Differ are metrics whose level differs between blocks by more than one level of the
	// server makes, of a steady load that lasts for long.
	Differ []Differ `json:"differ,omitempty"`
	// Unknown is the reason why levels of such a load are not known.
	Unknown Reason `json:"unknown_because,omitzero"`
}

// Differ is a metric whose level differs between blocks. A server of one level, at which
// latencies depend on each other as those of a queue do, comes to P or less so often.
type Differ struct {
	Metric   string  `json:"metric"`
	Slowest  int     `json:"slowest"` // index of the block whose median is the highest
	Quickest int     `json:"quickest"`
	P        float64 `json:"p"`
}

// Block is a stretch of the window.
type Block struct {
	DuePerS  float64  `json:"due_per_s"`
	InFlight *float64 `json:"in_flight"` // mean
	P50      *float64 `json:"p50_ms"`    // of the metric, over the requests due in it
	P90      *float64 `json:"p90_ms"`
	Max      *float64 `json:"max_ms"`

	P95  *float64 `json:"p95_ms,omitempty"`      // where a load lasts for long and the block has 200 requests
	TPOT *float64 `json:"tpot_p50_ms,omitempty"` // where a load lasts for long
}

// Reaction describes how the metric followed a jump of the rate. It uses the median of eleven
// consecutive requests by due time. Its level is the median over the last third of the time to the
// next jump. After the last jump that time ends with the window.
type Reaction struct {
	AtS    float64  `json:"at_s"`      // of the window
	Before *float64 `json:"before_ms"` // the level that it left
	After  *float64 `json:"after_ms"`  // the level that it came to
	Peak   *float64 `json:"peak_ms"`   // the highest median
	PeakS  float64  `json:"peak_s"`    // behind the jump
	// SettledS is after how long it stayed within a fifth of its level, or within what it
	// varied by over that third; null where that third has no level.
	SettledS *float64 `json:"settled_s"`
}

// Growth is the trend of the requests in flight over the window: the median
// slope between its blocks.
type Growth struct {
	PerS    float64 `json:"per_s"`   // requests
	Deficit float64 `json:"deficit"` // the same as a share of the arrivals: those that are never served
}

// IsExcused says that a flag of a point of a sweep or a search is none of the whole:
// the point only found out where to look, or is beyond what the target serves, which
// is what it is there to show; or it has few samples, which its tables mark. carries says that
// what the search found rests on the point: of its flags only those are excused that a queue
// which grows makes.
func (p *Point) IsExcused(c *Check, carries bool) bool {
	if c.Status != Flag || p.Stage == "" || p.Stage == StageCold || p.Stage == StageWarm {
		return false
	}
	unstable := p.Stability == stats.Unstable && (!carries || slices.Contains(ofGrowth(), c.Name))
	return slices.Contains([]string{StageLight, "bracket", "centre"}, p.Stage) && !carries || unstable || p.isExcusedInLook(c) || c.Name == CheckSamples
}

// isExcusedInLook reports whether a flag is none of a first look: its windows are short on purpose, and
// it says medians and rates, which neither a late p99 nor merged chunks change.
func (p *Point) isExcusedInLook(c *Check) bool {
	switch {
	case p.Stage != StageQuick:
		return false
	case c.Name == CheckSendLag:
		shift, known := c.Detail["shift_p50"]
		return known && c.Limit != nil && shift <= *c.Limit
	}
	return slices.Contains([]string{CheckWarmup, CheckWindow, CheckResidences, CheckMerged}, c.Name)
}

// IsOfCurve reports whether a point is one of a sweep's.
func (p *Point) IsOfCurve() bool { return p.Stage == StageCurve || p.Stage == StageQuick }

// ofGrowth are the checks that a queue makes fail which grows for as long as the load lasts.
func ofGrowth() []string {
	return []string{CheckStability, CheckAchieved, CheckLittle, CheckWarmup, CheckWindow, CheckResidences, CheckErrors, CheckConnects}
}

// Load is the load that the target got. Rate is null in a closed loop, concurrency in an open one.
type Load struct {
	Loop        string   `json:"loop"` // "open" or "closed"
	Rate        *float64 `json:"rate"`
	Arrival     string   `json:"arrival,omitempty"`
	Concurrency *int     `json:"concurrency"`
	ThinkMS     *float64 `json:"think_ms,omitempty"` // mean
	MaxInFlight *int     `json:"max_in_flight,omitempty"`
	// Requests of a conversation, on average: the rate then counts the conversations that
	// begin, and a user holds one after the other. None where requests stand alone.
	Turns *float64 `json:"turns,omitempty"`
	// Likewise of the class whose conversations have most, where classes differ in that.
	// ThinkMS is then of this class.
	LongestTurns *float64 `json:"longest_turns,omitempty"`

	Retry string `json:"retry,omitempty"` // how failed requests are sent again, as --retry is written

	RespectLimits bool `json:"respect_limits,omitempty"` // requests are held back that the server has said it will refuse

	Expected *Arrivals `json:"expected,omitempty"` // what the arrival process makes one expect; none in a closed loop
}

// Arrivals holds what an arrival process makes one expect of its due times. Values that it does not
// give are missing.
type Arrivals struct {
	CV         *float64           `json:"cv,omitempty"`         // of the gaps
	Dispersion map[string]float64 `json:"dispersion,omitempty"` // of counts in so many seconds: variance over mean
	Varies     bool               `json:"varies,omitempty"`     // the rate changes with time: there is no steady state, and the others are those about the rate
	CycleS     float64            `json:"cycle_s,omitempty"`    // from burst to burst on average, or the period
	ChangesS   []float64          `json:"changes_s,omitempty"`  // seconds of the window at which the rate jumps
}

// SessionSeconds is about how long a conversation lasts whose requests take so many
// seconds, of the class with the longest ones; 0 where requests stand alone.
func (l *Load) SessionSeconds(request float64) float64 {
	if l.Turns == nil {
		return 0
	}
	turns := *l.Turns
	if l.LongestTurns != nil {
		turns = *l.LongestTurns
	}
	s := turns * request
	if l.ThinkMS != nil {
		s += max(turns-1, 0) * *l.ThinkMS / 1e3
	}
	return s
}

// HasVaryingRate says that the rate of the load changes with time, so that it has no steady state.
func (l *Load) HasVaryingRate() bool { return l.Expected != nil && l.Expected.Varies }

// Value is the load as a number: requests a second, or users; 0 if neither is
// known.
func (l *Load) Value() float64 {
	switch {
	case l.Rate != nil:
		return *l.Rate
	case l.Concurrency != nil:
		return float64(*l.Concurrency)
	}
	return 0
}

// Unit returns the unit that the load is counted in.
func (l *Load) Unit() string {
	return LoadUnit(l.Over())
}

// ByLoad gives the points of a run by their loads; where a load was measured several
// times, all are there.
func (r *Run) ByLoad() []int {
	order := make([]int, len(r.Points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Points[a].Load.Value(), r.Points[b].Load.Value()) })
	return order
}

// UnderWay is the point of a search or a sweep that was under way when it was interrupted, and
// so tells nothing of its load; −1 where none was, or it is the only one.
func (r *Run) UnderWay() int {
	last := len(r.Points) - 1
	if !r.Interrupted || last < 1 {
		return -1
	}
	p := &r.Points[last]
	cut := p.Requests.Due == 0 || p.Requests.Errors[interrupted] > 0
	if c := r.Capacity; c != nil {
		cut = !slices.ContainsFunc(c.Trail, func(t CapacityProbe) bool { return t.Point == last && !t.Cut })
	} else if !p.IsOfCurve() {
		return -1
	}
	if !cut {
		return -1
	}
	return last
}

// WithholdUnderWay takes from the point that was under way what the requests decide that were cut
// with it: they violated nothing, so that its share within the SLO and its goodput are not known.
func (r *Run) WithholdUnderWay() {
	i := r.UnderWay()
	if i < 0 {
		return
	}
	why := Reason{Code: RunInterrupted}
	p := &r.Points[i]
	p.Goodput = nil
	if s := p.SLO; s != nil {
		p.SLO = &SLO{Spec: s.Spec, Met: Undecided, Why: why, Limits: slices.Clone(s.Limits)}
		for k := range p.SLO.Limits {
			l := &p.SLO.Limits[k]
			l.Attained, l.Met, l.Why = nil, Undecided, why
		}
	}
	classes := maps.Clone(p.Classes)
	for name, c := range classes {
		if c.SLO != nil {
			c.SLO = &ClassSLO{Spec: c.SLO.Spec, Met: Undecided}
			classes[name] = c
		}
	}
	p.Classes = classes
	if c := p.Cost; c != nil {
		withheld := *c
		withheld.USDPerMGoodOutput, withheld.USDPerGoodRequest = nil, nil
		p.Cost = &withheld
	}
	if e := p.Energy; e != nil {
		withheld := *e
		withheld.JoulesPerGoodToken = nil
		p.Energy = &withheld
	}
}

// interrupted is the class of the errors of requests that were under way then, as records
// have it.
const interrupted = "interrupted"

// Seconds are the lengths of a point's parts.
type Seconds struct {
	Warmup float64 `json:"warmup"`
	Window float64 `json:"window"`
	Drain  float64 `json:"drain"`

	Residence float64 `json:"residence,omitempty"` // what a request takes without a queue, as far as it is known
}

// Requests counts the cohort: due = ok + failed + cut + unsent.
type Requests struct {
	Due    int `json:"due"`
	OK     int `json:"ok"`
	Failed int `json:"failed"`
	Cut    int `json:"cut"`
	Unsent int `json:"unsent"`

	// LostWithWorker were a lost worker's to send after it was last heard of. Nobody sent them
	// in its place, so the server was not offered them: they are no part of due, nor of any share.
	LostWithWorker int `json:"lost_with_worker,omitempty"`

	Errors map[string]int `json:"errors"` // error class: count, of failed, cut and unsent
	Finish map[string]int `json:"finish"` // finish_reason: count, of ok; the first hundred reasons, and others for the rest

	SkippedEvents int `json:"skipped_events,omitempty"` // events of the responses that were no part of them: heartbeats, and any after the end mark

	ErrorExamples map[string]string `json:"error_examples,omitempty"` // error class: the message of the server or the system for the first such request due
}

// Throughput counts by stamp whatever falls in the window, from any request.
type Throughput struct {
	DuePerS          *float64 `json:"due_per_s"`      // requests that came due: the load that was offered
	RequestsPerS     *float64 `json:"requests_per_s"` // answers that ended
	RPM              *float64 `json:"rpm"`
	InputTokensPerS  *float64 `json:"input_tokens_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	PerGPU           *PerGPU  `json:"per_gpu"`
	Why              Reason   `json:"why,omitzero"` // why a figure is null or a lower bound

	CI95       map[string][2]float64 `json:"ci95,omitempty"`       // of requests_per_s and output_tokens_per_s
	NoInterval Reason                `json:"no_interval,omitzero"` // why there is none

	Late *Late `json:"late,omitempty"` // null where the tokens were not counted
}

// Late holds what was served in the second half of the window. By then a load that is more than the
// server carries has filled it.
type Late struct {
	OutputTokensPerS float64     `json:"output_tokens_per_s"`
	CI95             *[2]float64 `json:"ci95,omitempty"` // over time blocks
}

// PerGPU is throughput divided by the number of GPUs.
type PerGPU struct {
	GPUs             int      `json:"gpus"`
	RequestsPerS     float64  `json:"requests_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
}

// Summary is one distribution. Percentiles are exact order statistics
// X(⌈np⌉) over the cohort, in which requests that were not followed to their
// end count as longer than they were followed.
type Summary struct {
	N        int64    `json:"n"`                  // samples, censored ones included
	Censored int64    `json:"censored,omitempty"` // those not followed to their end
	Missing  int64    `json:"missing,omitempty"`  // requests without a value (undefined), not in n
	Streams  int64    `json:"streams,omitempty"`  // itl: streams whose gaps these are
	Excluded int64    `json:"excluded,omitempty"` // itl: streams left out, because the tokens in their chunks are not known
	Mean     *float64 `json:"mean"`
	SD       *float64 `json:"sd"`
	Min      *float64 `json:"min"`
	P50      *float64 `json:"p50"`
	P90      *float64 `json:"p90"`
	P95      *float64 `json:"p95"`
	P99      *float64 `json:"p99"`
	P999     *float64 `json:"p99_9"`
	Max      *float64 `json:"max"`
	P99Numpy *float64 `json:"p99_numpy"`
	P99OK    *float64 `json:"p99_ok,omitempty"` // of the requests that ended well alone; only where some did not

	Few        []string              `json:"few,omitempty"`    // percentiles that rest on fewer than 10/(1−p) samples
	Over       map[string]float64    `json:"over,omitempty"`   // percentile: true value is above this (the rank falls among censored requests)
	Bounds     map[string][2]float64 `json:"bounds,omitempty"` // what the kernel's merging of segments leaves open
	CI95       map[string][2]float64 `json:"ci95,omitempty"`
	NoInterval map[string]Reason     `json:"no_interval,omitempty"` // why there is no interval
	Withheld   map[string]Reason     `json:"withheld,omitempty"`    // why there is no value
	Phi        map[string]float64    `json:"phi,omitempty"`         // over-dispersion of "above the percentile" in this run
	Label      string                `json:"label,omitempty"`       // "amortised", "assumed", …
}

// Value is one of the summary's values by its key in JSON: "mean", "p99", "p99_9",
// "max". It is nil where there is none, and of no summary at all.
func (s *Summary) Value(key string) *float64 {
	if at := s.fieldByKey(key); at != nil {
		return *at
	}
	return nil
}

// SetValue puts a value under its key.
func (s *Summary) SetValue(key string, x *float64) {
	if at := s.fieldByKey(key); at != nil {
		*at = x
	}
}

// fieldByKey is where a value is kept.
func (s *Summary) fieldByKey(key string) **float64 {
	if s == nil {
		return nil
	}
	switch key {
	case "mean":
		return &s.Mean
	case "sd":
		return &s.SD
	case "min":
		return &s.Min
	case "p50":
		return &s.P50
	case "p90":
		return &s.P90
	case "p95":
		return &s.P95
	case "p99":
		return &s.P99
	case "p99_9":
		return &s.P999
	case "max":
		return &s.Max
	}
	return nil
}

// SLO is the verdict on the service level objective.
type SLO struct {
	Spec       string      `json:"spec"`
	Attained   *float64    `json:"attained"` // share of all due that ended well within every limit that a single request can be held against
	CI95       *[2]float64 `json:"ci95"`
	NoInterval Reason      `json:"no_interval,omitzero"`
	Met        Met         `json:"met"`
	Deciding   string      `json:"deciding,omitempty"` // the limit that decided, where one by itself did
	Why        Reason      `json:"why,omitzero"`
	Near       bool        `json:"near_limit,omitempty"` // another window may well come out otherwise
	Limits     []Limit     `json:"limits"`

	Violations []Violations `json:"violations,omitempty"` // of a sweep's loads: what its bounds of the capacity are made of
	Cluster    *float64     `json:"cluster,omitempty"`    // of conversations: requests of the window in the one that a request is of, on average
}

// Violations are the requests that violate one claim of an SLO, in the order in which
// they were due.
type Violations struct {
	Spec    string  `json:"spec"`          // of the claim: a limit on a percentile, on errors, or all joint ones
	Allowed float64 `json:"allowed"`       // share of the requests that may violate it
	Blocks  []int   `json:"blocks"`        // how many do, in equal consecutive parts of the requests due; of conversations, in parts of whole ones
	Due     *int    `json:"due,omitempty"` // requests that it is about, of a claim about a class of them; Blocks are then parts of these
}

// Limit is one limit of an SLO.
type Limit struct {
	Spec       string      `json:"spec"`                 // "p99 ttft<200ms", or "chat: p99 ttft<200ms"
	Class      string      `json:"class,omitempty"`      // of the requests that it is about; all of them where it is not here
	Percentile float64     `json:"percentile,omitempty"` // in percent; none of a limit on single requests, and of errors
	Metric     metric.Name `json:"metric"`               // "ttft"
	Value      *float64    `json:"value"`                // what was measured at its percentile, in the limit's unit
	Limit      float64     `json:"limit"`                // milliseconds, or a share for errors
	Attained   *float64    `json:"attained"`             // share of all due that it is about that ended well and not over the limit; null where single requests have no such value
	Met        Met         `json:"met"`
	Near       bool        `json:"near_limit,omitempty"` // another window may well decide it otherwise
	Why        Reason      `json:"why,omitzero"`
}

// Goodput holds what was served within the SLO.
type Goodput struct {
	RequestsPerS     float64  `json:"requests_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
}

// Class is a part of the cohort.
type Class struct {
	Requests Requests  `json:"requests"`
	Metrics  Metrics   `json:"metrics"`
	SLO      *ClassSLO `json:"slo,omitempty"` // of a class that has limits of its own
}

// ClassSLO holds the results of a class's requests under the limits of their own. The limits
// themselves are among those of the point.
type ClassSLO struct {
	Spec     string   `json:"spec"`
	Attained *float64 `json:"attained"` // share of its requests due that ended well within each of them
	Met      Met      `json:"met"`
}
