package measure

import (
	"cmp"
	"slices"

	"pitot/internal/data/record"
	"pitot/internal/measure/judge"
	"pitot/internal/telemetry"
)

// Where one load takes over from another the server is not emptied between. What is left of the
// earlier ones when a window begins counts in what is in flight there and in what is served, and
// is in nobody's cohort but that of the point that it came due in.

// Guest takes in a request of an earlier point whose load this one took over from, which began so
// many nanoseconds before this one's.
func (f *Fold) Guest(r *record.Row, before int64) {
	if r.Done-before <= f.setup.T0 || r.Outcome == record.Unsent || r.LostWithWorker() {
		return
	}
	x := *r
	for _, at := range []*int64{&x.Due, &x.Eligible, &x.Ready, &x.Sent, &x.FirstToken, &x.LastToken, &x.Done} {
		*at -= before
	}
	f.queue.Guest(&x)
	f.flow.guest(&x, r, &f.conditions)
	f.server.guest(&x, r)
}

// guest counts what an answer that began before the load has in the window: its tokens are
// spread evenly from the first to the last, for of its chunks no more is known here.
func (w *flow) guest(x, r *record.Row, window *judge.Conditions) {
	if r.Outcome != record.OK {
		return
	}
	if window.Holds(x.Done) {
		w.requests++
	}
	const million = 1e6
	if r.FirstToken >= 0 && window.Holds(x.FirstToken) {
		w.input += int64(max(r.PromptTokens, r.InputPlanned, 0)) * million
	}
	w.output += int64(million * float64(max(r.CompletionTokens, 0)) * within(x.FirstToken, x.LastToken, window.T0, window.T1))
}

// within is the share of what is spread evenly over a time that falls into [t0, t1); what comes at
// once does with its end.
func within(from, to, t0, t1 int64) float64 {
	if to <= from {
		if to >= t0 && to < t1 {
			return 1
		}
		return 0
	}
	return float64(max(0, min(to, t1)-max(from, t0))) / float64(to-from)
}

// toldOf is a request as a server counts it that also had requests of other points: its prompt
// between sent and the first token, the answer evenly from there on, itself with the last.
type toldOf struct {
	sent, first, last int64
	prompt, output    int32
	ok                bool
}

// mostTold bounds how many are kept.
const mostTold = 1 << 20

// tellingLate is by how much a server may tell later or earlier what the client saw.
const tellingLate = int64(100e6)

// guest takes in a request of an earlier point. r is the same in that one's time.
func (s *server) guest(x, r *record.Row) {
	first, last := x.FirstToken, x.LastToken
	if r.FirstToken < 0 {
		first = x.Done
	}
	if r.LastToken < 0 {
		last = x.Done
	}
	s.keep(r, x.Sent, first, last)
}

// keep keeps a request for [server.among].
func (s *server) keep(r *record.Row, sent, first, last int64) {
	if !s.shared || r.Outcome == record.Unsent {
		return
	}
	a := toldOf{sent: sent, first: first, last: max(first, last), prompt: cmp.Or(max(r.PromptTokens, 0), r.InputPlanned), output: max(r.CompletionTokens, 0), ok: r.Outcome == record.OK}
	if !a.ok {
		a.output = max(a.output, r.OutputPlanned)
	}
	if s.ours.uncounted = s.ours.uncounted || a.prompt < 0 || a.ok && r.CompletionTokens < 0 || len(s.all) == mostTold; !s.ours.uncounted {
		s.all = append(s.all, a)
	}
}

// among is what a server that also had requests of other points counted of a signal within the
// window, from one telling to another, and what ours can have made of it.
func (s *server) among(signal telemetry.Signal, ours func(a *toldOf, t0, t1 int64) float64) (counted, own float64, known bool) {
	t0, t1, counted, known := s.samples.Inside(signal, s.t0, s.t1)
	if !known || s.ours.uncounted {
		return 0, 0, false
	}
	for i := range s.all {
		own += ours(&s.all[i], t0, t1)
	}
	return counted, own, true
}

// promptIn, outputIn and endedIn are the most that a request can have been counted for from one
// telling to another, and answeredIn the least that one that was answered was.
func promptIn(a *toldOf, t0, t1 int64) float64 {
	if a.first < t0-tellingLate || a.sent > t1 {
		return 0
	}
	return float64(a.prompt)
}

func outputIn(a *toldOf, t0, t1 int64) float64 {
	return float64(a.output) * within(a.first, a.last, t0-tellingLate, t1+tellingLate)
}

func endedIn(a *toldOf, t0, t1 int64) float64 {
	return within(a.last, a.last, t0-tellingLate, t1+tellingLate)
}

func answeredIn(a *toldOf, t0, t1 int64) float64 {
	if !a.ok {
		return 0
	}
	return within(a.last, a.last, t0+tellingLate, t1-tellingLate)
}

// foreignAmong is [server.foreign] of a load that others preceded or followed without a pause: the
// least that it can be.
func (s *server) foreignAmong() (float64, bool) {
	prompt, ownPrompt, known := s.among(telemetry.PromptTokens, promptIn)
	output, ownOutput, also := s.among(telemetry.OutputTokens, outputIn)
	all := prompt + output
	return max(0, all-ownPrompt-ownOutput) / all, known && also && all > 0
}

// served is how many requests the server counted, beside those that it was sent and answered; nil
// where that is not known.
func (f *Fold) served() *judge.Served {
	if f.flow.generating == 0 { // of embeddings engines count each text, and some the query
		return nil
	}
	if f.setup.shared() {
		n, sent, known := f.server.among(telemetry.Requests, endedIn)
		_, answered, _ := f.server.among(telemetry.Requests, answeredIn)
		if !known || sent == 0 || f.server.ours.several {
			return nil
		}
		return &judge.Served{Counted: n, Answered: answered, Sent: sent}
	}
	n, known := f.server.total(telemetry.Requests)
	if !known {
		return nil
	}
	return &judge.Served{Counted: n, Answered: float64(f.answered), Sent: float64(f.asked+f.earlier) * float64(max(f.choices, 1))}
}

// Follow gives every point that took over from another what is left of the earlier ones, as
// frames of rows go by. It takes a pass of its own where those come in the order of points.
type Follow struct {
	begins map[int32]int64 // when each point's load began, since that of the first of its row
	first  map[int32]int32 // of each point's row
	folds  map[int32]*Fold
}

// NewFollow is for the points of a run.
func NewFollow(setups map[int32]Setup, folds map[int32]*Fold) *Follow {
	w := &Follow{begins: map[int32]int64{}, first: map[int32]int32{}, folds: folds}
	points := make([]int32, 0, len(setups))
	for point := range setups {
		points = append(points, point)
	}
	slices.Sort(points)
	for _, point := range points {
		w.first[point] = point
		if s := setups[point]; s.Follows > 0 {
			if first, ok := w.first[point-1]; ok {
				w.first[point], w.begins[point] = first, w.begins[point-1]+s.Follows
			}
		}
	}
	return w
}

// Add takes in a frame of any point.
func (w *Follow) Add(f record.Frame) {
	first, ok := w.first[f.Point]
	if !ok || len(f.Rows) == 0 {
		return
	}
	for next := f.Point + 1; ; next++ {
		of, ok := w.first[next]
		if !ok || of != first {
			return
		}
		if fold := w.folds[next]; fold != nil {
			for i := range f.Rows {
				fold.Guest(&f.Rows[i], w.begins[next]-w.begins[f.Point])
			}
		}
	}
}
