package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Retransmits is how many segments the socket has sent again so far (tcpi_total_retrans).
func (c *Conn) Retransmits() (n int) {
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
