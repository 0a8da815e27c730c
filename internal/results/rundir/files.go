package rundir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrNotEmpty says that a run directory has something in it already.
var ErrNotEmpty = errors.New("directory is not empty")

// NewDir creates the run directory path and its parents. An empty directory
// that is there already will do; any other gives an error: [ErrNotEmpty] if
// it holds something.
func NewDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("create run directory: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("create run directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("create run directory %s: %w", path, ErrNotEmpty)
	}
	return nil
}

// DefaultPath is where a run is kept whose directory is not given: below runs.
func DefaultPath(now time.Time, label string) string {
	return filepath.Join("runs", Name(now, label))
}

// Name gives the name of a run's directory, as 20261120-234800-llama-3.1-8b:
// the time in its own zone, then the label with everything but letters,
// digits and dots made a dash.
func Name(now time.Time, label string) string {
	const longest = 64
	var clean strings.Builder
	for _, r := range strings.ToLower(label) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.':
			clean.WriteRune(r)
		case !strings.HasSuffix(clean.String(), "-"):
			clean.WriteByte('-')
		}
	}
	name := strings.Trim(clean.String(), "-.")
	if len(name) > longest {
		name = strings.TrimRight(name[:longest], "-.")
	}
	stamp := now.Format("20060102-150405")
	if name == "" {
		return stamp
	}
	return stamp + "-" + name
}

// CreateTemp creates a file of a run directory under a name that no one can know
// beforehand, for [PlaceFile] to give it its own. O_EXCL follows no link and opens
// nothing that is there: a directory that others may write to, or that came out
// of an archive, cannot make it write elsewhere.
func CreateTemp(dir, name string) (*os.File, error) {
	if err := checkFileName(name); err != nil {
		return nil, err
	}
	var secret [8]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, fmt.Errorf("create file %s: %w", name, err)
	}
	path := filepath.Join(dir, name+"."+hex.EncodeToString(secret[:])+tempEnd)
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, 0o644)
}

// tempEnd is the end of the names of such files.
const tempEnd = ".tmp"

// checkFileName refuses what is not the name of a file in a directory.
func checkFileName(name string) error {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return fmt.Errorf("file %q: not a plain name", name)
	}
	return nil
}

// PlaceFile gives a complete file that [CreateTemp] made its name: whoever reads the name
// finds the old content or all of the new. The content must be on the disk
// already; that the name is needs [SyncDir].
func PlaceFile(temp, dir, name string) error {
	return os.Rename(temp, filepath.Join(dir, name))
}

// RemoveTemps removes what a program that was killed left half written. Only who
// has the directory ([LockDir]) may.
func RemoveTemps(dir string) {
	for _, name := range []string{Result, Journal, Marks, Requests, Chunks, Telemetry, Page} {
		left, _ := filepath.Glob(filepath.Join(escapePattern(dir), name+".*"+tempEnd))
		for _, path := range left {
			os.Remove(path)
		}
	}
}

// escapePattern keeps a directory's own name from being a pattern.
func escapePattern(dir string) string {
	if runtime.GOOS == "windows" { // which knows no escapes in patterns, nor these letters but [ in names
		return dir
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// WriteFile writes a file of the run directory dir as a whole: whoever reads
// name finds the old content or all of the new. Name is a plain file name.
func WriteFile(dir, name string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write file %s: %w", name, err)
		}
	}()
	temp, err := CreateTemp(dir, name)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = PlaceFile(temp.Name(), dir, name)
	}
	if err != nil {
		os.Remove(temp.Name())
		return err
	}
	return SyncDir(dir)
}

// WriteNew writes a file that is not there yet; if it is the error is
// [fs.ErrExist]. Unlike [WriteFile] it never puts another file under the name.
func WriteNew(dir, name string, data []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o644)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write file %s: %w", name, err)
	}
	return nil
}

// SyncDir brings the names in dir to the disk. Windows refuses to sync a
// directory; its file systems log the change of a name themselves.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = errors.Join(d.Sync(), d.Close())
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
