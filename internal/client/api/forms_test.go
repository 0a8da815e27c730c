package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/results/record"
)

// told says what events come to: the text of each by kind and length (a answer,
// r reasoning, s its summary, t call, f refusal), with tokens where they are known, how
// the answer ended, and the usage.
func told(dec Decoder, events ...string) string {
	dec.Reset()
	var said []string
	usage, finish, d := Unsaid, "", Delta{Keep: true}
	for _, e := range events {
		d.Clear()
		if err := dec.Event(nil, []byte(e), &d); err != nil {
			return "cannot read " + e
		}
		for _, p := range d.Parts {
			letter := "artf"[p.Kind]
			if d.Summarised {
				letter = 's'
			}
			part := fmt.Sprintf("%c%d", letter, p.Bytes)
			if p.Tokens > 0 {
				part += fmt.Sprintf("=%d", p.Tokens)
			}
			said = append(said, part)
		}
		if d.Fault != nil {
			said = append(said, "fault "+d.Fault.Message)
		}
		if d.Finish != "" {
			finish = d.Finish
		}
		for i, n := range []int32{d.Usage.Prompt, d.Usage.Cached, d.Usage.Completion, d.Usage.Reasoning} {
			if n != record.Unset {
				*[]*int32{&usage.Prompt, &usage.Cached, &usage.Completion, &usage.Reasoning}[i] = n
			}
		}
	}
	if finish != "" {
		said = append(said, finish)
	}
	if usage != Unsaid {
		said = append(said, fmt.Sprintf("%d/%d/%d/%d", usage.Prompt, usage.Cached, usage.Completion, usage.Reasoning))
	}
	if dec.Ended() {
		said = append(said, "ended")
	}
	if len(d.Text) > 0 {
		said = append(said, fmt.Sprintf("%q", d.Text))
	}
	return strings.Join(said, " ")
}

