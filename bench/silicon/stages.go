package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"pitot/internal/loadgen"
	"pitot/internal/results/record"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// experiment is a server of inference-sim/training and the loads it was put
// under, by its exp-config.yaml and inference-perf's config.yaml.
type experiment struct {
	Model       string `yaml:"model"`
	TP          int    `yaml:"tensor_parallelism"`
	MaxModelLen int    `yaml:"max_model_len"`
	Budget      int    `yaml:"max_num_batched_tokens"`
	MaxNumSeqs  int    `yaml:"max_num_seqs"`

	Data struct {
		Shared struct {
			Groups    int `yaml:"num_groups"`
			PerGroup  int `yaml:"num_prompts_per_group"`
			System    int `yaml:"system_prompt_len"`
			Question  int `yaml:"question_len"`
			OutputLen int `yaml:"output_len"`
		} `yaml:"shared_prefix"`
	} `yaml:"data"`
	Load struct {
		Stages []struct {
			Rate, Duration float64
		}
	} `yaml:"load"`
}

// outcome is what inference-perf found in a stage, in seconds.
type outcome struct {
	Successes struct {
		Latency struct {
			E2E  struct{ Mean float64 } `json:"request_latency"`
			TTFT struct{ Mean float64 } `json:"time_to_first_token"`
		}
		Prompt struct{ Mean float64 } `json:"prompt_len"`
	}
	Failures struct{ Count int }
}

// stages prints the twin's error on the loads of inference-sim/training: vLLM on
// H100s, requests at even distances, a hundred prompts that come again and again.
// Stages in which requests failed are left out: their servers were overloaded.
func stages(dir, set string) error {
	found, err := filepath.Glob(filepath.Join(dir, "default_args", "*", "results", "stage_*_lifecycle_metrics.json"))
	if err != nil {
		return err
	}
	var e2e, ttft float64
	n, left := 0, 0
	for _, file := range found {
		var o outcome
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &o)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if o.Failures.Count > 0 {
			left++
			continue
		}
		var x experiment
		for _, part := range []string{"../exp-config.yaml", "config.yaml"} {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(file), part))
			if err == nil {
				err = yaml.Unmarshal(b, &x)
			}
			if err != nil {
				return fmt.Errorf("read %s of %s: %w", part, file, err)
			}
		}
		stage := 0
		if _, err := fmt.Sscanf(filepath.Base(file), "stage_%d_", &stage); err != nil || stage >= len(x.Load.Stages) {
			return fmt.Errorf("%s is no stage of its config.yaml", file)
		}
		s, err := x.simulate(dir, set, stage, int(math.Round(o.Successes.Prompt.Mean)))
		if err != nil {
			return fmt.Errorf("simulate %s: %w", file, err)
		}
		measured := o.Successes.Latency
		a, b2 := s.e2e/s.n/measured.E2E.Mean-1, s.ttft/s.n/measured.TTFT.Mean-1
		fmt.Printf("%-40s TP%d %4g/s %4.0f/%-4d E2E %5.2f s → %5.2f (%+5.1f %%)  TTFT %5.1f ms → %5.1f (%+5.1f %%)\n", x.Model, x.TP, x.Load.Stages[stage].Rate, o.Successes.Prompt.Mean, x.Data.Shared.OutputLen,
			measured.E2E.Mean, s.e2e/s.n, 100*a, 1e3*measured.TTFT.Mean, 1e3*s.ttft/s.n, 100*b2)
		n++
		e2e += math.Abs(a)
		ttft += math.Abs(b2)
	}
	if n == 0 {
		return fmt.Errorf("no stages in %s", dir)
	}
	fmt.Printf("\n%d stages, %d left out as requests failed: mean error of mean E2E %.1f %%, of mean TTFT %.1f %%\n", n, left, 100*e2e/float64(n), 100*ttft/float64(n))
	return nil
}

// simulate has the twin answer a stage.
func (x *experiment) simulate(dir, set string, stage, prompt int) (*stageSink, error) {
	model := x.Model
	if shape := filepath.Join(dir, "model_configs", filepath.Base(model)); isDir(shape) {
		model = shape
	}
	spec := fmt.Sprintf("%s@%dxh100?max_num_seqs=%d&max_num_batched_tokens=%d&max_model_len=%d", model, x.TP, x.MaxNumSeqs, x.Budget, x.MaxModelLen)
	if set != "" {
		spec += "&" + set
	}
	d, err := deploy.Parse(spec)
	if err != nil {
		return nil, err
	}
	at := x.Load.Stages[stage]
	count := int64(at.Rate * at.Duration)
	s := &stageSink{experiment: x, prompt: prompt}
	core := loadgen.NewCore(loadgen.Config{Arrivals: &even{apart: int64(1e9 / at.Rate)}, Requests: count, Total: count})
	loadgen.Run(context.Background(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: d.Engine(1), Source: s, Sink: s}))
	if s.n == 0 {
		return nil, fmt.Errorf("no request was answered")
	}
	return s, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// even are arrivals at even distances.
type even struct{ next, apart int64 }

func (a *even) Next() int64 {
	a.next += a.apart
	return a.next
}

// stageSink is the source of a stage's requests, and the sink of their times.
type stageSink struct {
	*experiment
	prompt       int
	ttft, e2e, n float64
}

// At implements [workload.Source]. Prompts of a group begin alike, and each of
// them comes again when all have come.
func (s *stageSink) At(id int64) (workload.Request, error) {
	d := &s.Data.Shared
	which := uint64(id) % uint64(d.Groups*d.PerGroup)
	return workload.Request{ID: id, Input: s.prompt, Output: d.OutputLen, Exact: true, Session: workload.Unknown, Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{
		{Seed: which % uint64(d.Groups), Words: d.System}, {Seed: 1<<32 + which, Words: d.Question},
	}}}}, nil
}

// Chunk implements [record.Sink].
func (*stageSink) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (s *stageSink) Done(r *record.Row) {
	if r.Outcome == record.OK {
		s.n++
		s.ttft += float64(r.FirstToken-r.Due) / 1e9
		s.e2e += float64(r.LastToken-r.Due) / 1e9
	}
}
