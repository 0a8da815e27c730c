package choose

import (
	"context"
	"math"
	"testing"
	"time"

	"pitot/internal/plan"
	"pitot/internal/twin/deploy"
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
			w := wanted(t, "p95 ttft<100ms", 0, "l4")
			law, err := plan.Arrivals("poisson")
			if err != nil {
				t.Fatal(err)
			}
			lengths := func(text string) workload.Lengths {
				l, err := workload.ParseLengths(text)
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			think, err := workload.ParsePause("lognormal(2s,1s)")
			if err != nil {
				t.Fatal(err)
			}
			w.Ask.Turns, w.Ask.TurnInput, w.Ask.Think = lengths("uniform(2,12)"), lengths("60"), think
			s, done, err := converse(w.Ask, law)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			d, err := deploy.Parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			claims, err := w.claims()
			if err != nil {
				t.Fatal(err)
			}
			request, serves := s.request(d, c.rate)
			if !serves {
				t.Fatal("more than is served")
			}
			arrivals, err := law.Process(c.rate, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			u, err := s.underWay(arrivals, c.rate, request)
			if err != nil {
				t.Fatal(err)
			}
			if want := c.rate * (s.lasts(request) - request); math.Abs(float64(len(u.begun))-want) > 5*math.Sqrt(want) {
				t.Errorf("%d conversations go on, about %.0f should", len(u.begun), want)
			}
			var took, tpot [2]float64
			for i, endless := range []bool{true, false} {
				s.talks.endless = endless
				e := effort{count: 3000, within: 1.1}
				x, err := s.hold(context.Background(), d, claims, c.rate, 1, &e)
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

func seconds(x float64) time.Duration { return time.Duration(x * 1e9) }
