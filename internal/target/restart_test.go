package target

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/twin/serve"
	"pitot/internal/wire"
)

func TestProcessStart(t *testing.T) {
	for page, want := range map[string]float64{
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.76368e+09\nx_created 5.0\n": 1.76368e9,
		"x_created{a=\"b c\"} 1.76368e+09\ny_created 1.5e+09\nz 3.0\n":                                     1.5e9,
		"process_start_time_seconds{job=\"a b}\"} 1.7e+09 1763740000123\n":                                 1.7e9,
		"process_start_time_seconds 1.7e+09 1763740000123\n":                                               1.7e9,
		"process_start_time_seconds NaN\nx_total 4.0\n":                                                    0,
		"process_start_time_seconds\n":                                                                     0,
		"<html></html>":                                                                                    0,
		"":                                                                                                 0,
	} {
		if got, ok := processStart(page); ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %v, %v", page, got, ok)
		}
	}
}

// A server that was started anew during a load is flagged by what it says of
// its process, and one that was not is not.
func TestRestartIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := serve.New(serve.Config{})
		endpoint, _, err := wire.ParseTarget("http://twin.test")
		if err != nil {
			t.Fatal(err)
		}
		target := &Target{Server: map[string]string{}, Dialer: &wire.Dialer{Endpoint: endpoint, Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go srv.ServeConn(server)
			return client, nil
		}}}
		target.tellBegun(t.Context())
		if target.Server[record.ProcessStart] == "" {
			t.Error("the server's start is not known")
		}
		for _, anew := range []bool{false, true, false} {
			if anew {
				_ = srv.Shutdown(context.Background())
				time.Sleep(10 * time.Second)
				srv = serve.New(serve.Config{})
			}
			var f record.Frame
			target.AskBegun(t.Context(), func(s record.Sample) { f.Samples = append(f.Samples, s) }, 0, 1e9)
			fold := measure.NewFold(measure.Setup{T1: 1e9, Stamps: "kernel", Load: result.Load{Loop: "open"}})
			fold.Add(f)
			want, got := map[bool]string{false: "pass", true: "flag"}[anew], ""
			for _, c := range fold.Point().Checks {
				if c.Name == "server restarts" {
					got = string(c.Status)
				}
			}
			if len(f.Samples) != 2 || got != want {
				t.Errorf("started anew: %v; %d samples, %q", anew, len(f.Samples), got)
			}
		}
		_ = srv.Shutdown(context.Background())
	})
}
