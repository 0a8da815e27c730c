// Package plan is what a run is to do: one strict decode of flags, YAML and
// environment into a Plan, and back into a file that does the run again.
package plan

import (
	"strings"
	"time"

	"pitot/internal/slo"
	"pitot/internal/workload"
)

// Plan is a run as asked for.
type Plan struct {
	Target     string
	API, Model string
	KeyEnv     string
	KeyFile    string

	Workload      string // file, "random" for generated prompts
	Input, Output workload.Lengths
	Prefix        int
	PrefixShare   float64
	Seed          uint64
	SeedSet       bool

	Rate        float64 // open loop, requests per second
	Arrival     string
	Concurrency int // closed loop, users
	Think       time.Duration
	MaxInFlight int
	Duration    time.Duration
	Requests    int64
	Exactly     bool          // send the requests that are counted and no more
	Warmup      time.Duration // AutoWarmup for auto
	Repeat      int
	Until       slo.Precision // the window is doubled until a value is known so well

	Over    string        // sweep, find: "rate" or "concurrency"
	Loads   []float64     // sweep: loads to measure; none: it chooses Points of them
	Points  int           // sweep
	Budget  time.Duration // find
	Verify  float64       // find: the load to verify, 0 to search
	MaxLoad float64       // sweep, find: no load above it, 0 for no limit

	SLO        slo.Spec
	GPUs       int
	GPUPrice   float64 // USD per GPU and hour
	TokenPrice TokenPrice
	SpendLimit float64 // USD, 0 for none

	Headers  []string // NAME=VALUE
	Body     string   // JSON object
	NoStream bool
	Timeout  time.Duration
	Wait     time.Duration // for the target to be ready
	CACert   string
	Insecure bool
	Proxy    string
	NoProbe  bool

	Out      string
	Resume   bool
	Format   string
	ShowPage bool     // in a browser
	Export   []string // NAME=PATH
	Launch   string
	Notes    []string // KEY=VALUE
	DryRun   bool
	Quiet    bool
	Strict   bool // flags fail

	Mock Mock

	Replay  string // recording that predict replays
	Beside  string // run that predict lays beside the twin
	List    bool   // predict lists what it knows
	Client  string // another client to check, a shell command
	Streams []int  // numbers of streams to check at

	FailIf       []string // conditions on what compare says
	Equivalent   string   // share within which compare calls sides equivalent
	Allow        string   // what compare takes all the same
	SaveBaseline string   // file
	Page         string   // file

	Origins []Origin // of what was not on the command line; no part of what is done
}

// Mock describes the embedded target.
type Mock struct {
	Port           int
	Host           string
	TTFT, ITL      time.Duration // negative: not given
	Jitter         float64
	Slots          int
	TokensPerChunk int
	RoleChunk      bool
	MaxModelLen    int

	Speed        float64          // times as fast as real
	StartupDelay time.Duration    // while the model is loaded
	Reasoning    float64          // share of a chat's answer
	ToolCalls    float64          // share of the chats with tools
	EOS          workload.Lengths // at which answers end by themselves; zero: at the limit
	TellCached   bool             // in the usage
	Faults       string
	Truth        string
	Drain        time.Duration // what answers have left when it is stopped
	UntilEOF     bool          // end with standard input
}

// TokenPrice is what a hosted API asks, USD per million tokens.
type TokenPrice struct{ Input, Output float64 }

// AutoWarmup is the warm-up whose length Pitot chooses itself.
const AutoWarmup time.Duration = -1

// Default is a Plan with nothing asked for.
func Default() Plan {
	return Plan{
		Workload: "random", Input: workload.Fixed(1024), Output: workload.Fixed(128),
		Over: "rate", Points: 12, Budget: 20 * time.Minute,
		Arrival: "poisson", Duration: 60 * time.Second, Warmup: AutoWarmup, Repeat: 1,
		KeyEnv: "OPENAI_API_KEY", Timeout: 600 * time.Second, Format: "text",
		Mock: Mock{Host: "127.0.0.1", Port: 8000, TTFT: -1, ITL: -1, TokensPerChunk: 1, MaxModelLen: 131072, Speed: 1, Drain: 5 * time.Second},
	}
}

// Embedded are the settings of the embedded target that are not as usual, by the
// names of their flags; nil for a target that is none.
func (p *Plan) Embedded() map[string]string {
	if p.Kind() == "http" {
		return nil
	}
	out := map[string]string{}
	for _, s := range Settings() {
		if s.Group != groupMock || s.get == nil {
			continue
		}
		if values := s.get(p); len(values) > 0 {
			out[s.Name] = strings.Join(values, ",")
		}
	}
	return out
}

// Kind is how a target is reached.
func (p *Plan) Kind() string {
	switch {
	case strings.HasPrefix(p.Target, "mock:"):
		return "mock"
	case strings.HasPrefix(p.Target, "sim:"):
		return "sim"
	}
	return "http"
}

// Open says whether the load is an open loop.
func (p *Plan) Open() bool { return p.Rate > 0 }
