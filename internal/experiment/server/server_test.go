package server

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pitot/internal/say"
)

// Flags are spelled as the engine has them, and each value is one word of a shell.
func TestFlags(t *testing.T) {
	settings := []Setting{{"max_num_seqs", "16"}, {"enable_prefix_caching", "false"}, {"enforce_eager", "true"}, {"quantization", "a b; $(touch x) 'y'"}}
	if got, want := Flags("vllm", settings), `--max-num-seqs 16 --no-enable-prefix-caching --enforce-eager --quantization 'a b; $(touch x) '\''y'\'''`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := Flags("sglang", []Setting{{"disable_radix_cache", "false"}, {"disable_cuda_graph", "true"}}), "--disable-cuda-graph"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if runtime.GOOS == "windows" {
		return
	}
	out, err := exec.Command("sh", "-c", `for w in `+Flags("vllm", settings)+`; do echo "[$w]"; done`).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "[a b; $(touch x) 'y']") {
		t.Errorf("%s %v", out, err)
	}
}

func TestEngines(t *testing.T) {
	for command, want := range map[string]string{
		"vllm serve m": "vllm", "python -m vllm.entrypoints.openai.api_server": "vllm", "docker run vllm/vllm-openai --model m": "vllm",
		"python -m sglang.launch_server": "sglang", "./start.sh": "",
	} {
		if got := EngineOf(command); got != want {
			t.Errorf("%s: %q", command, got)
		}
	}
	for _, c := range []struct{ engine, name, note, mistake, hint string }{
		{"vllm", "max_num_seqs", "", "", ""},
		{"vllm", "max_num_seq", "", "vllm has no setting max_num_seq", "did you mean max_num_seqs?"},
		{"vllm", "batch_wizardry", "", "vllm has no setting batch_wizardry", "engine: other"},
		{"vllm", "no_enable_prefix_caching", "", "without no_", "enable_prefix_caching: [false]"},
		{"sglang", "disable_radix_cach", "", "sglang has no setting", "disable_radix_cache"},
		{"sglang", "brand_new_thing", "not known to have", "", ""},
		{"", "anything", "", "", ""},
	} {
		note, err := CheckName(c.engine, c.name)
		text, hint := "", ""
		if err != nil {
			text, hint = err.Error(), say.HintOf(err)
		}
		if !strings.Contains(note, c.note) || (c.note == "") != (note == "") || (c.mistake == "") != (text == "") || !strings.Contains(text, c.mistake) || !strings.Contains(hint, c.hint) {
			t.Errorf("%s %s: note %q, %q, hint %q", c.engine, c.name, note, text, hint)
		}
	}
}

// What servers tell is read from JSON, from a command line, and from what engines log.
func TestRead(t *testing.T) {
	log := `(APIServer pid=11) INFO 11-23 05:37:31 [api_utils.py:286] non-default args: {'model_tag': '/m', 'port': 8100, 'enforce_eager': True, 'served_model_name': ['tiny'], 'max_num_seqs': 16, 'api_key': 'sk-1'}`
	for _, c := range []struct {
		text string
		want map[string]string
	}{
		{`{"version":"1.2","server_args":{"max_running_requests":64,"disable_radix_cache":false,"api_key":"sk","quantization":null,"max_total_tokens":512}}`,
			map[string]string{"version": "1.2", "max_running_requests": "64", "disable_radix_cache": "false", "quantization": "None", "max_total_tokens": "512"}},
		{"vllm serve m --max-num-seqs 16 --no-enable-prefix-caching --dtype=bfloat16 --max-num-seqs 32 --enforce-eager",
			map[string]string{"max_num_seqs": "32", "enable_prefix_caching": "false", "dtype": "bfloat16", "enforce_eager": "true"}},
		{"max_num_seqs: 16\nversion=0.32.0\n", map[string]string{"max_num_seqs": "16", "version": "0.32.0"}},
		{`{block_size="128",cache_dtype="auto",enable_prefix_caching="True"} 1.0`, map[string]string{"block_size": "128", "cache_dtype": "auto", "enable_prefix_caching": "True"}},
	} {
		if got := Read(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%v, want\n%v", c.text, got, c.want)
		}
	}
	told := ReadLog("noise\n" + log + "\nmore")
	if told["max_num_seqs"] != "16" || told["enforce_eager"] != "True" || told["api_key"] != "" {
		t.Errorf("%v", told)
	}
	if again := ReadLog(log + "\n" + strings.Replace(log, "16", "32", 1)); again["max_num_seqs"] != "32" {
		t.Errorf("of two starts the last counts: %v", again)
	}
	for range 20 { // of maps, which have no order
		if got := Read(`{"b":{"n":3,"deeper":{"n":4}},"a":{"n":2,"m":5},"n-1":1,"c":{"n_1":2}}`); !reflect.DeepEqual(got, map[string]string{"n": "3", "m": "5", "n_1": "1"}) {
			t.Fatalf("of what is told twice: %v", got)
		}
	}
	if got := Redact(log); strings.Contains(got, "sk-1") {
		t.Error(got)
	}
}

