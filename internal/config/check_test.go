package config

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/say"
)

// What cannot be together is refused with one sentence and a way out.
func TestCheck(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "no target",
		"http://x":                          "no load given",
		"http://x --rate 1 --concurrency 1": "two different loads",
		"http://x --rate 1 --think 1s":      "--think has no meaning with --rate",
		"http://x --concurrency 1 --arrival constant":                        "--arrival has no meaning with --concurrency",
		"http://x --concurrency 1 --max-in-flight 1":                         "--max-in-flight has no meaning with --concurrency",
		"http://x --rate 1 --prefix-share 0.5":                               "--prefix-share without --prefix",
		"http://x --rate 1 --workload f --prefix 9":                          "--prefix has no meaning with --workload",
		"http://x --rate 1 --workload f --input 9":                           "--input has no meaning with --workload",
		"http://x --rate 1 --no-stream --slo tpot<1s@9%":                     "cannot be judged",
		"http://x --rate 1 --timeout 1s --slo e2e<2s@9%":                     "lies beyond the timeout of 1 s",
		"http://x --rate 1 --gpu-price 2":                                    "--gpu-price without --gpus",
		"http://x --rate 1 --gpus 1 --gpu-price 2 --token-price 1/2":         "--token-price has no meaning with --gpu-price",
		"http://x --rate 1 --spend-limit 2":                                  "--spend-limit without --token-price or --gpu-price",
		"sim:fixed?faults=reset:1% --rate 1":                                 `the fault "reset" needs a server behind a socket`,
		"sim:fixed?faults=freeze:every:2s,cut:1% --rate 1":                   `the fault "cut" needs a server behind a socket`,
		"sim:fixed?faults=freeze:1s --rate 1":                                "",
		"sim:fixed?truth=f --rate 1":                                         "truth needs a server behind a socket",
		"sim:fixed?slots=x --rate 1":                                         `slots of sim:fixed?slots=x: "x" is not a whole number`,
		"sim:fixed?slots=1&slots=2 --rate 1":                                 "slots is given twice in the target",
		"https://x --rate 1 --insecure --ca-cert f":                          "--ca-cert has no meaning with --insecure",
		"https://me:sk-secret@x --rate 1":                                    "holds a user or password",
		"https://x/v1/chat/completions?key=sk-secret --rate 1":               "holds a secret, key",
		`http://x --rate 1 --body {"stream":false}`:                          "--body sets stream",
		`http://x --rate 1 --body {"model":"m"}`:                             "--body sets model",
		"http://x --rate 1":                                                  "",
		"http://x --rate 2 --duration 100ms":                                 "a window of 100 ms at 2 requests/s is expected to have 0.2 requests",
		"http://x --rate 2 --duration 500ms":                                 "",
		"http://x --rate 0.01 --requests 1":                                  "",
		"http://x --concurrency 1 --think 1s":                                "",
		"mock:fixed?ttft=1ms&faults=429:1%&truth=f --rate 1":                 "",
		"sim:fixed?ttft=1ms&jitter=1 --rate 1":                               "",
		"https://x/openai?api-version=2024-10-21 --rate 1":                   "",
		"http://x --rate 1 --no-stream --slo e2e<2s@99%,errors<1%":           "",
		"http://x --rate 1 --gpus 2 --gpu-price 2.5 --spend-limit 3":         "",
		"http://x --rate 1 --workload f --output 9":                          "",
		`http://x --rate 1 --body {"top_p":1} --max-in-flight 3`:             "",
		"http://x --rate 1 --token-price 0.1/0.2 --spend-limit 3":            "",
		"http://x --rate 1 --prefix 100 --prefix-share 0 --arrival=constant": "",
		"http://x --rate 1 --header X-A=1 --set header-public=x-a=2":         "header x-a is given with --header and with --header-public",
		"http://x --rate 1 --header X-A=1 --set header-public=X-B=2":         "",
		"http://x --rate 1 --key k.pem":                                      "--key without --cert",
		"http://x --rate 1 --exactly":                                        "--exactly without --requests",
		"http://x --rate 1 --exactly --requests 5":                           "--exactly without --warmup 0s",
		"http://x --rate 1 --exactly --requests 5 --warmup 0s":               "",
		"mock:fixed --rate 1 --gpu-price 2":                                  "",
		"http://x --rate 1 --requests 9 --until p99e2e+-5%":                  "--until has no meaning with --requests",
		"http://x --rate 1 --until p99e2e+-5% --duration 30m":                "is longer than --max-duration",
		"http://x --rate 1 --until p99e2e+-5% --max-duration 40s":            "",
	} {
		p, _, err := sources{args: args}.decode(t)
		if err == nil {
			err = p.Check(VerbRun)
		}
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		var u *say.Error
		switch {
		case !errors.As(err, &u) || !strings.Contains(u.Msg, want):
			t.Errorf("%s: %v, want %q", args, err, want)
		case u.Hint == "":
			t.Errorf("%s: no hint", args)
		case strings.Contains(u.Msg, "\n") || strings.HasSuffix(u.Msg, "."):
			t.Errorf("%s: not one sentence: %q", args, u.Msg)
		case strings.Contains(u.Msg+u.Hint, "sk-secret"):
			t.Errorf("%s: a secret is told: %v", args, err)
		}
	}
}

