package workload

import (
	"slices"
	"strings"
	"testing"
)

// Lengths drawn from the quantiles of a trace are like the trace's own.
func TestQuantilesOfFile(t *testing.T) {
	trace, err := ReadTrace("testdata/azure_conv_head200.csv")
	if err != nil {
		t.Fatal(err)
	}
	for which, column := range map[string][]int32{"input": trace.Input, "output": trace.Output} {
		l, err := ParseLengths("quantiles(testdata/azure_conv_head200.csv, " + which + ")")
		if err != nil {
			t.Fatal(err)
		}
		const draws = 20_000
		var got []int32
		for i := range draws {
			got = append(got, int32(l.Quantile((float64(i)+.5)/draws)))
		}
		slices.Sort(column)
		for i, x := range column { // Kolmogorov and Smirnov's distance, over the steps of both
			below, _ := slices.BinarySearch(got, x)
			upTo, _ := slices.BinarySearch(got, x+1)
			low, high := float64(below)/draws, float64(upTo)/draws
			from, _ := slices.BinarySearch(column, x)
			to, _ := slices.BinarySearch(column, x+1)
			if n := float64(len(column)); low > float64(to)/n+.05 || high < float64(from)/n-.05 {
				t.Fatalf("%s: %d tokens, the %d-th of %d, has the ranks %.3f to %.3f", which, x, i, len(column), low, high)
			}
		}
		if got[0] != column[0] || got[draws-1] > column[len(column)-1] {
			t.Errorf("%s: %d to %d, the trace has %d to %d", which, got[0], got[draws-1], column[0], column[len(column)-1])
		}
		again, err := ParseLengths(l.String())
		if err != nil || again != l {
			t.Errorf("%s: not read back: %v", which, err)
		}
	}
	for text, want := range map[string]string{
		"quantiles(nowhere.csv,input)":                                        "no such file",
		"quantiles(" + written(t, "0\n1\n") + ",input)":                       "does not say the prompt lengths",
		"quantiles(testdata/servegen_offline_trace_d_head20.jsonl,input):5:6": "not a length",
	} {
		if _, err := ParseLengths(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
