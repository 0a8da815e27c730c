package metrics

import (
	"slices"
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

// answered is a point of which some requests are questions, of a kind that was asked alone.
func answered(t *testing.T, alone []Alone, objective string, n, of, wrong int, kind string) result.Point {
	t.Helper()
	setup := Setup{T1: 1e9, Alone: alone}
	if objective != "" {
		var err error
		if setup.SLO, err = slo.Parse(objective); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFold(setup)
	for i := range n {
		r := record.BlankRow()
		r.ID, r.Due = int64(i), int64(i)*1e9/int64(n)
		r.Eligible, r.Ready, r.Sent, r.FirstToken, r.LastToken, r.Done = r.Due, r.Due, r.Due, r.Due+1e6, r.Due+2e6, r.Due+2e6
		if i < of {
			r.Question, r.LastToken, r.Done = kind+"/1", r.Due+9e8, r.Due+9e8
			if r.Wrong = i < wrong; r.Wrong && kind == greedyKind {
				r.DiffersAt = int32(i)
			}
		}
		f.Add(record.Frame{Rows: []record.Row{r}})
	}
	return f.Point()
}

// Questions are no requests of the cohort: neither its count nor its latencies know them.
func TestQuestionsAreApart(t *testing.T) {
	p := answered(t, []Alone{{Kind: "echo", Answered: 50}}, "p99 e2e<5ms", 300, 100, 0, "echo")
	if p.Requests.Due != 200 || p.Requests.OK != 200 || p.Answers.Asked != 100 || p.Answers.Unanswered != 0 {
		t.Errorf("%+v, %+v", p.Requests, p.Answers)
	}
	if e := p.Metrics.SummaryOf("e2e"); e == nil || e.N != 200 || *e.Max != 2 {
		t.Errorf("%+v", e)
	}
	if *p.SLO.Attained != 1 || *p.Throughput.DuePerS != 300 {
		t.Errorf("%v attained, %v/s due", *p.SLO.Attained, *p.Throughput.DuePerS)
	}
	if p.Window["wrong_share"] != 0 {
		t.Error(p.Window)
	}
}

// A limit on wrong answers is met or not where the interval of their share lies on one side of
// it; a search counts them apart from the requests.
func TestLimitOnWrongAnswers(t *testing.T) {
	for _, c := range []struct {
		of, wrong int
		want      result.Met
	}{{400, 0, result.Yes}, {300, 0, result.Undecided}, {400, 20, result.No}, {400, 4, result.Undecided}} {
		p := answered(t, []Alone{{Kind: "echo", Answered: 96}}, "wrong<1%", c.of+100, c.of, c.wrong, "echo")
		if p.SLO.Met != c.want {
			t.Errorf("%d of %d: %s, %+v", c.wrong, c.of, p.SLO.Met, p.SLO.Limits)
		}
	}
	if p := answered(t, []Alone{{Kind: "echo", Answered: 96, Wrong: 96}}, "wrong<1%", 500, 400, 400, "echo"); p.SLO.Met != result.Undecided {
		t.Errorf("a model that cannot: %+v", p.SLO)
	}
	spec, err := slo.Parse("p99 e2e<1s, wrong<5%")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := spec.SplitClaims()
	if err != nil || len(claims) != 2 {
		t.Fatal(claims, err)
	}
	f := NewFold(Setup{T1: 1e9, Alone: []Alone{{Kind: "echo", Answered: 9}}})
	for i := range int64(100) {
		r := record.BlankRow()
		r.ID, r.Due, r.Sent, r.Done, r.LastToken = i, i*1e7, i*1e7, i*1e7+1, i*1e7+1
		if i%4 == 0 {
			r.Question, r.Wrong = "echo/1", i >= 50
		}
		f.Add(record.Frame{Rows: []record.Row{r}})
	}
	v := f.CountViolations(claims, 5)
	for i, c := range claims {
		due, of, blocks := 75, 0, []int{0, 0, 0, 0, 0}
		if c.OnAnswers() {
			due, of, blocks = 25, 12, []int{0, 0, 2, 5, 5}
		}
		if v.N != 75 || v.Due[i] != due || v.Of[i] != of || !slices.Equal(v.Blocks[i], blocks) {
			t.Errorf("%s: %+v", c.Spec, v)
		}
	}
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		name             string
		alone            Alone
		n, wrong         int
		want             result.AnswersFinding
		tellsNothing     bool
		asked, notTelled bool
	}{
		{"damage", Alone{Kind: "echo", Answered: 96}, 200, 20, result.AnswersDamaged, false, true, false},
		{"as alone", Alone{Kind: "echo", Answered: 96, Wrong: 9}, 200, 20, result.AnswersSame, false, true, false},
		{"few", Alone{Kind: "echo", Answered: 8}, 20, 1, result.AnswersSame, false, true, false},
		{"a model that cannot", Alone{Kind: "numbers", Answered: 96, Wrong: 96}, 200, 200, result.AnswersInconclusive, true, true, true},
		{"batch variance or damage", Alone{Kind: greedyKind, Answered: 48}, 200, 60, result.AnswersDiffer, false, true, true},
		{"a server that is never the same", Alone{Kind: greedyKind, Answered: 48, Wrong: 20}, 200, 80, result.AnswersSame, false, true, true},
	} {
		a := answered(t, []Alone{c.alone}, "", c.n+10, c.n, c.wrong, c.alone.Kind).Answers
		if a.Finding != c.want || a.Kinds[0].Unusable != c.tellsNothing || a.Kinds[0].Checked.Wrong != c.wrong {
			t.Errorf("%s: %+v", c.name, a)
		}
		if c.notTelled != (a.Wrong == nil) {
			t.Errorf("%s: %+v", c.name, a.Wrong)
		}
		if k := a.Kinds[0]; c.alone.Kind == greedyKind && (k.DifferAt == nil || *k.DifferAt != c.wrong/2) {
			t.Errorf("%s: differs at %v", c.name, k.DifferAt)
		}
	}
}

// Greedy answers that differ are batch variance only where as many damaged ones among the known
// would have been told from chance; what is recorded and what is said are one.
func TestVarianceIsDetectableShareDamage(t *testing.T) {
	answered := func(n, wrong, alone int) *result.Answered {
		x := &result.Answered{Answered: n, Wrong: wrong, AloneAnswered: alone}
		in := stats.ClopperPearson(wrong, n, 1, 0.95)
		chance := stats.MoreOftenIn([]stats.Compared{{K: wrong, N: n, M: alone}})
		x.CI95, x.Chance = &[2]float64{in.Lo, in.Hi}, &chance
		return x
	}
	for _, c := range []struct {
		known, differ int
		want          result.AnswersFinding
	}{
		{0, 100, result.AnswersVary},
		{0, 12, result.AnswersDiffer}, // damage to as many would not have been told
		{60, 100, result.AnswersDamaged},
		{0, 0, result.AnswersSame},
	} {
		a := &result.Answers{Wrong: answered(200, c.known, 96), Differ: answered(200, c.differ, 96)}
		if got := answersFinding(a); got != c.want {
			share, _ := a.Wrong.DetectableShare()
			t.Errorf("%d known ones wrong, %d differ (told from %.3f, at least %.3f): %s, want %s", c.known, c.differ, share, a.Differ.CI95[0], got, c.want)
		}
	}
}
