package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitot/internal/results/result"
)

// A mock that garbles a share of its answers is seen to, and one that does not is found
// right in all kinds of questions, alone and under load.
func TestGarbledAnswersAreSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, faults string
		finding      result.AnswersFinding
		low, high    float64
	}{
		{"sound", "", result.AnswersSame, 0, 0},
		{"garbled under load alone", "garble:40%:3", result.AnswersDamaged, .1, .6},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"mock:fixed?ttft=20ms&itl=100us", "--rate", "250", "--duration", "1200ms", "--warmup", "100ms", "--input", "20", "--output", "8", "--check-answers", "40%", "--seed", "5"}
			if c.faults != "" {
				args[0] += "&faults=" + c.faults
			}
			run, dir := mustMeasure(t, args...)
			a := run.Points[0].Answers
			if a == nil || a.Finding != c.finding || a.Wrong == nil || a.Wrong.AloneWrong != 0 || a.Differ == nil || len(a.Kinds) != 6 {
				t.Fatalf("%+v", a)
			}
			if x := *a.Wrong.Share; x < c.low || x > c.high {
				t.Errorf("a share of %g is wrong: %+v", x, a.Wrong)
			}
			for _, k := range a.Kinds {
				if k.Unusable || k.NotAsked != "" || k.Checked.AloneAnswered == 0 || k.Checked.AloneWrong != 0 {
					t.Errorf("%+v", k)
				}
				if k.Checked.Wrong > 0 && k.Kind == "greedy" && (k.DifferAt == nil || *k.DifferAt != greedyHalf) {
					t.Errorf("greedy answers differ after %v tokens", *k.DifferAt)
				}
			}
			// What the records say of it is what they are read as again.
			again, err := Finish(dir, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			if b := again.Points[0].Answers; b.Wrong.Wrong != a.Wrong.Wrong || b.Asked != a.Asked || b.Finding != a.Finding {
				t.Errorf("read again: %+v, not %+v", b, a)
			}
		})
	}
}

// greedyHalf is where the mock begins to garble an answer: at its half.
const greedyHalf = 32

// What is asked alone is said beforehand with its time, and goes by as it is asked.
func TestQuestionsAloneAreShown(t *testing.T) {
	p := planned(t, "mock:fixed?ttft=1ms&itl=100us", "--rate", "50", "--requests", "15", "--warmup", "100ms", "--input", "20", "--output", "8", "--check-answers", "20%", "--seed", "5", "--out", t.TempDir()+"/run")
	shown := &shownLines{}
	r := Runner{Progress: shown}
	if _, _, err := r.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	const beforehand = "asking 14 questions alone before the load, one at a time, 2 greedy ones twice: "
	if !slices.ContainsFunc(shown.lines, func(line string) bool { return strings.HasPrefix(line, beforehand) }) {
		t.Errorf("%q", shown.lines)
	}
	if n := len(shown.live); n != 14 || !strings.HasPrefix(shown.live[13], "asking 14 of 14 questions alone, 0:") {
		t.Errorf("%q", shown.live)
	}
}

// shownLines keeps what is shown.
type shownLines struct{ lines, live []string }

func (s *shownLines) ShowLine(line string) { s.lines = append(s.lines, line) }
func (s *shownLines) Line(text string)     { s.live = append(s.live, text) }
func (s *shownLines) Update(Status)        {}

func TestAloneTime(t *testing.T) {
	for _, c := range []struct {
		questions int
		residence time.Duration
		tokens    float64
		want      string
	}{
		{20, 0, 8, "at most 2:00"},
		{20, time.Second, 64, "up to about 0:21"},
		{20, time.Second, 256, "up to about 0:21"},
		{20, 100 * time.Millisecond, 8, "up to about 0:17"},
		{20, time.Second, 8, "at most 2:00"},
	} {
		if got := aloneTime(c.questions, c.residence, c.tokens); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
