//go:build !unix

package mock

// send takes nothing: the connection's goroutine writes.
func send(uintptr, []byte) (n int, failed bool) { return 0, false }
