//go:build unix

package plain

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fifo makes a pipe that something writes a text to, once.
func fifo(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	go func() {
		if w, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_, _ = w.WriteString(text)
			w.Close()
		}
	}()
	return path
}

// What a pipe gives can be read as often as a file, packed or not, and not without end.
func TestPipe(t *testing.T) {
	const text = "{\"prompt\": \"a\"}\n"
	for name, data := range map[string]string{
		"as it is":        text,
		"byte order mark": "\ufeff" + text,
		"gzip":            string(gzipped([]byte(text))),
	} {
		path := fifo(t, data)
		head, err := ReadHead(path, 3)
		if err != nil || string(head) != text[:3] {
			t.Errorf("%s: its head is %q, %v", name, head, err)
		}
		for range 2 {
			f, err := Open(path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := io.ReadAll(f.Text()); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			f.Close()
			s, err := OpenStream(path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := io.ReadAll(s); err != nil || string(got) != text {
				t.Errorf("%s, streamed: %q, %v", name, got, err)
			}
			s.Close()
		}
	}
	defer func(was int64) { mostPiped = was }(mostPiped)
	mostPiped = 100
	if _, err := Open(fifo(t, strings.Repeat("x", 101))); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("101 bytes: %v", err)
	}
	if f, err := Open(fifo(t, strings.Repeat("x", 100))); err != nil {
		t.Errorf("100 bytes: %v", err)
	} else {
		f.Close()
	}
}
