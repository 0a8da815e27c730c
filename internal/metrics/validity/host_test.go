package validity

import (
	"testing"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// A response of tokens without text is counted; one that was simulated has none to count.
func TestTextlessResponses(t *testing.T) {
	for stamps, want := range map[string]int{"kernel": 1, "virtual": 0} {
		p := &Probe{conditions: &Conditions{Stamps: stamps}}
		for _, text := range []int64{0, 5} {
			r := record.BlankRow()
			r.CompletionTokens, r.TextBytes = 1, text
			p.Row(&r, 0)
		}
		if p.textless != want {
			t.Errorf("%s: %d", stamps, p.textless)
		}
	}
}

// A stream has no more events of text than tokens, but for a few.
func TestEventsOfText(t *testing.T) {
	for _, c := range []struct {
		chunks, tokens, hidden int32
		want                   int
	}{{20, 20, 0, 0}, {24, 20, 0, 0}, {40, 20, 0, 1}, {40, 60, 40, 1}, {40, -1, 0, 0}} {
		p := &Probe{conditions: &Conditions{}}
		r := record.BlankRow()
		r.Stream, r.Chunks, r.CompletionTokens, r.HiddenTokens, r.FirstToken = true, c.chunks, c.tokens, c.hidden, 1
		p.Row(&r, 0)
		if p.overfull != c.want {
			t.Errorf("%+v: %d", c, p.overfull)
		}
	}
}

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
		blameHost(checks)
		if blamed := checks[0].Case == result.CaseHost; blamed != c.blamed {
			t.Errorf("host %s, lag %s: %+v", c.host, c.lag, checks[0])
		}
	}
}
