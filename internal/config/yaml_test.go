package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/cost"
	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/workload"
)

func limits(text string) slo.Spec {
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

	text(&p.Spec)("target")
	maybe("api", text(&p.API))
	maybe("model", text(&p.Model))
	if rapid.Bool().Draw(t, "key in a file") {
		text(&p.KeyFile)("key-file")
	} else {
		p.KeyEnv = rapid.StringMatching(`[A-Z_][A-Z0-9_]{0,8}`).Draw(t, "key-env")
	}
	maybe("header", func(string) {
		for range rapid.IntRange(1, 3).Draw(t, "headers") {
			p.Headers = append(p.Headers, rapid.StringMatching(`(accept|User-Agent|OpenAI-Beta)=[ -~]{0,9}`).Draw(t, "header"))
		}
	})
	maybe("header-public", func(string) {
		p.PublicHeaders = append(p.PublicHeaders, "X-"+rapid.StringMatching(`[A-D]{0,3}=[ -~]{0,9}`).Draw(t, "header"))
	})
	maybe("cert", func(string) {
		p.Cert = "cert.pem"
		maybe("key", func(string) { p.Key = "key.pem" })
	})
	if rapid.Bool().Draw(t, "any certificate") {
		p.Insecure = true
	} else {
		maybe("ca-cert", text(&p.CACert))
	}
	maybe("proxy", func(string) { p.Proxy = "http://proxy.example:3128" })
	maybe("timeout", length(&p.Timeout, time.Millisecond))
	maybe("wait-ready", length(&p.Wait, 0))
	maybe("no-probe", yes(&p.NoProbe))
	maybe("output", lengths(&p.Ask.Output))
	if rapid.Bool().Draw(t, "from a file") {
		text(&p.Workload)("workload")
	} else {
		maybe("preset", func(name string) {
			preset := rapid.SampledFrom(workload.Presets()).Draw(t, name)
			p.Workload = preset.Name
			p.Input, _ = workload.ParseLengths(preset.Input)
			if rapid.Bool().Draw(t, "its output") {
				p.Ask.Output, _ = workload.ParseLengths(preset.Output)
			}
			if preset.Prefix > 0 {
				p.Prefix, p.PrefixShare = preset.Prefix, preset.PrefixShare
			}
			if preset.SLO != "" {
				p.SLO, _ = slo.Parse(preset.SLO)
			}
			if preset.Turns != "" {
				p.Turns, _ = workload.ParseLengths(preset.Turns)
				p.TurnInput, _ = workload.ParseLengths(preset.TurnInput)
				p.Think, _ = workload.ParsePause(preset.Think)
				p.System = preset.System
			}
		})
		maybe("input", lengths(&p.Input))
		maybe("prefix", func(n string) {
			whole(&p.Prefix, 1, 4096)(n)
			maybe("prefix-share", real(&p.PrefixShare, 0, 1))
		})
		maybe("turns", func(n string) {
			p.Turns, _ = workload.ParseLengths("uniform(1,9)")
			maybe("turn-input", lengths(&p.TurnInput))
			maybe("system", whole(&p.System, 1, 4096))
			maybe("history", func(string) { p.History = HistoryPlanned })
		})
	}
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
		whole(&p.Concurrency, 1, mostUsers)("concurrency")
	}
	if p.Concurrency > 0 || p.HasConversations() {
		maybe("think", func(string) {
			var err error
			if p.Think, err = workload.ParsePause(time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "think")).String()); err != nil {
				t.Fatal(err)
			}
		})
	}
	if rapid.Bool().Draw(t, "by time") {
		length(&p.Duration, time.Millisecond)("duration")
	} else {
		p.Requests = rapid.Int64Range(1, 1<<40).Draw(t, "requests")
	}
	maybe("warmup", length(&p.Warmup, 0))
	maybe("repeat", whole(&p.Repeat, 1, 100))
	maybe("slo", func(string) {
		p.SLO = limits(rapid.SampledFrom([]string{"p99 ttft<200ms, p99 tpot<12.5ms", "ttft<200ms, tpot<50ms @99%", "p99.9 e2e<2s, errors<0.1%"}).Draw(t, "slo"))
	})
	maybe("gpus", func(n string) {
		whole(&p.GPUs, 1, many)(n)
		maybe("gpu-price", func(n string) {
			if rapid.Bool().Draw(t, "owned") {
				p.GPUPrice.Owned = cost.Owned{Purchase: 30000, Years: 4, Watts: 700, KWh: .12}
			} else {
				real(&p.GPUPrice.Hour, 1e-6, 1e6)(n)
			}
		})
	})
	maybe("discount", func(string) { p.Discount = rapid.Float64Range(0, .999).Draw(t, "discount") })
	maybe("token-price", func(n string) {
		if !p.GPUPrice.IsUnknown() { // they exclude each other
			return
		}
		real(&p.TokenPrice.Input, 1e-3, 1e6)(n)
		real(&p.TokenPrice.Output, 0, 1e6)(n)
		maybe("spend-limit", real(&p.SpendLimit, 0, 1e9))
	})
	maybe("launch", text(&p.Launch))
	maybe("note", func(string) {
		p.Notes = rapid.SliceOfN(rapid.StringMatching(`[!-<>-~]=[ -~\n]{0,9}`), 1, 3).Draw(t, "notes")
	})
	return p
}

