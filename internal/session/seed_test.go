package session

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/workload/token"
)

// A server may know the prompts of a given seed from a run before. An embedded
// target begins anew, and fresh prompts are nobody's.
func TestGivenSeedMayHitTheCache(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := serve.New(serve.Config{Engine: sim.NewFixed(sim.FixedConfig{TTFT: time.Millisecond, ITL: time.Millisecond}), Count: token.Universal().Count, Model: "m"})
	go srv.Serve(l)
	t.Cleanup(func() { _ = srv.Shutdown(context.Background()) })
	url := "http://" + l.Addr().String()
	for name, c := range map[string]struct {
		args []string
		want string // status of the check, "" for none
	}{
		"fresh": {[]string{url}, ""},
		"given": {[]string{url, "--seed", "7"}, "flag"},
		"mock":  {[]string{"mock:fixed?ttft=1ms&itl=1ms", "--seed", "7"}, ""},
	} {
		args := append(c.args, "--rate", "50", "--duration", "100ms", "--warmup", "0s", "--input", "32", "--output", "4")
		run, _ := mustMeasure(t, append(args, "--out", filepath.Join(t.TempDir(), "run"))...)
		got := ""
		if i := slices.IndexFunc(run.Points[0].Checks, func(c result.Check) bool { return c.Name == "prefix cache" }); i >= 0 {
			got = string(run.Points[0].Checks[i].Status)
		}
		if got != c.want {
			t.Errorf("%s: prefix cache %q, want %q", name, got, c.want)
		}
	}
}
