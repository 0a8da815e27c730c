package explain

import (
	"math"
	"math/rand/v2"
	"testing"
)

// How a gap lies to prompts is what a look at each request says.
func TestPromptsBeside(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var list []Request
		for range 40 {
			sent := 100 * rng.Float64()
			r := Request{Sent: sent, First: sent + rng.ExpFloat64()}
			switch rng.IntN(20) {
			case 0:
				r.First = math.NaN() // was never answered
			case 1:
				r.Sent, r.First = math.NaN(), math.NaN()
			}
			list = append(list, r)
		}
		p := promptsOf(list)
		for i := range list {
			r := &list[i]
			if math.IsNaN(r.First) {
				continue
			}
			from := r.First + rng.ExpFloat64()
			gap := span{from, from + rng.ExpFloat64()}
			length := gap.to - gap.from
			was, by := 0.0, 0.0
			for k := range list {
				x := &list[k]
				if k == i || math.IsNaN(x.First) {
					continue
				}
				if x.Sent <= gap.from+0.1*length && x.First >= gap.to-0.1*length {
					was = 1
				}
				by += max(x.First-x.Sent-0.8*length, 0) / 100
			}
			gotWas, gotBy := p.besidePrompt(r, gap, 100)
			if gotWas != was || math.Abs(gotBy-(1-math.Exp(-by))) > 1e-9 {
				t.Fatalf("request %d: %v and %v, by a look at each %v and %v", i, gotWas, gotBy, was, 1-math.Exp(-by))
			}
		}
	}
}
