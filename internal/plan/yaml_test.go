package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/slo"
	"pitot/internal/workload"
)

func objective(text string) slo.Spec {
	s, err := slo.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// drawn is any plan that config.yaml has to keep.
func drawn(t *rapid.T) Plan {
	p := Default()
	maybe := func(name string, f func(name string)) {
		if rapid.Bool().Draw(t, "has "+name) {
			f(name)
		}
	}
	text := func(at *string) func(string) {
		return func(name string) {
			*at = rapid.StringMatching(`[!-~äöü€𝄞]([ -~\n\täöü€𝄞]{0,20}[!-~])?`).Draw(t, name)
		}
	}
	whole := func(at *int, least, most int) func(string) {
		return func(name string) { *at = rapid.IntRange(least, most).Draw(t, name) }
	}
	length := func(at *time.Duration, least time.Duration) func(string) {
		return func(name string) {
			*at = time.Duration(rapid.Int64Range(int64(least), int64(longest)).Draw(t, name))
		}
	}
	real := func(at *float64, least, most float64) func(string) {
		return func(name string) { *at = rapid.Float64Range(least, most).Draw(t, name) }
	}
	lengths := func(at *workload.Lengths) func(string) {
		return func(name string) {
			a, b := rapid.IntRange(1, 1000).Draw(t, name), rapid.IntRange(1000, 9000).Draw(t, name)
			form := rapid.SampledFrom([]string{"%d", "uniform(%d,%d)", "normal(%d,%d)", "lognormal(%d,%d)"}).Draw(t, name)
			spec := fmt.Sprintf(form, a, b)
			if form == "%d" {
				spec = fmt.Sprint(a)
			}
			*at, _ = workload.ParseLengths(spec)
		}
	}
	yes := func(at *bool) func(string) { return func(string) { *at = true } }

	text(&p.Target)("target")
	maybe("api", text(&p.API))
	maybe("model", text(&p.Model))
	if rapid.Bool().Draw(t, "key in a file") {
		text(&p.KeyFile)("key-file")
	} else {
		p.KeyEnv = rapid.StringMatching(`[A-Z_][A-Z0-9_]{0,8}`).Draw(t, "key-env")
	}
	maybe("header", func(string) {
		for range rapid.IntRange(1, 3).Draw(t, "headers") {
			p.Headers = append(p.Headers, "X-"+rapid.StringMatching(`[A-D]{0,3}=[ -~]{0,9}`).Draw(t, "header"))
		}
	})
	maybe("ca-cert", text(&p.CACert))
	maybe("insecure", yes(&p.Insecure))
	maybe("proxy", func(string) { p.Proxy = "http://proxy.example:3128" })
	maybe("timeout", length(&p.Timeout, time.Millisecond))
	maybe("wait-ready", length(&p.Wait, 0))
	maybe("no-probe", yes(&p.NoProbe))
	maybe("input", lengths(&p.Input))
	maybe("output", lengths(&p.Output))
	maybe("prefix", func(n string) {
		whole(&p.Prefix, 1, 4096)(n)
		p.PrefixShare = 1
		maybe("prefix-share", real(&p.PrefixShare, 0, 1))
	})
	maybe("workload", text(&p.Workload))
	maybe("body", func(string) {
		p.Body = rapid.SampledFrom([]string{`{}`, `{"top_p":0.9}`, `{"stop":["a\n","\u0000"], "max_tokens": 7}`, "{\n}"}).Draw(t, "body")
	})
	maybe("no-stream", yes(&p.NoStream))
	p.Seed, p.SeedSet = rapid.Uint64().Draw(t, "seed"), true
	if rapid.Bool().Draw(t, "open") {
		real(&p.Rate, 1e-6, 1e6)("rate")
		maybe("arrival", func(string) { p.Arrival = "constant" })
		maybe("max-in-flight", whole(&p.MaxInFlight, 1, many))
	} else {
		whole(&p.Concurrency, 1, many)("concurrency")
		maybe("think", length(&p.Think, 0))
	}
	if rapid.Bool().Draw(t, "by time") {
		length(&p.Duration, time.Millisecond)("duration")
	} else {
		p.Requests = rapid.Int64Range(1, 1<<40).Draw(t, "requests")
	}
	maybe("warmup", length(&p.Warmup, 0))
	maybe("repeat", whole(&p.Repeat, 1, 100))
	maybe("slo", func(string) {
		p.SLO = objective(rapid.SampledFrom([]string{"p99 ttft<200ms, p99 tpot<12.5ms", "ttft<200ms, tpot<50ms @99%", "p99.9 e2e<2s, errors<0.1%"}).Draw(t, "slo"))
	})
	maybe("gpus", whole(&p.GPUs, 1, many))
	maybe("gpu-price", real(&p.GPUPrice, 0, 1e6))
	maybe("token-price", func(n string) {
		real(&p.TokenPrice.Input, 0, 1e6)(n)
		real(&p.TokenPrice.Output, 0, 1e6)(n)
	})
	maybe("spend-limit", real(&p.SpendLimit, 0, 1e9))
	maybe("launch", text(&p.Launch))
	maybe("note", func(string) {
		p.Notes = rapid.SliceOfN(rapid.StringMatching(`[!-<>-~]=[ -~\n]{0,9}`), 1, 3).Draw(t, "notes")
	})
	maybe("ttft", length(&p.Mock.TTFT, 0))
	maybe("itl", length(&p.Mock.ITL, 0))
	maybe("jitter", real(&p.Mock.Jitter, 0, 10))
	maybe("slots", whole(&p.Mock.Slots, 0, many))
	maybe("tokens-per-chunk", whole(&p.Mock.TokensPerChunk, 1, many))
	maybe("role-chunk", yes(&p.Mock.RoleChunk))
	maybe("speed", real(&p.Mock.Speed, 0.001, 1000))
	maybe("startup-delay", length(&p.Mock.StartupDelay, 0))
	maybe("reasoning", real(&p.Mock.Reasoning, 0, 1))
	maybe("tool-calls", real(&p.Mock.ToolCalls, 0, 1))
	maybe("eos", lengths(&p.Mock.EOS))
	maybe("prompt-tokens-details", yes(&p.Mock.TellCached))
	maybe("faults", text(&p.Mock.Faults))
	maybe("max-model-len", whole(&p.Mock.MaxModelLen, 1, many))
	return p
}

// config.yaml does the run again: whatever was asked for comes back.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	rapid.Check(t, func(t *rapid.T) {
		want := drawn(t)
		data := want.YAML("run", every())
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := Decode(every(), []string{"--config", path}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		got.Origins = nil // all from the file
		if d := cmp.Diff(want, got, compareLengths); d != "" {
			t.Fatalf("%s\n%s", d, data)
		}
	})
}

