package stamp

import (
	"net"
	"os"
	"pitot/internal/clock"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is a TCP connection that [Readers] read. Its methods may be called
// by any goroutine, but by one at a time where they write.
type Socket struct {
	// Of the reader's goroutine, which alone changes fd. What each arrival
	// touches stands together.
	owner  Owner // nil until it is started
	stamps stamps
	off    int64  // bytes handed on so far
	marks  []mark // of bytes behind off, by the scout
	fd     int    // -1 once closed; guarded by mu for all others
	slot   int32
	broken syscall.Errno // the error that the scout got instead of the reader
	r      *reader

	deadline atomic.Int64 // monotonic, 0 for none
	expected atomic.Bool  // the scout looks at it

	mu      sync.Mutex
	timer   *time.Timer
	blocked chan struct{} // a writer waits on it
}

// Start begins to read. The owner is handed what arrives until it wants no
// more or was handed an error; then the socket is closed.
func (s *Socket) Start(owner Owner) {
	if !s.r.postLetter(letter{s: s, begin: owner}) {
		go owner.Arrived(nil, Arrival{Time: clock.Now()}, net.ErrClosed)
	}
}

// Write writes all of p.
func (s *Socket) Write(p []byte) (n int, err error) {
	for {
		k, wait, err := s.write(p[n:])
		if n += max(k, 0); err != nil || n == len(p) {
			return n, err
		}
		if wait != nil {
			<-wait
		}
	}
}

// write writes what the socket takes, and gives what to wait for if that is
// nothing.
func (s *Socket) write(p []byte) (n int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return 0, nil, net.ErrClosed
	}
	n, err = unix.Write(s.fd, p)
	switch err {
	case syscall.EAGAIN:
		s.blocked = make(chan struct{})
		_ = s.setEvents(unix.EPOLL_CTL_MOD)
		return 0, s.blocked, nil
	case syscall.EINTR:
		return 0, nil, nil
	}
	return n, nil, err
}

// setEvents tells the epoll what the socket is to be reported for: arrivals, and room
// to write if a writer waits for it. What is there already is reported too. The
// caller holds s.mu.
func (s *Socket) setEvents(op int) error {
	events := uint32(unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET)
	if s.blocked != nil {
		events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(s.r.epoll, op, s.fd, &unix.EpollEvent{Events: events, Fd: s.slot})
}

// wakeWriter wakes the writer.
func (s *Socket) wakeWriter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked != nil {
		close(s.blocked)
		s.blocked = nil
		_ = s.setEvents(unix.EPOLL_CTL_MOD)
	}
}

// SetReadDeadline has the socket end with os.ErrDeadlineExceeded at t; the
// zero time lifts it.
func (s *Socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if t.IsZero() || s.fd < 0 {
		s.deadline.Store(0)
		return nil
	}
	s.deadline.Store(clock.FromTime(t))
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(t), func() { s.r.postLetter(letter{s: s, err: os.ErrDeadlineExceeded}) })
	} else {
		s.timer.Reset(time.Until(t))
	}
	return nil
}

// Close ends the socket, soon, with net.ErrClosed.
func (s *Socket) Close() error {
	s.r.postLetter(letter{s: s, err: net.ErrClosed})
	return nil
}

// Control calls f with the descriptor, unless the socket is closed.
func (s *Socket) Control(f func(fd uintptr)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		f(uintptr(s.fd))
	}
}

// close closes the descriptor.
func (s *Socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = unix.Close(s.fd) // takes it out of every epoll
	s.fd = -1
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.blocked != nil {
		close(s.blocked)
		s.blocked = nil
	}
}
