package report

import (
	"bytes"
	"strings"
	"testing"

	"pitot/internal/experiment"
)

// A stored record is worded, held against itself and put in a trend.
func TestStoredRecord(t *testing.T) {
	r, err := experiment.ReadRecord("../experiment/testdata/v1")
	if err != nil {
		t.Fatal(err)
	}
	r.Since = experiment.CompareRecords("last", r, r)
	r.Since.Worse, r.Since.Lines[0].Verdict = 1, experiment.Worse
	r.Trend = experiment.TrendOf([]string{"a", "b"}, []*experiment.Record{r, r})
	var md, text bytes.Buffer
	m := BuildDecision(r)
	if err := m.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteTerminal(&text, Style{Full: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Keep the baseline", "## Since the record of 20", "worse", "## The last records", "four records", "## Environment", "times its floor", "from the record alone"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("decision.md lacks %q", want)
		}
	}
	if strings.Contains(text.String(), "Environment") || !strings.Contains(text.String(), "Since the record of") {
		t.Error(text.String())
	}
	var brief strings.Builder
	if err := m.WriteTerminal(&brief, Style{}); err != nil {
		t.Fatal(err)
	}
	fitsScreen(t, brief.String())
	for _, m := range []DecisionModel{BuildSince(r.Since, .95), BuildTrend(r.Trend)} {
		if err := m.WriteTerminal(&brief, Style{}); err != nil || m.Headline == "" || len(m.Sections) != 1 {
			t.Errorf("%+v", m)
		}
	}
}
