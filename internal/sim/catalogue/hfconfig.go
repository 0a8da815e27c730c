package catalogue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/userfile"
)

// hfConfig holds the fields of a config.json that describe a decoder-only model's shape. Families
// name the same thing differently.
type hfConfig struct {
	Architectures    []string  `json:"architectures"`
	ModelType        string    `json:"model_type"`
	EncoderDecoder   bool      `json:"is_encoder_decoder"`
	Text             *hfConfig `json:"text_config"` // of a model that also sees
	Quantization     *hfQuant  `json:"quantization_config"`
	CompressionQuant *hfQuant  `json:"compression_config"`

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

	SlidingWindow    *int     `json:"sliding_window"`
	UseSlidingWindow *bool    `json:"use_sliding_window"`
	MaxWindowLayers  *int     `json:"max_window_layers"`       // of Qwen: those below have full attention
	SlidingPattern   int      `json:"sliding_window_pattern"`  // of Gemma: every so many layers one has full attention
	ChunkSize        int      `json:"attention_chunk_size"`    // of Llama 4
	NoRope           []int    `json:"no_rope_layers"`          // of Llama 4: 0 where a layer has full attention, without positions
	FullInterval     int      `json:"full_attention_interval"` // of Qwen: every so many layers one has full attention
	OutputGate       *bool    `json:"attn_output_gate"`
	LayerTypes       []string `json:"layer_types"` // of attention, one a layer

	NumExperts        int   `json:"num_experts"`
	NumLocalExperts   int   `json:"num_local_experts"`
	NRoutedExperts    int   `json:"n_routed_experts"`
	ExpertsPerTok     int   `json:"num_experts_per_tok"`
	MoEIntermediate   int   `json:"moe_intermediate_size"`
	SharedExpert      int   `json:"shared_expert_intermediate_size"`
	NSharedExperts    int   `json:"n_shared_experts"`
	FirstKDense       int   `json:"first_k_dense_replace"`
	MLPOnlyLayers     []int `json:"mlp_only_layers"`
	DecoderSparseStep int   `json:"decoder_sparse_step"`
	InterleaveMoE     int   `json:"interleave_moe_layer_step"` // of Llama 4: every so many layers one has experts
	MoELayers         []int `json:"moe_layers"`                // of Llama 4: which
	IntermediateMLP   int   `json:"intermediate_size_mlp"`     // of Llama 4: of layers without experts

	QLoRARank  *int `json:"q_lora_rank"`
	KVLoRARank int  `json:"kv_lora_rank"`
	NopeDim    int  `json:"qk_nope_head_dim"`
	RopeDim    int  `json:"qk_rope_head_dim"`
	VHeadDim   int  `json:"v_head_dim"`

	LinearKeyHeads   int `json:"linear_num_key_heads"`
	LinearValueHeads int `json:"linear_num_value_heads"`
	LinearKeyDim     int `json:"linear_key_head_dim"`
	LinearValueDim   int `json:"linear_value_head_dim"`
	LinearConv       int `json:"linear_conv_kernel_dim"`
}

