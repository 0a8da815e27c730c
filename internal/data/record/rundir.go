package record

import (
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

// WriteFile writes a file of the run directory dir as a whole: whoever reads
// name finds the old content or all of the new. Name is a plain file name.
func WriteFile(dir, name string, data []byte) (err error) {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return fmt.Errorf("write file %q: not a plain name", name)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write file %s: %w", name, err)
		}
	}()
	temp, err := os.CreateTemp(dir, name+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone already when all went well
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), filepath.Join(dir, name))
}

// WriteNew writes a file that is not there yet; if it is the error is
// [fs.ErrExist]. Unlike [WriteFile] it never puts another file under the name.
func WriteNew(dir, name string, data []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write file %s: %w", name, err)
	}
	return nil
}

// syncDir brings the names in dir to the disk. Windows refuses to sync a
// directory; its file systems log the change of a name themselves.
func syncDir(dir string) error {
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
