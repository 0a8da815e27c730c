package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// recordOf is one of two configurations, a row and some metrics, of which launches measured
// something about 100, times change of the first metric.
func recordOf(r *rand.Rand, when, version string, launches int, change float64) *Record {
	out := &Record{Schema: RecordSchema, Answer: AnswerUndecided, Contract: ContractRecord{Confidence: .95, Capacity: 10}, Rows: []RowRecord{{Name: "F", Asks: "workload=chat"}}, Sittings: []SittingRecord{{Began: when}}}
	out.Pitot.Version = version
	for _, c := range []string{Baseline, "max_num_seqs=64"} {
		for _, m := range []string{"capacity", "p95 ttft", "p95 tpot"} {
			l := LineRecord{Row: "F", Metric: m, Configuration: c, Higher: m == "capacity"}
			for range launches {
				x := 100 * math.Exp(.035*r.NormFloat64())
				if m == "capacity" {
					x *= change
				}
				l.Values = append(l.Values, &x)
			}
			out.Lines = append(out.Lines, l)
		}
	}
	return out
}

// Of records between which nothing changed few are said to differ; a change is found, by
// name; rows that ask something else are left out.
func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 8))
	const pairs = 400
	wrong, found := 0, 0
	for range pairs {
		a, b := recordOf(r, "2026-01-01T00:00:00Z", "1", 3, 1), recordOf(r, "2026-01-02T00:00:00Z", "1", 3, 1)
		if s := CompareRecords("last", a, b); s.Worse+s.Better > 0 {
			wrong++
		}
		if s := CompareRecords("last", a, recordOf(r, "2026-01-02T00:00:00Z", "2", 3, .75)); s.Worse > 0 {
			found++
		}
	}
	if wrong > pairs*7/100 || found < pairs*9/10 {
		t.Errorf("of %d pairs %d alike ones differ, and %d of those a quarter worse", pairs, wrong, found)
	}
	a, b := recordOf(r, "2026-01-01T00:00:00Z", "1", 3, 1), recordOf(r, "2026-01-02T00:00:00Z", "2", 3, .5)
	a.Bad = []BadRecord{{Baseline, 2, .3}}
	s := CompareRecords("last", a, b)
	if l := s.Lines[1]; s.Worse < 2 || l.Configuration != Baseline || l.Metric != "capacity" || l.Verdict != Worse || math.Abs(l.Change+.5) > .1 || l.Launches != [2]int{2, 3} {
		t.Errorf("%+v", s.Lines)
	}
	if len(s.Changed) != 1 || s.Changed[0] != "pitot: 1 → 2" {
		t.Errorf("%q", s.Changed)
	}
	if s := CompareRecords("last", a, a); s.Worse+s.Better != 0 || s.Lines[0].Verdict != Alike {
		t.Errorf("with itself: %+v", s.Lines)
	}
	one, two := 100., 200.
	for of, want := range map[bool]float64{false: 1, true: 100} { // without a test there is a change all the same
		a, b := recordOf(r, "2026-01-01T00:00:00Z", "1", 0, 1), recordOf(r, "2026-01-02T00:00:00Z", "1", 0, 1)
		a.Lines, b.Lines = a.Lines[:1], b.Lines[:1]
		for i, l := range []*LineRecord{&a.Lines[0], &b.Lines[0]} {
			l.Values, l.OfShare = [][]*float64{{&one}, {&two}}[i], of
		}
		if s := CompareRecords("last", a, b); len(s.Lines) != 1 || math.Abs(s.Lines[0].Change-want) > 1e-9 || s.Lines[0].Interval != nil {
			t.Errorf("one launch each: %+v", s.Lines)
		}
	}
	b.Rows[0].Asks = "workload=rag"
	if s := CompareRecords("last", a, b); len(s.Lines) != 0 || len(s.Left) != 1 {
		t.Errorf("%+v", s)
	}
}

