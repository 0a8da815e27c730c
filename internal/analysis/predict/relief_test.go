package predict

import (
	"reflect"
	"slices"
	"testing"

	"pitot/internal/analysis/explain"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/engines"
)

// Relieving changes the cause that is named and leaves the deployment as it was.
func TestRelieve(t *testing.T) {
	d := deployment(t, "llama-3.1-8b@2xa100?enable_prefix_caching=false")
	before := d.ServerFacts()
	flops, overhead := d.Accelerator.TFLOPS["bf16"], d.Efficiency.PerStep
	for _, cause := range modelled {
		if _, ok := RelieveCause(d, cause); !ok {
			t.Errorf("%s is modelled, and cannot be relieved", cause)
		}
	}
	for _, cause := range []explain.Cause{explain.Network, explain.Client, explain.Unknown} {
		if _, ok := RelieveCause(d, cause); ok {
			t.Errorf("%s is relieved, and the twin has none", cause)
		}
	}
	for k, v := range d.ServerFacts() {
		if before[k] != v {
			t.Errorf("%s became %s, it was %s", k, v, before[k])
		}
	}
	if d.Accelerator.TFLOPS["bf16"] != flops || d.Efficiency.PerStep != overhead {
		t.Error("the deployment itself was relieved")
	}
	if _, ok := RelieveCause(deployment(t, "llama-3.1-8b@h100"), explain.Links); ok {
		t.Error("one accelerator has no links")
	}
}

// vLLM captures graphs of twice max_num_seqs tokens: more seats make larger ones, and
// prompts that fit into one are launched sooner. Of an idle server it is the host that is
// relieved so, not a queue for seats.
func TestSeatsAreNoLaunches(t *testing.T) {
	d := deployment(t, "qwen2.5-0.5b@h100?max_num_seqs=32")
	alone := TwinLoad{Users: 1, Input: [2]int{90, 90}, Output: [2]int{8, 8}, Requests: 5}
	ttft := func(d *deploy.Deployment) float64 {
		v, _ := explain.SymptomValue(explain.Symptom{Metric: "ttft", Of: "mean"}, alone.Serve(d.Engine(1), 1).SeenRequests())
		return v
	}
	relieved := func(of explain.Cause) float64 {
		r, ok := RelieveCause(d, of)
		if !ok {
			t.Fatalf("%s cannot be relieved", of)
		}
		return ttft(r)
	}
	is := ttft(d)
	if x := relieved(explain.Seats); x < 0.999*is {
		t.Errorf("TTFT of one user %.3f ms, with twice the seats %.3f", is, x)
	}
	if x := relieved(explain.Host); x > 0.8*is {
		t.Errorf("TTFT of one user %.3f ms, without the host %.3f", is, x)
	}
	larger, ok := ApplyTrial(d, explain.Trial{Knob: "max_cudagraph_capture_size", To: "128"})
	if !ok {
		t.Fatal("the size of graphs is no knob")
	}
	if x := ttft(larger); x > 0.95*is {
		t.Errorf("TTFT of one user %.3f ms, in a graph %.3f", is, x)
	}
}

// The knobs that engines have of their own are of causes, and can be turned.
func TestKnobsOfEngines(t *testing.T) {
	for _, k := range engines.Deployed() {
		d := deployment(t, "llama-3.1-8b@h100?engine="+k.Name)
		for _, own := range k.Knobs {
			for _, cause := range own.Relieves {
				if !slices.Contains(modelled, explain.Cause(cause)) {
					t.Errorf("%s: %s relieves %q", k.Name, own.Name, cause)
				}
			}
			for _, to := range own.To {
				if turned, ok := ApplyTrial(d, explain.Trial{Knob: own.Name, To: to}); !ok || reflect.DeepEqual(turned.Own, d.Own) {
					t.Errorf("%s: %s is not turned to %s", k.Name, own.Name, to)
				}
			}
		}
	}
}
