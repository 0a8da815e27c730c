package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// A search beside a client that is late at times: what it claims rests on loads that were
// measured well, and its exit code follows from these.
func TestFindWithStarvedClient(t *testing.T) {
	if testing.Short() {
		t.Skip("simulated, and slow under the race detector")
	}
	t.Parallel()
	const lag = 300 * time.Millisecond // a good part of the limit
	search := func(t *testing.T, late func(point int32) bool) (code int, stdout, stderr string, run *result.Run) {
		dir := filepath.Join(t.TempDir(), "found")
		var out, errs bytes.Buffer
		args := []string{"sim:llama-3.1-8b@h100?max_num_seqs=16", "--slo", "p90 ttft<400ms", "--input", "128", "--output", "2", "--budget", "45s", "--seed", "3", "--out", dir}
		e := &Env{Args: args, Command: append([]string{"pitot", "find"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
			Late: func(point int32) time.Duration {
				if late(point) {
					return lag
				}
				return 0
			}}
		code, err := findVerb(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if run, err = rundir.ReadResult(dir); err != nil {
			t.Fatal(err)
		}
		return code, out.String(), errs.String(), run
	}
	_, _, _, well := search(t, func(int32) bool { return false })
	first := map[string]int32{} // point of each stage
	for i := range well.Points {
		if stage := well.Points[i].Stage; first[stage] == 0 {
			first[stage] = int32(i)
		}
	}
	if well.Capacity.Load == nil || first["verifying"] == 0 {
		t.Fatalf("%+v, %v", well.Capacity, first)
	}
	for name, c := range map[string]struct {
		late func(point int32) bool
		code int
		says string
	}{
		"one that shows the way, and the one to quote": {func(point int32) bool { return point == 2 || point == first["verifying"]+1 }, Done, "2 windows were INVALID (send lag): nothing rests on that"},
		"from the second load on":                      {func(point int32) bool { return point > 0 }, Invalid, "windows from 250 on were INVALID: they say nothing of the target"},
		// A load that is far too high is well measured all the same: that bounds the capacity,
		// and tells nothing of lighter ones.
		"always": {func(int32) bool { return true }, Done, "capacity: at most 500.0 req/s within the SLO (95 % sure)"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr, run := search(t, c.late)
			text := strings.Join(strings.Fields(stdout), " ")
			if code != c.code || !strings.Contains(text, c.says) {
				t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
			}
			if !strings.Contains(stderr, "INVALID: it does not count") {
				t.Errorf("%s", stderr)
			}
			if strings.Contains(text, "no load met it") || strings.Contains(text, "at 18 loads") {
				t.Errorf("%s", stdout)
			}
			claims := run.Capacity.Load != nil
			if claims != (c.code == Done && name != "always") || claims && *run.Capacity.Load > *well.Capacity.Bracket[1] {
				t.Errorf("%+v", run.Capacity)
			}
		})
	}
}
