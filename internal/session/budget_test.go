package session

import (
	"testing"
	"time"
)

// A budget that a hint names is one that --budget takes, and no shorter than was asked for.
func TestGivenBudget(t *testing.T) {
	for seconds, want := range map[float64]string{1: "10s", 40: "40s", 75.2: "1m20s", 111: "2m", 3595: "1h", 3601: "1h1m", 4200: "1h10m"} {
		got := givenBudget(seconds)
		if d, err := time.ParseDuration(got); got != want || err != nil || d.Seconds() < seconds {
			t.Errorf("%v s: %s, want %s (%v)", seconds, got, want, err)
		}
	}
}
