//go:build !nofleet

package bus

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// largest is the size of a message that may be sent: a frame of a journal is a quarter of
// it at most. Larger ones cost the server memory for each connection.
const largest = 1 << 20

// Server is a NATS server with JetStream in this process.
type Server struct {
	server *server.Server
	token  string
}

// Serve starts one that listens on a port of its own, and keeps its streams in a directory.
// Who connects needs its token.
func Serve(host, dir string) (*Server, error) {
	var secret [16]byte
	_, _ = rand.Read(secret[:])
	s := &Server{token: hex.EncodeToString(secret[:])}
	opts := &server.Options{
		ServerName: "pitot-" + s.token[:8], Host: host, Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, MaxPayload: largest, CustomClientAuthentication: s, DisableJetStreamBanner: true,
	}
	var err error
	if s.server, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("start NATS server: %w", err)
	}
	s.server.Start()
	if !s.server.ReadyForConnections(10 * time.Second) {
		s.server.Shutdown()
		return nil, errors.New("start NATS server: it is not ready after 10 s")
	}
	return s, nil
}

// Check implements [server.Authentication].
func (s *Server) Check(c server.ClientAuthentication) bool {
	return subtle.ConstantTimeCompare([]byte(c.GetOpts().Token), []byte(s.token)) == 1
}

// URL is where it listens.
func (s *Server) URL() string { return s.server.ClientURL() }

// Token is what clients have to show.
func (s *Server) Token() string { return s.token }

// Close ends it.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// Conn is a connection to a server. It connects again by itself when it is lost.
type Conn struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// Dial connects.
func Dial(url, token string) (*Conn, error) {
	nc, err := nats.Connect(url, nats.Token(token), nats.Name("pitot"), nats.MaxReconnects(-1),
		nats.ReconnectWait(200*time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond), nats.Timeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
	}
	return &Conn{nc, js}, nil
}

// Close ends the connection.
func (c *Conn) Close() { c.nc.Close() }

// Ask asks whoever answers on a subject.
func (c *Conn) Ask(ctx context.Context, subject string, question []byte) ([]byte, error) {
	m, err := c.nc.RequestWithContext(ctx, subject, question)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subject, err)
	}
	return m.Data, nil
}

// Answer answers what is asked on a subject, each question in a goroutine of its own. When it
// returns the server knows: nobody is told that there is no one.
func (c *Conn) Answer(subject string, answer func(question []byte) []byte) error {
	_, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		go func() { _ = m.Respond(answer(m.Data)) }() // whoever does not hear it asks again
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
func (c *Conn) Tell(subject string, word []byte) error {
	if err := c.nc.Publish(subject, word); err != nil {
		return fmt.Errorf("tell %s: %w", subject, err)
	}
	return nil
}

// Hear is called with what is told on a subject, in order.
func (c *Conn) Hear(subject string, hear func(word []byte)) error {
	_, err := c.nc.Subscribe(subject, func(m *nats.Msg) { hear(m.Data) })
	if err == nil {
		err = c.nc.Flush()
	}
	if err != nil {
		return fmt.Errorf("hear %s: %w", subject, err)
	}
	return nil
}

// Keep makes a stream that keeps what is put on subjects, in files.
func (c *Conn) Keep(ctx context.Context, stream string, subjects ...string) error {
	_, err := c.js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: subjects, Storage: jetstream.FileStorage, Duplicates: 5 * time.Minute})
	if err != nil {
		return fmt.Errorf("create stream %s: %w", stream, err)
	}
	return nil
}

// Put puts a message into the stream that keeps its subject, and returns when it is kept. One
// of an id that was put within the last minutes is not kept again.
func (c *Conn) Put(ctx context.Context, subject, id string, message []byte) error {
	if _, err := c.js.Publish(ctx, subject, message, jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("put into stream: %w", err)
	}
	return nil
}

// Read hands over what a stream keeps, from its beginning and in order, until stop is called.
func (c *Conn) Read(ctx context.Context, stream string, take func(subject, id string, message []byte)) (stop func(), err error) {
	consumer, err := c.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		take(m.Subject(), m.Headers().Get(jetstream.MsgIDHeader), m.Data())
	}, jetstream.PullMaxBytes(4<<20))
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	return func() {
		reading.Stop()
		<-reading.Closed()
	}, nil
}
