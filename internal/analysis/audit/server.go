package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"pitot/internal/sim/serve"
)

// Server is `pitot mock` in a process of its own.
type Server struct {
	URL string // http://host:port

	cmd      *exec.Cmd
	stdin    io.Closer
	errs     bytes.Buffer
	lastLine []byte        // its last line, once read is closed
	read     chan struct{} // closed when all its output has been read
}

// patience is the time that a server may take to end. It gives its running answers five seconds,
// then cuts them and writes its log.
const patience = 15 * time.Second

// StartServer starts `pitot mock` on a free port and waits until it serves. command
// is the program and what must stand before the verb, args are further flags.
//
// The server ends with its standard input: the one way that works on every
// system, and also when this process is killed.
func StartServer(ctx context.Context, command []string, args ...string) (*Server, error) {
	argv := append(command[1:len(command):len(command)], "mock", "--port", "0", "--model", "reference", "--until-eof")
	s := &Server{cmd: exec.CommandContext(ctx, command[0], append(argv, args...)...), read: make(chan struct{})}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start reference server: %w", err)
	}
	s.stdin = stdin
	s.cmd.Stderr = &s.errs
	s.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PITOT_") }) // its flags say all
	s.cmd.Cancel = stdin.Close
	s.cmd.WaitDelay = patience
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start reference server: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start reference server: %w", err)
	}
	stdout := bufio.NewReader(out)
	line, err := stdout.ReadBytes('\n')
	var started serve.Started
	if err == nil {
		err = json.Unmarshal(line, &started)
	}
	if err != nil || started.URL == "" {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		return nil, fmt.Errorf("start reference server: it wrote %q", strings.TrimSpace(string(line)+s.errs.String()))
	}
	s.URL = started.URL
	go s.keepLastLine(stdout)
	return s, nil
}

// keepLastLine keeps the last line that the server writes.
func (s *Server) keepLastLine(stdout *bufio.Reader) {
	defer close(s.read)
	for {
		line, err := stdout.ReadBytes('\n')
		if len(line) > 0 {
			s.lastLine = line
		}
		if err != nil {
			return
		}
	}
}

// Stop ends the server, so that its log is complete, and returns what it served.
func (s *Server) Stop() (stats serve.Stats, err error) {
	_ = s.stdin.Close() // an error says that it is closed
	late := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.read // os/exec: all must be read before Wait
	if err := s.cmd.Wait(); err != nil {
		return stats, fmt.Errorf("stop reference server: %w %s", err, strings.TrimSpace(s.errs.String()))
	}
	if err := json.Unmarshal(s.lastLine, &stats); err != nil {
		return stats, fmt.Errorf("stop reference server: its last line is %q: %w", s.lastLine, err)
	}
	return stats, nil
}
