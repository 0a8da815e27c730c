package main

import (
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"

	"pitot/internal/analysis/predict"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

// unlike are six loads that no calibration asks: light and past saturation, short
// prompts and long ones, prefixes that are shared, and more context than the KV
// cache of some ten thousand tokens holds.
var unlike = []asked{
	{name: "light", flags: []string{"--rate", "2", "--input", "300", "--output", "60"}},
	{name: "steady", flags: []string{"--rate", "5", "--input", "uniform(50,500)", "--output", "uniform(20,120)"}},
	{name: "past saturation", flags: []string{"--concurrency", "48", "--input", "uniform(30,120)", "--output", "uniform(20,120)"}},
	{name: "long prompts", flags: []string{"--rate", "0.8", "--input", "uniform(2500,3500)", "--output", "60"}},
	{name: "shared prefixes", flags: []string{"--rate", "4", "--input", "uniform(50,300)", "--prefix", "512", "--prefix-share", "0.6", "--output", "60"}},
	{name: "KV overflow", flags: []string{"--concurrency", "24", "--input", "uniform(300,500)", "--output", "uniform(200,400)"}},
}

// quantities are what is predicted of TTFT, TPOT and E2E, and the errors wanted.
var quantities = []struct {
	name   string
	of     func(sorted []float64) float64
	wanted float64
}{
	{"mean", func(v []float64) float64 { mean, _ := stats.Moments(v); return mean }, 0.10},
	{"p50", func(v []float64) float64 { return stats.Percentile(v, 0.5) }, 0.10},
	{"p99", func(v []float64) float64 { return stats.Percentile(v, 0.99) }, 0.20},
}

// judgeCalibrations measures rounds of the loads with calibrations between them, and
// compares what each calibration predicts of a load with what its rounds measured.
func (e *engine) judgeCalibrations(calibrations, rounds int) {
	found := map[string][]measured{}
	var profiles []string
	for i := range max(calibrations, rounds) {
		if i < rounds {
			for _, l := range unlike {
				m, _ := e.measure(l, i)
				found[l.name] = append(found[l.name], m)
			}
		}
		if i < calibrations {
			profiles = append(profiles, e.calibrate(i))
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", i+1, max(calibrations, rounds))
	}
	fmt.Printf("%d calibrations, and %d runs of %d s of each load; predicted ÷ measured, geometric mean over the runs, of each calibration\n", len(profiles), rounds, e.seconds)
	fmt.Printf("spread: how far apart the runs of the load are, largest ÷ smallest; good: within 10 %% (p99: 20 %%), or within 1.5 times the spread where that is more\n\n")
	fmt.Printf("%-16s %-9s %10s %7s  %s\n", "load", "of", "measured", "spread", "predicted ÷ measured by each calibration")
	good, strict, all, held, said := 0, 0, 0, 0, 0
	apart := 1.0
	for _, l := range unlike {
		errors := make([]deploy.ExpectedError, len(profiles)) // that each says to expect of the load
		var is [3][3][]float64                                // latency, quantity: logarithm of each round's
		var by [3][3][]float64                                // and of each profile's, over the rounds
		for round, run := range found[l.name] {
			var m series
			m.read(run.dir)
			for k := range m.of {
				stats.SortFloat64(m.of[k])
				for q := range quantities {
					is[k][q] = append(is[k][q], math.Log(quantities[q].of(m.of[k])))
				}
			}
			for i, profile := range profiles {
				if round == 0 {
					errors[i] = expectedError(e.profiled(profile), run.dir)
				}
				var p series
				p.predict(e.profiled(profile), run.dir, uint64(round))
				for k := range p.of {
					stats.SortFloat64(p.of[k])
					for q := range quantities {
						if round == 0 {
							by[k][q] = append(by[k][q], 0)
						}
						by[k][q][i] += math.Log(quantities[q].of(p.of[k])) / float64(rounds)
					}
				}
			}
		}
		for k, latency := range []string{"TTFT", "TPOT", "E2E"} {
			for q, quantity := range quantities {
				center, _ := stats.Moments(is[k][q])
				spread := slices.Max(is[k][q]) - slices.Min(is[k][q])
				fmt.Printf("%-16s %-4s %-4s %7.2f ms %7.2f ", l.name, latency, quantity.name, 1e3*math.Exp(center), math.Exp(spread))
				for i, x := range by[k][q] {
					off := math.Abs(x - center)
					mark := "  "
					all++
					switch {
					case off <= math.Log1p(quantity.wanted):
						strict++
						good++
					case off <= 1.5*spread:
						good++
						mark = "~ "
					default:
						mark = "! "
					}
					fmt.Printf(" %5.2f%s", math.Exp(x-center), mark)
					if q == 0 {
						said++
						if pct := []float64{errors[i].TTFTPct, errors[i].TPOTPct, errors[i].E2EPct}[k]; off <= math.Log1p(pct/100) {
							held++
						}
					}
				}
				apart = max(apart, math.Exp(slices.Max(by[k][q])-slices.Min(by[k][q])))
				fmt.Println()
			}
		}
	}
	fmt.Printf("\n%d of %d within 10 %% and 20 %%, %d with the spread; the error to expect held of %d of %d means; two calibrations are %.2f times apart at most\n", strict, all, good, held, said, apart)
}

// calibrate makes a profile, unless it is there from before.
func (e *engine) calibrate(i int) (profile string) {
	dir := filepath.Join(e.dir, fmt.Sprintf("calibration-%d", i))
	profile = filepath.Join(dir, "profile.yaml")
	if _, err := os.Stat(profile); err == nil {
		return profile
	}
	command := e.client("calibrate", e.url, "--api", "openai-completions", "--deployment", e.spec, "--out", dir, "--quiet")
	if output, err := command.CombinedOutput(); err != nil {
		log.Fatalf("calibrate: %v\n%s", err, output)
	}
	return profile
}

// expectedError is the error that the twin with a profile says to expect of a run's load,
// as predict prints it.
func expectedError(spec, dir string) deploy.ExpectedError {
	d, err := deploy.Parse(spec)
	if err != nil {
		log.Fatal(err)
	}
	runs, err := predict.ReadRuns(dir)
	if err != nil {
		log.Fatal(err)
	}
	r := runs[0]
	x := predict.ErrorAt(d, r.LoadRange(), func(d *deploy.Deployment) predict.Metrics { return r.Replay(d).Metrics() })
	if x == nil {
		log.Fatalf("%s says no error to expect", spec)
	}
	return *x
}
