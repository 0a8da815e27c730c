//go:build unix

package spill

import "os"

// nameless makes a file in a directory that no one else can open and that is
// gone when it is closed, also by a kill.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
