package session

import (
	"strings"
	"testing"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/config"
)

// toldView keeps what a sweep says.
type toldView struct {
	unseen
	lines []string
}

func (v *toldView) ShowLine(line string) { v.lines = append(v.lines, line) }

// A sweep ends within its budget with the loads that it has, and says beforehand how long it takes.
func TestSweepWithinItsBudget(t *testing.T) {
	for _, c := range []struct {
		args, budget string
		points       int
		lines        []string
		err          string
	}{
		{"--loads 5,10,20,40", "3m", 4, []string{"4 loads within 3 min: about 45 s each, with warm-up"}, ""},
		{"--loads 5,10,20,40 --duration 30s", "100s", 3, []string{"loads of about 31 s with warm-up, within 100 s: about 3 of 4", "the budget is spent: 3 loads measured"}, ""},
		{"--loads 5,10", "5m", 2, nil, ""},
		{"--loads 5 --duration 1m", "30s", 0, nil, "--budget 30 s is too short for one load"},
	} {
		p, _, err := config.Decode(config.VerbSweep, strings.Fields("sim:fixed?ttft=50ms&itl=10ms --output 16 --input 16 --seed 1 "+c.args+" --budget "+c.budget+" --out "+t.TempDir()+"/run"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r := Runner{Verb: config.VerbSweep}
		s, err := r.Open(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		v := &toldView{}
		loads := capacity.NewLoads(capacity.LoadsConfig{Given: p.Loads, Points: p.Points, Residence: .2, Seed: 1})
		failed := NewSearcher(s, nil, false, v).Sweep(t.Context(), loads)
		measured, err := s.Close(false, failed)
		if c.err != "" {
			if failed == nil || failed.Error() != c.err {
				t.Errorf("%s: %v", c.args, failed)
			}
			continue
		}
		if failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		var took float64
		for i := range measured.Points {
			x := measured.Points[i].Seconds
			took += x.Warmup + x.Window + x.Drain
		}
		if n := len(measured.Points); n != c.points || took > p.Budget.Seconds() {
			t.Errorf("%s: %d loads in %v", c.args, n, time.Duration(took*1e9))
		}
		for _, want := range c.lines {
			if !strings.Contains(strings.Join(v.lines, "\n")+"\n", want+"\n") {
				t.Errorf("%s: %q is missing of %q", c.args, want, v.lines)
			}
		}
	}
}