// ReadConfig reads the shape of a model from its config.json, or from the
// directory that holds one. The model's name is the directory's.
func ReadConfig(path string) (Model, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	b, err := userfile.Read(path, userfile.MostText)
	if err != nil {
		return Model{}, say.Errorf("read model: %v", err).WithHint("give a model's directory or its config.json, as on the Hugging Face hub")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	m, err := parseConfig(b)
	if err != nil {
		return Model{}, say.Errorf("read model %s: %v", path, err).WithHint("it must be the config.json of a decoder-only transformer with gated feed-forward layers or experts, in attention of a kind that is known")
	}
	if m.Quantised == "" {
		m.readQuantConfig(filepath.Join(filepath.Dir(path), quantConfig))
	}
	m.Name = strings.ToLower(filepath.Base(filepath.Dir(abs)))
	m.Sources = map[string]string{"shape": path}
	return m, nil
}

// quantConfig is where modelopt writes what it quantised, next to config.json.
const quantConfig = "hf_quant_config.json"

// readQuantConfig takes what such a file says, if there is one.
func (m *Model) readQuantConfig(path string) {
	var c struct {
		Quantization struct {
			Algo    string   `json:"quant_algo"`
			Exclude []string `json:"exclude_modules"`
		} `json:"quantization"`
	}
	b, err := userfile.Read(path, userfile.MostText)
	if err != nil || json.Unmarshal(b, &c) != nil || c.Quantization.Algo == "" {
		return
	}
	m.DType, m.Quantised = WeightDType(c.Quantization.Algo), "its "+quantConfig+" says "+c.Quantization.Algo
	m.Wide = wideParts(m.DType, c.Quantization.Exclude)
}

// parseConfig understands a config.json. What the twin cannot be asked about is
// an error, what it has only nearly is a caveat of the model.
func parseConfig(b []byte) (Model, error) {
	var outer hfConfig
	if err := json.Unmarshal(b, &outer); err != nil {
		return Model{}, fmt.Errorf("parse JSON: %w", err)
	}
	c := outer
	sees := c.Text != nil && c.Layers == 0
	if sees {
		c = *c.Text
		c.TorchDType, c.DType = cmp.Or(c.TorchDType, outer.TorchDType), cmp.Or(c.DType, outer.DType)
		c.Tied, c.Architectures = cmp.Or(c.Tied, outer.Tied), outer.Architectures
		c.Quantization = cmp.Or(c.Quantization, outer.Quantization, outer.CompressionQuant)
	}
	if err := c.checkSupported(b, outer.ModelType); err != nil {
		return Model{}, err
	}
	c.fillDefaults()
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
		DenseLayers: c.denseLayers(), MaxPosition: c.MaxPosition, DType: resolveDType(cmp.Or(c.DType, c.TorchDType)),
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
	if c.isLlama4() && m.Experts > 0 { // each layer of experts has one that all tokens go through
		m.SharedExpertIntermediate, m.Intermediate = m.Intermediate, cmp.Or(c.IntermediateMLP, m.Intermediate)
	}
	var err error
	if m.Attention, err = c.attentionKinds(&m); err != nil {
		return Model{}, err
	}
	if m.MaxPosition == 0 {
		m.MaxPosition = defaultMaxPosition
	}
	if err := m.check(); err != nil {
		return Model{}, err
	}
	if q := cmp.Or(c.Quantization, c.CompressionQuant); q != nil {
		m.Quantised, m.Wide = "its quantization_config says "+q.methodName(), q.wideParts()
		if m.DType = q.weightDType(); q.Method == "mxfp4" && m.Experts > 0 {
			m.DType, m.ExpertDType = "bf16", "mxfp4" // gpt-oss: it names all else as not converted
		}
	} else if strings.HasPrefix(strings.TrimPrefix(cmp.Or(c.DType, c.TorchDType), "torch."), "float32") {
		m.Caveats = append(m.Caveats, "its weights are in 32 bits: vLLM casts them to 16 when it loads them, and so does the twin")
	}
	if sees {
		m.Caveats = append(m.Caveats, "of a model that also sees or hears, the text model alone is modelled")
	}
	if c.ModelType != "" && !slices.Contains(alike, c.ModelType) {
		m.Caveats = append(m.Caveats, fmt.Sprintf("%s is not a model type the twin was tried with: its config is read as that of a Llama, or of a mixture of such experts", c.ModelType))
	}
	return m, nil
}

// resolveDType returns the data type that vLLM uses for a checkpoint's own type with dtype=auto. It
// casts a type of 32 bits to 16 (ModelConfig, _resolve_auto_dtype).
func resolveDType(torch string) string {
	switch strings.TrimPrefix(torch, "torch.") {
	case "float16", "bfloat16", "float32", "float", "half", "":
		return "bf16"
	}
	return torch
}

// defaultMaxPosition is the longest context of a config that names none.
const defaultMaxPosition = 32768

// mostUnits bounds every count of a shape.
const mostUnits = 1 << 24

// check says what is missing or impossible in a shape.
func (m *Model) check() error {
	const most = mostUnits
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
	if err := m.checkAttention(); err != nil {
		return err
	}
	if m.isUncountable() {
		return errors.New("it would have more weights than any model has")
	}
	return nil
}

// isUncountable says whether weights, or what is kept of a sequence, may be more than
// can be counted.
func (m *Model) isUncountable() bool {
	layers, hidden := float64(m.Layers), float64(m.Hidden)
	n := hidden*float64(m.Vocab) + layers*hidden*(float64(m.Intermediate)+float64(m.SharedExpertIntermediate)+float64(max(m.Experts, 1))*float64(max(m.MoEIntermediate, 1)))
	for _, a := range m.AttentionKinds() {
		heads := float64(a.Heads + a.KVHeads + a.KeyHeads + a.ValueHeads)
		dim := float64(a.HeadDim + a.NopeDim + a.RopeDim + a.KeyDim + a.ValueDim + a.Conv)
		n += float64(a.Layers) * (hidden + float64(a.QRank+a.KVRank+a.KeyDim+a.Conv)) * (heads*dim + float64(a.QRank+a.KVRank+a.RopeDim))
	}
	return n > 1e16
}
