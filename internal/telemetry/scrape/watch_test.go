package scrape

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/client"
	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/telemetry"
)

// from is a source whose connections are served so.
func from(serve func(net.Conn), paths ...string) *Source {
	if len(paths) == 0 {
		paths = []string{"/metrics"}
	}
	d := &client.Dialer{Endpoint: client.Endpoint{Host: "h", Addr: "h:80"}, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}}
	return NewSource("server", "the server's own metrics", d, nil, "", paths...)
}

// answering reads requests and answers each, as often as it is asked.
func answering(answer func() string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		for {
			if _, err := c.Read(make([]byte, 1<<16)); err != nil {
				return
			}
			if _, err := io.WriteString(c, answer()); err != nil {
				return
			}
		}
	}
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// watched is what a load of some seconds brings.
func watched(t *testing.T, seconds int, sources ...*Source) (samples []record.Sample, sentences []string) {
	t.Helper()
	took := time.Now()
	notes := make(chan record.Sample, 1<<16)
	w := Begin(t.Context(), sources, time.Second, 7, func(s record.Sample) { notes <- s })
	if time.Since(took) > 3*timeout {
		t.Errorf("the load had to wait for %s", time.Since(took))
	}
	w.Start(t.Context(), clock.Now())
	time.Sleep(time.Duration(seconds)*time.Second + 500*time.Millisecond)
	took = time.Now()
	w.End(t.Context())
	if time.Since(took) > 2*timeout {
		t.Errorf("its end had to wait for %s", time.Since(took))
	}
	close(notes)
	for s := range notes {
		samples = append(samples, s)
	}
	return samples, w.UserSentences()
}

// A page is asked before the load, each second and after it, on one connection.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := from(answering(func() string {
			asked++
			return ok(fmt.Sprintf("vllm:num_requests_running %d\nvllm:num_preemptions_total %d\nprocess_start_time_seconds 100\n", asked, 10*asked))
		}))
		samples, sentences := watched(t, 3, s)
		var gathered telemetry.Samples
		for _, x := range samples {
			if x.Point != 7 || x.Source != "server" {
				t.Errorf("%+v", x)
			}
			gathered.Add(x.Source, telemetry.Signal(x.Name), x.T, x.Value)
		}
		if asked != 5 || len(samples) != 15 || len(sentences) != 0 {
			t.Errorf("asked %d times, %d samples, %q", asked, len(samples), sentences)
		}
		s.Close()
		if x, ok := gathered.TotalGrowth(telemetry.Preemptions, 3e9); !ok || x != 40 {
			t.Errorf("preemptions %v %v", x, ok)
		}
	})
}

