// Package bus carries messages and journals between the processes of a fleet. It has two
// transports: NATS, for workers of other machines, and a local hub, for workers that the
// coordinator starts itself.
//
// Requests and short messages may be lost, and are then sent again. Journals of other machines
// go through a JetStream stream: core NATS drops what a slow reader does not take. Journals of
// this machine need no transport: the coordinator reads their files.
package bus

import (
	"context"
	"errors"
	"strings"
	"time"
)

var (
	// ErrNobody says that no answer on a subject. A worker that reconnects answers again soon.
	ErrNobody = errors.New("no answer")
	// ErrRefused says that a server does not accept this client, or is not trusted: another try is
	// of no use.
	ErrRefused = errors.New("refused")
	// ErrClosed says that a local connection has ended. It does not come back.
	ErrClosed = errors.New("the connection to the coordinator has ended")
	// ErrNoServer says that this program embeds no NATS server.
	ErrNoServer = errors.New("this program has no NATS server")
)

// Access is where a server is, and the credentials for it. Secrets are read from files, and
// appear in no message and no error.
type Access struct {
	URL   string // nats://HOST:PORT, tls://HOST:PORT, several with commas, or a hub's; HOST:PORT where a server is to listen
	Token string
	Nkey  string // file of an nkey's seed
	CA    string // file of the certificates to trust, PEM
	Cert  string // file of a certificate, PEM
	Key   string // and of its key, "" for the same file
}

// Conn exchanges requests and messages with the other processes of a fleet.
type Conn interface {
	// Ask sends a request to the process that answers on a subject, and returns its answer.
	Ask(ctx context.Context, subject string, question []byte) ([]byte, error)
	// Answer answers the requests on a subject, each in its own goroutine. A nil answer is not
	// sent. A subject is known to the others when Answer returns, or before the next message.
	Answer(subject string, answer func(question []byte) []byte) error
	// Tell sends a message to all that hear a subject.
	Tell(subject string, message []byte) error
	// Hear calls a function with each message on a subject, in order. The function must not wait
	// for another message.
	Hear(subject string, hear func(message []byte)) error
	// Close ends the connection.
	Close()
}

// Streams is a connection that keeps journals on their way, too.
type Streams interface {
	Conn
	// Keep makes a stream that keeps the messages on subjects.
	Keep(ctx context.Context, stream string, subjects ...string) error
	// Put puts a message into the stream of its subject, and returns when it is kept. A message
	// with the id of one that was put in the last minutes is not kept again.
	Put(ctx context.Context, subject, id string, message []byte) error
	// Read calls take with each message of a stream, from its beginning and in order, until stop
	// is called. It deletes these messages from the stream soon after. Where the server refuses
	// that, it calls refused once.
	Read(ctx context.Context, stream string, take func(subject, id string, message []byte), refused func(error)) (stop func(), err error)
	// Forget deletes a stream.
	Forget(ctx context.Context, stream string) error
	// Drain stops answering, and closes the connection once the answers that were begun are sent,
	// or after a time.
	Drain(within time.Duration)
}

// Dial connects to a hub or to a NATS server. The error of a server that does not accept this
// client is [ErrRefused]; the error of a hub that is not there is [ErrClosed].
func Dial(a Access) (Conn, error) {
	if address, local := strings.CutPrefix(a.URL, LocalScheme+"://"); local {
		return dialHub(address, a.Token)
	}
	c, err := DialNATS(a)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Server is a server in this process.
type Server interface {
	// URL returns the address for [Dial].
	URL() string
	// Token returns what clients have to show.
	Token() string
	// Dial connects from this process, without a socket.
	Dial() (Conn, error)
	Close()
}

// serve starts the embedded server, nil for none.
var serve func(a Access, dir string) (Server, error)

// EmbedServer sets the function that [Serve] calls. A program that embeds a NATS server calls it
// once, before anything else.
func EmbedServer(start func(a Access, dir string) (Server, error)) { serve = start }

// HasServer reports whether this program embeds a NATS server.
func HasServer() bool { return serve != nil }

// Serve starts the embedded NATS server, which listens at a.URL and keeps streams in a
// directory. A program without one gets [ErrNoServer].
func Serve(a Access, dir string) (Server, error) {
	if serve == nil {
		return nil, ErrNoServer
	}
	return serve(a, dir)
}
