package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"pitot/internal/userfile"
)

// NATS is a connection to a NATS server. It reconnects by itself. It implements [Streams].
type NATS struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	inside bool                   // the server is in this process, and ends with it
	denied *atomic.Pointer[error] // why the server did not permit the last purge, nil where it did

	answers  sync.WaitGroup // that were begun
	mu       sync.Mutex     // guards what follows
	draining bool           // none is begun any more
}

var _ Streams = (*NATS)(nil)

// DialInProcess connects to a NATS server in this process, without a socket.
func DialInProcess(server nats.InProcessConnProvider, token string) (*NATS, error) {
	c, err := connect("nats://127.0.0.1", nats.InProcessServer(server), nats.Token(token))
	if err == nil {
		c.inside = true
	}
	return c, err
}

// DialNATS connects to a NATS server. The error of a server that does not accept this client is
// [ErrRefused].
func DialNATS(a Access) (*NATS, error) {
	if err := a.CheckFiles(); err != nil {
		return nil, fmt.Errorf("%w: connect to NATS at %s: %w", ErrRefused, a.URL, err)
	}
	var opts []nats.Option
	if a.Token != "" {
		opts = append(opts, nats.Token(a.Token))
	}
	if a.Nkey != "" {
		nkey, err := nats.NkeyOptionFromSeed(a.Nkey)
		if err != nil {
			return nil, fmt.Errorf("%w: read nkey of %s: %w", ErrRefused, a.Nkey, err)
		}
		opts = append(opts, nkey)
	}
	if a.CA != "" {
		opts = append(opts, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		opts = append(opts, nats.ClientCert(a.Cert, cmp.Or(a.Key, a.Cert)))
	}
	return connect(a.URL, opts...)
}

// CheckFiles returns why a file of the credentials is refused. The NATS library opens these files
// itself.
func (a Access) CheckFiles() error {
	for _, path := range []string{a.Nkey, a.CA, a.Cert, a.Key} {
		if path == "" {
			continue
		}
		if err := userfile.CheckRegular(path, userfile.MostPEM); err != nil {
			return err
		}
	}
	return nil
}

// connect does it.
func connect(url string, opts ...nats.Option) (*NATS, error) {
	denied := new(atomic.Pointer[error])
	refused := func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(strings.ToUpper(err.Error()), purgeSubject) {
			denied.Store(&err)
		}
	}
	nc, err := nats.Connect(url, append(opts, nats.Name("pitot"), nats.MaxReconnects(-1), nats.ErrorHandler(refused),
		nats.ReconnectWait(200*time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond), nats.Timeout(5*time.Second))...)
	if err != nil {
		var file *fs.PathError
		var untrusted *tls.CertificateVerificationError
		if errors.Is(err, nats.ErrAuthorization) || errors.As(err, &file) || errors.As(err, &untrusted) || errors.Is(err, nats.ErrSecureConnRequired) || errors.Is(err, nats.ErrSecureConnWanted) {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
	}
	return &NATS{nc: nc, js: js, denied: denied}, nil
}

// Close ends the connection.
func (c *NATS) Close() { c.nc.Close() }

// Drain answers nothing more, and ends the connection when the answers that were begun are with
// the server, which is waited for so long at most.
func (c *NATS) Drain(within time.Duration) {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	c.answers.Wait()
	_ = c.nc.FlushTimeout(within) // where there is no connection they are lost, and asked for again
	c.nc.Close()
}

// Ask asks whoever answers on a subject.
func (c *NATS) Ask(ctx context.Context, subject string, question []byte) ([]byte, error) {
	m, err := c.nc.RequestWithContext(ctx, subject, question)
	if errors.Is(err, nats.ErrNoResponders) {
		err = fmt.Errorf("%w: %w", ErrNobody, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subject, err)
	}
	return m.Data, nil
}

// Answer answers what is asked on a subject, each question in a goroutine of its own; an answer
// that is nil is none. When it returns the server knows: nobody is told that there is no one.
func (c *NATS) Answer(subject string, answer func(question []byte) []byte) error {
	_, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.draining {
			return
		}
		c.answers.Go(func() {
			if a := answer(m.Data); a != nil {
				_ = m.Respond(a) // whoever does not hear it asks again
			}
		})
	})
	if err == nil {
		err = c.nc.Flush()
	}
	if err != nil {
		return fmt.Errorf("answer on %s: %w", subject, err)
	}
	return nil
}

