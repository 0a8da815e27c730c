package loadgen

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"pitot/internal/client"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/workload"
)

// Virtual is the world without sockets and without waiting: an engine as an
// event queue. Time passes only in Wait.
type Virtual struct {
	cfg     VirtualConfig
	now     int64
	step    sim.Step // the one that is running, when busy
	busy    bool
	running ring
	history *history // nil where nothing follows anything
	events  []Event
	told    *telling              // nil: nobody asks
	asked   int64                 // requests that the server had
	failed  map[int64]*record.Row // whose attempts have, and that wait for what is decided
}

// VirtualConfig holds the configuration of the virtual world.
type VirtualConfig struct {
	Engine sim.Engine
	Source workload.Source
	Sink   record.Sink
	Point  int32
	// Count gives the tokens of a prompt's text whose length was not planned, and
	// Overhead what a chat's template adds to it; without Count it is one.
	Count    func(text []byte) int
	Overhead int
	// Content returns the content of an item whose prompt has the given number of tokens. If nil,
	// the item's segments say it, see [PromptContent].
	Content func(item int64, r *workload.Request, prompt int) sim.Content
	// Thaw says when what the server does at a time can happen: then, or at
	// the end of a freeze. nil: always then.
	Thaw func(at int64) int64
	// Refuse gives the status of a server's error in place of an answer to its n-th
	// request, which came at a time, and after how many nanoseconds it asks to be asked
	// again, 0 for not saying; 0 for an answer. nil: it answers all.
	Refuse func(n, at int64) (status int, retryAfter int64)
	Retry  bool // requests are sent again, where the core says so
	// Choices is the number of answers to each request. The engine has a job for each; 0 and 1 are
	// one.
	Choices int
	// Tell is told what the server tells of itself, every so many nanoseconds; nil: nobody
	// asks it.
	Tell  Tell
	Every int64
}

// NewVirtual gives a world at time 0.
func NewVirtual(cfg VirtualConfig) *Virtual {
	if cfg.Content == nil {
		cfg.Content = func(_ int64, r *workload.Request, prompt int) sim.Content { return PromptContent(r, prompt) }
	}
	v := &Virtual{cfg: cfg, failed: map[int64]*record.Row{}, running: make(ring, 64), history: newHistory(cfg.Source)}
	if cfg.Tell != nil && cfg.Every > 0 {
		v.told = newTelling(cfg.Engine, cfg.Every, cfg.Tell)
	}
	return v
}

// ReportNow has the server tell of now once more, at the end of a load.
func (v *Virtual) ReportNow() {
	if v.told != nil {
		v.told.reportUntil(v.now)
		v.told.reportAt(v.now)
	}
}

// thawTime is when what the server does at a time happens.
func (v *Virtual) thawTime(at int64) int64 {
	if v.cfg.Thaw == nil {
		return at
	}
	return v.cfg.Thaw(at)
}

// Now implements [World].
func (v *Virtual) Now() int64 { return v.now }

// Do implements [World].
func (v *Virtual) Do(a Action) {
	switch a.Kind {
	case Start:
		v.startRequest(a, v.newRow(a))
	case Again, Settle:
		r := v.failed[a.ID]
		if r == nil { // it was cancelled meanwhile
			return
		}
		delete(v.failed, a.ID)
		if a.Kind == Settle {
			v.cfg.Sink.Done(r)
			return
		}
		r.NextAttempt(a.Eligible - r.Done)
		r.Ready, r.Sent, r.Reused = a.Eligible, v.now, true
		v.startRequest(a, r)
	case Cancel:
		if r := v.failed[a.ID]; r != nil {
			delete(v.failed, a.ID)
			giveUp(r, v.now, a.Class)
			v.recordEnd(r)
		} else if j := v.running.find(a.ID); j != nil {
			v.abort(j)
			r := j.row
			r.Outcome, r.Error = record.Cut, a.Class
			v.recordEnd(r)
		}
	case Drop:
		r := v.newRow(a)
		r.Eligible, r.Ready, r.Sent = record.Unset, record.Unset, record.Unset
		r.Outcome, r.Error, r.Done = record.Unsent, a.Class, v.now
		if v.history != nil {
			if req, err := v.cfg.Source.At(a.Item); err == nil {
				setRequestPlace(r, &req)
			}
		}
		v.cfg.Sink.Done(r)
	case Forget:
		v.history.forget(a.Session)
	}
}

func (v *Virtual) newRow(a Action) *record.Row {
	r := record.BlankRow()
	r.ID, r.Point, r.Stream, r.Reused = a.ID, v.cfg.Point, true, true
	r.Due, r.Eligible, r.Ready, r.Sent = a.Due, a.Eligible, a.Eligible, v.now
	r.After = a.After
	return &r
}

