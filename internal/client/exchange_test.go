package client

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/record"
)

const testSecret = "sk-test-0123456789abcdef"

// testAsked is what the recorded answers were asked for, at most.
var testAsked = api.Asked{Tokens: 64, Choices: 2}

// kept is a sink that keeps chunks.
type kept struct{ chunks []record.Chunk }

func (k *kept) Chunk(c record.Chunk) { k.chunks = append(k.chunks, c) }
func (k *kept) Done(*record.Row)     {}

// blank is the row of a request that is about to be sent.
func blank(stream, reused bool) record.Row {
	r := record.BlankRow()
	r.Stream, r.Reused = stream, reused
	return r
}

// read is what one read of a socket gives.
type read struct {
	text string
	at   int64
	more bool
}

// play gives reads to a new exchange and closes it with err unless the
// answer is complete before. The request is sent at 0.
func play(stream bool, err error, reads ...read) (*Exchange, []record.Chunk) {
	return playAs(api.Chat, stream, err, reads...)
}

// playAs does so with an answer in another API.
func playAs(a api.API, stream bool, err error, reads ...read) (*Exchange, []record.Chunk) {
	sink := &kept{}
	x := NewExchange(a)
	x.Sink, x.Secret, x.Request, x.Asked = sink, testSecret, []byte("POST"), testAsked
	x.Begin(blank(stream, false))
	x.MarkSent(0)
	for _, r := range reads {
		if x.Feed([]byte(r.text), stamp.Arrival{Time: r.at, Kernel: true, More: r.more}) {
			return x, sink.chunks
		}
	}
	at := int64(1000)
	if n := len(reads); n > 0 {
		at += reads[n-1].at
	}
	x.Close(at, err)
	return x, sink.chunks
}

// digest says what an answer came to, all but its times.
func digest(x *Exchange, chunks []record.Chunk) string {
	r := x.Row
	var s strings.Builder
	fmt.Fprintf(&s, "%v", r.Outcome)
	if r.Error != "" {
		s.WriteString(" " + r.Error)
	}
	fmt.Fprintf(&s, " %d", r.Status)
	if r.Finish != "" {
		s.WriteString(" " + r.Finish)
	}
	if !r.Stream {
		s.WriteString(" whole")
	}
	fmt.Fprintf(&s, " text=%d", r.TextBytes)
	if len(chunks) > 0 {
		fmt.Fprintf(&s, " first=%d chunks=", r.FirstTokens)
		for i, c := range chunks {
			if i > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, "%d%c", c.Tokens, "artf"[c.Kind])
			if c.Choice > 0 {
				fmt.Fprintf(&s, "@%d", c.Choice)
			}
		}
	}
	if int(r.Chunks) != len(chunks) {
		fmt.Fprintf(&s, " COUNTED %d", r.Chunks)
	}
	if r.PromptTokens >= 0 || r.CompletionTokens >= 0 {
		fmt.Fprintf(&s, " usage=%d/%d/%d/%d", r.PromptTokens, r.CachedTokens, r.CompletionTokens, r.ReasoningTokens)
	}
	if r.HiddenTokens > 0 {
		fmt.Fprintf(&s, " hidden=%d", r.HiddenTokens)
	}
	if r.RetryAfter >= 0 {
		fmt.Fprintf(&s, " retry=%d", r.RetryAfter)
	}
	s.WriteByte(' ')
	for i, at := range []int64{r.Headers, r.FirstEvent, r.FirstToken, r.FirstAnswer, r.LastToken, r.Done} {
		if at >= 0 {
			s.WriteByte("HETALD"[i])
		}
	}
	if x.IsReusable() {
		s.WriteString(" reusable")
	}
	if r.Detail != "" {
		s.WriteString(" | " + r.Detail)
	}
	return s.String()
}

const (
	streamHead = "HTTP/1.1 200 OK\r\ndate: Fri, 20 Nov 2026 21:10:00 GMT\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
	done       = "[DONE]"
)

func chunk(body string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(body), body) }

func event(data string) string { return "data: " + data + "\n\n" }

// streamed is a whole answer: one chunk for each event.
func streamed(data ...string) string {
	s := streamHead
	for _, d := range data {
		s += chunk(event(d))
	}
	return s + lastChunk
}

// answered is a whole answer that is not a stream.
func answered(status, contentType, body string, headers ...string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n%s\r\n%s", status, contentType, len(body), strings.Join(headers, ""), body)
}

func textEvent(content string) string { return choice(`{"content":"` + content + `"}`) }

func choice(delta string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"` + reason + `"}]}`
}

func usage(completion int) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"total_tokens":%d,"completion_tokens":%d}}`, 9+completion, completion)
}

// counted is an event with text whose usage says how many tokens there are by now.
func counted(content string, completion int) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":"%s"}}],"usage":{"prompt_tokens":9,"completion_tokens":%d}}`, content, completion)
}

// sglang is a chunk as SGLang writes it: finish_reason and matched_stop always stand
// there, usage where it was asked for on every chunk.
func sglang(delta, end, usage string) string {
	reason, stop := "null", "null"
	if end != "null" {
		reason, stop = `"stop"`, "2"
	}
	if usage == "" {
		usage = `"usage":null`
	}
	return `{"id":"1f","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta +
		`,"logprobs":null,"finish_reason":` + reason + `,"matched_stop":` + stop + `}],` + usage + `}`
}

// sglangUsage has reasoning_tokens beside the others, and details only of cached ones.
func sglangUsage(completion int) string {
	return fmt.Sprintf(`"usage":{"prompt_tokens":9,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":null,"reasoning_tokens":0}`, 9+completion, completion)
}

