package stamp

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"pitot/internal/clock"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readSize is the size of a read. Small reads keep merged arrivals apart; an
// event takes 200 to 400 bytes.
const readSize = 8 << 10

// batch is the number of sockets served between two polls. Other work that waits for the processor,
// such as the next request to send, waits no longer than that.
const batch = 64

// refresh is after how many sockets the clocks are read again and the scout
// looks: within a tenth of a millisecond.
const refresh = 16

// maxReads is the number of reads of one socket before the others have their turn.
const maxReads = 16

// Readers read many sockets with a few goroutines, each of which asks an
// epoll of its own which sockets have something. That spares a goroutine for
// each socket, which the scheduler would have to wake for each arrival.
//
// The epoll waits in the runtime's poller like any other descriptor, so no
// thread is spent on waiting either. A nil Readers reads nothing.
type Readers struct {
	readers []*reader
	next    atomic.Uint32
}

// NewReaders starts them; nil if the system has no descriptors for it.
func NewReaders() *Readers {
	rs := &Readers{}
	for range runtime.GOMAXPROCS(0) {
		r, err := newReader()
		if err != nil {
			rs.Close()
			return nil
		}
		rs.readers = append(rs.readers, r)
		go r.run()
	}
	return rs
}

// Close closes all sockets; what was started gets net.ErrClosed.
func (rs *Readers) Close() {
	if rs == nil {
		return
	}
	for _, r := range rs.readers {
		r.postLetter(letter{})
	}
}

// Add takes a TCP connection over: it must not be used any more. It gives nil,
// and leaves the connection as it is, where the kernel gives no stamps.
func (rs *Readers) Add(c net.Conn) *Socket {
	tcp, ok := c.(*net.TCPConn)
	if !ok || rs == nil {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	// The connection's own descriptor stands in the runtime's poller, which
	// would be woken by every arrival too.
	fd := -1
	err = raw.Control(func(old uintptr) {
		if askForStamps(old) != nil {
			return
		}
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err != nil || fd < 0 {
		return nil
	}
	r := rs.readers[int(rs.next.Add(1))%len(rs.readers)]
	s := &Socket{r: r, fd: fd}
	if !r.addSocket(s) {
		_ = unix.Close(fd)
		return nil
	}
	_ = c.Close()
	return s
}

// reader is one goroutine and its epoll.
type reader struct {
	epoll  int
	wake   int // an eventfd that is never read: each write to it is reported
	poller *os.File

	// Of the goroutine alone.
	ready  [batch]unix.EpollEvent
	turn   [batch]*Socket
	owners [batch]Owner
	msg    message
	buf    [readSize]byte
	scout  scout

	mu      sync.Mutex
	sockets []*Socket // by slot, the number epoll knows them by
	free    []int32
	mail    []letter
	closed  bool
}

// letter tells the reader's goroutine to begin with a socket, or to end it;
// without a socket, to end all.
type letter struct {
	s     *Socket
	begin Owner
	err   error
}

// wakeSlot is the slot of the reader's own eventfd.
const wakeSlot = -1

func newReader() (*reader, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, err
	}
	r := &reader{epoll: epoll, wake: wake}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: wakeSlot}
	err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &e)
	if err == nil {
		err = unix.SetNonblock(epoll, true) // so that os takes it for something to poll
	}
	if err == nil {
		err = r.scout.open()
	}
	if err != nil {
		_, _ = unix.Close(epoll), unix.Close(wake)
		return nil, err
	}
	r.poller = os.NewFile(uintptr(epoll), "epoll")
	return r, nil
}

func (r *reader) addSocket(s *Socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if n := len(r.free); n > 0 {
		s.slot = r.free[n-1]
		r.free = r.free[:n-1]
		r.sockets[s.slot] = s
	} else {
		s.slot = int32(len(r.sockets))
		r.sockets = append(r.sockets, s)
	}
	return true
}

// postLetter queues a letter and wakes the goroutine; false if it has ended.
func (r *reader) postLetter(l letter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.mail = append(r.mail, l)
	r.wakePoller()
	return true
}

// wakePoller has the epoll report the eventfd, which is always readable but reported once
// for each write. Asking about it again by epoll_ctl would report it too, but not where it
// is to be reported already, behind a full batch: then the runtime's poller, which is told
// of what is new alone, would hear of nothing, and no letter could wake it any more.
func (r *reader) wakePoller() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(r.wake, one[:])
}

func (r *reader) run() {
	raw, err := r.poller.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool { return r.readReady() })
	}
	if err != nil { // the poller does not take it: nothing would ever be read
		r.closeAll(nil)
	}
	r.poller.Close()
	r.scout.close()
	_ = unix.Close(r.wake)
}