// Tell tells everyone who hears.
func (c *NATS) Tell(subject string, word []byte) error {
	if err := c.nc.Publish(subject, word); err != nil {
		return fmt.Errorf("send %s: %w", subject, err)
	}
	return nil
}

// Hear is called with what is told on a subject, in order.
func (c *NATS) Hear(subject string, hear func(word []byte)) error {
	_, err := c.nc.Subscribe(subject, func(m *nats.Msg) { hear(m.Data) })
	if err == nil {
		err = c.nc.Flush()
	}
	if err != nil {
		return fmt.Errorf("hear %s: %w", subject, err)
	}
	return nil
}

// Forget deletes a stream and what it keeps.
func (c *NATS) Forget(ctx context.Context, stream string) error {
	if err := c.js.DeleteStream(ctx, stream); err != nil {
		return fmt.Errorf("delete stream %s: %w", stream, err)
	}
	return nil
}

// Keep makes a stream that keeps what is put on subjects: in files, or in the memory of a server in
// this process.
func (c *NATS) Keep(ctx context.Context, stream string, subjects ...string) error {
	of := jetstream.StreamConfig{Name: stream, Subjects: subjects, Storage: jetstream.FileStorage, Duplicates: 5 * time.Minute}
	if c.inside { // files would be of no use to anybody either when this process has ended
		of.Storage, of.MaxBytes, of.Discard = jetstream.MemoryStorage, MostInMemory, jetstream.DiscardNew
	}
	_, err := c.js.CreateStream(ctx, of)
	if err != nil {
		return fmt.Errorf("create stream %s: %w", stream, err)
	}
	return nil
}

// MostInMemory is the maximum number of unread bytes that a stream in this process's memory keeps.
// It refuses more, and the sender tries again.
const MostInMemory = 256 << 20

// Put puts a message into the stream that keeps its subject, and returns when it is kept. One
// of an id that was put within the last minutes is not kept again.
func (c *NATS) Put(ctx context.Context, subject, id string, message []byte) error {
	if _, err := c.js.Publish(ctx, subject, message, jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("put into stream: %w", err)
	}
	return nil
}

// Read hands over what a stream keeps, from its beginning and in order, until stop is called.
// What was handed over is deleted from the stream soon after: whoever takes it has it then, and
// whoever put it there still has it. kept is told, once, why that is refused.
func (c *NATS) Read(ctx context.Context, stream string, take func(subject, id string, message []byte), kept func(error)) (stop func(), err error) {
	of, err := c.js.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	consumer, err := c.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	var taken atomic.Uint64
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		take(m.Subject(), m.Headers().Get(jetstream.MsgIDHeader), m.Data())
		if meta, err := m.Metadata(); err == nil {
			taken.Store(meta.Sequence.Stream)
		}
	}, jetstream.PullMaxBytes(4<<20))
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	var own sync.WaitGroup
	purging, end := context.WithCancel(context.WithoutCancel(ctx))
	own.Go(func() {
		tick := time.NewTicker(purgeEvery)
		defer tick.Stop()
		failed, reported := 0, false // how often one after the other, and whether kept was told of it
		for purged := uint64(0); ; {
			upTo := taken.Load()
			select {
			case <-purging.Done():
				return
			case <-tick.C:
			}
			if upTo <= purged || !c.nc.IsConnected() {
				continue
			}
			within, cancel := context.WithTimeout(purging, purgeTime)
			c.denied.Store(nil)
			err := of.Purge(within, jetstream.WithPurgeSequence(upTo+1))
			cancel()
			if err == nil {
				purged, failed = upTo, 0
				continue
			}
			failed++ // and again with the next
			answer := (jetstream.JetStreamError)(nil)
			sure := errors.As(err, &answer)
			if denied := c.denied.Load(); denied != nil {
				err, sure = *denied, true
			}
			if (sure || failed >= purgeTries) && !reported && purging.Err() == nil {
				reported = true
				kept(err)
			}
		}
	})
	return func() {
		reading.Stop()
		<-reading.Closed()
		end()
		own.Wait()
	}, nil
}

// purgeSubject begins the subjects on which a server is asked to purge.
const purgeSubject = "$JS.API.STREAM.PURGE."

// purgeTries is the number of unanswered purges that are not put down to chance: a server that
// forbids it gives no answer within purgeTime.
const (
	purgeTries = 3
	purgeTime  = 2 * time.Second
)

// purgeEvery is the interval between deletions of taken messages, and the minimum time that they
// stay.
const purgeEvery = time.Second
