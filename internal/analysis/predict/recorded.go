package predict

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
)

// A recording's engine from its meta.json: what of it the twin is, what it is
// not, and whether the recorded requests fit it.

// fields are settings as JSON, by name.
type fields map[string]json.RawMessage

// commandLineValue is a value as a command line has it; ok is false for one that is not
// there or leaves the choice to the engine.
func commandLineValue(v json.RawMessage) (s string, ok bool) {
	s = strings.TrimSpace(string(v))
	if u, err := strconv.Unquote(s); err == nil {
		s = u
	}
	return s, s != "" && s != "null" && s != "auto"
}

// isAboveOne says whether a value is a number above 1.
func isAboveOne(v json.RawMessage) bool {
	var n float64
	return json.Unmarshal(v, &n) == nil && n > 1
}

// Deployment puts the recorded engine together. spec is MODEL@GPU, or empty
// where meta.json names both; what spec says comes last. A recording of what
// the twin is not is refused, and so is a request that such an engine would
// not have taken.
func (r *Recording) Deployment(spec string) (*deploy.Deployment, error) {
	if spec == "" {
		a, ok := r.findAccelerator()
		if !ok || r.Meta.Model == "" {
			return nil, say.Errorf("the recording does not say what model ran on what accelerator").WithHint("name both: pitot predict MODEL@GPU --replay " + r.Dir)
		}
		name := r.Meta.Model
		if local := path.Base(name); path.IsAbs(name) { // a directory of the machine that ran it
			if _, err := catalogue.FindModel(local); err == nil {
				name = local
			}
		}
		spec = name + "@" + a.Name
	}
	d, err := deploy.ParseWith(spec, r.configure)
	if err != nil {
		return nil, err
	}
	d.Notes = append(d.Notes, r.otherModel(d)...)
	return d, r.checkFits(d)
}

// otherModel says in what a deployment's model is not the recorded one.
func (r *Recording) otherModel(d *deploy.Deployment) []string {
	m, err := catalogue.FindModel(r.Meta.Model)
	switch {
	case err != nil:
		return nil
	case m.Name != d.Model.Name:
		return []string{fmt.Sprintf("the recording is of %s, not of %s", m.Name, d.Model.Name)}
	case m.Quantised != "" && d.DType != m.DType:
		return []string{fmt.Sprintf("the recording is of %s, whose weights are in %s; the twin's are in %s", path.Base(r.Meta.Model), m.DType, d.DType)}
	}
	return nil
}

// checkFits refuses requests that the engine would have refused or cut.
func (r *Recording) checkFits(d *deploy.Deployment) error {
	for i := range r.Requests {
		q := &r.Requests[i]
		if q.Input+q.Output <= d.Settings.MaxModelLen {
			continue
		}
		hint := "the recording contradicts itself: its engine would have refused the request"
		if q.Input+q.Output <= d.KVTokens() {
			hint = "name a longer one: MODEL@GPU?max_model_len=" + strconv.Itoa(q.Input+q.Output)
		}
		return say.Errorf("read recording %s: requests.jsonl: line %d: %s tokens of prompt and answer are more than max_model_len (%s)",
			r.Dir, q.line, say.Count(q.Input+q.Output), say.Count(d.Settings.MaxModelLen)).WithHint(hint)
	}
	return nil
}

