package clock

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Scout keeps the arrival times of bytes that matter from being lost when
// reads are late. While a process waits for its share of a busy core, the
// kernel merges what arrives on a socket and keeps the stamp of the last
// segment only. A scout knows the sockets whose first bytes are expected, and
// any reader that gets to run has it look at all of them before it reads its
// own: one system call says which have something, and peeking at those notes
// how much of it arrived by when. So the first token of a stream needs its
// process to run once before the second arrives, not its turn to come.
//
// A nil Scout does nothing.
type Scout struct {
	epoll int
	due   atomic.Int64 // when to look again
	some  atomic.Int32 // how many are expected

	mu       sync.Mutex
	expected map[int32]*Receiver // by descriptor
	ready    [64]unix.EpollEvent
}

// lookEvery is how often a scout looks: often against the gaps between
// tokens, seldom against the microseconds a read takes.
const lookEvery = int64(200 * time.Microsecond)

// maxMarks bounds what is kept about a socket that nobody reads.
const maxMarks = 64

// NewScout makes a scout; nil if the system has no descriptor left for it.
func NewScout() *Scout {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	return &Scout{epoll: fd, expected: map[int32]*Receiver{}}
}

// Close ends it.
func (s *Scout) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.expected)
	s.some.Store(0)
	_ = unix.Close(s.epoll)
	s.epoll = -1
}

// expect begins to look at a socket.
func (s *Scout) expect(fd uintptr, r *Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected[int32(fd)] == r {
		return
	}
	// Edge-triggered: what has been noted is reported again only with more.
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}
	if unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, int(fd), &e) == nil {
		s.expected[int32(fd)] = r
		s.some.Store(int32(len(s.expected)))
	}
}

// forget ends it. The descriptor of a socket that was closed meanwhile may be
// another's by now.
func (s *Scout) forget(fd uintptr, r *Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected[int32(fd)] == r {
		_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, int(fd), nil)
		delete(s.expected, int32(fd))
		s.some.Store(int32(len(s.expected)))
	}
}

// look notes what has arrived on the expected sockets, if it is time to.
func (s *Scout) look() {
	if s == nil || s.some.Load() == 0 {
		return
	}
	now, due := Now(), s.due.Load()
	if now < due || !s.due.CompareAndSwap(due, now+lookEvery) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.epoll), uintptr(unsafe.Pointer(&s.ready[0])), uintptr(len(s.ready)), 0, 0, 0)
		if errno != 0 {
			return
		}
		for _, e := range s.ready[:n] {
			if r := s.expected[e.Fd]; r != nil {
				_ = r.raw.Control(r.peek)
			}
		}
		if int(n) < len(s.ready) {
			return
		}
	}
}

// Scouted has a scout look at the socket whenever Expect was called. Call it
// before Run.
func (r *Receiver) Scouted(s *Scout) { r.scout = s }

// Expect says that what arrives next matters, until Forget.
func (r *Receiver) Expect() {
	if r.scout != nil {
		_ = r.raw.Control(func(fd uintptr) { r.fd = fd; r.scout.expect(fd, r) })
	}
}

// Forget says that it does not matter any more.
func (r *Receiver) Forget() {
	if r.scout != nil {
		r.scout.forget(r.fd, r)
	}
}
