package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pitot/internal/results/result"
)

// A metric of 40 ms that goes to 100 ms at 10 s, over 300 ms for 2 s, and back at 20 s.
func TestReactions(t *testing.T) {
	var list []timed
	for i := range 3000 {
		at := float64(i) / 100
		ms := 40.
		switch {
		case at >= 10 && at < 12:
			ms = 300
		case at >= 12 && at < 20:
			ms = 100
		}
		list = append(list, timed{due: int64(5e9 + at*1e9), ns: ms * 1e6 * (1 + .05*math.Sin(float64(i)))})
	}
	got := rateReactions(list, []float64{10, 20, 99}, 5e9, 35e9)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	near := func(x *float64, want, within float64) bool { return x != nil && math.Abs(*x-want) <= within }
	if r := got[0]; r.AtS != 10 || !near(r.Before, 40, 2) || !near(r.After, 100, 5) || !near(r.Peak, 300, 20) || !near(r.SettledS, 2, .1) {
		t.Errorf("%+v", r)
	}
	if r := got[1]; r.AtS != 20 || !near(r.Before, 100, 5) || !near(r.After, 40, 2) || !near(r.SettledS, 0, .1) {
		t.Errorf("%+v", r)
	}
	for i := range list { // a queue that grows has no level
		list[i].ns = 1e6 * float64(1+i*i/1000)
	}
	if r := rateReactions(list, []float64{10}, 5e9, 35e9)[0]; r.SettledS != nil {
		t.Errorf("settled after %g s", *r.SettledS)
	}
}

// A window of an hour has the time of day, and says when the server was slower: here twice as
// slow from 12:30 to 12:45; not what a long one says of a server that is always alike, nor
// where requests were longer then.
func TestTimeOfDay(t *testing.T) {
	for name, c := range map[string]struct {
		slower, longer bool
		differ         []string
		untold         result.ReasonCode
	}{
		"alike":           {},
		"slower":          {slower: true, differ: []string{"ttft", "tpot"}},
		"longer requests": {slower: true, longer: true, untold: result.RequestsDiffer},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := window(3600)
		s.Began, s.Residence, s.Load.Loop = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 300*ms, "open"
		f := NewFold(s)
		for id := range int64(1200) {
			due := 3000 * id
			slow, prompt := 1., int32(100)
			if due >= 1_800_000 && due < 2_700_000 {
				if c.slower {
					slow = 2
				}
				if c.longer {
					prompt = 300
				}
			}
			at := []int64{due + int64(slow*(80+40*rng.Float64())), 0}
			at[1] = at[0] + int64(slow*(150+20*rng.Float64()))
			fr := answer{id: id, due: due, stamps: at, tokens: []int32{1, 10}, usage: 11, first: 1}.frame()
			fr.Rows[0].PromptTokens = prompt
			f.Add(fr)
		}
		p := f.Point()
		o := p.OverTime
		if o == nil || len(o.Blocks) != 12 || o.BlockS != 300 || o.Began != "2026-11-20T12:00:00Z" || o.Metric != "ttft" || o.Every != 0 {
			t.Fatalf("%s: %+v", name, o)
		}
		var differ []string
		for _, d := range o.Differ {
			differ = append(differ, d.Metric)
			if d.Slowest < 6 || d.Slowest > 8 || d.Quickest >= 6 && d.Quickest <= 8 {
				t.Errorf("%s: %s slowest in block %d, quickest in %d", name, d.Metric, d.Slowest, d.Quickest)
			}
		}
		if !slices.Equal(differ, c.differ) || o.Unknown.Code != c.untold {
			t.Errorf("%s: %v differ, untold %q", name, differ, o.Unknown.Code)
		}
		if b := o.Blocks[7]; b.P95 != nil || b.TPOT == nil || b.Max == nil || c.slower != (*b.P50 > 150) || b.DuePerS < .33 || b.DuePerS > .34 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}
