package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Retransmits is how many segments the socket has sent again since this was
// last asked, or since its first request (tcpi_total_retrans).
func (c *Conn) Retransmits() int32 {
	before := c.retransmits
	c.retransmits = c.sentAgain()
	return int32(max(0, c.retransmits-before))
}

// sentAgain is how many the socket has sent again in all.
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
