package predict

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/workload"
)

// ReadRun takes one point of a run of Pitot's as a recording: every request
// that was sent, at the time it was sent, with the lengths that the server
// counted. Those of the window are measured, the others load the engine. Errors
// are the user's.
func ReadRun(dir string, index int32) (*Recording, error) {
	measured, err := rundir.ReadResult(dir)
	if err != nil {
		return nil, err
	}
	if int(index) >= len(measured.Points) {
		return nil, say.Errorf("the run in %s has %d points", dir, len(measured.Points))
	}
	t0 := int64(measured.Points[index].Seconds.Warmup * 1e9)
	t1 := t0 + int64(measured.Points[index].Seconds.Window*1e9)

	r := &Recording{Dir: dir, AtClient: true, run: measured, point: index}
	r.Meta.Model = measured.Target.Model
	src, done := recordedWorkload(dir, index)
	defer done()
	whole := true // nothing failed before the window's end
	gatherer := metrics.NewGatherer(nil)
	requests := record.Join[streamed]{
		Chunk: func(s *streamed, c *record.Chunk) {
			gatherer.Chunk(&s.Stream, c)
			s.times = append(s.times, float64(c.T)/1e9)
		},
		Row: func(row *record.Row, s *streamed) {
			whole = whole && (row.Outcome == record.OK || row.Due >= t1)
			one := gatherer.Request(&s.Stream, row)
			q, ok := recordedRequest(row, timingOf(&one, row.Sent), s.times, t0, t1)
			if !ok {
				return
			}
			if src != nil {
				if asked, err := src.At(itemOf(row)); err == nil {
					q.content = loadgen.PromptContent(&asked, q.Input)
				}
			}
			r.Requests = append(r.Requests, q)
		},
		Reset: func(s *streamed) {
			s.Stream.Reset()
			s.times = nil // the recording has them
		},
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		if f.Point == index {
			requests.Add(&f)
		}
	}
	slices.SortStableFunc(r.Requests, byArrival)
	if load := &measured.Points[index].Load; load.Loop == "closed" && load.Concurrency != nil && whole {
		r.takeTurns(*load.Concurrency)
	}
	if !slices.ContainsFunc(r.Requests, func(q Recorded) bool { return q.measured }) {
		return nil, say.Errorf("the run in %s has no answered request in its window", dir)
	}
	return r, nil
}

// streamed is a request under way, with the times of its chunks in seconds.
type streamed struct {
	metrics.Stream
	times []float64
}

// recordedRequest is a request as the engine saw it, with what is measured of it and the
// times of its chunks; the window is from t0 to t1. ok is false of one that it never saw.
func recordedRequest(row *record.Row, seen timing, times []float64, t0, t1 int64) (q Recorded, ok bool) {
	// What was cut has no usage: its length is what was planned.
	input := int(row.PromptTokens)
	if input <= 0 {
		input = int(row.InputPlanned)
	}
	if row.Sent < 0 || input <= 0 {
		return q, false
	}
	q = Recorded{
		Input: input, Output: int(max(row.CompletionTokens, 1)),
		Arrival: float64(row.Sent) / 1e9, stamp: row.Sent, cached: int(max(row.CachedTokens, 0)), seen: timing{sent: float64(row.Sent) / 1e9},
	}
	if row.Ready >= 0 {
		q.late = float64(row.Sent-row.Ready) / 1e9
	}
	if row.Eligible >= 0 {
		q.held, q.waited = float64(row.Eligible-row.Due)/1e9, float64(row.Sent-row.Due)/1e9
	}
	q.connect = float64(max(row.Connect, 0)) / 1e9
	if row.CompletionTokens <= 0 { // it was cut: the engine worked on what was asked
		q.Output = int(max(row.OutputPlanned, 1))
	}
	if row.Outcome == record.OK && seen.ttft >= 0 && seen.e2e >= 0 {
		q.seen = seen
		q.measured = row.Due >= t0 && row.Due < t1
		q.times = times
	}
	return q, true
}

// ReadRuns takes every point of a run that has an answer, as [ReadRun] does.
func ReadRuns(dir string) ([]*Recording, error) {
	measured, err := rundir.ReadResult(dir)
	if err != nil {
		return nil, err
	}
	var list []*Recording
	var failed error
	for i := range measured.Points {
		r, err := ReadRun(dir, int32(i))
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		if len(measured.Points) > 1 {
			r.Dir = fmt.Sprintf("%s, point %d", dir, i+1)
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		return nil, cmp.Or(failed, error(say.Errorf("the run in %s has no points", dir)))
	}
	return list, nil
}

// takeTurns makes the requests those of so many users in a closed loop: the one
// after the first of each follows the first answer, the next the second one. It
// leaves them as they are where that cannot have been.
func (r *Recording) takeTurns(users int) {
	var ends []float64
	for _, q := range r.Requests {
		if q.seen.e2e > 0 {
			ends = append(ends, q.Arrival+q.seen.e2e)
		}
	}
	slices.Sort(ends)
	if users < 1 || len(r.Requests) > users+len(ends) {
		return
	}
	for i := range r.Requests[min(users, len(r.Requests)):] {
		q := &r.Requests[users+i]
		if q.pause = q.Arrival - ends[i]; q.pause < -1e-3 {
			return
		}
		q.pause = max(q.pause, 0)
	}
	r.users = users
}

// itemOf is which item of its source a request asked.
func itemOf(r *record.Row) int64 {
	if r.Session >= 0 && r.Turns >= 0 {
		return workload.TurnItem(r.Session, r.Turn)
	}
	return r.ID
}

// recordedWorkload returns the requests of the run. It returns nil if the run's plan cannot be read
// any more.
func recordedWorkload(dir string, index int32) (workload.Source, func()) {
	none := func() {}
	p, err := config.ReadRecorded(filepath.Join(dir, rundir.Config))
	if err != nil {
		return nil, none
	}
	src, done, err := session.OpenWorkload(&p.Ask, index)
	if err != nil {
		return nil, none
	}
	return src, done
}
