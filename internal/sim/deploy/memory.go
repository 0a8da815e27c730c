package deploy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/engine"
)

// gib is 2³⁰ bytes.
const gib = 1 << 30

// bytesOf holds the number of bytes that a weight or a value takes in a data type. The four-bit
// formats also keep a scale for each group of weights (AWQ and GPTQ: 16 bits for 128; MXFP4: 8 for
// 32). In w8a16 and int4 the weights alone are quantised, as by GPTQ and AWQ: they are unpacked and
// computed in 16 bits.
var bytesOf = map[string]float64{
	"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "fp8_block": 1 + 4.0/(128*128), "int8": 1, "w8a16": 1 + 2.0/128, "int4": 0.5 + 2.0/128, "fp4": 0.5 + 1.0/32, "mxfp4": 0.5 + 1.0/32,
}

// expertType is the data type of the experts' weights: that of all where it is
// not the model's own, or where all are in fewer bits.
func (d *Deployment) expertType() string {
	if t := d.Model.ExpertDType; t != "" && bytesOf[d.DType] >= 2 {
		return t
	}
	return d.DType
}

// partType is the data type of the weights of a part of all layers: 16 bits where
// checkpoints in the deployment's type leave that part out.
func (d *Deployment) partType(part catalogue.Part) string {
	if slices.Contains(d.Model.Wide[d.DType], part) {
		return "bf16"
	}
	return d.DType
}

// denseBytes is the bytes of the weights of all layers that every token goes
// through, on one accelerator.
func (d *Deployment) denseBytes() float64 {
	m, tp := &d.Model, float64(d.TensorParallel)
	attention := bytesOf[d.partType(catalogue.InAttention)]
	n := float64(m.AttentionWeights()) * attention / tp
	for _, a := range m.AttentionKinds() {
		for _, p := range a.MatMuls(m.Hidden) {
			size := float64(a.Layers) * float64(p.Rows) * float64(p.Columns)
			if p.Wide {
				n += size * max(2-attention, 0) / tp
			}
			if p.Whole {
				n += size * attention * (1 - 1/tp)
			}
		}
	}
	return n + float64(m.FeedForwardWeights())*bytesOf[d.partType(catalogue.InFeedForward)]/tp
}

// Memory is the memory budget of a server, in bytes of one accelerator of the group. It follows
// vLLM's computation at start (Worker.determine_available_memory).
type Memory struct {
	Total       float64 `json:"total"`     // as the driver reports it
	Requested   float64 `json:"requested"` // gpu_memory_utilization of it
	Weights     float64 `json:"weights"`
	Activations float64 `json:"activations"` // the peak of the profiling run
	Other       float64 `json:"other"`       // the driver's context, collectives, graphs
	KV          float64 `json:"kv_cache"`    // what is left
}

// serverMemory is the server's memory before the number of blocks is set.
func (d *Deployment) serverMemory() Memory {
	m, tp := &d.Model, float64(d.TensorParallel)
	mem := Memory{Total: d.Accelerator.MemoryGiB * gib}
	mem.Requested = d.MemoryUtilization * mem.Total
	mem.Weights = d.denseBytes() + float64(m.RoutedWeights())*bytesOf[d.expertType()]/d.expertSharers() + (d.unquantisedBytes()+2*d.drafterWeights())/tp
	if d.Kind.Profiles { // others count them with what they leave free
		mem.Activations = d.activationBytes()
	}
	mem.Other = otherAlone
	if d.expertSharers() > 1 {
		mem.Other = otherTogether
	}
	mem.KV = mem.Requested - mem.Weights - mem.Activations - mem.Other
	return mem
}

// What a server's memory holds besides, in bytes. Assumptions, with which the
// number of KV blocks is near those of three recorded servers: SOURCES.md.
const (
	otherAlone    = 0.35 * gib // the driver's context, graphs
	otherTogether = 0.8 * gib  // and buffers of collectives
)

// unquantisedBytes is the bytes of embedding and head, which stay in 16 bits when
// the layers' weights are quantised.
func (d *Deployment) unquantisedBytes() float64 {
	n := d.Model.EmbeddingWeights()
	if !d.Model.Tied {
		n *= 2
	}
	return float64(n) * max(bytesOf[d.DType], 2)
}

