package userfile

// release does nothing: no path names a pipe that waits.
func release(string) {}
