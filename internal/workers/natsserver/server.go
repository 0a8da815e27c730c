// Package natsserver embeds a NATS server in this process, so that a coordinator can listen for
// workers of other machines. It is 11 MB of a program, and only cmd/pitot-fleet imports it.
package natsserver

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"pitot/internal/workers/bus"
)

// largest is the maximum number of bytes in a message. A piece of a journal is at most a quarter of
// that. Larger ones cost the server memory for each connection.
const largest = 1 << 20

// natsServer is a NATS server with JetStream in this process.
type natsServer struct {
	server *server.Server
	token  string
}

// Serve starts a server that keeps its streams in a directory. It listens at a.URL, for port 0 at
// a free port. Clients have to show its token, which it makes where a has none. Certificate and
// key of a are the server's.
func Serve(a bus.Access, dir string) (bus.Server, error) {
	if err := a.CheckFiles(); err != nil {
		return nil, fmt.Errorf("start NATS server: %w", err)
	}
	host, port, err := net.SplitHostPort(a.URL)
	if err != nil {
		return nil, fmt.Errorf("start NATS server: %w", err)
	}
	s := &natsServer{token: a.Token}
	if s.token == "" {
		var secret [16]byte
		_, _ = rand.Read(secret[:])
		s.token = hex.EncodeToString(secret[:])
	}
	opts := &server.Options{
		ServerName: "pitot-" + strings.ToLower(rand.Text()[:8]), Host: host, NoLog: true, NoSigs: true,
		JetStream: true, JetStreamMaxMemory: 2 * bus.MostInMemory, StoreDir: dir, MaxPayload: largest, CustomClientAuthentication: s, DisableJetStreamBanner: true,
	}
	if opts.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("start NATS server: %w", err)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if a.Cert != "" {
		tc := &server.TLSConfigOpts{CertFile: a.Cert, KeyFile: cmp.Or(a.Key, a.Cert), CaFile: a.CA, Verify: a.CA != ""}
		if opts.TLSConfig, err = server.GenTLSConfig(tc); err != nil {
			return nil, fmt.Errorf("start NATS server: %w", err)
		}
		opts.TLS, opts.TLSTimeout = true, 5
	}
	if s.server, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("start NATS server: %w", err)
	}
	if opts.Port != server.RANDOM_PORT {
		free, err := net.Listen("tcp", a.URL)
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("start NATS server: another process has port %s", port)
			}
			return nil, fmt.Errorf("start NATS server: %w", err)
		}
		_ = free.Close()
	}
	s.server.Start()
	if !s.server.ReadyForConnections(5 * time.Second) {
		s.server.Shutdown()
		return nil, fmt.Errorf("start NATS server: it cannot listen on %s", a.URL)
	}
	return s, nil
}

// Check implements [server.Authentication].
func (s *natsServer) Check(c server.ClientAuthentication) bool {
	return subtle.ConstantTimeCompare([]byte(c.GetOpts().Token), []byte(s.token)) == 1
}

// URL implements [bus.Server].
func (s *natsServer) URL() string { return s.server.ClientURL() }

// Token implements [bus.Server].
func (s *natsServer) Token() string { return s.token }

// Close implements [bus.Server].
func (s *natsServer) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// Dial implements [bus.Server]. The connection is a [bus.Streams].
func (s *natsServer) Dial() (bus.Conn, error) {
	c, err := bus.DialInProcess(s.server, s.token)
	if err != nil {
		return nil, err
	}
	return c, nil
}
