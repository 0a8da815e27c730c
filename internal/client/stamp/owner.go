// Package stamp reads sockets and says when the bytes of each read arrived: by
// the kernel's receive stamp where there is one.
package stamp

// Arrival is when the bytes of one read arrived, and whose clock says so.
type Arrival struct {
	Time   int64 // nanoseconds on [clock.Now]'s scale; on one socket it never goes back. Of several segments read at once it is that of the last
	Kernel bool  // stamped by the kernel, not when the read returned
	More   bool  // bytes that had arrived by then are still to be read
}

// Owner takes what arrives on a [Socket]. Other sockets wait meanwhile, so it
// must not block.
type Owner interface {
	// Arrived takes the bytes of one read, or the error that ends the socket;
	// it says whether it wants more. A read of which the scout saw the
	// beginning arrive is handed on in as many pieces.
	Arrived(b []byte, a Arrival, err error) (goOn bool)

	// Warm reads the memory that Arrived is about to need, and does nothing
	// with it.
	Warm()
}