// setRequestPlace says in a row where its request stands in the workload.
func setRequestPlace(r *record.Row, req *workload.Request) {
	r.Session, r.Turn, r.Class = req.Session, req.Turn, req.Class
	if req.Session != workload.Unknown {
		r.History = int32(req.History)
		if req.Turns > 0 {
			r.Turns = req.Turns
		}
	}
	r.InputPlanned, r.OutputPlanned = int32(req.Input), int32(req.Output)
}

func (v *Virtual) startRequest(a Action, r *record.Row) {
	req, err := v.cfg.Source.At(a.Item)
	if err != nil {
		r.Outcome, r.Error, r.Detail = record.Failed, record.ErrBug, err.Error()
		v.recordEnd(r)
		return
	}
	v.history.fillRequest(&req, a.Session, false)
	setRequestPlace(r, &req)
	if v.refuseFaulty(r) {
		return
	}
	prompt, output := max(req.Input, 1), req.Output
	if req.Input < 0 && v.cfg.Count != nil {
		prompt = max(v.countTokens(&req)+v.cfg.Overhead, 1)
	}
	limit := 0
	switch {
	case req.Ends > 0: // with "stop", unless it comes to the limit first
		if limit = output; limit < 0 {
			limit = req.Ends + 1
		}
		output = req.Ends
	case output < 0:
		output = unasked
	}
	output = max(output, 1)
	if e, ok := v.cfg.Engine.(sim.Limited); ok {
		if most := e.MaxModelLen(); req.Output < 0 && prompt < most {
			output = min(output, most-prompt)
		} else if prompt+output > most {
			r.Outcome, r.Error, r.Status = record.Failed, record.ErrContextLength, 400
			r.Detail = fmt.Sprintf("%d prompt tokens and %d of answer, the model takes %d", prompt, output, most)
			r.Headers = v.now
			v.recordEnd(r)
			return
		}
	}
	if d, ok := v.cfg.Engine.(sim.Deserted); ok && !d.Serves(v.thawTime(v.now)) {
		r.Outcome, r.Status, r.Headers, r.Error = record.Failed, http.StatusServiceUnavailable, v.now, record.ServerError(http.StatusServiceUnavailable)
		v.recordEnd(r)
		return
	}
	n := max(v.cfg.Choices, 1)
	v.running.insert(&job{row: r, prompt: int32(prompt), item: a.Item, session: a.Session, left: int32(n), begun: make([]bool, n)})
	if v.told != nil {
		v.told.running += n
	}
	content := v.history.chainContent(a.Session, v.cfg.Content(a.Item, &req, prompt))
	for choice := range n {
		v.cfg.Engine.Add(v.thawTime(v.now), sim.Job{
			ID: a.ID + int64(choice)*nextChoice, Prompt: prompt, Output: output, Limit: limit, Content: content,
			Session: uint64(req.Session - workload.Unknown), // from 1 on
		})
	}
}

// nextChoice is the distance of the engine's jobs for the answers to one request, the
// first of which has the request's id.
const nextChoice = int64(1) << 40

// abort takes a request's answers out of the engine.
func (v *Virtual) abort(j *job) {
	for choice := range j.begun {
		v.cfg.Engine.Abort(j.row.ID + int64(choice)*nextChoice)
	}
}

// refuseFaulty ends a request that the server answers with an error.
func (v *Virtual) refuseFaulty(r *record.Row) bool {
	if v.cfg.Refuse == nil {
		return false
	}
	status, after := v.cfg.Refuse(v.asked, v.now)
	v.asked++
	if status == 0 {
		return false
	}
	r.Outcome, r.Status, r.Headers = record.Failed, int32(status), v.now
	if r.Error = record.ErrRateLimited; status >= http.StatusInternalServerError {
		r.Error = record.ServerError(status)
	}
	if after > 0 {
		r.RetryAfter = int32(after / int64(time.Second))
	}
	v.recordEnd(r)
	return true
}

// countTokens returns the number of tokens in the texts of a prompt, as a server would count them.
func (v *Virtual) countTokens(r *workload.Request) (n int) {
	for _, m := range r.Messages {
		for _, s := range m.Segments {
			if s.Words > 0 {
				n += s.Words
				continue
			}
			n += v.cfg.Count([]byte(s.Text))
		}
	}
	return n
}

// unasked is the number of tokens in the answer to a request without a limit. The mock server's
// answers to a chat have the same.
const unasked = 128

// job is a request that the engine works on, and what its usage will say.
type job struct {
	row            *record.Row
	prompt, tokens int32
	item, session  int64
	left           int32  // answers that have not ended
	begun          []bool // answers that have a token
}