// A setting that is reported otherwise than it was asked for is named.
func TestCompare(t *testing.T) {
	told := map[string]string{"max_num_seqs": "64", "gpu_memory_utilization": "0.90", "enable_prefix_caching": "False", "cache_dtype": "fp8_e4m3", "dtype": "torch.bfloat16", "quantization": "None"}
	asked := []Setting{{"max_num_seqs", "16"}, {"gpu_memory_utilization", "0.9"}, {"enable_prefix_caching", "false"}, {"kv_cache_dtype", "fp8"}, {"block_size", "32"}, {"quantization", "fp8"}}
	wrong, silent := CompareSettings(asked, told)
	if len(wrong) != 1 || wrong[0].String() != "max_num_seqs=16 was set, and the server reports 64" || !reflect.DeepEqual(silent, []string{"block_size", "quantization"}) {
		t.Errorf("%v %v", wrong, silent)
	}
}

// A ready command that waits is not waited for once the server has died, and a command that
// finds nothing to stop is no failure then; while the server runs it is one.
func TestDied(t *testing.T) {
	dir := t.TempDir()
	const stop = "echo no such container; exit 1"
	p := started(t, dir, Commands{Start: "exit 3", Ready: "sleep 20", Stop: stop})
	began := time.Now()
	if err := p.WaitReady(t.Context(), never); err == nil || !strings.Contains(err.Error(), "exit status 3") || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if err := p.Stop(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, leftFile)); err == nil {
		t.Error("still written down")
	}
	p = started(t, dir, Commands{Start: "sleep 20", Stop: stop})
	if err := p.Stop(dir); err == nil || !strings.Contains(err.Error(), "no such container") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"a":{"b":[1,null,{"c":true}]}}`)
	f.Add("--a b --no-c --d=e 'x': 1, y=2")
	f.Fuzz(func(t *testing.T, text string) {
		for name, value := range Read(text) {
			if name == "" || len(value) > longestValue || isSecret(name) {
				t.Errorf("%q: %q", name, value)
			}
		}
		ReadLog(text)
		Redact(text)
	})
}

func started(t *testing.T, dir string, c Commands) *Process {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	if c.Within == 0 {
		c.Within = 10 * time.Second
	}
	p, err := Start(dir, c, &Asked{Configuration: "max_num_seqs=16", Settings: []Setting{{"max_num_seqs", "16"}}, Flags: "--max-num-seqs 16", Log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func never(context.Context) error { return errors.New("no answer") }

// A server gets its flags, becomes ready, is described and stopped with all that it began.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	p := started(t, dir, Commands{
		Start:    `echo with {flags} $PITOT_SERVER_KNOB_MAX_NUM_SEQS; sleep 100 & touch ` + filepath.Join(dir, "up") + `; wait`,
		Ready:    `test -e ` + filepath.Join(dir, "up"),
		Describe: `echo pid $PITOT_SERVER_PID of $PITOT_SERVER_CONFIGURATION`,
	})
	if err := p.WaitReady(t.Context(), never); err != nil {
		t.Fatal(err)
	}
	text, err := p.Describe(t.Context())
	if err != nil || !strings.HasSuffix(strings.TrimSpace(text), "of max_num_seqs=16") {
		t.Error(text, err)
	}
	if lines := Tail(p.Log, 3); len(lines) != 1 || lines[0] != "with --max-num-seqs 16 16" {
		t.Errorf("%q", lines)
	}
	if _, died := p.HasDied(); died {
		t.Error("died")
	}
	if err := p.Stop(dir); err != nil || isRunning(p.Left.PID) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, leftFile)); err == nil {
		t.Error("still written down")
	}
}

// One that dies, and one that is never ready, are told with the end of their logs.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	p := started(t, dir, Commands{Start: "echo no memory left; exit 3"})
	err := p.WaitReady(t.Context(), never)
	var f *Failed
	if !errors.As(err, &f) || !strings.Contains(f.Msg, "died while it started (exit status 3)") || len(f.Last) != 1 || f.Last[0] != "no memory left" {
		t.Errorf("%+v", err)
	}
	if err := p.Stop(dir); err != nil {
		t.Error(err)
	}
	p = started(t, dir, Commands{Start: "sleep 100", Within: 100 * time.Millisecond})
	if err := p.WaitReady(t.Context(), never); err == nil || !strings.Contains(err.Error(), "not ready within 100 ms: no answer") {
		t.Error(err)
	}
	if err := p.Stop(dir); err != nil {
		t.Error(err)
	}
}

// A start that leaves the server elsewhere needs a command that stops it.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	up := filepath.Join(dir, "up")
	p := started(t, dir, Commands{Start: "touch " + up, Ready: "test -e " + up, Stop: "rm " + up})
	<-p.Ended()
	if err := p.WaitReady(t.Context(), never); err != nil {
		t.Error(err)
	}
	if err := p.Stop(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(up); err == nil {
		t.Error("not stopped")
	}
	p = started(t, dir, Commands{Start: "touch " + up})
	<-p.Ended()
	if err := p.WaitReady(t.Context(), never); err == nil || !strings.Contains(err.Error(), "needs a stop command") {
		t.Error(err)
	}
	_ = p.Stop(dir)
}

// What a killed pitot left is found by its number and its beginning, and stopped; another
// process that has its number since is left alone.
func TestStopLeft(t *testing.T) {
	dir := t.TempDir()
	p := started(t, dir, Commands{Start: "sleep 100"})
	data, err := os.ReadFile(filepath.Join(dir, leftFile))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(data), p.Left.Began, "some other start", 1)
	if err := os.WriteFile(filepath.Join(dir, leftFile), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if what, err := StopLeft(dir); err != nil || what != "" || !isRunning(p.Left.PID) {
		t.Errorf("%q %v: another process", what, err)
	}
	if err := os.WriteFile(filepath.Join(dir, leftFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := endGroup(p.Left.PID, time.Second); err != nil {
		t.Fatal(err)
	}
	if what, err := StopLeft(dir); err != nil || what != "" {
		t.Errorf("%q %v: it had ended", what, err)
	}
	p = started(t, dir, Commands{Start: "sleep 100"})
	if what, err := StopLeft(dir); err != nil || !strings.Contains(what, "max_num_seqs=16 was left by a run that was killed") || isRunning(p.Left.PID) {
		t.Errorf("%q %v", what, err)
	}
	if what, err := StopLeft(dir); err != nil || what != "" {
		t.Errorf("%q %v", what, err)
	}
	if err := os.WriteFile(filepath.Join(dir, leftFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := StopLeft(dir); err == nil {
		t.Error("a broken file says nothing")
	}
}
