package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What of a config.json the twin has, and what it has not.

// alike are model types whose layers the shape describes: attention of one of
// the known kinds, then a gated feed-forward layer or experts of that kind.
var alike = []string{
	"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "phi3", "granite", "gemma", "olmo", "olmo2", "olmoe",
	"internlm2", "internlm3", "deepseek", "glm", "glm4", "glm4_moe", "cohere", "smollm3", "yi", "exaone", "stablelm",
	"gemma2", "gemma3_text", "gemma3", "cohere2", "gpt_oss", "llama4", "llama4_text", "minimax_m2",
	"deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text",
}

// others are model types that are something else, and what.
var others = map[string]string{
	"gemma4": otherHeads, "gemma4_text": otherHeads, "mimo_v2_flash": otherHeads,
	"gemma3n": "its layers share their KV cache and have inputs of their own", "gemma3n_text": "its layers share their KV cache and have inputs of their own",
	"gpt2": ungated, "gpt_neox": ungated, "gptj": ungated, "gpt_bigcode": ungated, "opt": ungated, "bloom": ungated, "falcon": ungated, "mpt": ungated,
	"phi": ungated, "starcoder2": ungated, "nemotron": ungated, "codegen": ungated, "arcee": ungated, "apertus": ungated,
}

const (
	ungated    = "its feed-forward layers are not gated"
	otherHeads = "its layers that look back on everything have other heads than those that slide"
)

// deltaNet are model types of which some layers have the gated delta rule in the
// place of attention.
var deltaNet = []string{"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"}

// checkSupported says what the shape cannot describe at all. b is the whole config and
// kind the model type of its outermost part.
func (c *hfConfig) checkSupported(b []byte, kind string) error {
	for _, a := range c.Architectures {
		if c.EncoderDecoder || !strings.HasSuffix(a, "ForCausalLM") && !strings.HasSuffix(a, "ForConditionalGeneration") && !strings.HasSuffix(a, "LMHeadModel") {
			return fmt.Errorf("%s is no decoder-only transformer", a)
		}
	}
	for _, k := range []string{kind, c.ModelType} {
		if why := others[k]; why != "" {
			return fmt.Errorf("%s cannot be modelled: %s", k, why)
		}
	}
	delta := slices.Contains(deltaNet, c.ModelType)
	for _, t := range c.LayerTypes {
		if _, known := kindOf[t]; !known || t == "linear_attention" && !delta {
			return fmt.Errorf("layers of %s cannot be modelled", strings.ReplaceAll(t, "_", " "))
		}
	}
	var keys map[string]json.RawMessage
	var text struct {
		Keys map[string]json.RawMessage `json:"text_config"`
	}
	if json.Unmarshal(b, &keys) != nil || json.Unmarshal(b, &text) != nil {
		return nil // a key that is no object is another's complaint
	}
	for _, keys := range []map[string]json.RawMessage{keys, text.Keys} {
		for _, k := range []string{"linear_attn_config", "hybrid_layer_pattern", "hybrid_override_pattern", "layers_block_type", "attn_type_list"} {
			if v := keys[k]; v != nil && string(v) != "null" {
				return fmt.Errorf("its layers are of several kinds in a way that is not known (it has %s)", k)
			}
		}
		for k, v := range keys {
			var n float64
			if json.Unmarshal(v, &n) != nil || n <= 1 {
				continue
			}
			if k == "index_topk" {
				return fmt.Errorf("layers that choose what they look back on cannot be modelled (%s is %v)", k, n)
			}
			for _, p := range []string{"mamba_", "ssm_", "linear_num_", "linear_key_", "full_attention_interval", "attn_layer_period", "conv_L_cache"} {
				if strings.HasPrefix(k, p) && !(delta && (strings.HasPrefix(k, "linear_") || k == "full_attention_interval")) {
					return fmt.Errorf("layers without attention cannot be modelled (%s is %v)", k, n)
				}
			}
			if strings.Contains(k, "expert") && max(c.NumExperts, c.NumLocalExperts, c.NRoutedExperts) == 0 && !strings.Contains(k, "intermediate") {
				return fmt.Errorf("its experts are named in a way that is not known (%s is %v)", k, n)
			}
		}
	}
	return nil
}

// denseLayers returns the number of layers of a mixture of experts that have no experts. Of
// DeepSeek's these are the first layers. Of Qwen's they are those that mlp_only_layers names or
// that decoder_sparse_step passes over.
func (c *hfConfig) denseLayers() int {
	if max(c.NumExperts, c.NumLocalExperts, c.NRoutedExperts) == 0 {
		return 0
	}
	if c.FirstKDense > 0 {
		return c.FirstKDense
	}
	if c.isLlama4() && len(c.MoELayers) > 0 {
		return c.Layers - len(c.MoELayers)
	}
	only := map[int]bool{}
	for _, i := range c.MLPOnlyLayers {
		only[i] = true
	}
	step := max(c.DecoderSparseStep, c.InterleaveMoE)
	dense := 0
	for i := range min(max(c.Layers, 0), mostUnits) {
		if only[i] || step > 1 && (i+1)%step > 0 {
			dense++
		}
	}
	return dense
}

