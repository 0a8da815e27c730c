package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"pitot/internal/clock"
)

// Truth records the server's work on one request to a generation route. Times are nanoseconds of
// [clock.Now], each taken just before the write that it is about. So they compare with the times of
// a client on the same machine.
type Truth struct {
	ID        string `json:"id"`                   // the answer's, "" if it was refused
	RequestID string `json:"request_id,omitempty"` // the X-Request-Id header
	N         int64  `json:"n"`                    // sequence number, from 0
	Path      string `json:"path"`
	Status    int    `json:"status"`
	// ArrivalNS is when the last bytes of the request came, by the kernel's
	// stamp on a TCP connection where there is one.
	ArrivalNS    int64 `json:"arrival_ns"`
	PromptTokens int   `json:"prompt_tokens"`
	OutputTokens int   `json:"output_tokens"` // those that were written
	RoleNS       int64 `json:"role_ns,omitempty"`
	// EmitNS has one time for each chunk of tokens; of an answer that is not
	// streamed, when the engine gave them.
	EmitNS []int64 `json:"emit_ns"`
	// Tokens of each chunk; nil if each has one.
	Tokens []int `json:"tokens,omitempty"`
	// Choice of each chunk, if there are several.
	Choice []int `json:"choice,omitempty"`
	// DoneNS is when the end of the body was written, or the answer given up.
	DoneNS int64 `json:"done_ns"`
	// Fault names the faults that took effect, joined by "+"; Drawn those that
	// were drawn for the request. A stall of an answer that was refused is
	// drawn and took no effect.
	Fault string `json:"fault,omitempty"`
	Drawn string `json:"drawn,omitempty"`
	// Aborted: the client left first, or the server was stopped.
	Aborted bool `json:"aborted,omitempty"`
	// Engine holds the engine's trace of each choice, if the engine reports one.
	Engine []EngineTruth `json:"engine,omitempty"`
}

// TruthSchema names the form of the log, in its first line.
const TruthSchema = "pitot.truth/v1"

// TruthHeader is the first line of a truth log.
type TruthHeader struct {
	Schema string `json:"schema"`
	// EpochUnixNS is the Unix time, in nanoseconds, at which the log's clock
	// was 0, by the wall clock when the server began: it and a time of the log
	// give the time that other logs have. A wall clock that is set later is not
	// followed.
	EpochUnixNS int64 `json:"epoch_unix_ns"`
}

// EngineTruth records the engine's work on one choice. It is a [sim.Trace] on the clock of the
// log, -1 for events that did not happen.
type EngineTruth struct {
	Choice      int   `json:"choice"`
	ArrivedNS   int64 `json:"arrived_ns"`
	QueuedNS    int64 `json:"queued_ns"`
	ScheduledNS int64 `json:"scheduled_ns"`
	FirstNS     int64 `json:"first_ns"` // ends of the steps that gave the first and the last token
	LastNS      int64 `json:"last_ns"`
	Steps       int   `json:"steps"` // that it was part of
	FirstStep   int64 `json:"first_step"`
	LastStep    int64 `json:"last_step"`
	Cached      int   `json:"cached_tokens"`
	Preemptions int   `json:"preemptions"`
}

// engineTruth puts a choice's trace on the real clock.
func (s *Server) engineTruth(c *choice) EngineTruth {
	realTime := func(t int64) int64 {
		if t < 0 {
			return -1
		}
		return s.scale.realTime(t)
	}
	t := c.trace
	return EngineTruth{
		Choice: c.index, ArrivedNS: realTime(t.Arrived), QueuedNS: realTime(t.Queued), ScheduledNS: realTime(t.Scheduled),
		FirstNS: realTime(t.First), LastNS: realTime(t.Last), Steps: t.Steps, FirstStep: t.FirstStep, LastStep: t.LastStep,
		Cached: t.Cached, Preemptions: t.Preemptions,
	}
}

// log hands a request's line to the truth log.
func (s *Server) log(t Truth) {
	if s.truth != nil {
		s.truth.enqueue(t)
	}
}

// truthLog writes lines in a goroutine of its own, so that neither encoding
// nor a slow disk delays an emission.
type truthLog struct {
	w    *bufio.Writer
	wake chan struct{}
	quit chan struct{}
	done chan struct{}
	err  error // the first; read after done

	mu sync.Mutex
	in []Truth
}

// newTruthLog is one that begins with its header.
func newTruthLog(w io.Writer) *truthLog {
	l := &truthLog{
		w:    bufio.NewWriterSize(w, 64<<10),
		wake: make(chan struct{}, 1),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	l.writeLine(TruthHeader{TruthSchema, time.Now().UnixNano() - clock.Now()})
	return l
}

func (l *truthLog) enqueue(t Truth) {
	l.mu.Lock()
	l.in = append(l.in, t)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close writes what is left and gives the first error there was.
func (l *truthLog) close() error {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	<-l.done
	return l.err
}

func (l *truthLog) run() {
	defer close(l.done)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for open := true; open; {
		flush := false
		select {
		case <-l.wake:
		case <-second.C:
			flush = true
		case <-l.quit:
			open, flush = false, true
		}
		l.mu.Lock()
		lines := l.in
		l.in = nil
		l.mu.Unlock()
		for i := range lines {
			l.write(&lines[i])
		}
		if flush {
			l.noteError(l.w.Flush())
		}
	}
}

func (l *truthLog) write(t *Truth) {
	if !slices.ContainsFunc(t.Tokens, func(n int) bool { return n != 1 }) {
		t.Tokens = nil
	}
	if t.EmitNS == nil {
		t.EmitNS = []int64{}
	}
	l.writeLine(t)
}

// writeLine writes a value in a line of its own.
func (l *truthLog) writeLine(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	l.noteError(err)
}

func (l *truthLog) noteError(err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("write truth log: %w", err)
	}
}

// ReadTruth reads a truth log, in the order in which requests ended. A line
// that cannot be read is given as an error, and reading goes on after it; an
// error of r ends the sequence.
func ReadTruth(r io.Reader) iter.Seq2[Truth, error] {
	return func(yield func(Truth, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		for n := 1; ; n++ {
			line, err := br.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Truth{}, fmt.Errorf("read truth log: %w", err))
				return
			}
			if t, is, perr := parseTruth(line); is {
				if perr != nil {
					perr = fmt.Errorf("parse line %d of truth log: %w", n, perr)
				}
				if !yield(t, perr) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// parseTruth reads a line; is says that it is about a request.
func parseTruth(line []byte) (t Truth, is bool, err error) {
	if len(line) == 0 {
		return t, false, nil
	}
	var h TruthHeader
	if bytes.HasPrefix(line, []byte(`{"schema":`)) && json.Unmarshal(line, &h) == nil {
		if h.Schema != TruthSchema {
			return t, true, fmt.Errorf("its schema is %q, not %q", h.Schema, TruthSchema)
		}
		return t, false, nil
	}
	if err := json.Unmarshal(line, &t); err != nil {
		return Truth{}, true, err
	}
	if t.Tokens != nil && len(t.Tokens) != len(t.EmitNS) {
		return Truth{}, true, fmt.Errorf("%d chunks have %d token counts", len(t.EmitNS), len(t.Tokens))
	}
	return t, true, nil
}