// What a server tells of itself harms no measurement: an answer that never comes, never
// ends, is too large or no metrics at all takes seconds at most, little memory and one
// sentence.
func TestHostilePages(t *testing.T) {
	endless := func(c net.Conn) {
		defer c.Close()
		_, _ = c.Read(make([]byte, 1<<16))
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for line := strings.Repeat("vllm:num_requests_running 1\n", 1000); err == nil; {
			_, err = io.WriteString(c, line)
		}
	}
	dripping := func(c net.Conn) {
		defer c.Close()
		_, _ = c.Read(make([]byte, 1<<16))
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil {
			_, err = io.WriteString(c, "vllm:num_requests_running 1\n")
			time.Sleep(time.Second)
		}
	}
	fixed := func(answer string) func(net.Conn) { return answering(func() string { return answer }) }
	for name, c := range map[string]struct {
		serve func(net.Conn)
		why   string
	}{
		"endless":       {endless, "more"},
		"dripping":      {dripping, "longer than 2s"},
		"silent":        {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "longer than 2s"},
		"closed":        {func(c net.Conn) { c.Close() }, "closed"},
		"no HTTP":       {fixed("SSH-2.0-OpenSSH_9.6\r\n\r\n"), "HTTP"},
		"not there":     {fixed("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "404"},
		"not for us":    {fixed("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), "401"},
		"a page":        {fixed(ok("<html></html>")), "no page of metrics"},
		"other metrics": {fixed(ok("x 1\n")), "no engine or exporter"},
		"50 MB":         {fixed("HTTP/1.1 200 OK\r\nContent-Length: 52428800\r\n\r\n" + strings.Repeat("vllm:num_requests_running 1\n", 400000)), "more bytes than"},
	} {
		synctest.Test(t, func(t *testing.T) {
			// From the beginning.
			s := from(c.serve)
			samples, sentences := watched(t, 20, s)
			if len(samples) > 0 || len(sentences) != 1 || !strings.Contains(sentences[0], c.why) || strings.Contains(sentences[0], "\n") {
				t.Errorf("%s: %d samples, %q", name, len(samples), sentences)
			}
			for range 3 {
				if samples, again := watched(t, 20, s); len(samples) > 0 || len(again) > 0 {
					t.Errorf("%s: again %d samples, %q", name, len(samples), again)
				}
			}
			if !s.gone {
				t.Errorf("%s: it is asked for ever", name)
			}
			// And from some time on.
			var turned atomic.Bool
			s = from(func(conn net.Conn) {
				if turned.Load() {
					c.serve(conn)
					return
				}
				defer conn.Close()
				for {
					if _, err := conn.Read(make([]byte, 1<<16)); err != nil || turned.Load() {
						return
					}
					_, _ = io.WriteString(conn, ok("vllm:num_requests_running 1\n"))
				}
			})
			time.AfterFunc(5500*time.Millisecond, func() { turned.Store(true) })
			samples, sentences = watched(t, 20, s)
			s.Close()
			if len(samples) < 5 || len(samples) > 7 || len(sentences) != 1 {
				t.Errorf("%s, later: %d samples, %q", name, len(samples), sentences)
			}
			time.Sleep(time.Minute) // whatever serves has seen that nobody listens
		})
	}
}

// A server that recovers is asked again: with the next load at the latest.
func TestRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := from(answering(func() string {
			if asked++; asked > 2 && asked < 8 {
				return "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"
			}
			return ok("vllm:num_requests_running 1\n")
		}))
		if samples, sentences := watched(t, 30, s); len(samples) != 2 || len(sentences) != 1 {
			t.Errorf("%d samples, %q", len(samples), sentences)
		}
		asked = 10
		if samples, sentences := watched(t, 10, s); len(samples) != 12 || len(sentences) != 0 {
			t.Errorf("then %d samples, %q", len(samples), sentences)
		}
		s.Close()
	})
}

// A page is found at the first of its paths that has one.
func TestPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		s := from(func(c net.Conn) {
			defer c.Close()
			for {
				b := make([]byte, 1<<16)
				n, err := c.Read(b)
				if err != nil {
					return
				}
				path := strings.Fields(string(b[:n]))[1]
				asked = append(asked, path)
				answer := map[string]string{"/metrics": ok(`{"iteration": 1}`), "/prometheus/metrics": ok("trtllm_num_requests_running 3\n")}[path]
				if answer == "" {
					answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
				}
				if _, err := io.WriteString(c, answer); err != nil {
					return
				}
			}
		}, MetricsPaths()...)
		for range 2 {
			if a, err := s.Ask(t.Context()); err != nil || a.Values[telemetry.Running] != 3 {
				t.Errorf("%v, %v", a.Values, err)
			}
		}
		if !slices.Equal(asked, []string{"/metrics", "/prometheus/metrics", "/prometheus/metrics"}) || !strings.HasSuffix(s.URL(), "/prometheus/metrics") {
			t.Errorf("%q, %s", asked, s.URL())
		}
		s.Close()
		none := from(answering(func() string { return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" }), MetricsPaths()...)
		if _, err := none.Ask(t.Context()); err != ErrNone {
			t.Errorf("nowhere: %v", err)
		}
		none.Close()
	})
}

// What one question costs over a loopback socket, the server's part too.
func BenchmarkAsk(b *testing.B) {
	page, err := os.ReadFile("../testdata/vllm-0.32.prom")
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	defer server.Close()
	e, _, err := client.ParseTarget(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	s := NewSource("server", "", &client.Dialer{Endpoint: e}, nil, "", "/metrics")
	defer s.Close()
	for b.Loop() {
		if _, err := s.Ask(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// paced is a teller that answers each second.
type paced struct {
	began time.Time
	told  int
}

func (p *paced) answer(n int) Asked {
	return Asked{At: p.began.Add(time.Duration(n) * time.Second).UnixNano(), Reading: telemetry.Reading{Values: map[telemetry.Signal]float64{telemetry.GPUPower: float64(n)}}}
}

func (p *paced) answers() int { return int(time.Since(p.began) / time.Second) }

func (p *paced) Tell(ctx context.Context) (Asked, error) {
	for p.answers() <= p.told {
		select {
		case <-ctx.Done():
			return Asked{}, ctx.Err()
		case <-time.After(time.Second - time.Since(p.began)%time.Second):
		}
	}
	p.told = p.answers()
	return p.answer(p.told), nil
}

func (p *paced) Latest() (Asked, bool) {
	p.told = p.answers()
	return p.answer(p.told), p.told > 0
}

func (p *paced) Close() {}

// No load waits for a source that has a pace of its own, but the first for its first answer, and
// a long one at its end for one behind it.
func TestLoadsDoNotWaitForAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewTeller("gpu", "the GPUs' figures", &paced{began: time.Now()})
		for i, x := range []struct{ load, begin, most time.Duration }{
			{1500 * time.Millisecond, time.Second, 150 * time.Millisecond},
			{1500 * time.Millisecond, 0, 150 * time.Millisecond},
			{60 * time.Second, 0, time.Second},
			{1500 * time.Millisecond, 0, 150 * time.Millisecond},
		} {
			samples := 0
			began := time.Now()
			w := Begin(t.Context(), []*Source{s}, time.Second, int32(i), func(record.Sample) { samples++ })
			if took := time.Since(began); took != x.begin {
				t.Errorf("load %d waited for %s", i, took)
			}
			w.Start(t.Context(), time.Now().UnixNano())
			time.Sleep(x.load)
			began = time.Now()
			w.End(t.Context())
			if took := time.Since(began); took > x.most {
				t.Errorf("the end of load %d waited for %s", i, took)
			}
			if least := int(x.load / time.Second); samples < least || len(w.UserSentences()) > 0 {
				t.Errorf("load %d has %d samples", i, samples)
			}
		}
	})
}
