// Package server starts a server by a user's command, waits until it is ready, has it
// described, and stops it: a process group of its own whose output is kept. One that a
// killed pitot left is found again. It also knows what engines call their settings, and
// reads what they tell of them.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// Commands are the user's own, for a POSIX shell. They get a configuration in
// environment variables, and {flags} in them is replaced by its flags.
type Commands struct {
	Start    string
	Ready    string // exits 0 once the server is ready; "" asks its URL
	Describe string // prints its version and flags; "" asks its URL
	Stop     string // ends it; "" ends its processes
	Within   time.Duration
}

// Asked is the launch that is wanted.
type Asked struct {
	Configuration string
	Settings      []Setting
	Flags         string
	URL           string
	Log           string // file of the server's output, absolute
}

// Process is a server that was started.
type Process struct {
	Left     Left
	Log      string
	commands Commands
	flags    string
	env      []string

	ended chan struct{} // closed when the command of start has ended
	err   error         // how, once it is closed
}

// Left is the record of a process, written down before it runs, so that it is found again.
type Left struct {
	PID           int    `json:"pid"` // of the process, its group and its session
	Began         string `json:"process_began"`
	Configuration string `json:"configuration"`
	Log           string `json:"log"`
	Stop          string `json:"stop,omitempty"` // the command that ends it
}

// Failed is a server that did not come up, or went away.
type Failed struct {
	Msg  string
	Log  string   // its file
	Last []string // its last lines

	Final bool // another try would fail alike
}

func (f *Failed) Error() string { return f.Msg }

// lastLines is the number of lines of a log that are shown.
const lastLines = 8

// NewFailed makes an error of what a server came to, with the end of its log.
func NewFailed(log, format string, args ...any) *Failed {
	return &Failed{Msg: fmt.Sprintf(format, args...), Log: log, Last: Tail(log, lastLines)}
}

// Tail gives the last lines of a file, without secrets.
func Tail(path string, n int) (lines []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	data, _ := io.ReadAll(io.LimitReader(f, most))
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(say.PlainLine(line)); line != "" {
			lines = append(lines, say.Truncate(Redact(line), 200))
		}
	}
	return lines[max(0, len(lines)-n):]
}

// leftFile is where a process that runs is written down.
const leftFile = "server.json"

// Start starts a server. It is written down in dir before its command runs. An error is a
// [Failed] where the command is at fault.
func Start(dir string, c Commands, a *Asked) (*Process, error) {
	log, err := os.OpenFile(a.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of the server: %w", err)
	}
	defer log.Close()
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	defer open.Close()
	p := &Process{Log: a.Log, commands: c, flags: a.Flags, env: environment(a), ended: make(chan struct{})}
	line := strings.ReplaceAll(c.Start, placeholder, a.Flags)
	cmd, err := gatedCommand(line, append(os.Environ(), p.env...), log, gate)
	if err == nil {
		err = cmd.Start()
	}
	gate.Close()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	p.Left = Left{PID: cmd.Process.Pid, Began: processStart(cmd.Process.Pid), Configuration: a.Configuration, Log: a.Log, Stop: c.Stop}
	p.env = append(p.env, variables+"PID="+strconv.Itoa(p.Left.PID))
	data, err := json.MarshalIndent(p.Left, "", "  ")
	if err == nil {
		err = rundir.WriteFile(dir, leftFile, append(data, '\n'))
	}
	if err != nil { // the gate closes, and nothing has run
		return nil, fmt.Errorf("write %s: %w", leftFile, err)
	}
	if _, err := open.WriteString("go\n"); err != nil {
		return nil, NewFailed(a.Log, "the command of start could not run: %v", err)
	}
	return p, nil
}

// Ended is closed when the command of start has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// HasDied says that the server is not there any more, and how it ended. A command of start
// that ended well left it running elsewhere, if there is a command to stop it.
func (p *Process) HasDied() (how string, died bool) {
	select {
	case <-p.ended:
	default:
		return "", false
	}
	switch {
	case p.err != nil:
		return p.err.Error(), true
	case p.commands.Stop != "":
		return "", false
	}
	return "exit status 0", true
}

// WhileAlive is a context that ends with the server, too. The function releases it.
func (p *Process) WhileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.ended:
			if _, died := p.HasDied(); died {
				cancel()
			}
		case <-within.Done():
		}
	}()
	return within, cancel
}

// commandNotFound is the exit status of a POSIX shell that does not find a command.
const commandNotFound = "exit status 127"

// askEvery is the interval between two checks whether a server is ready.
const askEvery = 200 * time.Millisecond

