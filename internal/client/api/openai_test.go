package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/record"
)

// typicalEvent is what vLLM's chat sends for one token.
const typicalEvent = `{"id":"chatcmpl-7f3a9b1c2d4e4f5a8b6c7d8e9f0a1b2c","object":"chat.completion.chunk","created":1763670000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`

func answer(choice, bytes, tokens int32) Part {
	return Part{Choice: choice, Kind: record.Answer, Bytes: bytes, Tokens: tokens}
}

func kind(k record.Kind, bytes int32) Part { return Part{Kind: k, Bytes: bytes} }

// deltas are events and whole answers as servers send them.
var deltas = []struct {
	name, event, data string
	want              Delta
}{
	{name: "role only", data: `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
		want: Delta{Empty: true, Usage: Unsaid}},
	{name: "role with null content", data: `{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"usage":null}`,
		want: Delta{Empty: true, Usage: Unsaid}},
	{name: "content", data: typicalEvent, want: Delta{Parts: []Part{answer(0, 6, 0)}, Usage: Unsaid}},
	{name: "role and content", data: `{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}`,
		want: Delta{Parts: []Part{answer(0, 2, 0)}, Usage: Unsaid}},
	{name: "escapes count as what they mean", data: `{"choices":[{"index":0,"delta":{"content":"\n\u00e9\ud83d\ude00\"\\"}}]}`,
		want: Delta{Parts: []Part{answer(0, 1+2+4+1+1, 0)}, Usage: Unsaid}},
	{name: "obfuscation is no text", data: `{"choices":[{"index":0,"delta":{"content":"a"}}],"obfuscation":"p4dd1ng"}`,
		want: Delta{Parts: []Part{answer(0, 1, 0)}, Usage: Unsaid}},
	{name: "index after the delta", data: `{"choices":[{"delta":{"content":"a"},"index":3}]}`,
		want: Delta{Parts: []Part{answer(3, 1, 0)}, Usage: Unsaid}},
	{name: "reasoning", data: `{"choices":[{"index":0,"delta":{"reasoning":"We need"}}]}`,
		want: Delta{Parts: []Part{kind(record.Reasoning, 7)}, Usage: Unsaid}},
	{name: "reasoning_content", data: `{"choices":[{"index":0,"delta":{"reasoning_content":"We need","content":null}}]}`,
		want: Delta{Parts: []Part{kind(record.Reasoning, 7)}, Usage: Unsaid}},
	{name: "reasoning under both names", data: `{"choices":[{"index":0,"delta":{"reasoning":"We need","content":"x","reasoning_content":"We need"}}]}`,
		want: Delta{Parts: []Part{kind(record.Reasoning, 7), answer(0, 1, 0)}, Usage: Unsaid}},
	{name: "reasoning as an object is not text", data: `{"choices":[{"index":0,"delta":{"reasoning":{"effort":"low"}}}]}`,
		want: Delta{Empty: true, Usage: Unsaid}},
	{name: "tool call, first fragment", data: `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}]}}]}`,
		want: Delta{Parts: []Part{kind(record.ToolCall, 11)}, Usage: Unsaid}},
	{name: "tool call, arguments", data: `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]}}]}`,
		want: Delta{Parts: []Part{kind(record.ToolCall, 7)}, Usage: Unsaid}},
	{name: "tool calls, parallel", data: `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ab"}},{"index":1,"id":"call_2","function":{"name":"f","arguments":"cd"}}]}}]}`,
		want: Delta{Parts: []Part{kind(record.ToolCall, 5)}, Usage: Unsaid}},
	{name: "tool call, only an id", data: `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":null}]}}]}`,
		want: Delta{Empty: true, Usage: Unsaid}},
	{name: "function_call", data: `{"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":"{}"}}}]}`,
		want: Delta{Parts: []Part{kind(record.ToolCall, 3)}, Usage: Unsaid}},
	{name: "refusal", data: `{"choices":[{"index":0,"delta":{"refusal":"I cannot"}}]}`,
		want: Delta{Parts: []Part{kind(record.Refusal, 8)}, Usage: Unsaid}},
	{name: "several choices", data: `{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"bcd"}},{"index":2,"delta":{}}]}`,
		want: Delta{Parts: []Part{answer(0, 1, 0), answer(1, 3, 0)}, Empty: true, Usage: Unsaid}},
	{name: "finish, empty delta", data: `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		want: Delta{Empty: true, Ended: true, Finish: "stop", Usage: Unsaid}},
	{name: "finish on the last token", data: `{"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"length","stop_reason":null}]}`,
		want: Delta{Parts: []Part{answer(0, 1, 0)}, Ended: true, Finish: "length", Usage: Unsaid}},
	{name: "finish of another choice", data: `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`,
		want: Delta{Empty: true, Ended: true, Usage: Unsaid}},
	{name: "empty finish reason is none", data: `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}`,
		want: Delta{Parts: []Part{answer(0, 1, 0)}, Usage: Unsaid}},
	{name: "unusual finish", data: `{"choices":[{"index":0,"delta":{},"finish_reason":"repetition_detected"}]}`,
		want: Delta{Empty: true, Ended: true, Finish: "repetition_detected", Usage: Unsaid}},
	{name: "usage only", data: `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":1}}}`,
		want: Delta{Usage: Usage{9, 8, 2, 1}}},
	{name: "usage null", data: `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}`,
		want: Delta{Parts: []Part{answer(0, 1, 0)}, Usage: Unsaid}},
	{name: "usage in every event", data: `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3}}`,
		want: Delta{Parts: []Part{answer(0, 1, 0)}, Usage: Usage{9, -1, 3, -1}}},
	{name: "usage with null details", data: `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null}}`,
		want: Delta{Usage: Usage{9, -1, 2, -1}}},
	{name: "token ids", data: `{"choices":[{"index":0,"delta":{"content":"ab"},"token_ids":[1,2,3]}]}`,
		want: Delta{Parts: []Part{answer(0, 2, 3)}, Usage: Unsaid}},
	{name: "chat logprobs", data: `{"choices":[{"index":0,"delta":{"content":"ab"},"logprobs":{"content":[{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[{"token":"a"}]},{"token":"b","logprob":-2}],"refusal":null}}]}`,
		want: Delta{Parts: []Part{answer(0, 2, 2)}, Usage: Unsaid}},
	{name: "tokens of reasoning and answer in one event", data: `{"choices":[{"index":0,"delta":{"reasoning":"a","content":"b"},"token_ids":[1,2]}]}`,
		want: Delta{Parts: []Part{{Kind: record.Reasoning, Bytes: 1, Tokens: 2}, answer(0, 1, 0)}, Usage: Unsaid}},
	{name: "completions", data: `{"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":null}]}`,
		want: Delta{Parts: []Part{answer(0, 2, 0)}, Usage: Unsaid}},
	{name: "completions logprobs", data: `{"choices":[{"index":0,"text":"Hi","logprobs":{"tokens":["H","i"],"token_logprobs":[-1,-2],"top_logprobs":null,"text_offset":[0,1]}}]}`,
		want: Delta{Parts: []Part{answer(0, 2, 2)}, Usage: Unsaid}},
	{name: "completions, empty text", data: `{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`,
		want: Delta{Empty: true, Ended: true, Finish: "length", Usage: Unsaid}},
	{name: "message", data: `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[],"refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
		want: Delta{Parts: []Part{answer(0, 2, 0)}, Ended: true, Finish: "stop", Usage: Usage{3, -1, 1, -1}}},
	{name: "content in parts", data: `{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"Hi"},{"type":"text","text":"!"},null]}}]}`,
		want: Delta{Parts: []Part{answer(0, 3, 0)}, Usage: Unsaid}},
	{name: "error", data: `{"error":{"message":"CUDA \"out\" of memory","type":"InternalServerError","param":null,"code":500}}`,
		want: Delta{Fault: &Fault{Message: `CUDA "out" of memory`, Type: "InternalServerError"}, Usage: Unsaid}},
	{name: "error as a string", data: `{"error":"Request failed during generation","error_type":"generation"}`,
		want: Delta{Fault: &Fault{Message: "Request failed during generation"}, Usage: Unsaid}},
	{name: "error null", data: `{"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]}`,
		want: Delta{Parts: []Part{answer(0, 1, 0)}, Usage: Unsaid}},
	{name: "error event of plain text", event: "error", data: `engine died`,
		want: Delta{Fault: &Fault{Message: "engine died"}, Usage: Unsaid}},
	{name: "error event of JSON", event: "error", data: `{"error":{"message":"engine died"}}`,
		want: Delta{Fault: &Fault{Message: "engine died"}, Usage: Unsaid}},
	{name: "filter results before any choice", data: `{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, want: Delta{Usage: Unsaid}},
	{name: "progress", data: `{"choices":[{"index":0,"delta":{}}],"prompt_progress":{"total":9,"cache":0,"processed":3,"time_ms":1.5},"timings":{"prompt_n":3}}`,
		want: Delta{Empty: true, Usage: Unsaid}},
	{name: "done", data: `[DONE]`, want: Delta{Done: true, Usage: Unsaid}},
}

func TestDeltas(t *testing.T) {
	dec := Chat.Decoder()
	var d Delta
	for _, c := range deltas {
		dec.Reset()
		d.Clear()
		if err := dec.Event([]byte(c.event), []byte(c.data), &d); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := d
		if len(got.Parts) == 0 {
			got.Parts = nil
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
		if want := c.want.Ended || c.want.Done; dec.Ended() != want {
			t.Errorf("%s: ended is %v", c.name, dec.Ended())
		}
	}
}

func TestDecoderRefuses(t *testing.T) {
	dec := Chat.Decoder()
	var d Delta
	for _, data := range []string{
		"x", "{", `{"choices":[}`, `{"choices":[{"index":a}]}`, `[DONE`, `{} {}`, "error: engine is gone",
	} {
		d.Clear()
		if err := dec.Event(nil, []byte(data), &d); err == nil {
			t.Errorf("%q is taken as %+v", data, d)
		}
	}
}

func TestDecoderAllocatesNothing(t *testing.T) {
	dec := Chat.Decoder()
	var d Delta
	for _, data := range []string{
		typicalEvent,
		`{"choices":[{"index":0,"delta":{"content":"\n\n\u00e9\ud83d\ude00"},"finish_reason":"stop","token_ids":[1,2]}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]}}]}`,
		`[DONE]`,
	} {
		text := []byte(data)
		if n := testing.AllocsPerRun(100, func() { d.Clear(); _ = dec.Event(nil, text, &d) }); n != 0 {
			t.Errorf("%v allocations for %s", n, data)
		}
	}
}

func TestModelIn(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"1","model":"a\u002fb","choices":[]}`:                          "a/b",
		`{"type":"message_start","message":{"id":"1","model":"claude"}}`:      "claude",
		`{"type":"response.created","response":{"model":"gpt"}}`:              "gpt",
		`{"candidates":[],"modelVersion":"gemini-2"}`:                         "gemini-2",
		`{"message":{"role":"assistant","content":"model"},"model":"llama3"}`: "llama3",
		`{"choices":[]}`: "", `{"model":7}`: "", `[`: "", ``: "",
	} {
		if got := ModelIn([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
