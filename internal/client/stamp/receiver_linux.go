package stamp

import (
	"io"
	"net"
	"pitot/internal/clock"
	"syscall"
	"time"
)

// Kernel says whether this platform stamps what arrives.
const Kernel = true

// Receiver reads a TCP socket with recvmsg and gives each read the kernel's
// receive stamp. It must be used by one goroutine at a time. Many sockets at
// once are cheaper to read with [Readers].
type Receiver struct {
	raw    syscall.RawConn
	read   func(fd uintptr) bool
	msg    message
	stamps stamps

	// buf is read into; the rest tells of the last read.
	buf     []byte
	n       int
	arrival Arrival
	err     error
}

// NewReceiver turns the kernel's receive stamps on for a TCP connection. It
// gives nil for anything that has none.
func NewReceiver(c net.Conn) *Receiver {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	stamped := false
	err = raw.Control(func(fd uintptr) { stamped = askForStamps(fd) == nil })
	if err != nil || !stamped {
		return nil
	}
	r := &Receiver{raw: raw}
	r.read = r.receive
	return r
}

// receive reads what is there; false asks the poller to wait.
func (r *Receiver) receive(fd uintptr) bool {
	n, errno := r.msg.receive(fd, &r.buf[0], len(r.buf), 0)
	if errno == syscall.EAGAIN {
		return false
	}
	var stamp int64
	r.n, r.err = n, nil
	switch {
	case errno != 0:
		r.n, r.err = 0, errno
	case n == 0:
		r.err = io.EOF
	default:
		stamp = r.msg.stamp()
	}
	r.arrival = r.stamps.timeOf(stamp, time.Now())
	r.arrival.More = n == len(r.buf)
	return true
}

// Read fills p and gives when the bytes arrived.
func (r *Receiver) Read(p []byte) (n int, a Arrival, err error) {
	r.buf = p
	if err := r.raw.Read(r.read); err != nil {
		return 0, Arrival{Time: clock.Now()}, err
	}
	return r.n, r.arrival, r.err
}

// Prime makes the kernel stamp packets: it only starts to once a socket asks
// for stamps, a moment later, so the very first reads of a process would have
// none. Call it once before measuring; the result keeps the stamps on until
// it is closed.
func Prime() io.Closer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return io.NopCloser(nil)
	}
	if raw, err := l.(*net.TCPListener).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = askForStamps(fd) })
	}
	return l
}
