package report

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/analysis/audit"
	"pitot/internal/metrics"
	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/result"
)

// checked is a level with n requests of 100 tokens whose TTFT is said so much
// too high, in milliseconds.
func checked(streams, n int, wrong float64) *audit.Level {
	same := func(n int, x float64) *result.Summary {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = x
		}
		return metrics.Summarize(xs)
	}
	l := &audit.Level{Streams: streams, ChunksPerS: float64(95 * streams), CPUPerChunk: 11 * time.Microsecond,
		Accuracy: audit.Accuracy{
			Reported: audit.Numbers{TTFT: same(n, 50+wrong), Gap: same(99*n, 10)}, True: audit.Numbers{TTFT: same(n, 50), Gap: same(99*n, 10)},
			Lag: same(n, .2),
		}}
	l.Late.P50, l.Late.P99, l.Late.Max = 90111, 393215, 2920154
	return l
}

// levelLine is the line of a level in the whole table.
func levelLine(l *audit.Level) string {
	t, _ := levelTable([]*audit.Level{l}, true)
	return strings.Join(t.Rows[len(t.Rows)-1], " ")
}

func TestCheckLevel(t *testing.T) {
	for n, want := range map[int]string{
		4:    "1 95 +0.010 – +0.000 ~+0.000 11.0 4 0 % – ~10.000 inside 9.900–10.100",
		101:  "1 95 +0.010 ~+0.010 +0.000 +0.000 11.0 101 0 % ~0.20 10.000 inside 9.900–10.100",
		1000: "1 95 +0.010 +0.010 +0.000 +0.000 11.0 1,000 0 % 0.20 10.000 inside 9.900–10.100",
		1:    "1 95 +0.010 – +0.000 – 11.0 1 0 % – –",
	} {
		if got := levelLine(checked(1, n, .01)); got != want {
			t.Errorf("%d requests:\n%s, want\n%s", n, got, want)
		}
	}
}

// auditText is what a check of levels shows.
func auditText(levels ...*audit.Level) string {
	var b strings.Builder
	WriteCheck(&b, audit.Reference{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond, Tokens: 100}, 4*time.Second, levels, Style{})
	return b.String()
}

