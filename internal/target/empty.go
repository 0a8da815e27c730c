package target

import (
	"context"
	"time"

	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/telemetry"
)

// A server may go on with requests whose client has left. What is measured next then waits for
// them. So before a load that follows an overload Pitot waits until the server is empty.

const (
	// A short request on an empty server takes no longer than slowest times the slowest of a few
	// on one that was known to be empty, plus jitter. Queues behind an overload take seconds.
	slowest = 1.5
	jitter  = 10 * time.Millisecond
	// references is the number of short requests sent to an empty server. confirmations is the
	// number of consecutive requests that must be as quick.
	references, confirmations = 3, 2
	// emptyPause is between two questions.
	emptyPause = 200 * time.Millisecond
)

// NoteEmpty notes what a server shows before any load, for [Target.WaitEmpty]: how many requests it
// runs, which are others', or, where it does not say, how long a short request takes.
func (t *Target) NoteEmpty(ctx context.Context) {
	if t.Kind == config.KindSim {
		return
	}
	known := false
	if t.others, known = t.inServer(ctx); known || t.noProbe {
		return
	}
	for range references {
		took, ok := t.timeShortRequest(ctx)
		if !ok {
			t.shortTakes = 0
			return
		}
		t.shortTakes = max(t.shortTakes, took)
	}
}

// WaitEmpty waits until the server works on no request, for at most a time. It reports whether the
// server is empty. known is false where nothing tells: then it does not wait.
func (t *Target) WaitEmpty(ctx context.Context, most time.Duration) (empty, known bool) {
	if t.Kind == config.KindSim {
		return true, true
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	notef := t.notef
	t.notef = nil // that a response takes long is no news
	defer func() { t.notef = notef }()
	quick := 0
	for {
		requests, reports := t.inServer(ctx)
		switch {
		case reports && requests <= t.others:
			return true, true
		case !reports && t.shortTakes == 0:
			return false, ctx.Err() != nil
		}
		if !t.noProbe { // it also has an engine count again that counts only while it works
			took, ok := t.timeShortRequest(ctx)
			if quick++; !ok || took > time.Duration(slowest*float64(t.shortTakes))+jitter {
				quick = 0
			}
			if !reports && quick == confirmations {
				return true, true
			}
		}
		if quick == 0 || reports {
			select {
			case <-time.After(emptyPause):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return false, true
		}
	}
}

// timeShortRequest returns how long a request of few tokens takes. ok is false where it failed.
func (t *Target) timeShortRequest(ctx context.Context) (took time.Duration, ok bool) {
	begin := time.Now()
	row := t.askOnce(ctx, requestOfWords(greetingWords, uint64(begin.UnixNano())), 1)
	return time.Since(begin), row.Outcome == record.OK
}

// inServer returns how many requests the server says that it runs and has waiting. known is false
// where it does not say.
func (t *Target) inServer(ctx context.Context) (requests float64, known bool) {
	for _, s := range t.Sources {
		a, err := s.AskAtOnce(ctx)
		if err != nil || !a.Engine {
			continue
		}
		running, has := a.Values[telemetry.Running]
		if !has {
			continue
		}
		requests, known = requests+running+a.Values[telemetry.Waiting], true
	}
	return requests, known
}
