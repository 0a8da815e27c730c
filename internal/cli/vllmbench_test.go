package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Flags of vllm bench serve in Pitot's words. 100 × 1.1 rounds up to 111 in
// binary fractions, there too.
func TestTranslateVLLM(t *testing.T) {
	for given, want := range map[string]string{
		"": `http://127.0.0.1:8000/v1/completions --api openai-completions --input 1024 --output 128 --concurrency 1000 --requests 1000 --exactly --warmup 0s --seed 0 --body {"temperature":null}`,
		"--host ::1 --port 80 --model m --served-model-name s --num-prompts 5 --max-concurrency 9 --temperature 0.7 --top-k 4":                                                                 `http://[::1]:80/v1/completions --api openai-completions --model s --input 1024 --output 128 --concurrency 5 --requests 5 --exactly --warmup 0s --seed 0 --body {"temperature":0.7,"top_k":4}`,
		"--base-url https://x/ --backend openai-chat --endpoint /v1/chat/completions --request-rate 2.5 --max-concurrency 3 --burstiness inf --insecure --ready-check-timeout-sec 60 --seed 4": `https://x/v1/chat/completions --api openai-chat --insecure --wait-ready 60s --input 1024 --output 128 --rate 2.5 --arrival constant --max-in-flight 3 --requests 1000 --exactly --warmup 0s --seed 4 --body {"temperature":null}`,
		"--random-input-len 100 --random-output-len 10 --random-range-ratio 0.1 --random-prefix-len 7 --num_prompts 1":                                                                         `http://127.0.0.1:8000/v1/completions --api openai-completions --input uniform(90,111) --output uniform(9,11) --prefix 7 --concurrency 1 --requests 1 --exactly --warmup 0s --seed 0 --body {"temperature":null}`,
		`--random-range-ratio {"input":0.5,"output":0} --num-prompts 1 --ignore-eos --logprobs 2 --extra-body {"top_p":1,"temperature":0}`:                                                     `http://127.0.0.1:8000/v1/completions --api openai-completions --input uniform(512,1536) --output 128 --concurrency 1 --requests 1 --exactly --warmup 0s --seed 0 --body {"ignore_eos":true,"logprobs":2,"temperature":0,"top_p":1}`,
		"--dataset-name sharegpt --dataset-path f.json --output-len 20 --num-prompts 1 --header a=b c=d":                                                                                       `http://127.0.0.1:8000/v1/completions --api openai-completions --header a=b --header c=d --workload f.json --concurrency 1 --requests 1 --exactly --warmup 0s --seed 0 --body {"max_tokens":20,"temperature":null}`,
		"--dataset-name custom --dataset-path f.jsonl --custom-output-len -1 --num-prompts 1":                                                                                                  `http://127.0.0.1:8000/v1/completions --api openai-completions --workload f.jsonl --concurrency 1 --requests 1 --exactly --warmup 0s --seed 0 --body {"temperature":null}`,
	} {
		b, err := translateVLLM(strings.Fields(given))
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if got := strings.Join(b.native, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", given, got, want)
		}
		p, _, err := config.Decode(config.VerbRun, b.native, nil)
		if err == nil {
			err = p.Check(config.VerbRun)
		}
		if err != nil {
			t.Errorf("%s: pitot run does not take it: %v", given, err)
		}
	}
}

// A flag that the help calls honoured makes a difference, for some value beside
// some others.
func TestVLLMFlagsAreHonoured(t *testing.T) {
	translated := func(args string) string {
		b, err := translateVLLM(strings.Fields(args))
		return fmt.Sprintf("%+v %v", b, err)
	}
	others := []string{"", "--request-rate 2", "--dataset-name sharegpt --dataset-path f", "--dataset-name custom --dataset-path f"}
	values := []string{"7", "0.5", "x", "x=y", "ttft:5"}
	for _, f := range vllmFlags() {
		given := []string{"--" + f.name}
		if f.arity != none {
			given = nil
			for _, v := range values {
				given = append(given, "--"+f.name+" "+v)
			}
		}
		differs := slices.ContainsFunc(others, func(vllmFile string) bool {
			return slices.ContainsFunc(given, func(args string) bool { return translated(vllmFile+" "+args) != translated(vllmFile) })
		})
		if !differs { // what changes nothing is named, and what is refused too
			t.Errorf("--%s makes no difference", f.name)
		}
	}
}

// Whatever is given, it becomes a run or a sentence.
func FuzzTranslateVLLM(f *testing.F) {
	f.Add("--num-prompts 3 --request-rate inf --goodput ttft:5 --metadata a=b")
	f.Add("--random-range-ratio {} --extra-body [] --header x --burstiness NaN --metric-percentiles 1,x")
	f.Fuzz(func(t *testing.T, line string) {
		b, err := translateVLLM(strings.Fields(line))
		if u := (*say.Error)(nil); err != nil && !errors.As(err, &u) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		_, _, err = config.Decode(config.VerbRun, b.native, nil)
		if u := (*say.Error)(nil); err != nil && !errors.As(err, &u) {
			t.Fatal(err)
		}
	})
}

// Why a run is INVALID is said; flags are counted.
func TestWhyNotValid(t *testing.T) {
	lag, limit := 12.0, 5.0
	var b bytes.Buffer
	whyNotValid(&b, &result.Run{Points: []result.Point{{Checks: []result.Check{
		{Name: result.CheckSendLag, Status: result.Fail, Value: &lag, Limit: &limit, Unit: "ms"},
		{Name: result.CheckHost, Status: result.Flag}, {Name: result.CheckClockSteps, Status: result.Pass},
	}}}})
	if got := b.String(); !strings.HasPrefix(got, "  "+result.CheckSendLag+": ") || !strings.HasSuffix(got, "\n  other checks that are flagged: 1\n") {
		t.Errorf("%q", got)
	}
}
