package client

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Retransmits returns the number of segments that the socket has sent again (tcpi_total_retrans).
// It counts from the last call, or from the socket's first request.
func (c *Conn) Retransmits() int32 {
	before := c.retransmits
	c.retransmits = c.sentAgain()
	return int32(max(0, c.retransmits-before))
}

// sentAgain returns the number of segments that the socket has sent again in all.
func (c *Conn) sentAgain() (n int) {
	count := func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Total_retrans)
		}
	}
	if c.socket != nil {
		c.socket.Control(count)
	} else if sc, ok := c.raw.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(count)
		}
	}
	return n
}
