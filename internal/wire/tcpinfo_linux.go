package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Retransmits is how many segments the socket has sent again so far (tcpi_total_retrans).
func (c *Conn) Retransmits() (n int) {
	sc, ok := c.raw.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Total_retrans)
		}
	})
	return n
}