// config.yaml does the run again: whatever was asked for comes back.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	rapid.Check(t, func(t *rapid.T) {
		want := drawn(t)
		data := want.YAML(VerbRun)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := Decode(VerbRun, []string{"--config", path}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		got.Origins = nil // all from the file
		if d := cmp.Diff(want, got, compareLengths); d != "" {
			t.Fatalf("%s\n%s", d, data)
		}
	})
}

// The table is whole: each entry can be found, read, and is decoded by the verbs
// that take it into a field of its own.
func TestSettings(t *testing.T) {
	var p Plan
	everything := append(p.settingParts(), new(Embedded), new(Serving), new(Prediction), new(Fitting), new(Calibration), new(Experimenting), new(Choosing), new(Explanation), new(Comparison), new(Audit), new(Working), new(Manifest), new(QuickConsent))
	fields := map[any]string{}
	pointer := func(s Setting) any { return s.value.(interface{ pointer(parts []any) any }).pointer(everything) }
	taken := map[string]bool{}
	for _, s := range Settings() {
		if s.Name != strings.ToLower(s.Name) || s.Name == "" {
			t.Errorf("%q: names are lower case", s.Name)
		}
		if !slices.ContainsFunc(Groups(), func(g Group) bool { return g.Title == s.Group }) || len(s.Verbs) == 0 {
			t.Errorf("%s is in no help", s.Name)
		}
		if n := utf8.RuneCountInString(s.Summary()); n == 0 || n > 61 || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: the summary has %d characters, or the text ends in a full stop", s.Name, n)
		}
		if !s.isIn(everything) {
			t.Errorf("%s is in no part", s.Name)
			continue
		}
		if other := fields[pointer(s)]; other != "" && other != s.Name { // which may have another default with another verb
			t.Errorf("--%s and --%s set one field", s.Name, other)
		}
		fields[pointer(s)] = s.Name
		for _, v := range s.Verbs {
			if key := string(v) + " " + s.Name; taken[key] {
				t.Errorf("%s has two entries", key)
			} else {
				taken[key] = true
			}
		}
		if s.isIn(p.settingParts()) == (s.NotKept == noRun) && s.AppliesTo(VerbRun) {
			t.Errorf("--%s of a run is kept out of its config.yaml as %q", s.Name, s.NotKept)
		}
		s.reset(everything, s.Default) // panics where its default is none
		if got := s.setValues(everything); len(got) > 0 && s.Name != "seed" {
			t.Errorf("--%s is %q by default and not %q", s.Name, got, s.Default)
		}
		if s.Arg == "" && (s.DefaultDescription() != "" || s.IsRepeatable()) {
			t.Errorf("--%s is no switch", s.Name)
		}
		if s.Example != "" {
			if err := s.parseInto(everything, s.Example); err != nil {
				t.Errorf("--%s %s: %v", s.Name, s.Example, err)
			}
		}
		for _, c := range s.Choices() {
			if err := s.parseInto(everything, c.Name); err != nil {
				t.Errorf("--%s %s: %v", s.Name, c.Name, err)
			}
		}
	}
	for _, s := range Settings() {
		names := []string{}
		if s.Alternative != nil {
			names = append(names, s.Alternative.To)
		}
		for _, c := range s.Clashes {
			names = append(names, c.With)
		}
		for _, n := range s.Needs {
			names = append(names, strings.Fields(n.AnyOf)...)
		}
		for _, name := range names {
			name, _, _ = strings.Cut(name, "=")
			if !slices.ContainsFunc(s.Verbs, func(v Verb) bool { return taken[string(v)+" "+name] }) {
				t.Errorf("--%s stands to --%s, which no verb takes beside it", s.Name, name)
			}
		}
	}
}

