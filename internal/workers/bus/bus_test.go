package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"pitot/internal/workers/bus"
	"pitot/internal/workers/natsserver"
)

// Whoever drains has answered what it was asked by then: no answer that was begun is lost.
func TestDrain(t *testing.T) {
	s, err := natsserver.Serve(bus.Access{URL: "127.0.0.1:0"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	asks := dial(t, s)
	for range 50 {
		answers, last := dial(t, s), make(chan struct{})
		if err := answers.Answer("last", func([]byte) []byte { close(last); return []byte("yes") }); err != nil {
			t.Fatal(err)
		}
		drained := make(chan struct{})
		go func() {
			<-last
			answers.Drain(time.Second)
			close(drained)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if a, err := asks.Ask(ctx, "last", nil); err != nil || string(a) != "yes" {
			t.Fatalf("%q, %v", a, err)
		}
		cancel()
		<-drained
	}
}

// A server starts at once, lets in who has its token, and carries questions, words and a
// stream: what is put twice under one id is read once, in order.
func TestBus(t *testing.T) {
	begin, dir := time.Now(), t.TempDir()
	s, err := natsserver.Serve(bus.Access{URL: "127.0.0.1:0"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Logf("ready after %v", time.Since(begin))
	if _, err := bus.DialNATS(bus.Access{URL: s.URL(), Token: "wrong"}); err == nil || !strings.Contains(err.Error(), "uthorization") {
		t.Errorf("without the token: %v", err)
	}
	a, b := dial(t, s), dial(t, s)
	if _, err := b.Ask(t.Context(), "sum", nil); !errors.Is(err, bus.ErrNobody) {
		t.Errorf("before anybody answers: %v", err)
	}
	if err := a.Answer("sum", func(q []byte) []byte { return append(q, '!') }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if got, err := b.Ask(ctx, "sum", []byte("1+1")); err != nil || string(got) != "1+1!" {
		t.Errorf("answered %q, %v", got, err)
	}
	heard := make(chan string, 1)
	if err := a.Hear("word", func(w []byte) { heard <- string(w) }); err != nil {
		t.Fatal(err)
	}
	if err := b.Tell("word", []byte("go")); err != nil {
		t.Fatal(err)
	}
	if w := <-heard; w != "go" {
		t.Errorf("heard %q", w)
	}
	if err := a.Keep(ctx, "run", "run.*"); err != nil {
		t.Fatal(err)
	}
	const n = 40
	var mu sync.Mutex
	var got []string
	all := make(chan struct{})
	stop, err := a.Read(ctx, "run", func(subject, id string, m []byte) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%s %s %d", subject, id, len(m)))
		if len(got) == n {
			close(all)
		}
	}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	frame := bytes.Repeat([]byte("x"), 256<<10)
	for i := range n {
		for range 2 {
			if err := b.Put(ctx, "run.1", fmt.Sprint(i), frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case <-all:
	case <-ctx.Done():
		t.Fatal("not all came")
	}
	kept := func() (n int64) { // on the disk
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if info, e := d.Info(); err == nil && e == nil && !d.IsDir() {
				n += info.Size()
			}
			return nil
		})
		return n
	}
	for kept() > n/2*int64(len(frame)) { // what was read is deleted
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are kept of %d", kept(), n*len(frame))
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	for i, g := range got {
		if g != fmt.Sprintf("run.1 %d %d", i, len(frame)) {
			t.Errorf("message %d is %s", i, g)
		}
	}
	if len(got) != n {
		t.Errorf("%d messages", len(got))
	}
}

func dial(t *testing.T, s bus.Server) *bus.NATS {
	t.Helper()
	c, err := bus.DialNATS(bus.Access{URL: s.URL(), Token: s.Token()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A server that does not let what was taken be deleted is told of, once and by name.
func TestRefusedPurge(t *testing.T) {
	t.Parallel()
	n, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		Users: []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.PURGE.>"}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	defer n.Shutdown()
	if !n.ReadyForConnections(5 * time.Second) {
		t.Fatal("it is not ready")
	}
	c, err := bus.DialNATS(bus.Access{URL: strings.Replace(n.ClientURL(), "nats://", "nats://u:p@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Keep(ctx, "run", "run.*"); err != nil {
		t.Fatal(err)
	}
	kept := make(chan error, 2)
	stop, err := c.Read(ctx, "run", func(string, string, []byte) {}, func(err error) { kept <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := c.Put(ctx, "run.1", "0", []byte("x")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-kept:
		if !strings.Contains(err.Error(), "PURGE") {
			t.Errorf("it says %v", err)
		}
	case <-ctx.Done():
		t.Fatal("nothing is said of it")
	}
}

// BenchmarkStream is what one worker's journal takes, piece by piece as a worker sends it, each
// acknowledged before the next.
func BenchmarkStream(b *testing.B) {
	s, err := natsserver.Serve(bus.Access{URL: "127.0.0.1:0"}, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c, err := bus.DialNATS(bus.Access{URL: s.URL(), Token: s.Token()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	if err := c.Keep(ctx, "run", "run.*"); err != nil {
		b.Fatal(err)
	}
	piece := bytes.Repeat([]byte("x"), 256<<10)
	b.SetBytes(int64(len(piece)))
	i := 0
	for b.Loop() {
		i++
		if err := c.Put(ctx, "run.0", fmt.Sprint(i), piece); err != nil {
			b.Fatal(err)
		}
	}
}
