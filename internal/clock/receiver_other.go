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
func (*Receiver) Run([]byte, func(b []byte, at int64, kernel, more bool, err error) bool) {}

// Prime does nothing here.
func Prime() io.Closer { return io.NopCloser(nil) }

// Scout is nothing where the kernel has no stamps.
type Scout struct{}

// NewScout gives nil.
func NewScout() *Scout { return nil }

// Close does nothing.
func (*Scout) Close() {}

// Scouted does nothing.
func (*Receiver) Scouted(*Scout) {}

// Expect does nothing.
func (*Receiver) Expect() {}

// Forget does nothing.
func (*Receiver) Forget() {}
