package catalogue

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitot/internal/say"
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
		rounded := 1.0 // what is published is rounded to
		for m.Parameters > 0 && m.Parameters%int64(10*rounded) == 0 {
			rounded *= 10
		}
		if off := float64(m.Count())/float64(m.Parameters) - 1; math.Abs(off)*float64(m.Parameters) > max(0.002*float64(m.Parameters), rounded/2) {
			t.Errorf("%s: %d weights, published %d (%.2f %%)", m.Name, m.Count(), m.Parameters, off*100)
		}
		if m.ActiveWeights() > m.Count()+m.EmbeddingWeights() || m.Experts == 0 && m.ActiveWeights() < m.Count()-m.EmbeddingWeights() {
			t.Errorf("%s: %d weights active of %d", m.Name, m.ActiveWeights(), m.Count())
		}
		if len(m.Sources) == 0 || bytesPerWeight(m.DType) == 0 {
			t.Errorf("%s: sources %v, dtype %s", m.Name, m.Sources, m.DType)
		}
	}
}

func bytesPerWeight(t string) int {
	return map[string]int{"bf16": 2, "fp16": 2, "fp8_block": 1, "int4": 1}[t]
}

func TestAccelerators(t *testing.T) {
	if n := len(Accelerators()); n < 12 {
		t.Errorf("%d accelerators", n)
	}
	for _, a := range Accelerators() {
		if a.MemoryGiB <= 0 || a.BandwidthGBs <= 0 || a.TFLOPS["bf16"] <= 0 || a.Link.GBs <= 0 || a.PowerW <= 0 || a.USDPerHour < 0 { // a price of 0 is not known
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
		if a.Attention != "" && a.Attention != FlashInfer {
			t.Errorf("%s: unknown attention %q", a.Name, a.Attention)
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
	if _, err := FindModel("lama-3.1-8b"); err == nil || !strings.Contains(say.HintOf(err), "llama-3.1-8b") {
		t.Errorf("%v, hint %q", err, say.HintOf(err))
	}
	if _, err := FindAccelerator("h1000"); err == nil || !strings.Contains(say.HintOf(err), "h100") {
		t.Errorf("%v, hint %q", err, say.HintOf(err))
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
		"huge":          `{"num_hidden_layers":9999,"hidden_size":9999999,"num_attention_heads":9999999,"head_dim":9999999,"vocab_size":9,"intermediate_size":4}`,
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

// Endings of names tell what the weights are kept in.
func TestQuantisedNames(t *testing.T) {
	for name, want := range map[string][2]string{
		"Qwen/Qwen3-32B":                                     {"qwen3-32b", "bf16"},
		"Qwen/Qwen3-32B-FP8":                                 {"qwen3-32b", "fp8_block"},
		"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8":               {"qwen3-30b-a3b", "fp8_block"},
		"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic":    {"llama-3.1-8b", "fp8"},
		"Qwen/Qwen3-32B-AWQ":                                 {"qwen3-32b", "int4"},
		"hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4": {"llama-3.1-8b", "int4"},
		"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8":                 {"qwen2.5-7b", "w8a16"},
		"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4":                 {"qwen2.5-7b", "int4"},
		"RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8":     {"llama-3.1-70b", "int8"},
		"nvidia/Llama-3.3-70B-Instruct-NVFP4":                {"llama-3.1-70b", "fp4"},
		"qwen3-8b-fp8":                                       {"qwen3-8b", "fp8"},
		"llama-3.3-70b-awq":                                  {"llama-3.1-70b", "int4"},
	} {
		m, err := FindModel(name)
		if err != nil || m.Name != want[0] || m.DType != want[1] || (m.Quantised != "") != (want[1] != "bf16") {
			t.Errorf("%s is %s in %s (%q), want %v (%v)", name, m.Name, m.DType, m.Quantised, want, err)
		}
	}
}

// shaped is a config.json of a small Llama with more in it.
func shaped(more string) []byte {
	if more != "" {
		more += ","
	}
	return []byte(`{` + more + `"num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,
		"vocab_size":128256,"max_position_embeddings":32768}`)
}

func TestQuantizationConfig(t *testing.T) {
	for config, want := range map[string]string{
		``:                        "bf16",
		`"torch_dtype":"float32"`: "bf16", // as vLLM casts it
		`"dtype":"float16"`:       "bf16",
		`"quantization_config":{"quant_method":"fp8","activation_scheme":"dynamic","weight_block_size":[128,128]}`: "fp8_block",
		`"quantization_config":{"quant_method":"fp8","activation_scheme":"static"}`:                                "fp8",
		`"quantization_config":{"quant_method":"awq","bits":4,"group_size":128}`:                                   "int4",
		`"quantization_config":{"quant_method":"gptq","bits":8}`:                                                   "w8a16",
		`"quantization_config":{"quant_method":"gptq","bits":3}`:                                                   "",
		`"quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true}`:                                "int4",
		`"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}`:                                   "fp4",
		`"quantization_config":{"quant_method":"mxfp4"}`:                                                           "fp4",
		`"quantization_config":{"quant_method":"quark"}`:                                                           "",
		`"quantization_config":{}`: "",
		`"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float"},"input_activations":{"num_bits":8}}}}`: "fp8",
		`"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"int"},"input_activations":{"num_bits":8}}}}`:   "int8",
		`"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"int"},"input_activations":null}}}`:             "w8a16",
		`"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int"}}}}`:                                      "int4",
		`"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"float"},"input_activations":{"num_bits":4}}}}`: "fp4",
	} {
		m, err := parseConfig(shaped(config))
		if err != nil || m.DType != want || (m.Quantised != "") != strings.Contains(config, "quantization") {
			t.Errorf("%s: %q (%q), want %q (%v)", config, m.DType, m.Quantised, want, err)
		}
	}
}

// What modelopt quantised is said beside config.json.
func TestQuantConfigNextToModel(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", shaped(""))
	for text, want := range map[string]string{"{": "bf16", `{}`: "bf16", `{"quantization":{"quant_algo":"FP8"}}`: "fp8", `{"quantization":{"quant_algo":"NVFP4"}}`: "fp4", `{"quantization":{"quant_algo":"MIXED_PRECISION"}}`: ""} {
		write("hf_quant_config.json", []byte(text))
		if m, err := ReadConfig(dir); err != nil || m.DType != want {
			t.Errorf("%s: %q, want %q (%v)", text, m.DType, want, err)
		}
	}
}

// Models whose layers are of no kind that is known are refused in a sentence.
func TestUnlikeConfigs(t *testing.T) {
	for config, want := range map[string]string{
		`"architectures":["BertForMaskedLM"],"model_type":"bert"`:                                                                                "BertForMaskedLM is no decoder-only transformer",
		`"architectures":["T5ForConditionalGeneration"],"is_encoder_decoder":true`:                                                               "no decoder-only",
		`"architectures":["Qwen3NextForCausalLM"],"model_type":"qwen3_next","full_attention_interval":4,"num_experts":8,"num_experts_per_tok":2`: "linear attention is 0",
		`"model_type":"falcon_h1","mamba_d_ssm":1536`:                                                                                            "without attention",
		`"layer_types":["linear_attention","full_attention"]`:                                                                                    "layers of linear attention",
		`"layer_types":["chunked_attention"]`:                                                                                                    "window of the layers of chunked attention is 0",
		`"layer_types":["mamba"]`:                                                                                                                "layers of mamba",
		`"model_type":"deepseek_v32","kv_lora_rank":512,"index_topk":2048`:                                                                       "layers that choose what they look back on",
		`"model_type":"kimi_linear","linear_attn_config":{"short_conv_kernel_size":4}`:                                                           "several kinds in a way that is not known",
		`"model_type":"mimo_v2_flash"`:                                                                                                           "other heads",
		`"model_type":"starcoder2"`:                                                                                                              "not gated",
		`"model_type":"ernie4_5_moe","moe_num_experts":64`:                                                                                       "experts are named",
		`"kv_lora_rank":512`: "latent attention",
	} {
		if m, err := parseConfig(shaped(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", config, m, err, want)
		}
	}
}

// What is approximated has a caveat, and nothing else has.
func TestCaveats(t *testing.T) {
	for config, want := range map[string]string{
		`"model_type":"llama"`:                               "",
		`"model_type":"mistral","sliding_window":4096`:       "all of its 32 layers slide",
		`"model_type":"gemma3_text","sliding_window":1024`:   "",
		`"model_type":"phi3","sliding_window":262144`:        "", // longer than its context
		`"model_type":"hunyuan_v1_dense"`:                    "not a model type the twin was tried with",
		`"model_type":"deepseek_v3","torch_dtype":"float32"`: "in 32 bits",
	} {
		m, err := parseConfig(shaped(config))
		if got := strings.Join(m.Caveats, "\n"); err != nil || want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q (%v)", config, got, want, err)
		}
	}
	sees := `{"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","vision_config":{"num_experts":9},"torch_dtype":"bfloat16","text_config":` + string(shaped(`"model_type":"gemma3_text"`)) + `}`
	if m, err := parseConfig([]byte(sees)); err != nil || m.Layers != 32 || len(m.Caveats) != 1 || !strings.Contains(m.Caveats[0], "text model alone") {
		t.Errorf("%+v, %v", m, err)
	}
}

// The kinds of layers that a config.json names, each family in its own way.
func TestKindsOfLayers(t *testing.T) {
	const delta = `"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4`
	for config, want := range map[string]string{
		`"model_type":"llama"`:                                                                                                           "",
		`"model_type":"mistral","sliding_window":4096`:                                                                                   "32 sliding over 4096",
		`"model_type":"mistral","sliding_window":null`:                                                                                   "",
		`"model_type":"phi3","sliding_window":262144`:                                                                                    "", // longer than its context
		`"model_type":"qwen2","sliding_window":4096,"use_sliding_window":false,"max_window_layers":28`:                                   "",
		`"model_type":"qwen2","sliding_window":4096,"use_sliding_window":true,"max_window_layers":28`:                                    "28 full, 4 sliding over 4096",
		`"model_type":"gemma2","sliding_window":4096`:                                                                                    "16 full, 16 sliding over 4096",
		`"model_type":"gpt_oss","sliding_window":128,"layer_types":["sliding_attention","full_attention"]`:                               "16 full, 16 sliding over 128",
		`"model_type":"gemma3_text","sliding_window":1024`:                                                                               "5 full, 27 sliding over 1024",
		`"model_type":"gemma3_text","sliding_window":512,"sliding_window_pattern":4`:                                                     "8 full, 24 sliding over 512",
		`"model_type":"llama4_text","attention_chunk_size":8192`:                                                                         "8 full, 24 chunked over 8192",
		`"model_type":"llama4_text","attention_chunk_size":8192,"no_rope_layers":[1,0]`:                                                  "16 full, 16 chunked over 8192",
		`"model_type":"qwen3_next","full_attention_interval":4,` + delta:                                                                 "8 full, 24 linear",
		`"model_type":"qwen3_5_text","layer_types":["linear_attention","full_attention"],` + delta:                                       "16 full, 16 linear",
		`"model_type":"deepseek_v3","kv_lora_rank":512,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128`: "32 latent",
		`"model_type":"deepseek_v2","kv_lora_rank":512,"q_lora_rank":null,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128`: "32 latent",
	} {
		m, err := parseConfig(shaped(config))
		var got []string
		for _, a := range m.Attention {
			s := fmt.Sprintf("%d %s", a.Layers, a.Kind)
			if a.Window > 0 {
				s += fmt.Sprintf(" over %d", a.Window)
			}
			got = append(got, s)
		}
		if list := strings.Join(got, ", "); err != nil || list != want {
			t.Errorf("%s: %s, want %s (%v)", config, list, want, err)
		}
	}
}

// A model of the catalogue and the config.json that it was read from have the same
// shape: each of the families whose layers are of kinds of their own.
func TestConfigsOfTheCatalogue(t *testing.T) {
	for name, config := range map[string]string{
		"deepseek-v3": `{"architectures":["DeepseekV3ForCausalLM"],"first_k_dense_replace":3,"hidden_size":7168,"intermediate_size":18432,"kv_lora_rank":512,"max_position_embeddings":163840,
			"model_type":"deepseek_v3","moe_intermediate_size":2048,"moe_layer_freq":1,"n_group":8,"n_routed_experts":256,"n_shared_experts":1,"num_attention_heads":128,"num_experts_per_tok":8,
			"num_hidden_layers":61,"num_key_value_heads":128,"num_nextn_predict_layers":1,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":129280,
			"tie_word_embeddings":false,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}}`,
		"kimi-k2.5": `{"architectures":["KimiK25ForConditionalGeneration"],"dtype":"bfloat16","model_type":"kimi_k25","vision_config":{"vt_hidden_size":1152},"text_config":{"architectures":["DeepseekV3ForCausalLM"],
			"first_k_dense_replace":1,"hidden_size":7168,"intermediate_size":18432,"kv_lora_rank":512,"max_position_embeddings":262144,"model_type":"kimi_k2","moe_intermediate_size":2048,
			"n_routed_experts":384,"n_shared_experts":1,"num_attention_heads":64,"num_experts_per_tok":8,"num_hidden_layers":61,"num_key_value_heads":64,"q_lora_rank":1536,"qk_nope_head_dim":128,
			"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":163840,"quantization_config":{"quant_method":"compressed-tensors","ignore":["lm_head","re:.*self_attn.*","re:.*shared_experts.*"],
			"config_groups":{"group_0":{"input_activations":null,"weights":{"num_bits":4,"type":"int"}}}}}}`,
		"gemma-3-27b": `{"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","torch_dtype":"bfloat16","text_config":{"head_dim":128,"hidden_size":5376,"intermediate_size":21504,
			"model_type":"gemma3_text","num_attention_heads":32,"num_hidden_layers":62,"num_key_value_heads":16,"sliding_window":1024,"vocab_size":262144}}`,
		"llama-4-maverick": `{"architectures":["Llama4ForConditionalGeneration"],"model_type":"llama4","torch_dtype":"bfloat16","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,
			"interleave_moe_layer_step":2,"intermediate_size":8192,"intermediate_size_mlp":16384,"max_position_embeddings":1048576,"model_type":"llama4_text","num_attention_heads":40,
			"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,"num_local_experts":128,"vocab_size":202048}}`,
		"llama-4-scout": `{"architectures":["Llama4ForConditionalGeneration"],"model_type":"llama4","torch_dtype":"bfloat16","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,
			"interleave_moe_layer_step":1,"intermediate_size":8192,"intermediate_size_mlp":16384,"max_position_embeddings":10485760,"model_type":"llama4_text","num_attention_heads":40,
			"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,"num_local_experts":16,"vocab_size":202048}}`,
		"qwen3.5-122b-a10b": `{"architectures":["Qwen3_5MoeForConditionalGeneration"],"model_type":"qwen3_5_moe","tie_word_embeddings":false,"text_config":{"attn_output_gate":true,"dtype":"bfloat16",
			"full_attention_interval":4,"head_dim":256,"hidden_size":3072,"linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":64,
			"linear_value_head_dim":128,"max_position_embeddings":262144,"model_type":"qwen3_5_moe_text","moe_intermediate_size":1024,"num_attention_heads":32,"num_experts":256,
			"num_experts_per_tok":8,"num_hidden_layers":48,"num_key_value_heads":2,"shared_expert_intermediate_size":1024,"vocab_size":248320}}`,
		"gpt-oss-120b": `{"architectures":["GptOssForCausalLM"],"attention_bias":true,"head_dim":64,"hidden_size":2880,"intermediate_size":2880,"layer_types":["sliding_attention","full_attention"],
			"max_position_embeddings":131072,"model_type":"gpt_oss","num_attention_heads":64,"num_experts_per_tok":4,"num_hidden_layers":36,"num_key_value_heads":8,"num_local_experts":128,
			"sliding_window":128,"vocab_size":201088,"quantization_config":{"modules_to_not_convert":["model.layers.*.self_attn"],"quant_method":"mxfp4"}}`,
	} {
		want, err := FindModel(name)
		if err != nil {
			t.Error(err)
			continue
		}
		m, err := parseConfig([]byte(config))
		if err != nil || m.Count() != want.Count() || m.ActiveWeights() != want.ActiveWeights() || m.KVPerToken() != want.KVPerToken() || m.DType != want.DType || m.ExpertDType != want.ExpertDType ||
			m.MaxPosition != want.MaxPosition || !slices.Equal(m.AttentionKinds(), want.AttentionKinds()) || len(m.Wide[m.DType]) != len(want.Wide[m.DType]) {
			t.Errorf("%s is read as %+v, want %+v (%v)", name, m, want, err)
		}
	}
}

// Layers of a mixture of experts that have none.
func TestDenseLayers(t *testing.T) {
	const experts = `"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":768`
	for config, want := range map[string]int{
		experts:                                 0,
		experts + `,"mlp_only_layers":[0,1,40]`: 2,
		experts + `,"decoder_sparse_step":2`:    16, // the second, fourth, … have experts
		experts + `,"decoder_sparse_step":2,"mlp_only_layers":[0,1]`: 17,
		experts + `,"decoder_sparse_step":1`:                         0,
		experts + `,"first_k_dense_replace":3`:                       3,
		`"mlp_only_layers":[0,1]`:                                    0, // no experts at all
	} {
		if m, err := parseConfig(shaped(config)); err != nil || m.DenseLayers != want {
			t.Errorf("%s: %d dense layers, want %d (%v)", config, m.DenseLayers, want, err)
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
		if got := mesh.BandwidthAmong(n); got != want {
			t.Errorf("%d in a mesh: %v, want %v", n, got, want)
		}
		if got := switched.BandwidthAmong(n); got != 450 {
			t.Errorf("%d on a switch: %v", n, got)
		}
	}
}
