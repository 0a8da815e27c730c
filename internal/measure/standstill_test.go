package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/record"
	"pitot/internal/result"
)

// stoodStill measures requests of 50 tokens, one each 10 ms, sent at a rate; stop
// holds back whatever would come at a time.
func stoodStill(rate float64, seconds int, seed uint64, stop func(t int64) int64) *result.Standstills {
	f := NewFold(Setup{T0: 0, T1: int64(seconds) * 1e9, Load: result.Load{Loop: "closed"}})
	rng := rand.New(rand.NewPCG(seed, 1))
	var fr record.Frame
	at := 0.0
	for id := int64(0); ; id++ {
		at += rng.ExpFloat64() / rate
		sent := int64(at * 1e9)
		if sent >= int64(seconds)*1e9 {
			break
		}
		r := record.Row{ID: id, Due: sent, Eligible: sent, Ready: sent, Sent: sent, Stream: true, Outcome: record.OK, CompletionTokens: 50, FirstAnswer: record.Unset}
		for i := range int64(50) {
			t := stop(sent + 30e6 + i*10e6)
			if i == 0 {
				r.FirstToken = t
			}
			r.LastToken = t
			fr.Chunks = append(fr.Chunks, record.Chunk{Request: id, T: t, Earliest: t, Tokens: 1})
		}
		r.Done, r.FirstAnswer = r.LastToken, r.FirstToken
		fr.Rows = append(fr.Rows, r)
	}
	f.Add(fr)
	return f.Point().Standstills
}

// each stops everything for so long, again and again.
func each(period, length int64) func(int64) int64 {
	return func(t int64) int64 {
		if from := t / period * period; t-from < length {
			return from + length
		}
		return t
	}
}

// A pause by the clock is found, with its period and its length.
func TestStandstills(t *testing.T) {
	for _, c := range []struct{ every, length, rate float64 }{{1, .05, 4}, {1, .05, 1}, {.5, .06, 4}, {3.7, .2, 1.5}, {1, .05, 10}} {
		s := stoodStill(c.rate, 60, 1, each(int64(c.every*1e9), int64(c.length*1e9)))
		if s == nil {
			t.Errorf("%+v: not found", c)
			continue
		}
		if math.Abs(s.EveryS-c.every) > .02*c.every || math.Abs(s.ForMS-1e3*c.length) > 12 || s.N < leastStands {
			t.Errorf("%+v: %+v", c, *s)
		}
	}
}

// Without one, and with pauses that come by chance, nothing is said.
func TestNoStandstills(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() { // the race detector is slow
		seeds = 4
	}
	for seed := range seeds {
		if s := stoodStill(1+float64(seed%10), 60, seed, func(t int64) int64 { return t }); s != nil {
			t.Errorf("seed %d: %+v of a steady server", seed, *s)
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		var pauses []int64
		for at := 0.0; at < 70; at += rng.ExpFloat64() {
			pauses = append(pauses, int64(at*1e9))
		}
		irregular := func(t int64) int64 {
			for _, p := range pauses {
				if t >= p && t < p+60e6 {
					t = p + 60e6
				}
			}
			return t
		}
		if s := stoodStill(3, 60, seed, irregular); s != nil {
			t.Errorf("seed %d: %+v of pauses by chance", seed, *s)
		}
	}
}

// A stamp far outside takes no memory.
func TestArrivalsAreBounded(t *testing.T) {
	var a arrivals
	a.add(math.MaxInt64)
	a.add(-1)
	if len(a.bins) > 0 || len(a.silences(math.MaxInt)) > 0 {
		t.Errorf("%d words", len(a.bins))
	}
}
