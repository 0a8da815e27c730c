package userfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What has an end is read whole, through a link too; what is longer than it may be is refused.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, n := range []int{0, 1, 511, 512, 513, 4096, 100_000} {
		want := bytes.Repeat([]byte("x"), n)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, 100_000); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if got, err := Read(link, 100_000); err != nil || len(got) != 100_000 {
		t.Errorf("through a link: %d, %v", len(got), err)
	}
	if _, err := Read(link, 99_999); !errors.Is(err, ErrLong) {
		t.Errorf("too long: %v", err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 64<<30); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]error{
		sparse:                       ErrLong,
		dir:                          syscall.EISDIR,
		filepath.Join(dir, "nobody"): fs.ErrNotExist,
	} {
		_, err := Read(path, 1<<20)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		var at *fs.PathError
		if !errors.As(err, &at) || at.Path != path {
			t.Errorf("%s: %#v names no path", path, err)
		}
	}
	if _, err := Read(sparse, 4<<20); !strings.Contains(err.Error(), "4 MiB") {
		t.Errorf("the bound is not said: %v", err)
	}
	if got, err := Read(os.DevNull, 1); err != nil || len(got) != 0 {
		t.Errorf("the null device: %v, %v", got, err)
	}
}
