package inspect

import (
	"testing"

	"pitot/internal/results/result"
)

// Whose names a run's server has is what the server says, and of an embedded one also what
// its deployment says, whichever face it has.
func TestEngineOf(t *testing.T) {
	for _, c := range []struct{ kind, spec, told, want string }{
		{"http", "http://h", "sglang", "sglang"}, {"http", "http://h", "vllm", ""}, {"http", "http://h?engine=sglang", "", ""}, {"http", "http://h", "llamacpp", ""},
		{"mock", "mock:m@h100?engine=sglang", "vllm", "sglang"}, {"sim", "sim:m@h100?tp=2&engine=sglang", "", "sglang"},
		{"sim", "sim:m@h100", "", ""}, {"sim", "sim:m@h100?engine=vllm", "", ""}, {"sim", "sim:fixed", "", ""},
	} {
		run := &result.Run{}
		run.Target.Kind, run.Target.Spec, run.Target.Server = c.kind, c.spec, map[string]string{"engine": c.told}
		if got := engineOf(run); got != c.want || (namesOf(got) == nil) != (c.want == "") {
			t.Errorf("%s, told %q: %q, want %q", c.spec, c.told, got, c.want)
		}
	}
}
