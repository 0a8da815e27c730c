package experiment

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pitot/internal/experiment/decide"
)

const controlled = `
contract: {limits: "p95 ttft<500ms, errors<1%", capacity: 10/s}
target: sim:llama-3.1-8b@h100
rows: [A, F]
knobs:
  max_num_seqs: {values: [4, 16], rows: F}
  max_num_batched_tokens: [2048]
launches: 3
`

// A row that a knob cannot move is measured in its first launch alone; it is seen when it
// moves, and seldom when it does not.
func TestControls(t *testing.T) {
	p, err := Parse("plan.yaml", []byte(controlled))
	if err != nil {
		t.Fatal(err)
	}
	all := p.Configurations()
	for i, want := range []int{2, 1, 1, 2} {
		if n := len(p.launchParts(all[i], 2)); n != want || len(p.launchParts(all[i], 1)) != 2 {
			t.Errorf("%s: %d rows in its second launch", all[i].Name, n)
		}
	}
	if n := p.launchesOfRow(p.Row("A")); n != 3+1+1+3 {
		t.Errorf("%g launches measure A", n)
	}
	x := &Experiment{Plan: p}
	f, err := parseFigure("p50 ttft")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 4))
	moved, wrong := 0, 0
	const times = 300
	for range times {
		values := make([][]float64, len(all))
		for i := range values {
			for range 3 {
				values[i] = append(values[i], 15*(1+.03*r.NormFloat64()))
			}
		}
		values[2][0] *= 2
		list := x.compareControls(p.Row("A"), f, values, &decide.Decision{})
		judgeControls(list, .95)
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		if list[0].Moved {
			wrong++
		}
		if list[1].Moved {
			moved++
		}
	}
	if moved < times*9/10 || wrong > times*7/100 {
		t.Errorf("of %d controls that moved %d are seen, of as many that did not %d", times, moved, wrong)
	}
	for plan, want := range map[string]string{
		strings.Replace(controlled, "rows: F}", "rows: G}", 1):    "there is no row G that max_num_seqs could move",
		strings.Replace(controlled, "rows: F}", "row: F}", 1):     `unknown key "row" in knob max_num_seqs`,
		strings.Replace(controlled, "values: [4, 16],", "", 1):    "max_num_seqs has no values",
		strings.Replace(controlled, "rows: F}", "rows: [{}]}", 1): "want one value",
	} {
		if _, err := Parse("plan.yaml", []byte(plan)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A limit in front of the server is one of the load: the target stays as it is.
func TestLimitInFront(t *testing.T) {
	text := strings.Replace(controlled, "max_num_batched_tokens: [2048]", "load.max-in-flight: [32]", 1)
	p, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Configurations()[3]
	part := Part{c, p.ContractRow(), 1}
	one := p.partPlan(&part, "x")
	if c.Name != "load.max-in-flight=32" || p.Spec(c) != p.Target || one.MaxInFlight != 32 || c.targetWith(p.TwinSpec()) != p.TwinSpec() {
		t.Errorf("%+v, %s, %d", c, p.Spec(c), one.MaxInFlight)
	}
	if line := strings.Join(partCommand(one, p.ContractRow(), p), " "); !strings.Contains(line, "--max-in-flight 32") {
		t.Error(line)
	}
	for knob, want := range map[string]string{"load.max-in-flight: [0]": `"0" is no number of requests`, "load.rate: [3]": `"load.rate" is no knob of the load`} {
		if _, err := Parse("plan.yaml", []byte(strings.Replace(text, "load.max-in-flight: [32]", knob, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", knob, err)
		}
	}
}