// forms are streams in the forms in which servers send them.
var forms = []struct {
	api    API
	name   string
	events []string
	want   string
}{
	{Responses, "as OpenAI sends it", []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress","error":null,"output":[],"usage":null}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"m","type":"message","status":"in_progress","content":[],"role":"assistant"}}`,
		`{"type":"response.output_text.delta","sequence_number":2,"item_id":"m","output_index":0,"content_index":0,"delta":"Hi","logprobs":[],"obfuscation":"AbCdEf"}`,
		`{"type":"response.output_text.delta","sequence_number":3,"item_id":"m","output_index":0,"content_index":0,"delta":" you","logprobs":[],"obfuscation":"x"}`,
		`{"type":"response.output_text.done","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"text":"Hi you"}`,
		`{"type":"response.completed","sequence_number":5,"response":{"id":"r","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi you"}]}],"usage":{"input_tokens":8,"input_tokens_details":{"cached_tokens":4},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":11}}}`,
	}, `a2 a4 stop 8/4/3/0 ended "Hi you"`},
	{Responses, "as LiteLLM bridges it: no numbers, incomplete, [DONE]", []string{
		`{"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Hi"}`,
		`{"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 8, "output_tokens": 1}}}`,
		`[DONE]`,
	}, `a2 length 8/-1/1/-1 ended "Hi"`},
	{Responses, "the type last", []string{`{"delta":"Hi","sequence_number":2,"type":"response.output_text.delta"}`}, `a2 "Hi"`},
	{Responses, "reasoning that is summed up", []string{
		`{"type":"response.reasoning_summary_text.delta","delta":"Thinking"}`,
		`{"type":"response.reasoning_summary_text.delta","delta":" on"}`,
		`{"type":"response.output_text.delta","delta":"Hi"}`,
	}, `s8 s3 a2 "Hi"`},
	{Responses, "a call", []string{
		`{"type":"response.output_item.added","item":{"arguments":"","name":"weather","type":"function_call"}}`,
		`{"type":"response.function_call_arguments.delta","delta":"{\"a\""}`,
		`{"type":"response.function_call_arguments.done","arguments":"{\"a\":1}"}`,
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","name":"weather","arguments":"{\"a\":1}"}]}}`,
	}, `t7 t4 tool_calls ended`},
	{Responses, "a refusal, and logprobs", []string{
		`{"type":"response.refusal.delta","delta":"No"}`,
		`{"type":"response.output_text.delta","delta":"ab","logprobs":[{"token":"a","logprob":-1},{"token":"b","logprob":-1}]}`,
	}, `f2 a2=2 "ab"`},
	{Responses, "failed", []string{
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"the model broke"}}}`,
	}, "fault the model broke"},
	{Responses, "an error event", []string{`{"type":"error","code":"x","message":"rate limited","param":null,"sequence_number":3}`}, "fault rate limited"},
	{Responses, "an error object", []string{`{"error":{"message":"boom","type":"InternalServerError"}}`}, "fault boom"},
	{Responses, "events that are not known", []string{`{"type":"response.image.partial","delta":"AAAA"}`, `{"type":"keepalive"}`, `{}`}, ""},

	{Anthropic, "as Anthropic sends it", []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type": "ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"!"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`,
		`{"type":"message_stop"}`,
	}, `a5 a1 stop 40/5/15/-1 ended "Hello!"`},
	{Anthropic, "as LiteLLM bridges it: the prompt is counted at the end", []string{
		`{"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}}`,
		`{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}`,
		`{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"input_tokens": 10, "output_tokens": 3}}`,
		`{"type": "message_stop"}`,
	}, `a2 length 10/-1/3/-1 ended "Hi"`},
	{Anthropic, "a usage that says less at the end", []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":7}}`,
	}, `stop 30/5/7/-1 ended`},
	{Anthropic, "cut before its end: nothing is counted", []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`,
	}, `25/-1/-1/-1`},
	{Anthropic, "thinking, signed, and one that is hidden", []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Yes"}}`,
	}, `r6 a3 "Yes"`},
	{Anthropic, "a call", []string{
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\""}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":89}}`,
	}, `t11 t7 tool_calls -1/-1/89/-1 ended`},
	{Anthropic, "thinking that is counted", []string{
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":89,"output_tokens_details":{"thinking_tokens":60}}}`,
	}, `stop -1/-1/89/60 ended`},
	{Anthropic, "an error", []string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, "fault Overloaded"},
	{Anthropic, "a usage that is none", []string{
		`{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"input_tokens":-3,"output_tokens":2.5}}`,
	}, "pause_turn -2/-1/-2/-1 ended"},

	{SGLang, "texts that repeat those before them", []string{
		`{"text":"Pa","output_ids":[1],"meta_info":{"id":"a","finish_reason":null,"prompt_tokens":7,"weight_version":"default","completion_tokens":1,"cached_tokens":3}}`,
		`{"text":"Paris is","output_ids":[1,2,3],"meta_info":{"id":"a","finish_reason":null,"prompt_tokens":7,"completion_tokens":3,"cached_tokens":3}}`,
		`{"text":"Paris is\n","output_ids":[1,2,3,4],"meta_info":{"id":"a","finish_reason":{"type":"length","length":4},"prompt_tokens":7,"completion_tokens":4,"cached_tokens":3,"e2e_latency":0.5}}`,
		`[DONE]`,
	}, `a2 a6 a1 length 7/3/4/-1 ended "Paris is\n"`},
	{SGLang, "what is new alone (--incremental-streaming-output)", []string{
		`{"text":"aa","output_ids":[1],"meta_info":{"prompt_tokens":7,"completion_tokens":1}}`,
		`{"text":"aab","output_ids":[2],"meta_info":{"prompt_tokens":7,"completion_tokens":2}}`,
		`{"text":"c","output_ids":[3],"meta_info":{"prompt_tokens":7,"completion_tokens":3,"finish_reason":{"type":"stop","matched":2}}}`,
	}, `a2 a3 a1 stop 7/-1/3/-1 ended "aaaabc"`},
	{SGLang, "without ids", []string{
		`{"text":"ab","meta_info":{"completion_tokens":1}}`, `{"text":"abcd","meta_info":{"completion_tokens":2}}`,
	}, `a2 a2 -1/-1/2/-1 "abcd"`},
	{SGLang, "an unfinished character", []string{
		`{"text":"a\ufffd","output_ids":[1],"meta_info":{"completion_tokens":1}}`, `{"text":"a\u00e9b","output_ids":[1,2],"meta_info":{"completion_tokens":2}}`,
	}, `a4 a3 -1/-1/2/-1 "aéb"`},
	{SGLang, "aborted", []string{
		`{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"out of memory","status_code":500},"completion_tokens":0}}`,
	}, `fault out of memory abort -1/-1/0/-1 ended`},
	{SGLang, "an error", []string{`{"error":{"message":"The input is too long"}}`}, "fault The input is too long"},

	{TGI, "tokens", []string{
		`{"index":1,"token":{"id":31,"text":" Hi","logprob":-0.3,"special":false},"generated_text":null,"details":null}`,
		`{"index":2,"token":{"id":32,"text":"","logprob":-0.3,"special":false},"generated_text":null,"details":null}`,
		`{"index":3,"token":{"id":33,"text":"\u00e9","logprob":-0.3,"special":false},"generated_text":null,"details":null}`,
		`{"index":4,"token":{"id":2,"text":"</s>","logprob":-0.3,"special":true},"generated_text":" Hi\u00e9","details":{"finish_reason":"eos_token","generated_tokens":4,"input_length":9,"seed":null}}`,
	}, `a3=1 a2=2 stop 9/-1/4/-1 ended " Hié"`},
	{TGI, "an error", []string{`{"error":"Request failed during generation","error_type":"generation"}`}, "fault Request failed during generation"},

	{Ollama, "a chat", []string{
		`{"model":"m","created_at":"2026-11-23T08:00:00.1Z","message":{"role":"assistant","content":"","thinking":"Let"},"done":false}`,
		`{"model":"m","created_at":"2026-11-23T08:00:00.2Z","message":{"role":"assistant","content":"The"},"done":false}`,
		`{"model":"m","created_at":"2026-11-23T08:00:00.345Z","message":{"role":"assistant","content":" sky"},"done":false}`,
		`{"model":"m","created_at":"2026-11-23T08:00:00.4Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","total_duration":5,"prompt_eval_count":26,"eval_count":3}`,
	}, `r3 a3 a4 length 26/-1/3/-1 ended "The sky"`},
	{Ollama, "a prompt", []string{
		`{"model":"m","response":"The","done":false}`, `{"model":"m","response":"","done":true,"context":[1,2],"eval_count":1}`,
	}, `a3 stop -1/-1/1/-1 ended "The"`},
	{Ollama, "a call", []string{
		`{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}`,
	}, `t8`},
	{Ollama, "an error", []string{`{"error":"an error was encountered while running the model"}`}, "fault an error was encountered while running the model"},

	{LlamaCpp, "tokens so far", []string{
		`{"index":0,"content":"","tokens":[],"stop":false,"id_slot":-1,"prompt_progress":{"total":9,"cache":0,"processed":3}}`,
		`{"index":0,"content":" Hi","tokens":[],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":9}`,
		`{"index":0,"content":" you","tokens":[],"stop":false,"id_slot":-1,"tokens_predicted":3,"tokens_evaluated":9}`,
		`{"index":0,"content":"","tokens":[],"stop":true,"stop_type":"limit","tokens_predicted":3,"tokens_evaluated":9,"tokens_cached":11,"timings":{"cache_n":4,"prompt_n":5,"predicted_n":3}}`,
	}, `a3 a4 length 9/4/3/-1 ended " Hi you"`},
	{LlamaCpp, "an older server, with ids", []string{
		`{"content":"x","tokens":[15,16],"stop":false}`,
		`{"content":"","stop":true,"stop_type":"eos","tokens_predicted":2,"tokens_evaluated":9,"timings":{"prompt_n":2}}`,
	}, `a1=2 stop 9/7/2/-1 ended "x"`},
	{LlamaCpp, "an error", []string{`{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`}, "fault Context size has been exceeded."},

	{Gemini, "thoughts, many tokens an event", []string{
		`{"candidates":[{"content":{"parts":[{"text":"Sum","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":24,"thoughtsTokenCount":20},"modelVersion":"m","responseId":"r"}`,
		`{"candidates":[{"content":{"parts":[{"text":"Hi there"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"totalTokenCount":26,"thoughtsTokenCount":20,"cachedContentTokenCount":1}}`,
		`{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":20}}`,
	}, `s3 a8 a1 length 4/1/23/20 ended "Hi there!"`},
	{Gemini, "thoughts in parts", []string{
		`{"candidates":[{"content":{"parts":[{"text":"Sum","thought":true},{"text":"mary","thought":true}]}}]}`,
	}, `s7`},
	{Gemini, "a call", []string{
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}}]},"finishReason":"STOP"}]}`,
	}, `t8 tool_calls ended`},
	{Gemini, "blocked", []string{`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}`}, `content_filter 4/-1/-1/-1 ended`},
	{Gemini, "an error", []string{`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`}, "fault The model is overloaded."},

	{Triton, "what is new", []string{
		`{"model_name":"ensemble","model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false,"text_output":" Hi"}`,
		`{"model_name":"ensemble","text_output":" you"}`, `{"model_name":"ensemble","text_output":""}`,
	}, `a3 a4 ended " Hi you"`},
	{Triton, "texts that repeat those before them", []string{`{"text_output":" Hi"}`, `{"text_output":" Hi you"}`, `{"text_output":" Hi you all"}`}, `a3 a4 a4 ended " Hi you all"`},
	{Triton, "an unfinished character in texts that repeat those before them", []string{`{"text_output":"caf"}`, `{"text_output":"caf\ufffd"}`, `{"text_output":"café"}`, `{"text_output":"café au"}`}, `a3 a3 a2 a3 ended "café au"`},
	{Triton, "an unfinished character in the first", []string{`{"text_output":"caf\ufffd"}`, `{"text_output":""}`, `{"text_output":"café"}`, `{"text_output":"café au"}`}, `a6 a2 a3 ended "café au"`},
	{Triton, "an error", []string{`{"error":"in ensemble: out of memory"}`}, "fault in ensemble: out of memory"},
}

