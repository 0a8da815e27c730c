package cli

import (
	"slices"
	"testing"
)

// The command line of a vLLM server is a mock's.
func TestEngineFlags(t *testing.T) {
	own, settings := engineFlags([]string{"--enable-prefix-caching", "llama-3.1-8b@h100", "-tp", "2", "-dp=4", "--async-scheduling", "false", "--max-num-seqs", "8", "--enforce-eager", "-pp", "1"})
	if want := []string{"llama-3.1-8b@h100", "-pp", "1"}; !slices.Equal(own, want) {
		t.Errorf("the mock's own: %q, want %q", own, want)
	}
	if want := []string{"enable_prefix_caching=true", "tp=2", "dp=4", "async_scheduling=false", "max_num_seqs=8", "enforce_eager=true"}; !slices.Equal(settings, want) {
		t.Errorf("settings: %q, want %q", settings, want)
	}
}
