// Package scrape asks servers, GPUs and machines what they tell of themselves while a load goes on:
// each again and again, pages of metrics on a connection of their own. It never delays or fails a
// measurement: a page that is slow, dead, too large or no page of metrics is given up with one
// sentence, and one that takes long to read is read less often.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/clock"
	"pitot/internal/sim/engines"
	"pitot/internal/telemetry"
)

const (
	// timeout bounds one question.
	timeout = 2 * time.Second
	// largest is the most bytes that a page may have: real ones have at most a few hundred
	// thousand.
	largest = 8 << 20
	// mostFailed questions in a row end the asking.
	mostFailed = 3
	// thrift is the pause after a page, in multiples of the time to read it: reading takes less
	// than a 200th of a core.
	thrift = 200
)

// names is the table of the metric names of engines and exporters.
var names = telemetry.NewTable(engines.Metrics())

// MetricsPaths are where engines have their metrics: vLLM, SGLang, TGI and llama.cpp at the
// first, TensorRT-LLM at the second, NIM at the third.
func MetricsPaths() []string { return []string{"/metrics", "/prometheus/metrics", "/v1/metrics"} }

// ErrNone says that there are no metrics at any of the paths.
var ErrNone = errors.New("the server has no metrics")

// Teller tells what it knows when it is asked: a page over HTTP, a tool of this machine,
// its kernel. It is not safe for concurrent use.
type Teller interface {
	// Tell tells once. An error that more questions would bring again is a [Final].
	Tell(ctx context.Context) (Asked, error)
	Close()
}

// Paced is a teller that answers in a time of its own, for which Tell waits.
type Paced interface {
	Teller
	// Latest is its last answer, also one that was told before; false while there is none.
	Latest() (Asked, bool)
}

// Final is why a teller will tell nothing more.
type Final struct{ Err error }

// Error says why.
func (f Final) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f Final) Unwrap() error { return f.Err }

// Asked is one answer: what was told, and when, in nanoseconds of [clock.Now]. The time of
// a page is the middle of the question: it is off by at most half of how long that took.
type Asked struct {
	telemetry.Reading
	At   int64
	Took time.Duration
	Work time.Duration // processor time that reading it took here
}

// Source is a teller that is asked again and again. It is not safe for concurrent use.
type Source struct {
	Name string // of its samples in the records

	teller Teller
	what   string // whose it is, for messages

	rest    time.Time // not before it is asked again
	began   float64   // when the server's process did, 0 while that is not known
	failed  int       // questions in a row
	silent  int       // loads in a row of which it told nothing
	gone    bool      // it is asked no more
	heard   bool      // that the user knows of it
	reading telemetry.Reading
}

// NewTeller is a source that is not a page. what says what it tells: "the GPUs' figures of
// nvidia-smi".
func NewTeller(name, what string, teller Teller) *Source {
	return &Source{Name: name, what: what, teller: teller}
}

// NewSource is a page at one of some paths of an endpoint. what says whose metrics they
// are: "the server's own metrics".
func NewSource(name, what string, d *client.Dialer, headers []api.Header, secret string, paths ...string) *Source {
	return NewTeller(name, what, &page{paths: paths, url: d.Endpoint.URL(paths[0]),
		poller: &client.Poller{Dialer: d, Headers: headers, Secret: secret, Most: largest}})
}

// Close ends its connection.
func (s *Source) Close() { s.teller.Close() }

// URL is where the page is, "" of a source that is none.
func (s *Source) URL() string {
	if p, ok := s.teller.(*page); ok {
		return p.url
	}
	return ""
}

// Reading returns the last reading.
func (s *Source) Reading() telemetry.Reading { return s.reading }

// Ask asks once. A page is found at one of its paths the first time; none of them is
// [ErrNone].
func (s *Source) Ask(ctx context.Context) (Asked, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := s.teller.Tell(ctx)
	s.rest = time.Now().Add(thrift * a.Work)
	if err != nil {
		return Asked{}, err
	}
	s.takeAnswer(&a)
	return a, nil
}

// AskAtOnce asks once, but waits for no answer of one that has a pace of its own, where it
// has given any.
func (s *Source) AskAtOnce(ctx context.Context) (Asked, error) {
	if p, ok := s.teller.(Paced); ok {
		if a, ok := p.Latest(); ok {
			s.takeAnswer(&a)
			return a, nil
		}
	}
	return s.Ask(ctx)
}

// takeAnswer keeps what was told.
func (s *Source) takeAnswer(a *Asked) {
	s.reading = a.Reading
	if s.began == 0 {
		s.began = a.Values[telemetry.ProcessStart]
	}
}

// page is a page of metrics.
type page struct {
	poller *client.Poller
	paths  []string // where it may be
	path   string   // where it is, "" while that is not known
	url    string
}

// Close ends its connection.
func (p *page) Close() { p.poller.Close() }

// Tell asks for it. The first time it finds out at which of its paths it is.
func (p *page) Tell(ctx context.Context) (Asked, error) {
	paths := p.paths
	if p.path != "" {
		paths = []string{p.path}
	}
	err := ErrNone
	for _, path := range paths {
		a, one := p.getPage(ctx, path)
		switch {
		case one == nil:
			p.path, p.url = path, p.poller.Dialer.Endpoint.URL(path)
			return a, nil
		case !mayBeElsewhere(one):
			return a, one
		case len(paths) == 1:
			err = one
		}
	}
	return Asked{}, err
}

// statusError is an answer other than a page.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("it answers %d", int(e)) }

// isFinal says that more questions would bring an error again.
func isFinal(err error) bool {
	var f Final
	return errors.As(err, &f) || mayBeElsewhere(err)
}

// mayBeElsewhere says that a page may be at another path.
func mayBeElsewhere(err error) bool {
	var status statusError
	return errors.As(err, &status) || errors.Is(err, telemetry.ErrNoMetrics) || errors.Is(err, telemetry.ErrUnknownMetrics)
}

// getPage asks at one path.
func (p *page) getPage(ctx context.Context, path string) (Asked, error) {
	begin := clock.Now()
	answer, err := p.poller.Get(ctx, path)
	end := clock.Now()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Asked{}, errors.New("the answer took longer than " + timeout.String())
	case ctx.Err() != nil:
		return Asked{}, ctx.Err()
	case err != nil:
		_, detail := client.Classify(err)
		return Asked{}, errors.New(detail)
	case answer.Status != 200:
		return Asked{}, statusError(answer.Status)
	}
	reading, err := names.Read(answer.Body)
	work := time.Duration(clock.Now() - end)
	if err != nil {
		return Asked{Work: work}, err
	}
	return Asked{Reading: reading, At: begin + (end-begin)/2, Took: time.Duration(end - begin), Work: work}, nil
}
