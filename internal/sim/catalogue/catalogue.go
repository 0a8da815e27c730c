// Package catalogue is what the twin knows of models and accelerators: data
// files with a source for every number, and the shapes of models in Hugging
// Face's config.json.
package catalogue

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"pitot/internal/say"
)

// Model is the shape of a decoder-only transformer. Counts are numbers of
// units, not of bytes.
type Model struct {
	Name    string   `yaml:"name"`
	HF      string   `yaml:"hf"` // repository on the Hugging Face hub
	Aliases []string `yaml:"aliases"`

	Layers       int  `yaml:"layers"`
	Hidden       int  `yaml:"hidden"`
	Heads        int  `yaml:"heads"`
	KVHeads      int  `yaml:"kv_heads"`
	HeadDim      int  `yaml:"head_dim"`
	Intermediate int  `yaml:"intermediate"` // width of a dense, gated feed-forward layer
	Vocab        int  `yaml:"vocab"`
	Tied         bool `yaml:"tied_embeddings"` // the head uses the embedding's weights
	QKNorm       bool `yaml:"qk_norm"`
	QKVBias      bool `yaml:"qkv_bias"`

	Experts                  int `yaml:"experts"`           // 0 for a dense model
	ExpertsPerToken          int `yaml:"experts_per_token"` // routed ones
	MoEIntermediate          int `yaml:"moe_intermediate"`  // width of one expert
	SharedExpertIntermediate int `yaml:"shared_expert_intermediate"`
	DenseLayers              int `yaml:"dense_layers"` // layers of an MoE without experts

	Attention   []Attention `yaml:"attention"`    // kinds of layers by how they look back; none where all do on everything, see Kinds
	ExpertDType string      `yaml:"expert_dtype"` // of the experts' weights, where it is another
	// Wide names the parts of the layers that published checkpoints leave in 16 bits, by
	// the data type that the rest is in: attention, and feed_forward of all tokens.
	Wide        map[string][]Part `yaml:"wide"`
	MaxPosition int               `yaml:"max_position"` // longest context
	DType       string            `yaml:"dtype"`        // of the published weights, "" where its Quantised is not understood
	// Quantised says how it is known that the layers' weights have fewer bits
	// than 16, "" where they have not: a name's ending, or a quantization_config.
	Quantised string `yaml:"-"`
	// Caveats lists the properties of the model that the twin does not have, for people.
	Caveats []string `yaml:"-"`

	Parameters int64             `yaml:"parameters"` // as published
	Note       string            `yaml:"note"`
	Sources    map[string]string `yaml:"sources"`
}

// Part is a part of all layers of a model.
type Part string

// Parts that checkpoints leave in 16 bits.
const (
	InAttention   Part = "attention"
	InFeedForward Part = "feed_forward" // dense layers and shared experts
)

// Accelerator holds the datasheet of a GPU, or of a CPU.
type Accelerator struct {
	Name    string   `yaml:"name"`
	Aliases []string `yaml:"aliases"`
	Vendor  string   `yaml:"vendor"`
	Device  []string `yaml:"device"` // how drivers and frameworks call it

	MemoryGiB    float64            `yaml:"memory_gib"`     // as the driver reports it
	BandwidthGBs float64            `yaml:"bandwidth_gbps"` // 10⁹ bytes/s of device memory
	TFLOPS       map[string]float64 `yaml:"tflops"`         // dense, by data type; 10¹² operations/s
	Link         Link               `yaml:"link"`
	PowerW       float64            `yaml:"power_w"`
	// Host is the class of the machines that it is in, "" for the usual one.
	Host string `yaml:"host"`
	// Attention is vLLM's default attention backend where that costs the host more than others do:
	// "flashinfer", "" for the others.
	Attention string `yaml:"attention"`
	// Reached holds the shares of the above that kernels were measured or are expected to reach; 0
	// where nothing is known.
	Reached    Reached `yaml:"reached"`
	USDPerHour float64 `yaml:"usd_per_hour"`

	Note    string            `yaml:"note"`
	Sources map[string]string `yaml:"sources"`
}

// FlashInfer is an accelerator's [Accelerator.Attention] that makes plans for every step.
const FlashInfer = "flashinfer"

// Reached are shares of an accelerator's datasheet.
type Reached struct {
	Bandwidth float64 `yaml:"bandwidth"`
	Compute   float64 `yaml:"compute"`
	Link      float64 `yaml:"link"`
}

// Link is a connection between the accelerators of one machine.
type Link struct {
	Kind       string  `yaml:"kind"`
	GBs        float64 `yaml:"gb_per_s"`          // 10⁹ bytes/s in each direction
	PeerGBs    float64 `yaml:"gb_per_s_per_peer"` // of which to each other accelerator, where each has links of its own; 0 where a switch gives any of them all
	Reaches    int     `yaml:"reaches"`           // accelerators that are linked so, where they are not a machine's
	PeerToPeer bool    `yaml:"p2p"`               // cards on PCIe reach each other without the host's memory
	BridgeGBs  float64 `yaml:"bridge_gb_per_s"`   // of an NVLink bridge that may join two cards on PCIe, 0 where there is none
}

// PCIe reports whether the accelerators are cards that reach each other over PCIe alone.
func (l Link) PCIe() bool { return strings.HasPrefix(l.Kind, "pcie") }

// Machine is the number of accelerators in the servers to which the links in datasheets refer.
const Machine = 8

// LinkedAccelerators returns the number of accelerators that such links connect, all of them
// together.
func (l Link) LinkedAccelerators() int { return cmp.Or(l.Reaches, Machine) }