// A short plan gives a short file, with plain values.
func TestYAML(t *testing.T) {
	p := Default()
	p.Spec, p.Rate, p.Seed, p.SeedSet = "http://h:8000", 4, 7, true
	p.Headers = []string{"User-Agent=a b", "X-Tenant=sk-secret", "Cookie=sk-secret"}
	p.PublicHeaders = []string{"X-Team=blue"}
	p.Cert, p.Key = "client.pem", "keys/client.pem"
	p.Notes = []string{"gpu=H100", "commit: 7=true"}
	p.Proxy = "http://me:sk-secret@proxy.example:3128"
	p.Body = `{"top_p":0.9,"extra":{"api_key":"sk-secret"},"max_tokens":12345678901234567890}`
	want := `# Does this run again: pitot run --config config.yaml
target: http://h:8000
header:
  - User-Agent=a b
  - X-Tenant=[redacted]
  - Cookie=[redacted]
header-public: X-Team=blue
cert: client.pem
key: keys/client.pem
proxy: http://proxy.example:3128
body: '{"extra":{"api_key":"[redacted]"},"max_tokens":12345678901234567890,"top_p":0.9}'
seed: 7
rate: 4
note:
  - gpu=H100
  - 'commit: 7=true'
# not stored, to be given again: header X-Tenant
# not stored, to be given again: header Cookie
# not stored, to be given again: user and password of the proxy
# not stored, to be given again: field "api_key" of the body
`
	if d := cmp.Diff(want, string(p.YAML(VerbRun))); d != "" {
		t.Error(d)
	}
}

// No secret comes to the file, however it was given.
func TestSecretsAreNotKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		name := rapid.OneOf(rapid.SampledFrom([]string{"Authorization", "x-api-key", "API-KEY", "Cookie", "X-Custom", "X-Team", "x"}), rapid.StringMatching(`[a-zA-Z][a-zA-Z0-9-]{0,12}`).Filter(func(s string) bool { return !PublicHeader(s) })).Draw(t, "name")
		p.Headers = append(p.Headers, name+"=sk-secret")
		p.Cert, p.Key = "c.pem", "sk-secret-0123456789"
		p.Body = `{"a":[{"` + rapid.SampledFrom([]string{"api_key", "apiKey", "client_secret", "password"}).Draw(t, "field") + `":"sk-secret"}]}`
		p.Proxy = "http://u:sk-secret@h:1"
		if data := p.YAML(VerbRun); strings.Contains(string(data), "sk-secret") {
			t.Fatalf("%s", data)
		}
	})
}

// What was hidden of a run's config.yaml must be given again when it is done
// again, and nothing else.
func TestHiddenIsGivenAgain(t *testing.T) {
	p := Default()
	p.Spec, p.Rate = "http://h:8000", 4
	p.Headers = []string{"User-Agent=a b", "X-Tenant=one", "Cookie=two"}
	p.Body = `{"top_p":0.9,"extra":[{"api_key":"three"}]}`
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, p.YAML(VerbRun), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      []string
		msg, hint string
	}{
		{nil, `the value of the field "api_key" of the body was not stored`, `give it again: --body '{"extra":[{"api_key":"…"}],"top_p":0.9}'`},
		{[]string{"--body", `{"top_p":1}`}, "the value of the header X-Tenant was not stored", "give it again: --header X-Tenant=…"},
		{[]string{"--body", `{"top_p":1}`, "--header", "x-tenant=1"}, "the value of the header Cookie was not stored", "give it again: --header Cookie=…"},
	} {
		_, _, err := Decode(VerbRun, append([]string{"--config", path}, c.args...), nil)
		if err == nil || err.Error() != c.msg || say.HintOf(err) != c.hint {
			t.Errorf("%q: %v, hint %q", c.args, err, say.HintOf(err))
		}
	}
	got, _, err := Decode(VerbRun, []string{"--config", path, "--body", `{"top_p":1}`, "--header", "X-Tenant=1", "--header", "cookie=2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"X-Tenant=1", "cookie=2", "User-Agent=a b"}; !slices.Equal(got.Headers, want) {
		t.Errorf("headers %q, want %q", got.Headers, want)
	}
	// What is read of a run that has been need not be whole.
	if _, err := ReadRecorded(path); err != nil {
		t.Error(err)
	}
}

// pointer is that to the field that a setting sets.
func (f one[P, T]) pointer(parts []any) any { return f.fieldValue(parts) }

// A workload that came through a pipe is not named: nothing is there any more.
func TestYAMLOfAPipe(t *testing.T) {
	for _, path := range []string{"/tmp/" + StdinPrefix + "123", "/dev/fd/63", "/dev/stdin"} {
		p := Default()
		p.Workload = path
		text := string(p.YAML(VerbRun))
		if strings.Contains(text, path) || !strings.Contains(text, "to be given again: --workload") {
			t.Errorf("%s:\n%s", path, text)
		}
	}
}
