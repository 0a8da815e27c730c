package loadgen

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/sim"
)

// echo answers every request at once with one token.
func echo(b *testing.B) *network {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	const event = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(event) + "0\r\n\r\n")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				br := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return &network{addr: l.Addr().String()}
}

// lags is a sink that keeps how late requests left.
type lags struct{ late chan int64 }

func (lags) Chunk(record.Chunk) {}

func (l lags) Done(r *record.Row) {
	if r.Sent >= 0 {
		l.late <- r.Sent - r.Due
	}
}

// BenchmarkPacing sends 1,000 requests a second and says how late they leave,
// beside an alarm alone that is set to the same times: what is more than that
// is the instrument's. One iteration is one request.
func BenchmarkPacing(b *testing.B) {
	const gap = millisecond
	b.Run("requests", func(b *testing.B) {
		n := echo(b)
		sink := lags{make(chan int64, b.N+1000)}
		w, _ := wall(b, n, func(c *WallConfig) { c.Sink, c.Source, c.Spare, c.Ahead = sink, asks{1}, 8, 256 })
		if err := w.Open(b.Context(), 16); err != nil {
			b.Fatal(err)
		}
		w.WaitPrepared(b.Context(), 256)
		w.Begin(10 * time.Millisecond)
		b.ResetTimer()
		Run(b.Context(), NewCore(Config{Arrivals: &every{gap: gap}, Requests: int64(b.N), Timeout: 5000 * millisecond}), w)
		b.StopTimer()
		close(sink.late)
		var late []int64
		for l := range sink.late {
			late = append(late, l)
		}
		lateness(b, late)
	})
	b.Run("alarm", func(b *testing.B) {
		a := clock.NewAlarm()
		defer a.Close()
		late := make([]int64, 0, b.N)
		begin := clock.Now() + gap
		for i := range b.N {
			due := begin + int64(i)*gap
			a.Wait(due, nil)
			late = append(late, clock.Now()-due)
		}
		lateness(b, late)
	})
}

func lateness(b *testing.B, late []int64) {
	slices.Sort(late)
	n := len(late)
	b.ReportMetric(float64(late[n/2])/1e3, "p50-late-µs")
	b.ReportMetric(float64(late[min(n-1, n*99/100)])/1e3, "p99-late-µs")
}

// BenchmarkRequest is what one request costs: to build it, and to build it,
// send it and take its answer of one token, over loopback, with the server in
// the same process.
func BenchmarkRequest(b *testing.B) {
	b.Run("build", func(b *testing.B) {
		w, _ := wall(b, &network{}, nil)
		w.Close() // nobody else prepares
		b.ReportAllocs()
		id := int64(0)
		for b.Loop() {
			w.recycle(w.buildFlight(id, record.Unset))
			id++
		}
	})
	b.Run("whole", func(b *testing.B) {
		sink := lags{make(chan int64, b.N+1000)}
		w, _ := wall(b, echo(b), func(c *WallConfig) { c.Sink, c.Source = sink, asks{1} })
		if err := w.Open(b.Context(), 8); err != nil {
			b.Fatal(err)
		}
		w.Begin(time.Millisecond)
		b.ReportAllocs()
		b.ResetTimer()
		Run(b.Context(), NewCore(Config{Users: 8, Requests: int64(b.N), Timeout: 5000 * millisecond}), w)
	})
}

// BenchmarkVirtual is the virtual world's time for one request of 64 tokens.
func BenchmarkVirtual(b *testing.B) {
	v := NewVirtual(VirtualConfig{
		Engine: sim.NewFixed(sim.FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond}),
		Source: asks{64}, Sink: nothing{},
	})
	b.ReportAllocs()
	b.ResetTimer()
	Run(context.Background(), NewCore(Config{Arrivals: &every{gap: millisecond}, Requests: int64(b.N)}), v)
}

type nothing struct{}

func (nothing) Chunk(record.Chunk) {}
func (nothing) Done(*record.Row)   {}