// configure applies what meta.json says.
func (r *Recording) configure(d *deploy.Deployment) error {
	m := &r.Meta
	configured := fields{}
	for _, f := range []fields{m.Resolved.Parallel, m.Resolved.Scheduler, m.Engine, m.Scheduler} { // the later say it more directly
		maps.Copy(configured, f)
	}
	for _, name := range []string{"max_model_len", "quantization"} {
		if _, ok := commandLineValue(configured[name]); !ok {
			configured[name] = m.Resolved.Model[name]
		}
	}
	if _, ok := commandLineValue(configured["speculative_config"]); !ok {
		configured["speculative_config"] = m.Resolved.Speculative
	}
	if err := checkSupported(d, configured); err != nil {
		return err
	}
	setSetting := func(name string, v json.RawMessage) error {
		s, ok := commandLineValue(v)
		if !ok {
			return nil
		}
		if err := d.Set(name, s); err != nil {
			return fmt.Errorf("meta.json: %w", err)
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		as := name
		if name == "policy" {
			as = "scheduling_policy"
		}
		if !deploy.IsSetting(as) || name == "tensor_parallel_size" {
			continue
		}
		if err := setSetting(as, configured[name]); err != nil {
			return err
		}
	}
	same, err := r.sameHardware(d, configured["tensor_parallel_size"])
	if err != nil {
		return err
	}
	blocks := m.KV["num_gpu_blocks"]
	if _, ok := commandLineValue(blocks); ok && !same {
		d.Notes = append(d.Notes, "the recorded KV cache is of another deployment: how large it is here is worked out")
	} else if err := setSetting("num_gpu_blocks_override", blocks); err != nil {
		return err
	}
	for _, name := range []string{"block_size", "gpu_memory_utilization", "enable_prefix_caching"} {
		if err := setSetting(name, m.KV[name]); err != nil {
			return err
		}
	}
	d.Notes = append(d.Notes, unmodelledSettings(m, configured)...)
	return nil
}

// sameHardware says whether the deployment has the recorded accelerators. How
// many are recorded is taken unless the spec says so itself.
func (r *Recording) sameHardware(d *deploy.Deployment, tp json.RawMessage) (bool, error) {
	a, known := r.findAccelerator()
	same := !known || a.Name == d.Accelerator.Name
	s, ok := commandLineValue(tp)
	if !ok {
		s = "1"
	}
	given := d.Given["tensor_parallel_size"] + d.Given["tp"]
	if d.Counted {
		given = strconv.Itoa(d.TensorParallel / max(d.DataParallel, 1))
	}
	if given == "" {
		if err := d.Set("tensor_parallel_size", s); err != nil {
			return false, fmt.Errorf("meta.json: %w", err)
		}
		return same, nil
	}
	if given != s {
		d.Notes = append(d.Notes, fmt.Sprintf("tensor_parallel_size is %s, as set; the recording is of %s", given, s))
	}
	return same && given == s, nil
}

// checkSupported refuses recordings of engines that share layers or contexts, or of one that
// schedules in another way.
func checkSupported(d *deploy.Deployment, configured fields) error {
	for _, c := range []struct{ name, is string }{
		{"pipeline_parallel_size", "the number of stages of layers"},
		{"decode_context_parallel_size", "contexts were divided among accelerators"},
		{"prefill_context_parallel_size", "contexts were divided among accelerators"},
	} {
		if isAboveOne(configured[c.name]) {
			s, _ := commandLineValue(configured[c.name])
			return say.Errorf("meta.json: %s is %s: %s, which is not modelled", c.name, s, c.is).WithHint("the twin has tensor, data and expert parallelism; take a recording of such a one")
		}
	}
	if s, ok := commandLineValue(configured["speculative_config"]); ok && s != "{}" && d.Given["num_speculative_tokens"] == "" {
		var c struct {
			Tokens int `json:"num_speculative_tokens"`
		}
		if json.Unmarshal(configured["speculative_config"], &c) != nil || c.Tokens < 1 {
			c.Tokens = 4
		}
		return say.Errorf("meta.json: the engine decoded speculatively, and a recording does not have how many drafts were accepted").WithHint(fmt.Sprintf("state it: MODEL@GPU?num_speculative_tokens=%d&acceptance_rate=0.7", c.Tokens))
	}
	return nil
}

// silent are fields that say nothing of what the twin does, or that other
// fields say.
var silent = []string{
	"model", "seed", "tokenizer", "tokenizer_mode", "tokenizer_revision", "skip_tokenizer_init", "revision", "code_revision", "trust_remote_code",
	"served_model_name", "download_dir", "data_parallel_size_local", "data_parallel_rank", "data_parallel_backend", "load_format", "distributed_executor_backend", "disable_log_stats", "disable_log_requests", "host", "port",
	"runner", "runner_type", "policy", "speculative_config", "encoder_cache_size", "max_num_encoder_input_tokens", "is_multimodal_model", "limit_mm_per_prompt",
}

// unmodelledSettings notes settings of the engine that the twin does not have.
func unmodelledSettings(m *Meta, configured fields) []string {
	var names []string
	for _, f := range []fields{m.Engine, m.Scheduler} {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			s, ok := commandLineValue(f[name])
			neutral := !ok || s == "false" || s == "0" || s == "0.0" || s == "1" || s == "{}" || s == "[]"
			if neutral || deploy.IsSetting(name) || slices.Contains(silent, name) || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name) }) {
				continue
			}
			if name == "enable_expert_parallel" && !isAboveOne(configured["tensor_parallel_size"]) && !isAboveOne(configured["data_parallel_size"]) {
				continue // one accelerator has all experts
			}
			if len(s) <= 20 {
				name += " " + s
			}
			names = append(names, name)
		}
	}
	const most = 8
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"the recorded engine also had what is not modelled: " + strings.Join(names, ", ")}
}