func TestRedactArgs(t *testing.T) {
	argv := []string{"pitot", "run", "http://x", "--header", "Authorization=Bearer sk-secret", "-header=x-api-key=sk-secret", "--header", "X-Tenant=a=b",
		"--set=proxy=http://u:sk-secret@h:1", "--set", "scrape-header=X-Key=sk-secret", "--body", `{"api_key":"sk-secret","n":2}`, "--body={\"n\":2}", "--rate", "4", "--note", "key=k", "--key", "sk-secret-0123456789", "--key=keys/client.pem", "--set", "header-public=X-Team=blue", "--header"}
	want := []string{"pitot", "run", "http://x", "--header", "Authorization=[redacted]", "-header=x-api-key=[redacted]", "--header", "X-Tenant=[redacted]",
		"--set=proxy=http://h:1", "--set", "scrape-header=X-Key=[redacted]", "--body", `{"api_key":"[redacted]","n":2}`, "--body={\"n\":2}", "--rate", "4", "--note", "key=k", "--key", "[redacted]", "--key=keys/client.pem", "--set", "header-public=X-Team=blue", "--header"}
	if d := cmp.Diff(want, RedactArgs(argv)); d != "" {
		t.Error(d)
	}
	if argv[4] != "Authorization=Bearer sk-secret" {
		t.Error("the caller's arguments were changed")
	}
}

func TestIsSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "api-key": true, "X-Api-Key": true, "Cookie": true, "Set-Cookie": true, "X-Auth-Token": true,
		"User-Agent": false, "X-Tenant": false, "Accept": false, "x-request-id": false,
	} {
		if IsSecret(name) != want {
			t.Errorf("header %s: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{
		"api_key": true, "apiKey": true, "client_secret": true,
		"max_tokens": false, "stop_token_ids": false, "skip_special_tokens": false, "prompt_cache_key": false, "top_k": false,
	} {
		if IsSecretField(name) != want {
			t.Errorf("field %s: %v", name, !want)
		}
	}
}

func TestKind(t *testing.T) {
	for target, want := range map[string]string{"mock:a@b": "mock", "sim:": "sim", "http://mock:80": "http", "localhost:8000": "http", "": "http"} {
		p := Target{Spec: target}
		if p.Kind() != want {
			t.Errorf("%q is %s", target, p.Kind())
		}
	}
}

// What an embedded target is like is told by what was set otherwise than usual, and
// by nothing else.
func TestEmbedded(t *testing.T) {
	for _, c := range []struct {
		target, engine string
		want           map[string]string
	}{
		{"mock:fixed", "fixed", nil},
		{"mock:fixed?speed=3&jitter=0.2&faults=503:10%,reset:1%&ttft=20ms&truth=t.log&launch_cv=0.03", "fixed?launch_cv=0.03",
			map[string]string{"speed": "3", "jitter": "0.2", "faults": "503:10%,reset:1%", "ttft": "20ms"}},
		{"fixed?max_model_len=500&role_chunk", "fixed", map[string]string{"max-model-len": "500", "role-chunk": "true"}},
		{"sim:m@h100?max_num_seqs=64&max_model_len=500&faults=429:1%", "m@h100?max_num_seqs=64&max_model_len=500", map[string]string{"faults": "429:1%"}},
	} {
		engine, e, err := ParseSimulated(c.target)
		if got := e.ChangedSettings(); err != nil || engine != c.engine || !maps.Equal(got, c.want) {
			t.Errorf("%s: %s %v %v", c.target, engine, got, err)
		}
	}
}

// What a server overwrites is no part of what a run is done again with.
func TestKeptTarget(t *testing.T) {
	for target, want := range map[string]string{
		"mock:fixed?truth=t.log&ttft=2ms": "mock:fixed?ttft=2ms",
		"mock:m@h100?truth=t.log":         "mock:m@h100",
		"http://h?truth=t.log":            "http://h?truth=t.log",
	} {
		if got := keptTarget(target); got != want {
			t.Errorf("%s: %s", target, got)
		}
	}
}

func FuzzParseSimulated(f *testing.F) {
	f.Add("mock:fixed?ttft=20ms&faults=429:1%&x")
	f.Add("sim:m@h100?max_num_seqs=64&max_model_len=5&role_chunk&&=")
	f.Fuzz(func(t *testing.T, target string) {
		engine, _, err := ParseSimulated(target)
		if err == nil && len(engine) > len(target) {
			t.Errorf("%q is %q", target, engine)
		}
		keptTarget(target)
	})
}
