package metrics

import (
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// closedLoop are the rows of users who each ask again when they have their
// answer, and begin so far apart.
func closedLoop(users int, apart, takes, window int64) (rows []record.Row) {
	for u := range users {
		for t := int64(u) * apart; t < window; t += takes {
			r := record.BlankRow()
			r.ID, r.Due, r.Eligible, r.Ready, r.Sent = int64(len(rows)), t, t, t, t
			r.LastToken, r.Done = t+takes, t+takes
			rows = append(rows, r)
		}
	}
	return rows
}

func TestLockStep(t *testing.T) {
	const users, takes, window = 16, 1e9, 20e9
	for _, c := range []struct {
		users int
		apart int64
		loop  string
		want  string
	}{
		{users, takes / users, "closed", "pass"},
		{users, takes / users / 8, "closed", "flag"},
		{users, 0, "closed", "flag"},
		{users, 0, "open", ""},
		{4, 0, "closed", ""}, // too few to tell
	} {
		f := NewFold(Setup{T1: window, Residence: takes, Stamps: "virtual", Load: result.Load{Loop: c.loop, Concurrency: &c.users}})
		f.Add(record.Frame{Rows: closedLoop(c.users, c.apart, takes, window)})
		got := ""
		for _, check := range f.Point().Checks {
			if check.Name == "lock-step" {
				got = string(check.Status)
			}
		}
		if got != c.want {
			t.Errorf("%d users of a %s loop, %d ns apart: %q, want %q", c.users, c.loop, c.apart, got, c.want)
		}
	}
}
