// Package reporttest has the runs and comparisons that the tests of reports show. They are in JSON
// files: server.json is a run, and the others say how theirs are unlike it.
package reporttest

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

//go:embed *.json
var files embed.FS

// readFile reads a JSON file of this package.
func readFile(name string, v any) {
	data, err := files.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		panic(fmt.Sprintf("reporttest: read %s: %v", name, err))
	}
}

// SummaryAround is a summary of n samples around a median; what n is too few for is
// withheld, as measure does it.
func SummaryAround(n int64, p50 float64) *result.Summary {
	s := &result.Summary{N: n, Over: map[string]float64{}, Bounds: map[string][2]float64{}, Withheld: map[string]result.Reason{}}
	scaled := func(x float64) *float64 { x *= p50; return &x }
	s.Mean, s.SD, s.Min, s.Max = scaled(1.04), scaled(.2), scaled(.7), scaled(3.5)
	for i, c := range metric.Percentiles() {
		few, firm := c.SamplesNeeded()
		if n < few {
			s.Withheld[c.Key] = result.Reason{Code: result.FewShown, N: float64(n), Needed: 1000, Firm: 10_000}
			continue
		}
		if n < firm {
			s.Few = append(s.Few, c.Key)
		}
		s.SetValue(c.Key, scaled([]float64{1, 1.21, 1.4, 1.9, 2.6}[i]))
	}
	return s
}

// NewCheck is a check that came out in some way.
func NewCheck(name string, status result.Status, value, limit float64) result.Check {
	c := result.NewCheck(name, value, limit)
	c.Status = status
	return c
}

// ServerRun is a run against a server, of one point with n requests.
func ServerRun(n int) *result.Run {
	run := new(result.Run)
	readFile("server.json", run)
	p := &run.Points[0]
	p.Requests = result.Requests{Due: n, OK: n}
	tokens := int64(n) * 127
	p.Metrics = result.MetricsOf(map[metric.Name]*result.Summary{
		metric.TTFT: SummaryAround(int64(n), 87.3), metric.TPOT: SummaryAround(int64(n), 8.41),
		metric.ITL: SummaryAround(tokens, 8.2), metric.ICL: SummaryAround(tokens, 8.2),
		metric.Stall: SummaryAround(int64(n), 11.6), metric.E2E: SummaryAround(int64(n), 1155.2),
		metric.Lag: SummaryAround(int64(n), .0125),
	})
	return run
}

// variant says how a run is unlike another. Changes are JSON merge patches (RFC 7396), in which
// an element of a list is named by its place too.
type variant struct {
	Requests int // of the run that it is unlike, where that is of [ServerRun]
	Run      map[string]any
	Points   []struct { // each unlike the only one of the other run; where there are none, that
		Changes   map[string]any
		Summaries map[metric.Name][2]float64 // as for [SummaryAround]
	}
}

// variantOf returns a variant of a run.
func (v *variant) variantOf(base *result.Run) *result.Run {
	run := applyPatch(*base, v.Run)
	if v.Points == nil {
		return &run
	}
	run.Points = nil
	for _, unlike := range v.Points {
		p := applyPatch(base.Points[0], unlike.Changes)
		for name, s := range unlike.Summaries {
			p.Metrics.SetSummary(name, SummaryAround(int64(s[0]), s[1]))
		}
		run.Points = append(run.Points, p)
	}
	return &run
}

// applyPatch returns a value with changes.
func applyPatch[T any](base T, changes map[string]any) (changed T) {
	var plain any
	convertJSON(base, &plain)
	convertJSON(mergePatch(plain, changes), &changed)
	return changed
}

// convertJSON makes one value of another by way of JSON.
func convertJSON(from, to any) {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(fmt.Sprintf("reporttest: convert %T: %v", from, err))
	}
}

func mergePatch(base, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	if list, ok := base.([]any); ok {
		for place, change := range changes {
			if i, err := strconv.Atoi(place); err == nil {
				list[i] = mergePatch(list[i], change)
			}
		}
		return list
	}
	object, _ := base.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	for key, change := range changes {
		if object[key] = mergePatch(object[key], change); change == nil {
			delete(object, key)
		}
	}
	return object
}

// Runs are runs as they come out, each with something to show.
func Runs() map[string]*result.Run {
	var variants map[string]*variant
	readFile("runs.json", &variants)
	all := map[string]*result.Run{}
	for name, v := range variants {
		all[name] = v.variantOf(ServerRun(v.Requests))
		validity.AddAdvice(all[name])
	}
	return all
}

// SweepRun is a sweep of four loads, of which the last is too much, put to a limit
// that goodput counts by.
func SweepRun() *result.Run {
	var v variant
	readFile("sweep.json", &v)
	return v.variantOf(ServerRun(v.Requests))
}