// WaitReady waits until the server is, by its command or by asking. Errors are [Failed], or
// the context's.
func (p *Process) WaitReady(ctx context.Context, ask func(ctx context.Context) error) error {
	limit, cancel := context.WithTimeout(ctx, p.commands.Within)
	defer cancel()
	alive, stop := p.WhileAlive(limit)
	defer stop()
	why := ""
	for {
		var err error
		if p.commands.Ready != "" {
			_, err = p.run(alive, p.commands.Ready, time.Minute)
		} else {
			err = ask(alive)
		}
		if how, died := p.HasDied(); died {
			hint := ""
			if how == "exit status 0" {
				hint = ": start is to run as long as the server does; one that leaves it in the background needs a stop command too"
			}
			if how == commandNotFound {
				hint = ": a command was not found"
			}
			f := NewFailed(p.Log, "the server died while it started (%s)%s", how, hint)
			f.Final = how == commandNotFound
			return f
		}
		if err == nil {
			return nil
		}
		if limit.Err() == nil {
			why = ": " + say.Truncate(Redact(err.Error()), 200)
		}
		select {
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return NewFailed(p.Log, "the server was not ready within %s%s", say.Duration(p.commands.Within), why)
		case <-time.After(askEvery):
		}
	}
}

// describing bounds a describe command.
const describing = time.Minute

// Describe gives what the describe command prints.
func (p *Process) Describe(ctx context.Context) (string, error) {
	return p.run(ctx, p.commands.Describe, describing)
}

// Describe runs a describe command for a server that somebody else started.
func Describe(ctx context.Context, c Commands, a *Asked) (string, error) {
	p := &Process{commands: c, flags: a.Flags, env: environment(a)}
	return p.run(ctx, c.Describe, describing)
}

// mostOutput bounds what is kept of a command's output.
const mostOutput = 1 << 20

// run runs one of the other commands and gives its output.
func (p *Process) run(ctx context.Context, line string, within time.Duration) (string, error) {
	limit, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	out := &bounded{}
	cmd, err := shortCommand(limit, strings.ReplaceAll(line, placeholder, p.flags), append(os.Environ(), p.env...), out)
	if err != nil {
		return "", err
	}
	err = cmd.Run()
	text := string(out.data)
	switch {
	case err != nil && limit.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("%s took longer than %s", quoteLine(line), say.Duration(within))
	case err != nil:
		last := ""
		if lines := strings.Split(strings.TrimSpace(text), "\n"); lines[len(lines)-1] != "" {
			last = ": " + say.Truncate(say.PlainLine(Redact(lines[len(lines)-1])), 200)
		}
		err = fmt.Errorf("%s: %w%s", quoteLine(line), err, last)
	}
	return text, err
}

func quoteLine(line string) string {
	return strconv.Quote(say.Truncate(Redact(strings.TrimSpace(line)), 60))
}

// bounded keeps the beginning of what is written.
type bounded struct{ data []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.data = append(b.data, p[:min(len(p), mostOutput-len(b.data))]...)
	return len(p), nil
}

// How long a server may take to end.
const (
	stopping = 2 * time.Minute  // its stop command
	grace    = 30 * time.Second // after SIGTERM
	killing  = 10 * time.Second // after SIGKILL
)

// Stop ends the server: by its command, then by signals to its group. dir is where it was
// written down. Of a server that had died the command may find nothing to stop.
func (p *Process) Stop(dir string) error {
	_, died := p.HasDied()
	var err error
	if p.commands.Stop != "" {
		_, err = p.run(context.Background(), p.commands.Stop, stopping)
	}
	if e := endGroup(p.Left.PID, grace); e != nil {
		return errors.Join(err, e)
	}
	<-p.ended
	if err != nil && !died {
		return say.Errorf("stop server: %v", err).WithHint("what start began has ended; look whether what the stop command was to end still runs")
	}
	return removeRecord(dir)
}

// endGroup ends a process group.
func endGroup(group int, within time.Duration) error {
	for _, how := range []struct {
		kill  bool
		limit time.Duration
	}{{false, within}, {true, killing}} {
		if !isRunning(group) {
			return nil
		}
		signal(group, how.kill)
		for until := time.Now().Add(how.limit); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if !isRunning(group) {
				return nil
			}
		}
	}
	return say.Errorf("the server's processes do not end: group %d", group).WithHint("look at them with ps -g " + strconv.Itoa(group))
}

func removeRecord(dir string) error {
	if err := os.Remove(filepath.Join(dir, leftFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stop server: %w", err)
	}
	return nil
}

// StopLeft ends the server that a killed pitot left, as it is written down in dir. what
// says what was found, "" for nothing.
func StopLeft(dir string) (what string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, leftFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var l Left
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil || l.PID <= 1 {
		return "", say.Errorf("%s cannot be read: %v", filepath.Join(dir, leftFile), err).WithHint("a server of an earlier run may still be there: end it, and remove the file")
	}
	alive := isRunning(l.PID)
	if now := processStart(l.PID); alive && now != "" && now != l.Began { // its number was given again
		alive = false
	}
	if alive {
		what = fmt.Sprintf("the server of %s was left by a run that was killed (process %d): it is stopped", l.Configuration, l.PID)
	}
	if l.Stop != "" { // which also ends what runs elsewhere
		p := &Process{env: append(environment(&Asked{Configuration: l.Configuration, Log: l.Log}), variables+"PID="+strconv.Itoa(l.PID))}
		if _, e := p.run(context.Background(), l.Stop, stopping); e != nil && alive {
			what += "; " + e.Error()
		}
	}
	if alive {
		if err := endGroup(l.PID, grace); err != nil {
			return what, err
		}
	}
	return what, removeRecord(dir)
}
