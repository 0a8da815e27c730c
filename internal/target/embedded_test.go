package target

import (
	"strings"
	"testing"

	"pitot/internal/config"
	"pitot/internal/sim/deploy"
)

// Fixed latencies take one setting behind their name; a launch's factor is said,
// and follows from the seed, the launch's name and the target.
func TestLaunchOfFixedLatencies(t *testing.T) {
	all := config.Default()
	p := WantedBy(&all)
	p.Seed, p.Launch = 7, "1"
	open := func(name string) (engine, error) {
		p.Spec = "sim:" + name
		return openEngine(p)
	}
	e, err := open("fixed?launch_cv=0.1")
	if err != nil || len(e.notes) != 1 || !strings.HasPrefix(e.notes[0], "launch_cv: this launch takes ") {
		t.Errorf("%v, notes %q", err, e.notes)
	}
	if e, err := open("fixed"); err != nil || e.notes != nil {
		t.Errorf("without it: %v, notes %q", err, e.notes)
	}
	for _, name := range []string{"fixed?launch_cv=2", "fixed?launch_cv=x", "fixed?ttft=3", "fixed?%zz", "fixed?launch_cv=0.1&launch_cv=0.2"} {
		if _, err := open(name); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	numbers := map[uint64]bool{}
	for _, launchName := range []string{"1", "2"} {
		for _, target := range []string{"fixed", "llama-3.1-8b@h100"} {
			for _, seed := range []uint64{7, 8} {
				p.Launch, p.Seed = launchName, seed
				numbers[launchNumber(p, target)] = true
			}
		}
	}
	if len(numbers) != 8 {
		t.Errorf("%d different launches of 8", len(numbers))
	}
}

// A setting of the simulated server is none of an engine's, but for the one that both have.
func TestTargetSettingsAreNoEngines(t *testing.T) {
	for _, s := range config.TargetSettings() {
		if key := s.TargetKey(); deploy.IsSetting(key) != (key == "max_model_len") {
			t.Errorf("%s is a setting of an engine: %v", key, deploy.IsSetting(key))
		}
	}
}
