package loadgen

import (
	"math"

	"pitot/internal/sim"
	"pitot/internal/telemetry"
)

// Tell takes what a simulated server tells of itself at a time.
type Tell func(at int64, signal telemetry.Signal, value float64)

// telling holds the statistics that a simulated server reports. They are those of vLLM's metrics
// page, counted when vLLM counts them, at regular times.
type telling struct {
	tell  Tell
	every int64
	next  int64          // when it tells again
	look  sim.Observable // nil: the engine tells nothing of itself
	steps []sim.StepInfo // that were planned and have not ended

	running int
	output  int64 // tokens of answers
	count   map[telemetry.Signal]float64
}

func newTelling(e sim.Engine, every int64, tell Tell) *telling {
	t := &telling{tell: tell, every: every, count: map[telemetry.Signal]float64{}}
	if look, ok := e.(sim.Observable); ok {
		t.look = look
		look.Watch(func(s sim.StepInfo) { t.steps = append(t.steps, s) })
	}
	return t
}

// reportUntil tells of all times up to one, at which nothing has happened yet.
func (t *telling) reportUntil(at int64) {
	for t.next <= at && at < math.MaxInt64 {
		t.reportAt(t.next)
		t.next += t.every
	}
}

// reportAt tells of a time.
func (t *telling) reportAt(at int64) {
	going := t.steps[:0]
	for _, s := range t.steps { // of several engines their ends are in no order
		if s.End > at {
			going = append(going, s)
			continue
		}
		t.count[telemetry.Steps]++
		t.count[telemetry.StepTokens] += float64(s.Tokens)
	}
	t.steps = going
	t.count[telemetry.OutputTokens] = float64(t.output)
	values := map[telemetry.Signal]float64{telemetry.Running: float64(t.running)}
	for _, signal := range counted[:] {
		values[signal] = t.count[signal]
	}
	if t.look != nil {
		for _, signal := range observed[:] {
			values[signal] = t.count[signal]
		}
		s := t.look.Stats()
		values[telemetry.Running], values[telemetry.Waiting], values[telemetry.KVUse] = float64(s.Running), float64(s.Waiting), s.KVCacheUsage
		values[telemetry.Preemptions] = float64(s.Preemptions)
		values[telemetry.PrefixQueries], values[telemetry.PrefixHits] = float64(s.PrefixQueries), float64(s.PrefixHits)
		if len(s.AcceptedPerPosition) > 0 {
			values[telemetry.Drafts], values[telemetry.DraftTokens] = float64(s.Drafts), float64(s.DraftTokens)
			values[telemetry.AcceptedTokens] = float64(s.AcceptedTokens)
		}
	}
	for _, d := range telemetry.AllSignals() {
		if x, ok := values[d.Signal]; ok {
			t.tell(at, d.Signal, x)
		}
	}
}

// counted are the counters of any server, observed those of an engine that tells when it
// did what.
var (
	counted = [...]telemetry.Signal{telemetry.Requests, telemetry.PromptTokens, telemetry.OutputTokens,
		telemetry.TTFTSum, telemetry.TTFTCount, telemetry.E2ESum, telemetry.E2ECount}
	observed = [...]telemetry.Signal{telemetry.Steps, telemetry.StepTokens, telemetry.ComputedTokens, telemetry.QueueSum, telemetry.QueueCount,
		telemetry.PrefillSum, telemetry.PrefillCount, telemetry.DecodeSum, telemetry.DecodeCount, telemetry.InferenceSum, telemetry.InferenceCount}
)

// countEmission counts what a step gave a request, which came at a time.
func (t *telling) countEmission(j *job, e *sim.Emission, first bool, at int64) {
	seconds := func(from, to int64) float64 { return float64(max(to-from, 0)) / 1e9 }
	if first {
		t.count[telemetry.PromptTokens] += float64(j.prompt)
		t.count[telemetry.TTFTSum] += seconds(j.row.Sent, at)
		t.count[telemetry.TTFTCount]++
	}
	t.output += int64(e.Tokens)
	if e.Finish == "" {
		return
	}
	t.count[telemetry.Requests]++
	t.count[telemetry.E2ESum] += seconds(j.row.Sent, at)
	t.count[telemetry.E2ECount]++
	trace := e.Trace
	if trace == nil || trace.Queued < 0 || trace.Scheduled < 0 {
		return
	}
	for _, part := range [...]struct {
		sum, n   telemetry.Signal
		from, to int64
	}{
		{telemetry.QueueSum, telemetry.QueueCount, trace.Queued, trace.Scheduled},
		{telemetry.PrefillSum, telemetry.PrefillCount, trace.Scheduled, trace.First},
		{telemetry.DecodeSum, telemetry.DecodeCount, trace.First, trace.Last},
		{telemetry.InferenceSum, telemetry.InferenceCount, trace.Scheduled, trace.Last},
	} {
		t.count[part.sum] += seconds(part.from, part.to)
		t.count[part.n]++
	}
	t.count[telemetry.ComputedTokens] += float64(int(j.prompt) - trace.Cached)
}
