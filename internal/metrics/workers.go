package metrics

import (
	"slices"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
)

// Where several workers carried a load out, each is an instrument of its own: one that was
// late is not made good by the others. So what the checks find of the instrument is found for
// each, and the worst stands for all.

// foldWorkers begins a fold for each worker of a point, which has no more than its instrument
// is judged by.
func foldWorkers(store *spill.Store, s *Setup) (folds []*Fold) {
	if len(s.Workers) == 0 {
		return nil
	}
	own := *s
	own.Workers, own.Signals = nil, []metric.Signal{}
	own.Metrics = slices.DeleteFunc(Definitions(), func(d Definition) bool {
		return d.Name != metric.TTFT && d.Name != metric.E2E
	})
	for range s.Workers {
		folds = append(folds, NewFoldIn(store, own))
	}
	return folds
}

// ofInstrument says that a check is about the process that measured.
func ofInstrument(name string) bool {
	switch name {
	case result.CheckRecording, result.CheckOwnErrors, result.CheckClientLimits, result.CheckSendLag, result.CheckClientCPU, result.CheckHost,
		result.CheckPauses, result.CheckClockSteps, result.CheckStamps, result.CheckMerged, result.CheckConnects:
		return true
	}
	return false
}

// judgeWorkers puts the worst worker's checks in the place of those of all.
func (f *Fold) judgeWorkers(p *result.Point) {
	worst := map[string]result.Check{}
	if len(f.setup.Workers) > 0 {
		c := validity.CheckWorkers(f.setup.Workers)
		if c.Status == result.Pass {
			p.Checks = append(p.Checks, c)
		} else { // what others find may follow from it
			for i := range p.Checks {
				if x := &p.Checks[i]; x.Case != result.CaseChance && x.Case != result.CaseGone && x.Status != result.Pass && slices.Contains([]string{result.CheckOffered, result.CheckAchieved, result.CheckServed, result.CheckServedTokens}, x.Name) {
					x.Case = result.CaseWorkers
				}
			}
			p.Checks = slices.Insert(p.Checks, 0, c)
		}
	}
	for rank, w := range f.workers {
		of := f.setup.Workers[rank]
		own := w.Point()
		own.Checks = slices.DeleteFunc(own.Checks, func(c result.Check) bool { return !ofInstrument(c.Name) })
		for i, c := range own.Checks {
			if c.Name == result.CheckClockSteps && of.ClockSteps > 0 { // which other clocks show
				own.Checks[i] = validity.ClockSteps(of.ClockSteps + int(*c.Value))
			}
		}
		of.Requests, of.Verdict = own.Requests.Due, validity.VerdictOf(own.Checks)
		if of.Lost != nil {
			lost := *of.Lost
			lost.Missed, of.Lost = own.Requests.LostWithWorker+own.Requests.Errors[record.ErrWorkerLost], &lost
		}
		p.Workers = append(p.Workers, of)
		for _, c := range own.Checks {
			if had, ok := worst[c.Name]; !ok || worseCheck(&c, &had) {
				c.Worker = &p.Workers[rank].Rank
				worst[c.Name] = c
			}
		}
	}
	for i, c := range p.Checks {
		if w, ok := worst[c.Name]; ok && worseCheck(&w, &c) {
			rank := *w.Worker
			w.Worker = &rank
			p.Checks[i] = w
		}
	}
}

// worseCheck says that a check is worse than another of its name: by what it came to, and then
// by its value.
func worseCheck(a, b *result.Check) bool {
	order := []result.Status{result.Pass, result.Flag, result.Fail}
	if x, y := slices.Index(order, a.Status), slices.Index(order, b.Status); x != y {
		return x > y
	}
	return a.Status != result.Pass && a.Value != nil && b.Value != nil && *a.Value > *b.Value
}
