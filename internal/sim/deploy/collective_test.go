package deploy

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pitot/internal/say"
)

// All-reduces by NCCL over PCIe as they were measured, and by the ring's formula (SOURCES.md).
func TestRing(t *testing.T) {
	const kib = 1 << 10
	var keptOut []float64
	for _, c := range []struct {
		name   string
		path   Path
		n      int
		gbs    float64         // of the link
		chosen bool            // the constants were chosen on it
		us     map[int]float64 // by bytes
	}{
		{"RTX PRO 6000, aiconfigurator-core 0.12.0", PeerToPeer, 2, 64, true, map[int]float64{8 * kib: 6.8, 128 * kib: 12.2, 1024 * kib: 44.4, 16384 * kib: 473.5}},
		{"RTX PRO 6000, aiconfigurator-core 0.12.0", PeerToPeer, 4, 64, true, map[int]float64{8 * kib: 13.5, 128 * kib: 24.9, 1024 * kib: 86.1, 16384 * kib: 1007.7}},
		{"RTX PRO 6000, aiconfigurator-core 0.12.0", PeerToPeer, 8, 64, true, map[int]float64{8 * kib: 26.7, 128 * kib: 47.8, 1024 * kib: 131.5, 16384 * kib: 1248}},
		{"RTX PRO 6000, vLLM 0.19, aiconfigurator-core 0.12.0", ThroughHost, 2, 64, true, map[int]float64{8 * kib: 19.1, 128 * kib: 27.5, 1024 * kib: 91.5, 16384 * kib: 1117.6}},
		{"RTX 4090, NCCL tests", ThroughHost, 2, 32, true, map[int]float64{kib: 14.4, 4 * kib: 14.8, 16 * kib: 17}},

		{"L40S, aiconfigurator-core 0.12.0", PeerToPeer, 2, 32, false, map[int]float64{8 * kib: 8.1, 128 * kib: 18.8, 1024 * kib: 74.8, 16384 * kib: 850.4}},
		{"L40S, SGLang 0.5.12, aiconfigurator-core 0.12.0", PeerToPeer, 4, 32, false, map[int]float64{8 * kib: 14, 128 * kib: 28.4, 1024 * kib: 123.4, 16384 * kib: 1247.4}},
		{"L40S, SGLang 0.5.12, aiconfigurator-core 0.12.0", PeerToPeer, 8, 32, false, map[int]float64{8 * kib: 24, 128 * kib: 46.7, 1024 * kib: 193.8, 16384 * kib: 1488}},
		{"V100 behind one switch, github.com/haohervchb/sglang-V100/pull/2", PeerToPeer, 4, 16, false, map[int]float64{8 * kib: 20.3, 128 * kib: 51.8, 384 * kib: 83.5}},
		{"RTX 4090, github.com/tinygrad/open-gpu-kernel-modules/pull/22", PeerToPeer, 3, 32, false, map[int]float64{32 * kib: 18.8, 128 * kib: 42.4, 1024 * kib: 152.7, 16384 * kib: 1993.2}},
		{"RTX PRO 6000, github.com/voipmonitor/rtx6kpro, hardware/epyc9124-direct-attach.md", PeerToPeer, 8, 64, false, map[int]float64{8 * kib: 18.6, 128 * kib: 30.9, 1024 * kib: 129.7}},
	} {
		step, share := peerStep, peerShare
		if c.path == ThroughHost {
			step, share = hostStep, hostShare
		}
		r := ringReduce(c.n, step, share*c.gbs)
		for size, measured := range c.us {
			p := newPassing(1, 0, r.GBs, float64(size)/2, &r)
			expected := r.Latency + p.secondsFor(1)*1e6
			off := expected/measured - 1
			t.Logf("%d cards, %4d KiB, %-4s measured %6.1f µs, expected %6.1f (%+3.0f %%) chosen on: %t  %s", c.n, size/kib, c.path, measured, expected, 100*off, c.chosen, c.name)
			if math.Abs(off) > 0.6 {
				t.Errorf("%s, %d cards, %d KiB: measured %.1f µs, expected %.1f", c.name, c.n, size/kib, measured, expected)
			}
			if !c.chosen {
				keptOut = append(keptOut, math.Abs(off))
			}
		}
	}
	slices.Sort(keptOut)
	if m := keptOut[len(keptOut)/2]; m > 0.25 {
		t.Errorf("kept out: %.0f %% in the median", 100*m)
	}
}

