package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/predict"
	"pitot/internal/sim/deploy"
)

// figure is what tables have of a prediction.
type figure struct {
	metric, statistic string
	of                func(*predict.Metrics) predict.Quantities
	most              float64 // percent that it should be within
}

func (q *figure) value(m *predict.Metrics) float64 {
	if q.statistic == "p99" {
		return q.of(m).P99
	}
	return q.of(m).Mean
}

// figures are all of them.
func figures() (list []figure) {
	for _, m := range []struct {
		name string
		of   func(*predict.Metrics) predict.Quantities
	}{
		{"TTFT", func(m *predict.Metrics) predict.Quantities { return m.TTFT }},
		{"TPOT", func(m *predict.Metrics) predict.Quantities { return m.TPOT }},
		{"E2E", func(m *predict.Metrics) predict.Quantities { return m.E2E }},
	} {
		list = append(list, figure{m.name, "mean", m.of, 5}, figure{m.name, "p99", m.of, 10})
	}
	return list
}

// row is a line of a table: errors of each figure.
type row struct {
	name   string
	errors [][]float64
}

// rows are the lines of a table in the order in which their names came.
type rows []row

func (r *rows) add(name string, figure int, pct float64) {
	i := slices.IndexFunc(*r, func(x row) bool { return x.name == name })
	if i < 0 {
		i = len(*r)
		*r = append(*r, row{name, make([][]float64, len(figures()))})
	}
	(*r)[i].errors[figure] = append((*r)[i].errors[figure], math.Abs(pct))
}

func (r rows) print() {
	fmt.Print("| median error, nine of ten, within the bound |")
	for _, q := range figures() {
		fmt.Printf(" %s %s, %.0f %% |", q.metric, q.statistic, q.most)
	}
	fmt.Print("\n|---|---|---|---|---|---|---|\n")
	for _, x := range r {
		fmt.Printf("| %s |", x.name)
		for i, q := range figures() {
			v := x.errors[i]
			n := 0
			for _, e := range v {
				if e <= q.most {
					n++
				}
			}
			fmt.Printf(" %.1f, %.1f %%, %d/%d |", median(v), quantile(v, 0.9), n, len(v))
		}
		fmt.Println()
	}
	fmt.Println()
}

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[min(int(q*float64(len(v))), len(v)-1)]
}

// tables show what came of servers.
func tables(list []*Result) {
	var every, loads, systems, of rows
	for _, x := range list {
		system, _, _ := strings.Cut(x.Server, "?")
		for i := range x.Predicted {
			p := &x.Predicted[i]
			for k, q := range figures() {
				e := q.value(&p.Error)
				every.add("all", k, e)
				every.add("not calibrated", k, q.value(&p.Unfitted))
				loads.add(p.Load, k, e)
				of.add(x.Kind, k, e)
				systems.add(system, k, e)
			}
		}
	}
	slices.Concat(every, loads, of, systems).print()
	expectations(list)
	ranges(list)
	var cpus []float64
	for _, x := range list {
		cpus = append(cpus, x.CPU)
	}
	fmt.Printf("%.0f s of processor time a calibration (median), %.0f s at most\n\n", median(cpus), slices.Max(cpus))
}

// expectations shows how often the errors to expect held.
func expectations(list []*Result) {
	fmt.Print("| the error to expect of a mean holds | TTFT | TPOT | E2E | median error to expect |\n|---|---|---|---|---|\n")
	show := func(name string, wanted func(*Predicted) bool, of func(*Predicted) *deploy.ExpectedError) {
		var held, all [3]int
		var widths []float64
		for _, x := range list {
			for i := range x.Predicted {
				p := &x.Predicted[i]
				e := of(p)
				if e == nil || !wanted(p) {
					continue
				}
				for k, pair := range [][2]float64{{p.Error.TTFT.Mean, e.TTFTPct}, {p.Error.TPOT.Mean, e.TPOTPct}, {p.Error.E2E.Mean, e.E2EPct}} {
					widths = append(widths, pair[1])
					if all[k]++; math.Abs(pair[0]) <= pair[1] {
						held[k]++
					}
				}
			}
		}
		if all[0] > 0 {
			fmt.Printf("| %s | %d/%d | %d/%d | %d/%d | %.1f %% |\n", name, held[0], all[0], held[1], all[1], held[2], all[2], median(widths))
		}
	}
	within := func(p *Predicted) bool { return p.Beyond == 0 }
	beyond := func(p *Predicted) bool { return p.Beyond > 0 }
	printed := func(p *Predicted) *deploy.ExpectedError { return p.Expected }
	show("all", func(*Predicted) bool { return true }, printed)
	show("within what was fitted", within, printed)
	show("beyond", beyond, printed)
	show("beyond, were it not wider there", beyond, func(p *Predicted) *deploy.ExpectedError { return p.Within })
	fmt.Println()
}

// ranges shows how often those of parameters hold the truth.
func ranges(list []*Result) {
	fmt.Print("| parameter | in range | determined | of these in range | range, ×÷ | off by, median |\n|---|---|---|---|---|---|\n")
	of := map[string]*known{}
	var names, sums []string
	for _, x := range list {
		for _, p := range x.Parameters {
			for i, name := range []string{p.Name, "all", "all, " + x.Kind} {
				if of[name] == nil {
					of[name] = &known{}
					if i == 0 {
						names = append(names, name)
					} else {
						sums = append(sums, name)
					}
				}
				of[name].add(&p.Fitted, p.Truth)
			}
		}
	}
	for _, name := range append(names, sums...) {
		k := of[name]
		n := len(k.off)
		fmt.Printf("| %s | %d/%d | %d/%d | %d/%d | %.2f | %.0f %% |\n", name, k.held, n, k.determined, n, k.heldDetermined, k.determined, median(k.factors), 100*(math.Exp(median(k.off))-1))
	}
	fmt.Println()
}
