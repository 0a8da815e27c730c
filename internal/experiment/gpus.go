package experiment

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/experiment/server"
	"pitot/internal/sim/deploy"
)

// A knob that spreads the model over more accelerators changes what a configuration costs.

// parallelSettings are the names of settings that multiply the number of GPUs, each with its other
// names.
func parallelSettings() [][]string {
	return [][]string{
		{"tensor_parallel_size", "tp_size", "tp"},
		{"pipeline_parallel_size", "pp_size", "pp"},
		{"data_parallel_size", "dp_size", "dp"},
	}
}

// timesGPUs returns the number of GPUs of a configuration as a multiple of the baseline's.
func (p *Plan) timesGPUs(c Configuration) float64 {
	for _, names := range parallelSettings() {
		if slices.Contains(names, c.Knob) {
			if n, err := strconv.Atoi(c.Value); err == nil && n > 0 {
				return float64(n) / p.baselineOf(names)
			}
		}
	}
	return 1
}

// baselineOf is the baseline's value of such a setting, as its target or its command says;
// else 1, as engines have it.
func (p *Plan) baselineOf(names []string) float64 {
	text := strings.NewReplacer("?", " ", "&", " ").Replace(p.Target)
	if p.Server != nil {
		text = strings.NewReplacer(" -tp ", " --tp ", " -pp ", " --pp ", " -dp ", " --dp ").Replace(p.Server.Commands.Start)
	}
	told := server.Read(text)
	for _, name := range names {
		if n, err := strconv.Atoi(told[name]); err == nil && n > 0 {
			return float64(n)
		}
	}
	return 1
}

// gpuCount returns the number of GPUs of a configuration, 0 where that is not known.
func (p *Plan) gpuCount(c Configuration) int {
	if n := p.ContractRow().Plan.GPUs; n > 0 {
		return max(1, int(math.Round(float64(n)*p.timesGPUs(c))))
	}
	if spec := p.TwinSpec(); spec != "" {
		if d, err := deploy.Parse(c.targetWith(spec)); err == nil {
			return d.GPUs()
		}
	}
	return 0
}

// gpuWeights returns the number of GPUs of each configuration, nil where all have the same number.
func (p *Plan) gpuWeights() (list []float64) {
	differ := false
	for _, c := range p.Configurations() {
		w := p.timesGPUs(c)
		if n, base := p.gpuCount(c), p.gpuCount(Configuration{}); n > 0 && base > 0 {
			w = float64(n) / float64(base)
		}
		list, differ = append(list, w), differ || w != 1
	}
	if !differ {
		return nil
	}
	return list
}

// GPUs says how many GPUs a configuration has where that is not as many as the baseline's:
// "2 GPUs", or "2 times the baseline's GPUs" where their number is not known.
func (p *Plan) GPUs(c Configuration) string {
	times := p.timesGPUs(c)
	switch n := p.gpuCount(c); {
	case times == 1 && n == p.gpuCount(Configuration{}):
		return ""
	case n == 1:
		return "1 GPU"
	case n > 0:
		return strconv.Itoa(n) + " GPUs"
	}
	return strconv.FormatFloat(times, 'g', 3, 64) + " times the baseline's GPUs"
}
