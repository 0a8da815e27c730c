package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/results/rundir"
)

// disk is a file in memory that is full after room bytes.
type disk struct {
	mu   sync.Mutex
	data bytes.Buffer
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(p), max(0, d.room-d.data.Len()))
	d.data.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (d *disk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.data.Truncate(int(size))
	return nil
}

// Seek is only used to go on at the end.
func (d *disk) Seek(at int64, _ int) (int64, error) { return at, nil }

func (d *disk) Sync() error  { return nil }
func (d *disk) Close() error { return nil }

func (d *disk) ReadAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.NewReader(d.data.Bytes()).ReadAt(p, at)
}

func (d *disk) Stat() (os.FileInfo, error) { return sized(d.len()), nil }

// sized is a file of so many bytes, of which nothing else is known.
type sized int64

func (s sized) Size() int64      { return int64(s) }
func (sized) Name() string       { return rundir.Journal }
func (sized) Mode() fs.FileMode  { return 0 }
func (sized) ModTime() time.Time { return time.Time{} }
func (sized) IsDir() bool        { return false }
func (sized) Sys() any           { return nil }

func (d *disk) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.data.Len()
}

// read decodes what is on the disk.
func (d *disk) read(t *testing.T) contents {
	t.Helper()
	path := filepath.Join(t.TempDir(), rundir.Journal)
	if err := os.WriteFile(path, d.data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return collect(t, journalFrames(path, 0, everything))
}

func TestConcurrentWriters(t *testing.T) {
	const writers, requests, chunks = 64, 20, 10
	dir := t.TempDir()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range requests {
				id := int64(w*requests + r)
				for c := range chunks {
					j.Chunk(Chunk{Request: id, T: int64(c), Earliest: int64(c), Tokens: 1})
				}
				j.Done(&Row{ID: id, Chunks: chunks})
				if r == requests/2 {
					j.Flush()
				}
			}
			j.AddSample(Sample{Source: "client", Name: "cpu", Value: float64(w)})
		})
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(where string) {
		got := collect(t, Frames(dir))
		next := make(map[int64]int64)
		for _, c := range got.Chunks[0] {
			if c.T != next[c.Request] {
				t.Fatalf("%s: chunk %d of request %d where %d is due", where, c.T, c.Request, next[c.Request])
			}
			next[c.Request]++
		}
		if n := len(got.Chunks[0]); n != writers*requests*chunks {
			t.Errorf("%s: %d chunks", where, n)
		}
		if n := len(got.Rows[0]); n != writers*requests {
			t.Errorf("%s: %d rows", where, n)
		}
		if n := len(got.Samples[0]); n != writers {
			t.Errorf("%s: %d samples", where, n)
		}
	}
	check("journal")
	if err := Finish(dir, Frames(dir), func(Frame) {}); err != nil {
		t.Fatal(err)
	}
	check("parquet")
}

func TestKillLosesUnderHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 1 << 20}
		j := newJournal(d, "")
		j.Chunk(Chunk{Request: 1})
		time.Sleep(2 * frameAge)
		synctest.Wait()
		if n := len(d.read(t).Chunks[0]); n != 1 {
			t.Errorf("%d chunks on disk after %v", n, 2*frameAge)
		}
		before := d.len()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if d.len() != before {
			t.Errorf("an idle journal grew by %d bytes", d.len()-before)
		}
		j.Close()
	})
}

func TestFramesAreBounded(t *testing.T) {
	d := &disk{room: 1 << 30}
	j := newJournal(d, "")
	for i := range 100_000 {
		j.Chunk(Chunk{Request: int64(i % 500), T: int64(i) * 7919, Earliest: int64(i) * 7919, Tokens: 1, Bytes: 4})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(d.read(t).Chunks[0]); n != 100_000 {
		t.Errorf("%d chunks", n)
	}
	s := scanner{in: bytes.NewReader(d.data.Bytes()), size: int64(d.data.Len()), follows: true}
	for {
		start := s.offset
		if _, err := s.nextFrame(); err != nil {
			break
		}
		if n := s.offset - start; n > frameSize+1024 {
			t.Errorf("a frame of %d bytes", n)
		}
	}
}

func TestFullDisk(t *testing.T) {
	d := &disk{room: 500}
	j := newJournal(d, "")
	j.Chunk(Chunk{Request: 1})
	j.Done(&Row{ID: 1})
	if err := j.Flush(); err != nil {
		t.Fatalf("first flush: %v", err)
	}
	j.AddMark(Mark{Name: "large", Data: make([]byte, 1000)})
	if err := j.Flush(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("flush on a full disk: %v", err)
	}
	d.room = 1 << 20 // room again, but a frame is cut short: nothing may follow it
	j.SetPoint(1)
	for i := range 100_000 {
		j.Chunk(Chunk{Request: int64(i)})
	}
	j.Done(&Row{})
	j.AddSample(Sample{})
	if err := j.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Err: %v", err)
	}
	if err := j.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v", err)
	}
	got := d.read(t)
	if len(got.Chunks[0]) != 1 || len(got.Rows[0]) != 1 || len(got.Chunks) != 1 {
		t.Errorf("the first frame did not survive: %v", got)
	}
	if m := got.Marks[0]; len(m) != 1 || m[0].Name != LostMark {
		t.Errorf("marks %v", m)
	}
}

