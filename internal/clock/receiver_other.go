//go:build !linux

package clock

import (
	"io"
	"net"
)

// Kernel says whether this platform stamps what arrives.
const Kernel = false

// Receiver reads a TCP socket with the kernel's receive stamps; this platform
// has none.
type Receiver struct{}

// NewReceiver gives nil: use the clock after each read.
func NewReceiver(net.Conn) *Receiver { return nil }

// Read implements the Linux Receiver's method; it is never reached.
func (*Receiver) Read([]byte) (int, int64, bool, error) { return 0, 0, false, io.EOF }

// Run implements the Linux Receiver's method; it is never reached.
func (*Receiver) Run([]byte, func(n int, at int64, kernel, more bool, err error) bool) {}

// Prime does nothing here.
func Prime() io.Closer { return io.NopCloser(nil) }
