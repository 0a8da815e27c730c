package workload

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pitot/internal/workload/seed"
)

// Pairs are drawn together: what is asked has the lengths of the file's requests, each with
// its own answer, about equally often, and so their correlation and both distributions.
func TestPairs(t *testing.T) {
	file := written(t, "answer,output_tokens,input_tokens\na,20,1000\nb,1000,20\nc,500,510\nd,700,300\n")
	in, err := ParseLengths("pairs(" + file + ", input)")
	if err != nil {
		t.Fatal(err)
	}
	out, err := ParseLengths("Pairs(" + file + ",output)")
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRandom(RandomConfig{Input: in, Output: out, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	const n = 8000
	seen := map[[2]int]int{}
	for i := range int64(n) {
		q, err := r.At(i)
		if err != nil {
			t.Fatal(err)
		}
		seen[[2]int{q.Input, q.Output}]++
	}
	for _, pair := range [][2]int{{1000, 20}, {20, 1000}, {510, 500}, {300, 700}} {
		if got := float64(seen[pair]); math.Abs(got-n/4) > 5*math.Sqrt(n*3./16) { // five standard deviations
			t.Errorf("%v came %v times", pair, got)
		}
		delete(seen, pair)
	}
	if len(seen) > 0 {
		t.Errorf("pairs that the file has not: %v", seen)
	}
	if again, err := ParseLengths(out.String()); err != nil || again != out || !in.Pairs(again) || again.Pairs(in) {
		t.Errorf("%s is not read back as it was: %v", out, err)
	}
	if in.Mean() != 457.5 || out.Mean() != 555 || in.Quantile(0) != 20 || in.Quantile(.5) != 510 || out.Quantile(1) != 1000 {
		t.Errorf("means %v and %v, quantiles %v %v %v", in.Mean(), out.Mean(), in.Quantile(0), in.Quantile(.5), out.Quantile(1))
	}
}

// Of a public trace the rank correlation and the marginal distributions of what is asked are
// the trace's own.
func TestPairsOfTrace(t *testing.T) {
	const name = "testdata/azure_conv_head200.csv"
	trace, err := ReadTrace(name)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := ParseLengths("pairs(" + name + ",input)")
	out, err := ParseLengths("pairs(" + name + ",output)")
	if err != nil {
		t.Fatal(err)
	}
	c := RandomConfig{Input: in, Output: out, Seed: 3}
	drawn := &Trace{}
	for i := range uint64(40_000) {
		drawn.Input = append(drawn.Input, int32(in.Draw(seed.At(c.Seed, streamInput, i))))
		drawn.Output = append(drawn.Output, int32(out.Draw(c.answerDraw(i))))
	}
	if got, want := drawn.LengthCorrelation(), trace.LengthCorrelation(); math.Abs(got-want) > .02 {
		t.Errorf("rank correlation %.3f, the trace has %.3f", got, want)
	}
	for which, of := range map[string][2][]int32{"input": {drawn.Input, trace.Input}, "output": {drawn.Output, trace.Output}} {
		got, want := of[0], slices.Clone(of[1])
		slices.Sort(got)
		slices.Sort(want)
		for _, x := range want {
			a, _ := slices.BinarySearch(got, x+1)
			b, _ := slices.BinarySearch(want, x+1)
			if d := float64(a)/float64(len(got)) - float64(b)/float64(len(want)); math.Abs(d) > .015 {
				t.Fatalf("%s: %d tokens or fewer: %.3f apart", which, x, d)
			}
		}
	}
}

func TestPairsRefused(t *testing.T) {
	file := written(t, "input_tokens,output_tokens\n10,20\n")
	in, _ := ParseLengths("pairs(" + file + ",input)")
	out, _ := ParseLengths("pairs(" + file + ",output)")
	if _, err := NewRandom(RandomConfig{Input: in, Output: out, Correlation: .5}); err == nil {
		t.Error("pairs with another correlation")
	}
	for text, want := range map[string]string{
		"pairs(" + file + ")":                            "which file",
		"pairs(" + file + ",both)":                       "which file",
		"pairs(nowhere.csv,input)":                       "no such file",
		"pairs(" + written(t, "0\n1\n") + ",input)":      "has both lengths for 0 of",
		"pairs(" + written(t, "a prompt\n") + ",output)": "has both lengths for 0 of",
	} {
		if _, err := ParseLengths(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
