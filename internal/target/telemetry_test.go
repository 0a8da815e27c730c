package target

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/client"
	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/sim/serve"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
)

// openTarget is a target whose connections are served so.
func openTarget(t *testing.T, serve func(net.Conn)) *Target {
	t.Helper()
	endpoint, _, err := client.ParseTarget("http://twin.test")
	if err != nil {
		t.Fatal(err)
	}
	return &Target{Server: map[string]string{}, Dialer: &client.Dialer{Endpoint: endpoint, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}}}
}

// A server that was restarted during a load is flagged by what it says of
// its process, and one that was not is not.
func TestRestartIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := serve.New(serve.Config{})
		target := openTarget(t, func(c net.Conn) { srv.ServeConn(c) })
		target.findMetrics(t.Context(), &config.Target{})
		if target.Server[metric.ProcessStart] == "" || len(target.Sources) != 1 {
			t.Fatal("the server's start is not known")
		}
		for _, restarted := range []bool{false, true, false} {
			if restarted {
				_ = srv.Shutdown(context.Background())
				time.Sleep(10 * time.Second)
				srv = serve.New(serve.Config{})
			}
			var f record.Frame
			watch := scrape.Begin(t.Context(), target.Sources, time.Hour, 0, func(s record.Sample) { f.Samples = append(f.Samples, s) })
			watch.Start(t.Context(), clock.Now())
			watch.End(t.Context())
			fold := metrics.NewFold(metrics.Setup{T1: 1e9, Stamps: "kernel", Load: result.Load{Loop: "open"}})
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
			if problems := watch.UserSentences(); starts < 2 || len(f.Samples) < 8 || got != want || len(problems) > 0 {
				t.Errorf("restarted: %v; %d samples, %q, %q", restarted, len(f.Samples), got, problems)
			}
		}
		_ = srv.Shutdown(context.Background())
		target.Sources[0].Close()
	})
}

// Pages that the user names are asked with their own headers, user and password, and
// never with the target's key; malformed ones are refused without repeating a password.
func TestNamedPages(t *testing.T) {
	heard := make(chan string, 10)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		heard <- strings.Join([]string{r.URL.RequestURI(), user, password, r.Header.Get("X-Scope"), r.Header.Get("Api-Key")}, " ")
		_, _ = io.WriteString(w, "DCGM_FI_DEV_POWER_USAGE 300\n")
	}))
	defer page.Close()
	host := strings.TrimPrefix(page.URL, "http://")
	target := &Target{}
	err := target.sourcesNamed(&config.Target{
		Scrape:        []string{"gpu=http://" + host + "/metrics?all=1", "gate=http://u:secret-pass@" + host},
		ScrapeHeaders: []string{"X-Scope=tenant"}, Headers: []string{"Api-Key=hidden"},
	})
	if err != nil || len(target.Sources) != 2 {
		t.Fatal(err)
	}
	for i, want := range []string{"/metrics?all=1   tenant ", "/metrics u secret-pass tenant "} {
		told, err := target.Sources[i].Ask(t.Context())
		if err != nil || told.Values[telemetry.GPUPower] != 300 {
			t.Fatalf("%v, %v", told.Values, err)
		}
		if got := <-heard; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
		if strings.Contains(target.Sources[i].URL(), "secret") {
			t.Errorf("URL %s", target.Sources[i].URL())
		}
		target.Sources[i].Close()
	}
	for _, bad := range []string{"gpu=http://u:secret-pass@host:port/metrics", "gpu=http://u:secret-pass@/x", "gpu=http://u:secret-pass@host:99999/x"} {
		if err := new(Target).sourcesNamed(&config.Target{Scrape: []string{bad}}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
