package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/session"
)

const second = time.Second

// watched is a progress with a clock and a width of its own.
func watched(live bool, width int) (*progress, *strings.Builder, *time.Time) {
	var out strings.Builder
	now := new(time.Unix(0, 0))
	p := &progress{w: &out, live: live, width: func() int { return width }, now: func() time.Time { return *now }}
	p.next = now.Add(plainEvery)
	return p, &out, now
}

// status is how a point of a minute after 5 s of warm-up stands at a time.
func status(at time.Duration) session.Status {
	s := session.Status{Phase: "measuring", At: at, T0: 5 * second, T1: 65 * second,
		Sent: int64(at / second * 10), OK: int64(at/second*10) - 7, InFlight: 7, Chunks: int64(at / second * 1000),
		TTFT: 35_640 * time.Microsecond, TPOT: 8 * time.Millisecond}
	switch {
	case at < s.T0:
		s.Phase = "warm-up"
	case at >= s.T1:
		s.Phase = "finishing"
	}
	return s
}

// Where nothing can be written over there is a line each ten seconds.
func TestPlainProgress(t *testing.T) {
	p, out, now := watched(false, 0)
	p.ShowLine("waiting for http://h")
	p.Update(session.Status{Phase: "priming"})
	for at := time.Duration(0); at <= 70*second; at += second / 4 {
		*now = time.Unix(0, 0).Add(at)
		s := status(at)
		if at > 40*second {
			s.Failed, s.Held = 3, 4
		}
		p.Update(s)
	}
	p.close()
	want := `waiting for http://h
measuring 5 s of 60 s, 100 sent, 93 answered, 7 in flight, TTFT p50 35.6 ms, TPOT p50 8.00 ms
measuring 15 s of 60 s, 200 sent, 193 answered, 7 in flight, TTFT p50 35.6 ms, TPOT p50 8.00 ms
measuring 25 s of 60 s, 300 sent, 293 answered, 7 in flight, TTFT p50 35.6 ms, TPOT p50 8.00 ms
measuring 35 s of 60 s, 400 sent, 393 answered, 7 in flight, TTFT p50 35.6 ms, TPOT p50 8.00 ms
measuring 45 s of 60 s, 500 sent, 493 answered, 3 failed, 7 in flight, 4 held back, TTFT p50 35.6 ms, TPOT p50 8.00 ms
measuring 55 s of 60 s, 600 sent, 593 answered, 3 failed, 7 in flight, 4 held back, TTFT p50 35.6 ms, TPOT p50 8.00 ms
finishing for 5 s, 700 sent, 693 answered, 3 failed, 7 in flight, 4 held back, TTFT p50 35.6 ms, TPOT p50 8.00 ms
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// What is left of a search's budget gets less within a window, and never less than nothing.
func TestProgressLeft(t *testing.T) {
	p, out, now := watched(false, 0)
	p.About("verifying 20/s · load 1")
	p.Left(40)
	for _, at := range []time.Duration{10 * second, 30 * second, 50 * second} {
		*now = now.Add(at)
		p.Update(session.Status{Phase: "measuring", At: at, T1: 60 * second})
	}
	p.About("load 2 · 3/s") // of a sweep, which has none
	*now = now.Add(10 * second)
	p.Update(session.Status{Phase: "measuring", At: 10 * second, T1: 60 * second})
	p.close()
	var heads []string
	for line := range strings.Lines(out.String()) {
		head, _, _ := strings.Cut(line, " · measuring")
		heads = append(heads, head)
	}
	want := []string{"verifying 20/s · load 1 · 30s left", "verifying 20/s · load 1 · 10s left", "verifying 20/s · load 1 · 0s left", "load 2 · 3/s"}
	if d := cmp.Diff(want, heads); d != "" {
		t.Error(d)
	}
}

func TestQuiet(t *testing.T) {
	p, out, now := watched(true, 80)
	p.quiet = true
	p.ShowLine("waiting")
	*now = now.Add(time.Hour)
	p.Update(status(20 * second))
	fmt.Fprintln(p, "pitot: stopping") // that is no progress
	p.close()
	if out.String() != "pitot: stopping\n" {
		t.Errorf("%q", out.String())
	}
}

// screen does what a terminal does with the escape sequences of the view.
func screen(t *testing.T, text string) []string {
	t.Helper()
	lines := []string{""}
	row := 0
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\r"):
			text = text[1:]
		case strings.HasPrefix(text, "\n"):
			if row++; row == len(lines) {
				lines = append(lines, "")
			}
			text = text[1:]
		case strings.HasPrefix(text, "\x1b[K"):
			text = text[3:]
		case strings.HasPrefix(text, "\x1b[J"):
			lines = append(lines[:row], "")
			text = text[3:]
		case strings.HasPrefix(text, "\x1b["):
			var n int
			if _, err := fmt.Sscanf(text, "\x1b[%dA", &n); err != nil || n > row {
				t.Fatalf("cannot do %q on line %d", text[:5], row)
			}
			row -= n
			text = text[strings.IndexByte(text, 'A')+1:]
		default:
			i := strings.IndexAny(text, "\r\n\x1b")
			if i < 0 {
				i = len(text)
			}
			lines[row] = text[:i]
			text = text[i:]
		}
	}
	return lines
}

// On a terminal a few lines are written over, and go at the end.
func TestLiveView(t *testing.T) {
	p, out, _ := watched(true, 80)
	p.Update(session.Status{Phase: "priming"})
	if d := cmp.Diff([]string{"priming   ", ""}, screen(t, out.String())); d != "" {
		t.Error(d)
	}
	for at := time.Duration(0); at <= 35*second; at += second / 4 {
		p.Update(status(at))
	}
	want := []string{
		"measuring  ━━━━━━━━━━━━━━━─────────────── 30 s left",
		"           350 sent · 343 answered · 7 in flight · 1,000 chunks/s",
		"           TTFT p50    35.6 ms  " + strings.Repeat("█", sparkWidth),
		"           TPOT p50    8.00 ms  " + strings.Repeat("█", sparkWidth),
		"",
	}
	got := screen(t, out.String())
	counts := strings.Fields(got[1])
	got[1] = strings.Replace(got[1], counts[len(counts)-2], "1,000", 1) // the rate is smoothed
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	p.ShowLine("note: something")
	p.Update(status(66 * second))
	got = screen(t, out.String())
	if len(got) != 6 || got[0] != "note: something" || got[1] != "finishing  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ for 1 s" {
		t.Errorf("%q", got)
	}
	p.close()
	if d := cmp.Diff([]string{"note: something", ""}, screen(t, out.String())); d != "" {
		t.Error(d)
	}
}

// A sparkline is of one load, a value a second.
func TestSparkline(t *testing.T) {
	var h history
	for i := range 8 {
		h.addValue(time.Duration(i)*second, time.Duration(i+1)*second)
		h.addValue(time.Duration(i)*second+second/4, 100*second) // too soon
	}
	if got := h.sparkline(); got != "▂▃▄▅▆▇██" {
		t.Errorf("%q", got)
	}
	if h.addValue(0, second); h.sparkline() != "" {
		t.Errorf("%q of another load", h.sparkline())
	}
}

// No line is longer than the terminal is wide, whatever its width.
func TestNarrow(t *testing.T) {
	for _, width := range []int{1, 20, 40, 60, 80, 200} {
		p, out, _ := watched(true, width)
		s := status(20 * second)
		s.Sent, s.OK, s.Failed, s.Held = 1e9, 1e9, 1e6, 1e6
		p.Update(s)
		for i, l := range screen(t, out.String()) {
			if n := utf8.RuneCountInString(l); n > max(0, width-1) {
				t.Errorf("width %d, line %d: %d columns: %s", width, i, n, l)
			}
		}
	}
}

func TestClockTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-second: "0 s", 0: "0 s", 999 * time.Millisecond: "0 s", 99 * second: "99 s", 100 * second: "1:40 min",
		3599 * second: "59:59 min", 3600 * second: "1:00:00 h", 36_061 * second: "10:01:01 h",
	} {
		if got := clockTime(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// By number of requests the end is not known beforehand: no bar.
func TestShare(t *testing.T) {
	if s := (session.Status{Phase: "measuring", At: second, T1: -1}); phaseShare(s) >= 0 || phaseText(s) != " 1 s" {
		t.Errorf("%v, %q", phaseShare(s), phaseText(s))
	}
	if s := (session.Status{Phase: "warm-up"}); phaseShare(s) >= 0 {
		t.Errorf("%v", phaseShare(s))
	}
}

func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 ms", 35_620 * time.Microsecond: "35.6 ms", 999 * time.Millisecond: "999.0 ms", 999_600 * time.Microsecond: "1,000 ms",
		12_345_678 * time.Microsecond: "12,346 ms",
	} {
		if got := millisText(d, 1); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// A server that starts is one line each half minute, with its log; on a terminal two that are
// written over.
func TestWaiting(t *testing.T) {
	p, out, now := watched(false, 0)
	live, screen, _ := watched(true, 30)
	for at := range 65 {
		*now = time.Unix(0, 0).Add(time.Duration(at) * second)
		what := fmt.Sprintf("starting baseline 1 of 2, %d:%02d of 10 min", at/60, at%60)
		p.Waiting(what, fmt.Sprintf("loading weights %d", at))
		live.Waiting(what, fmt.Sprintf("loading weights %d", at))
	}
	if want := "starting baseline 1 of 2, 0:10 of 10 min: loading weights 10\nstarting baseline 1 of 2, 0:40 of 10 min: loading weights 40\n"; out.String() != want {
		t.Errorf("%q", out)
	}
	if want := "\r\x1b[2A\x1b[Jstarting baseline 1 of 2, 1:0\nloading weights 64\n"; !strings.HasSuffix(screen.String(), want) || live.lines != 2 {
		t.Errorf("%q", screen.String())
	}
}
