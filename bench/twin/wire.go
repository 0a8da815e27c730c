package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitot/bench/setup"
	"pitot/internal/client/stamp"
	"pitot/internal/clock"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/stats"
	"pitot/internal/workload/arrival"
)

// grain is the server's own: the least time between two wake-ups.
const grain = 200 * time.Microsecond

// load is what a server of a part serves: so many streams, one event a token.
type load struct {
	Streams, Tokens int
	TTFT, ITL       time.Duration
	Event           string
}

func (l load) args(be string) []string {
	return []string{"-be", be, "-streams", strconv.Itoa(l.Streams), "-tokens", strconv.Itoa(l.Tokens),
		"-ttft", l.TTFT.String(), "-itl", l.ITL.String(), "-event", l.Event}
}

// served is what a server says of itself at its end.
type served struct {
	CPU           float64 // µs, user and system, from start to end
	Events        int64
	P50, P99, Max float64 // µs from when an event was due to its write
}

// listen says where a server listens, on standard output.
func listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	return l
}

// spent is the processor time of this process in µs.
func spent() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// mock is the server that is measured; it ends with its standard input.
func (l load) mock() served {
	srv := serve.New(serve.Config{Model: "reference", Engine: sim.NewFixed(sim.FixedConfig{TTFT: l.TTFT, ITL: l.ITL})})
	go func() { _ = srv.Serve(listen()) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = srv.Shutdown(ctx)
	s := srv.Stats()
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return served{CPU: spent(), Events: s.Events, P50: us(s.Late.P50), P99: us(s.Late.P99), Max: us(s.Late.Max)}
}

// bare is the least that a server of event streams can do: it accepts the
// streams, and then one loop writes the same bytes at the same pace, woken by
// the same alarm. All streams go equally fast and begin within one gap, so the
// order in which they began is that in which they are due.
func (l load) bare() served {
	const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
	listener := listen()
	conns, began := make([]net.Conn, l.Streams), make([]int64, l.Streams)
	for i := range conns {
		c, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		conns[i] = c
	}
	request := make([]byte, 4<<10)
	for i, c := range conns {
		_, a, err := stamp.NewReceiver(c).Read(request)
		if err != nil {
			log.Fatal(err)
		}
		began[i] = a.Time
		_, _ = io.WriteString(c, head)
	}
	event := []byte(l.Event)
	alarm := clock.NewAlarm()
	defer alarm.Close()
	late := make([]float64, 0, l.Streams*l.Tokens)
	now, woken := clock.Now(), int64(0)
	for k := range l.Tokens {
		for i, c := range conns {
			due := began[i] + int64(l.TTFT) + int64(k)*int64(l.ITL)
			if due > now {
				now = clock.Now()
			}
			if due > now {
				alarm.Wait(max(due, woken+int64(grain)), nil)
				now = clock.Now()
				woken = now
			}
			late = append(late, float64(clock.Now()-due)/1e3)
			if _, err := c.Write(event); err != nil {
				log.Fatal(err)
			}
		}
	}
	for _, c := range conns {
		_, _ = io.WriteString(c, "0\r\n\r\n")
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	s := lateness(late)
	s.CPU = spent()
	return s
}

// pacer waits for each time of a schedule with as many events a second, and
// does nothing then.
func (l load) pacer() served {
	span := int64(l.Tokens) * int64(l.ITL)
	due, err := arrival.NewPoisson(float64(l.Streams)/l.ITL.Seconds(), 1)
	if err != nil {
		log.Fatal(err)
	}
	a := clock.NewAlarm()
	defer a.Close()
	origin := clock.Now() + int64(50*time.Millisecond)
	var late []float64
	for t := due.Next(); t < span; t = due.Next() {
		a.Wait(origin+t, nil)
		late = append(late, float64(clock.Now()-origin-t)/1e3)
	}
	return lateness(late)
}

func lateness(us []float64) served {
	if len(us) == 0 {
		log.Fatal("nothing was due")
	}
	stats.SortFloat64(us)
	return served{Events: int64(len(us)), P50: stats.Percentile(us, 0.5), P99: stats.Percentile(us, 0.99), Max: us[len(us)-1]}
}

// server is a process of a part.
type server struct {
	cmd   *exec.Cmd
	port  string
	stdin io.Closer
	out   *bufio.Reader
}

// process is this program as one process of a part, on one core.
func (b *bench) process(core int, args []string) *exec.Cmd {
	return setup.Command(core, append([]string{b.self}, args...)...)
}

// serve starts a server on the first core.
func (b *bench) serve(args []string) *server {
	s := &server{cmd: b.process(0, args)}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		log.Fatal(err)
	}
	s.stdin, s.out = stdin, bufio.NewReader(out)
	port, err := s.out.ReadString('\n')
	if err != nil {
		log.Fatalf("server: %v", err)
	}
	s.port = strings.TrimSpace(port)
	return s
}

// stop ends a server and gives its output.
func (s *server) stop() (v served) {
	s.stdin.Close()
	if err := json.NewDecoder(s.out).Decode(&v); err != nil {
		log.Fatalf("server: %v", err)
	}
	_ = s.cmd.Wait()
	return v
}

// serving serves a load to the bare reader on the second core. Its streams
// begin evenly over one gap.
func (b *bench) serving(be string, l load) served {
	s := b.serve(l.args(be))
	n := strconv.Itoa(l.Streams)
	spread := strconv.FormatInt(l.ITL.Microseconds(), 10)
	if output, err := setup.Command(1, b.reader(), s.port, n, n, strconv.Itoa(l.Tokens), spread).CombinedOutput(); err != nil {
		log.Fatalf("reader: %v\n%s", err, output)
	}
	return s.stop()
}

// reader is the path of the bare reader in C.
func (b *bench) reader() string {
	path := filepath.Join(b.dir, "reader")
	if _, err := os.Stat(path); err != nil {
		setup.Run(nil, "cc", "-O2", "-o", path, "bench/reader/reader.c")
	}
	return path
}

// event asks a server for an answer and gives the bytes of its second token,
// as they come over the wire.
func (b *bench) event() string {
	s := b.serve(load{Streams: 1, TTFT: time.Millisecond, ITL: 50 * time.Millisecond}.args("mock"))
	defer s.stop()
	c, err := net.Dial("tcp", "127.0.0.1:"+s.port)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ask(c, 4)
	buf := make([]byte, 4<<10)
	for range 3 { // head, first token, second token
		n, err := c.Read(buf)
		if err != nil {
			log.Fatal(err)
		}
		buf = buf[:n:cap(buf)]
		if strings.Contains(string(buf), "data: ") && !strings.HasPrefix(string(buf), "HTTP/") {
			return string(buf)
		}
		buf = buf[:cap(buf)]
	}
	log.Fatal("the server sent no event")
	return ""
}

// ask sends the request for a stream.
func ask(c net.Conn, tokens int) {
	body := fmt.Sprintf(`{"model":"reference","prompt":%q,"max_tokens":%d,"stream":true}`, strings.Repeat("word ", 256), tokens)
	_, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		log.Fatal(err)
	}
}