// activationBytes is the peak of vLLM's profiling run: either a full batch in the
// widest layer, or the sampler, which sorts the logits of max_num_seqs rows. It
// is an account of the tensors that live at once, not measured: SOURCES.md.
func (d *Deployment) activationBytes() float64 {
	m, s, tp := &d.Model, &d.Settings, float64(d.TensorParallel)
	t := float64(s.MaxNumBatchedTokens)
	width := 3 * float64(m.Intermediate) / tp
	if m.Experts > 0 {
		width = max(width, 3*float64(m.MoEIntermediate*m.ExpertsPerToken)/tp)
	}
	layer := t * 2 * (width + 4*float64(m.Hidden))
	// 28 bytes for each logit: it in 2 and in 4 bytes, sorted in 4 with indices of
	// 8, probabilities and their sums in 4 each, two masks of 1.
	sampler := float64(min(s.MaxNumSeqs, s.MaxNumBatchedTokens))*float64(m.Vocab)*28 + t*2*float64(m.Hidden)
	return max(layer, sampler)
}

// kvPerToken is the bytes that the cache takes for one more token on one
// accelerator. What a layer keeps is divided among the group as far as its heads
// go; of latent layers each has all.
func (d *Deployment) kvPerToken() (n float64) {
	for _, a := range d.Model.GrowingLayers() {
		n += d.layerBytesPerToken(&a)
	}
	return n
}

// layerBytesPerToken is the bytes that layers of a kind keep of a token on one accelerator.
func (d *Deployment) layerBytesPerToken(a *catalogue.Attention) float64 {
	return float64(a.Layers) * float64(a.ValuesPerToken()) * bytesOf[d.KVDType] / float64(min(d.TensorParallel, a.MaxShards()))
}

// kvBytes is the bytes of a KV block on one accelerator, the drafter's layer
// included.
func (d *Deployment) kvBytes() float64 {
	token := d.kvPerToken()
	if d.hasDrafter() {
		layers := 0
		for _, a := range d.Model.GrowingLayers() {
			layers += a.Layers
		}
		token *= 1 + 1/float64(layers)
	}
	return token * float64(d.Settings.BlockSize)
}

// besideBlocks sets what a request keeps that does not grow with its tokens: the
// windows of layers that slide, and the states of linear ones, whose matrices vLLM
// keeps in 32 bits and the rest in 16 (MambaStateDtypeCalculator, mamba_ssm_dtype).
func (d *Deployment) besideBlocks() {
	s, token := &d.Settings, d.kvPerToken()
	s.Window, s.WindowShare, s.StateBlocks = 0, 0, 0
	growing := d.Model.GrowingLayers()[0].Kind
	state := 0.0
	for _, a := range d.Model.AttentionKinds() {
		switch {
		case a.Kind == catalogue.Linear:
			matrix, conv := a.StateSize()
			state += float64(a.Layers) * (4*float64(matrix) + 2*float64(conv)) / float64(min(d.TensorParallel, a.MaxShards()))
		case !a.GrowsPerToken() && a.Kind != growing:
			s.Window = max(s.Window, a.Window)
			s.WindowShare += d.layerBytesPerToken(&a) / token
		}
	}
	s.StateBlocks = int(math.Ceil(state / d.kvBytes()))
}

// longestRequest returns the number of tokens that one request can have in the whole KV cache.
func (d *Deployment) longestRequest() int {
	s := &d.Settings
	blocks := s.NumGPUBlocks - 1
	n := (blocks - s.BlocksBeside(math.MaxInt32)) * s.BlockSize
	if n < s.Window { // it ends within the window
		n = int(float64(blocks-s.StateBlocks)/(1+s.WindowShare)) * s.BlockSize
		for n > 0 && n/s.BlockSize+s.BlocksBeside(n) > blocks {
			n -= s.BlockSize
		}
	}
	return max(n, 0)
}