// A setting is either kept in config.yaml, or is known here for why it is not.
func TestEverythingIsKept(t *testing.T) {
	not := map[string]string{
		"out": "a new run has its own", "resume": "a new run begins anew", "format": "how it is shown", "open": "how it is shown", "export": "a new run would overwrite it", "dry-run": "nothing was run", "quiet": "how it is shown", "strict": "how it exits",
		"port": "of pitot mock", "host": "of pitot mock", "until-eof": "of pitot mock", "drain": "of pitot mock", "truth": "a new run would overwrite it",
		"fail-if": "of pitot compare", "equivalent-within": "of pitot compare", "allow": "of pitot compare", "save-baseline": "of pitot compare", "page": "of pitot compare",
		"client": "of pitot check", "replay": "of pitot predict", "list": "of pitot predict", "run": "of pitot predict", "streams": "of pitot check",
	}
	for _, s := range Settings() {
		if (s.get == nil) != (not[s.Name] != "") {
			t.Errorf("%s: kept %v, reason not to: %q", s.Name, s.get != nil, not[s.Name])
		}
		if s.Help == "" || !contains(Groups(), s.Group) {
			t.Errorf("%s is not in the help", s.Name)
		}
		if s.Name != strings.ToLower(s.Name) {
			t.Errorf("%s: names are lower case", s.Name)
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// A short plan gives a short file, with plain values.
func TestYAML(t *testing.T) {
	p := Default()
	p.Target, p.Rate, p.Seed, p.SeedSet = "http://h:8000", 4, 7, true
	p.Headers = []string{"X-Tenant=a b", "Authorization=Bearer sk-secret", "Cookie=sk-secret"}
	p.Notes = []string{"gpu=H100", "commit: 7=true"}
	p.Proxy = "http://me:sk-secret@proxy.example:3128"
	p.Body = `{"top_p":0.9,"extra":{"api_key":"sk-secret"},"max_tokens":12345678901234567890}`
	want := `# Does this run again: pitot run --config config.yaml
target: http://h:8000
header: X-Tenant=a b
proxy: http://proxy.example:3128
body: '{"extra":{},"max_tokens":12345678901234567890,"top_p":0.9}'
seed: 7
rate: 4
note:
  - gpu=H100
  - 'commit: 7=true'
# header Authorization was given; its value is not stored
# header Cookie was given; its value is not stored
# field "api_key" of the body was given; its value is not stored
`
	if d := cmp.Diff(want, string(p.YAML("run", every()))); d != "" {
		t.Error(d)
	}
}

// No secret comes to the file, however it was given.
func TestSecretsAreNotKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		name := rapid.SampledFrom([]string{"Authorization", "x-api-key", "API-KEY", "Cookie", "X-Auth", "x-goog-api-key", "X-Amz-Security-Token", "X-Client-Secret"}).Draw(t, "name")
		p.Headers = append(p.Headers, name+"=sk-secret")
		p.Body = `{"a":[{"` + rapid.SampledFrom([]string{"api_key", "apiKey", "client_secret", "password"}).Draw(t, "field") + `":"sk-secret"}]}`
		p.Proxy = "http://u:sk-secret@h:1"
		if data := p.YAML("run", every()); strings.Contains(string(data), "sk-secret") {
			t.Fatalf("%s", data)
		}
	})
}
