package judge

import (
	"testing"

	"pitot/internal/data/result"
	_ "pitot/internal/rapidtest" // the same draws each time
)

// A busy machine is named as the cause of merged chunks only where the client was late too.
func TestBlame(t *testing.T) {
	for _, c := range []struct {
		host, lag result.Status
		blamed    bool
	}{
		{host: result.Flag, lag: result.Pass, blamed: false},
		{host: result.Flag, lag: result.Flag, blamed: true},
		{host: result.Pass, lag: result.Flag, blamed: false},
	} {
		checks := []result.Check{{Name: result.CheckMerged, Status: result.Flag}, {Name: result.CheckSendLag, Status: c.lag}, {Name: result.CheckHost, Status: c.host}}
		blame(checks)
		if blamed := checks[0].Case == result.CaseHost; blamed != c.blamed {
			t.Errorf("host %s, lag %s: %+v", c.host, c.lag, checks[0])
		}
	}
}