// The path is the accelerators' own unless the deployment names one, and a deployment that does not
// is told which.
func TestPath(t *testing.T) {
	for spec, want := range map[string]struct {
		path Path
		note string
	}{
		"llama-3.1-8b@2xh100":                                                 {Switched, ""},
		"llama-3.1-8b@rtx4090?max_model_len=8192":                             {ThroughHost, ""},
		"llama-3.1-8b@2xrtx4090":                                              {ThroughHost, "among 2×rtx4090 are assumed to go through the host's memory"},
		"llama-3.1-8b@2xrtx4090?link=p2p":                                     {PeerToPeer, ""},
		"llama-3.1-8b@4xl40s":                                                 {PeerToPeer, "among 4×l40s are assumed to go from card to card over PCIe"},
		"llama-3.1-8b@4xl40s?link=host":                                       {ThroughHost, ""},
		"llama-3.1-8b@2xh100-pcie?link=nvlink":                                {Switched, ""},
		"llama-3.1-8b@8xmi300x":                                               {Switched, ""},
		"llama-3.1-8b@4xa10g?allreduce_latency=9us":                           {ThroughHost, "assumed to go through"},
		"llama-3.1-8b@4xa10g?allreduce_latency=9us&allreduce_gb_per_s=5":      {ThroughHost, ""},
		"qwen3-30b-a3b@4xl4?data_parallel_size=4&enable_expert_parallel=true": {ThroughHost, "among 4×l4"},
	} {
		d := must(t, spec)
		if got := strings.Join(d.Notes, "\n"); d.Path() != want.path || strings.Contains(got, "all-reduces") != (want.note != "") || !strings.Contains(got, want.note) {
			t.Errorf("%s: %s, %q", spec, d.Path(), got)
		}
	}
}

// A link that the accelerators do not have is refused with one that they may have.
func TestPathRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"llama-3.1-8b@2xh100?link=host":                       "linked by nvlink4",
		"llama-3.1-8b@2xrtx4090?link=nvlink":                  "has no NVLink",
		"llama-3.1-8b@4xh100-pcie?link=nvlink":                "a bridge joins two",
		"llama-3.1-8b@2xrtx4090?link=ethernet":                "is no link",
		"llama-3.1-8b@2xl4?disable_custom_all_reduce=perhaps": "neither true nor false",
	} {
		if _, err := Parse(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		} else if want != "neither true nor false" && say.HintOf(err) == "" {
			t.Errorf("%s: no hint", spec)
		}
	}
}

// A way over more of the machine is slower, NCCL is slower than the engine's own kernel, and more
// cards take longer.
func TestCollectivesByPath(t *testing.T) {
	us := func(spec string) float64 {
		d := must(t, spec+"max_model_len=8192")
		return float64(d.Efficiency.Collective.Nanoseconds())/1e3 + 16384*1.024/d.Efficiency.CollectiveGBs
	}
	for _, order := range [][]string{
		{"llama-3.1-8b@2xh100?", "llama-3.1-8b@2xh100?disable_custom_all_reduce=true&"},
		{"llama-3.1-8b@2xh100-pcie?link=nvlink&", "llama-3.1-8b@2xh100-pcie?", "llama-3.1-8b@2xh100-pcie?disable_custom_all_reduce=true&", "llama-3.1-8b@2xh100-pcie?link=host&"},
		{"llama-3.1-8b@2xrtx4090?link=p2p&", "llama-3.1-8b@2xrtx4090?", "llama-3.1-8b@4xrtx4090?", "llama-3.1-8b@8xrtx4090?"},
		{"llama-3.1-8b@2xrtx5090?", "llama-3.1-8b@2xrtx4090?"}, // PCIe 5 and 4
		{"llama-3.1-8b@4xrtxpro6000?", "llama-3.1-8b@4xrtxpro6000?link=host&"},
	} {
		for i, spec := range order[1:] {
			if a, b := us(order[i]), us(spec); a >= b {
				t.Errorf("%s: %.1f µs, %s: %.1f", order[i], a, spec, b)
			}
		}
	}
}