// readReady serves one batch of what is ready; true when the reader is closed.
func (r *reader) readReady() bool {
	n := pollReady(r.epoll, r.ready[:])
	if n == 0 {
		return false
	}
	if n == len(r.ready) { // there may be more, and nothing new need come to report it
		r.wakePoller()
	}
	var mail []letter
	r.mu.Lock()
	for i, e := range r.ready[:n] {
		if r.turn[i] = nil; e.Fd != wakeSlot {
			r.turn[i] = r.sockets[e.Fd]
		} else {
			mail, r.mail = r.mail, nil
		}
	}
	r.mu.Unlock()
	// With a thousand sockets none of this is in the cache any more. Each
	// would wait for its own memory, one after the other: here they wait together.
	for i, s := range r.turn[:n] {
		if s != nil {
			r.owners[i] = s.owner
		}
	}
	for i, s := range r.turn[:n] {
		if s != nil && r.owners[i] != nil {
			r.owners[i].Warm()
		}
	}
	var now time.Time
	for i, s := range r.turn[:n] {
		if i%refresh == 0 {
			now = time.Now()
			r.peekScouts(now)
		}
		if s != nil && s.fd >= 0 {
			r.serveSocket(s, r.ready[i].Events, now)
		}
	}
	for i, l := range mail {
		switch {
		case l.s == nil:
			r.closeAll(mail[i+1:])
			return true
		case l.begin != nil:
			r.watchSocket(l.s, l.begin)
		default:
			r.endSocket(l.s, l.err)
		}
	}
	return false
}

// pollReady asks an epoll what is ready now.
func pollReady(epoll int, events []unix.EpollEvent) int {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n)
		case syscall.EINTR:
		default:
			return 0
		}
	}
}

// serveSocket reads what a socket has. A read that does not fill the buffer took all
// there was, and what has come since, a close too, is reported again, as the
// epoll is edge-triggered: so one system call for each arrival is enough.
func (r *reader) serveSocket(s *Socket, events uint32, now time.Time) {
	if events&unix.EPOLLOUT != 0 {
		s.wakeWriter()
	}
	const gone = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	if events&(unix.EPOLLIN|gone) == 0 {
		return
	}
	for range maxReads {
		n, errno := r.msg.receive(uintptr(s.fd), &r.buf[0], len(r.buf), 0)
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno != 0:
			r.endSocket(s, errno)
			return
		case n == 0 && s.broken != 0:
			r.endSocket(s, s.broken)
			return
		case n == 0:
			r.endSocket(s, io.EOF)
			return
		}
		stamp, more := r.msg.stamp(), n == len(r.buf)
		b := r.buf[:n]
		for len(s.marks) > 0 { // what the scout saw of it
			m := s.marks[0]
			first := int(m.end - s.off)
			if first > len(b) {
				break
			}
			s.marks = append(s.marks[:0], s.marks[1:]...)
			if first == len(b) {
				break // the read's own stamp is the same
			}
			s.off = m.end
			if !s.owner.Arrived(b[:first], Arrival{Time: m.at, Kernel: true}, nil) {
				r.dropSocket(s)
				return
			}
			b = b[first:]
		}
		s.off += int64(len(b))
		a := s.stamps.timeOf(stamp, now)
		a.More = more
		if !s.owner.Arrived(b, a, nil) {
			r.dropSocket(s)
			return
		}
		if !more && events&gone == 0 {
			return
		}
	}
	s.mu.Lock()
	_ = s.setEvents(unix.EPOLL_CTL_MOD) // reports what is left
	s.mu.Unlock()
}

// watchSocket has a socket's arrivals reported.
func (r *reader) watchSocket(s *Socket, owner Owner) {
	err := error(net.ErrClosed)
	if s.fd >= 0 {
		s.owner = owner
		s.mu.Lock()
		err = s.setEvents(unix.EPOLL_CTL_ADD)
		s.mu.Unlock()
		if err == nil {
			return
		}
		r.dropSocket(s)
	}
	owner.Arrived(nil, Arrival{Time: clock.Now()}, err)
}

// endSocket tells a socket's owner why it ends, unless it has, and closes it.
func (r *reader) endSocket(s *Socket, err error) {
	if s.fd < 0 {
		return
	}
	if err == os.ErrDeadlineExceeded {
		if d := s.deadline.Load(); d == 0 || clock.Now() < d { // it was put off meanwhile
			return
		}
	}
	if s.owner != nil {
		s.owner.Arrived(nil, s.stamps.timeOf(0, time.Time{}), err)
	}
	r.dropSocket(s)
}

// closeAll ends every socket, those too whose letters come too late.
func (r *reader) closeAll(rest []letter) {
	r.mu.Lock()
	r.closed = true
	rest = append(rest, r.mail...)
	all := slices.Clone(r.sockets)
	r.mu.Unlock()
	for _, s := range all {
		if s != nil {
			r.endSocket(s, net.ErrClosed)
		}
	}
	for _, l := range rest {
		if l.begin != nil {
			r.watchSocket(l.s, l.begin)
		}
	}
}

// dropSocket closes a socket's descriptor.
func (r *reader) dropSocket(s *Socket) {
	s.Forget()
	s.close()
	r.mu.Lock()
	r.sockets[s.slot] = nil
	r.free = append(r.free, s.slot)
	r.mu.Unlock()
}