// ring finds the jobs that run by their ids. Ids are given in turn, so those
// that run are close together and each has a place of its own, id modulo the
// length; where two would share one, it doubles. The length is a power of two.
type ring []*job

func (r ring) slotOf(id int64) **job { return &r[id&int64(len(r)-1)] }

func (r ring) find(id int64) *job {
	if j := *r.slotOf(id); j != nil && j.row.ID == id {
		return j
	}
	return nil
}

func (r *ring) insert(j *job) {
	for *r.slotOf(j.row.ID) != nil {
		old := *r
		*r = make(ring, 2*len(old))
		for _, j := range old {
			if j != nil {
				*r.slotOf(j.row.ID) = j
			}
		}
	}
	*r.slotOf(j.row.ID) = j
}

func (r ring) remove(id int64) {
	if r.find(id) != nil {
		*r.slotOf(id) = nil
	}
}

// recordEnd records a request that has ended and makes its event.
func (v *Virtual) recordEnd(r *record.Row) {
	r.Done = v.now
	if v.told != nil && v.running.find(r.ID) != nil {
		v.told.running -= int(v.running.find(r.ID).left)
	}
	v.running.remove(r.ID)
	after := int64(max(r.RetryAfter, 0)) * int64(time.Second)
	var room *client.Room
	if r.Status == http.StatusTooManyRequests {
		room = &client.Room{At: v.now, Whole: v.now + max(after, int64(time.Second))}
	}
	if v.cfg.Retry && isRetriable(r, nil) {
		v.failed[r.ID] = r
		v.events = append(v.events, failedEvent(r, after, room))
		return
	}
	v.cfg.Sink.Done(r)
	v.events = append(v.events, Event{ID: r.ID, At: v.now, Failed: r.Outcome == record.Failed, Cut: r.Outcome == record.Cut, Room: room})
}

// Wait implements [World]: it lets the engine work until something ends or
// the time has come.
func (v *Virtual) Wait(ctx context.Context, until int64) []Event {
	quiet := int64(0) // nothing happens by itself before
	for len(v.events) == 0 && ctx.Err() == nil {
		step := v.step
		if v.busy {
			v.busy = false
			step.Next = 0 // jobs may have been added since
		} else if quiet > v.now {
			step = sim.Step{End: quiet, Idle: true}
		} else if step = v.cfg.Engine.Step(v.now); !step.Idle {
			step.End = v.thawTime(step.End)
		}
		at := min(step.End, until)
		if at == math.MaxInt64 {
			break // nothing will ever happen again
		}
		if v.told != nil {
			v.told.reportUntil(max(v.now, at))
		}
		if v.now = max(v.now, at); step.End > until {
			v.step, v.busy = step, !step.Idle
			break
		}
		if !step.Idle {
			v.recordEmissions(step.Out)
		}
		quiet = step.Next
	}
	events := v.events
	v.events = nil
	return events
}

// recordEmissions records what the step gave.
func (v *Virtual) recordEmissions(out []sim.Emission) {
	for i := range out {
		e := &out[i]
		choice := e.ID / nextChoice
		j := v.running.find(e.ID % nextChoice)
		if j == nil {
			continue
		}
		at, r := v.thawTime(e.At), j.row
		if r.Headers < 0 {
			r.Headers, r.FirstEvent, r.Status = at, at, 200
		}
		if e.Role {
			continue
		}
		if e.Finish == sim.Lost {
			v.abort(j)
			r.Outcome, r.Error = record.Failed, record.ErrClosed
			v.recordEnd(r)
			continue
		}
		if v.told != nil {
			v.told.countEmission(j, e, !j.begun[choice], at)
		}
		if !j.begun[choice] {
			j.begun[choice] = true
			r.Choices++
		}
		if r.FirstToken < 0 {
			r.FirstToken, r.FirstAnswer, r.FirstTokens = at, at, int32(e.Tokens)
		}
		r.LastToken = at
		j.tokens += int32(e.Tokens)
		r.Chunks++
		r.Arrivals++
		v.cfg.Sink.Chunk(record.Chunk{Request: r.ID, T: at, Earliest: at, Tokens: int32(e.Tokens), Choice: int32(choice)})
		if e.Finish == "" {
			continue
		}
		if choice == 0 {
			r.Finish = e.Finish
		}
		if e.Trace != nil { // as vLLM tells it: what the answer found that ended last
			r.CachedTokens = int32(e.Trace.Cached)
		}
		if j.left > 1 {
			if j.left--; v.told != nil {
				v.told.running--
			}
		} else {
			r.PromptTokens, r.CompletionTokens = j.prompt, j.tokens
			v.history.noteAnswer(j.session, j.item, r, nil)
			v.recordEnd(r)
		}
	}
}
