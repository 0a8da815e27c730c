package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/data/record"
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
	{Responses{}, "as OpenAI sends it", []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress","error":null,"output":[],"usage":null}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"m","type":"message","status":"in_progress","content":[],"role":"assistant"}}`,
		`{"type":"response.output_text.delta","sequence_number":2,"item_id":"m","output_index":0,"content_index":0,"delta":"Hi","logprobs":[],"obfuscation":"AbCdEf"}`,
		`{"type":"response.output_text.delta","sequence_number":3,"item_id":"m","output_index":0,"content_index":0,"delta":" you","logprobs":[],"obfuscation":"x"}`,
		`{"type":"response.output_text.done","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"text":"Hi you"}`,
		`{"type":"response.completed","sequence_number":5,"response":{"id":"r","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi you"}]}],"usage":{"input_tokens":8,"input_tokens_details":{"cached_tokens":4},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":11}}}`,
	}, `a2 a4 stop 8/4/3/0 ended "Hi you"`},
	{Responses{}, "as LiteLLM bridges it: no numbers, incomplete, [DONE]", []string{
		`{"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Hi"}`,
		`{"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 8, "output_tokens": 1}}}`,
		`[DONE]`,
	}, `a2 length 8/-1/1/-1 ended "Hi"`},
	{Responses{}, "the type last", []string{`{"delta":"Hi","sequence_number":2,"type":"response.output_text.delta"}`}, `a2 "Hi"`},
	{Responses{}, "reasoning that is summed up", []string{
		`{"type":"response.reasoning_summary_text.delta","delta":"Thinking"}`,
		`{"type":"response.reasoning_summary_text.delta","delta":" on"}`,
		`{"type":"response.output_text.delta","delta":"Hi"}`,
	}, `s8 s3 a2 "Hi"`},
	{Responses{}, "a call", []string{
		`{"type":"response.output_item.added","item":{"arguments":"","name":"weather","type":"function_call"}}`,
		`{"type":"response.function_call_arguments.delta","delta":"{\"a\""}`,
		`{"type":"response.function_call_arguments.done","arguments":"{\"a\":1}"}`,
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","name":"weather","arguments":"{\"a\":1}"}]}}`,
	}, `t7 t4 tool_calls ended`},
	{Responses{}, "a refusal, and logprobs", []string{
		`{"type":"response.refusal.delta","delta":"No"}`,
		`{"type":"response.output_text.delta","delta":"ab","logprobs":[{"token":"a","logprob":-1},{"token":"b","logprob":-1}]}`,
	}, `f2 a2=2 "ab"`},
	{Responses{}, "failed", []string{
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"the model broke"}}}`,
	}, "fault the model broke"},
	{Responses{}, "an error event", []string{`{"type":"error","code":"x","message":"rate limited","param":null,"sequence_number":3}`}, "fault rate limited"},
	{Responses{}, "an error object", []string{`{"error":{"message":"boom","type":"InternalServerError"}}`}, "fault boom"},
	{Responses{}, "events that are not known", []string{`{"type":"response.image.partial","delta":"AAAA"}`, `{"type":"keepalive"}`, `{}`}, ""},

	{Anthropic{}, "as Anthropic sends it", []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type": "ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"!"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`,
		`{"type":"message_stop"}`,
	}, `a5 a1 stop 40/5/15/-1 ended "Hello!"`},
	{Anthropic{}, "as LiteLLM bridges it: the prompt is counted at the end", []string{
		`{"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}}`,
		`{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}`,
		`{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"input_tokens": 10, "output_tokens": 3}}`,
		`{"type": "message_stop"}`,
	}, `a2 length 10/-1/3/-1 ended "Hi"`},
	{Anthropic{}, "a usage that says less at the end", []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":7}}`,
	}, `stop 30/5/7/-1 ended`},
	{Anthropic{}, "cut before its end: nothing is counted", []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`,
	}, `25/-1/-1/-1`},
	{Anthropic{}, "thinking, signed, and one that is hidden", []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Yes"}}`,
	}, `r6 a3 "Yes"`},
	{Anthropic{}, "a call", []string{
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\""}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":89}}`,
	}, `t11 t7 tool_calls -1/-1/89/-1 ended`},
	{Anthropic{}, "an error", []string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, "fault Overloaded"},
	{Anthropic{}, "a usage that is none", []string{
		`{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"input_tokens":-3,"output_tokens":2.5}}`,
	}, "pause_turn -2/-1/-2/-1 ended"},
}

func TestForms(t *testing.T) {
	for _, c := range forms {
		if got := told(c.api.Decoder(), c.events...); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.api.Name(), c.name, got, c.want)
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
				d := Delta{Keep: true, Most: 4}
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