// fitMemory sets the number of KV blocks from the memory where it is not
// given, and the longest context where it is open.
func (d *Deployment) fitMemory() error {
	d.Memory = d.serverMemory()
	d.besideBlocks()
	block := d.kvBytes()
	most := int((d.Memory.Total - d.Memory.Weights) / block) // if nothing else took memory
	switch {
	case most < 4:
		return d.tooBig(block)
	case d.Settings.NumGPUBlocks == 0:
		if d.Memory.KV < 4*block {
			return d.tooBig(block)
		}
		d.Settings.NumGPUBlocks = int(d.Memory.KV / block)
	case d.Settings.NumGPUBlocks > most:
		return say.Errorf("%s KV blocks of %s on %s take %.1f GiB, and %.1f GiB of its %.1f GiB are left after the weights", say.Count(d.Settings.NumGPUBlocks), d.Model.Name, d.groupName(),
			block*float64(d.Settings.NumGPUBlocks)/gib, (d.Memory.Total-d.Memory.Weights)/gib, d.Memory.Total/gib).WithHint(fmt.Sprintf("leave num_gpu_blocks_override out: about %s blocks fit", say.Count(max(int(d.Memory.KV/block), 0))))
	default:
		d.Memory.KV = block * float64(d.Settings.NumGPUBlocks)
	}
	holds := d.longestRequest()
	less := holds < d.Model.MaxPosition
	switch asked := d.Settings.MaxModelLen; {
	case asked == engine.Auto && less:
		d.Settings.MaxModelLen = holds
	case asked == 0 && less:
		d.Settings.MaxModelLen = holds
		d.Notes = append(d.Notes, d.shortContextNote(holds))
	case asked <= 0:
		d.Settings.MaxModelLen = d.Model.MaxPosition
	case asked > holds:
		return say.Errorf("%s on %s: the KV cache holds %s tokens, which is less than max_model_len (%s)", d.Model.Name, d.groupName(), say.Count(holds), say.Count(asked)).WithHint(fmt.Sprintf("set max_model_len to %d or less, or %s", holds, d.moreMemory()))
	}
	return nil
}

// shortContextNote says that the longest context is not the model's. vLLM tells the
// length that fits and ends (kv_cache_utils, _check_enough_kv_cache_memory).
func (d *Deployment) shortContextNote(holds int) string {
	return fmt.Sprintf("max_model_len is %s, what the KV cache holds: vLLM would not start without --max-model-len %d (or -1), for the model could take %s",
		say.Count(holds), holds, say.Count(d.Model.MaxPosition))
}

// tooBig says by how much a model does not fit, and what would.
func (d *Deployment) tooBig(block float64) error {
	short := (4*block - d.Memory.KV) / gib
	return say.Errorf("%s in %s does not fit on %s: its weights take %.1f GiB and the rest %.1f GiB of the %.1f GiB that may be used of each, %.1f GiB too much",
		d.Model.Name, d.DType, d.groupName(), d.Memory.Weights/gib, (d.Memory.Activations+d.Memory.Other)/gib, d.Memory.Requested/gib, short).WithHint(d.moreMemory())
}

// moreMemory finds what would fit: a smaller batch, fewer bits, or more
// accelerators.
func (d *Deployment) moreMemory() string {
	var ways []string
	try := func(change func(*Deployment), notef string) bool {
		c := *d
		change(&c)
		c.Settings.NumGPUBlocks = 0
		c.Memory = c.serverMemory()
		block := c.kvBytes()
		if c.Memory.KV < max(float64(c.Settings.MaxModelLen)/float64(c.Settings.BlockSize), 4)*block+2*block {
			return false
		}
		ways = append(ways, notef)
		return true
	}
	if d.Settings.MaxNumSeqs > 256 {
		try(func(c *Deployment) { c.Settings.MaxNumSeqs = 256 }, "max_num_seqs=256")
	}
	for _, t := range []string{"fp8", "int4"} {
		if bytesOf[t] < bytesOf[d.DType] && try(func(c *Deployment) { c.DType = t }, "dtype="+t) {
			break
		}
	}
	if d.IsReplicated() && d.Model.Experts > 0 && !d.ExpertParallel {
		try(func(c *Deployment) { c.ExpertParallel = true }, "enable_expert_parallel=true")
	}
	reach := d.Accelerator.Link.LinkedAccelerators()
	for n := d.TensorParallel * 2; n <= reach; n *= 2 {
		wider := *d
		wider.TensorParallel = n
		if wider.checkParallel() == nil && try(func(c *Deployment) { c.TensorParallel = n }, fmt.Sprintf("@%dx%s", n*d.DataParallel, d.Accelerator.Name)) {
			break
		}
	}
	if len(ways) == 0 {
		return fmt.Sprintf("it needs accelerators with more memory: %d in one machine have too little, and several machines are not modelled", reach)
	}
	return "it would fit with " + strings.Join(ways, " or ")
}
