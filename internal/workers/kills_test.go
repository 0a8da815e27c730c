//go:build linux || darwin

package workers

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
)

var kills = flag.Int("kills", 0, "how many runs TestRandomKills kills a worker of, at random moments")

// Whenever a worker is killed, all that its own file holds whole is in the run, once, and what
// was due is accounted for. Of one on another machine, every second one here, whose file nobody
// can read, that is what the bus had taken: no less, and nothing twice.
//
//	go test ./internal/workers -run RandomKills -kills 200 -timeout 60m
func TestRandomKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("for -kills N")
	}
	kept, made := 0, 0
	for i := range *kills {
		t.Run("", func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			var away []string // whose end nobody sees
			if i%2 == 1 {
				away = []string{elsewhere}
			}
			c, workers := processes(t, 2, away...)
			c.late = 5 * time.Second
			runner := session.Runner{Version: version, Crew: c}
			p := planned(t, "--rate", "400", "--duration", "1s", "--warmup", "0s", "--seed", "7")
			p.Spec = fmt.Sprintf("mock:fixed?ttft=5ms&itl=%dms", 1+r.IntN(20))
			go c.when(time.Duration(r.Int64N(1100))*time.Millisecond, syscall.SIGKILL)
			got, out, err := runner.Run(bounded(t), p)
			if lost := (*session.LostError)(nil); err != nil && !errors.As(err, &lost) {
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
			had := 0 // of them, by the files
			for _, w := range workers {
				upTo := int64(math.MaxInt64) // of the file, that the run has to have
				if m := c.members[c.rankOf(w)]; away != nil && m.lost != nil {
					upTo = m.home
				}
				for _, id := range rowsOf(t, w.Dir, upTo) {
					if had++; !own[id] {
						t.Errorf("request %d was recorded and is not in the run", id)
					}
				}
			}
			if kept += had; had != len(own) {
				t.Errorf("the run has %d requests that workers recorded, their files %d", len(own), had)
			}
		})
	}
	t.Logf("%d kills: %d rows that workers had recorded are all there once, %d were made for what was lost", *kills, kept, made)
}

// rowsOf are the requests of the whole frames within so many bytes of a worker's file.
func rowsOf(t *testing.T, dir string, upTo int64) (ids []int64) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	is, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := record.ReadSealed(file, 0, min(upTo, is.Size()), math.MaxInt)
	if err != nil || whole == nil {
		return nil // torn, or killed before it wrote any
	}
	alone := t.TempDir()
	if err := os.WriteFile(filepath.Join(alone, rundir.Journal), whole, 0o644); err != nil {
		t.Fatal(err)
	}
	for f, err := range record.Frames(alone) {
		if err != nil {
			t.Fatal(err)
		}
		for k := range f.Rows {
			ids = append(ids, f.Rows[k].ID)
		}
	}
	return ids
}
