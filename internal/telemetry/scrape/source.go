// Package scrape asks servers, GPUs and machines what they tell of themselves while a
// load goes on: each page again and again, on a connection of its own. It never delays
// or fails a measurement: a page that is slow, dead, too large or no page of metrics is
// given up with one sentence, and one that takes long to read is read less often.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitot/internal/clock"
	"pitot/internal/telemetry"
	"pitot/internal/wire"
	"pitot/internal/wire/api"
)

const (
	// timeout bounds one question.
	timeout = 2 * time.Second
	// largest is the most bytes that a page may have: real ones have at most a few hundred
	// thousand.
	largest = 8 << 20
	// mostFailed questions in a row end the asking.
	mostFailed = 3
	// thrift is how many times as long as it takes to read a page nothing is asked:
	// reading takes less than a 200th of a core.
	thrift = 200
)

// Paths are where engines have their metrics: vLLM, SGLang, TGI and llama.cpp at the
// first, TensorRT-LLM at the second, NIM at the third.
func Paths() []string { return []string{"/metrics", "/prometheus/metrics", "/v1/metrics"} }

// ErrNone says that there are no metrics at any of the paths.
var ErrNone = errors.New("the server has no metrics")

// Source is one page that is asked again and again. It is not safe for concurrent use.
type Source struct {
	Name string // of its samples in the records

	poller *wire.Poller
	paths  []string // where the page may be
	path   string   // where it is, "" while that is not known
	what   string   // whose it is, for messages
	url    string

	rest    time.Time // not before it is asked again
	began   float64   // when the server's process did, 0 while that is not known
	failed  int       // questions in a row
	silent  int       // loads in a row of which it told nothing
	gone    bool      // it is asked no more
	heard   bool      // that the user knows of it
	reading telemetry.Reading
}

// NewSource is a page at one of some paths of an endpoint. what says whose metrics they
// are: "the server's own metrics".
func NewSource(name, what string, d *wire.Dialer, headers []api.Header, secret string, paths ...string) *Source {
	return &Source{Name: name, what: what, paths: paths, url: d.Endpoint.URL(paths[0]),
		poller: &wire.Poller{Dialer: d, Headers: headers, Secret: secret, Most: largest}}
}

// Close ends its connection.
func (s *Source) Close() { s.poller.Close() }

// URL is where the page is.
func (s *Source) URL() string { return s.url }

// Reading is what the page said last.
func (s *Source) Reading() telemetry.Reading { return s.reading }

// Asked is one answer: what the page said, and when, in nanoseconds of [clock.Now]. The
// time is the middle of the question: it is off by at most half of how long that took.
type Asked struct {
	telemetry.Reading
	At   int64
	Took time.Duration
}

// Ask asks once. The first time it finds out at which of its paths the page is; none of
// them is [ErrNone].
func (s *Source) Ask(ctx context.Context) (Asked, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	paths := s.paths
	if s.path != "" {
		paths = []string{s.path}
	}
	err := ErrNone
	for _, path := range paths {
		a, one := s.ask(ctx, path)
		switch {
		case one == nil:
			s.path, s.url = path, s.poller.Dialer.Endpoint.URL(path)
			s.reading = a.Reading
			if s.began == 0 {
				s.began = a.Values[telemetry.ProcessStart]
			}
			return a, nil
		case !elsewhere(one):
			return Asked{}, one
		case len(paths) == 1:
			err = one
		}
	}
	return Asked{}, err
}

// statusError is an answer other than a page.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("it answers %d", int(e)) }

// elsewhere says that a page may be at another path.
func elsewhere(err error) bool {
	var status statusError
	return errors.As(err, &status) || errors.Is(err, telemetry.ErrNoMetrics) || errors.Is(err, telemetry.ErrUnknownMetrics)
}

// ask asks at one path.
func (s *Source) ask(ctx context.Context, path string) (Asked, error) {
	begin := clock.Now()
	answer, err := s.poller.Get(ctx, path)
	end := clock.Now()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Asked{}, errors.New("the answer took longer than " + timeout.String())
	case ctx.Err() != nil:
		return Asked{}, ctx.Err()
	case err != nil:
		_, detail := wire.Classify(err)
		return Asked{}, errors.New(detail)
	case answer.Status != 200:
		return Asked{}, statusError(answer.Status)
	}
	reading, err := telemetry.Read(answer.Body)
	s.rest = time.Now().Add(thrift * time.Duration(clock.Now()-end))
	if err != nil {
		return Asked{}, err
	}
	return Asked{Reading: reading, At: begin + (end-begin)/2, Took: time.Duration(end - begin)}, nil
}
