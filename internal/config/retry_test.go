package config

import (
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "2": "2", " 2,exponential(500ms,8s)": "2", "3,Exponential(1s, 20s)": "3,exponential(1s,20s)",
		"3,constant(0s)": "3,constant(0s)", "1,constant(1500ms)": "1,constant(1.5s)",
	} {
		r, err := ParseRetry(in)
		if err != nil || r.String() != want {
			t.Errorf("%q: %v, %v", in, r, err)
		}
		if again, err := ParseRetry(r.String()); err != nil || again != r {
			t.Errorf("%q: %v, %v", r.String(), again, err)
		}
	}
	for _, in := range []string{"", "-1", "x", "101", "0,constant(1s)", "2,", "2,constant", "2,constant(1s", "2,constant(1s,2s)", "2,exponential(8s,1s)", "2,exponential(0s,1s)", "2,linear(1s,2s)", "2,constant(-1s)", "2,constant(1s)x"} {
		if r, err := ParseRetry(in); err == nil {
			t.Errorf("%q is %v", in, r)
		}
	}
}

// The waits of OpenAI's clients: 0.5 s doubled, less up to a quarter of it; what the
// server asks for up to two minutes, and no retry beyond.
func TestRetryWaits(t *testing.T) {
	r, _ := ParseRetry("9")
	for _, c := range []struct {
		earlier int
		asked   time.Duration
		draw    float64
		want    time.Duration
		ok      bool
	}{
		{0, 0, 0, 500 * time.Millisecond, true},
		{1, 0, 1, 750 * time.Millisecond, true},
		{8, 0, 0, 8 * time.Second, true},
		{9, 0, 0, 0, false},
		{0, 3 * time.Second, .7, 3 * time.Second, true},
		{0, 3 * time.Minute, .7, 0, false},
	} {
		if got, ok := r.Wait(c.earlier, c.asked, c.draw); got != c.want || ok != c.ok {
			t.Errorf("%+v: %v %v", c, got, ok)
		}
	}
}
