package scrape

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/telemetry"
)

// Watch asks sources while a load goes on and notes what they tell.
type Watch struct {
	sources []*Source
	every   time.Duration
	point   int32
	note    func(record.Sample)

	origin int64 // clock reading of the load's time 0
	began  time.Time
	first  []*Asked // what each told before it
	told   []bool   // which told anything
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu        sync.Mutex // guards what follows
	latest    map[string]telemetry.Reading
	sentences []string
	missing   []string
}

// Begin asks every source once, before a load. note takes the samples of the point. A
// source that does not answer is asked again with the next load, but for one that turned
// out to have no metrics, or told nothing of several loads.
func Begin(ctx context.Context, sources []*Source, every time.Duration, point int32, note func(record.Sample)) *Watch {
	w := &Watch{every: cmp.Or(every, time.Second), point: point, note: note, latest: map[string]telemetry.Reading{}}
	for _, s := range sources {
		if !s.gone {
			s.failed = 0
			w.sources = append(w.sources, s)
		}
	}
	w.first, w.told = make([]*Asked, len(w.sources)), make([]bool, len(w.sources))
	w.eachSource(func(i int, s *Source) {
		if a, err := s.AskAtOnce(ctx); err != nil {
			w.noteFailure(ctx, s, err)
		} else {
			w.first[i] = &a
		}
	})
	return w
}

// eachSource does something with every source, with all at a time.
func (w *Watch) eachSource(do func(i int, s *Source)) {
	var all sync.WaitGroup
	for i, s := range w.sources {
		all.Go(func() { do(i, s) })
	}
	all.Wait()
}

// Start begins to ask, as the load does. origin is the clock reading of its time 0. What
// was told before the load stands at its time 0: nothing happened in between.
func (w *Watch) Start(ctx context.Context, origin int64) {
	w.origin, w.began = origin, time.Now()
	for i, a := range w.first {
		if a != nil {
			w.recordAnswer(i, a)
		}
	}
	ctx, w.cancel = context.WithCancel(ctx)
	for i := range w.sources {
		w.ended.Go(func() { w.watchSource(ctx, i) })
	}
}

// watchSource asks one source until the load ends or it is given up.
func (w *Watch) watchSource(ctx context.Context, i int) {
	s := w.sources[i]
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for s.failed < mostFailed && !s.gone {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !time.Now().Before(s.rest) {
			w.askSource(ctx, i)
		}
	}
}

// askSource asks one source and notes what it tells.
func (w *Watch) askSource(ctx context.Context, i int) {
	s := w.sources[i]
	a, err := s.Ask(ctx)
	if err != nil {
		w.noteFailure(ctx, s, err)
		return
	}
	s.failed = 0
	w.recordAnswer(i, &a)
}

// patience is the share of a load's time that is waited behind it for the next answer of a
// source that has a pace of its own: loads of a second or two would take half as long again.
const patience = 0.1

// End asks every source that still answers once more, after the load, and lets them
// rest.
func (w *Watch) End(ctx context.Context) {
	if w.cancel != nil {
		w.cancel()
	}
	w.ended.Wait()
	w.eachSource(func(i int, s *Source) {
		if s.failed < mostFailed && !s.gone {
			w.askLast(ctx, i)
		}
		switch {
		case w.told[i]:
			s.silent = 0
		case ctx.Err() == nil:
			if s.silent++; s.silent >= mostFailed {
				s.gone = true
			}
		}
	})
}

// askLast asks one source once more.
func (w *Watch) askLast(ctx context.Context, i int) {
	s := w.sources[i]
	if _, paced := s.teller.(Paced); !paced {
		w.askSource(ctx, i)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(patience*float64(time.Since(w.began))))
	defer cancel()
	if a, err := s.Ask(ctx); err == nil { // that it did not answer so soon is no failure
		w.recordAnswer(i, &a)
	}
}

// noteFailure takes note of an error: after some in a row, or one that more questions would
// bring again, a source is given up.
func (w *Watch) noteFailure(ctx context.Context, s *Source, err error) {
	if ctx.Err() != nil {
		return
	}
	s.failed++
	s.gone = s.gone || isFinal(err)
	if s.failed < mostFailed && !s.gone {
		return
	}
	s.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	sentence := s.what + " are missing: " + err.Error()
	if !slices.Contains(w.missing, sentence) {
		w.missing = append(w.missing, sentence)
	}
	if !s.heard {
		s.heard = true
		w.sentences = append(w.sentences, sentence)
	}
}

// MissingSources are the sources that were given up under this load, each with why.
func (w *Watch) MissingSources() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.missing)
}

// UserSentences are for the user, each once: what was given up, and why.
func (w *Watch) UserSentences() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.sentences
	w.sentences = nil
	return out
}

// recordAnswer notes the samples of an answer.
func (w *Watch) recordAnswer(i int, a *Asked) {
	s := w.sources[i]
	t := max(a.At-w.origin, 0)
	note := func(signal telemetry.Signal, x float64) {
		w.note(record.Sample{Point: w.point, T: t, Source: s.Name, Name: string(signal), Value: x})
	}
	if began, ok := a.Values[telemetry.ProcessStart]; ok {
		if s.began > 0 && began != s.began { // what was told earlier is of another process
			note(telemetry.ProcessStart, s.began)
		}
		s.began = began
	}
	for _, d := range telemetry.AllSignals() {
		if x, ok := a.Values[d.Signal]; ok {
			note(d.Signal, x)
		}
	}
	w.told[i] = true
	w.mu.Lock()
	w.latest[s.Name] = a.Reading
	w.mu.Unlock()
}

// Latest returns the last value of a signal, over all sources; false where no source has one.
func (w *Watch) Latest(signal telemetry.Signal) (x float64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var values []float64
	for _, s := range w.sources {
		if v, told := w.latest[s.Name].Values[signal]; told {
			values = append(values, v)
		}
	}
	return telemetry.CombineSources(signal, values)
}
