package run

import (
	"testing"

	"pitot/internal/data/result"
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
			args := []string{"mock:fixed", "--rate", "250", "--duration", "1200ms", "--warmup", "100ms", "--ttft", "20ms", "--itl", "100us", "--input", "20", "--output", "8", "--verify", "40%", "--seed", "5"}
			if c.faults != "" {
				args = append(args, "--faults", c.faults)
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
				if k.TellsNothing || k.NotAsked != "" || k.Checked.AloneAnswered == 0 || k.Checked.AloneWrong != 0 {
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
