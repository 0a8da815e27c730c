//go:build !linux

package stamp

import (
	"io"
	"net"
	"time"
)

// Kernel says whether this platform stamps what arrives.
const Kernel = false

// Receiver reads a TCP socket with the kernel's receive stamps; this platform
// has none.
type Receiver struct{}

// NewReceiver gives nil: use the clock after each read.
func NewReceiver(net.Conn) *Receiver { return nil }

// Read implements the Linux Receiver's method; it is never reached.
func (*Receiver) Read([]byte) (int, Arrival, error) { return 0, Arrival{}, io.EOF }

// Prime does nothing here.
func Prime() io.Closer { return io.NopCloser(nil) }

// Readers read many sockets with the kernel's receive stamps; this platform
// has none.
type Readers struct{}

// NewReaders gives nil.
func NewReaders() *Readers { return nil }

// Close does nothing.
func (*Readers) Close() {}

// Add gives nil: read the connection as it is.
func (*Readers) Add(net.Conn) *Socket { return nil }

// Socket is a connection that Readers read; there is none, and its methods
// are never reached.
type Socket struct{}

// Start does nothing.
func (*Socket) Start(Owner) {}

// Write does nothing.
func (*Socket) Write([]byte) (int, error) { return 0, net.ErrClosed }

// SetReadDeadline does nothing.
func (*Socket) SetReadDeadline(time.Time) error { return nil }

// Close does nothing.
func (*Socket) Close() error { return nil }

// Control does nothing.
func (*Socket) Control(func(uintptr)) {}

// Expect does nothing.
func (*Socket) Expect() {}

// Forget does nothing.
func (*Socket) Forget() {}
