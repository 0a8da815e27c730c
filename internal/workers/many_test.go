package workers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pitot/internal/session"
	"pitot/internal/workers/bus"
)

var many = flag.Int("many", 100, "how many workers TestManyWorkers has")

// A coordinator leads many workers, each with a connection of its own to a real server: all
// join, are told the load, decide on its window together, and their journals come home. What
// they send takes no time.
//
//	go test ./internal/workers -run ManyWorkers -v -many 1000
func TestManyWorkers(t *testing.T) {
	const pieces = 4
	piece := journalOfChunks(t, 500)
	c, err := listening(version, *many)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.lead = 0
	begun := time.Now()
	var all sync.WaitGroup
	failed := make(chan error, *many)
	for range *many {
		all.Go(func() {
			if err := madeUp(c.URL(), c.Token(), pieces, piece); err != nil {
				failed <- err
			}
		})
	}
	if err := c.WaitReady(bounded(t)); err != nil {
		t.Fatal(err)
	}
	joined := time.Since(begun)
	var bytes atomic.Int64
	got, err := c.Carry(bounded(t), &session.Task{Workers: *many}, session.Sums{
		Begun: func(int64) {}, Home: func(b []byte) error { bytes.Add(int64(len(b))); return nil },
		Extend: func(_, t1 int64) (int64, bool) { return t1, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	if len(got.Workers) != *many || bytes.Load() != int64(*many*pieces*len(piece)) || got.T1 != 2e9 {
		t.Errorf("%d workers, %d bytes, window to %d", len(got.Workers), bytes.Load(), got.T1)
	}
	_ = c.announceEnd()
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	peak := "not known"
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			peak = strings.TrimSpace(v)
		}
	}
	t.Logf("%d workers joined after %v and had carried a load out after %v; peak memory with theirs %s", *many, joined.Round(time.Millisecond), took.Round(time.Millisecond), peak)
}

// madeUp is a worker that sends nothing.
func madeUp(url, token string, pieces int, frames []byte) error {
	conn, err := bus.DialNATS(bus.Access{URL: url, Token: token})
	if err != nil {
		return err
	}
	w := &Worker{conn: conn, URL: url, Token: token, Say: func(string) {}}
	w.Runner.Version = version
	ctx := context.Background()
	if err := w.join(ctx); err != nil {
		return err
	}
	defer w.conn.Close()
	var load atomic.Int64
	ended, begin := make(chan struct{}), make(chan struct{}, 1)
	if err := conn.Hear(w.id.endSubject(), func([]byte) {
		select {
		case <-ended:
		default:
			close(ended)
		}
	}); err != nil {
		return err
	}
	final := make(chan struct{}, 1)
	if err := conn.Hear(w.id.wordSubject(), func(b []byte) {
		if said, err := decode[word](b); err == nil && said.Final {
			select {
			case final <- struct{}{}:
			default:
			}
		}
	}); err != nil {
		return err
	}
	if err := conn.Answer(w.id.prepareSubject(w.rank), func(b []byte) []byte {
		s, err := decode[sharing](b)
		load.Store(s.Load)
		if err != nil {
			return encode(prepared{Error: err.Error()})
		}
		return encode(prepared{})
	}); err != nil {
		return err
	}
	if err := conn.Answer(w.id.beginSubject(w.rank), func([]byte) []byte { begin <- struct{}{}; return encode(prepared{}) }); err != nil {
		return err
	}
	number := int64(0)
	tell := func(r report) (said word, err error) {
		number++
		r.Rank, r.Nonce, r.Number, r.Load = w.rank, w.call, number, load.Load()
		answer, err := conn.Ask(ctx, w.id.reportSubject(), encode(r))
		if err == nil {
			said, err = decode[word](answer)
		}
		return said, err
	}
	if _, err := tell(report{}); err != nil {
		return err
	}
	<-begin
	for i := range pieces {
		if err := w.kept.Put(ctx, w.id.journalSubject(w.rank), fmt.Sprintf("%d-%d", w.rank, i*len(frames)), frames); err != nil {
			return err
		}
	}
	bytes := int64(pieces * len(frames))
	for tick := time.NewTicker(reportEvery); ; {
		said, err := tell(report{Asks: &window{0, 2e9}, Bytes: bytes})
		if err != nil {
			return err
		}
		if said.Final {
			tick.Stop()
			break
		}
		select {
		case <-final:
		case <-tick.C:
		}
	}
	if _, err := tell(report{Ended: &session.Ended{T1: 2e9, Ended: 2e9 + 1}, Bytes: bytes}); err != nil {
		return err
	}
	<-ended
	return nil
}