// A journal from which records are missing says so itself, wherever in a
// frame the disk was full.
func TestLostRecordsLeaveAMark(t *testing.T) {
	first := &disk{room: 1 << 20}
	j := newJournal(first, "")
	j.Done(&Row{ID: 1})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for extra := range 300 {
		d := &disk{room: first.len() + extra}
		j := newJournal(d, "")
		j.SetPoint(3)
		j.Done(&Row{ID: 1})
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		j.AddMark(Mark{Point: 3, Name: "large", Data: make([]byte, 1000)})
		if err := j.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d bytes of room: %v", extra, err)
		}
		got := d.read(t)
		if m := got.Marks[3]; len(m) != 1 || m[0].Name != LostMark {
			t.Errorf("%d bytes of room: marks %v", extra, m)
		}
		if n := len(got.Rows[3]); n != 1 && extra > 128 {
			t.Errorf("%d bytes of room: %d rows", extra, n)
		}
	}
}

// stuck is a disk whose writes wait.
type stuck struct {
	disk
	go_ chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.go_
	return s.disk.Write(p)
}

func TestSlowDiskNeitherBlocksNorFillsMemory(t *testing.T) {
	s := &stuck{disk: disk{room: 1 << 30}, go_: make(chan struct{})}
	j := newJournal(s, "")
	j.SetPoint(1)
	taken := 0
	for p := int32(1); j.Err() == nil; p++ { // every new point closes a frame
		j.AddSample(Sample{Point: p})
		if taken++; taken > 4*queueLimit {
			t.Fatal("the queue has no end")
		}
	}
	close(s.go_)
	if err := j.Close(); err == nil {
		t.Error("Close says nothing of the lost records")
	}
	got := s.read(t)
	if n := len(got.Samples); n < queueLimit || n != taken-1 {
		t.Errorf("%d samples written, %d taken", n, taken-1)
	}
	if m := got.Marks[1]; len(m) != 1 || m[0].Name != LostMark {
		t.Errorf("marks %v", got.Marks)
	}
}

func TestAfterClose(t *testing.T) {
	dir := t.TempDir()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	j.Chunk(Chunk{})
	if err := j.Err(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Err after a chunk too late: %v", err)
	}
	if _, err := Create(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a journal: %v", err)
	}
	if err := Finish(dir, Frames(dir), func(Frame) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create beside Parquet files: %v", err)
	}
}

func TestChunkAllocatesNothing(t *testing.T) {
	j := newJournal(&disk{room: 1 << 30}, "")
	defer j.Close()
	i := int64(0)
	row := Row{ID: 1, Finish: "stop"}
	if n := testing.AllocsPerRun(1000, func() { i += 1000; j.Chunk(Chunk{Request: i, T: i}) }); n != 0 {
		t.Errorf("a chunk allocates %v times", n)
	}
	for range 200 {
		j.Done(&row) // the buffer grows
	}
	j.Flush()
	if n := testing.AllocsPerRun(100, func() { j.Done(&row) }); n > 1 {
		t.Errorf("a row allocates %v times", n)
	}
}

// A journal that something else deletes, moves or shortens ends with an error, by itself, and
// what is left of it says that records are missing.
func TestInterference(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be deleted there")
	}
	type harm func(dir string) error
	harms := map[string]harm{
		"directory deleted":   os.RemoveAll,
		"parent deleted":      func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"journal deleted":     func(dir string) error { return os.Remove(filepath.Join(dir, rundir.Journal)) },
		"directory moved":     func(dir string) error { return os.Rename(dir, dir+"-moved") },
		"a file in its place": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) },
	}
	const cuts = 30
	for i := range int64(cuts) {
		harms[fmt.Sprintf("cut to %d of %d", i, cuts)] = func(dir string) error {
			path := filepath.Join(dir, rundir.Journal)
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()*i/cuts)
		}
	}
	for name, harm := range harms {
		dir := filepath.Join(t.TempDir(), "runs", "run")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		j := newRows(t, dir)
		if err := harm(dir); err != nil {
			t.Fatal(err)
		}
		_ = j.Flush() // as it does every second
		select {
		case <-j.Failed():
		default:
			t.Errorf("%s: it goes on", name)
		}
		j.Done(&Row{ID: 9})
		if err := j.Close(); !errors.Is(err, ErrInterference) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix(name, "cut") {
			continue
		}
		rows, marks, lost := 0, 0, int64(0)
		for f, err := range Frames(dir) {
			if err != nil {
				t.Fatal(err)
			}
			rows += len(f.Rows)
			for i := range f.Marks {
				if f.Marks[i].Name == LostMark {
					marks++
				}
				if d, ok := DamageOf(&f.Marks[i]); ok && d.Exact && f.Point == d.FirstPoint {
					lost += d.Rows
				}
			}
		}
		if int64(rows)+lost != 9 || marks != 1 {
			t.Errorf("%s: %d rows, %d lost, %d marks", name, rows, lost, marks)
		}
	}
}

// newRows starts a journal and writes nine rows, three a frame.
func newRows(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(9) {
		j.Done(&Row{ID: id, Done: id + 1})
		if id%3 == 2 {
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return j
}