// Launches of a block that are off together are no change, however many configurations there
// are.
func TestCompareBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	of := func() *Record {
		out := recordOf(r, "2026-01-01T00:00:00Z", "1", 3, 1)
		out.Lines = nil
		for _, m := range strings.Fields("a b c d e f g h i j k l") {
			blocks := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
			for _, c := range []string{Baseline, "a=1", "b=1", "c=1", "d=1"} {
				l := LineRecord{Row: "F", Metric: m, Configuration: c}
				for _, block := range blocks {
					x := 100 * math.Exp(.05*block+.02*r.NormFloat64())
					l.Values = append(l.Values, &x)
				}
				out.Lines = append(out.Lines, l)
			}
		}
		return out
	}
	const pairs = 600
	wrong := 0
	for range pairs {
		if s := CompareRecords("last", of(), of()); s.Worse+s.Better > 0 {
			wrong++
		}
	}
	if wrong > pairs*7/100 {
		t.Errorf("of %d pairs alike but for their blocks %d differ", pairs, wrong)
	}
}

// A point of change is found with its date; nights that only differ have none.
func TestTrend(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	const trends, nights, from = 200, 10, 6
	found, wrong := 0, 0
	for n := range 2 * trends {
		var records []*Record
		var dirs []string
		for night := range nights {
			change, version := math.Exp(.02*r.NormFloat64()), "1"
			if n%2 == 0 && night >= from {
				change, version = .85*change, "2"
			}
			records = append(records, recordOf(r, fmt.Sprintf("2026-01-%02dT00:00:00Z", night+1), version, 3, change))
			dirs = append(dirs, fmt.Sprint(night))
		}
		x := TrendOf(dirs, records)
		switch {
		case n%2 == 1 && len(x.Changes) > 0:
			wrong++
		case n%2 == 0 && len(x.Changes) > 0 && x.Changes[0].From == from && x.Changes[0].Verdict == Worse && x.Changes[0].Changed[0] == "pitot: 1 → 2":
			found++
		}
	}
	if found < trends*8/10 || wrong > trends*6/100 {
		t.Errorf("of %d changes %d are found where they are, of as many trends without one %d have one", trends, found, wrong)
	}
	wrong = 0
	for range trends { // nights that are like the one before
		var records []*Record
		night := r.NormFloat64()
		for n := range nights {
			night = .3*night + math.Sqrt(1-.09)*r.NormFloat64()
			records = append(records, recordOf(r, fmt.Sprintf("2026-01-%02dT00:00:00Z", n+1), "1", 3, math.Exp(.1*night)))
		}
		if x := TrendOf(make([]string, nights), records); len(x.Changes) > 0 {
			wrong++
		}
	}
	if wrong > trends*6/100 {
		t.Errorf("of %d trends of nights like the one before %d have a change", trends, wrong)
	}
	if x := TrendOf([]string{"b", "a"}, []*Record{recordOf(r, "2026-01-02T00:00:00Z", "1", 2, 1), recordOf(r, "2026-01-01T00:00:00Z", "1", 2, 1)}); x.Lines != 0 || x.Records[0].Record != "a" {
		t.Errorf("%+v", x)
	}
}

// A record of another version, or none, is refused in one sentence.
func TestReadRecord(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema": "pitot.decision/v9"}`:                `x/decision.json is of version "pitot.decision/v9", which this program does not know`,
		`{"answer": "accepted"}`:                         `is of version ""`,
		`{"schema": "pitot.decision/v1", "launches": 3}`: "cannot unmarshal",
		`nonsense`: "invalid character",
	} {
		if _, err := parseRecord("x/decision.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, path := range []string{t.TempDir(), "nowhere"} {
		if _, err := ReadRecord(path); err == nil {
			t.Errorf("%s is read", path)
		}
	}
}

func FuzzRecord(f *testing.F) {
	data, err := json.Marshal(recordOf(rand.New(rand.NewPCG(1, 1)), "2026-01-01T00:00:00Z", "1", 3, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":"pitot.decision/v1","contract":{"confidence":2},"rows":[{"name":"F"}],"measured":[{"row":"F","values":[1,null,-1]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord("decision.json", data)
		if err != nil {
			return
		}
		CompareRecords("last", r, r)
		TrendOf([]string{"a", "b", "c", "d", "e"}, []*Record{r, r, r, r, r})
	})
}
