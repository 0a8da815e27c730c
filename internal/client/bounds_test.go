package client

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// arriving is an arrival without a kernel's stamp.
func arriving(at int64) stamp.Arrival { return stamp.Arrival{Time: at} }

// pour feeds what next gives until the answer has ended, and says how many
// bytes it took.
func pour(x *Exchange, next func(i int) string) (taken int64) {
	for i := range 1 << 22 {
		b := next(i)
		if b == "" {
			x.Close(int64(i)+1, nil)
			return taken
		}
		taken += int64(len(b))
		if x.Feed([]byte(b), arriving(int64(i)+1)) {
			return taken
		}
	}
	return taken
}

// Endless answers end, soon, and what came of them is kept.
func TestBounds(t *testing.T) {
	events := strings.Repeat(event(textEvent("y")), 30)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	for range 3000 {
		_, _ = z.Write([]byte(events))
	}
	_ = z.Close()
	endless := func(head, rest string) func(int) string {
		return func(i int) string {
			if i == 0 {
				return head
			}
			return rest
		}
	}
	const plain = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
	var choices []string
	for i := range 20_000 {
		choices = append(choices, fmt.Sprintf(`{"index":%d,"delta":{"content":"x"}}`, i))
	}
	many := `{"choices":[` + strings.Join(choices, ",") + "]}"
	one := func(i int) string { return fmt.Sprintf(`{"choices":[{"index":%d,"delta":{"content":"x"}}]}`, i) }
	for _, c := range []struct {
		name   string
		next   func(int) string
		stream bool
		class  string
		detail string
		chunks int32 // at least
		most   int64 // bytes
	}{
		{"tokens without end", endless(plain, events), true, record.ErrOversized, "events", freeEvents, 8 << 20},
		{"events without text", endless(plain, strings.Repeat(event(choice("{}")), 30)), true, record.ErrOversized, "events", 0, 8 << 20},
		{"a line without end", endless(plain, "data: "+strings.Repeat("x", 8<<10)), true, record.ErrOversized, "bytes", 0, 18 << 20},
		{"an event without end", endless(plain, strings.Repeat("data: x\n", 1000)), true, record.ErrOversized, "bytes", 0, 18 << 20},
		{"comments without end", endless(plain, strings.Repeat(": ping\n\n", 1000)), true, record.ErrOversized, "bytes", 0, 18 << 20},
		{"a document without end", endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", strings.Repeat(" ", 8<<10)), true, record.ErrOversized, "bytes", 0, 18 << 20},
		{"a whole answer without end", endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 8<<10)), false, record.ErrOversized, "bytes", 0, 18 << 20},
		{"an error without end", endless("HTTP/1.1 500 No\r\n\r\n", strings.Repeat("e", 8<<10)), true, "http_500", "eee", 0, 18 << 20},
		{"headers without end", endless("HTTP/1.1 200 OK\r\n", "x: y\r\n"), true, record.ErrOversized, "the headers of the response exceed 64 KiB", 0, 1 << 17},
		{"interim answers without end", endless("", "HTTP/1.1 102 Processing\r\n\r\n"), true, record.ErrOversized, "the headers of the response exceed 64 KiB", 0, 1 << 17},
		{"chunks of nothing but their sizes", endless(streamHead, "1;"+strings.Repeat("x", 4<<10)+"\r\n:\r\n"), true, record.ErrOversized, "bytes", 0, 18 << 20},
		{"gzip of events", func(i int) string {
			if i == 0 {
				return "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
			}
			at := (i - 1) * 4096
			if at >= zipped.Len() {
				return ""
			}
			return string(zipped.Bytes()[at:min(at+4096, zipped.Len())])
		}, true, record.ErrOversized, "events", freeEvents, 1 << 20},
		{"20,000 choices in one event", endless(plain, event(many)), true, record.ErrOversized, "choices", 0, 2 << 20},
		{"20,000 choices in as many", func(i int) string {
			if i == 0 {
				return plain
			}
			return event(one(i - 1))
		}, true, record.ErrOversized, "choices", 2, 1 << 12},
		{"20,000 choices of a whole answer", func(i int) string {
			return []string{answered("200 OK", jsonType, many), ""}[min(i, 1)]
		}, false, record.ErrOversized, "choices", 0, 2 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := &kept{}
			x := NewExchange(api.Chat)
			x.Sink, x.Request, x.Asked, x.Memory = sink, []byte("POST"), api.Asked{Tokens: 4, Choices: 2}, NewMemory(64<<20)
			x.Begin(blank(c.stream, false))
			x.MarkSent(0)
			first := c.next(0)
			at := 0
			if first == "" {
				at = 1
			}
			taken := pour(x, func(i int) string { return c.next(i + at) })
			r := x.Row
			if r.Outcome != record.Failed || r.Error != c.class || !strings.Contains(r.Detail, c.detail) {
				t.Errorf("%v %s %q, want %s of %s", r.Outcome, r.Error, r.Detail, c.class, c.detail)
			}
			if int(r.Chunks) != len(sink.chunks) || r.Chunks < c.chunks {
				t.Errorf("%d chunks, %d in the row, want %d at least", len(sink.chunks), r.Chunks, c.chunks)
			}
			if taken > c.most {
				t.Errorf("took %d bytes", taken)
			}
			if n := x.Memory.Used(); n != 0 || x.held != 0 {
				t.Errorf("%d bytes are still held", n)
			}
			if c.stream && x.IsReusable() {
				t.Error("its connection is used again")
			}
			if n := x.bufferBytes(); n > 4*api.MaxKept {
				t.Errorf("buffers of %d bytes are kept", n)
			}
		})
	}
}

