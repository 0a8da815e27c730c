package clock

// Owner is told of what arrives on a [Socket]. Other sockets wait while it is
// told, so it must not block.
type Owner interface {
	// Arrived takes the bytes of one read, or the error that ends the socket;
	// it says whether it wants more. at is the kernel's stamp where kernel is
	// true, this process's clock otherwise, and never goes back; of several
	// segments read at once it is that of the last. more says that bytes which
	// had arrived by then are still to come. A read of which the scout saw the
	// beginning arrive is handed on in as many pieces.
	Arrived(b []byte, at int64, kernel, more bool, err error) (goOn bool)

	// Warm reads the memory that Arrived is about to need, and does nothing
	// with it.
	Warm()
}
