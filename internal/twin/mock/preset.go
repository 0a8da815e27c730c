package mock

import (
	"strings"
	"time"

	"pitot/internal/twin"
)

// preset is a name for plausible latencies.
type preset struct {
	name      string
	ttft, itl time.Duration
}

// presets are fixed latencies of the size that one finds for a prompt of about
// a thousand tokens on a lightly loaded server: ITL is about the time it takes
// to read the weights once, TTFT about the time to compute the prompt. They do
// not change with load or lengths: they are no model of these systems and
// predict nothing about them.
var presets = [...]preset{
	{"llama-3.1-8b@h100", 35 * time.Millisecond, 8 * time.Millisecond},
	{"llama-3.1-8b@h200", 33 * time.Millisecond, 6500 * time.Microsecond},
	{"llama-3.1-8b@a100", 85 * time.Millisecond, 11500 * time.Microsecond},
	{"llama-3.1-8b@l40s", 110 * time.Millisecond, 22 * time.Millisecond},
	{"llama-3.1-70b@4xh100", 110 * time.Millisecond, 16 * time.Millisecond},
	{"qwen2.5-7b@h100", 33 * time.Millisecond, 7500 * time.Microsecond},
	{"qwen2.5-32b@2xh100", 85 * time.Millisecond, 14 * time.Millisecond},
	{"mixtral-8x7b@2xh100", 60 * time.Millisecond, 12 * time.Millisecond},
}

// Preset gives the fixed latencies that MODEL@GPU stands for in a target
// mock:MODEL@GPU. Case does not matter.
func Preset(name string) (twin.FixedConfig, bool) {
	name = strings.ToLower(name)
	for _, p := range presets {
		if p.name == name {
			return twin.FixedConfig{TTFT: p.ttft, ITL: p.itl}, true
		}
	}
	return twin.FixedConfig{}, false
}

// PresetNames lists the names that [Preset] knows.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}