// wire measures processor time per token event.
func (b *bench) wire() {
	l := load{Streams: 1000, Tokens: 300, TTFT: 500 * time.Millisecond, ITL: 20 * time.Millisecond, Event: b.event()}
	var bare, ours, ratio []float64
	for range b.rounds {
		x, y := b.serving("bare", l), b.serving("mock", l)
		bare, ours = append(bare, x.CPU/float64(x.Events)), append(ours, y.CPU/float64(y.Events))
		ratio = append(ratio, ours[len(ours)-1]/bare[len(bare)-1])
	}
	x, _ := median(bare, "%.2f")
	y, _ := median(ours, "%.2f")
	r, span := median(ratio, "%.2f")
	fmt.Printf("wire: %d streams, %.0f events/s, %d bytes each: CPU µs per event, bare loop %.2f, mock %.2f, ratio %.2f %s\n",
		l.Streams, float64(l.Streams)/l.ITL.Seconds(), len(l.Event), x, y, r, span)
}

// late measures how much later than the engine's clock events are written:
// at a thousand a second next to an alarm that does nothing else, and at fifty
// thousand next to the bare loop.
func (b *bench) late() {
	event := b.event()
	fmt.Printf("%-6s %9s  %-11s %9s %9s %9s\n", "late", "events/s", "", "p50 µs", "p99 µs", "max µs")
	for _, c := range []struct {
		load
		be, name string
	}{
		{load{Streams: 10, Tokens: 500, TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond}, "pacer", "bare pacer"},
		{load{Streams: 1000, Tokens: 300, TTFT: 500 * time.Millisecond, ITL: 20 * time.Millisecond}, "bare", "bare loop"},
	} {
		c.Event = event
		var ratio []float64
		row := func(name string, s served) {
			fmt.Printf("%-6s %9.0f  %-11s %9.1f %9.1f %9.1f\n", "", float64(c.Streams)/c.ITL.Seconds(), name, s.P50, s.P99, s.Max)
		}
		for range b.rounds {
			var x served
			if c.be == "pacer" {
				out, err := b.process(0, c.args("pacer")).Output()
				if err != nil || json.Unmarshal(out, &x) != nil {
					log.Fatalf("bare pacer: %v", err)
				}
			} else {
				x = b.serving(c.be, c.load)
			}
			y := b.serving("mock", c.load)
			row(c.name, x)
			row("mock", y)
			ratio = append(ratio, y.P99/x.P99)
		}
		r, span := median(ratio, "%.2f")
		fmt.Printf("late: p99 of the mock ÷ p99 of the %s: %.2f %s\n", c.name, r, span)
	}
}

// idle measures the memory of streams that wait for their first token.
func (b *bench) idle() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Fatal(err)
	}
	n := int(min(20_000, limit.Max-64))
	var mb []float64
	for range b.rounds {
		s := b.serve(load{TTFT: time.Hour, ITL: time.Second}.args("mock"))
		before := resident(s.cmd.Process.Pid)
		conns := make([]net.Conn, n)
		head := make([]byte, 4<<10)
		for i := range conns {
			c, err := net.Dial("tcp", "127.0.0.1:"+s.port)
			if err != nil {
				log.Fatal(err)
			}
			conns[i] = c
			ask(c, 100)
			if _, err := c.Read(head); err != nil || !strings.HasPrefix(string(head), "HTTP/1.1 200") {
				log.Fatalf("stream %d: %v %.40q", i, err, head)
			}
		}
		all := resident(s.cmd.Process.Pid)
		mb = append(mb, all)
		if len(mb) == 1 {
			fmt.Printf("idle: %.1f kB a stream\n", (all-before)*1e3/float64(n))
		}
		for _, c := range conns {
			c.Close()
		}
		s.stop()
	}
	m, span := median(mb, "%.0f")
	fmt.Printf("idle: %d streams that wait for their first token: %.0f MB resident %s\n", n, m, span)
}

// resident is the memory of a process in MB.
func resident(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024 / 1e6
		}
	}
	log.Fatal("no VmRSS")
	return 0
}
