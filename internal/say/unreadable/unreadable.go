// Package unreadable says of a file that a user named why it cannot be read.
package unreadable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"pitot/internal/say"
	"pitot/internal/userfile"
)

// FileError says that a file could not be read: what named it (as "config" or
// "--workload"), its path, and why. The hint names the file of that directory
// that was most likely meant, or else is the one given: what such a file is.
func FileError(what, path string, err error, hint string) error {
	why := err
	var at *fs.PathError
	if errors.As(err, &at) {
		why = at.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		hint = "give yourself the right to read it"
	case errors.Is(err, fs.ErrNotExist):
		if near := nearestFile(path); near != "" {
			hint = "did you mean " + near + "?"
		}
	case errors.Is(err, userfile.ErrSilent):
		hint = "start what writes to it first"
	}
	return say.Errorf("read %s %s: %v", what, path, why).WithHint(hint)
}

// nearestFile gives the path of the file in the directory of a missing one whose name is
// nearest to its, "" if there is none.
func nearestFile(path string) string {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Join(dir, "."))
	if err != nil {
		return ""
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() {
			files = append(files, e.Name())
		}
	}
	if near := say.NearestName(name, files); near != "" {
		return dir + near
	}
	return ""
}
