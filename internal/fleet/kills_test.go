//go:build !nofleet && (linux || darwin)

package fleet

import (
	"errors"
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/run"
)

var kills = flag.Int("kills", 0, "how many runs TestRandomKills kills a worker of, at random moments")

// Whenever a worker is killed, all that its own file holds whole is in the run, once, and what
// was due is accounted for.
//
//	go test ./internal/fleet -run RandomKills -kills 200 -timeout 30m
func TestRandomKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("for -kills N")
	}
	kept, made := 0, 0
	for i := range *kills {
		t.Run("", func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			c, workers := processes(t, 2)
			runner := run.Runner{Version: version, Crew: c}
			p := planned(t, "--rate", "400", "--duration", "1s", "--warmup", "0s", "--seed", "7")
			*p.ITL = time.Duration(1+r.IntN(20)) * time.Millisecond
			go c.when(time.Duration(r.Int64N(1100))*time.Millisecond, syscall.SIGKILL)
			got, out, err := runner.Run(bounded(t), p)
			if lost := (*run.LostError)(nil); err != nil && !errors.As(err, &lost) {
				t.Fatal(err)
			}
			q := got.Points[0].Requests
			if n := arrivals(t, 400, 7, got.Points[0].Seconds.Window); q.OK+q.Failed+q.Cut+q.Unsent != q.Due || q.Due+q.LostWithWorker != n {
				t.Errorf("%+v, %d were due", q, n)
			}
			rows, _ := sent(t, out)
			own := map[int64]bool{} // of the run, that were recorded
			for i, row := range rows {
				if i > 0 && rows[i-1].ID == row.ID {
					t.Errorf("request %d is there twice", row.ID)
				}
				if made++; row.Error != record.ErrWorkerLost {
					made--
					own[row.ID] = true
				}
			}
			for _, w := range workers {
				for f, err := range record.Frames(w.Dir) {
					if err != nil {
						break // torn
					}
					for k := range f.Rows {
						if kept++; !own[f.Rows[k].ID] {
							t.Errorf("request %d was recorded and is not in the run", f.Rows[k].ID)
						}
					}
				}
			}
		})
	}
	t.Logf("%d kills: %d rows that workers had recorded are all there once, %d were made for what was lost", *kills, kept, made)
}
