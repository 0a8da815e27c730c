package vllmapi_test

import (
	"fmt"
	"strings"
	"testing"

	"pitot/internal/sim"
	"pitot/internal/sim/serve"
)

const withTools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}},{"type":"function","function":{"name":"g"}}]`

// Where the model may choose it calls a tool in the share that was asked for,
// either of them, and says so; after a tool's result it answers in words.
func TestToolCalls(t *testing.T) {
	for share, want := range map[float64][2]int{0: {0, 0}, 0.3: {25, 100}, 1: {200, 200}} {
		r := start(t, sim.FixedConfig{}, serve.Config{ToolCalls: share})
		calls, names := 0, map[string]bool{}
		for i := range 200 {
			choice := []string{"", `,"tool_choice":"auto"`}[i%2]
			_, body := r.do(post("/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"%d"}],"max_tokens":100,%s%s}`, i, withTools, choice)))
			if strings.Contains(body, `"tool_calls":[{`) {
				calls++
				names[body[strings.Index(body, `"name":"`)+8:][:1]] = true
				if !strings.Contains(body, `"finish_reason":"tool_calls"`) {
					t.Errorf("%s", body)
				}
			} else if !strings.Contains(body, `"finish_reason":"length"`) {
				t.Errorf("%s", body)
			}
		}
		if calls < want[0] || calls > want[1] || calls > 0 && len(names) != 2 {
			t.Errorf("share %v: %d of 200 call, %v", share, calls, names)
		}
		for _, more := range []string{
			withTools + `,"tool_choice":"none"`, `"n":1`,
			`"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","content":"4","tool_call_id":"1"}],` + withTools,
		} {
			_, body := r.do(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":100,`+more+`}`))
			if strings.Contains(body, `"tool_calls":[{`) {
				t.Errorf("%s is called: %s", more, body)
			}
		}
	}
}

// words is what an answer says.
func (r *rig) words(more string) string {
	text, _, _ := r.content(`{"max_tokens":9,` + more + `}`)
	return text
}

// The same prompt has the same answer where the client samples greedily or
// with a seed, on every server and whatever came before; another one, or
// another seed, has mostly another one.
func TestTheSameAnswer(t *testing.T) {
	const hello, other = `"messages":[{"role":"user","content":"hello there"}]`, `"messages":[{"role":"user","content":"something else"}]`
	a, b := start(t, sim.FixedConfig{}, tokenizer(serve.Config{Seed: 1})), start(t, sim.FixedConfig{}, tokenizer(serve.Config{Seed: 2}))
	b.words(other)
	for _, how := range []string{`,"temperature":0`, `,"seed":7`, `,"seed":-7,"temperature":0.5`} {
		want := a.words(hello + how)
		for range 3 {
			if got := a.words(hello + how); got != want {
				t.Errorf("%s: %q, and before %q", how, got, want)
			}
		}
		if got := b.words(hello + how); got != want {
			t.Errorf("%s: %q, and on another server %q", how, got, want)
		}
		if got := a.words(hello + how + `,"stream":true`); got != want {
			t.Errorf("%s: %q, and streamed %q", how, want, got)
		}
	}
	differ := map[string]bool{}
	for i := range 20 {
		differ[a.words(fmt.Sprintf(`%s,"seed":%d`, hello, i))] = true
		differ[a.words(fmt.Sprintf(`"messages":[{"role":"user","content":"%d"}],"temperature":0`, i))] = true
	}
	if len(differ) < 10 {
		t.Errorf("%d different answers to 40 questions", len(differ))
	}
	if one, other := a.words(hello), a.words(hello); one == other {
		t.Error("sampled answers are the same")
	}
}

// So does how long it is, where the model ends it by itself.
func TestTheSameLength(t *testing.T) {
	r := start(t, sim.FixedConfig{}, serve.Config{Ends: func(n int64) int { return 1 + int(n%7) }})
	for i := range 5 {
		body := fmt.Sprintf(`"messages":[{"role":"user","content":"%d"}],"temperature":0`, i)
		if first := r.words(body); r.words(body) != first {
			t.Errorf("%s: %q the first time", body, first)
		}
	}
}
