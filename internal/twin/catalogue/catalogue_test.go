package catalogue

import (
	"math"
	"strings"
	"testing"

	"pitot/internal/user"
)

// The shape of every model gives the number of parameters that is published.
func TestShapesGiveThePublishedCount(t *testing.T) {
	if n := len(Models()); n < 12 {
		t.Errorf("%d models", n)
	}
	for _, m := range Models() {
		if err := m.check(); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if off := float64(m.Count())/float64(m.Parameters) - 1; math.Abs(off) > 0.001 {
			t.Errorf("%s: %d weights, published %d (%.2f %%)", m.Name, m.Count(), m.Parameters, off*100)
		}
		if m.Active() > m.Count()+m.Embedding() || m.Experts == 0 && m.Active() < m.Count()-m.Embedding() {
			t.Errorf("%s: %d weights active of %d", m.Name, m.Active(), m.Count())
		}
		if len(m.Sources) == 0 || bytesPerWeight(m.DType) == 0 {
			t.Errorf("%s: sources %v, dtype %s", m.Name, m.Sources, m.DType)
		}
	}
}

func bytesPerWeight(t string) int { return map[string]int{"bf16": 2, "fp16": 2}[t] }

func TestAccelerators(t *testing.T) {
	if n := len(Accelerators()); n < 12 {
		t.Errorf("%d accelerators", n)
	}
	for _, a := range Accelerators() {
		if a.MemoryGiB <= 0 || a.BandwidthGBs <= 0 || a.TFLOPS["bf16"] <= 0 || a.Link.GBs <= 0 || a.PowerW <= 0 || a.USDPerHour <= 0 {
			t.Errorf("%+v", a)
		}
		for _, of := range []string{"memory_gib", "bandwidth_gbps", "tflops", "link", "power_w", "usd_per_hour"} {
			found := false
			for fields := range a.Sources {
				found = found || strings.Contains(fields, of)
			}
			if !found {
				t.Errorf("%s: no source for %s", a.Name, of)
			}
		}
		for _, d := range a.Device {
			if got, err := FindDevice(d); err != nil || got.Name != a.Name {
				t.Errorf("%q is %s, want %s (%v)", d, got.Name, a.Name, err)
			}
		}
	}
}

// Every name leads to one thing only.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, m := range Models() {
		for _, n := range append([]string{m.Name, m.HF}, m.Aliases...) {
			if seen[n] != "" {
				t.Errorf("%s is %s and %s", n, seen[n], m.Name)
			}
			seen[n] = m.Name
			if got, err := FindModel(strings.ToUpper(n)); err != nil || got.Name != m.Name {
				t.Errorf("%s is %s (%v), want %s", n, got.Name, err, m.Name)
			}
		}
	}
	for name, want := range map[string]string{
		"meta-llama/Meta-Llama-3.1-8B-Instruct": "llama-3.1-8b", "Qwen/Qwen3-32B": "qwen3-32b", "RedHatAI/Qwen3-32B-FP8": "qwen3-32b",
		"Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b", "mistralai/Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b",
	} {
		if m, err := FindModel(name); err != nil || m.Name != want {
			t.Errorf("%s is %q, want %s (%v)", name, m.Name, want, err)
		}
	}
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "h100", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA GeForce RTX 4090": "rtx4090",
		"NVIDIA A100-SXM4-80GB": "a100", "NVIDIA L40S": "l40s", "NVIDIA L4": "l4",
	} {
		if a, err := FindDevice(name); err != nil || a.Name != want {
			t.Errorf("%s is %q, want %s (%v)", name, a.Name, want, err)
		}
	}
	if a, err := FindDevice("NVIDIA L40"); err == nil {
		t.Errorf("an L40 is taken for %s", a.Name)
	}
	if _, err := FindModel("lama-3.1-8b"); err == nil || !strings.Contains(user.Hint(err), "llama-3.1-8b") {
		t.Errorf("%v, hint %q", err, user.Hint(err))
	}
	if _, err := FindAccelerator("h1000"); err == nil || !strings.Contains(user.Hint(err), "h100") {
		t.Errorf("%v, hint %q", err, user.Hint(err))
	}
}

func TestConfig(t *testing.T) {
	m, err := parseConfig([]byte(`{"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,
		"intermediate_size":14336,"vocab_size":128256,"tie_word_embeddings":false,"max_position_embeddings":131072,"torch_dtype":"bfloat16"}`))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := FindModel("llama-3.1-8b")
	if m.Count() != want.Count() || m.KVPerToken() != want.KVPerToken() || m.HeadDim != 128 {
		t.Errorf("%+v", m)
	}
	for name, c := range map[string]string{
		"no JSON":       `{`,
		"nothing":       `{}`,
		"negative":      `{"num_hidden_layers":-1,"hidden_size":8,"num_attention_heads":2,"vocab_size":9,"intermediate_size":4,"max_position_embeddings":10}`,
		"heads":         `{"num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,"num_key_value_heads":4,"vocab_size":9,"intermediate_size":4}`,
		"experts":       `{"num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,"vocab_size":9,"intermediate_size":4,"num_experts":4}`,
		"latent":        `{"num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,"vocab_size":9,"intermediate_size":4,"kv_lora_rank":512}`,
		"too much":      `{"num_hidden_layers":99999999999,"hidden_size":8,"num_attention_heads":2,"vocab_size":9,"intermediate_size":4}`,
		"wrong type":    `{"num_hidden_layers":"many"}`,
		"array of text": `[]`,
	} {
		if m, err := parseConfig([]byte(c)); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"num_hidden_layers":2,"hidden_size":128,"num_attention_heads":4,"vocab_size":8000,"intermediate_size":256,"text_config":{"num_experts":8}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseConfig(b); err == nil && (m.KVPerToken() <= 0 || m.Count() <= 0) {
			t.Errorf("%+v", m)
		}
	})
}

// Links of their own to each other accelerator add up; a switch gives all to any.
func TestLinkAmong(t *testing.T) {
	mesh, switched := Link{GBs: 448, PeerGBs: 64}, Link{GBs: 450}
	for n, want := range map[int]float64{1: 64, 2: 64, 4: 192, 8: 448} {
		if got := mesh.Among(n); got != want {
			t.Errorf("%d in a mesh: %v, want %v", n, got, want)
		}
		if got := switched.Among(n); got != 450 {
			t.Errorf("%d on a switch: %v", n, got)
		}
	}
}
