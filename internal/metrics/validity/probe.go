package validity

import (
	"strings"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/spill"
)

// sampled is the length of the time that a sample of the client is about: that before it.
const sampled = int64(time.Second)

// Probe gathers what the checks need to know of the instrument, its machine and
// the server.
type Probe struct {
	conditions *Conditions

	cpu, cpuN    float64
	clockSteps   int
	recordErrors int
	damage       []record.Damage // of the records

	chunks, arrivals, merged, userStamps int64 // of the cohort
	retransmitted, retried               int   // requests
	resets, bugs                         int
	limits                               map[string]int // requests that failed for want of something of the client's, by class
	doubted                              int            // answers whose usage cannot be
	otherPrompt, promptKnown             int            // served prompt length is not the planned one
	otherOutput, outputKnown             int            // served output length is not the requested one
	served, requested                    int64          // output tokens of these responses
	oddFinish                            int            // finish reasons that are in no list
	firstOdd                             string         // the first of them
	textless                             int            // responses without text
	overfull                             int            // streams with more events of text than tokens
	overfullEvents, overfullTokens       int64          // of these
	cached, prompt                       int64          // tokens
	cachedKnown                          bool           // some answer reported how many were cached
	hidden                               int

	pause  float64 // seconds, in the worst second of the window
	pauses bool    // that is known

	host host // in the window

	starts []float64            // of the server's process, as it reported them
	broken *spill.Sorted[int64] // when connections broke under requests of the cohort
}

// NewProbe has seen nothing. What may not fit into memory goes to the store.
func NewProbe(c *Conditions, store *spill.Store) *Probe {
	return &Probe{conditions: c, broken: spill.NewSorted(store, stampCodec())}
}

// Free gives back what it has of its store.
func (p *Probe) Free() { p.broken.Free() }

// IsDamaged says that records are known to be lost.
func (p *Probe) IsDamaged() bool { return len(p.damage) > 0 }

// AddSample takes in a sample of any time.
func (p *Probe) AddSample(s *record.Sample) {
	c := p.conditions
	if s.Source == record.SourceServer && s.Name == metric.ProcessStart {
		p.starts = append(p.starts, s.Value)
	}
	if s.Source == record.SourceHost && c.InWindow(s.T) {
		p.host.addSample(s)
	}
	if s.Source != record.SourceClient {
		return
	}
	switch s.Name {
	case record.CPUShare:
		if c.InWindow(s.T) {
			p.cpu += s.Value
			p.cpuN++
		}
	case record.Pause:
		if s.T > c.T0 && s.T-sampled < c.T1 {
			p.pause, p.pauses = max(p.pause, s.Value), true
		}
	case record.ClockStep:
		if s.Value != 0 {
			p.clockSteps++
		}
	case record.RecordErrors:
		p.recordErrors += int(max(0, min(s.Value, 1e9)))
	}
}

// AddMark takes in a mark of the journal.
func (p *Probe) AddMark(m *record.Mark) {
	if m.Name == record.RecordErrors {
		p.recordErrors++
	}
	if d, ok := record.DamageOf(m); ok {
		p.damage = append(p.damage, d)
	}
}

// Row takes in a request of the cohort, of which so many chunks were recorded.
func (p *Probe) Row(r *record.Row, chunks int64) {
	p.chunks += chunks
	p.arrivals += int64(max(r.Arrivals, 0))
	p.merged += int64(max(r.Merged, 0))
	p.userStamps += int64(max(r.UserStamps, 0))
	if r.Retransmits > 0 {
		p.retransmitted++
	}
	if r.Retried > 0 {
		p.retried++
	}
	if r.HiddenTokens > 0 {
		p.hidden++
	}
	switch r.Error {
	case record.ErrReset, record.ErrClosed:
		p.resets++
		if r.Sent >= 0 && r.Done >= 0 {
			p.broken.Add(&r.Done)
		}
	case record.ErrBug:
		p.bugs++
	case record.ErrOwnFiles, record.ErrOwnPorts, record.ErrOwnMemory:
		if p.limits == nil {
			p.limits = map[string]int{}
		}
		p.limits[r.Error]++
	}
	if r.Outcome != record.OK {
		return
	}
	if strings.HasPrefix(r.Detail, record.UsageDoubt) {
		p.doubted++
	}
	if r.InputPlanned >= 0 && r.PromptTokens >= 0 {
		p.promptKnown++
		if off := max(r.PromptTokens, r.InputPlanned) - min(r.PromptTokens, r.InputPlanned); float64(off) > .01*float64(r.InputPlanned) {
			p.otherPrompt++
		}
	}
	if r.OutputPlanned >= 0 && r.CompletionTokens >= 0 {
		planned := r.OutputPlanned * max(r.Choices, 1) // of each choice
		if p.outputKnown++; planned != r.CompletionTokens {
			p.otherOutput++
		}
		p.served += int64(r.CompletionTokens)
		p.requested += int64(planned)
	}
	if r.TextBytes == 0 && r.FirstToken < 0 && r.CompletionTokens > 0 && p.conditions.Stamps != "virtual" { // what is simulated has no text
		p.textless++
	}
	const few = 4 // events without a token of their own, as the name of a function
	if tokens := r.CompletionTokens - max(r.HiddenTokens, 0); r.Stream && tokens > 0 && r.Chunks > tokens+tokens/16+few {
		p.overfull++
		p.overfullEvents += int64(r.Chunks)
		p.overfullTokens += int64(tokens)
	}
	if record.KindOfFinish(r.Finish) == record.FinishUnknown {
		if p.oddFinish++; p.firstOdd == "" {
			p.firstOdd = r.Finish
		}
	}
	// Some servers tell of cached tokens only where there were some.
	if r.PromptTokens >= 0 && r.Choices <= 1 { // of several answers it is told of one, which may have found what another computed
		p.cachedKnown = p.cachedKnown || r.CachedTokens >= 0
		p.cached += int64(max(r.CachedTokens, 0))
		p.prompt += int64(r.PromptTokens)
	}
}

// Cached says how many tokens of the prompts of answered requests came from the
// server's prefix cache, and whether it tells.
func (p *Probe) Cached() (cached, prompt int64, known bool) { return p.cached, p.prompt, p.cachedKnown }