// Honest answers stay far below the bounds: one event for each letter, with
// twenty candidates of each token and reasoning that the limit does not count.
func TestBoundsLeaveHonestAnswersAlone(t *testing.T) {
	letter := choice(`{"content":"y"}`)
	rich := strings.Replace(letter, `"logprobs":null`, `"logprobs":{"content":[{"token":"y","logprob":-1,"bytes":[121],"top_logprobs":[`+
		strings.TrimSuffix(strings.Repeat(`{"token":" yes","logprob":-0.123456789,"bytes":[32,121,101,115]},`, 20), ",")+`]}]}`, 1)
	for _, c := range []struct {
		name   string
		asked  api.Asked
		events []string
	}{
		{"an event a letter", api.Asked{Tokens: 2000}, slicesOf(8*2000, letter)},
		{"candidates", api.Asked{Tokens: 1000, Candidates: 20}, slicesOf(1000, rich)},
		{"long reasoning", api.Asked{Tokens: 16}, slicesOf(30_000, choice(`{"reasoning_content":"y"}`))},
		{"length left to the server", api.Asked{}, slicesOf(200_000, letter)},
	} {
		x := NewExchange(api.Chat)
		x.Sink, x.Asked = discard{}, c.asked
		x.Begin(blank(true, false))
		x.MarkSent(0)
		x.Feed([]byte(streamHead), arriving(1))
		for i, e := range c.events {
			x.Feed([]byte(chunk(event(e))), arriving(int64(i)+2))
		}
		x.Feed([]byte(chunk(event(finish("stop")))+chunk(event(done))+lastChunk), arriving(1<<30))
		if x.Row.Outcome != record.OK || int(x.Row.Chunks) != len(c.events) {
			t.Errorf("%s: %v %s %s, %d chunks", c.name, x.Row.Outcome, x.Row.Error, x.Row.Detail, x.Row.Chunks)
		}
	}
}

