package api

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An event read by comparing means what it means when it is scanned, whatever
// came before it.
func FuzzTemplate(f *testing.F) {
	chat := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}]}`
	text := `{"id":"cmpl-1","choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":null,"token_ids":null}],"usage":null}`
	call := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"%s"}}]}}]}`
	both := `{"choices":[{"index":1,"delta":{"reasoning":"%s","reasoning_content":"abc"},"finish_reason":null}]}`
	// As vLLM 0.32 tells its usage with every event, and forms that are like it.
	running := func(total, completion string) string {
		return `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":9,"total_tokens":` + total + `,"completion_tokens":` + completion + `,"completion_tokens_details":{"reasoning_tokens":` + completion + `}}}`
	}
	for _, second := range []string{"2", "10", "999999999", "1000000000", "99999999999", "02", "-2", "2.5", "2e1", "null", "", "x", "2 ", `2,"completion_tokens":7`} {
		f.Add(fmt.Sprintf(running("10", "1"), "abc"), fmt.Sprintf(running("11", second), "de"))
		f.Add(fmt.Sprintf(running("10", "1"), "abc"), fmt.Sprintf(running(second, "2"), "de"))
		f.Add(fmt.Sprintf(running(second, second), "abc"), fmt.Sprintf(running("12", "3"), "de"))
	}
	f.Add(`{"usage":{"completion_tokens":1},"choices":[{"index":0,"text":"a"}]}`, `{"usage":{"completion_tokens":2},"choices":[{"index":0,"text":"b"}]}`)
	for _, shape := range []string{chat, text, call, both} {
		for _, second := range []string{"xyz", "", `\n`, `é`, `a\"b`, `"`, `\`, "\x01", `x","finish_reason":"stop`} {
			f.Add(fmt.Sprintf(shape, "abc"), fmt.Sprintf(shape, second))
		}
	}
	f.Add(fmt.Sprintf(chat, "a"), fmt.Sprintf(text, "a"))
	f.Add(fmt.Sprintf(text, "a"), fmt.Sprintf(text, "a")+" ")
	responses := `{"type":"response.output_text.delta","sequence_number":%d,"item_id":"m","delta":"%s","logprobs":[],"obfuscation":"%s"}`
	for i, second := range []string{"xyz", "", `\n`, `"`, `x","delta":"y`} {
		f.Add(fmt.Sprintf(responses, 9, "abc", "QW"), fmt.Sprintf(responses, 9+i, second, second))
	}
	messages := `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`
	f.Add(fmt.Sprintf(messages, "a"), fmt.Sprintf(messages, "bc"))
	token := `{"index":%d,"token":{"id":%d,"text":"%s","logprob":%s,"special":false},"generated_text":null,"details":null}`
	for i, logprob := range []string{"-0.5", "0", "-1e-3", " 1", "-", "null", `"x"`, "01"} {
		f.Add(fmt.Sprintf(token, 1, 5, "ab", "-0.25"), fmt.Sprintf(token, i, 7, "cd", logprob))
	}
	f.Add(fmt.Sprintf(token, 1, 5, "ab", "-0.25"), fmt.Sprintf(token, 2, 7, "", "-0.25"))
	generate := `{"text":"%s","output_ids":[%s],"meta_info":{"id":"b3","finish_reason":null,"prompt_tokens":9,"completion_tokens":%s,"cached_tokens":0}}`
	for _, second := range [][3]string{{"Hi you", "5,6", "2"}, {" you", "6", "2"}, {`Hi\"`, "5,60", "2"}, {"Hi", "5", "1"}, {"Ho", "5,", "2"}, {"", "", "2"}, {"x", "5 ,6", "2"},
		{"Hi", "55", "1"}, {"Hi", "05", "1"}, {"Hi", `"a",[1]`, "null"}, {`Hi\u00e9`, "5,6,7", "3.0"}, {`Hi","text":"you`, "5,6", `2,"completion_tokens":3`}} {
		f.Add(fmt.Sprintf(generate, "Hi", "5", "1"), fmt.Sprintf(generate, second[0], second[1], second[2]))
		f.Add(fmt.Sprintf(generate, second[0], second[1], second[2]), fmt.Sprintf(generate, "Hi", "5", "1"))
	}
	spoken := `{"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":%s,"totalTokenCount":%[2]s,"thoughtsTokenCount":%s},"responseId":"k"}`
	for _, second := range []string{"2", "999999999", "2147483647", "02", "null", `2,"candidatesTokenCount":2e1`, `2},"usageMetadata":{"promptTokenCount":1`} {
		for _, thought := range []string{"0", "7", "2147483640", "null", "-1"} {
			f.Add(fmt.Sprintf(spoken, "a", "1", thought), fmt.Sprintf(spoken, "bc", second, thought))
			f.Add(fmt.Sprintf(spoken, "bc", second, thought), fmt.Sprintf(spoken, "a", "3", thought))
		}
	}
	triton := `{"model_name":"m","text_output":"%s"}`
	for _, second := range []string{"b", "ab", "", `a\n`} {
		f.Add(fmt.Sprintf(triton, "a"), fmt.Sprintf(triton, second))
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, a := range All() {
			if taught, ok := a.Decoder().(forgetful); ok {
				checkTemplate(t, taught, a.Decoder().(forgetful), first, second, taught.Event)
				var p Frames
				ahead := a.Decoder().(forgetful)
				checkTemplate(t, ahead, a.Decoder().(forgetful), first, second, func(_, data []byte, d *Delta) error {
					return framed(&p, ahead, data, d)
				})
			}
		}
	})
}

// framed reads an event out of a stream; one whose data spans lines as it is.
func framed(p *Frames, from Decoder, data []byte, d *Delta) error {
	if bytes.ContainsAny(data, "\r\n") {
		return from.Event(nil, data, d)
	}
	event := func(name, data []byte) error { return from.Event(name, data, d) }
	ahead := func(data []byte) (int, error) { return from.Ahead(data, d), nil }
	end := "\n\n"
	if len(data)%2 == 0 {
		end = "\r\n\r\n"
	}
	stream := append(append([]byte("data: "), data...), end...)
	err := p.Feed(stream, ahead, event)
	if p.HasPending() { // of another event
		return errors.Join(err, errJSON)
	}
	return err
}

// forgetful is a decoder that can forget its template.
type forgetful interface {
	Decoder
	forget()
}

// checkTemplate holds a decoder that compares, as it reads events, against one that scans.
func checkTemplate(t *testing.T, taught, fresh forgetful, first, second string, read func(name, data []byte, d *Delta) error) {
	taught.Reset()
	fresh.Reset()
	d, want := Delta{Keep: true}, Delta{Keep: true}
	for _, data := range []string{first, second, first, second, second} {
		d.Clear()
		want.Clear()
		fresh.forget()
		err := read(nil, []byte(data), &d)
		wantErr := fresh.Event(nil, []byte(data), &want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%T: %q after %q: %v, want %v", fresh, data, first, err, wantErr)
		}
		if err != nil {
			d.Text, want.Text = nil, nil
		} else if d.Text == nil && len(want.Text) == 0 || want.Text == nil && len(d.Text) == 0 {
			d.Text, want.Text = nil, nil
		}
		if err == nil && !cmp.Equal(d, want) {
			t.Fatalf("%T: %q after %q: %s", fresh, data, first, cmp.Diff(want, d))
		}
		if taught.Ended() != fresh.Ended() {
			t.Fatalf("%T: %q: ended %v, want %v", fresh, data, taught.Ended(), fresh.Ended())
		}
	}
}
