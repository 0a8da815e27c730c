package workload

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

func mustLengths(t testing.TB, s string) Lengths {
	l, err := ParseLengths(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func conversations(t testing.TB, change func(*ConversationConfig)) *Conversations {
	first, err := NewRandom(RandomConfig{Input: mustLengths(t, "uniform(20,90)"), Output: mustLengths(t, "uniform(5,9)"), Seed: 3, Nonce: 4})
	if err != nil {
		t.Fatal(err)
	}
	c := ConversationConfig{
		First: first, Turns: mustLengths(t, "uniform(1,7)"), Input: mustLengths(t, "uniform(3,30)"), Output: mustLengths(t, "uniform(2,12)"),
		Think: Pause{uniformPause, time.Second, 3 * time.Second}, System: 64, Seed: 3, Nonce: 4,
	}
	if change != nil {
		change(&c)
	}
	v, err := NewConversations(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// words are how many the segments of a prompt have.
func words(r *Request) (n int) {
	for _, m := range r.Messages {
		for _, s := range m.Segments {
			n += s.Words
		}
	}
	return n
}

// A turn begins with the turn before it, its answer, and adds a message; it is as long as
// its words are, and says how much of it was there before.
func TestConversationsGrow(t *testing.T) {
	v, turns := conversations(t, nil), 0
	for s := range int64(200) {
		var before Request
		item, following := s, true
		for following {
			r, err := v.At(item)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := v.At(item)
			if d := cmp.Diff(r, again); d != "" {
				t.Fatalf("item %d, asked twice:\n%s", item, d)
			}
			session, turn := SplitItem(item)
			if r.ID != item || r.Session != s || session != s || r.Turn != turn || r.Input != words(&r) {
				t.Fatalf("item %d of session %d is %+v", item, s, r)
			}
			if turn == 0 {
				if r.History != 0 || r.Messages[0].Role != "system" || r.Messages[0].Segments[0].Words != 64 {
					t.Fatalf("session %d begins with %+v", s, r)
				}
			} else {
				n := len(before.Messages)
				if d := cmp.Diff(before.Messages, r.Messages[:n]); d != "" || len(r.Messages) != n+2 {
					t.Fatalf("item %d does not go on from the turn before:\n%s", item, d)
				}
				answer := r.Messages[n].Segments[0]
				if r.Messages[n].Role != "assistant" || !answer.Served || answer.Item != before.ID || answer.Words != before.Output || r.History != before.Input+before.Output {
					t.Fatalf("item %d repeats %+v, with %d tokens of history after %+v", item, answer, r.History, before)
				}
			}
			turns++
			if next := v.Follow(item, false); next != nil {
				t.Fatalf("item %d was not answered, and then comes %+v", item, next)
			}
			next := v.Follow(item, true)
			if following = len(next) == 1; following {
				if next[0].After < time.Second || next[0].After > 3*time.Second {
					t.Fatalf("a pause of %s", next[0].After)
				}
				item, before = next[0].Item, r
			} else if r.Turn+1 != r.Turns {
				t.Fatalf("session %d ends after turn %d of %d", s, r.Turn, r.Turns)
			}
		}
	}
	said, _ := TurnMoments(v.config.Turns, v.config.SubAgents)
	if mean := float64(turns) / 200; math.Abs(mean-said) > 0.5 || said != 4 {
		t.Errorf("%.2f turns on average, said to be %.2f", mean, said)
	}
}

// What a template adds is part of the lengths that were asked for.
func TestConversationsCalibrated(t *testing.T) {
	c := Calibration{Overhead: 10, PerWord: 1, Turn: 6, System: 4}
	first, err := NewRandom(RandomConfig{Input: FixedLength(100), Output: FixedLength(20), Calibration: c})
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewConversations(ConversationConfig{First: first, Turns: FixedLength(3), Input: FixedLength(50), Output: FixedLength(30), System: 64, Calibration: c})
	if err != nil {
		t.Fatal(err)
	}
	for turn, want := range []struct{ words, input int }{{60 + 90, 164}, {60 + 90 + 20 + 44, 164 + 70}, {60 + 90 + 20 + 44 + 30 + 44, 164 + 70 + 80}} {
		if r, _ := v.At(TurnItem(5, int32(turn))); r.Input != want.input || words(&r) != want.words {
			t.Errorf("turn %d: %d tokens planned of %d words, want %d of %d", turn, r.Input, words(&r), want.input, want.words)
		}
	}
}

func TestTurnItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, k := rapid.Int64Range(0, 1<<32-1).Draw(t, "session"), rapid.Int32Range(0, math.MaxInt32-1).Draw(t, "turn")
		if session, turn := SplitItem(TurnItem(s, k)); session != s || turn != k || TurnItem(s, 0) != s {
			t.Fatalf("%d, %d comes back as %d, %d", s, k, session, turn)
		}
	})
}

func TestPauses(t *testing.T) {
	for written, want := range map[string]struct{ mean, sd float64 }{
		"5s": {5, 0}, "0s": {0, 0}, "uniform(1s,10s)": {5.5, 9 / math.Sqrt(12)}, "exponential(10s)": {10, 10}, "lognormal(45s,40s)": {45, 40}, " Uniform( 1s , 1s ) ": {1, 0},
	} {
		p, err := ParsePause(written)
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if again, err := ParsePause(p.String()); err != nil || again != p {
			t.Errorf("%s is written %s, which is %v, %v", written, p, again, err)
		}
		const n = 200_000
		var sum, squares float64
		for i := range n {
			x := p.Draw(uint64(float64(i)+0.5) * (math.MaxUint64 / n)).Seconds()
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		sd := math.Sqrt(max(squares/n-mean*mean, 0))
		if math.Abs(mean-want.mean) > 0.01*want.mean || math.Abs(sd-want.sd) > 0.03*want.sd+1e-3 || math.Abs(p.Mean().Seconds()-want.mean) > 1e-9 {
			t.Errorf("%s: mean %.3f and %s, standard deviation %.3f, want %.3f and %.3f", written, mean, p.Mean(), sd, want.mean, want.sd)
		}
	}
	for _, bad := range []string{"", "5", "-1s", "uniform(1s)", "uniform(2s,1s)", "exponential(1s,2s)", "lognormal(0s,1s)", "normal(1s,1s)", "uniform(1s,2s", "1e9h", "exponential(9999999h)"} {
		if p, err := ParsePause(bad); err == nil {
			t.Errorf("%q is read as %s", bad, p)
		}
	}
}

func FuzzPause(f *testing.F) {
	for _, s := range []string{"5s", "uniform(1s,10s)", "exponential(10s)", "lognormal(45s,40s)", "lognormal(1ns,8760h)"} {
		f.Add(s, uint64(1)<<63)
	}
	f.Fuzz(func(t *testing.T, s string, u uint64) {
		p, err := ParsePause(s)
		if err != nil {
			return
		}
		if d := p.Draw(u); d < 0 || d > LongestPause {
			t.Errorf("%s draws %s", p, d)
		}
		if again, err := ParsePause(p.String()); err != nil || again != p {
			t.Errorf("%s comes back as %v, %v", p, again, err)
		}
	})
}