func slicesOf(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// All answers together hold no more than the budget, and what does not fit is
// the client's own failure.
func TestMemory(t *testing.T) {
	m := NewMemory(4 << 20)
	var all []*Exchange
	for range 16 {
		x := NewExchange(api.Chat)
		x.Sink, x.Asked, x.Memory = discard{}, api.Asked{Tokens: 100_000}, m
		x.Begin(blank(false, false))
		x.MarkSent(0)
		x.Feed([]byte("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"), arriving(1))
		all = append(all, x)
	}
	block := bytes.Repeat([]byte(" "), 8<<10)
	failed := 0
	for i := range 200 {
		for _, x := range all {
			x.Feed(block, arriving(int64(i)+2))
			if n := m.Used(); n > 4<<20 {
				t.Fatalf("%d bytes held", n)
			}
		}
	}
	for _, x := range all {
		x.Feed([]byte(`{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`), arriving(1000))
		x.Close(1001, nil)
		switch {
		case x.Row.Error == record.ErrOwnMemory && x.Row.Outcome == record.Failed:
			failed++
		case x.Row.Outcome != record.OK:
			t.Errorf("%v %s %s", x.Row.Outcome, x.Row.Error, x.Row.Detail)
		}
	}
	if failed == 0 || failed == len(all) {
		t.Errorf("%d of %d found no room", failed, len(all))
	}
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		output       int
		body, option string
		field        string
		want         api.Asked
	}{
		{128, "", "", "max_tokens", api.Asked{Tokens: 128}},
		{workload.Unknown, "", "", "max_tokens", api.Asked{}},
		{128, "", `{"max_tokens":9}`, "max_tokens", api.Asked{Tokens: 9}},
		{128, "", `{"max_tokens":null}`, "max_tokens", api.Asked{}},
		{128, "", `{"max_completion_tokens":900}`, "max_tokens", api.Asked{Tokens: 900}},
		{128, "", `{"max_tokens":900}`, "max_completion_tokens", api.Asked{Tokens: 900}},
		{128, `{"max_tokens":7,"n":2}`, `{"n":3}`, "max_tokens", api.Asked{Tokens: 7, Choices: 3}},
		{128, "", `{"logprobs":true,"top_logprobs":20}`, "max_tokens", api.Asked{Tokens: 128, Candidates: 20}},
		{128, "", `{"logprobs":5}`, "max_tokens", api.Asked{Tokens: 128, Candidates: 5}},
		{128, "", `{"n":"two","max_tokens":-4}`, "max_tokens", api.Asked{Tokens: 128}},
	} {
		r := &workload.Request{Output: c.output}
		o := api.Options{MaxField: c.field}
		if c.body != "" {
			r.Body = []byte(c.body)
		}
		if c.option != "" {
			o.Body = []byte(c.option)
		}
		if got := (api.Chat).Asked(r, o); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	huge := api.Asked{Tokens: 1<<31 - 1, Choices: 1<<31 - 1, Candidates: 1<<31 - 1}
	if b := boundsOf(huge, 1<<62); b.events < 0 || b.bytes < 0 || b.tokens < 0 {
		t.Errorf("overflow: %+v", b)
	}
}

// A usage that cannot be is in no row; the tokens are then those of the
// events, if they say, and otherwise not known.
func TestUsageThatCannotBe(t *testing.T) {
	with := func(fields string) string { return `{"choices":[],"usage":{` + fields + `}}` }
	const unset = record.Unset
	type counts struct{ prompt, cached, completion, reasoning int32 }
	for _, c := range []struct {
		name   string
		events []string
		want   counts
		doubt  string // "" for none
	}{
		{"honest", []string{textEvent("four"), finish("stop"), usage(4), done}, counts{9, unset, 4, unset}, ""},
		{"as many as asked for, some without text", []string{textEvent("x"), finish("length"), usage(64), done}, counts{9, unset, 64, unset}, ""},
		{"a few more, that open and end it", []string{textEvent("x"), finish("length"), usage(84), done}, counts{9, unset, 84, unset}, ""},
		{"more than asked for, and the text shows them", []string{textEvent(strings.Repeat("y ", 500)), finish("stop"), usage(990), done}, counts{9, unset, 990, unset}, ""},
		{"more than asked for and than there is text", []string{textEvent("x"), finish("stop"), usage(999), done}, counts{9, unset, unset, unset}, "999 completion tokens, where 128 tokens were requested and 1 bytes"},
		{"more than any number", []string{textEvent("x"), finish("stop"), with(`"prompt_tokens":9,"completion_tokens":1000000000000000000`), done}, counts{9, unset, unset, unset}, "its completion tokens are no count"},
		{"exponent", []string{textEvent("x"), finish("stop"), with(`"prompt_tokens":9,"completion_tokens":1e18`), done}, counts{9, unset, unset, unset}, "its completion tokens are no count"},
		{"honest exponent", []string{textEvent("x"), finish("stop"), with(`"prompt_tokens":9e0,"completion_tokens":0.4e1`), done}, counts{9, unset, 4, unset}, ""},
		{"negative", []string{textEvent("x"), finish("stop"), with(`"prompt_tokens":-9,"completion_tokens":4`), done}, counts{unset, unset, 4, unset}, "its prompt tokens are no count"},
		{"broken", []string{textEvent("x"), finish("stop"), with(`"completion_tokens":4.5`), done}, counts{unset, unset, unset, unset}, "its completion tokens are no count"},
		{"after the end mark", []string{textEvent("x"), finish("stop"), usage(1), done, usage(40)}, counts{9, unset, 1, unset}, "it came after the end mark"},
		{"more cached than there are", []string{textEvent("x"), finish("stop"), with(`"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":10}`), done}, counts{9, unset, 1, unset}, "10 tokens cached of a prompt of 9"},
		{"more reasoning than there is", []string{textEvent("x"), finish("stop"), with(`"prompt_tokens":9,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":2}`), done}, counts{9, unset, 1, unset}, "2 reasoning tokens of 1"},
	} {
		x, chunks := play(true, nil, read{streamed(c.events...), 10, false})
		r := x.Row
		if got := (counts{r.PromptTokens, r.CachedTokens, r.CompletionTokens, r.ReasoningTokens}); got != c.want || r.Outcome != record.OK || len(chunks) != 1 {
			t.Errorf("%s: %v %s %+v, want %+v", c.name, r.Outcome, r.Detail, got, c.want)
		}
		if doubted := strings.HasPrefix(r.Detail, record.UsageDoubt); doubted != (c.doubt != "") || !strings.Contains(r.Detail, c.doubt) {
			t.Errorf("%s: %q, want %q", c.name, r.Detail, c.doubt)
		}
	}

	// Tokens of single events are believed as long as they can be.
	counted := func(n int) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":9,"completion_tokens":%d}}`, n)
	}
	x, chunks := play(true, nil, read{streamed(counted(1), counted(3), counted(1<<30), finish("stop"), done), 10, false})
	if len(chunks) != 3 || chunks[0].Tokens != 1 || chunks[1].Tokens != 2 || chunks[2].Tokens != 0 || x.Row.CompletionTokens != unset || !strings.HasPrefix(x.Row.Detail, record.UsageDoubt) {
		t.Errorf("%+v, %d, %q", chunks, x.Row.CompletionTokens, x.Row.Detail)
	}
	ids := `{"choices":[{"index":0,"delta":{"content":"x"},"token_ids":[` + strings.TrimSuffix(strings.Repeat("1,", 500), ",") + `]}]}`
	x, chunks = play(true, nil, read{streamed(textEvent("a"), ids, finish("stop"), done), 10, false})
	if len(chunks) != 2 || chunks[1].Tokens != 0 || !strings.Contains(x.Row.Detail, "500 tokens in the events") {
		t.Errorf("%+v, %q", chunks, x.Row.Detail)
	}
}

