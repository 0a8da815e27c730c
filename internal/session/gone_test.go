package session

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/target"
	"pitot/internal/workload/token"
)

// A server that is killed in mid-run is a result, not a failed measurement. One
// that stays away ends the run.
func TestServerKilledInMidRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		gone bool
	}{
		{"open", []string{"--rate", "100", "--duration", "4s"}, false},
		{"closed", []string{"--concurrency", "4", "--requests", "1000"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := serve.New(serve.Config{
				Engine: sim.NewFixed(sim.FixedConfig{TTFT: 5 * time.Millisecond, ITL: 2 * time.Millisecond}),
				Count:  token.Universal().Count, Model: "m",
			})
			go srv.Serve(l)
			args := quick(append([]string{"http://" + l.Addr().String(), "--output", "20"}, c.args...)...)
			p := planned(t, append(args, "--out", filepath.Join(t.TempDir(), "run"))...)
			var once sync.Once
			r := Runner{Progress: watching(func(s Status) {
				if s.At >= s.T0 && s.OK >= 30 && s.Phase != "priming" {
					go once.Do(func() {
						ctx, cancel := context.WithCancel(context.Background())
						cancel()
						_ = srv.Shutdown(ctx)
					})
				}
			})}
			run, _, err := r.Run(t.Context(), p)
			var gone *target.Error
			if errors.As(err, &gone) != c.gone || run == nil {
				t.Fatal(err)
			}
			accounted(t, run)
			got := run.Points[0]
			if (got.WentAway != nil) != c.gone || c.gone && got.Seconds.Window > *got.WentAway+2*goneAfter.Seconds() {
				t.Errorf("went away %v, window of %g s", got.WentAway, got.Seconds.Window)
			}
			if got.Outcome != "failing" && got.Outcome != "degraded" {
				t.Errorf("outcome %s, %+v", got.Outcome, got.Requests)
			}
			if got.Requests.OK == 0 || got.Requests.Errors["connect"] < 10 {
				t.Errorf("%+v", got.Requests)
			}
			if run.Verdict == result.Invalid {
				for _, check := range got.Checks {
					if check.Status == "fail" && check.Name != "send lag" && check.Name != "client cpu" { // those are this machine's
						t.Errorf("INVALID: %+v", check)
					}
				}
			}
		})
	}
}

// watching is told how a run goes on.
type watching func(Status)

func (watching) ShowLine(string)   {}
func (w watching) Update(s Status) { w(s) }
