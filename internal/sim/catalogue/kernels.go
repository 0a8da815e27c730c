package catalogue

import (
	_ "embed"
	"sync"
)

// Kernels are constants of the formulas of what an accelerator computes, worked
// out from measured kernels by `go run ./bench/silicon derive`. Times are
// microseconds, shares are of the datasheet's rates. Maps are by data type, of
// weights or of the KV cache; what is missing was not measured.
type Kernels struct {
	Accelerator string `yaml:"accelerator"`
	Source      string `yaml:"source"` // versions of the tables they were worked out from

	Products map[string]Product      `yaml:"products"`         // matrix products, by the type of the weights
	Experts  map[string]Experts      `yaml:"experts"`          // the feed-forward layer of a mixture of experts
	Decode   map[string]Decode       `yaml:"decode"`           // attention of answers, by the type of the KV cache
	Prompt   map[string]Prompt       `yaml:"prompt"`           // attention of prompts
	Latent   map[string]LatentDecode `yaml:"latent,omitempty"` // attention of answers in latent layers, by the type of the KV cache
	Delta    Delta                   `yaml:"delta,omitempty"`  // the gated delta rule of linear layers
	Reduce   map[int]Reduce          `yaml:"all_reduce"`       // by the number of accelerators, in a CUDA graph
	// Exchange is an all-gather and a reduce-scatter together, of messages that have as many
	// bytes in all: how engines that divide experts get each other's tokens, and give them back.
	Exchange map[int]Reduce `yaml:"exchange,omitempty"`
}

// Product is a matrix product of m rows with n × k weights. It takes
//
//	Floor + ∛(read³ + compute³) + quantise
//
// where read are the weights' bytes ÷ (Bandwidth · bandwidth), compute is
// 2mnk ÷ (Compute · peak), and quantise 3mk bytes ÷ (Quantise · bandwidth) where
// activations are quantised too.
type Product struct {
	Floor     float64 `yaml:"floor_us"`
	Bandwidth float64 `yaml:"bandwidth"`
	Compute   float64 `yaml:"compute"`
	Quantise  float64 `yaml:"quantise,omitempty"`
	Of        `yaml:",inline"`
}

// Experts are all experts of a layer, for T tokens that each go through k of
// them. They take
//
//	Floor + touched · PerExpert + ∛(read³ + compute³) + activations
//
// where touched is how many experts the tokens go through, read their weights ÷
// (Bandwidth · bandwidth), compute 6Tk·hidden·width ÷ (Compute · peak), and
// activations 2Tk(2·hidden + 3·width) bytes ÷ (Activations · bandwidth).
type Experts struct {
	Floor       float64 `yaml:"floor_us"`
	PerExpert   float64 `yaml:"per_expert_us"`
	Bandwidth   float64 `yaml:"bandwidth"`
	Compute     float64 `yaml:"compute"`
	Activations float64 `yaml:"activations"`
	Of          `yaml:",inline"`
}

// Decode is a layer's attention of answers: Floor + the KV cache's bytes ÷
// (Bandwidth · bandwidth).
type Decode struct {
	Floor     float64 `yaml:"floor_us"`
	Bandwidth float64 `yaml:"bandwidth"`
	Of        `yaml:",inline"`
}

// Prompt is a layer's attention of a prompt of n tokens: Floor + 2·heads·dim·n²
// ÷ (Compute · peak in 16 bits) + 4·n·heads·dim bytes ÷ (Bandwidth · bandwidth).
type Prompt struct {
	Floor     float64 `yaml:"floor_us"`
	Compute   float64 `yaml:"compute"`
	Bandwidth float64 `yaml:"bandwidth"`
	Of        `yaml:",inline"`
}

// LatentDecode is a latent layer's attention of answers, of heads that all read the same:
// Floor + ∛(read³ + compute³), where read is the KV cache's bytes ÷ (Bandwidth ·
// bandwidth) and compute 2·heads·(2·rank + rope) for each token of context ÷ (Compute ·
// peak in 16 bits). A floor of 0 is not known.
type LatentDecode struct {
	Floor     float64 `yaml:"floor_us"`
	Bandwidth float64 `yaml:"bandwidth"`
	Compute   float64 `yaml:"compute"`
	Of        `yaml:",inline"`
}

// Delta is the gated delta rule of a linear layer and the convolution before it,
// without its products. Answers take Floor + the states' bytes, read and written, ÷
// (Bandwidth · bandwidth). Prompts take
//
//	PromptFloor + ∛(serial³ + compute³) + 4 bytes for each token and channel of the convolution ÷ (PromptBandwidth · bandwidth)
//
// where serial is Serial for each token of the longest, for it is gone through chunk
// by chunk, and compute 8·heads·keys·values operations for each token of all ÷ (Compute
// · peak in 16 bits).
type Delta struct {
	Floor           float64 `yaml:"floor_us"`
	Bandwidth       float64 `yaml:"bandwidth"`
	PromptFloor     float64 `yaml:"prompt_floor_us"`
	Serial          float64 `yaml:"serial_ns"`
	Compute         float64 `yaml:"compute"`
	PromptBandwidth float64 `yaml:"prompt_bandwidth"`
	Of              `yaml:",inline"`
}

// Reduce is an all-reduce: Latency + 16 MiB ÷ GBs · (the message's bytes ÷ 16 MiB)^Growth,
// and of a message beyond 16 MiB the rest ÷ Large.
type Reduce struct {
	Latency float64 `yaml:"latency_us"`
	GBs     float64 `yaml:"gb_per_s"` // of a message of 16 MiB
	Growth  float64 `yaml:"growth"`
	Large   float64 `yaml:"large_gb_per_s"`
	Of      `yaml:",inline"`
}

// Message is the bytes of the message that Reduce's rate is of.
const Message = 16 << 20

// Of says what constants were worked out from: so many measurements, which
// the formula is off by so much in the mean of |log|.
type Of struct {
	Kernels int     `yaml:"of"`
	Error   float64 `yaml:"error"`
}

//go:embed kernels.yaml
var kernelFile []byte

//go:embed usual.yaml
var usualFile []byte

// MeasuredKernels gives those of all accelerators that were measured.
var MeasuredKernels = sync.OnceValue(func() []Kernels { return parseTable[Kernels](kernelFile) })

// UsualKernels gives what stands in for those that were not measured.
var UsualKernels = sync.OnceValue(func() Kernels { return parseTable[Kernels](usualFile)[0] })

// KernelsOf gives those of an accelerator; those of one that was not measured
// are empty.
func KernelsOf(accelerator string) Kernels {
	for _, k := range MeasuredKernels() {
		if k.Accelerator == accelerator {
			return k
		}
	}
	return Kernels{Accelerator: accelerator}
}
