package run

import (
	"math"
	"time"

	"pitot/internal/cost"
	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/measure/judge"
	"pitot/internal/slo"
)

// What this program works with and what stands on the disk are types of their
// own: here one is put into the other, field by field.

// writeMark writes a mark.
func writeMark(j *record.Journal, name string, point int32, data []byte) {
	j.AddMark(record.Mark{Point: point, Name: name, Data: data})
}

// pointMark is a setup as it is written when its point begins.
func pointMark(s *measure.Setup) marks.Point {
	p := marks.Point{
		T0: s.T0, Load: loadMark(s.Load), SLO: s.SLO.String(), GPUs: s.GPUs, GPUPrice: s.Price.GPU.Hour, Price: priceMark(s), Stamps: s.Stamps,
		Planned: s.Planned, Exact: s.Exact, Requests: s.Requests, Cold: s.Cold, Seeded: s.Seeded, Prompts: s.Prompts, Stage: s.Stage,
		Residence: s.Residence, AutoWarmup: s.AutoWarmup, Workers: s.Sharing,
	}
	if s.T1 != math.MaxInt64 {
		p.T1 = &s.T1
	}
	if !s.Began.IsZero() {
		p.Began = s.Began.Format(time.RFC3339Nano)
	}
	for _, a := range s.Alone {
		p.Alone = append(p.Alone, marks.Questions(a))
	}
	if t := s.Tokenizer; t != nil {
		p.Tokenizer = &marks.Tokenizer{Ours: t.Ours, Theirs: t.Theirs, Differ: t.Differ, IDs: t.IDs, Size: t.Size, Highest: t.Highest, Prompts: t.Prompts}
	}
	return p
}

// setupOf is the setup that was written.
func setupOf(p marks.Point) (measure.Setup, error) {
	s := measure.Setup{
		T0: p.T0, T1: math.MaxInt64, Load: loadOf(p.Load), GPUs: p.GPUs, Price: cost.Price{GPU: cost.GPU{Hour: p.GPUPrice}}, Stamps: p.Stamps,
		Planned: p.Planned, Exact: p.Exact, Requests: p.Requests, Cold: p.Cold, Seeded: p.Seeded, Prompts: p.Prompts, Stage: p.Stage,
		Residence: p.Residence, AutoWarmup: p.AutoWarmup, Sharing: p.Workers,
	}
	if p.T1 != nil {
		s.T1 = *p.T1
	}
	s.Began, _ = time.Parse(time.RFC3339Nano, p.Began) // "" is not known
	for _, a := range p.Alone {
		s.Alone = append(s.Alone, measure.Alone(a))
	}
	if t := p.Tokenizer; t != nil {
		s.Tokenizer = &judge.Tokenizer{Ours: t.Ours, Theirs: t.Theirs, Differ: t.Differ, IDs: t.IDs, Size: t.Size, Highest: t.Highest, Prompts: t.Prompts}
	}
	if m := p.Price; m != nil {
		var err error
		if s.Price, err = priceOf(m); err != nil {
			return s, err
		}
		s.Listed = m.Listed
	}
	if p.SLO == "" {
		return s, nil
	}
	var err error
	s.SLO, err = slo.Parse(p.SLO)
	return s, err
}

func loadMark(l result.Load) marks.Load {
	return marks.Load{Loop: l.Loop, Rate: l.Rate, Arrival: l.Arrival, Concurrency: l.Concurrency, ThinkMS: l.ThinkMS, MaxInFlight: l.MaxInFlight, Turns: l.Turns, LongestTurns: l.LongestTurns, Retry: l.Retry, RespectLimits: l.RespectLimits,
		Expected: (*marks.Arrivals)(l.Expected)}
}

func loadOf(l marks.Load) result.Load {
	return result.Load{Loop: l.Loop, Rate: l.Rate, Arrival: l.Arrival, Concurrency: l.Concurrency, ThinkMS: l.ThinkMS, MaxInFlight: l.MaxInFlight, Turns: l.Turns, LongestTurns: l.LongestTurns, Retry: l.Retry, RespectLimits: l.RespectLimits,
		Expected: (*result.Arrivals)(l.Expected)}
}

// priceMark returns the price of the target as a mark, as it is written.
func priceMark(s *measure.Setup) *marks.Price {
	m := marks.Price{GPU: s.Price.GPU.String(), Tokens: s.Price.Tokens.String(), Discount: s.Price.Discount, Listed: s.Listed}
	if m == (marks.Price{}) {
		return nil
	}
	return &m
}

// endedSetup is a setup with what is known at the end of its window.
func endedSetup(s measure.Setup, w marks.Window) measure.Setup {
	if w.T0 != nil {
		s.T0 = *w.T0
	}
	s.T1, s.Ended, s.GaveUp, s.Gone, s.Until = max(w.T1, s.T0), w.Ended, w.GaveUp, w.Gone, nil
	s.PlannedHits, s.Missing = w.PlannedHits, w.Missing
	s.Reuse = reuseOf(w.PrefixCache)
	s.Workers = nil
	for _, x := range w.Workers {
		of := result.Worker{
			Rank: x.Rank, Host: x.Host, CPUs: x.CPUs, Ahead: float64(x.Ahead) / 1e6, AheadBound: float64(x.AheadBound) / 1e6, ClockSteps: x.ClockSteps, JournalBytes: x.JournalBytes,
		}
		if x.Lost != nil {
			of.Lost = &result.Lost{At: float64(x.Lost.At) / 1e9, Why: x.Lost.Why, Early: x.Lost.Early}
		}
		s.Workers = append(s.Workers, of)
	}
	s.Until = w.Until
	return s
}

// crewOf are the workers of a point whose coordinator did not see its end.
func crewOf(c marks.Crew) (workers []result.Worker) {
	for rank, m := range c.Workers {
		workers = append(workers, result.Worker{Rank: rank, Host: m.Host, CPUs: m.CPUs, Ahead: float64(m.Ahead) / 1e6, AheadBound: float64(m.AheadBound) / 1e6})
	}
	return workers
}

// reuseOf returns the recorded results of a prefix cache.
func reuseOf(m *marks.PrefixCache) *measure.Reuse {
	if m == nil {
		return nil
	}
	u := &measure.Reuse{PrefixCache: result.PrefixCache{All: m.All, BlockSize: m.BlockSize, Assumed: m.Assumed, Tokens: m.Tokens, Off: m.Off, Asked: m.Asked, Mode: m.Mode}}
	for _, p := range m.Parts {
		u.Parts = append(u.Parts, measure.ReusePart{From: p.From, Requests: p.Requests, Told: p.Told, Prompt: p.Prompt, Expected: p.Expected, Late: p.Late, Endless: p.Endless, Served: p.Served})
	}
	return u
}

// priceOf is the price that was written.
func priceOf(m *marks.Price) (p cost.Price, err error) {
	p.Discount = m.Discount
	if m.GPU != "" {
		p.GPU, err = cost.ParseGPU(m.GPU)
	}
	if m.Tokens != "" && err == nil {
		p.Tokens, err = cost.ParseTokens(m.Tokens)
	}
	return p, err
}
