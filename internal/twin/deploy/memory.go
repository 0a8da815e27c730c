package deploy

import (
	"fmt"
	"strings"

	"pitot/internal/user"
)

// gib is 2³⁰ bytes.
const gib = 1 << 30

// bytesOf is how many bytes a weight or a value takes in a data type. The
// four-bit formats keep a scale for each group of weights besides (AWQ and
// GPTQ: 16 bits for 128; MXFP4: 8 for 32).
var bytesOf = map[string]float64{
	"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5 + 2.0/128, "fp4": 0.5 + 1.0/32,
}

// Memory is what a server's memory is spent on, in bytes of one accelerator
// of the group, as vLLM works it out when it starts
// (Worker.determine_available_memory).
type Memory struct {
	Total       float64 `json:"total"`     // as the driver reports it
	Requested   float64 `json:"requested"` // gpu_memory_utilization of it
	Weights     float64 `json:"weights"`
	Activations float64 `json:"activations"` // the peak of the profiling run
	Other       float64 `json:"other"`       // the driver's context, collectives, graphs
	KV          float64 `json:"kv_cache"`    // what is left
}

// memory is the server's memory before the number of blocks is set.
func (d *Deployment) memory() Memory {
	m, tp := &d.Model, float64(d.TensorParallel)
	mem := Memory{Total: d.Accelerator.MemoryGiB * gib}
	mem.Requested = d.MemoryUtilization * mem.Total
	mem.Weights = (float64(m.Dense()+m.Routed())*bytesOf[d.DType] + d.unquantised()) / tp
	mem.Activations = d.activations()
	mem.Other = 0.35 * gib
	if tp > 1 {
		mem.Other = 0.8 * gib
	}
	mem.KV = mem.Requested - mem.Weights - mem.Activations - mem.Other
	return mem
}

// unquantised is the bytes of embedding and head, which stay in 16 bits when
// the layers' weights are quantised.
func (d *Deployment) unquantised() float64 {
	n := d.Model.Embedding()
	if !d.Model.Tied {
		n *= 2
	}
	return float64(n) * max(bytesOf[d.DType], 2)
}

// activations is the peak of vLLM's profiling run: either a full batch in the
// widest layer, or the sampler, which sorts the logits of max_num_seqs rows.
func (d *Deployment) activations() float64 {
	m, s, tp := &d.Model, &d.Settings, float64(d.TensorParallel)
	t := float64(s.MaxNumBatchedTokens)
	width := 3 * float64(m.Intermediate) / tp
	if m.Experts > 0 {
		width = max(width, 3*float64(m.MoEIntermediate*m.ExpertsPerToken)/tp)
	}
	layer := t * 2 * (width + 4*float64(m.Hidden))
	// For each logit: 2 and 4 bytes of it, sorted values and their 8-byte
	// indices, probabilities and their sums.
	sampler := float64(min(s.MaxNumSeqs, s.MaxNumBatchedTokens))*float64(m.Vocab)*28 + t*2*float64(m.Hidden)
	return max(layer, sampler)
}

// kvPerToken is the bytes that the cache takes for one token on one
// accelerator. Heads are divided among the group until each has one.
func (d *Deployment) kvPerToken() float64 {
	share := float64(min(d.TensorParallel, d.Model.KVHeads))
	return float64(d.Model.KVPerToken()) * bytesOf[d.KVDType] / share
}

// fitMemory sets the number of KV blocks from the memory where it is not
// given, and the longest context where it is open.
func (d *Deployment) fitMemory() error {
	d.Memory = d.memory()
	block := d.kvPerToken() * float64(d.Settings.BlockSize)
	if d.Settings.NumGPUBlocks == 0 {
		if d.Memory.KV < 4*block {
			return d.tooBig(block)
		}
		d.Settings.NumGPUBlocks = int(d.Memory.KV / block)
	} else {
		d.Memory.KV = block * float64(d.Settings.NumGPUBlocks)
	}
	holds := (d.Settings.NumGPUBlocks - 1) * d.Settings.BlockSize
	switch {
	case d.Settings.MaxModelLen == 0 && holds < d.Model.MaxPosition:
		d.Settings.MaxModelLen = holds
		d.Notes = append(d.Notes, fmt.Sprintf("max_model_len is %s, what the KV cache holds; the model could take %s",
			user.Count(int64(holds)), user.Count(int64(d.Model.MaxPosition))))
	case d.Settings.MaxModelLen == 0:
		d.Settings.MaxModelLen = d.Model.MaxPosition
	case d.Settings.MaxModelLen > holds:
		return user.Errorf(fmt.Sprintf("set max_model_len to %d or less, or %s", holds, d.moreMemory()),
			"%s on %s: the KV cache holds %s tokens, which is less than max_model_len (%s)", d.Model.Name, d.Where(), user.Count(int64(holds)), user.Count(int64(d.Settings.MaxModelLen)))
	}
	return nil
}

// tooBig says by how much a model does not fit, and what would.
func (d *Deployment) tooBig(block float64) error {
	short := (4*block - d.Memory.KV) / gib
	return user.Errorf(d.moreMemory(), "%s in %s does not fit on %s: its weights take %.1f GiB and the rest %.1f GiB of the %.1f GiB that may be used of each, %.1f GiB too much",
		d.Model.Name, d.DType, d.Where(), d.Memory.Weights/gib, (d.Memory.Activations+d.Memory.Other)/gib, d.Memory.Requested/gib, short)
}

// moreMemory finds what would fit: fewer bits, or more accelerators.
func (d *Deployment) moreMemory() string {
	var ways []string
	try := func(change func(*Deployment), say string) bool {
		c := *d
		change(&c)
		c.Settings.NumGPUBlocks = 0
		c.Memory = c.memory()
		need := float64(max(c.Settings.MaxModelLen, 4*c.Settings.BlockSize)) * c.kvPerToken()
		if c.Memory.KV < need+2*float64(c.Settings.BlockSize)*c.kvPerToken() {
			return false
		}
		ways = append(ways, say)
		return true
	}
	for _, t := range []string{"fp8", "int4"} {
		if bytesOf[t] < bytesOf[d.DType] && try(func(c *Deployment) { c.DType = t }, "dtype="+t) {
			break
		}
	}
	for n := d.TensorParallel * 2; n <= 64; n *= 2 {
		if d.Model.Heads%n == 0 && try(func(c *Deployment) { c.TensorParallel = n }, fmt.Sprintf("@%dx%s", n, d.Accelerator.Name)) {
			break
		}
	}
	if len(ways) == 0 {
		return "it needs accelerators with more memory"
	}
	return "it would fit with " + strings.Join(ways, " or ")
}
