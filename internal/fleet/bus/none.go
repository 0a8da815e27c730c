//go:build nofleet

package bus

import (
	"context"
	"time"
)

// Server is none: see [ErrNone].
type Server struct{}

// Serve gives [ErrNone].
func Serve(Access, string) (*Server, error) { return nil, ErrNone }

// Dial gives [ErrNone].
func (*Server) Dial() (*Conn, error) { return nil, ErrNone }

// URL is "".
func (*Server) URL() string { return "" }

// Token is "".
func (*Server) Token() string { return "" }

// Close does nothing.
func (*Server) Close() {}

// Conn is none.
type Conn struct{}

// Dial gives [ErrNone].
func Dial(Access) (*Conn, error) { return nil, ErrNone }

// Close does nothing.
func (*Conn) Close() {}

// Drain does nothing.
func (*Conn) Drain(time.Duration) {}

// Ask gives [ErrNone].
func (*Conn) Ask(context.Context, string, []byte) ([]byte, error) { return nil, ErrNone }

// Answer gives [ErrNone].
func (*Conn) Answer(string, func([]byte) []byte) error { return ErrNone }

// Tell gives [ErrNone].
func (*Conn) Tell(string, []byte) error { return ErrNone }

// Hear gives [ErrNone].
func (*Conn) Hear(string, func([]byte)) error { return ErrNone }

// Keep gives [ErrNone].
func (*Conn) Keep(context.Context, string, ...string) error { return ErrNone }

// Forget gives [ErrNone].
func (*Conn) Forget(context.Context, string) error { return ErrNone }

// Put gives [ErrNone].
func (*Conn) Put(context.Context, string, string, []byte) error { return ErrNone }

// Read gives [ErrNone].
func (*Conn) Read(context.Context, string, func(string, string, []byte), func(error)) (func(), error) {
	return nil, ErrNone
}
