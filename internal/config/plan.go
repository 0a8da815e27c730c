// Package config is what a run is to do: one strict decode of flags, YAML and
// environment into the parts of a plan, and back into a file that does the run
// again. What can be set stands in one table, [Settings].
package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/cost"
	"pitot/internal/slo"
	"pitot/internal/workload"
	"pitot/internal/workload/question"
)

// Plan holds the settings of a verb that measures, in parts. Each package can so get only the part
// that it needs.
type Plan struct {
	Target  // what is measured, and how it is reached
	Ask     // what is asked of it
	Load    // how hard
	Search  // which loads
	Good    // what is good, and what it costs
	Output  // what is kept
	Display // how it is shown
	Fleet   // by how many processes, and how they meet

	Origins []Origin // of what was not on the command line; no part of what is done
}

// Target holds the address of the measured target, and the way to reach it.
type Target struct {
	Spec     string   // as the user wrote it
	API      string   // "" to be asked
	Model    string   // "" to be asked
	KeyEnv   string   // variable that holds the API key
	KeyFile  string   // file that holds it
	Headers  []string // NAME=VALUE
	CACert   string   // file
	Cert     string   // file of this client's certificate, "" for none
	Key      string   // file of its private key, "" where it is in the same
	Insecure bool
	Proxy    string        // URL
	Timeout  time.Duration // of a request
	Wait     time.Duration // for the target to be ready
	NoProbe  bool
	Launch   string // name of this start of it
	Launches int    // of an embedded target, measured one after the other

	Tokenizer string // file of the model's tokenizer, "" for none

	PublicHeaders []string // NAME=VALUE, of which the user says that they are no secrets

	Scrape         []string      // NAME=URL, pages of metrics besides the target's own
	ScrapeHeaders  []string      // NAME=VALUE, for those
	NoScrape       bool          // ask for no metrics
	ScrapeInterval time.Duration // between two questions
}

// Ask holds the settings of the workload.
type Ask struct {
	Workload      string // name of a preset or of a file, [RandomWorkload] for generated prompts
	InTime        bool   // the requests of a file come at its own times, found out from Load.Arrival
	Mix           *Mix   // what the file says, where it is one of classes; Input and Output are then those of all together
	Input, Output workload.Lengths
	Prefix        int                 // tokens
	Tree          *workload.Tree      // that prompts begin with the texts of, in place of Prefix; nil for none
	Cache         string              // what a prefix cache finds: "" and CacheCold, CacheWarm, CacheBoth, or a share as "60%"
	PrefixShare   float64             // of the requests, where there is a prefix
	Correlation   float64             // Spearman's, of the lengths of prompts and answers
	Recorded      *workload.Shape     // of the sessions that the workload is a file of, found out by Check; nil where it is none
	Start         workload.StartShare // how far into recorded sessions the load begins
	MaxThink      time.Duration       // longest pause of recorded sessions, 0 for as they were
	Turns         workload.Lengths    // requests of a conversation
	TurnInput     workload.Lengths    // tokens that each further turn adds; zero: as Input
	System        int                 // tokens of a system prompt
	SubAgents     workload.SubAgents  // that the steps of conversations start
	History       string              // what conversations repeat of their answers: HistoryServed or HistoryPlanned
	Think         workload.Pause      // of users: between the turns of a conversation, and in a closed loop before what they ask next
	Stop          workload.Stop       // where answers end
	Choices       int                 // answers to each request
	Batch         int                 // texts of a request of a model that generates nothing
	Query         workload.Lengths    // tokens of what such texts are held against, where the API has that
	Pooling       bool                // nothing is generated, found out from the API
	Draw          int                 // which draw of the words that make prompts differ: another one since a load that had asked some of them left no point
	Questions     question.Shares     // of the requests, whose answers are checked
	Body          string              // JSON object
	NoStream      bool
	PromptIDs     bool // token ids in place of generated words
	Seed          uint64
	SeedSet       bool // it was asked for
}

// Load holds the load of one point: a rate, or a number of users.
type Load struct {
	Rate        float64 // open loop, requests per second
	Arrival     string
	MaxInFlight int // 0 for no limit
	Retry       Retry
	Respect     bool // requests are held back that the server has said it will refuse
	Concurrency int  // closed loop, users

	Duration time.Duration // of the window, AutoDuration for auto
	Requests int64         // of the window, 0: it lasts Duration
	Exactly  bool          // send the requests that are counted and no more
	Warmup   time.Duration // AutoWarmup for auto
	// Burst is a span of the warm-up, from its begin, whose requests come all at once at its
	// end; none where it is empty.
	Burst  [2]time.Duration
	Repeat int
	Until  slo.Precision // the window is doubled until a value is known so well
	// MaxDuration is how long the window may become by Until.
	MaxDuration time.Duration
}

