package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLayout(t *testing.T) {
	var b strings.Builder
	p := newPrinter(&b, Style{})
	p.writeAnswer("24 req/s: SLO met")
	p.writeFacts([]labelled{
		{Label: "SLO", Value: []string{"p99 TTFT 198.9 ms", "limit 200 ms"}},
		{Value: []string{"p99 TPOT 28.3 ms"}},
		{Label: "Cost"},
		{Label: "Requests", Value: []string{strings.Repeat("many words ", 8)}},
	})
	p.writeNotes([]note{{Text: "one"}, {Text: "two", Warning: true}, {Text: "three"}, {Text: "four"}}, false, "")
	p.writeNext("pitot find http://localhost:8000 --slo 'p99 ttft<200ms --x' --workload chat --verify 20 --out b", "a/report.html")
	p.writeFacts(nil)
	p.writeNotes(nil, true, "")
	p.writeNext("", "")
	const want = `24 req/s: SLO met

SLO          p99 TTFT 198.9 ms · limit 200 ms
             p99 TPOT 28.3 ms
Requests     many words many words many words many words many words many words
             many words many words

Notes
  ! two
  · one
  · three
    +1 more: --full

Next         pitot find http://localhost:8000 --slo 'p99 ttft<200ms --x' \
               --workload chat --verify 20 --out b
Report       a/report.html
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	p.writeNotes([]note{{Text: "one"}, {Text: "two"}, {Text: "three"}, {Text: "four"}}, true, "")
	if got := b.String(); !strings.Contains(got, "four") || strings.Contains(got, "more") {
		t.Errorf("in full:\n%s", got)
	}
}

// fitsScreen fails where an answer is longer than a screen or wider than its lines may be.
func fitsScreen(t *testing.T, text string) {
	t.Helper()
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	if len(lines) > screenLines {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > textWidth {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}
