package predict

import (
	"slices"
	"testing"

	"pitot/internal/sim/deploy"
)

// A calibration goes where it has not been: it asks no load twice while another tells
// more, and long prompts of a single user are among what it asks.
func TestChoose(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	t.Parallel()
	d, err := deploy.Parse("qwen2.5-0.5b@l4?max_num_seqs=16")
	if err != nil {
		t.Fatal(err)
	}
	var known []*Recording
	chosen := ChooseLoads(d, nil, 3, 5, 1)
	for i, l := range chosen {
		known = append(known, l.LoadFor(5, 1).Serve(d.Engine(uint64(i)), uint64(i)))
	}
	chosen = append(chosen, ChooseLoads(d, known, 3, 5, 1)...)
	alone := false
	for i, l := range chosen {
		alone = alone || l.Users == 1 && l.Input >= 2048
		if slices.Contains(chosen[:i], l) {
			t.Errorf("%+v twice in %+v", l, chosen)
		}
	}
	if !alone {
		t.Errorf("no long prompts of a single user in %+v", chosen)
	}
}
