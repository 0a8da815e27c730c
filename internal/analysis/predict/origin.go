package predict

import (
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"strconv"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
)

// CheckDistinct refuses a run that is given twice: it would count as two that agree.
// The error is the user's.
func CheckDistinct(dirs []string) error {
	seen := map[string]string{}
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			path = dir
		}
		if p, err := filepath.EvalSymlinks(path); err == nil {
			path = p
		}
		if first, ok := seen[path]; ok {
			return say.Errorf("%s and %s are the same run", first, dir).WithHint("name it once")
		}
		seen[path] = dir
	}
	return nil
}

// runOrigin tells runs apart, wherever their directories are: when one was started,
// with what seed, on what.
func runOrigin(run *result.Run) string {
	return fmt.Sprintf("%s seed %d %s", run.Started, run.Seed, run.Target.Model)
}

// deploymentDifferences says in what a run was of another deployment than d, as far as
// its server reported. dir is the run's.
func deploymentDifferences(dir string, run *result.Run, d *deploy.Deployment) (notes []string) {
	notef := func(what, of, here string) {
		notes = append(notes, fmt.Sprintf("%s of the run in %s is %s, not %s: name the deployment that ran, or these figures are of another one", what, dir, of, here))
	}
	server, facts := run.Target.Server, d.ServerFacts()
	name := run.Target.Model
	if m := server["model"]; m != "" {
		name = m
	}
	m, err := catalogue.FindModel(name)
	switch own, known := catalogue.FindModel(d.Model.Name); {
	case name == "" || known != nil || own.Name != d.Model.Name: // a file's shape, under a name of its own
	case err != nil:
		notes = append(notes, fmt.Sprintf("the server of the run in %s calls its model %s; whether it is %s is not known", dir, name, d.Model.Name))
	case m.Name != d.Model.Name:
		notef("the model", m.Name, d.Model.Name)
	case m.Quantised != "" && m.DType != d.DType && server["dtype"] == "":
		notef("dtype", m.DType, d.DType)
	}
	for _, k := range []string{"accelerator", "dtype", "kv_cache_dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "num_gpu_blocks"} {
		of, here := server[k], facts[k]
		if of == "" || of == "auto" || of == here || isNearBlocks(k, of, here) {
			continue
		}
		notef(k, of, here)
	}
	return notes
}

// isNearBlocks says that a number of blocks is one that the twin works out itself well
// enough.
func isNearBlocks(k, of, here string) bool {
	x, e1 := strconv.ParseFloat(of, 64)
	y, e2 := strconv.ParseFloat(here, 64)
	return k == "num_gpu_blocks" && e1 == nil && e2 == nil && math.Abs(x/y-1) < 0.05
}

// fingerprintRequests tells a recording by its requests: when they came and how long they are.
func (r *Recording) fingerprintRequests() uint64 {
	h := fnv.New64a()
	for _, q := range r.Requests {
		fmt.Fprintf(h, "%d %d %.6f\n", q.Input, q.Output, q.Arrival)
	}
	return h.Sum64()
}

// InSample says that constants of the twin (2.2 ms a step and 20 µs a row, see
// sim/catalogue/SOURCES.md) were chosen on this recording: that the twin agrees
// with it is no forecast.
func (r *Recording) InSample() bool {
	switch r.fingerprintRequests() {
	case 0xabe477d2ae1eafc1, 0x1499342031042433: // rtx4090-llama-3.1-8b, rtxpro6000-llama-3.1-8b
		return true
	}
	return false
}
