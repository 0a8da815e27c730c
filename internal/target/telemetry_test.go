package target

import (
	"context"
	"io"
	"maps"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/twin/serve"
	"pitot/internal/wire"
)

func TestSignals(t *testing.T) {
	queue := []metric.Signal{
		{From: metric.Source{Record: "queue", Series: []string{"vllm:queue_sum", "old_queue_sum"}}},
		{From: metric.Source{Record: "kv", Series: []string{"kv"}, Across: metric.Highest}, Per: metric.Source{Record: "of", Series: []string{"of"}, Across: metric.Lowest}, Combine: metric.Ratio},
	}
	start := metric.ProcessStart
	for page, want := range map[string]map[string]float64{
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.76368e+09\nx_created 5.0\n": {start: 1.76368e9},
		"x_created{a=\"b c\"} 1.76368e+09\ny_created 1.5e+09\nz 3.0\n":                                     {start: 1.5e9},
		"process_start_time_seconds{job=\"a b}\"} 1.7e+09 1763740000123\n":                                 {start: 1.7e9},
		"process_start_time_seconds 1.7e+09 1763740000123\n":                                               {start: 1.7e9},
		"process_start_time_seconds{r=\"1\"} 1.8e+09\nprocess_start_time_seconds{r=\"0\"} 1.7e+09\n":       {start: 1.7e9},
		"process_start_time_seconds NaN\nx_total 4.0\n":                                                    {},
		"process_start_time_seconds -1\n":                                                                  {},
		"process_start_time_seconds\n":                                                                     {},
		"<html></html>":                                                                                    {},
		"":                                                                                                 {},
		"vllm:queue_sum{engine=\"0\"} 1.5\nvllm:queue_sum{engine=\"1\"} 2\nold_queue_sum 9\n":              {"queue": 3.5},
		"old_queue_sum 9 # {trace_id=\"x}\"} 0.5 123\r\n":                                                  {"queue": 9},
		"old_queue_sum{a=\"\\\"}\",b=\"{\"}\t9\nkv +Inf\nkv 1\nkv{} 3\nof 5\nof 4\n":                       {"queue": 9, "kv": 3, "of": 4},
		"vllm:queue_sum{engine=\"0 1.5\nvllm:queue_sum x\n vllm:queue_sum 1e999\n":                         {},
		"vllm:queue_sum 1e308\nvllm:queue_sum 1e308\n":                                                     {}, // their sum is no number
	} {
		signals := append(queue, metric.Signal{From: metric.Source{Record: start, Series: []string{start}, Across: metric.Lowest}})
		if got := signalsOf(page, signals); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", page, got, want)
		}
	}
}

func FuzzSignals(f *testing.F) {
	f.Add("vllm:prefix_cache_hits_total{engine=\"0\",x=\"\\\"}\"} 3 1763740000123 # {a=\"b\"} 1\nprocess_start_time_seconds 1.7e+09\n")
	f.Add("x_created{ 1")
	f.Fuzz(func(t *testing.T, page string) {
		for name, x := range signalsOf(page, metric.Signals()) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s is %v", name, x)
			}
		}
	})
}

// openTarget is a target whose connections are served so.
func openTarget(t *testing.T, serve func(net.Conn)) *Target {
	t.Helper()
	endpoint, _, err := wire.ParseTarget("http://twin.test")
	if err != nil {
		t.Fatal(err)
	}
	return &Target{Server: map[string]string{}, Dialer: &wire.Dialer{Endpoint: endpoint, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}}}
}

// answering reads a request and writes an answer.
func answering(answer string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		if _, err := c.Read(make([]byte, 1<<16)); err == nil {
			_, _ = io.WriteString(c, answer) // whoever asked may have gone
		}
	}
}