// Search is which loads are measured.
type Search struct {
	Over    string        // [OverRate], [OverConcurrency] or [OverAgents]
	Loads   []float64     // to measure; none: Points of them are chosen
	Points  int           // how many
	Budget  time.Duration // for the search
	At      float64       // the one load to verify, 0 to search
	MaxLoad float64       // 0 for no limit
	// Continue is the directory of the search to go on with, "" for none.
	Continue string
}

// Good holds the objective and the price.
type Good struct {
	SLO        slo.Spec
	GPUs       int // 0 where it is not known
	GPUPrice   cost.GPU
	TokenPrice cost.Tokens
	Discount   float64 // share of the price that is taken off
	Headroom   float64 // share of a capacity that is kept idle
	SpendLimit float64 // USD, 0 for none
}

// Output holds the settings for the files kept of a run, and for the display.
type Output struct {
	Out      string // directory
	Resume   bool
	Format   string
	Full     bool     // show every line of the text
	ShowPage bool     // in a browser
	Export   []string // NAME=PATH
	Card     string   // path of a picture to share
	Notes    []string // KEY=VALUE
	DryRun   bool
	Quiet    bool
	Strict   bool // flags fail

	Undecided string // what a gate does that is undecided: [UndecidedFail] or [UndecidedPass]
}

// Display says how the text of an answer is shown.
type Display struct {
	Full bool // every line, not only the answer and what explains it
}

// What --undecided may say.
const (
	UndecidedFail = "fail" // exit code 4
	UndecidedPass = "pass" // exit code 0
)

// Embedded holds the settings of an embedded target.
type Embedded struct {
	TTFT, ITL      *time.Duration // nil where none is asked for
	Jitter         float64
	Slots          int
	TokensPerChunk int
	RoleChunk      bool
	MaxModelLen    int

	Face         string           // whose routes a mock server has, "" for its engine's
	Speed        float64          // times as fast as real
	StartupDelay time.Duration    // while the model is loaded
	Reasoning    float64          // share of a chat's answer
	ToolCalls    float64          // share of the chats with tools
	EOS          workload.Lengths // at which answers end by themselves; zero: at the limit
	TellCached   bool             // in the usage
	RateLimit    RateLimit        // of a mock server
	Faults       []string
	Truth        string // file
}

// Serving holds the settings by which `pitot mock` serves.
type Serving struct {
	Host     string
	Port     int
	Model    string        // served under this name, "" for the engine's own
	KeyFile  string        // file of the key that clients have to send
	Seed     *uint64       // nil where none is asked for
	Drain    time.Duration // what answers have left when it is stopped
	UntilEOF bool          // end with standard input
}

// Prediction holds the settings that only `pitot predict` has.
type Prediction struct {
	Replay      string // recording to replay
	MeasuredRun string // run to compare with the twin's
	List        bool   // list what is known
	Format      string
}

// Choosing holds the settings that only `pitot choose` has.
type Choosing struct {
	Model    string   // to deploy
	GPUs     []string // NAME, NAME:MOST or NAME:MOST@USD
	Engines  []string // none: vLLM
	DTypes   []string // of weights; none: the published one, and fp8 where it is computed in
	Settings string   // of every engine, as behind a deployment's question mark
	Rate     float64  // requests/s that are to be carried, 0: as many as an engine carries
	Sure     float64  // how likely the engines are to be enough, 0: as many as the estimate asks for
	Page     string   // file, "" for none
	Seed     uint64   // of arrivals and lengths, the same for all
	Format   string
}

// Fitting holds the settings that only `pitot fit` has.
type Fitting struct {
	Profile string // file
	Format  string
}

// Explanation holds the settings that only `pitot explain` has.
type Explanation struct {
	Deployment string // MODEL@GPU[?settings] that the target was, as far as it is known
	Save       bool   // what was found is put into run.json
	Format     string
}

// Calibration holds the settings that only `pitot calibrate` has.
type Calibration struct {
	Deployment string        // MODEL@GPU[?settings] that the target is, as far as it is known
	Time       time.Duration // that the loads may take
	Each       time.Duration // that one of them takes
	Allow      string        // AllowModel, or ""
	Format     string
}

// AllowModel lets a server be calibrated whose model has another name than the deployment's.
const AllowModel = "model"

