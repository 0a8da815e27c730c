package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pitot/internal/user"
)

// hfConfig is what a config.json says of a decoder-only model's shape.
// Families name the same thing differently.
type hfConfig struct {
	Architectures []string  `json:"architectures"`
	ModelType     string    `json:"model_type"`
	Text          *hfConfig `json:"text_config"` // of a model that also sees

	Layers       int    `json:"num_hidden_layers"`
	Hidden       int    `json:"hidden_size"`
	Heads        int    `json:"num_attention_heads"`
	KVHeads      *int   `json:"num_key_value_heads"`
	HeadDim      *int   `json:"head_dim"`
	Intermediate int    `json:"intermediate_size"`
	Vocab        int    `json:"vocab_size"`
	Tied         *bool  `json:"tie_word_embeddings"`
	Bias         bool   `json:"attention_bias"`
	MaxPosition  int    `json:"max_position_embeddings"`
	TorchDType   string `json:"torch_dtype"`
	DType        string `json:"dtype"`

	NumExperts      int `json:"num_experts"`
	NumLocalExperts int `json:"num_local_experts"`
	NRoutedExperts  int `json:"n_routed_experts"`
	ExpertsPerTok   int `json:"num_experts_per_tok"`
	MoEIntermediate int `json:"moe_intermediate_size"`
	SharedExpert    int `json:"shared_expert_intermediate_size"`
	NSharedExperts  int `json:"n_shared_experts"`
	FirstKDense     int `json:"first_k_dense_replace"`

	KVLoRARank int `json:"kv_lora_rank"`
}

// ReadConfig reads the shape of a model from its config.json, or from the
// directory that holds one. The model's name is the directory's.
func ReadConfig(path string) (Model, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Model{}, user.Errorf("give a model's directory or its config.json, as on the Hugging Face hub", "read model: %v", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	m, err := parseConfig(b)
	if err != nil {
		return Model{}, user.Errorf("it must be the config.json of a decoder-only transformer, as on the Hugging Face hub", "read model %s: %v", path, err)
	}
	m.Name = strings.ToLower(filepath.Base(filepath.Dir(abs)))
	m.Sources = map[string]string{"shape": path}
	return m, nil
}

// parseConfig understands a config.json.
func parseConfig(b []byte) (Model, error) {
	var c hfConfig
	if err := json.Unmarshal(b, &c); err != nil {
		return Model{}, fmt.Errorf("parse JSON: %w", err)
	}
	if c.Text != nil && c.Layers == 0 {
		c = *c.Text
	}
	if c.KVLoRARank > 0 {
		return Model{}, errors.New("multi-head latent attention is not modelled yet")
	}
	or := func(p *int, v int) int {
		if p != nil && *p > 0 {
			return *p
		}
		return v
	}
	m := Model{
		Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: or(c.KVHeads, c.Heads),
		Intermediate: c.Intermediate, Vocab: c.Vocab, QKVBias: c.Bias || strings.HasPrefix(c.ModelType, "qwen2"),
		QKNorm:  strings.HasPrefix(c.ModelType, "qwen3"),
		Experts: max(c.NumExperts, c.NumLocalExperts, c.NRoutedExperts), ExpertsPerToken: c.ExpertsPerTok,
		MoEIntermediate: c.MoEIntermediate, SharedExpertIntermediate: c.SharedExpert + c.NSharedExperts*c.MoEIntermediate,
		DenseLayers: c.FirstKDense, MaxPosition: c.MaxPosition, DType: dtype(c.TorchDType + c.DType),
	}
	if c.Tied != nil {
		m.Tied = *c.Tied
	}
	if m.Heads > 0 {
		m.HeadDim = or(c.HeadDim, m.Hidden/m.Heads)
	}
	if m.Experts > 0 && m.MoEIntermediate == 0 {
		m.MoEIntermediate = m.Intermediate // Mixtral
	}
	if m.MaxPosition == 0 {
		m.MaxPosition = 32768
	}
	return m, m.check()
}

func dtype(torch string) string {
	switch torch {
	case "float16", "bfloat16", "":
		return "bf16"
	case "float32":
		return "fp32"
	}
	return torch
}

// check says what is missing or impossible in a shape.
func (m *Model) check() error {
	const most = 1 << 24
	for _, f := range []struct {
		name string
		v    int
	}{
		{"num_hidden_layers", m.Layers}, {"hidden_size", m.Hidden}, {"num_attention_heads", m.Heads},
		{"num_key_value_heads", m.KVHeads}, {"head_dim", m.HeadDim}, {"vocab_size", m.Vocab},
		{"max_position_embeddings", m.MaxPosition},
	} {
		if f.v <= 0 || f.v > most {
			return fmt.Errorf("%s is %d", f.name, f.v)
		}
	}
	switch {
	case m.KVHeads > m.Heads:
		return fmt.Errorf("num_key_value_heads (%d) is more than num_attention_heads (%d)", m.KVHeads, m.Heads)
	case m.Experts == 0 && (m.Intermediate <= 0 || m.Intermediate > most):
		return fmt.Errorf("intermediate_size is %d", m.Intermediate)
	case m.Experts < 0 || m.Experts > most || m.Experts > 0 && (m.ExpertsPerToken <= 0 || m.ExpertsPerToken > m.Experts || m.MoEIntermediate <= 0 || m.MoEIntermediate > most):
		return fmt.Errorf("%d experts of width %d, %d for each token", m.Experts, m.MoEIntermediate, m.ExpertsPerToken)
	case m.DenseLayers < 0 || m.DenseLayers > m.Layers:
		return fmt.Errorf("%d dense layers of %d", m.DenseLayers, m.Layers)
	}
	return nil
}