func TestForms(t *testing.T) {
	for _, c := range forms {
		if got := told(c.api.Decoder(), c.events...); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.api.Name(), c.name, got, c.want)
		}
	}
}

// What is spelt is the text of the parts: not of special tokens, and once where it stands
// under two names.
func TestSpelt(t *testing.T) {
	for _, c := range []struct {
		api         API
		event, want string
	}{
		{TGI, `{"token":{"id":2,"text":"</s>","special":true}}`, ""},
		{Gemini, `{"candidates":[{"content":{"parts":[{"text":"Sum","thought":true},{"text":"up","thought":true}]}}]}`, "Sumup"},
		{Chat, `{"choices":[{"delta":{"reasoning":"We","content":"x","reasoning_content":"We"}}]}`, "Wex"},
		{Chat, `{"choices":[{"delta":{"reasoning":"We","reasoning_content":"We need"}}]}`, "We need"},
	} {
		d := Delta{Spell: true}
		d.Clear()
		err := c.api.Decoder().Event(nil, []byte(c.event), &d)
		n := 0
		for _, p := range d.Parts {
			n += int(p.Bytes)
		}
		if err != nil || string(d.Spelt) != c.want || n != len(c.want) {
			t.Errorf("%s: %q, %d bytes of %s, %v", c.event, d.Spelt, n, c.want, err)
		}
	}
	// Whole answers have the thinking of all blocks.
	for api, body := range map[API]string{
		Anthropic: `{"type":"message","content":[{"type":"thinking","thinking":"Sum"},{"type":"thinking","thinking":"up"}],"stop_reason":"end_turn"}`,
		Responses: `{"object":"response","status":"completed","output":[{"type":"reasoning","summary":[{"text":"Sum"},{"text":"up"}]}]}`,
	} {
		var d Delta
		d.Clear()
		if err := api.Decoder().Whole([]byte(body), &d); err != nil || len(d.Parts) != 1 || d.Parts[0].Bytes != 5 {
			t.Errorf("%s: %+v, %v", api.Name(), d.Parts, err)
		}
	}
}