// BandwidthAmong returns the bandwidth from each of n accelerators to the others together, 10⁹
// bytes/s in each direction.
func (l Link) BandwidthAmong(n int) float64 {
	if l.PeerGBs > 0 {
		return min(l.GBs, l.PeerGBs*float64(max(n-1, 1)))
	}
	return l.GBs
}

//go:embed models.yaml
var modelFile []byte

//go:embed accelerators.yaml
var acceleratorFile []byte

// Models gives all models, in the order of the file.
var Models = sync.OnceValue(func() []Model { return parseTable[Model](modelFile) })

// Accelerators gives all accelerators, in the order of the file.
var Accelerators = sync.OnceValue(func() []Accelerator { return parseTable[Accelerator](acceleratorFile) })

// parseTable reads a data file; a test reads both, so they are never malformed.
func parseTable[T any](file []byte) []T {
	var list []T
	d := yaml.NewDecoder(bytes.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil {
		panic(fmt.Sprintf("read catalogue: %v", err))
	}
	return list
}

// FindModel gives the model with a name, an alias or a hub repository of that
// spelling; case does not matter. An ending such as -FP8 or -AWQ says what its
// weights are kept in. An unknown one is a user error that offers the nearest
// names.
func FindModel(name string) (Model, error) {
	var names []string
	like, kept := parseFamily(name)
	for _, m := range Models() {
		own, _ := parseFamily(m.HF)
		if hasName(name, m.Name, m.Aliases) || strings.EqualFold(name, m.HF) {
			return m, nil
		}
		if like == own || hasName(like, m.Name, m.Aliases) {
			if kept.dtype != "" {
				m.DType, m.Quantised = kept.dtype, "its name ends in "+strings.ToUpper(kept.ending)
			}
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, say.Errorf("unknown model %q", name).WithHint(say.KnownHint(strings.ToLower(name), names) + " (or the directory of any model's config.json; pitot predict --list has all names)")
}

// FindAccelerator gives the accelerator with a name or an alias. An unknown
// one is a user error that offers the nearest names.
func FindAccelerator(name string) (Accelerator, error) {
	var names []string
	for _, a := range Accelerators() {
		if hasName(name, a.Name, a.Aliases) {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Accelerator{}, say.Errorf("unknown accelerator %q", name).WithHint(say.KnownHint(strings.ToLower(name), names))
}

// FindDevice gives the accelerator that a driver calls by a name, such as
// "NVIDIA GeForce RTX 4090"; the longest match wins.
func FindDevice(device string) (Accelerator, error) {
	var best Accelerator
	length := 0
	for _, a := range Accelerators() {
		for _, d := range a.Device {
			if len(d) > length && containsWords(strings.ToLower(device), strings.ToLower(d)) {
				best, length = a, len(d)
			}
		}
	}
	if length == 0 {
		return Accelerator{}, say.Errorf("unknown accelerator %q", device).WithHint("name it with @GPU")
	}
	return best, nil
}

// containsWords says whether a name holds another as whole words: "L40" does not
// hold "L4".
func containsWords(name, part string) bool {
	for from := 0; ; {
		i := strings.Index(name[from:], part)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(part)
		if (i == 0 || !isAlphanumeric(name[i-1])) && (end == len(name) || !isAlphanumeric(name[end])) {
			return true
		}
		from = i + 1
	}
}

func isAlphanumeric(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }

// parseFamily is a hub repository's name without the owner and without what does
// not change a model's shape: meta-llama/Llama-3.1-8B-Instruct is
// llama-3.1-8b. What changes the bits of its weights is kept apart.
func parseFamily(repository string) (name string, k kept) {
	name = strings.ToLower(repository[strings.LastIndex(repository, "/")+1:])
	name = strings.TrimPrefix(name, "meta-")
	for trimmed := true; trimmed; {
		trimmed = false
		for _, tail := range tuned {
			if rest, ok := strings.CutSuffix(name, tail); ok {
				name, trimmed = rest, true
			}
		}
		for _, q := range quantised {
			if rest, ok := strings.CutSuffix(name, q.ending); ok {
				name, trimmed = rest, true
				if k.dtype == "" {
					k = q
				}
				if q.ending == "-fp8" && strings.HasPrefix(strings.ToLower(repository), "qwen/") {
					k.dtype = "fp8_block" // as Qwen publishes it; others name what has one scale a tensor or channel so
				}
			}
		}
	}
	return name, k
}

// kept is the data type of the weights that an ending of a name states.
type kept struct{ dtype, ending string }

// tuned are endings of names of the same shape.
var tuned = []string{"-instruct", "-chat", "-base", "-it", "-hf", "-thinking", "-2507", "-bf16", "-v0.1", "-v0.2", "-v0.3"}

// quantised are endings of names of the same shape with fewer bits. Weights
// alone are quantised in w8a16 and int4: computing is in 16 bits.
var quantised = []kept{
	{"fp8", "-fp8"}, {"fp8", "-fp8-dynamic"}, {"fp8", "-fp8-kv"},
	{"int8", "-w8a8"}, {"int8", "-quantized.w8a8"}, {"w8a16", "-w8a16"}, {"w8a16", "-quantized.w8a16"},
	{"w8a16", "-gptq-int8"}, {"w8a16", "-int8"},
	{"int4", "-awq"}, {"int4", "-gptq"}, {"int4", "-int4"}, {"int4", "-w4a16"}, {"int4", "-quantized.w4a16"}, {"int4", "-bnb-4bit"},
	{"fp4", "-nvfp4"}, {"fp4", "-mxfp4"}, {"fp4", "-fp4"},
}

func hasName(name, own string, aliases []string) bool {
	return slices.ContainsFunc(append([]string{own}, aliases...), func(a string) bool { return strings.EqualFold(name, a) })
}