// Comparison holds the settings that only `pitot compare` has.
type Comparison struct {
	FailIf       []string
	Primary      string // the metric that it is made for, "" for none
	Equivalent   string // share within which sides are equivalent
	Allow        string // what is taken all the same
	Undecided    string // what a clause does that is undecided: [UndecidedFail] or [UndecidedPass]
	SaveBaseline string // file
	Format       string
	Full         bool   // show every line of the text
	Page         string // file
	ShowPage     bool   // in a browser
}

// Experimenting holds the settings that only `pitot experiment` has.
type Experimenting struct {
	Out      string // directory of the experiment; of a new plan its file
	Format   string
	Quiet    bool
	Launched bool     // the launch that was waited for is made
	GPU      string   // of a new plan: MODEL@GPU, or a GPU
	Against  []string // earlier records, directories of experiments

	Fleet Fleet // that carries its loads out
}

// Manifest holds the settings of `pitot fleet manifest`.
type Manifest struct {
	Workers int
	Image   string
	CPUs    int
	Name    string
	NATS    string // "" for one of its own
	KeyEnv  string
}

// Audit holds the settings that only `pitot check` has.
type Audit struct {
	Client    string // another client, a shell command
	API       string // that is checked, or [AllAPIs]
	Streams   []int  // numbers of streams, nil for the usual
	Window    time.Duration
	TTFT, ITL time.Duration // of the reference
	Tokens    int           // of each of its answers
	Workers   int           // processes that ask together, 0 for this one alone
	Format    string
}

// AllAPIs is the --api of a check of every API.
const AllAPIs = "all"

// Price returns the price of the target, as far as the user gives it.
func (g *Good) Price() cost.Price {
	return cost.Price{GPU: g.GPUPrice, Tokens: g.TokenPrice, Discount: g.Discount}
}

// AutoDuration is the --duration of a sweep whose windows are chosen.
const AutoDuration time.Duration = -1

// AutoBudget is --budget auto: of a search no limit of time where it is virtual (sim:), usualBudget
// on a server; of a sweep no limit.
const (
	AutoBudget  time.Duration = -1
	usualBudget               = 20 * time.Minute
)

// SearchTime returns the maximum duration of a search, 0 for no limit.
func (p *Plan) SearchTime() time.Duration {
	switch {
	case p.Budget != AutoBudget:
		return p.Budget
	case p.Kind() == KindSim:
		return 0
	}
	return usualBudget
}

// WarmupFor returns the duration of the load before the window. alone is the time of a request
// alone, 0 where that is not known. A chosen warm-up lasts five requests at first. In that time a
// load comes round to a steady mix of beginning and ending answers. It goes on where the load has
// not settled.
func (l *Load) WarmupFor(alone time.Duration) time.Duration {
	if l.Warmup != AutoWarmup {
		return l.Warmup
	}
	return min(max(5*alone, time.Second), l.LongestWarmup()).Round(10 * time.Millisecond)
}

// LongestWarmup is the longest that is chosen.
func (l *Load) LongestWarmup() time.Duration { return max(l.Duration, 30*time.Second) }

// AutoWarmup is the warm-up whose length Pitot chooses itself.
const AutoWarmup time.Duration = -1

// Latencies of mock:fixed and sim:fixed where none are asked for.
const (
	FixedTTFT = 50 * time.Millisecond
	FixedITL  = 10 * time.Millisecond
)

// UsualModelLen is the longest prompt and answer together of fixed latencies.
const UsualModelLen = 131072

// RandomWorkload stands for generated prompts of lengths that are set.
const RandomWorkload = "random"

// Default is the plan when nothing is set.
func Default() Plan {
	var p Plan
	Reset(p.settingParts()...)
	return p
}

// Reset sets parts of a plan, given by pointers, to their defaults.
func Reset(parts ...any) {
	for _, s := range Settings() {
		if s.isIn(parts) {
			s.reset(parts, s.Default)
		}
	}
}

func (p *Plan) settingParts() []any {
	return []any{&p.Target, &p.Ask, &p.Load, &p.Search, &p.Good, &p.Output, &p.Display, &p.Fleet}
}

// KeptNotes are the notes of run.json, by name: those of --note, and the values of
// settings that are [Setting.Noted].
func (p *Plan) KeptNotes() map[string]string { return keptNotes(Settings(), p) }

