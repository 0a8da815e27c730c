package workers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
)

// The coordinator's disk stalls for longer than any lease, while records come home: over the bus,
// or from files beside it. Workers that report are heard all the while, and nobody is lost; what
// waited is taken once when the disk goes on.
func TestStalledDisk(t *testing.T) {
	for _, beside := range []bool{false, true} {
		t.Run(fmt.Sprint("beside ", beside), func(t *testing.T) {
			dir := t.TempDir()
			j, err := record.Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			j.Chunk(record.Chunk{Request: 1, Tokens: 1})
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			frames, err := os.ReadFile(filepath.Join(dir, rundir.Journal))
			if err != nil {
				t.Fatal(err)
			}
			size := int64(len(frames))
			synctest.Test(t, func(t *testing.T) {
				stalled, taken := make(chan struct{}), 0
				c := &Coordinator{
					beside: beside, late: lostAfter, news: make(chan struct{}, 1), told: make(chan struct{}, 1),
					word: word{Load: 1}, with: session.Sums{Home: func(frames []byte) error {
						<-stalled
						taken += len(frames)
						return nil
					}},
				}
				for rank := range 2 {
					c.members = append(c.members, &member{rank: rank, hello: hello{Nonce: fmt.Sprint(rank)}, last: time.Now()})
				}
				c.members[0].hello.Dir = dir
				if beside {
					defer func() { c.members[0].own.file.Close() }()
					defer c.bringHome(c.members)()
				} else {
					go c.takeFrames("journal.0", "0-0", frames)
				}
				beat := func(number int64) (s sum) {
					for rank := range c.members {
						c.answerReport(encode(report{Rank: rank, Nonce: fmt.Sprint(rank), Number: number, Load: 1, Written: size * int64(1-rank)}))
					}
					synctest.Wait() // not for who waits for the disk
					c.mu.Lock()
					defer c.mu.Unlock()
					return c.sumMembers(c.members)
				}
				for second := range int64(3 * homeTime / time.Second) {
					s := beat(second + 1)
					if !s.taking || s.missing == nil || c.members[0].home != 0 {
						t.Fatalf("after %d s of a disk that stalls: taking %v, missing %v, home %d", second, s.taking, s.missing, c.members[0].home)
					}
					for _, m := range c.members {
						if m.lost != nil || time.Since(m.last) > 0 {
							t.Fatalf("after %d s worker %d is lost (%+v), or was not heard", second, m.rank, m.lost)
						}
					}
					time.Sleep(time.Second)
				}
				close(stalled)
				synctest.Wait()
				if s := beat(1000); s.taking || c.members[0].home != size || taken != int(size) {
					t.Errorf("when the disk goes on %d and %d of %d bytes are here", c.members[0].home, taken, size)
				}
			})
		})
	}
}

// A file beside the coordinator that now and then has less than was told of is given up only
// where it goes on having less for as long as a load waits for its records.
func TestShortNowAndThen(t *testing.T) {
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	synctest.Test(t, func(t *testing.T) {
		c := &Coordinator{with: session.Sums{Home: func([]byte) error { return nil }}}
		m := &member{hello: hello{Dir: dir}}
		defer func() { m.own.file.Close() }()
		for n := range int64(4) {
			told := j.WrittenBytes() + 1000 // what a full disk then takes back
			if err := c.fetchJournal(m, told); err != nil || m.own.torn {
				t.Fatalf("short for the %d. time, long after the last: torn %v, %v", n+1, m.own.torn, err)
			}
			j.Chunk(record.Chunk{Request: n, Tokens: 1})
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := c.fetchJournal(m, j.WrittenBytes()); err != nil || m.home != j.WrittenBytes() {
				t.Fatalf("%d of %d bytes are here: %v", m.home, j.WrittenBytes(), err)
			}
			time.Sleep(2 * homeTime)
		}
		for range 2 {
			err = c.fetchJournal(m, j.WrittenBytes()+1000)
			time.Sleep(homeTime)
		}
		if err == nil || !m.own.torn {
			t.Errorf("short all the time: torn %v, %v", m.own.torn, err)
		}
	})
}

// A piece that the bus may have, without that it said so, is sent again as it was: it is known by
// its place alone, and a longer one would be taken for it.
func TestUnsent(t *testing.T) {
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var ends []int64
	for i := range int64(3) {
		j.Chunk(record.Chunk{Request: i, Tokens: 1})
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, j.WrittenBytes())
	}
	file, err := os.Open(filepath.Join(dir, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	u := unsent{file: file}
	for _, step := range []struct {
		written, piece int64
		taken          bool
	}{{ends[0], ends[0], false}, {ends[1], ends[0], false}, {ends[2], ends[0], true}, {ends[2], ends[2] - ends[0], true}, {ends[2], 0, false}} {
		got, err := u.read(step.written)
		if err != nil || int64(len(got)) != step.piece {
			t.Errorf("with %d bytes written it sends %d, not %d (%v)", step.written, len(got), step.piece, err)
		}
		if step.taken {
			u.noteTaken()
		}
	}
}

// A message that is no next piece of a worker's journal is dropped and ends no run: one without
// an id, of a worker that does not exist, of bytes that lie ahead or were taken, of bytes that
// are no frames. The worker's own piece is taken after all of them.
func TestStrangeMessages(t *testing.T) {
	frames := journalOfChunks(t, 1)
	taken := 0
	c := &Coordinator{news: make(chan struct{}, 1), told: make(chan struct{}, 1), with: session.Sums{Home: func(frames []byte) error {
		taken += len(frames)
		return nil
	}}}
	c.members = append(c.members, &member{rank: 0})
	damaged := append([]byte(nil), frames...)
	damaged[len(damaged)-1] ^= 1
	for _, m := range []struct {
		subject, id string
		frames      []byte
	}{
		{"journal.0", "", frames}, {"journal.0", "0", frames}, {"journal.0", "0-x", frames}, {"journal.0", "0-99999999999999999999", frames},
		{"journal.7", "7-0", frames}, {"journal.-1", "x-0", frames}, {"journal", "0-0", frames}, {"", "0-0", frames},
		{"journal.0", "0-1", frames}, {"journal.0", "0--1", frames}, {"journal.0", "0-0", damaged}, {"journal.0", "0-0", frames[:len(frames)-1]},
		{"journal.0", "0-0", []byte("no frames")},
	} {
		c.takeFrames(m.subject, m.id, m.frames)
		if taken != 0 || c.broken != nil {
			t.Fatalf("%q %q of %d bytes: %d bytes taken, %v", m.subject, m.id, len(m.frames), taken, c.broken)
		}
	}
	c.takeFrames("journal.0", "0-0", frames)
	c.takeFrames("journal.0", "0-0", frames) // again
	if taken != len(frames) || c.broken != nil {
		t.Errorf("%d of %d bytes taken, %v", taken, len(frames), c.broken)
	}
}

// journalOfChunks returns the bytes of a journal of n chunks.
func journalOfChunks(t testing.TB, n int) []byte {
	t.Helper()
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		j.Chunk(record.Chunk{Request: int64(i), T: int64(i), Earliest: int64(i), Tokens: 1, Bytes: 4})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	frames, err := os.ReadFile(filepath.Join(dir, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	return frames
}
