package serve

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim"
)

// arrivals reads a chunked stream event by event and gives when each came,
// after begin.
func arrivals(t *testing.T, c net.Conn, begin int64) []time.Duration {
	t.Helper()
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	body := bufio.NewReader(resp.Body)
	for {
		line, err := body.ReadString('\n')
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data:") {
			got = append(got, time.Duration(clock.Now()-begin))
		}
	}
}

// virtual runs f with a server in virtual time, and gives the truth.
func virtual(t *testing.T, engine sim.FixedConfig, faults string, f func(*Server)) (truths []Truth) {
	t.Helper()
	fs, err := ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(Config{Engine: sim.NewFixed(engine), Alarm: clock.TimerAlarm{}, Grain: -1, Truth: &log, Faults: fs})
		f(s)
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		for tr, err := range ReadTruth(&log) {
			if err != nil {
				t.Error(err)
			}
			truths = append(truths, tr)
		}
	})
	return truths
}

// millis makes durations of milliseconds.
func millis(ms ...float64) []time.Duration {
	d := make([]time.Duration, len(ms))
	for i, x := range ms {
		d[i] = time.Duration(x * float64(time.Millisecond))
	}
	return d
}

const chatOfThree = `{"messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":true}`

// In virtual time every event comes at exactly its time.
func TestExactTimes(t *testing.T) {
	base := sim.FixedConfig{TTFT: 50 * time.Millisecond, ITL: 7500 * time.Microsecond}
	early := base
	early.RoleChunk = true
	for _, c := range []struct {
		name   string
		engine sim.FixedConfig
		faults string
		want   []time.Duration // role, three tokens, [DONE]
	}{
		{"role with the first token", base, "", millis(50, 50, 57.5, 65, 65)},
		{"role at once", early, "", millis(0, 50, 57.5, 65, 65)},
		{"slow", base, "slow:100%:1s", millis(1050, 1050, 1057.5, 1065, 1065)},
		{"stall", base, "stall:100%:3s", millis(50, 50, 3057.5, 3057.5, 3057.5)},
		{"freeze", base, "freeze:every 52ms:20ms", millis(50, 50, 72, 72, 72)},
	} {
		t.Run(c.name, func(t *testing.T) {
			truths := virtual(t, c.engine, c.faults, func(s *Server) {
				client, server := net.Pipe()
				go s.ServeConn(server)
				begin := clock.Now()
				_, _ = io.WriteString(client, post("/v1/chat/completions", chatOfThree))
				if got := arrivals(t, client, begin); !slices.Equal(got, c.want) {
					t.Errorf("events came at %v, want %v", got, c.want)
				}
				client.Close()
			})
			if len(truths) != 1 {
				t.Fatalf("%d truths", len(truths))
			}
			tr := truths[0]
			var got []time.Duration
			for _, at := range append(append([]int64{tr.RoleNS}, tr.EmitNS...), tr.DoneNS) {
				got = append(got, time.Duration(at-tr.ArrivalNS))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the truth log has %v, want %v", got, c.want)
			}
		})
	}
}

// Two clients, one slot: the second waits for the first.
func TestExactQueue(t *testing.T) {
	engine := sim.FixedConfig{TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond, Slots: 1}
	truths := virtual(t, engine, "", func(s *Server) {
		var conns []net.Conn
		begin := clock.Now()
		for range 2 {
			client, server := net.Pipe()
			go s.ServeConn(server)
			_, _ = io.WriteString(client, post("/v1/chat/completions", chatOfThree))
			conns = append(conns, client)
			time.Sleep(30 * time.Millisecond)
		}
		for i, want := range [][]time.Duration{millis(100, 100, 110, 120, 120), millis(220, 220, 230, 240, 240)} {
			if got := arrivals(t, conns[i], begin); !slices.Equal(got, want) {
				t.Errorf("client %d: %v, want %v", i, got, want)
			}
			conns[i].Close()
		}
	})
	if len(truths) != 2 {
		t.Errorf("%d truths", len(truths))
	}
}
