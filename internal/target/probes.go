package target

import (
	"cmp"
	"sync"

	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/record"
)

// Requests outside of the load are recorded too, apart from it, because the server
// counts them.

// probes are the requests of the probing that were not handed over yet.
type probes struct {
	mu    sync.Mutex
	list  []record.Row
	sent  int64 // in all
	began int64 // clock reading of their time 0, 0 before the first
}

func (p *probes) start() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = cmp.Or(p.began, clock.Now())
	return p.began
}

// nextID is the id of the next one.
func (p *probes) nextID() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	return p.sent - 1
}

func (p *probes) record(row record.Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	row.Point = record.Probing
	p.list = append(p.list, row)
}

// DrainProbes hands over those that have ended since the last time.
func (t *Target) DrainProbes() []record.Row {
	t.probes.mu.Lock()
	defer t.probes.mu.Unlock()
	list := t.probes.list
	t.probes.list = nil
	return list
}

// ProbedBefore says how many an earlier session had, so that each has an id of its
// own.
func (t *Target) ProbedBefore(n int64) {
	t.probes.mu.Lock()
	defer t.probes.mu.Unlock()
	t.probes.sent += n
	for i := range t.probes.list {
		t.probes.list[i].ID += n
	}
}

// discard is a sink for the events of what is not measured.
type discard struct{}

// Chunk implements [record.Sink].
func (discard) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (discard) Done(*record.Row) {}

// Requests of the probing, as calibration and priming send them.
const (
	greetingWords         = 16 // of the request that finds out what is understood
	shortWords, longWords = 64, 192
	calibrations          = 2 // of each length
	// Primings warm caches, and measure how long one request takes.
	Primings = 2
)

// ProbingOf says what will be sent to a target besides the load, where it takes
// requests as they are first put to it: requests and tokens. Tokens of a chat's
// template come on top; those of a file's prompts are not known.
func ProbingOf(p Wanted) (requests int, input, output float64) {
	if p.NoProbe || p.Kind() == config.KindSim {
		return 0, 0, 0
	}
	requests, input, output = 1+Primings, greetingWords, 1
	if p.GeneratedWords() {
		requests += 2 * calibrations
		input += calibrations * (shortWords + longWords)
		output += 2 * calibrations
	}
	if p.Pooling {
		output = 0
		if p.IsGenerated() {
			input += Primings * float64(p.Batch) * (p.Input.Mean() + p.PrefixMean())
		}
		return requests, input, output
	}
	if p.IsGenerated() {
		input += Primings * (p.Input.Mean() + p.PrefixMean())
	}
	output += Primings * p.Output.Mean()
	if n := sharedPrefixes(p.Ask); n > 0 {
		requests, output = requests+n, output+float64(n)
		input += float64(n) * max(p.PrefixMean(), p.Input.Mean()*p.Reused())
	}
	return requests, input, output
}

// sharedPrefixes returns the number of requests that send the shared parts of prompts before a
// load.
func sharedPrefixes(a *config.Ask) int {
	switch {
	case a.Reused() > 0:
		return 1
	case a.Cache != config.CacheWarm && a.Cache != config.CacheBoth:
		return 0
	}
	return max(a.Tree.LeafCount(), 1)
}
