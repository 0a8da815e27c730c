package stamp

import (
	"pitot/internal/clock"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// scout keeps the arrival times of bytes that matter from being lost when
// reads are late. While a process waits for its share of a busy core, the
// kernel merges what arrives on a socket and keeps the stamp of the last
// segment only. A scout knows the sockets whose first bytes are expected. As
// soon as their reader gets to run it looks at all of them before it reads the
// next: one system call says which have something, and peeking at those notes
// how much of it arrived by when. So the first token of a stream needs its
// process to run once before the second arrives, not its turn to come.
type scout struct {
	epoll int
	some  atomic.Int32 // how many are expected
	due   int64        // when to look again
	ready [64]unix.EpollEvent
}

// lookEvery is the interval of a scout's looks. It is short against the gaps between tokens, and
// long against the microseconds that a read takes.
const lookEvery = int64(200 * time.Microsecond)

// maxMarks bounds what is kept about a socket that is not read.
const maxMarks = 64

// mark says that the bytes before end, counted from the socket's first, had
// arrived by a time.
type mark struct{ end, at int64 }

func (c *scout) open() (err error) {
	c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return err
}

func (c *scout) close() { _ = unix.Close(c.epoll) }

// Expect says that what arrives next matters, until Forget.
func (s *Socket) Expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 || s.expected.Load() {
		return
	}
	// Edge-triggered: what has been noted is reported again only with more.
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: s.slot}
	if unix.EpollCtl(s.r.scout.epoll, unix.EPOLL_CTL_ADD, s.fd, &e) == nil {
		s.expected.Store(true)
		s.r.scout.some.Add(1)
	}
}

// Forget says that it does not matter any more.
func (s *Socket) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected.Swap(false) {
		s.r.scout.some.Add(-1)
		_ = unix.EpollCtl(s.r.scout.epoll, unix.EPOLL_CTL_DEL, s.fd, nil)
	}
}

// peekScouts notes what has arrived on the expected sockets, if it is time to.
func (r *reader) peekScouts(now time.Time) {
	c := &r.scout
	if c.some.Load() == 0 || clock.FromTime(now) < c.due {
		return
	}
	c.due = clock.FromTime(now) + lookEvery
	for {
		n := pollReady(c.epoll, c.ready[:])
		r.mu.Lock()
		for _, e := range c.ready[:n] {
			if s := r.sockets[e.Fd]; s != nil {
				r.peekArrival(s, now)
			}
		}
		r.mu.Unlock()
		if n < len(c.ready) {
			return
		}
	}
}

// peekArrival notes what a socket has and when the last of it arrived, and leaves it
// there. An error it cannot leave there: the kernel tells of a reset once, be it
// to one who only looks, and then of an end.
func (r *reader) peekArrival(s *Socket, now time.Time) {
	n, errno := r.msg.receive(uintptr(s.fd), &r.buf[0], 1<<30, unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT) // copies nothing (tcp(7))
	if errno != 0 && errno != unix.EAGAIN {
		s.broken = errno
	}
	if errno != 0 || n <= 0 || len(s.marks) == maxMarks {
		return
	}
	if a := s.stamps.timeOf(r.msg.stamp(), now); a.Kernel {
		s.marks = append(s.marks, mark{s.off + int64(n), a.Time})
	}
}