func TestCheckVerdict(t *testing.T) {
	few, some, firm := checked(1, 4, .01), checked(100, 400, .01), checked(1000, 4000, .01)
	for _, c := range []struct {
		levels []*audit.Level
		want   string
	}{
		{[]*audit.Level{few}, "Accurate to 0.1 ms at 1 stream\n\n" +
			"To 0.1 ms    mean TTFT, p50 gap and p99 gap (few: n = 396)\n"},
		{[]*audit.Level{few, some}, "Accurate to 0.1 ms up to 100 streams\n\n" +
			"To 0.1 ms    mean TTFT, p99 TTFT (few: n = 400), p50 gap and p99 gap\n"},
		{[]*audit.Level{firm, few, some}, "Accurate to 0.1 ms up to 1,000 streams\n\n" +
			"To 0.1 ms    mean TTFT, p99 TTFT, p50 gap and p99 gap\n"},
		{[]*audit.Level{some, checked(200, 800, .5)}, "Accurate to 0.1 ms at 100 streams, to 1 ms up to 200 streams\n\n" +
			"To 0.1 ms    mean TTFT, p99 TTFT (few: n = 400), p50 gap and p99 gap\n" +
			"To 1 ms      mean TTFT, p99 TTFT (few: n = 800), p50 gap and p99 gap\n"},
		{[]*audit.Level{checked(1000, 4000, .5), checked(2000, 4000, .6)}, "Accurate to 1 ms up to 2,000 streams\n\n" +
			"To 1 ms      mean TTFT, p99 TTFT, p50 gap and p99 gap\n"},
		{[]*audit.Level{checked(1000, 4000, 2)}, "Not accurate to 1 ms at any level\n\nOver 1 ms    mean TTFT +2.000 ms at 1,000 streams\n"},
		// A good level beyond a bad one does not count.
		{[]*audit.Level{few, checked(100, 4000, 2), firm}, "Accurate to 0.1 ms at 1 stream\n\n" +
			"To 0.1 ms    mean TTFT, p50 gap and p99 gap (few: n = 396)\n"},
	} {
		got := auditText(c.levels...)
		if !strings.HasPrefix(got, c.want) || !strings.Contains(strings.Join(strings.Fields(got), " "), "late by p50 0.09 ms, p99 0.39 ms, max 2.92 ms") {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if got := auditText(); got != "" {
		t.Errorf("nothing was checked: %s", got)
	}
	got := strings.Join(strings.Fields(auditText(few, some)), " ")
	for _, want := range []string{"50 ms to the first token, 100 tokens, 10 ms apart; closed loop, 4 s a level",
		"~ fewer than 1,000 samples", "– fewer than 100"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Of several workers the one whose error is the largest is named, wherever it was.
func TestCheckWorkers(t *testing.T) {
	worker := func(rank, streams int, wrong, ahead float64) audit.Worker {
		l := checked(streams, 400, wrong)
		return audit.Worker{Rank: rank, CPUPerChunk: 9 * time.Microsecond, Accuracy: l.Accuracy, Ahead: ahead, Bound: .02}
	}
	few, many := checked(100, 400, .01), checked(1000, 4000, .02)
	few.Workers = []audit.Worker{worker(0, 100, .01, 0), worker(1, 100, -.03, -.004)}
	many.Workers = []audit.Worker{worker(0, 1000, .06, .011), worker(1, 1000, -.02, 0)}
	if got, want := levelLine(few), "worker 1  -0.030 ~-0.030 +0.000 +0.000 9.0 400 0 % ~0.20 10.000 inside 9.900–10.100"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	expect := func(levels []*audit.Level, list ...string) {
		t.Helper()
		got := strings.Join(strings.Fields(auditText(levels...)), " ")
		for _, want := range list {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
	expect([]*audit.Level{few, many}, "Accurate to 0.1 ms up to 1,000 streams To 0.1 ms mean TTFT, p99 TTFT, p50 gap and p99 gap",
		"worker 0 of 2: its mean TTFT is off by +0.060 ms at 1,000 streams",
		"up to 0.011 ms apart, though they are one: all within their bounds of at most 0.020 ms")
	many.Workers[1] = worker(1, 1000, -.2, .05) // which all together hide
	expect([]*audit.Level{few, many}, "Accurate to 0.1 ms at 100 streams, to 1 ms up to 1,000 streams", "To 1 ms mean TTFT, p99 TTFT, p50 gap and p99 gap",
		"worker 1 of 2: its mean TTFT is off by -0.200 ms", "1 OUTSIDE their bounds")
	one := checked(1, 4, .01)
	one.Workers = []audit.Worker{worker(0, 1, .05, 0)}
	expect([]*audit.Level{one}, "the one worker that took part: its mean TTFT is off by +0.050 ms at 1 stream")
}

func TestCheckedClient(t *testing.T) {
	of := func(n int) string {
		l := checked(1, n, 0)
		r := audit.Client{True: l.True, Requests: n, CPUPerToken: 20 * time.Microsecond, Wall: 2 * time.Second, Span: time.Second,
			Late: l.Late, Exit: "exit status 3"}
		if n > 2 {
			r.Rate, r.GapCV = 50, 1
		}
		var b strings.Builder
		if err := CheckedClient(&b, &r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for n, want := range map[int][]string{
		1:    {"1 request answered", "true      50.00         –    10.00        –", "from 100 on, – fewer", "\n20.0 µs of CPU per token", "ended with: exit status 3"},
		200:  {"200 requests answered", "true      50.00    ~50.00    10.00    10.00", "from 100 on", "50.0 requests/s arrived, CV of their gaps 1.00"},
		1000: {"1,000 requests answered", "true      50.00     50.00    10.00    10.00", "late by p50 0.09 ms"},
	} {
		for _, w := range want {
			if got := of(n); !strings.Contains(got, w) {
				t.Errorf("%d requests: no %q in\n%s", n, w, got)
			}
		}
	}
	if strings.Contains(of(1000), "few") || strings.Contains(of(1), "arrived") {
		t.Error("it says what does not matter")
	}
}

// What is printed of a gap and its range holds as it is printed, and OUTSIDE stands
// beside the figure that is.
func TestInsideHoldsAsPrinted(t *testing.T) {
	line := regexp.MustCompile(`(p50 )?~?([\d.]+) (inside|OUTSIDE) ([\d.]+)–([\d.]+)`)
	near := rapid.OneOf(rapid.Float64Range(-.1004, -.0996), rapid.Float64Range(-.2, .2), rapid.Float64Range(.0996, .1004))
	rapid.Check(t, func(t *rapid.T) {
		l := checked(10, 1000, 0)
		for _, x := range []struct{ reported, true **float64 }{{&l.Reported.Gap.P50, &l.True.Gap.P50}, {&l.Reported.Gap.P99, &l.True.Gap.P99}} {
			reported := rapid.Float64Range(1, 30).Draw(t, "said")
			*x.reported, *x.true = &reported, new(reported+near.Draw(t, "off"))
		}
		found := line.FindStringSubmatch(levelLine(l))
		if found == nil {
			t.Fatal(levelLine(l))
		}
		number := func(i int) float64 { x, _ := strconv.ParseFloat(found[i], 64); return x }
		in, _ := l.IsWithinBounds()
		if printed := number(4) <= number(2) && number(2) <= number(5); printed != (found[3] == "inside") || in != printed {
			t.Errorf("%s (inside: %v)", found[0], in)
		}
	})
}