func keptNotes(settings []Setting, p *Plan) map[string]string {
	out := map[string]string{}
	for _, n := range p.Notes {
		k, v, _ := strings.Cut(n, "=")
		out[k] = v
	}
	parts := p.settingParts()
	for _, s := range settings {
		if !s.Noted || !s.isIn(parts) {
			continue
		}
		if values := s.shownValues(parts); len(values) > 0 {
			out[s.Name] = strings.Join(values, ", ")
		}
	}
	return out
}

// ChangedSettings are the settings of the embedded target that differ from their defaults,
// by the names of their flags.
func (e *Embedded) ChangedSettings() map[string]string {
	out := map[string]string{}
	parts := []any{e}
	for _, s := range Settings() {
		if !s.isIn(parts) || s.NotKept != "" {
			continue
		}
		if values := s.setValues(parts); len(values) > 0 {
			out[s.Name] = strings.Join(values, ",")
		}
	}
	return out
}

// Kinds of target.
const (
	KindServer = "http"
	KindMock   = "mock"
	KindSim    = "sim"
)

// Kind returns the kind of a target, by which it is reached.
func (t *Target) Kind() string {
	switch {
	case strings.HasPrefix(t.Spec, "mock:"):
		return KindMock
	case strings.HasPrefix(t.Spec, "sim:"):
		return KindSim
	}
	return KindServer
}

// What loads are of which several are measured.
const (
	OverRate        = "rate"        // requests a second, or conversations that begin
	OverConcurrency = "concurrency" // users
	OverAgents      = "agents"      // the same, who hold one session after the other
)

// IsClosedLoop says that loads are numbers of users.
func (s *Search) IsClosedLoop() bool { return s.Over == OverConcurrency || s.Over == OverAgents }

// Open says whether the load is an open loop.
func (l *Load) Open() bool { return l.Rate > 0 }

// What conversations repeat of their answers.
const (
	HistoryServed  = "served"  // what the server answered
	HistoryPlanned = "planned" // generated words in its place
)

// HasConversations says whether requests come in conversations: a rate is then one of their
// begins, and a user holds one after the other. Of classes it is enough that one has
// conversations.
func (a *Ask) HasConversations() bool {
	if a.Mix != nil {
		return a.Mix.HasConversations()
	}
	return a.Turns != workload.FixedLength(1) || a.Recorded != nil
}

// GeneratedTurns says whether the turns of some conversations are generated.
func (a *Ask) GeneratedTurns() bool {
	if a.Mix != nil {
		return slices.ContainsFunc(a.Mix.Classes, func(c MixClass) bool { return c.Ask.GeneratedTurns() })
	}
	return a.HasConversations() && a.IsGenerated()
}

// MeanTurns returns the mean number of requests that come of each one that comes by itself.
func (a *Ask) MeanTurns() float64 {
	if a.Mix != nil {
		sum := 0.
		for i := range a.Mix.Classes {
			c := &a.Mix.Classes[i]
			sum += c.Share * c.Ask.MeanTurns()
		}
		return sum
	}
	if a.Recorded != nil {
		return a.Recorded.Turns
	}
	if !a.HasConversations() || !a.IsGenerated() { // how many a file's have is known when it is open
		return 1
	}
	mean, _ := workload.TurnMoments(a.Turns, a.SubAgents)
	return mean
}

// MeanCluster returns the mean, over requests, of the number of requests in the request's
// conversation.
func (a *Ask) MeanCluster() float64 {
	if a.Mix != nil {
		sum := 0.
		for i := range a.Mix.Classes {
			c := &a.Mix.Classes[i]
			sum += c.Share * c.Ask.MeanTurns() / a.MeanTurns() * c.Ask.MeanCluster()
		}
		return sum
	}
	if a.Recorded != nil {
		return a.Recorded.Cluster
	}
	if !a.HasConversations() {
		return 1
	}
	_, cluster := workload.TurnMoments(a.Turns, a.SubAgents)
	return cluster
}

// LongestTurns is [Ask.MeanTurns], of classes that of the one whose conversations have most.
func (a *Ask) LongestTurns() float64 {
	if c := a.longestClass(); c != nil {
		return c.MeanTurns()
	}
	return a.MeanTurns()
}

// longestClass is the class whose conversations have most turns, nil where no class has any.
func (a *Ask) longestClass() (of *Ask) {
	if a.Mix == nil {
		return nil
	}
	for i := range a.Mix.Classes {
		if c := &a.Mix.Classes[i].Ask; c.HasConversations() && (of == nil || c.MeanTurns() > of.MeanTurns()) {
			of = c
		}
	}
	return of
}

