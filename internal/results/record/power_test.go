package record

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// cached is a disk behind a cache that is lost with the power: what was written
// since the last sync may be there, in part, or not.
type cached struct {
	disk
	mu     sync.Mutex
	synced int           // bytes that are safe
	syncs  int           // how often
	slow   chan struct{} // a sync waits for it, nil for none
	fails  error
}

func (c *cached) Sync() error {
	n := c.len()
	if c.slow != nil {
		<-c.slow
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return c.fails
	}
	c.synced = max(c.synced, n)
	c.syncs++
	return nil
}

// safe gives how many bytes are, and after how many syncs.
func (c *cached) safe() (bytes, syncs int) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced, c.syncs
}

// What was written is on the disk soon, and an idle journal leaves the disk alone.
func TestSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &cached{disk: disk{room: 1 << 20}}
		j := newJournal(d, "")
		for i := range 10 {
			j.Done(&Row{ID: int64(i)})
			time.Sleep(frameAge + 2*syncAge)
			if n, _ := d.safe(); n == 0 || n != d.len() {
				t.Errorf("%d of %d bytes are safe", n, d.len())
			}
		}
		time.Sleep(time.Minute) // while nothing comes
		if _, n := d.safe(); n != 10 {
			t.Errorf("%d syncs", n)
		}
		for range 1000 { // a busy one no oftener than that
			j.Done(&Row{ID: 11})
			j.Flush()
			time.Sleep(10 * time.Millisecond)
		}
		if _, n := d.safe(); n < 45 || n > 51 {
			t.Errorf("%d syncs in 10 s", n-10)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A journal that is copied elsewhere leaves the disk alone until it is closed.
func TestSyncsAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &cached{disk: disk{room: 1 << 20}}
		j := newJournal(d, "")
		j.SyncAtEnd()
		for i := range 10 {
			j.Done(&Row{ID: int64(i)})
			time.Sleep(frameAge + 2*syncAge)
		}
		if _, n := d.safe(); n != 0 || d.len() == 0 {
			t.Errorf("%d syncs of %d bytes", n, d.len())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if n, syncs := d.safe(); syncs != 1 || n != d.len() {
			t.Errorf("%d of %d bytes are safe after %d syncs", n, d.len(), syncs)
		}
	})
}

// A disk that takes for ever to sync delays neither records nor their writing.
func TestSlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &cached{disk: disk{room: 1 << 30}, slow: make(chan struct{})}
		j := newJournal(d, "")
		before := time.Now()
		for i := range 100_000 {
			j.Chunk(Chunk{Request: int64(i)})
			j.Done(&Row{ID: int64(i)})
		}
		if took := time.Since(before); took != 0 { // no time passes in here unless somebody waits
			t.Errorf("the load waited %v", took)
		}
		time.Sleep(2 * frameAge)
		synctest.Wait()
		if n := len(d.read(t).Rows[0]); n != 100_000 {
			t.Errorf("%d rows are written", n)
		}
		if n, _ := d.safe(); n != 0 {
			t.Error("it was not slow")
		}
		close(d.slow)
		if err := j.Close(); err != nil || d.synced != d.len() {
			t.Errorf("%v, %d of %d bytes are safe", err, d.synced, d.len())
		}
	})
}

// What a disk refuses to sync is not safe, so the run is not worth going on with.
func TestFailedSync(t *testing.T) {
	d := &cached{disk: disk{room: 1 << 20}, fails: syscall.EIO}
	j := newJournal(d, "")
	j.Done(&Row{ID: 1})
	_ = j.Flush()
	<-j.Failed()
	if err := j.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
	if m := d.read(t).Marks[0]; len(m) != 1 || m[0].Name != LostMark {
		t.Errorf("marks %v", m)
	}
}

