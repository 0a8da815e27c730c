package export

import (
	"io"
	"slices"
	"strconv"

	"pitot/internal/results/result"
)

// The JSON trace event format, which ui.perfetto.dev and chrome://tracing open.
// A point is a process, a slot that one request at a time is in is a thread.
// Inside a request stand its parts: held, connect, prefill, decode.

// maxTraced bounds a trace: viewers hold all of it in memory.
const maxTraced = 50_000

func writePerfetto(w io.Writer, run *result.Run, dir string) error {
	return traceOf(w, run, dir, maxTraced)
}

// traceOf writes a trace of so many requests at most.
func traceOf(w io.Writer, run *result.Run, dir string, most int) error {
	g := gathering{everything: true, earliest: most}
	t := trace{o: &object{w: w}, left: most}
	t.o.writeField("displayTimeUnit", "ms")
	t.o.writeKey("traceEvents")
	t.o.writeText("[")
	n := 0
	for c, err := range g.readPoints(run, dir) {
		if err != nil {
			return err
		}
		t.addPoint(c)
		n++
	}
	if n == 0 {
		return errNothing
	}
	t.o.writeText("\n]")
	about := map[string]any{"model": run.Target.Model, "target": run.Target.Spec, "measured_by": "pitot " + run.Pitot.Version, "verdict": run.Verdict}
	if t.dropped > 0 {
		about["left_out"] = strconv.Itoa(t.dropped) + " requests beyond the first " + strconv.Itoa(most)
	}
	t.o.writeField("otherData", about)
	return t.o.end()
}

// trace is one under way.
type trace struct {
	o       *object
	begun   bool
	left    int
	dropped int
}

// event is one trace event. Times are microseconds.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	At    float64        `json:"ts"`
	Span  *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s,omitempty"` // of an instant: "p" is its process
	Args  map[string]any `json:"args,omitempty"`
}

func (t *trace) writeEvent(e event) {
	if t.begun {
		t.o.writeText(",")
	}
	t.begun = true
	t.o.writeText("\n")
	t.o.writeValue(e)
}

func (t *trace) addPoint(c *cohort) {
	pid := c.index + 1
	t.writeEvent(event{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": "point " + strconv.Itoa(c.index) + ", " + loadOf(c.point)}})
	t.writeEvent(event{Name: "process_sort_index", Phase: "M", PID: pid, Args: map[string]any{"sort_index": pid}})
	t.writeEvent(event{Name: "window begins", Phase: "i", At: microseconds(c.t0), PID: pid, Scope: "p"})
	t.writeEvent(event{Name: "window ends", Phase: "i", At: microseconds(c.t1), PID: pid, Scope: "p"})
	slices.SortFunc(c.requests, byDue)
	order := c.requests[:min(len(c.requests), t.left)]
	t.dropped += c.n - len(order)
	t.left -= len(order)
	var slots slots
	for i := range order {
		q := &order[i]
		end := max(q.done, q.last, q.due)
		tid, fresh := slots.takeSlot(q.due, end)
		if fresh {
			t.writeEvent(event{Name: "thread_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": "slot " + strconv.Itoa(tid)}})
		}
		t.addRequest(q, pid, tid, end)
	}
}

func (t *trace) addRequest(q *request, pid, tid int, end int64) {
	part := func(name string, from, to int64, args map[string]any) {
		if from < 0 || to < from || to == from && args == nil {
			return
		}
		// Microseconds are floating point: a viewer that adds start and length
		// might see the next one begin before this one ends, and nest it. So a
		// request ends a nanosecond early, and what is inside it two.
		short := int64(2)
		if args != nil {
			short = 1
		}
		t.writeEvent(event{Name: name, Phase: "X", At: microseconds(from), Span: new(microseconds(max(0, to-from-short))), PID: pid, TID: tid, Args: args})
	}
	args := map[string]any{"id": q.id, "outcome": q.outcome.String(), "input_tokens": q.inputTokens(), "events": q.events}
	if n, known := q.outputTokens(); known {
		args["output_tokens"] = n
	}
	if q.errorClass != "" {
		args["error"] = q.errorText()
	}
	name := "request " + strconv.FormatInt(q.id, 10)
	if !q.wasAnswered() {
		name += " " + q.outcome.String()
	}
	part(name, q.due, end, args)
	part("held", q.due, q.eligible, nil)
	part("connect", q.eligible, q.ready, nil)
	switch {
	case q.sent < 0:
	case q.first < 0:
		part("waiting", q.sent, end, nil)
	default:
		part("prefill", q.sent, q.first, nil)
		part("decode", q.first, max(q.last, q.first), nil)
	}
}

// microseconds is nanoseconds as microseconds.
func microseconds(ns int64) float64 { return float64(ns) / 1e3 }

func loadOf(p *result.Point) string {
	switch {
	case p.Load.Rate != nil:
		return strconv.FormatFloat(*p.Load.Rate, 'g', -1, 64) + " req/s"
	case p.Load.Concurrency != nil:
		return strconv.Itoa(*p.Load.Concurrency) + " users"
	}
	return "load not known"
}

// slots gives each request the lowest slot that is free: of each the time at which it is free
// again.
type slots []int64

// takeSlot gives a slot, counted from 1, from one time to another; requests come in the order in
// which they begin.
func (s *slots) takeSlot(from, to int64) (slot int, fresh bool) {
	if i := slices.IndexFunc(*s, func(end int64) bool { return end <= from }); i >= 0 {
		(*s)[i] = to
		return i + 1, false
	}
	*s = append(*s, to)
	return len(*s), true
}