// What a server tells of itself harms no measurement: an answer that never comes, never
// ends, is too large, compressed too well or no metrics at all takes seconds at most,
// little memory and one sentence.
func TestHostileMetrics(t *testing.T) {
	endless := func(c net.Conn) {
		defer c.Close()
		_, _ = c.Read(make([]byte, 1<<16))
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for line := strings.Repeat("vllm:prefix_cache_hits_total 1\n", 1000); err == nil; {
			_, err = io.WriteString(c, line)
		}
	}
	dripping := func(c net.Conn) {
		defer c.Close()
		_, _ = c.Read(make([]byte, 1<<16))
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for err == nil {
			_, err = io.WriteString(c, "vllm:prefix_cache_hits_total 1\n")
			time.Sleep(time.Second)
		}
	}
	good := answering("HTTP/1.1 200 OK\r\nContent-Length: 31\r\n\r\nvllm:prefix_cache_hits_total 1\n")
	for name, c := range map[string]struct {
		serve func(net.Conn)
		note  string // "" where there is nothing to speak of
	}{
		"endless":       {endless, "more than"},
		"dripping":      {dripping, "longer than 2s"},
		"silent":        {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "longer than 2s"},
		"closed":        {func(c net.Conn) { c.Close() }, "closed"},
		"no HTTP":       {answering("SSH-2.0-OpenSSH_9.6\r\n\r\n"), "HTTP"},
		"not there":     {answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), ""},
		"not for us":    {answering("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), ""},
		"a page":        {answering("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>"), ""},
		"other metrics": {answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nx 1\n"), ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			none := func(s record.Sample) { t.Errorf("%s: %+v", name, s) }
			// When it is opened.
			target, began := openTarget(t, c.serve), time.Now()
			target.findMetrics(t.Context())
			if took := time.Since(began); took > metricsTimeout+time.Second {
				t.Errorf("%s: took %s", name, took)
			}
			if note := strings.Join(target.Notes, "\n"); (note != "") != (c.note != "") || !strings.Contains(note, c.note) || strings.Contains(note, "\n") {
				t.Errorf("%s: %q", name, note)
			}
			if note := target.Sample(t.Context(), none, 0, 0); target.hasMetrics || note != "" {
				t.Errorf("%s: asked on, %q", name, note)
			}
			// And when it comes later.
			turned := false
			target = openTarget(t, func(conn net.Conn) {
				if turned {
					c.serve(conn)
				} else {
					good(conn)
				}
			})
			target.findMetrics(t.Context())
			turned = true
			var notes []string
			for range 5 {
				if s := target.Sample(t.Context(), none, 0, 0); s != "" {
					notes = append(notes, s)
				}
			}
			if len(notes) != 1 || target.hasMetrics {
				t.Errorf("%s, later: %q", name, notes)
			}
			time.Sleep(time.Minute) // whatever serves has seen that nobody listens
		})
	}
}

// A server that was restarted during a load is flagged by what it says of
// its process, and one that was not is not.
func TestRestartIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := serve.New(serve.Config{})
		target := openTarget(t, func(c net.Conn) { srv.ServeConn(c) })
		target.findMetrics(t.Context())
		if target.Server[metric.ProcessStart] == "" {
			t.Error("the server's start is not known")
		}
		for _, restarted := range []bool{false, true, false} {
			if restarted {
				_ = srv.Shutdown(context.Background())
				time.Sleep(10 * time.Second)
				srv = serve.New(serve.Config{})
			}
			var f record.Frame
			note := func(s record.Sample) { f.Samples = append(f.Samples, s) }
			problem := target.Sample(t.Context(), note, 0, 0)
			problem += target.Sample(t.Context(), note, 0, 1e9)
			fold := measure.NewFold(measure.Setup{T1: 1e9, Stamps: "kernel", Load: result.Load{Loop: "open"}})
			fold.Add(f)
			want, got := map[bool]string{false: "pass", true: "flag"}[restarted], ""
			for _, c := range fold.Point().Checks {
				if c.Name == "server restarts" {
					got = string(c.Status)
				}
			}
			starts := 0
			for _, x := range f.Samples {
				if x.Name == metric.ProcessStart {
					starts++
				}
			}
			if starts < 2 || len(f.Samples) < 8 || got != want || problem != "" {
				t.Errorf("restarted: %v; %d samples, %q, %q", restarted, len(f.Samples), got, problem)
			}
		}
		_ = srv.Shutdown(context.Background())
	})
}
