package workload

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/token"
)

// percentsOf are those that lengths of a file are kept at: dense at the ends, where long
// prompts are few and count for much.
var percentsOf = []float64{0, 0.1, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 92.5, 95, 97, 98, 99, 99.5, 99.9, 100}

// columnOf returns the file and the column that quantiles(FILE,input) or quantiles(FILE,output)
// names.
func columnOf(s string) (name, which string, ok bool) {
	_, inner, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(s), ")"), "(")
	i := strings.LastIndexByte(inner, ',')
	name, which = strings.TrimSpace(inner[:max(i, 0)]), strings.TrimSpace(inner[i+1:])
	return name, which, name != "" && (which == "input" || which == "output")
}

// quantilesOf are the lengths of a trace or of a file's prompts, of which the quantiles are
// kept and the file is needed no more.
func quantilesOf(name, which string) (Lengths, error) {
	t, err := SummarizeRequests(name, token.Universal().Count)
	if err != nil {
		return Lengths{}, err
	}
	column := t.Input
	if which == "output" {
		column = t.Output
	}
	known := slices.DeleteFunc(slices.Clone(column), func(x int32) bool { return x < 0 })
	if len(known) == 0 {
		return Lengths{}, say.Errorf("%s does not say the %s of its requests", name, map[string]string{"input": "prompt lengths", "output": "answer lengths"}[which])
	}
	slices.Sort(known)
	var list []string
	for _, p := range percentsOf {
		// X(⌈np⌉), and the least at 0
		k := min(max(int((p*float64(len(known))+99.999999)/100), 1), len(known))
		list = append(list, fmt.Sprintf("%s:%d", say.Exact(p), max(known[k-1], 1)))
	}
	shape, err := parseQuantiles(strings.Join(list, ","))
	if err != nil {
		return Lengths{}, say.Errorf("lengths of %s: %v", name, err)
	}
	return Lengths{kind: quantiles, shape: shape}, nil
}
