package page

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pitot/internal/report"
)

// Every request is in one bar of a histogram, and all of them are at or below the longest.
func TestWorkloadCharts(t *testing.T) {
	for name, values := range map[string][]float64{"octaves": {1, 1, 2, 3, 50, 700, 9000}, "even": {100, 101, 150, 199, 200}, "two": {7, 8}} {
		part := report.DrawnPart{Prompts: values, Answers: []float64{5, 5}, Times: []float64{0, 1, 1, 4}, Gaps: []float64{0, 1000, 3000}}
		charts := drawnCharts("w-", &part)
		if len(charts) != 2 || charts[0].ID != "w-prompts" || charts[1].ID != "w-below" {
			t.Fatalf("%s: %d charts", name, len(charts))
		}
		sum := 0.
		for i, y := range charts[0].Series[0].Y[:len(charts[0].Series[0].Y)-1] {
			sum += y
			if x := charts[0].Series[0].X; x[i] >= x[i+1] {
				t.Errorf("%s: bars from %v", name, x)
			}
		}
		below := charts[1].Series[0]
		if math.Abs(sum-100) > 1e-9 || below.Y[len(below.Y)-1] != 100 || below.X[len(below.X)-1] != values[len(values)-1] {
			t.Errorf("%s: bars of %v %%, %v %% at or below %v", name, sum, below.Y, below.X)
		}
		requests, rate := 0., arrivalCharts("w-", &part)[0].Series[0]
		for _, y := range rate.Y {
			requests += y * rate.X[1]
		}
		if math.Abs(requests-4) > 1e-9 {
			t.Errorf("%v requests over time", requests)
		}
	}
	var b bytes.Buffer
	if err := WriteWorkload(&b, report.Drawing{Name: "x<y", Parts: []report.DrawnPart{{Prompts: []float64{5, 5}}}}, []string{"pitot"}); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); !strings.Contains(page, "x&lt;y") || !strings.Contains(page, "all the same") || strings.Contains(page, "http://") && !strings.Contains(page, "www.w3.org") {
		t.Error(page[:2000])
	}
}
