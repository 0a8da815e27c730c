package result

import "testing"

// A median of 0, as of a proxy that sends whole answers, is nothing to be so many times as slow as.
func TestSlowerThanNothing(t *testing.T) {
	zero, three := 0., 3.
	o := OverTime{Blocks: []Block{{TPOT: &zero}, {TPOT: &three}}, Differ: []Differ{{Metric: "tpot", Slowest: 1}, {Metric: "ttft", Slowest: 1}}}
	if got := o.SlowerBlocks(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	one := 1.
	if o.Blocks[0].TPOT = &one; len(o.SlowerBlocks()) != 1 {
		t.Error("three times as slow is not told")
	}
}
