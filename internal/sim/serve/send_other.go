//go:build !unix

package serve

// send takes nothing: the connection's goroutine writes.
func send(uintptr, []byte) (n int, failed bool) { return 0, false }