const role = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`

const jsonType = "application/json"

// answers are whole answers as servers send them, and broken ones.
var answers = []struct {
	name  string
	bytes string
	whole bool  // asked for an answer in one piece
	err   error // how the connection ends, if the answer does not
	want  string
}{
	{name: "vLLM", bytes: streamed(role, textEvent("Hi"), textEvent(" there"), `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"."},"logprobs":null,"finish_reason":"length","stop_reason":null}]}`, usage(3), done),
		want: "ok 200 length text=9 first=-1 chunks=0a,0a,0a usage=9/-1/3/-1 HETALD reusable"},
	{name: "vLLM with usage in every event", bytes: streamed(counted("", 0), counted("Hi", 1), counted(" you all", 4), counted("", 5), counted("!", 6), finish("stop"), usage(7), done),
		want: "ok 200 stop text=11 first=1 chunks=1a,3a,2a usage=9/-1/7/-1 HETALD reusable"},
	{name: "first event of several tokens by usage", bytes: streamed(counted("Hi you", 2), counted("!", 3), finish("stop"), done),
		want: "ok 200 stop text=7 first=2 chunks=2a,1a usage=9/-1/3/-1 HETALD reusable"},
	{name: "first event behind tokens without text", bytes: streamed(counted("", 1), counted("é", 2), counted("!", 3), finish("stop"), done),
		want: "ok 200 stop text=3 first=2 chunks=2a,1a usage=9/-1/3/-1 HETALD reusable"},
	{name: "usage that stays at zero until the end", bytes: streamed(counted("Hi", 0), counted("!", 0), counted("?", 3), finish("stop"), done),
		want: "ok 200 stop text=4 first=-1 chunks=0a,0a,0a usage=9/-1/3/-1 HETALD reusable"},
	{name: "OpenAI", bytes: streamed(strings.Replace(role, "}]}", `}],"usage":null,"obfuscation":"ab"}`, 1), strings.Replace(textEvent("Hi"), "}]}", `}],"usage":null,"obfuscation":"Zr8g"}`, 1), finish("stop"),
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":20,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0}}}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/4/20/0 HETALD reusable"},
	{name: "hidden reasoning", bytes: streamed(role, textEvent("Hi"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":65,"completion_tokens_details":{"reasoning_tokens":64}}}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/65/64 hidden=64 HETALD reusable"},
	{name: "hidden reasoning with usage in every event", bytes: streamed(`{"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":66,"completion_tokens_details":{"reasoning_tokens":64}}}`, finish("stop"), done),
		want: "ok 200 stop text=2 first=2 chunks=2a usage=9/-1/66/64 hidden=64 HETALD reusable"},
	{name: "llama.cpp", bytes: "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n" +
		chunk(": \n\n") + chunk(event(choice(`{"role":"assistant","content":null}`))) + chunk(event(textEvent("Hi"))) + chunk(event(`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":{"prompt_n":3,"predicted_n":1}}`)) + chunk(event(done)) + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "SGLang with reasoning", bytes: streamed(role, choice(`{"role":null,"content":null,"reasoning_content":"We","tool_calls":null}`), choice(`{"content":"Paris","reasoning_content":null}`), finish("stop"),
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":null,"reasoning_tokens":1}}`, done),
		want: "ok 200 stop text=7 first=-1 chunks=0r,0a usage=9/-1/2/-1 HETALD reusable"},
	// With continuous_usage_stats each of SGLang's chunks counts what has come by then,
	// a chunk of several tokens (--stream-interval) too; the role, the reason and the
	// whole usage stand in chunks of their own.
	{name: "SGLang with usage in every event", bytes: streamed(sglang(`{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null}`, "null", ""),
		sglang(`{"role":null,"content":null,"reasoning_content":"We","tool_calls":null}`, "null", sglangUsage(1)), sglang(`{"role":null,"content":null,"reasoning_content":" say","tool_calls":null}`, "null", sglangUsage(2)),
		sglang(`{"role":null,"content":"Paris is","reasoning_content":null,"tool_calls":null}`, "null", sglangUsage(4)), sglang(`{"role":null,"content":".","reasoning_content":null,"tool_calls":null}`, "null", sglangUsage(5)),
		sglang(`{"role":null,"content":null,"reasoning_content":null,"tool_calls":null}`, "stop", ""),
		`{"id":"1f","object":"chat.completion.chunk","created":1,"choices":[],"model":"m",`+sglangUsage(5)+`}`, done),
		want: "ok 200 stop text=15 first=1 chunks=1r,1r,2a,1a usage=9/-1/5/-1 HETALD reusable"},
	{name: "streamed reasoning is not hidden", bytes: streamed(choice(`{"reasoning":"We"}`), textEvent("Hi"), finish("stop"), `{"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":1,"completion_tokens_details":{"reasoning_tokens":1}}}`, done),
		want: "ok 200 stop text=4 first=-1 chunks=0r,0a usage=1/-1/2/1 HETALD reusable"},
	{name: "only reasoning", bytes: streamed(choice(`{"reasoning":"We"}`), finish("length"), done),
		want: "ok 200 length text=2 first=-1 chunks=0r HETLD reusable"},
	{name: "TGI", bytes: "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n" +
		chunk("data:"+textEvent("Hi")+"\n\n") + chunk("data:"+finish("eos_token")+"\n\n") + chunk("data: [DONE]\n\n") + lastChunk,
		want: "ok 200 eos_token text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "tool calls", bytes: streamed(choice(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get","arguments":""}}]}`),
		choice(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}`), choice(`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"put","arguments":""}}]}`), finish("tool_calls"), done),
		want: "ok 200 tool_calls text=10 first=-1 chunks=0t,0t,0t HETALD reusable"},
	{name: "refusal", bytes: streamed(choice(`{"refusal":"No"}`), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0f HETALD reusable"},
	{name: "two choices", bytes: streamed(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`, `{"choices":[{"index":1,"delta":{"content":"c"},"finish_reason":"stop"}]}`, finish("length"), usage(3), done),
		want: "ok 200 length text=3 first=-1 chunks=0a,0a@1,0a@1 usage=9/-1/3/-1 HETALD reusable"},
	{name: "two choices with usage of their own", bytes: streamed(counted("a", 1), strings.Replace(counted("b", 1), `"index":0`, `"index":1`, 1), counted("c", 2), finish("stop"), usage(3), done),
		want: "ok 200 stop text=3 first=1 chunks=1a,0a@1,0a usage=9/-1/3/-1 HETALD reusable"},
	{name: "token ids", bytes: streamed(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi you"},"token_ids":[1,2]}]}`, `{"choices":[{"index":0,"delta":{"reasoning":"a","content":"b"},"token_ids":[3,4,5]}]}`, finish("stop"), done),
		want: "ok 200 stop text=8 first=2 chunks=2a,3a HETALD reusable"},
	{name: "completions", bytes: streamed(`{"object":"text_completion","choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}`, `{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}`, usage(2), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/2/-1 HETALD reusable"},
	{name: "characters over several bytes", bytes: streamed(textEvent("é"), textEvent("😀"), textEvent(`\u00e9\ud83d\ude00`), finish("stop"), done),
		want: "ok 200 stop text=12 first=-1 chunks=0a,0a,0a HETALD reusable"},
	{name: "comments and CRLF", bytes: streamHead + chunk(": PROCESSING\r\n\r\n") + chunk("event: message\r\nid: 1\r\ndata: "+textEvent("Hi")+"\r\n\r\n") + chunk(": ping\r\n\r\ndata: "+finish("stop")+"\r\n\r\ndata: [DONE]\r\n\r\n") + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "[DONE] missing", bytes: streamed(textEvent("Hi"), finish("stop")),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "finish missing", bytes: streamed(textEvent("Hi"), done),
		want: "ok 200 text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "neither finish nor [DONE]", bytes: streamed(textEvent("Hi")),
		want: "failed unfinished 200 text=2 first=-1 chunks=0a HETALD reusable | the stream ended without a finish reason or an end mark"},
	{name: "last empty line missing", bytes: streamHead + chunk(event(textEvent("Hi"))+event(finish("stop"))+"data: [DONE]") + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "cut before the finish", bytes: streamHead + chunk(event(textEvent("Hi"))),
		want: "failed closed 200 text=2 first=-1 chunks=0a HETALD | the connection was closed before the answer's end"},
	{name: "cut in an event", bytes: streamHead + chunk(event(textEvent("Hi")))[:100],
		want: "failed closed 200 text=0 HD | the connection was closed before the answer's end"},
	{name: "cut after the finish", bytes: streamHead + chunk(event(textEvent("Hi"))+event(finish("stop"))),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD"},
	{name: "cut after [DONE]", bytes: streamHead + chunk(event(textEvent("Hi"))+event(done)),
		want: "ok 200 text=2 first=-1 chunks=0a HETALD"},
	{name: "cut after [DONE] without a token", bytes: streamHead + chunk(event(done)),
		want: "failed empty 200 text=0 HED | the response has no tokens"},
	{name: "reset before the finish", bytes: streamHead + chunk(event(textEvent("Hi"))), err: syscall.ECONNRESET,
		want: "failed reset 200 text=2 first=-1 chunks=0a HETALD | connection reset by the server"},
	{name: "reset after the finish", bytes: streamHead + chunk(event(textEvent("Hi"))+event(finish("stop"))), err: syscall.ECONNRESET,
		want: "failed reset 200 stop text=2 first=-1 chunks=0a HETALD | connection reset by the server"},
	{name: "reset after [DONE]", bytes: streamHead + chunk(event(textEvent("Hi"))+event(finish("stop"))+event(done)), err: syscall.ECONNRESET,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD"},
	{name: "until close", bytes: "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(textEvent("Hi")) + event(finish("stop")),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD"},
	{name: "until close, cut", bytes: "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(textEvent("Hi")),
		want: "failed unfinished 200 text=2 first=-1 chunks=0a HETALD | the stream ended without a finish reason or an end mark"},
	{name: "until close, reset", bytes: "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(textEvent("Hi")), err: syscall.ECONNRESET,
		want: "failed reset 200 text=2 first=-1 chunks=0a HETALD | connection reset by the server"},
	{name: "error event", bytes: streamed(textEvent("Hi"), `{"error":{"message":"EngineCore died, key `+testSecret+`","type":"InternalServerError","code":500}}`, done),
		want: "failed stream_error 200 text=2 first=-1 chunks=0a HETALD reusable | EngineCore died, key [redacted]"},
	{name: "error event of plain text", bytes: streamHead + chunk("event: error\ndata: \x1b[31mdied\x1b[0m\n\n") + lastChunk,
		want: "failed stream_error 200 text=0 HED reusable | [31mdied [0m"},
	{name: "malformed event", bytes: streamed(textEvent("Hi"), `{"choices":[{"index":0,"delta":{"content":"`+testSecret+strings.Repeat("x", 200), done),
		want: "failed malformed 200 text=2 first=-1 chunks=0a HETALD | cannot read event {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"[redacted]" + strings.Repeat("x", 64) + "…"},
	{name: "no tokens", bytes: streamed(role, finish("stop"), done),
		want: "failed empty 200 stop text=0 HELD reusable | the response has no tokens"},
	{name: "tokens without text", bytes: streamed(role, finish("stop"), usage(1), done),
		want: "ok 200 stop text=0 usage=9/-1/1/-1 HELD reusable"},
	{name: "no events", bytes: streamHead + lastChunk,
		want: "failed unfinished 200 text=0 HD reusable | the stream ended without a finish reason or an end mark"},
	{name: "empty answer", bytes: "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
		want: "failed unfinished 200 text=0 HD reusable | the stream ended without a finish reason or an end mark"},
	{name: "stream under another type", bytes: "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 61\r\n\r\n" +
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", want: "ok 200 text=1 first=-1 chunks=0a HETALD reusable"},
	{name: "nothing", want: "failed closed -1 text=0 D | the connection was closed before the answer's end"},
	{name: "not HTTP", bytes: "SSH-2.0-OpenSSH_9.6\r\n",
		want: `failed malformed -1 text=0 D | malformed HTTP: status line "SSH-2.0-OpenSSH_9.6"`},
	{name: "whole", whole: true, bytes: answered("200 OK", jsonType, `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`),
		want: "ok 200 stop whole text=2 usage=9/-1/2/-1 HD reusable"},
	{name: "stream ignored", bytes: answered("200 OK", jsonType, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`),
		want: "ok 200 stop whole text=2 usage=9/-1/2/-1 HD reusable"},
	{name: "whole, cut", whole: true, bytes: answered("200 OK", jsonType, `{"choices":[]}`)[:80],
		want: "failed closed 200 whole text=0 HD | the connection was closed before the answer's end"},
	{name: "whole, error", whole: true, bytes: answered("200 OK", jsonType, `{"error":"overloaded"}`),
		want: "failed stream_error 200 whole text=0 HD reusable | overloaded"},
	{name: "whole, other JSON", whole: true, bytes: answered("200 OK", jsonType, `{"hello":"`+testSecret+`"}`),
		want: `failed malformed 200 whole text=0 HD reusable | no answer in {"hello":"[redacted]"}`},
	{name: "HTML", bytes: answered("200 OK", "text/html", "<!doctype html>\n<p>Welcome"),
		want: "failed malformed 200 whole text=0 HD reusable | not JSON: <!doctype html> <p>Welcome"},
	{name: "401", bytes: answered("401 Unauthorized", jsonType, `{"error":{"message":"Incorrect API key provided: `+testSecret+`.","type":"invalid_request_error","code":"invalid_api_key"}}`),
		want: "failed auth 401 text=0 HD reusable | Incorrect API key provided: [redacted]."},
	{name: "403", bytes: answered("403 Forbidden", "text/plain", "no"), want: "failed auth 403 text=0 HD reusable | no"},
	{name: "404", bytes: answered("404 Not Found", jsonType, `{"detail":"Not Found"}`), want: `failed not_found 404 text=0 HD reusable | {"detail":"Not Found"}`},
	{name: "400 of the context, vLLM", bytes: answered("400 Bad Request", jsonType, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}}`),
		want: "failed context_length 400 text=0 HD reusable | This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."},
	{name: "400 of the context, SGLang", bytes: answered("400 Bad Request", jsonType, `{"object":"error","message":"The input (9 tokens) is longer than the model's context length (4 tokens).","type":"BadRequestError","code":400}`),
		want: `failed context_length 400 text=0 HD reusable | The input (9 tokens) is longer than the model's context length (4 tokens).`},
	{name: "400 of the context, llama.cpp", bytes: answered("400 Bad Request", jsonType, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`),
		want: "failed context_length 400 text=0 HD reusable | the request exceeds the available context size"},
	{name: "422 of the context, TGI", bytes: answered("422 Unprocessable Entity", jsonType, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000\",\"error_type\":\"validation\"}"),
		want: "failed context_length 422 text=0 HD reusable | Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"},
	{name: "400 of a parameter's name", bytes: answered("400 Bad Request", jsonType, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`),
		want: "failed bad_request 400 text=0 HD reusable | Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
	{name: "422", bytes: answered("422 Unprocessable Entity", jsonType, `{"detail":[{"loc":["body","model"],"msg":"field required"}]}`),
		want: `failed bad_request 422 text=0 HD reusable | {"detail":[{"loc":["body","model"],"msg":"field required"}]}`},
	{name: "429", bytes: answered("429 Too Many Requests", jsonType, `{"error":{"message":"Rate limit reached"}}`, "Retry-After: 12\r\n"),
		want: "failed rate_limited 429 text=0 retry=12 HD reusable | Rate limit reached"},
	{name: "500", bytes: answered("500 Internal Server Error", "text/plain", "Internal Server Error"), want: "failed http_500 500 text=0 HD reusable | Internal Server Error"},
	{name: "502 in HTML", bytes: answered("502 Bad Gateway", "text/html", "<html>\r\n<head><TITLE> 502 Bad\nGateway </TITLE></head>\r\n<body>nginx</body></html>"),
		want: "failed http_502 502 text=0 HD reusable | HTML page: 502 Bad Gateway"},
	{name: "503 without a body", bytes: "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", want: "failed http_503 503 text=0 HD"},
	{name: "500 as a stream", bytes: strings.Replace(streamed(`{"error":{"message":"no"}}`), "200 OK", "500 No", 1), want: `failed http_500 500 text=0 HD reusable | data: {"error":{"message":"no"}}`},
	{name: "error answer, cut", bytes: answered("500 No", "text/plain", "Internal Server Error")[:70], want: "failed http_500 500 text=0 HD | Inter"},
	{name: "redirect", bytes: "HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/\r\ncontent-length: 0\r\n\r\n", want: "failed redirect 307 text=0 HD reusable | it redirects to /v1/: use that path"},
	{name: "201", bytes: answered("201 Created", jsonType, `{}`), want: "failed malformed 201 text=0 HD reusable | {}"},
	{name: "gzip", bytes: zipped(true, event(role), event(textEvent("Hi")), event(finish("stop")), event(usage(1)), event(done)), want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "gzip error", bytes: zipped(false, `{"error":{"message":"no"}}`), want: "failed bad_request 400 text=0 HD reusable | no"},
	{name: "gzip that is none", bytes: answered("200 OK", "text/event-stream", "data: no gzip at all", "content-encoding: gzip\r\n"), want: "failed malformed 200 text=0 HD | malformed gzip"},
}

// oddAnswers are answers that servers and gateways in the field send, and say wrong things with.
// The sources are public reports.
var oddAnswers = []struct {
	name    string
	api     api.API // nil for chat
	bytes   string
	whole   bool
	skipped int32
	want    string
}{
	// Finish reasons that say failure.
	{name: "abort", bytes: streamed(textEvent("Hi"), finish("abort"), usage(1), done),
		want: `failed finish_abort 200 abort text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable | the server ended the response with finish reason "abort"`},
	{name: "error with an error in the choice", bytes: streamed(textEvent("Hi"), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream died"}}]}`, done),
		want: "failed finish_error 200 error text=2 first=-1 chunks=0a HETALD reusable | upstream died"},
	{name: "error in the choice without a finish reason", bytes: streamed(textEvent("Hi"), `{"choices":[{"index":0,"delta":{},"error":{"code":502,"message":"upstream died"}}]}`, done),
		want: "failed stream_error 200 text=2 first=-1 chunks=0a HETALD reusable | upstream died"},
	{name: "the second choice is cancelled", bytes: streamed(textEvent("Hi"), strings.Replace(finish("cancelled"), `"index":0`, `"index":1`, 1), finish("stop"), done),
		want: `failed finish_cancelled 200 stop text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "cancelled"`},
	{name: "whole, abort", whole: true, bytes: answered("200 OK", jsonType, `{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"abort"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`),
		want: `failed finish_abort 200 abort whole text=0 HD reusable | the server ended the response with finish reason "abort"`},
	{name: "insufficient_system_resource", bytes: streamed(textEvent("Hi"), finish("insufficient_system_resource"), done),
		want: `failed finish_insufficient_system_resource 200 insufficient_system_resource text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "insufficient_system_resource"`},
	{name: "Ollama, unload", api: api.Ollama, bytes: strings.Replace(streamHead, "text/event-stream", "application/x-ndjson", 1) +
		chunk(`{"message":{"content":"Hi"},"done":false}`+"\n"+`{"message":{"content":""},"done":true,"done_reason":"unload"}`+"\n") + lastChunk,
		want: `failed finish_unload 200 unload text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "unload"`},
	{name: "SGLang's own, abort with a message", api: api.SGLang, bytes: streamed(`{"text":"Hi","meta_info":{"finish_reason":{"type":"abort","message":"out of memory"}}}`, done),
		want: "failed finish_abort 200 abort text=2 first=-1 chunks=0a HETALD reusable | out of memory"},
	{name: "Responses, failed without an error", api: api.Responses, whole: true, bytes: answered("200 OK", jsonType, `{"status":"failed","output":[]}`),
		want: `failed finish_failed 200 failed whole text=0 HD reusable | the server ended the response with finish reason "failed"`},
	{name: "content filter", bytes: streamed(textEvent("Hi"), finish("content_filter"), done),
		want: `failed content_filter 200 content_filter text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "content_filter"`},
	{name: "Anthropic, refusal", api: api.Anthropic, bytes: streamed(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, `{"type":"message_stop"}`),
		want: `failed content_filter 200 refusal text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "refusal"`},
	{name: "a reason that nobody knows", bytes: streamed(textEvent("Hi"), finish("max_time_reached"), usage(1), done),
		want: "ok 200 max_time_reached text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "a reason that nobody knows, without text", bytes: streamed(role, finish("max_time_reached"), usage(1), done),
		want: `failed empty 200 max_time_reached text=0 usage=9/-1/1/-1 HELD reusable | the response has no text, and its finish reason is "max_time_reached"`},
	{name: "a reason of the word null", bytes: streamed(strings.Replace(textEvent("Hi"), `"finish_reason":null`, `"finish_reason":"null"`, 1)),
		want: "failed unfinished 200 text=2 first=-1 chunks=0a HETALD reusable | the stream ended without a finish reason or an end mark"},

	// Usages of zeros, and such that shrink.
	{name: "zeros after the right usage", bytes: streamed(textEvent("Hi"), finish("stop"), usage(16), `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/16/-1 HETALD reusable | usage not believed: its prompt tokens went from 9 back to 0"},
	{name: "zeros alone", bytes: streamed(textEvent("Hi"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable | usage not believed: 0 prompt tokens, where a prompt was sent"},
	{name: "zero completion tokens", bytes: streamed(textEvent("Hi"), finish("stop"), usage(0), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/-1/-1 HETALD reusable | usage not believed: 0 completion tokens, where 2 bytes of text came"},
	{name: "whole, zero prompt tokens", whole: true, bytes: answered("200 OK", jsonType, `{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":1}}`),
		want: "ok 200 stop whole text=2 usage=-1/-1/1/-1 HD reusable | usage not believed: 0 prompt tokens, where a prompt was sent"},
	{name: "usage that shrinks", bytes: streamed(counted("a", 1), counted("b", 3), finish("stop"), usage(2), done),
		want: "ok 200 stop text=2 first=1 chunks=1a,2a usage=9/-1/3/-1 HETALD reusable | usage not believed: its completion tokens went from 3 back to 2"},
	{name: "Ollama, eval_count 0", api: api.Ollama, bytes: strings.Replace(streamHead, "text/event-stream", "application/x-ndjson", 1) +
		chunk(`{"message":{"content":"Hi"},"done":false}`+"\n"+`{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":0}`+"\n") + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/-1/-1 HETALD reusable | usage not believed: 0 completion tokens, where 2 bytes of text came"},
	{name: "a usage of an empty response", bytes: streamed(role, finish("stop"), usage(0), done),
		want: "failed empty 200 stop text=0 usage=9/-1/0/-1 HELD reusable | the response has no tokens"},
	{name: "a usage that grows, and no choices", bytes: streamed(usage(1), usage(8), usage(20), done),
		want: "failed empty 200 text=0 usage=9/-1/20/-1 HED reusable | the response has no text and no finish reason"},
	{name: "empty strings", bytes: streamed(textEvent(""), textEvent(""), finish("length"), usage(20), done),
		want: "failed empty 200 length text=0 usage=9/-1/20/-1 HELD reusable | the response has no text, and its usage counts 20 tokens"},
	{name: "whole, no text", whole: true, bytes: answered("200 OK", jsonType, `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":20}}`),
		want: "failed empty 200 stop whole text=0 usage=9/-1/20/-1 HD reusable | the response has no text, and its usage counts 20 tokens"},
	{name: "Ollama, no text", api: api.Ollama, bytes: strings.Replace(streamHead, "text/event-stream", "application/x-ndjson", 1) +
		chunk(`{"message":{"content":""},"done":true,"done_reason":"length","prompt_eval_count":9,"eval_count":20}`+"\n") + lastChunk,
		want: "failed empty 200 length text=0 usage=9/-1/20/-1 HELD reusable | the response has no text, and its usage counts 20 tokens"},
	{name: "an end at once", bytes: streamed(role, finish("stop"), usage(1), done),
		want: "ok 200 stop text=0 usage=9/-1/1/-1 HELD reusable"},
	{name: "tokens that open reasoning, and no more", bytes: streamed(role, finish("length"), usage(4), done),
		want: "ok 200 length text=0 usage=9/-1/4/-1 HELD reusable"},
	{name: "reasoning alone, not shown", bytes: streamed(role, finish("length"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":64,"completion_tokens_details":{"reasoning_tokens":64}}}`, done),
		want: "ok 200 length text=0 usage=9/-1/64/64 hidden=64 HELD reusable"},
	{name: "audio alone", bytes: streamed(choice(`{"audio":{"id":"a","data":"UklGRg=="}}`), finish("stop"), usage(20), done),
		want: "ok 200 stop text=0 usage=9/-1/20/-1 HELD reusable"},
	{name: "audio that is null", bytes: streamed(choice(`{"content":null,"audio":null,"images":[]}`), finish("stop"), usage(20), done),
		want: "failed empty 200 stop text=0 usage=9/-1/20/-1 HELD reusable | the response has no text, and its usage counts 20 tokens"},
	{name: "Anthropic, encrypted reasoning alone", api: api.Anthropic, bytes: streamed(`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}`, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":9,"output_tokens":20}}`, `{"type":"message_stop"}`),
		want: "ok 200 length text=0 usage=9/-1/20/-1 HELD reusable"},
	{name: "Anthropic, no text", api: api.Anthropic, bytes: streamed(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"output_tokens":20}}`, `{"type":"message_stop"}`),
		want: "failed empty 200 stop text=0 usage=9/-1/20/-1 HELD reusable | the response has no text, and its usage counts 20 tokens"},
	{name: "Gemini, an image alone", api: api.Gemini, bytes: streamed(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"aa"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":20}}`),
		want: "ok 200 stop text=0 usage=9/-1/20/-1 HELD reusable"},

	// Bodies that are not what their headers say.
	{name: "a stream as HTML", bytes: strings.Replace(streamed(textEvent("Hi"), finish("stop"), usage(1), done), "text/event-stream", "text/html", 1),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "a stream as JSON", bytes: strings.Replace(streamed(textEvent("Hi"), finish("stop"), usage(1), done), "text/event-stream", jsonType, 1),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "a stream as HTML that begins with a comment", bytes: strings.Replace(streamHead+chunk(": ping\n\n"), "text/event-stream", "text/html", 1) + strings.TrimPrefix(streamed(textEvent("Hi"), finish("stop"), done), streamHead),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "no content", bytes: "HTTP/1.1 204 No Content\r\n\r\n",
		want: "failed malformed 204 text=0 HD reusable | the response has no content, and HTTP status 204 in place of 200"},
	{name: "created, without content", bytes: "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n",
		want: "failed malformed 201 text=0 HD reusable | the response has no content, and HTTP status 201 in place of 200"},
	{name: "deflate", bytes: answered("200 OK", "text/event-stream", "x", "content-encoding: deflate\r\n"),
		want: `failed malformed -1 text=0 D | content encoding "deflate" is not supported, and was not requested`},
	{name: "br", bytes: answered("200 OK", "text/event-stream", "x", "content-encoding: br\r\n"),
		want: `failed malformed -1 text=0 D | content encoding "br" is not supported, and was not requested`},
	{name: "more choices than requested", bytes: streamed(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"a"}},{"index":3,"delta":{"content":"b"}}]}`, done),
		want: "failed oversized 200 text=3 HED | the response has more choices than the request allows: over 2"},

	// What the server writes besides its events.
	{name: "bare JSON of an error", bytes: streamHead + chunk(`{"error":{"message":"the context is too small"}}`) + lastChunk,
		want: "failed stream_error 200 text=0 HD reusable | the context is too small"},
	{name: "bare JSON of an error over lines", bytes: streamHead + chunk("{\n  \"error\": {\n    \"message\": \"too small\"\n  }\n}\n") + lastChunk,
		want: "failed stream_error 200 text=0 HD reusable | too small"},
	{name: "a line of a proxy", bytes: streamHead + chunk(event(textEvent("Hi"))+"upstream error: read ECONNRESET\n") + lastChunk,
		want: "failed unfinished 200 text=2 first=-1 chunks=0a HETALD reusable | the server wrote: upstream error: read ECONNRESET; the stream ended without a finish reason or an end mark"},
	{name: "a line of a proxy, and the connection is cut", bytes: streamHead + chunk(event(textEvent("Hi"))+"Internal Server Error\n"),
		want: "failed closed 200 text=2 first=-1 chunks=0a HETALD | the server wrote: Internal Server Error; the connection was closed before the answer's end"},
	{name: "a page in the stream", bytes: streamHead + chunk(event(textEvent("Hi"))+"<html><head><title>504 Gateway Time-out</title></head></html>") + lastChunk,
		want: "failed unfinished 200 text=2 first=-1 chunks=0a HETALD reusable | the server wrote: HTML page: 504 Gateway Time-out; the stream ended without a finish reason or an end mark"},
	{name: "an event of an error without data", bytes: streamHead + chunk("event: error\n\n") + lastChunk,
		want: "failed unfinished 200 text=0 HD reusable | the server wrote: event: error; the stream ended without a finish reason or an end mark"},
	{name: "an error in an event without the word", bytes: streamed(textEvent("Hi"), `{"code":500,"reason":"boom"}`),
		want: `failed unfinished 200 text=2 first=-1 chunks=0a HETALD reusable | the server wrote: {"code":500,"reason":"boom"}; the stream ended without a finish reason or an end mark`},
	{name: "vLLM's older error", bytes: streamed(`{"object":"error","message":"no room","type":"BadRequestError","code":400}`, done),
		want: "failed stream_error 200 text=0 HED reusable | no room"},
	{name: "a gateway's error around another", bytes: streamed(textEvent("Hi"), `{"error":{"error":{"message":"inner"}}}`, done),
		want: "failed stream_error 200 text=2 first=-1 chunks=0a HETALD reusable | inner"},
	{name: "an error that is none", bytes: streamed(strings.Replace(textEvent("Hi"), `{"id"`, `{"error":"","id"`, 1), strings.Replace(finish("stop"), `{"id"`, `{"error":{},"id"`, 1), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},

	// Events that say nothing.
	{name: "heartbeats", skipped: 14, bytes: streamed("", "   ", "null", `""`, "ping", "[PING]", ": PROCESSING", "{}", "[null]", "0", "keep-alive", `"heartbeat"`, textEvent("Hi"), "", finish("stop"), "null", done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "a heartbeat by its name", skipped: 1, bytes: streamHead + chunk("event: ping\ndata: {\"time\":1}\n\n"+event(textEvent("Hi"))+event(finish("stop"))+event(done)) + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "null entries", bytes: streamed(`{"choices":[null]}`, `{"choices":[{"index":0,"delta":{"content":"Hi","tool_calls":[null]},"finish_reason":null}],"usage":[]}`, `{"choices":[{"index":"0","delta":null,"finish_reason":"stop"}],"usage":"n/a"}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "counts in quotes", bytes: streamed(textEvent("Hi"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":"9","completion_tokens":"1"}}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "Ollama, an empty line's null", api: api.Ollama, skipped: 1, bytes: strings.Replace(streamHead, "text/event-stream", "application/x-ndjson", 1) +
		chunk("null\n"+`{"message":{"content":"Hi"},"done":false}`+"\n"+`{"done":true}`+"\n") + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},

	// Content as a list of parts.
	{name: "Mistral's thinking", bytes: streamed(choice(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"We"}]}]}`), choice(`{"content":[{"type":"text","text":"Hi"}]}`), finish("stop"), done),
		want: "ok 200 stop text=4 first=-1 chunks=0r,0a HETALD reusable"},
	{name: "thinking as text", bytes: streamed(choice(`{"content":[{"type":"thinking","thinking":"We"},{"type":"text","text":"Hi"}]}`), finish("stop"), done),
		want: "ok 200 stop text=4 first=-1 chunks=0a HETALD reusable"},
	{name: "a list of strings", bytes: streamed(choice(`{"content":["H","i"]}`), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "OpenRouter's details of the same reasoning", bytes: streamed(choice(`{"reasoning":"We","reasoning_details":[{"type":"reasoning.text","text":"We"}]}`), textEvent("Hi"), finish("stop"), done),
		want: "ok 200 stop text=4 first=-1 chunks=0r,0a HETALD reusable"},
	{name: "MiniMax's details alone", bytes: streamed(choice(`{"reasoning_details":[{"type":"reasoning.text","text":"We"}]}`), textEvent("Hi"), finish("stop"), done),
		want: "ok 200 stop text=4 first=-1 chunks=0r,0a HETALD reusable"},
	{name: "whole, Mistral's thinking", whole: true, bytes: answered("200 OK", jsonType, `{"choices":[{"index":0,"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"We"}]},{"type":"text","text":"Hi"}]},"finish_reason":"stop"}]}`),
		want: "ok 200 stop whole text=4 HD reusable"},

	// After the end mark.
	{name: "text after the end mark", skipped: 2, bytes: streamed(textEvent("Hi"), finish("stop"), usage(1), done, textEvent("more"), textEvent("and more")),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "usage after the end mark", skipped: 1, bytes: streamed(textEvent("Hi"), finish("stop"), done, usage(1)),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable | usage not believed: it came after the end mark"},
	{name: "an error after the end mark", skipped: 1, bytes: streamed(textEvent("Hi"), finish("stop"), done, `{"error":{"message":"late"}}`),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},

	// Gzip, however it is flushed.
	{name: "gzip in one piece", bytes: gzipped(gzip.DefaultCompression, 1, event(role), event(textEvent("Hi")), event(finish("stop")), event(usage(1)), event(done)),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "gzip in two members", bytes: gzipped(gzip.BestSpeed, 2, event(role), event(textEvent("Hi")), event(finish("stop")), event(done)),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "gzip that is stored", bytes: gzipped(gzip.NoCompression, 1, event(role), event(textEvent("Hi")), event(finish("stop")), event(done)),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "gzip with padding", bytes: strings.Replace(gzipped(gzip.DefaultCompression, 1, event(textEvent("Hi")), event(finish("stop")), event(done)), lastChunk, chunk("\x00\x00\x00\x00")+lastChunk, 1),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "gzip, whole", whole: true, bytes: strings.Replace(gzipped(gzip.DefaultCompression, 1, `{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}`), "text/event-stream", jsonType, 1),
		want: "ok 200 stop whole text=2 HD reusable"},
	// More of the same kinds, written once these were mended.
	{name: "completions, abort", api: api.Completions, bytes: streamed(`{"choices":[{"index":0,"text":"Hi","finish_reason":null}]}`, `{"choices":[{"index":0,"text":"","finish_reason":"abort"}]}`, done),
		want: `failed finish_abort 200 abort text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "abort"`},
	{name: "TGI's own, a reason of an error", api: api.TGI, bytes: streamed(`{"index":1,"token":{"id":5,"text":"Hi","special":false},"generated_text":null,"details":null}`, `{"index":2,"token":{"id":2,"text":"","special":true},"generated_text":"Hi","details":{"finish_reason":"error","generated_tokens":1}}`),
		want: `failed finish_error 200 error text=2 first=1 chunks=1a usage=-1/-1/1/-1 HETALD reusable | the server ended the response with finish reason "error"`},
	{name: "llama.cpp's own, cancelled", api: api.LlamaCpp, bytes: streamed(`{"content":"Hi","stop":false}`, `{"content":"","stop":true,"stop_type":"cancelled","tokens_predicted":1,"tokens_evaluated":9}`),
		want: `failed finish_cancelled 200 cancelled text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable | the server ended the response with finish reason "cancelled"`},
	{name: "Gemini, a malformed call", api: api.Gemini, bytes: streamed(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"MALFORMED_FUNCTION_CALL","index":0}]}`),
		want: `failed finish_malformed_function_call 200 MALFORMED_FUNCTION_CALL text=2 first=-1 chunks=0a HETALD reusable | the server ended the response with finish reason "MALFORMED_FUNCTION_CALL"`},
	{name: "Gemini, another reason", api: api.Gemini, bytes: streamed(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"OTHER","index":0}]}`),
		want: "ok 200 OTHER text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "Responses, incomplete for the filter", api: api.Responses, whole: true, bytes: answered("200 OK", jsonType, `{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`),
		want: `failed content_filter 200 content_filter whole text=0 HD reusable | the server ended the response with finish reason "content_filter"`},

	{name: "Anthropic, zeros at the end", api: api.Anthropic, bytes: streamed(`{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":0}}`, `{"type":"message_stop"}`),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/-1/-1 HETALD reusable | usage not believed: 0 completion tokens, where 2 bytes of text came"},
	{name: "Responses, zero output tokens", api: api.Responses, whole: true, bytes: answered("200 OK", jsonType, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":9,"output_tokens":0}}`),
		want: "ok 200 stop whole text=2 usage=9/-1/-1/-1 HD reusable | usage not believed: 0 completion tokens, where 2 bytes of text came"},
	{name: "Gemini, counts that shrink", api: api.Gemini, bytes: streamed(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5}}`, `{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2}}`),
		want: "ok 200 stop text=3 first=5 chunks=5a,0a usage=9/-1/5/-1 HETALD reusable | usage not believed: its completion tokens went from 5 back to 2"},
	{name: "a prompt of zero at first, the right one later", bytes: streamed(strings.Replace(counted("Hi", 1), `"prompt_tokens":9`, `"prompt_tokens":0`, 1), finish("stop"), usage(2), done),
		want: "ok 200 stop text=2 first=1 chunks=1a usage=9/-1/2/-1 HETALD reusable"},
	{name: "zero cached tokens are a count", bytes: streamed(textEvent("Hi"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}}`, done),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/0/1/-1 HETALD reusable"},

	{name: "NDJSON, an error after a line", api: api.Ollama, bytes: strings.Replace(streamHead, "text/event-stream", "application/x-ndjson", 1) + chunk(`{"message":{"content":"Hi"},"done":false}`+"\n"+`{"error":"model runner has stopped"}`+"\n") + lastChunk,
		want: "failed stream_error 200 text=2 first=-1 chunks=0a HETALD reusable | model runner has stopped"},
	{name: "words that hold the key", bytes: streamHead + chunk("upstream refused key "+testSecret+"\n") + lastChunk,
		want: "failed unfinished 200 text=0 HD reusable | the server wrote: upstream refused key [redacted]; the stream ended without a finish reason or an end mark"},
	{name: "a comment alone", bytes: streamHead + chunk(": upstream is busy\n\n") + lastChunk,
		want: "failed unfinished 200 text=0 HD reusable | the stream ended without a finish reason or an end mark"},
	{name: "very many stray lines", bytes: streamHead + chunk(strings.Repeat("Traceback line\n", 10)) + lastChunk,
		want: "failed unfinished 200 text=0 HD reusable | the server wrote: " + strings.TrimSpace(strings.Repeat("Traceback line ", 10)) + "; the stream ended without a finish reason or an end mark"},
	{name: "stray lines and a whole response", bytes: streamHead + chunk("warning: slow\n"+event(textEvent("Hi"))+event(finish("stop"))+event(done)) + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "an error as a detail", bytes: streamed(`{"error":{"detail":"queue full","code":"overloaded"}}`),
		want: "failed stream_error 200 text=0 HED reusable | queue full"},

	{name: "Anthropic's ping and an empty line of data", api: api.Anthropic, skipped: 2, bytes: streamHead + chunk("event: ping\ndata: {\"type\": \"ping\"}\n\n"+event("")+event(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`)+event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)+event(`{"type":"message_stop"}`)) + lastChunk,
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "heartbeats in capitals", skipped: 3, bytes: streamed("PING", "HeartBeat", "Keep-Alive", textEvent("Hi"), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "a delta that is a text, logprobs that are none", bytes: streamed(`{"choices":[{"index":0,"delta":"x","logprobs":"none"}]}`, textEvent("Hi"), `{"choices":{}}`, finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "events of broken JSON are errors still", bytes: streamed(textEvent("Hi"), `{"choices":[`, done),
		want: `failed malformed 200 text=2 first=-1 chunks=0a HETALD | cannot read event {"choices":[`},

	{name: "parts of which one is a text in a value", bytes: streamed(choice(`{"content":[{"type":"text","text":{"value":"Hi"}}]}`), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "a part that refuses", bytes: streamed(choice(`{"content":[{"type":"refusal","refusal":"No"}]}`), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0f HETALD reusable"},
	{name: "LiteLLM's thinking blocks beside reasoning_content", bytes: streamed(choice(`{"reasoning_content":"We","thinking_blocks":[{"type":"thinking","thinking":"We"}]}`), textEvent("Hi"), finish("stop"), done),
		want: "ok 200 stop text=4 first=-1 chunks=0r,0a HETALD reusable"},
	{name: "parts nested very deep", bytes: streamed(choice(`{"content":`+strings.Repeat("[", 100)+`"x"`+strings.Repeat("]", 100)+`}`), textEvent("Hi"), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
	{name: "an image among the parts", bytes: streamed(choice(`{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},{"type":"text","text":"Hi"}]}`), finish("stop"), done),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},

	{name: "gzip, Ollama's lines", api: api.Ollama, bytes: strings.Replace(gzipped(gzip.BestCompression, 1, `{"message":{"content":"Hi"},"done":false}`+"\n", `{"done":true,"prompt_eval_count":9,"eval_count":1}`+"\n"), "text/event-stream", "application/x-ndjson", 1),
		want: "ok 200 stop text=2 first=-1 chunks=0a usage=9/-1/1/-1 HETALD reusable"},
	{name: "gzip that is cut", bytes: strings.Replace(gzipped(gzip.DefaultCompression, 1, event(textEvent("Hi")), event(finish("stop")), event(done)), lastChunk, "", 1)[:230],
		want: "failed closed 200 text=0 HD | the connection was closed before the answer's end"},
	{name: "gzip with a name and a comment in its header", bytes: gzippedNamed(event(textEvent("Hi")), event(finish("stop")), event(done)),
		want: "ok 200 stop text=2 first=-1 chunks=0a HETALD reusable"},
}

func TestOddAnswers(t *testing.T) {
	for _, c := range oddAnswers {
		a := c.api
		if a == nil {
			a = api.Chat
		}
		x, chunks := playAs(a, !c.whole, nil, read{c.bytes, 10, false})
		if got := digest(x, chunks); got != c.want || x.Row.Skipped != c.skipped {
			t.Errorf("%s:\n got %s (%d skipped)\nwant %s (%d skipped)", c.name, got, x.Row.Skipped, c.want, c.skipped)
		}
		for i := 1; i < len(c.bytes); i++ {
			if got := digest(playAs(a, !c.whole, nil, read{c.bytes[:i], 10, false}, read{c.bytes[i:], 20, false})); got != c.want {
				t.Errorf("%s, split at %d:\n got %s\nwant %s", c.name, i, got, c.want)
				break
			}
		}
	}
}

// gzipped is a chunked answer in so many gzip members that flush only at their ends.
func gzipped(level, members int, pieces ...string) string {
	var buf bytes.Buffer
	for part := range slices.Chunk(pieces, (len(pieces)+members-1)/members) {
		z, _ := gzip.NewWriterLevel(&buf, level)
		_, _ = z.Write([]byte(strings.Join(part, "")))
		_ = z.Close()
	}
	head := strings.Replace(streamHead, "transfer-encoding", "content-encoding: gzip\r\ntransfer-encoding", 1)
	return head + chunk(buf.String()) + lastChunk
}

// gzippedNamed is a chunked answer whose gzip header has a name, a comment and extra fields.
func gzippedNamed(pieces ...string) string {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Name, z.Comment, z.Extra = "answer.txt", "a comment", []byte("extra")
	_, _ = z.Write([]byte(strings.Join(pieces, "")))
	_ = z.Close()
	return strings.Replace(streamHead, "transfer-encoding", "content-encoding: gzip\r\ntransfer-encoding", 1) + chunk(buf.String()) + lastChunk
}

// A read that unpacks to very much is left once nobody follows the response any more.
func TestGzipIsLeftAtTheTimeout(t *testing.T) {
	bomb := gzipped(gzip.BestCompression, 1, strings.Repeat(":\n\n", 4_000_000))
	x := NewExchange(api.Chat)
	x.Sink, x.Asked = &kept{}, testAsked
	x.Begin(blank(true, false))
	x.MarkSent(0)
	x.RequestAbandon(record.ErrTimeout)
	if !x.Feed([]byte(bomb), stamp.Arrival{Time: 10, Kernel: true}) {
		t.Fatal("the response is still followed")
	}
	if x.Row.Outcome != record.Cut || x.Row.Error != record.ErrTimeout {
		t.Errorf("%v %s, want cut timeout", x.Row.Outcome, x.Row.Error)
	}
	if x.unpacked > 1<<20 {
		t.Errorf("%d bytes were unpacked", x.unpacked)
	}
}

// zipped is a chunked answer whose body is compressed, flushed for each piece.
func zipped(ok bool, pieces ...string) string {
	s := "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
	if !ok {
		s = strings.Replace(s, "200 OK", "400 Bad Request", 1)
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	for _, p := range pieces {
		_, _ = z.Write([]byte(p))
		_ = z.Flush()
		s += chunk(buf.String())
		buf.Reset()
	}
	_ = z.Close()
	return s + chunk(buf.String()) + lastChunk
}

func TestAnswers(t *testing.T) {
	for _, c := range answers {
		if got := digest(play(!c.whole, c.err, read{c.bytes, 10, false})); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		for i := range c.bytes {
			if got := digest(play(!c.whole, c.err, read{c.bytes[:i], 10, false}, read{c.bytes[i:], 20, false})); i > 0 && got != c.want {
				t.Fatalf("%s, split at %d:\n got %s\nwant %s", c.name, i, got, c.want)
			}
		}
	}
}

// Whatever the reads, an answer comes to the same.
func TestSplitChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(answers).Draw(t, "answer")
		var reads []read
		at := int64(0)
		for _, s := range split(t, c.bytes) {
			at += rapid.Int64Range(0, 3).Draw(t, "later")
			reads = append(reads, read{s, at, rapid.Bool().Draw(t, "more")})
		}
		x, chunks := play(!c.whole, c.err, reads...)
		if got := digest(x, chunks); got != c.want {
			t.Fatalf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		checkTimes(t, &x.Row, chunks)
	})
}

// checkTimes holds the order of a row's stamps and its chunks.
func checkTimes(t interface{ Fatalf(string, ...any) }, r *record.Row, chunks []record.Chunk) {
	last := r.Sent
	for _, at := range []int64{r.Sent, r.Headers, r.FirstEvent, r.FirstToken, r.LastToken, r.Done} {
		if at < 0 {
			continue
		}
		if at < last {
			t.Fatalf("stamps out of order: %+v", *r)
		}
		last = at
	}
	arrivals, prev := int32(0), int64(-1)
	for i, c := range chunks {
		if c.T < prev || c.Earliest > c.T || c.Earliest < 0 || i == 0 && c.T != r.FirstToken || c.T > r.LastToken {
			t.Fatalf("chunk %d: %+v of %+v", i, c, *r)
		}
		if c.T != prev {
			arrivals++
		}
		prev = c.T
	}
	if r.Arrivals != arrivals || r.Merged > r.Chunks {
		t.Fatalf("%d arrivals in %+v", arrivals, *r)
	}
}

// The stamps and bounds of chunks by what shared their read.
func TestChunkTimes(t *testing.T) {
	a, b := chunk(event(textEvent("a"))), chunk(event(textEvent("b")))
	usageEvent, end := chunk(event(usage(2))), chunk(event(finish("stop")))+chunk(event(done))+lastChunk
	for _, c := range []struct {
		name  string
		reads []read
		want  string // Earliest-T of each chunk
	}{
		{"one each", []read{{streamHead, 1, false}, {a, 10, false}, {b, 20, false}, {end, 30, false}}, "10-10 20-20"},
		{"with the headers", []read{{streamHead + a, 10, false}, {b, 20, false}}, "10-10 20-20"},
		{"two in a read", []read{{streamHead, 1, false}, {a + b, 20, false}}, "1-20 20-20"},
		{"first read after sending", []read{{streamHead + a + b, 20, false}}, "0-20 20-20"},
		{"half an event behind", []read{{streamHead, 1, false}, {a + b[:30], 20, false}, {b[30:], 30, false}}, "1-20 30-30"},
		{"a chunk's size behind", []read{{streamHead, 1, false}, {a + b[:1], 20, false}, {b[1:], 30, false}}, "1-20 30-30"},
		{"a whole chunk's size behind", []read{{streamHead, 1, false}, {a + b[:4], 20, false}, {b[4:], 30, false}}, "1-20 30-30"},
		{"the chunk's end missing", []read{{streamHead, 1, false}, {a[:len(a)-2], 20, false}, {a[len(a)-2:] + b, 30, false}}, "20-20 30-30"},
		{"usage behind", []read{{streamHead, 1, false}, {a, 10, false}, {b + usageEvent, 20, false}}, "10-10 10-20"},
		{"the end behind", []read{{streamHead, 1, false}, {a, 10, false}, {b + end, 20, false}}, "10-10 10-20"},
		{"the last chunk behind", []read{{streamHead, 1, false}, {a, 10, false}, {b + lastChunk, 20, false}}, "10-10 10-20"},
		{"a comment behind", []read{{streamHead, 1, false}, {a + chunk(": ping\n\n"), 20, false}, {b, 30, false}}, "1-20 30-30"},
		{"a comment before", []read{{streamHead, 1, false}, {chunk(": ping\n\n") + a, 20, false}}, "20-20"},
		{"role before", []read{{streamHead, 1, false}, {chunk(event(role)) + a, 20, false}}, "20-20"},
		{"more to come", []read{{streamHead, 1, false}, {a, 20, true}, {b, 20, false}}, "1-20 20-20"},
		{"two reads of one stamp", []read{{streamHead, 1, false}, {a, 20, false}, {b[:9], 20, false}, {b[9:], 20, false}}, "20-20 20-20"},
		{"no stamp goes back", []read{{streamHead, 15, false}, {a, 10, false}, {b, 20, false}}, "15-15 20-20"},
	} {
		_, chunks := play(true, io.EOF, c.reads...)
		var got []string
		for _, k := range chunks {
			got = append(got, fmt.Sprintf("%d-%d", k.Earliest, k.T))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// An event that the end of the connection completes came with its bytes.
func TestOpenEventHasTheTimeOfItsBytes(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
	x, chunks := play(true, io.EOF, read{head, 1, false}, read{"data: " + textEvent("a") + "\n", 10, false})
	if len(chunks) != 1 || chunks[0].T != 10 || x.Row.FirstToken != 10 || x.Row.LastToken != 10 || x.Row.Done != 1010 {
		t.Errorf("%+v %+v", chunks, x.Row)
	}
}

// The kernel merges segments and stamps the last of them: whatever it merges,
// the true arrival of an event is what the chunk says of it.
func TestTrueArrivalsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, begin := streamHead, []int{0} // where segments begin
		var ends []int                     // where the text events end
		cutIn := func(s string, from int) {
			if len(s) > from && rapid.Bool().Draw(t, "cut") {
				begin = append(begin, len(raw)+rapid.IntRange(from, len(s)-1).Draw(t, "segment"))
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "chunks") {
			var body string
			var in []int
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				switch rapid.IntRange(0, 5).Draw(t, "event") {
				case 0:
					body += ": ping\n\n"
				case 1:
					body += event(role)
				default:
					body += event(textEvent("abc"))
					in = append(in, len(body))
				}
			}
			size := fmt.Sprintf("%x\r\n", len(body))
			for _, n := range in {
				ends = append(ends, len(raw)+len(size)+n)
			}
			cutIn(size+body, 0) // the chunk's last line end leaves with the body
			raw += size + body + "\r\n"
		}
		cutIn(lastChunk, 0)
		raw += lastChunk
		slices.Sort(begin)
		arrival := func(byteAt int) int64 { // of the segment with this byte
			i, found := slices.BinarySearch(begin, byteAt)
			if !found {
				i--
			}
			return int64(10 * (i + 1))
		}
		var reads []read
		for from := 0; from < len(raw); {
			to := min(from+rapid.IntRange(1, 600).Draw(t, "read"), len(raw))
			more := to < len(raw) && arrival(to) == arrival(to-1)
			reads = append(reads, read{raw[from:to], arrival(to - 1), more})
			from = to
		}
		x, chunks := play(true, io.EOF, reads...)
		checkTimes(t, &x.Row, chunks)
		if len(chunks) != len(ends) {
			t.Fatalf("%d chunks of %d events", len(chunks), len(ends))
		}
		for i, c := range chunks {
			at := arrival(ends[i] - 1)
			if c.Earliest == c.T && at != c.T || c.Earliest != c.T && (at <= c.Earliest || at > c.T) {
				t.Fatalf("event %d arrived at %d, chunk says (%d, %d]", i, at, c.Earliest, c.T)
			}
		}
	})
}

// Merged counts what shared a read with something later, but for the last
// chunk of a stream that has ended: the end mark comes with it by the server's
// own doing.
func TestMergedLeavesTheEndOut(t *testing.T) {
	a, b := chunk(event(textEvent("a"))), chunk(event(textEvent("b")))
	end := chunk(event(finish("stop"))+event(done)) + lastChunk
	for name, c := range map[string]struct {
		reads  []string
		merged int32
		open   int // chunks whose arrival is an interval
	}{
		"apart":                         {[]string{streamHead, a, b, end}, 0, 0},
		"two in a read":                 {[]string{streamHead, a + b, end}, 1, 1},
		"two and more to come":          {[]string{streamHead, a + b + end[:3], end[3:]}, 2, 2},
		"last chunk with the end":       {[]string{streamHead, a, b + end}, 0, 1},
		"two with the end":              {[]string{streamHead, a + b + end}, 1, 2},
		"all in a read, end mark later": {[]string{streamHead + a + b + chunk(event(finish("stop"))), chunk(event(done)) + lastChunk}, 1, 2},
	} {
		var reads []read
		for i, text := range c.reads {
			reads = append(reads, read{text: text, at: int64(10 * (i + 1))})
		}
		x, chunks := play(true, io.EOF, reads...)
		open := 0
		for _, k := range chunks {
			if k.Earliest != k.T {
				open++
			}
		}
		if x.Row.Outcome != record.OK || len(chunks) != 2 || x.Row.Merged != c.merged || open != c.open {
			t.Errorf("%s: merged %d, open %d of %d, %+v", name, x.Row.Merged, open, len(chunks), x.Row)
		}
	}
}

// Chunks of different choices that share a read are one step's, and not merged; of two
// steps in a read the first is.
func TestChoicesOfAStepAreNotMerged(t *testing.T) {
	of := func(choice int) string {
		return chunk(event(fmt.Sprintf(`{"choices":[{"index":%d,"delta":{"content":"x"}}]}`, choice)))
	}
	for name, c := range map[string]struct {
		read string
		want []bool // exact
	}{
		"one step":           {of(0) + of(1), []bool{true, true}},
		"in any order":       {of(1) + of(0), []bool{true, true}},
		"two steps":          {of(0) + of(1) + of(0) + of(1), []bool{false, false, true, true}},
		"a step and a half":  {of(0) + of(1) + of(0), []bool{false, true, true}},
		"more is to come":    {of(0) + of(1) + of(0)[:4], []bool{false, false}},
		"something followed": {of(0) + of(1) + chunk(event(usage(2))), []bool{false, false}},
	} {
		_, chunks := play(true, io.EOF, read{text: streamHead, at: 10}, read{text: c.read, at: 20})
		var got []bool
		for _, k := range chunks {
			got = append(got, k.Earliest == k.T)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: exact %v, want %v", name, got, c.want)
		}
	}
}

func TestAbandon(t *testing.T) {
	begin := func(s string) *Exchange {
		x := NewExchange(api.Chat)
		x.Sink = &kept{}
		x.Begin(blank(true, true))
		x.MarkSent(0)
		if s != "" && x.Feed([]byte(s), stamp.Arrival{Time: 10, Kernel: true}) {
			t.Fatal("complete")
		}
		x.RequestAbandon(record.ErrTimeout)
		x.RequestAbandon(record.ErrInterrupted)
		return x
	}
	for _, c := range []struct{ bytes, want string }{
		{"", "cut timeout -1 text=0 D"},
		{streamHead + chunk(event(textEvent("a"))), "cut timeout 200 text=1 first=-1 chunks=0a HETALD | the response began, and did not end: events with text: 1"},
		{streamHead[:40], "cut timeout -1 text=0 D | the headers of the response did not end"},
		{streamHead + chunk(": ping\n\n"), "cut timeout 200 text=0 HD | the response began, with HTTP 200, and no text came"},
		{streamHead + chunk(event(textEvent("a"))+event(finish("stop"))+": ping\n\n"), `cut timeout 200 stop text=1 first=-1 chunks=0a HETALD | the finish reason "stop" came, and then neither an end mark nor the end of the response`},
		{streamHead + chunk(event(textEvent("a"))+event(done)), "ok 200 text=1 first=-1 chunks=0a HETALD"},
		{streamHead + chunk(event(`{"error":"no"}`)+event(done)), "failed stream_error 200 text=0 HED | no"},
	} {
		x := begin(c.bytes)
		x.Close(20, syscall.ECONNRESET)
		if got := digest(x, x.Sink.(*kept).chunks); got != c.want || x.Row.Done != 20 {
			t.Errorf("got %s, want %s", got, c.want)
		}
		x.Close(30, nil)
		if x.Row.Done != 20 {
			t.Error("ended twice")
		}
	}
	// Abandoned between the failure of a stale connection and the second try.
	x := NewExchange(api.Chat)
	x.Begin(blank(true, true))
	x.MarkSent(0)
	x.Close(5, io.EOF)
	if !x.IsStale() {
		t.Fatal("not stale")
	}
	x.RequestAbandon(record.ErrTimeout)
	x.ResetForResend()
	x.Refuse(10, &DialError{record.ErrConnect, "h:1", io.EOF})
	if got := digest(x, nil); got != "cut timeout -1 text=0 D" || x.Row.Retried != 1 {
		t.Error(got)
	}
}

func TestStale(t *testing.T) {
	for _, c := range []struct {
		reused bool
		bytes  string
		err    error
		want   bool
	}{
		{true, "", io.EOF, true}, {true, "", nil, true}, {true, "", syscall.ECONNRESET, true}, {true, "", syscall.EPIPE, true},
		{false, "", io.EOF, false}, {true, "H", io.EOF, false}, {true, "", &DialError{Class: record.ErrConnect}, false},
	} {
		x := NewExchange(api.Chat)
		x.Begin(blank(true, c.reused))
		x.MarkSent(1)
		if c.bytes != "" {
			x.Feed([]byte(c.bytes), stamp.Arrival{Time: 2})
		}
		x.Close(3, c.err)
		if x.IsStale() != c.want {
			t.Errorf("%+v: stale is %v", c, !c.want)
		}
		x.ResetForResend()
		x.MarkSent(4)
		x.Feed([]byte(streamed()), stamp.Arrival{Time: 5})
		if x.IsStale() || x.Row.Error != record.ErrUnfinished {
			t.Errorf("%+v: after the second try %+v", c, x.Row)
		}
	}
}

// An exchange that is used again remembers nothing.
func TestExchangeIsUsedAgain(t *testing.T) {
	x := NewExchange(api.Chat)
	x.Secret, x.Asked = testSecret, testAsked
	for range 2 {
		for _, c := range answers {
			sink := &kept{}
			x.Sink = sink
			x.Begin(blank(!c.whole, false))
			x.MarkSent(0)
			if !x.Feed([]byte(c.bytes), stamp.Arrival{Time: 10, Kernel: true}) {
				x.Close(20, c.err)
			}
			if got := digest(x, sink.chunks); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
			}
		}
	}
}

// A detail is one printable line of at most 300 bytes, and no piece of the
// key is in it wherever it stood.
func TestDetail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		junk := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		before := strings.Repeat("x", rapid.IntRange(0, 320).Draw(t, "before"))
		body := junk.Draw(t, "junk") + before + testSecret + junk.Draw(t, "more") + testSecret
		status := rapid.SampledFrom([]string{"200 OK", "400 Bad Request", "500 No"}).Draw(t, "status")
		x, _ := play(rapid.Bool().Draw(t, "stream"), nil, read{answered(status, rapid.SampledFrom([]string{jsonType, "text/event-stream"}).Draw(t, "type"), body), 10, false})
		checkDetail(t, &x.Row)
	})
	for n := range 40 { // where the cut falls into the key
		x, _ := play(true, nil, read{answered("500 No", "text/plain", strings.Repeat("x", maxDetail-n)+testSecret), 10, false})
		checkDetail(t, &x.Row)
	}
}

func checkDetail(t interface{ Fatalf(string, ...any) }, r *record.Row) {
	d := r.Detail
	if len(d) > maxDetail || !utf8.ValidString(d) || strings.Contains(d, testSecret[:8]) || strings.ContainsFunc(d, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("detail %q", d)
	}
}

// Endless answers hold a bounded amount of memory.
func TestHugeAnswers(t *testing.T) {
	block := []byte(strings.Repeat("x", 1<<20))
	for _, head := range []string{
		"HTTP/1.1 500 No\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
	} {
		x := NewExchange(api.Chat)
		x.Begin(blank(true, false))
		x.MarkSent(0)
		x.Feed([]byte(head), stamp.Arrival{Time: 1})
		for i := range 80 {
			if x.Feed(block, stamp.Arrival{Time: int64(i)}) {
				break
			}
		}
		if held := len(x.whole) + x.frames.PartialBytes(); held > maxWhole {
			t.Errorf("%q: %d bytes held", head, held)
		}
		x.Close(100, nil)
		if want := record.ErrOversized; !strings.Contains(head, "500") && x.Row.Error != want {
			t.Errorf("%q: %s, want %s", head, x.Row.Error, want)
		}
		if x.Row.Outcome != record.Failed {
			t.Errorf("%q: %v", head, x.Row.Outcome)
		}
		checkDetail(t, &x.Row)
		if x.Begin(blank(false, false)); cap(x.whole) > api.MaxKept {
			t.Errorf("%q: %d bytes kept", head, cap(x.whole))
		}
	}
}

func FuzzExchange(f *testing.F) {
	for _, c := range answers {
		f.Add([]byte(c.bytes), uint16(7), uint16(1<<15), !c.whole)
	}
	f.Fuzz(func(t *testing.T, text []byte, every, cutAt uint16, stream bool) {
		text = text[:min(len(text), int(cutAt))]
		var reads []read
		for b := range slices.Chunk(text, max(int(every), 1)) {
			reads = append(reads, read{string(b), int64(len(reads) + 1), false})
		}
		x, chunks := play(stream, nil, reads...)
		if r := x.Row; r.Done < 0 || (r.Outcome == record.OK) != (r.Error == "") || r.Outcome == record.Cut || r.Outcome == record.Unsent {
			t.Fatalf("%+v", r)
		}
		checkTimes(t, &x.Row, chunks)
		checkDetail(t, &x.Row)
		whole, all := play(stream, nil, read{string(text), 1, false})
		whole.Row.Detail, x.Row.Detail = "", ""
		if got, want := digest(x, chunks), digest(whole, all); x.Row.Error == "" && strings.TrimSuffix(got, " reusable") != strings.TrimSuffix(want, " reusable") {
			t.Fatalf("in reads of %d:\n%s\nwhole:\n%s", every, got, want)
		}
	})
}

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Chunk(record.Chunk) {}
func (discard) Done(*record.Row)   {}

func BenchmarkFeed(b *testing.B) {
	x := NewExchange(api.Chat)
	x.Sink = discard{}
	x.Begin(blank(true, false))
	x.MarkSent(0)
	unbounded(x)
	x.Feed([]byte(streamHead), stamp.Arrival{Time: 1, Kernel: true})
	text := []byte(chunk(event(typicalEvent)))
	at := int64(1)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		at++
		if x.Feed(text, stamp.Arrival{Time: at, Kernel: true}) {
			b.Fatal(x.Row)
		}
	}
}

// unbounded lets a benchmark go on for as long as it likes.
func unbounded(x *Exchange) { x.bounds = bounds{1 << 60, 1, 1 << 60, 1 << 60} }

// What an event costs that brings its usage with it, beside the same without.
func BenchmarkFeedUsage(b *testing.B) {
	const tail = `"logprobs":null,"finish_reason":null,"token_ids":null}]`
	for name, usage := range map[string]string{"without": "}", "with": `,"usage":{"prompt_tokens":9,"total_tokens":%d,"completion_tokens":%d,"completion_tokens_details":null}}`} {
		b.Run(name, func(b *testing.B) {
			x := NewExchange(api.Chat)
			x.Sink = discard{}
			x.Begin(blank(true, false))
			x.MarkSent(0)
			unbounded(x)
			x.Feed([]byte(streamHead), stamp.Arrival{Time: 1, Kernel: true})
			var events [][]byte
			for i := range 1000 {
				e := `{"id":"chatcmpl-b3c5a4d0bba37776","object":"chat.completion.chunk","created":1795254303,"model":"tiny","choices":[{"index":0,"delta":{"content":" careless"},` + tail
				if strings.Contains(usage, "%d") {
					e += fmt.Sprintf(usage, 1010+i, 1001+i)
				} else {
					e += usage
				}
				events = append(events, []byte(chunk(event(e))))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%1000 == 0 {
					x.completion = 0
				}
				if x.Feed(events[i%1000], stamp.Arrival{Time: int64(i) + 2, Kernel: true}) {
					b.Fatal(x.Row)
				}
			}
		})
	}
}

// Many streams in turn: what an event costs when its stream has left the
// cache since the one before.
func BenchmarkFeedMany(b *testing.B) {
	var all []*Exchange
	for range 4000 {
		x := NewExchange(api.Chat)
		x.Sink = discard{}
		x.Begin(blank(true, false))
		x.MarkSent(0)
		unbounded(x)
		x.Feed([]byte(streamHead), stamp.Arrival{Time: 1, Kernel: true})
		all = append(all, x)
	}
	text := []byte(chunk(event(typicalEvent)))
	at := int64(1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at++
		if x := all[i*769%len(all)]; x.Feed(text, stamp.Arrival{Time: at, Kernel: true}) {
			b.Fatal(x.Row)
		}
	}
}

func TestFeedAllocatesNothing(t *testing.T) {
	x := NewExchange(api.Chat)
	x.Sink = discard{}
	x.Begin(blank(true, false))
	x.MarkSent(0)
	x.Feed([]byte(streamHead), stamp.Arrival{Time: 1, Kernel: true})
	for _, s := range []string{typicalEvent, textEvent(`\n\n`), counted("a", 1), choice(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}`)} {
		whole := []byte(chunk(event(s)))
		half := len(whole) / 2
		if n := testing.AllocsPerRun(100, func() {
			x.Feed(whole, stamp.Arrival{Time: 2, Kernel: true})
			x.Feed(whole[:half], stamp.Arrival{Time: 3, Kernel: true})
			x.Feed(whole[half:], stamp.Arrival{Time: 4, Kernel: true})
		}); n != 0 {
			t.Errorf("%v allocations for %s", n, s)
		}
	}
}

// What an event costs in each API, beside chat's.
func BenchmarkFeedAPIs(b *testing.B) {
	numbered := func(form string) (events []string) {
		for i := range 1000 {
			events = append(events, fmt.Sprintf(form, 1001+i))
		}
		return events
	}
	for name, c := range map[string]struct {
		api    api.API
		events []string
	}{
		"chat":      {api.Chat, []string{event(typicalEvent)}},
		"responses": {api.Responses, numbered("event: response.output_text.delta\ndata: {\"content_index\":0,\"delta\":\" careless\",\"item_id\":\"msg_bbd1ed81405514ab\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":%d,\"type\":\"response.output_text.delta\"}\n\n")},
		"anthropic": {api.Anthropic, []string{"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\" careless\"},\"index\":0}\n\n"}},
		"sglang":    {api.SGLang, numbered("data: {\"text\":\" careless\",\"output_ids\":[17],\"meta_info\":{\"id\":\"b3c5a4d0bba37776\",\"finish_reason\":null,\"prompt_tokens\":9,\"weight_version\":\"default\",\"total_retractions\":0,\"completion_tokens\":%d,\"cached_tokens\":0}}\n\n")},
		"tgi":       {api.TGI, numbered("data:{\"index\":%d,\"token\":{\"id\":17,\"text\":\" careless\",\"logprob\":-0.5,\"special\":false},\"generated_text\":null,\"details\":null}\n\n")},
		"ollama":    {api.Ollama, numbered("{\"model\":\"tiny\",\"created_at\":\"2026-11-23T08:00:00.%dZ\",\"message\":{\"role\":\"assistant\",\"content\":\" careless\"},\"done\":false}\n")},
		"llamacpp":  {api.LlamaCpp, numbered("data: {\"index\":0,\"content\":\" careless\",\"tokens\":[],\"stop\":false,\"id_slot\":-1,\"tokens_predicted\":%d,\"tokens_evaluated\":9}\n\n")},
		"gemini":    {api.Gemini, numbered("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" careless\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":%d}}\n\n")},
	} {
		b.Run(name, func(b *testing.B) {
			x := NewExchange(c.api)
			x.Sink = discard{}
			x.Begin(blank(true, false))
			x.MarkSent(0)
			unbounded(x)
			x.Feed([]byte(streamHead), stamp.Arrival{Time: 1, Kernel: true})
			var events [][]byte
			for _, e := range c.events {
				events = append(events, []byte(chunk(e)))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%len(events) == 0 {
					x.completion = 0
				}
				if x.Feed(events[i%len(events)], stamp.Arrival{Time: int64(i) + 2, Kernel: true}) {
					b.Fatal(x.Row)
				}
			}
		})
	}
}