// afterPower gives what a machine that lost its power may leave of a journal of
// which so many bytes are safe.
func afterPower(data []byte, synced int, r *rand.Rand) (what string, left []byte) {
	size := synced + r.IntN(len(data)-synced+1)
	left = bytes.Clone(data[:size])
	const page = 4096
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("cut at %d", size), left
	case 1: // room was made for it that was never written
		n := r.IntN(3 * page)
		return fmt.Sprintf("cut at %d and %d zeros", size, n), append(left, make([]byte, n)...)
	case 2: // the last pages
		from := synced + r.IntN(size-synced+1)
		clear(left[from:])
		return fmt.Sprintf("zeros from %d to %d", from, size), left
	default: // some pages, in any order
		for at := (synced + page - 1) / page * page; at < size; at += page {
			if r.IntN(2) == 0 {
				clear(left[at:min(at+page, size)])
			}
		}
		return fmt.Sprintf("some pages behind %d, up to %d", synced, size), left
	}
}

// Whatever a machine that loses its power makes of what was not synced, what was is
// read, in order, and no record that was never written.
func TestPowerFails(t *testing.T) {
	var w frameWriter
	var data []byte
	var ends []int // of frames
	r := rand.New(rand.NewPCG(1, 2))
	b := newBatch()
	for id := int64(0); id < 120; id++ {
		for c := range int64(5 + r.IntN(60)) {
			b.addChunk(Chunk{Request: id, T: id*1000 + c, Earliest: id*1000 + c, Tokens: 1, Bytes: 12})
		}
		b.addRow(&Row{ID: id, Done: id*1000 + 90, Finish: "length"})
		if id%4 == 3 {
			data = w.append(data, b)
			ends = append(ends, len(data))
			b.reset(part{})
		}
	}
	whole, _ := scan(t, data)
	var written [][]byte
	for i := range whole {
		written = append(written, encode(whole[i]))
	}
	rounds := 500
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		safe := r.IntN(len(ends)) // so many frames are
		what, left := afterPower(data, ends[safe], r)
		frames, damage := scan(t, left)
		if len(frames) <= safe {
			t.Fatalf("%s: %d frames, and %d were safe", what, len(frames), safe+1)
		}
		k := 0
		for i := range frames {
			for frame := encode(frames[i]); k < len(whole) && !bytes.Equal(written[k], frame); k++ {
			}
			if k == len(whole) {
				t.Fatalf("%s: frame %d was never written", what, i)
			}
			k++
		}
		missing := held(whole).minus(held(frames))
		for _, d := range damage {
			if d.Exact && tallyOf(&d).minus(missing).positive() {
				t.Errorf("%s: %+v is lost, and no more than %+v can be", what, d, missing)
			}
		}
		if len(damage) == 0 && k != len(frames) {
			t.Errorf("%s: frames are missing between others, and nothing says so", what)
		}
	}
}

func tallyOf(d *Damage) tally { return tally{d.Chunks, d.Rows, d.Samples, d.Marks} }

func (t tally) positive() bool { return max(t.chunks, t.rows, t.samples, t.marks) > 0 }

// A journal that is cut at any byte of its last frames, with or without zeros where
// the rest was to be, is that of a run that ended there: nothing is damaged.
func TestPowerFailsAtAnyByte(t *testing.T) {
	data, ends := smallJournal(t)
	for size := range len(data) + 1 {
		sound := 0
		for _, end := range ends {
			if end <= size {
				sound++
			}
		}
		for _, zeros := range []int{0, 1, 100, 1024, 5000} {
			left := append(bytes.Clone(data[:size]), make([]byte, zeros)...)
			frames, damage := scan(t, left)
			if len(frames) < sound || len(frames) > sound && zeros == 0 {
				t.Fatalf("cut at %d, %d zeros: %d frames of %d", size, zeros, len(frames), sound)
			}
			if len(damage) > 0 && (zeros == 0 || zeros >= 1024) {
				t.Fatalf("cut at %d, %d zeros: %+v", size, zeros, damage)
			}
		}
	}
}
