package predict

import (
	"runtime"
	"testing"

	"pitot/internal/analysis/explain"
)

// A fit, a design and a diagnosis replay in parallel. The test asks of the race detector whether
// they share something that is written.
func TestReplaysAreApart(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	truth := parsed(t, "qwen2.5-0.5b@l4?max_num_seqs=16&step_overhead=4ms")
	start := parsed(t, "qwen2.5-0.5b@l4?max_num_seqs=16")
	runs := []*Recording{simulated(t, truth, 2, 60, 1), simulated(t, truth, 20, 60, 2)}
	calibrated(t, start, runs...)
	if loads := ChooseLoads(start, runs[:1], 1, 2, 1); len(loads) != 1 {
		t.Errorf("loads %+v", loads)
	}
	if w := runs[1].WhatIf(truth, explain.Facts{}, Effort{3, 2, 2}); !w.Served() {
		t.Error("no replay is near the run")
	}
}