// MeanThink is the mean pause between the requests of a conversation, or of a user; of
// classes that of the one whose conversations have most turns.
func (a *Ask) MeanThink() time.Duration {
	if c := a.longestClass(); c != nil {
		return c.MeanThink()
	}
	if a.Recorded != nil {
		return a.Recorded.Think
	}
	return a.Think.Mean()
}

// EvenThink says that the pauses between the requests of a conversation are alike. Those of
// recorded ones and of generators with tools are not.
func (a *Ask) EvenThink() bool {
	c := a.longestClass()
	if c == nil {
		return a.Recorded == nil && a.Think.IsRegular()
	}
	return c.EvenThink()
}

// FurtherInput returns the tokens that each further turn of a conversation adds to its prompt.
func (a *Ask) FurtherInput() workload.Lengths {
	if a.TurnInput.IsZero() {
		return a.Input
	}
	return a.TurnInput
}

// IsGenerated says whether prompts are generated.
func (a *Ask) IsGenerated() bool {
	if a.Mix != nil {
		all, _ := a.Mix.generatedPrompts()
		return all
	}
	return a.Workload == RandomWorkload || a.PresetName() != ""
}

// SomeGenerated says whether prompts are generated, if only those of some classes.
func (a *Ask) SomeGenerated() bool {
	if a.Mix != nil {
		_, some := a.Mix.generatedPrompts()
		return some
	}
	return a.IsGenerated()
}

// What a prefix cache finds of the prompts.
const (
	CacheCold = "cold" // what requests share is asked for by them first
	CacheWarm = "warm" // each shared prefix is asked for once before
	CacheBoth = "both" // two points: the same lengths with nothing shared, and warm
)

// Reused is the share of the prompts' tokens that --cache asks for, 0 where it asks for none.
func (a *Ask) Reused() float64 {
	x, err := strconv.ParseFloat(strings.TrimSuffix(a.Cache, "%"), 64)
	if err != nil {
		return 0
	}
	return x / 100
}

// PrefixMean is the mean length of what prompts begin with besides their input, in tokens.
func (a *Ask) PrefixMean() float64 { return float64(a.Prefix) + a.Tree.Mean() }

// GeneratedWords says whether what is asked is made of generated words: where prompts are
// generated, and where the requests of a trace, of recorded sessions or of a profile are asked.
func (a *Ask) GeneratedWords() bool {
	if a.IsGenerated() {
		return true
	}
	if a.Mix != nil {
		return slices.ContainsFunc(a.Mix.Classes, func(c MixClass) bool { return c.Ask.GeneratedWords() })
	}
	kind, _ := workload.Identify(a.Workload)
	return kind == workload.Recorded || kind == workload.Sessioned || kind == workload.Profiled
}

// OwnText says whether some of what is asked is text as it stands in a file.
func (a *Ask) OwnText() bool {
	if a.Mix != nil {
		return slices.ContainsFunc(a.Mix.Classes, func(c MixClass) bool { return c.Ask.OwnText() })
	}
	return !a.GeneratedWords()
}

// RecordedMeans are the mean lengths of the requests of a trace, in tokens, where the workload
// is one and its rows say them all.
func (a *Ask) RecordedMeans() (input, output float64, ok bool) {
	if a.IsGenerated() || a.Recorded != nil || !a.GeneratedWords() {
		return 0, 0, false
	}
	rows, err := workload.OpenRows(a.Workload)
	if err != nil {
		return 0, 0, false
	}
	return rows.MeanLengths()
}

// samePause says that a pause is the one that is written so.
func samePause(p workload.Pause, written string) bool {
	q, err := workload.ParsePause(written)
	return err == nil && p == q
}

// PresetName is the name of the preset that was asked for, "" for none.
func (a *Ask) PresetName() string {
	p, _ := workload.PresetNamed(a.Workload)
	return p.Name
}

// WholePreset is the name of the preset that is asked as it is, "" where other settings
// changed it.
func (a *Ask) WholePreset() string {
	p, ok := workload.PresetNamed(a.Workload)
	if !ok || a.Input.String() != p.Input || a.Output.String() != p.Output || a.Prefix != p.Prefix || a.Tree != nil || p.Prefix > 0 && a.PrefixShare != p.PrefixShare || a.Correlation != p.Correlation {
		return ""
	}
	if turns, _ := workload.ParseLengths(p.Turns); a.HasConversations() && (a.Turns != turns || a.TurnInput.String() != p.TurnInput || a.System != p.System || a.SubAgents.String() != cmp.Or(p.SubAgents, "none") || !samePause(a.Think, p.Think)) || !a.HasConversations() && p.Turns != "" {
		return ""
	}
	return p.Name
}
