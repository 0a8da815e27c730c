package target

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/workload/token"
)

// keepsGenerating is an engine that finishes requests whose client has left.
type keepsGenerating struct{ *sim.Fixed }

func (keepsGenerating) Abort(int64) {}

// After an overload WaitEmpty returns once the server has finished the requests that clients left,
// and not before: by what the server reports, or by how long a short request takes.
func TestWaitEmpty(t *testing.T) {
	const ttft, itl, tokens = 50 * time.Millisecond, 20 * time.Millisecond, 21
	const response = ttft + (tokens-1)*itl
	for _, c := range []struct {
		name           string
		left           int // requests whose clients left
		metrics        bool
		most           time.Duration
		empty          bool
		least, longest time.Duration
	}{
		{"metrics", 8, true, time.Minute, true, 4 * response, 4*response + 2*time.Second},
		{"no metrics", 8, false, time.Minute, true, 4 * response, 4*response + 2*time.Second},
		{"nothing left", 0, false, time.Minute, true, 0, time.Second},
		{"nothing left, metrics", 0, true, time.Minute, true, 0, time.Second},
		{"too long", 60, false, 5 * time.Second, false, 5 * time.Second, 6 * time.Second},
		{"too long, metrics", 60, true, 5 * time.Second, false, 5 * time.Second, 6 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := keepsGenerating{sim.NewFixed(sim.FixedConfig{TTFT: ttft, ITL: itl, Slots: 2})}
				srv := serve.New(serve.Config{Engine: engine, Alarm: clock.TimerAlarm{}, Grain: -1})
				target := openTarget(t, func(conn net.Conn) { srv.ServeConn(conn) })
				target.Kind, target.Timeout = "http", time.Minute
				target.Options = api.Options{Model: "mock", Stream: true, Vocab: token.Universal()}
				if err := target.useAPI(api.Chat, ""); err != nil {
					t.Fatal(err)
				}
				if c.metrics {
					target.findMetrics(t.Context(), &config.Target{})
				}
				target.NoteEmpty(t.Context())
				begin := time.Now()
				for range c.left {
					ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
					go func() {
						defer leave()
						target.askOnce(ctx, requestOfWords(4, 1), tokens)
					}()
				}
				time.Sleep(10 * time.Millisecond)
				empty, known := target.WaitEmpty(t.Context(), c.most)
				took := time.Since(begin)
				if empty != c.empty || !known || took < c.least || took > c.longest {
					t.Errorf("empty %v, known %v after %v, want %v after %v to %v", empty, known, took, c.empty, c.least, c.longest)
				}
				for _, s := range target.Sources {
					s.Close()
				}
				_ = srv.Shutdown(context.Background())
			})
		})
	}
}
