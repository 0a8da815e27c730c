package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pitot/internal/client/stamp"
	"pitot/internal/clock"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/prom"
)

// Server serves an engine. Make one with [New]; it runs from the first Serve
// or ServeConn until Shutdown.
type Server struct {
	cfg     Config
	alarm   clock.Alarm
	limiter limiter
	start   int64 // when it was made, for faults that come by the clock

	scale     scale
	ready     int64 // when the model will be loaded
	wedgeAt   int64 // when the engine stands still for good
	dialect   dialect.Dialect
	routes    map[string]dialect.Route
	blockSize int // of the engine's cache, 0 if not known

	requests atomic.Int64 // sequence numbers given to requests
	accepted atomic.Int64 // and to connections
	stats    stats
	web      prom.HTTP
	truth    *truthLog // nil without a log

	inbox   inbox
	started sync.Once
	stopped chan struct{} // closed when the engine's goroutine has ended

	deserted  atomic.Bool // no engine takes requests
	closing   atomic.Bool
	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	readers   sync.WaitGroup

	// owned by the engine's goroutine
	jobs  map[int64]*choice
	meter *meter
	buf   []byte // the event being built
}

// New gives a server that does not listen yet.
func New(c Config) *Server {
	s := &Server{
		cfg:       c.withDefaults(),
		alarm:     c.Alarm,
		start:     clock.Now(),
		inbox:     inbox{wake: make(chan struct{}, 1)},
		stopped:   make(chan struct{}),
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
		jobs:      make(map[int64]*choice),
		buf:       make([]byte, 0, 1<<10),
		wedgeAt:   math.MaxInt64,
	}
	s.scale = scale{s.start, s.cfg.Speed}
	s.ready = s.start + int64(c.Startup)
	for _, f := range c.Faults {
		if f.Name == "wedge" {
			s.wedgeAt = min(s.wedgeAt, s.start+int64(f.From))
		}
	}
	engines := observableEngines(s.cfg.Engine)
	served := s.cfg.dialectConfig(engines[0] != nil, time.Now(), s.Stats)
	s.blockSize = served.BlockSize
	s.dialect = openDialect(s.cfg.Dialect, served)
	s.routes = make(map[string]dialect.Route)
	for _, r := range s.dialect.Routes() {
		s.routes[r.Path] = r
	}
	s.meter = newMeter(s.dialect.Metrics(len(engines)), engines)
	if s.alarm == nil {
		s.alarm = clock.NewAlarm()
	}
	if c.Truth != nil {
		s.truth = newTruthLog(c.Truth)
	}
	return s
}

// startGoroutines starts the goroutines that every connection needs.
func (s *Server) startGoroutines() {
	s.started.Do(func() {
		if s.truth != nil {
			go s.truth.run()
		}
		go s.runEngine()
	})
}

// Serve accepts connections until Shutdown, and then gives nil.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		return nil
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()

	// Keep the kernel stamping, so that the first request has its stamp too.
	defer stamp.Prime().Close()
	s.startGoroutines()
	for {
		c, err := l.Accept()
		if err != nil {
			if s.closing.Load() {
				return nil
			}
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				time.Sleep(5 * time.Millisecond) // some will come back
				continue
			}
			return fmt.Errorf("accept connection: %w", err)
		}
		if c := s.registerConn(c); c != nil {
			go c.serve()
		}
	}
}

// ServeConn serves one connection until it is closed.
func (s *Server) ServeConn(nc net.Conn) {
	s.startGoroutines()
	if c := s.registerConn(nc); c != nil {
		c.serve()
	}
}

// registerConn registers a connection; nil if the server is shutting down.
func (s *Server) registerConn(nc net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		nc.Close()
		return nil
	}
	c := newConn(s, nc)
	c.late = s.cfg.Faults.acceptDelay(s.cfg.Seed, s.accepted.Add(1)-1, time.Duration(clock.Now()-s.start))
	s.conns[c] = struct{}{}
	s.readers.Add(1)
	return c
}

// Shutdown stops accepting, lets running answers end, and returns when all
// connections are closed and the truth log is written. When ctx ends first,
// the connections are cut and its error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing.Store(true)
	for l := range s.listeners {
		l.Close()
	}
	clear(s.listeners)
	for c := range s.conns {
		if !c.busy.Load() {
			c.in.setTimeout(-1) // nothing is to begin there any more
		}
	}
	s.mu.Unlock()
	s.startGoroutines() // so that there is something to stop

	closed := make(chan struct{})
	go func() { s.readers.Wait(); close(closed) }()
	var err error
	select {
	case <-closed:
	case <-ctx.Done():
		err = ctx.Err()
		s.mu.Lock()
		for c := range s.conns {
			c.out.closeConn(true)
		}
		s.mu.Unlock()
		<-closed
	}
	s.inbox.post(message{kind: stop})
	<-s.stopped
	if s.truth != nil {
		if terr := s.truth.close(); err == nil {
			err = terr
		}
	}
	return err
}

// freezeEnd is when a request that comes now may go on: now, or the end of a
// freeze of the whole server.
func (s *Server) freezeEnd(now int64) int64 { return s.start + s.cfg.Faults.ThawTime(now-s.start) }

// isWedged says whether the engine stands still for good.
func (s *Server) isWedged(now int64) bool { return now >= s.wedgeAt }

// eventBuffer is the engine goroutine's buffer for one event, with frameSpace free
// bytes before it.
func (s *Server) eventBuffer() []byte { return s.buf[:frameSpace] }