// FuzzEvents gives any event to every decoder: what it reads is within its bounds, and
// the same when it is read again.
func FuzzEvents(f *testing.F) {
	for _, c := range forms {
		for _, e := range c.events {
			f.Add([]byte(e))
		}
	}
	files, _ := filepath.Glob("../testdata/recorded/*.http")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[strings.Index(string(b), "\r\n\r\n")+4:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, a := range All() {
			dec := a.Decoder()
			var first string
			for round := range 2 {
				dec.Reset()
				d := Delta{Keep: true, Spell: true, Most: 4}
				d.Clear()
				err := dec.Event(nil, data, &d)
				for _, p := range d.Parts {
					if err == nil && (p.Bytes <= 0 || int(p.Bytes) > 3*len(data) || p.Choice < 0 || p.Tokens < 0) {
						t.Fatalf("%s: part %+v", a.Name(), p)
					}
				}
				if len(d.Parts) > 4 {
					t.Fatalf("%s: %d parts", a.Name(), len(d.Parts))
				}
				got := fmt.Sprint(err, d.Parts, d.Finish, d.Usage, d.Ended, d.Done, dec.Ended(), string(d.Text), d.Fault)
				if d.Fault != nil {
					got = fmt.Sprint(err, *d.Fault)
				}
				if round == 0 {
					first = got
				} else if got != first && err == nil {
					t.Fatalf("%s:\n%s\nagain:\n%s", a.Name(), first, got)
				}
			}
			_ = dec.Whole(data, &Delta{Keep: true})
			_ = a.Fault(data)
			_ = a.List(data)
		}
	})
}
