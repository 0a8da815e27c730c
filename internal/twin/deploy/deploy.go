// Package deploy puts a model on accelerators: how much memory is left for
// the KV cache, how long a step of the engine takes, and what bounds it, from
// first principles and datasheets. It makes the engine that the twin runs.
package deploy

import (
	"fmt"
	"time"

	"pitot/internal/twin/catalogue"
	"pitot/internal/twin/vllm"
	"pitot/internal/user"
)

// Deployment is one server: a model on a group of accelerators with an
// engine's settings. Make one with [Parse] or [New].
type Deployment struct {
	Spec           string            // MODEL@GPU as it was given
	Given          map[string]string // settings that came with it
	Model          catalogue.Model
	Accelerator    catalogue.Accelerator
	TensorParallel int
	DType          string // of the weights
	KVDType        string // of the KV cache

	MemoryUtilization float64 // share of the memory that the server may use
	Memory            Memory
	Efficiency        Efficiency
	Settings          vllm.Settings
	USDPerHour        float64 // of one accelerator
	Fitted            *Range  // what its profile was fitted from, nil without one
	Notes             []string
}

// New gives a deployment with vLLM's defaults for the accelerator; set what
// differs and call Complete.
func New(m catalogue.Model, a catalogue.Accelerator, tp int) *Deployment {
	d := &Deployment{
		Model: m, Accelerator: a, TensorParallel: tp,
		DType: m.DType, KVDType: "auto", MemoryUtilization: 0.92,
		Efficiency: efficiency(&a), Settings: vllm.Default(), USDPerHour: a.USDPerHour,
	}
	// EngineArgs.get_batch_defaults, for the API server.
	switch {
	case a.Name == "cpu": // CpuPlatform.check_and_update_config
		d.Settings.MaxNumBatchedTokens, d.Settings.MaxNumSeqs = 2048, 128
		d.Settings.BlockSize, d.Settings.AsyncScheduling = 128, false
	case a.MemoryGiB >= 160:
		d.Settings.MaxNumBatchedTokens, d.Settings.MaxNumSeqs = 16384, 1024
	case a.MemoryGiB >= 70 && a.Name != "a100":
		d.Settings.MaxNumBatchedTokens, d.Settings.MaxNumSeqs = 8192, 1024
	default:
		d.Settings.MaxNumBatchedTokens, d.Settings.MaxNumSeqs = 2048, 256
	}
	d.Settings.Frontend, d.Settings.StepJitter = DefaultFrontend, 0.02
	d.Settings.SlowTime = time.Second // of phases that SlowCV turns on
	return d
}

// DefaultFrontend is what vLLM's API server takes on a core of a server's CPU:
// the order of what a fit on a live server finds.
var DefaultFrontend = vllm.Frontend{
	Latency: 3 * time.Millisecond, PerRequest: time.Millisecond, PerPromptToken: time.Microsecond,
	PerStep: 50 * time.Microsecond, PerChunk: 30 * time.Microsecond,
}

// Where names the accelerators: "2×h100".
func (d *Deployment) Where() string {
	if d.TensorParallel > 1 {
		return fmt.Sprintf("%d×%s", d.TensorParallel, d.Accelerator.Name)
	}
	return d.Accelerator.Name
}

// Complete works out what was left open and checks the whole; its errors are
// the user's.
func (d *Deployment) Complete() error {
	if d.KVDType == "auto" {
		d.KVDType = "bf16"
		if d.DType == "fp32" {
			d.KVDType = "fp32"
		}
	}
	if d.TensorParallel < 1 || d.TensorParallel > 64 || d.Model.Heads%d.TensorParallel != 0 {
		return user.Errorf(fmt.Sprintf("take a number that divides the model's %d attention heads", d.Model.Heads), "tensor parallelism of %d is impossible for %s", d.TensorParallel, d.Model.Name)
	}
	for _, t := range []string{d.DType, d.KVDType} {
		if bytesOf[t] == 0 {
			return user.Errorf(user.Known(t, []string{"bf16", "fp16", "fp32", "fp8", "int8", "int4", "fp4"}), "unknown data type %q", t)
		}
	}
	if bytesOf[d.KVDType] < 1 {
		return user.Errorf("take bf16 or fp8", "the KV cache cannot be kept in %s", d.KVDType)
	}
	if d.peak() == 0 {
		return user.Errorf("", "%s cannot compute in %s", d.Accelerator.Name, d.DType)
	}
	if !(d.MemoryUtilization > 0 && d.MemoryUtilization <= 1) {
		return user.Errorf("vLLM's default is 0.92", "gpu_memory_utilization is %v, it must be above 0 and at most 1", d.MemoryUtilization)
	}
	if err := d.fitMemory(); err != nil {
		return err
	}
	d.Settings.MaxNumSeqs = min(d.Settings.MaxNumSeqs, d.Settings.MaxNumBatchedTokens)
	if err := d.Settings.Check(); err != nil {
		return user.Errorf("the settings are vLLM's; pitot predict --help lists them", "impossible engine settings: %v", err)
	}
	return nil
}

// peak is the dense peak of matrix products with the weights' data type, in
// operations/s of one accelerator. Weights of a type that the hardware does
// not compute in are unpacked to 16 bits.
func (d *Deployment) peak() float64 {
	t := d.Accelerator.TFLOPS
	switch f := t[d.DType]; {
	case f > 0:
		return f * 1e12
	case d.DType == "fp32":
		return 0
	}
	return t["bf16"] * 1e12
}

// hardware puts the deployment into the formulas' units.
func (d *Deployment) hardware() *hardware {
	m, e := &d.Model, d.Efficiency
	layers := float64(m.Layers)
	h := &hardware{
		bandwidth: d.Accelerator.BandwidthGBs * 1e9 * e.Bandwidth,
		compute:   d.peak() * e.Compute,
		attention: d.Accelerator.TFLOPS["bf16"] * 1e12 * e.Attention,
		link:      max(d.Accelerator.Link.Among(d.TensorParallel), 1) * 1e9 * e.Link,
		e:         e, tp: float64(d.TensorParallel),
		layers: layers, dense: float64(m.Dense()),
		headWeights: float64(m.Embedding()), hidden: float64(m.Hidden),
		ff: float64(m.Intermediate), qDim: float64(m.Heads * m.HeadDim),
		kvPerToken:  d.kvPerToken() * float64(d.TensorParallel),
		weightBytes: bytesOf[d.DType], headBytes: max(bytesOf[d.DType], 2),
	}
	if m.Experts > 0 {
		h.moeLayers = layers - float64(m.DenseLayers)
		h.experts, h.perToken = float64(m.Experts), float64(m.ExpertsPerToken)
		h.expert = float64(m.Expert())
		h.ff = float64(m.MoEIntermediate*m.ExpertsPerToken + m.SharedExpertIntermediate)
	}
	return h
}

// Parts says what a step's time is spent on.
func (d *Deployment) Parts(b *vllm.Batch) Parts { return d.hardware().parts(b) }

// Engine makes the engine; the seed decides its chances.
func (d *Deployment) Engine(seed uint64) *vllm.Engine {
	s := d.Settings
	s.Seed = seed
	return vllm.New(s, d.hardware())
}
