package choose

import (
	"context"
	"math"
	"testing"
	"time"

	"pitot/internal/config"
	"pitot/internal/sim/deploy"
	"pitot/internal/slo"
	"pitot/internal/workload"
)

// As many conversations are under way at the beginning as come in the time that one lasts (Little),
// and what is measured soon after is what a load comes to that begins with none.
func TestUnderWay(t *testing.T) {
	for _, c := range []struct {
		spec string
		rate float64
	}{
		{"llama-3.1-8b@l4", 4},
		{"llama-3.1-8b@l4?engine=sglang", 4},
	} {
		t.Run(c.spec, func(t *testing.T) {
			s, d, claims := talking(t, "p95 ttft<100ms", c.spec, "l4", "uniform(2,12)", "60", "lognormal(2s,1s)", func(*config.Ask) {})
			arrivals, err := s.law.NewProcess(c.rate, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			request, serves := s.requestTime(d, c.rate)
			if !serves {
				t.Fatal("more than is served")
			}
			u, err := s.underWay(arrivals, c.rate, request, false)
			if err != nil {
				t.Fatal(err)
			}
			if want := c.rate * (s.totalDuration(request) - request); math.Abs(float64(len(u.begun))-want) > 5*math.Sqrt(want) {
				t.Errorf("%d conversations go on, about %.0f should", len(u.begun), want)
			}
			var took, tpot [2]float64
			for i, endless := range []bool{true, false} {
				s.talks.endless = endless
				e := effort{count: 3000, within: 1.1}
				x, err := s.serveConversations(context.Background(), d, claims, c.rate, 1, &e)
				if err != nil {
					t.Fatal(err)
				}
				took[i], tpot[i] = x.took, x.TPOT
			}
			if math.Abs(took[0]/took[1]-1) > .08 || math.Abs(tpot[0]/tpot[1]-1) > .08 {
				t.Errorf("a request takes %v and a token %v; from the beginning %v and %v", seconds(took[0]), seconds(tpot[0]), seconds(took[1]), seconds(tpot[1]))
			}
		})
	}
}

// In a close look as many are under way as in few loads, of a light load too, where most times as
// long as a conversation lasts have none; and they are of all ages.
func TestCrowded(t *testing.T) {
	s, d, _ := talking(t, "p95 ttft<100ms", "llama-3.1-8b@l4", "l4", "uniform(2,12)", "60", "lognormal(2s,1s)", func(*config.Ask) {})
	for _, rate := range []float64{0.0005, 0.05, 4} {
		arrivals, err := s.law.NewProcess(rate, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		request, _ := s.requestTime(d, rate)
		u, err := s.underWay(arrivals, rate, request, true)
		if err != nil {
			t.Fatal(err)
		}
		usual := rate * (s.totalDuration(request) - request)
		if n := float64(len(u.begun)); n < usual+2*math.Sqrt(usual) || n > usual+2*math.Sqrt(usual)+1 {
			t.Errorf("at %v/s %v go on, where %.3g are usual", rate, n, usual)
		}
	}
}

// More than seems to be served begins with those that would be under way at the most that is. Runs
// of twenty minutes that begin with nothing come to it after four: the cache holds no longer what
// all of them said, ever more is computed again, and the queue never ends. They hold at 2.7 and not
// at 3.0.
func TestForgotten(t *testing.T) {
	s, d, claims := talking(t, "p90 ttft<500ms, p90 tpot<50ms", "qwen3-8b@h100?max_num_seqs=128&max_num_batched_tokens=4096", "h100", "uniform(2,8)", "lognormal(300,400)", "2s", func(ask *config.Ask) {
		ask.Input, ask.Output, ask.System = lengths(t, "lognormal(600,500)"), lengths(t, "lognormal(300,200)"), 500
	})
	if request, serves := s.requestTime(d, 3.2); serves || request > 20 {
		t.Errorf("a request takes %v, served: %v", seconds(request), serves)
	}
	for _, c := range []struct {
		rate float64
		met  bool
	}{{2.5, true}, {3.2, false}} {
		e := s.refinedEffort(lookedClosely, 1.06)
		x, err := s.serveConversations(context.Background(), d, claims, c.rate, 1, &e)
		if err != nil {
			t.Fatal(err)
		}
		if _, times := x.worstClaim(); times < 1 != c.met {
			t.Errorf("%v/s: %.2f times the limit", c.rate, times)
		}
	}
}

// Where all pauses are alike a load that an engine serves for long goes over to waves after a
// burst, and stays there; a close look says so, and a look that no burst comes into does not. Where
// pauses differ there are none. Runs of 25 minutes that begin with nothing say the same of 34 and
// 43/s.
func TestWaves(t *testing.T) {
	for _, c := range []struct {
		think string
		rate  float64
		close bool
		met   bool
	}{
		{"2s", 34, true, true},
		{"2s", 43, true, false},
		{"2s", 43, false, true},
		{"lognormal(2s,1s)", 43, true, true},
	} {
		s, d, claims := talking(t, "p99 ttft<300ms", "llama-3.1-8b@h100", "h100", "4", "50", c.think, func(ask *config.Ask) {
			ask.Input, ask.Output, ask.System = lengths(t, "200"), lengths(t, "32"), 500
		})
		e := s.effort(400, 1.1)
		e.close = c.close
		x, err := s.serveConversations(context.Background(), d, claims, c.rate, 1, &e)
		if err != nil {
			t.Fatal(err)
		}
		if _, times := x.worstClaim(); times < 1 != c.met {
			t.Errorf("pauses of %s, %v/s, closely %v: %.2f times the limit", c.think, c.rate, c.close, times)
		}
	}
}

// talking is conversations of so many turns, and who they are put to.
func talking(t *testing.T, limits, spec, gpu, turns, later, think string, more func(*config.Ask)) (*schedule, *deploy.Deployment, []slo.Claim) {
	w := wanted(t, limits, 0, gpu)
	pause, err := workload.ParsePause(think)
	if err != nil {
		t.Fatal(err)
	}
	w.Ask.Turns, w.Ask.TurnInput, w.Ask.Think = lengths(t, turns), lengths(t, later), pause
	more(w.Ask)
	law, err := config.ReadArrivals("poisson")
	if err != nil {
		t.Fatal(err)
	}
	s, done, err := drawConversations(w.Ask, law)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	d, err := deploy.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := w.claims()
	if err != nil {
		t.Fatal(err)
	}
	return s, d, claims
}

func lengths(t *testing.T, text string) workload.Lengths {
	l, err := workload.ParseLengths(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func seconds(x float64) time.Duration { return time.Duration(x * 1e9) }