// hfQuant is a quantization_config. Tools that quantise name the same thing
// differently.
type hfQuant struct {
	Method string  `json:"quant_method"`
	Algo   string  `json:"quant_algo"` // of modelopt
	Bits   float64 `json:"bits"`       // of AWQ and GPTQ
	Block  []int   `json:"weight_block_size"`
	// Modules that are left out, as patterns of their names.
	Ignore  []string `json:"ignore"`          // of compressed-tensors and modelopt
	Exclude []string `json:"exclude_modules"` // of modelopt
	Keep    []string `json:"modules_to_not_convert"`
	In4Bit  bool     `json:"load_in_4bit"`
	In8Bit  bool     `json:"load_in_8bit"`
	Groups  map[string]struct {
		Weights struct {
			Bits float64 `json:"num_bits"`
			Type string  `json:"type"`
		} `json:"weights"`
		Activations json.RawMessage `json:"input_activations"` // null where the weights alone are quantised
	} `json:"config_groups"` // of compressed-tensors
}

// weightDType returns the data type of most of the weights, or "" where it is not known.
func (q *hfQuant) weightDType() string {
	switch q.Method {
	case "fp8":
		if len(q.Block) > 0 {
			return "fp8_block"
		}
		return "fp8"
	case "awq", "gptq":
		switch q.Bits {
		case 4:
			return "int4"
		case 8:
			return "w8a16"
		}
		return ""
	case "bitsandbytes":
		switch {
		case q.In4Bit:
			return "int4"
		case q.In8Bit:
			return "w8a16"
		}
		return ""
	case "modelopt":
		return WeightDType(q.Algo)
	case "compressed-tensors":
		found := ""
		for _, g := range q.Groups {
			t := ""
			alone := len(g.Activations) == 0 || string(g.Activations) == "null"
			switch w := g.Weights; {
			case w.Bits == 8 && w.Type == "float" && !alone:
				t = "fp8"
			case w.Bits == 8 && w.Type == "int" && !alone:
				t = "int8"
			case w.Bits == 8:
				t = "w8a16"
			case w.Bits == 4 && w.Type == "float" && !alone:
				t = "fp4"
			case w.Bits == 4:
				t = "int4"
			}
			if found != "" && found != t {
				return "" // several kinds
			}
			found = t
		}
		return found
	}
	return WeightDType(q.Method)
}

// wideParts are the parts of the layers that are left in 16 bits.
func (q *hfQuant) wideParts() map[string][]Part {
	return wideParts(q.weightDType(), slices.Concat(q.Ignore, q.Exclude, q.Keep))
}

// wideParts are the parts that modules of such names are of, for weights of a data
// type.
func wideParts(dtype string, modules []string) map[string][]Part {
	var list []Part
	for _, part := range []struct {
		part  Part
		names []string
	}{{InAttention, []string{"self_attn", "linear_attn"}}, {InFeedForward, []string{"shared_expert"}}} {
		if slices.ContainsFunc(modules, func(m string) bool {
			return slices.ContainsFunc(part.names, func(n string) bool { return strings.Contains(m, n) }) && !strings.HasSuffix(m, "_gate")
		}) {
			list = append(list, part.part)
		}
	}
	if list == nil || dtype == "" {
		return nil
	}
	return map[string][]Part{dtype: list}
}

// methodName returns the file's own name of the quantization.
func (q *hfQuant) methodName() string {
	s := q.Method
	if q.Algo != "" {
		s += " " + q.Algo
	}
	if q.Bits > 0 {
		s += fmt.Sprintf(" of %v bits", q.Bits)
	}
	if s == "" {
		return "nothing"
	}
	return s
}

// WeightDType returns the data type of the weights under a method of vLLM's quantization. It
// returns "" for a method that does not determine it alone. In w8a16 and int4 only the weights have
// fewer bits; computing is in 16.
func WeightDType(method string) string {
	switch strings.ToLower(method) {
	case "fp8", "fbgemm_fp8", "ptpc_fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "mxfp8", "modelopt_mxfp8":
		return "fp8"
	case "awq", "awq_marlin", "auto_awq", "gptq", "gptq_marlin", "auto_gptq", "w4a16_awq":
		return "int4"
	case "int8_per_channel_weight_only":
		return "w8a16"
	case "nvfp4", "modelopt_fp4", "mxfp4", "gpt_oss_mxfp4", "nvfp4_per_token":
		return "fp4"
	}
	return ""
}
