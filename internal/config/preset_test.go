package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/workload"
)

// A preset whose lengths belong together asks for them so, unless another correlation is
// given.
// A preset's limits hold where no others are given, and config.yaml keeps them.
func TestPresetLimits(t *testing.T) {
	p, _, err := Decode(VerbFind, []string{"sim:fixed", "--workload", "mlperf-llama2-70b"}, nil)
	if err != nil || p.SLO.String() != "p99 ttft<2s, p99 tpot<200ms" || p.WholePreset() != "mlperf-llama2-70b" {
		t.Errorf("%v %q, %v", p, p.SLO, err)
	}
	p, _, err = Decode(VerbRun, []string{"sim:fixed", "--rate", "1", "--workload", "mlperf-llama2-70b", "--slo", "mlperf-llama2-70b-interactive"}, nil)
	if err != nil || p.SLO.String() != "p99 ttft<450ms, p99 tpot<40ms" {
		t.Errorf("%v %q, %v", p, p.SLO, err)
	}
}

func TestPresetCorrelation(t *testing.T) {
	for args, want := range map[string]float64{"--workload translation": .95, "--workload translation --set correlation=0": 0, "--workload chat": 0} {
		p, _, err := Decode(VerbRun, strings.Fields("sim:fixed "+args), nil)
		if err != nil || p.Correlation != want || (p.WholePreset() != "") != (!strings.Contains(args, "correlation")) {
			t.Errorf("%s: %g, %v", args, p.Correlation, err)
		}
		again, _, err := Decode(VerbRun, []string{"--config", mixFile(t, string(p.YAML(VerbRun)))}, nil)
		if err != nil || again.Correlation != want {
			t.Errorf("%s, again: %g, %v", args, again.Correlation, err)
		}
	}
}

// A preset says what is asked where no one else does.
func TestPreset(t *testing.T) {
	rag, _ := workload.PresetNamed("rag")
	for args, want := range map[string][4]string{
		"--workload rag":                             {rag.Input, rag.Output, "1024", "1"},
		"--workload rag --output 7":                  {rag.Input, "7", "1024", "1"},
		"--workload rag --prefix 0":                  {rag.Input, rag.Output, "0", "1"},
		"--workload rag --prefix-share 0.5":          {rag.Input, rag.Output, "1024", "0.5"},
		"--workload rag --input 1024 --output 128":   {"1024", "128", "1024", "1"}, // as the defaults are, and asked for
		"--workload matrix-a":                        {"256", "128", "0", "1"},
		"--workload matrix-e-cold":                   {"1024", "256", "3072", "0"},
		"--workload 1k8k --concurrency 4 --repeat 2": {"1024", "8192", "0", "1"},
	} {
		p, _, err := Decode(VerbRun, strings.Fields("sim:fixed "+args), nil)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		set := settingsOf(VerbRun)
		var got [4]string
		for i, name := range []string{"input", "output", "prefix", "prefix-share"} {
			got[i] = set[name].written(p.settingParts())[0]
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", args, d)
		}
		if !p.IsGenerated() {
			t.Errorf("%s is taken for a file", args)
		}
	}
}
