package calibrate

import (
	"context"
	"strings"
	"testing"
	"time"

	"pitot/internal/analysis/predict"
	"pitot/internal/config"
	"pitot/internal/sim/deploy"
	"pitot/internal/target"
)

// A server that is plainly another model than the deployment's is told from one that may be it.
func TestAnotherModel(t *testing.T) {
	const llama = "llama-3.1-8b@h100"
	for _, c := range []struct {
		deployment string
		told       target.Told
		want       string
	}{
		{llama, target.Told{Model: "tiny", Root: "/models/tiny"}, "the server's model is tiny, loaded from /models/tiny"},
		{llama, target.Told{Model: "prod", Root: "/tmp/tiny-random-llama"}, "the server's model is prod, loaded from /tmp/tiny-random-llama"},
		{llama, target.Told{Model: "prod"}, "the server's model is prod"},
		{llama, target.Told{Model: "Qwen/Qwen3-8B", Root: "Qwen/Qwen3-8B"}, "the server's model is Qwen/Qwen3-8B, which is qwen3-8b"},
		{llama, target.Told{Model: "prod", Root: "meta-llama/Llama-3.1-70B-Instruct"}, "the server's model is prod, loaded from meta-llama/Llama-3.1-70B-Instruct, which is llama-3.1-70b"},
		{llama, target.Told{Model: "our-llama-1b"}, "the server's model is our-llama-1b"},
		{"qwen2.5-0.5b@l4", target.Told{Model: "Qwen/Qwen2.5-0.5B", Context: 131072}, "the server's model is Qwen/Qwen2.5-0.5B, with a context of 131,072 tokens where that model has 32,768"},
		{llama, target.Told{Model: "meta-llama/Llama-3.1-8B-Instruct", Root: "meta-llama/Llama-3.1-8B-Instruct", Context: 8192}, ""},
		{llama, target.Told{Model: "prod", Root: "neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8"}, ""},
		{llama, target.Told{Model: "our-llama-8b-v2"}, ""},
		{llama, target.Told{Model: "llama-ft"}, ""},
		{llama, target.Told{}, ""},
	} {
		d, err := deploy.Parse(c.deployment)
		if err != nil {
			t.Fatal(err)
		}
		if got := anotherModel(d, &c.told); got != c.want {
			t.Errorf("%s, %+v:\n got %s\nwant %s", c.deployment, c.told, got, c.want)
		}
	}
}

// A budget that cannot be enough is refused before anything is measured, with the least one.
func TestLeastBudget(t *testing.T) {
	d, err := deploy.Parse("qwen2.5-0.5b@l4")
	if err != nil {
		t.Fatal(err)
	}
	c := Calibration{Deployment: d, Time: time.Minute, Each: 10 * time.Second, Plan: &config.Plan{}}
	c.Plan.Spec = "http://127.0.0.1:9"
	if _, err := c.Run(t.Context()); err == nil || err.Error() != "--budget 1 min is too short: 8 loads of 10 s each take 112 s" {
		t.Errorf("of a server: %v", err)
	}
	c.Time = 112 * time.Second
	if x, err := c.Outline(); err != nil || x.Loads != 8 || x.Ways != 2 || len(x.First) != 2 {
		t.Errorf("%+v, %v", x, err)
	}
	c.Measure = func(context.Context, predict.DesignLoad) ([]*predict.Recording, error) { return nil, nil }
	c.Time = 55 * time.Second
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "4 loads of 10 s each take 56 s") {
		t.Errorf("of a twin: %v", err)
	}
}