// What is taken of an answer after its end is in the budget until it has been, and no
// large buffer is kept for the next answer.
func TestMemoryOfTakenAnswers(t *testing.T) {
	m := NewMemory(8 << 20)
	x := NewExchange(api.Triton)
	x.Sink, x.Asked, x.Memory, x.Spell, x.Keep = discard{}, api.Asked{Tokens: 100_000}, m, true, true
	x.Begin(blank(true, false))
	x.MarkSent(0)
	x.Feed([]byte("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"), arriving(1))
	for i := range 2000 {
		text := strings.Repeat("a", 100*(i+1)) // each repeats those before it
		if i >= 400 {
			text = strings.Repeat("a", 40000+i)
		}
		x.Feed([]byte(`data: {"text_output":"`+text+`"}`+"\n\n"), arriving(int64(i)+2))
	}
	x.Feed([]byte(`data: {"text_output":"`+strings.Repeat("a", 1<<20)+`"}`+"\n\n"), arriving(5000))
	if n := m.Used(); n < 3<<20 { // the text three times: as text, spelt, and to compare with
		t.Errorf("%d bytes held while it comes", n)
	}
	x.Close(6000, nil)
	if n := m.Used(); n < 2<<20 || x.decoderBytes() != 0 || x.Row.Outcome != record.OK {
		t.Errorf("%d bytes held at the end, %d to compare with, %s", n, x.decoderBytes(), x.Row.Detail)
	}
	if chunks, text := x.TakeSpelt(); len(chunks) != 2001 || len(text) != 1<<20 || len(x.Text()) != 1<<20 {
		t.Errorf("%d chunks of %d bytes", len(chunks), len(text))
	}
	if x.Release(); m.Used() != 0 || x.takenBytes() != 0 {
		t.Errorf("%d bytes are still held, %d kept", m.Used(), x.takenBytes())
	}
}
