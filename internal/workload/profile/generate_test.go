package profile

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"os"
	"path/filepath"
	"time"

	"pitot/internal/workload/seed"
)

// names gives what stands in a log where nobody should look: the n-th of a kind.
type names func(kind string, n int) string

// letters are names of letters that no word of a profile has in a row.
func letters(kind string, n int) string {
	const of = "qxzjkvwQXZJKVW"
	r := seed.Rand(seed.At(uint64(n), uint64(len(kind)), uint64(kind[0])))
	b := make([]byte, 24)
	for i := range b {
		b[i] = of[r.Uint64()%uint64(len(of))]
	}
	return string(b)
}

// digits are names of digits, other ones for each salt.
func digits(salt uint64) names {
	return func(kind string, n int) string {
		r := seed.Rand(seed.At(uint64(n)+salt<<32, uint64(len(kind)), uint64(kind[0])))
		return fmt.Sprintf("%012d%012d", r.Uint64()%1e12, r.Uint64()%1e12)
	}
}

// asked is a request of the log that tests write.
type asked struct {
	n             int
	at, end, ttft float64 // seconds
	input, output int
	client, turn  int
	session       int
	model         int
	finish        string
	before        []asked // turns of its session
}

// traffic is what the logs of all forms tell.
func traffic(n int) (out []asked) {
	r := seed.Rand(5)
	at := 0.0
	said := map[int][]asked{}
	for i := range n {
		at += -0.4 * math.Log(seed.Float(r.Uint64()))
		a := asked{n: i, at: math.Round(at*1000) / 1000, client: int(r.Uint64() % 7), model: int(r.Uint64() % 3 / 2), finish: "stop"}
		a.session = int(r.Uint64()%uint64(n/16+1))*7 + a.client
		a.input, a.output = 200+int(r.Uint64()%900), 20+int(r.Uint64()%200)
		if t := said[a.session]; len(t) > 0 && a.input%8 > 0 { // some begin afresh
			last := t[len(t)-1]
			a.turn, a.before, a.input = len(t), t, last.input+last.output+30+a.input%50
		}
		said[a.session] = append(a.before[:len(a.before):len(a.before)], a)
		if r.Uint64()%5 == 0 {
			a.finish = "length"
		}
		a.ttft = 0.05 + 0.1*seed.Float(r.Uint64())
		a.end = a.at + a.ttft + 0.01*float64(a.output)
		out = append(out, a)
	}
	return out
}

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func (a asked) time(s float64) time.Time { return began.Add(time.Duration(s * 1e9)) }

// text is the prompt: a system prompt of the client, what the session said before, and more.
func (a asked) text(of names) (system, user string) {
	system = strings.Repeat(of("system", a.client%2)+" ", 20)
	user = strings.Repeat(of("user", a.session)+" ", 4)
	for _, b := range a.before {
		user += strings.Repeat(of("again", b.n)+" ", 12)
	}
	return system, user + strings.Repeat(of("again", a.n)+" ", 12)
}

// logs write traffic as each of the sources does.
func logs() map[string]func(a asked, of names) string {
	quote := func(s string) string { return fmt.Sprintf("%q", s) }
	return map[string]func(a asked, of names) string{
		"openai": func(a asked, of names) string {
			system, user := a.text(of)
			return fmt.Sprintf(`{"timestamp":%s,"latency_ms":%.3f,"ttft_ms":%.3f,"user":%s,"session_id":%s,"path":"/v1/chat/completions","headers":{"authorization":%s,"x-request-id":%s},"request":{"model":%s,"messages":[{"role":"system","content":%s},{"role":"user","content":%s}],"metadata":{"note":%s}},"response":{"id":%s,"model":%s,"choices":[{"finish_reason":"%s","message":{"content":%s}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}}`,
				quote(a.time(a.at).Format(time.RFC3339Nano)), (a.end-a.at)*1000, a.ttft*1000, quote(of("client", a.client)), quote(of("session", a.session)), quote(of("key", a.client)), quote(of("id", a.n)),
				quote(of("model", a.model)), quote(system), quote(user), quote(of("note", a.n)), quote(of("answer", a.n)), quote(of("model", a.model)), a.finish, quote(of("reply", a.n)), a.input, a.output) + "\n"
		},
		"litellm": func(a asked, of names) string {
			system, user := a.text(of)
			unix := func(s float64) float64 { return float64(began.Unix()) + s }
			return fmt.Sprintf(`{"id":%s,"trace_id":%s,"call_type":"acompletion","status":"success","startTime":%.3f,"endTime":%.3f,"completionStartTime":%.3f,"model":%s,"model_group":%s,"prompt_tokens":%d,"completion_tokens":%d,"end_user":%s,"session_id":%s,"metadata":{"user_api_key_hash":%s,"user_api_key_alias":%s,"requester_ip_address":%s},"request_tags":[%s],"messages":[{"role":"system","content":%s},{"role":"user","content":%s}],"response":{"choices":[{"finish_reason":"%s","message":{"content":%s}}]}}`,
				quote(of("id", a.n)), quote(of("trace", a.n)), unix(a.at), unix(a.end), unix(a.at+a.ttft), quote(of("model", a.model)), quote(of("model", a.model)), a.input, a.output, quote(of("end", a.client)), quote(of("session", a.session)), quote(of("client", a.client)), quote(of("alias", a.client)), quote(of("address", a.client)), quote(of("tag", a.n)), quote(system), quote(user), a.finish, quote(of("reply", a.n))) + "\n"
		},
		"otlp": func(a asked, of names) string {
			return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%s}}]},"scopeSpans":[{"spans":[{"traceId":%s,"spanId":%s,"name":%s,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[{"key":"gen_ai.request.model","value":{"stringValue":%s}},{"key":"gen_ai.conversation.id","value":{"stringValue":%s}},{"key":"user.id","value":{"stringValue":%s}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"%d"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"%d"}},{"key":"gen_ai.response.time_to_first_chunk","value":{"doubleValue":%.4f}},{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"%s"}]}}},{"key":"http.request.header.x","value":{"stringValue":%s}}]}]}]}]}`,
				quote(of("service", 0)), quote(of("trace", a.n)), quote(of("span", a.n)), quote(of("name", a.n)), a.time(a.at).UnixNano(), a.time(a.end).UnixNano(), quote(of("model", a.model)), quote(of("session", a.session)), quote(of("client", a.client)), a.input, a.output, a.ttft, a.finish, quote(of("header", a.n))) + "\n"
		},
		"spans": func(a asked, of names) string {
			return fmt.Sprintf(`{"trace_id":%s,"name":%s,"start_time":"%s","end_time":"%s","attributes":{"gen_ai.request.model":%s,"gen_ai.conversation.id":%s,"enduser.id":%s,"gen_ai.usage.input_tokens":%d,"gen_ai.usage.output_tokens":%d,"gen_ai.response.finish_reasons":["%s"],"gen_ai.response.time_to_first_chunk":%.4f,"note":%s}}`,
				quote(of("trace", a.n)), quote(of("name", a.n)), a.time(a.at).Format(time.RFC3339Nano), a.time(a.end).Format(time.RFC3339Nano), quote(of("model", a.model)), quote(of("session", a.session)), quote(of("client", a.client)), a.input, a.output, a.finish, a.ttft, quote(of("note", a.n))) + "\n"
		},
		"vllm": func(a asked, of names) string {
			_, user := a.text(of)
			id := "chatcmpl-" + of("id", a.n)
			ids := make([]string, a.input)
			for i := range ids {
				ids[i] = fmt.Sprint(1000 + a.client*7 + i)
			}
			out := strings.TrimSuffix(strings.Repeat("17, ", a.output), ", ")
			return fmt.Sprintf("DEBUG %s [logger.py:39] Received request %s: prompt: '%s', params: SamplingParams(n=1, max_tokens=512, stop=['%s']), prompt_token_ids: [%s], lora_request: %s.\n",
				a.time(a.at).Format("01-02 15:04:05"), id, user, of("stop", a.n), strings.Join(ids, ", "), of("lora", a.n)) +
				fmt.Sprintf("INFO %s [logger.py:70] Generated response %s: output: '%s', output_token_ids: [%s], finish_reason: %s\n", a.time(a.end).Format("01-02 15:04:05"), id, of("reply", a.n), out, a.finish)
		},
		"sglang": func(a asked, of names) string {
			_, user := a.text(of)
			return fmt.Sprintf("[%s] Receive: obj=GenerateReqInput(rid='%s', text='%s')\n", a.time(a.at).Format("2006-01-02 15:04:05"), of("id", a.n), user) +
				fmt.Sprintf("[%s] Finish: obj=GenerateReqInput(rid='%s', text='%s', session_id='%s'), out={'text': '%s', 'meta_info': {'id': '%s', 'finish_reason': {'type': '%s', 'matched': 1}, 'prompt_tokens': %d, 'completion_tokens': %d, 'cached_tokens': 0, 'e2e_latency': %.4f}}\n",
					a.time(a.end).Format("2006-01-02 15:04:05"), of("id", a.n), user, of("session", a.session), of("reply", a.n), of("id", a.n), a.finish, a.input, a.output, a.end-a.at)
		},
		"sglang-json": func(a asked, of names) string {
			_, user := a.text(of)
			return fmt.Sprintf(`{"timestamp":"%s","event":"request.received","rid":%s,"obj":{"text":%s}}`+"\n", a.time(a.at).Format("2006-01-02T15:04:05.000000"), quote(of("id", a.n)), quote(user)) +
				fmt.Sprintf(`{"timestamp":"%s","event":"request.finished","rid":%s,"obj":{"text":%s,"session_id":%s},"out":{"text":%s,"meta_info":{"id":%s,"finish_reason":{"type":"%s"},"prompt_tokens":%d,"completion_tokens":%d,"e2e_latency":%.4f}}}`+"\n",
					a.time(a.end).Format("2006-01-02T15:04:05.000000"), quote(of("id", a.n)), quote(user), quote(of("session", a.session)), quote(of("reply", a.n)), quote(of("id", a.n)), a.finish, a.input, a.output, a.end-a.at)
		},
	}
}

// write puts a log into a file.
func write(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// logOf is a log of one form.
func logOf(form string, list []asked, of names) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteString(logs()[form](a, of))
	}
	return b.String()
}

// profileOf makes a profile of a log.
func profileOf(t testing.TB, text string, o Options) (*Profile, *Log) {
	t.Helper()
	b, err := NewBuilder(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ReadLog(write(t, text), b.Add)
	if err != nil {
		t.Fatal(err)
	}
	b.LeaveOut(l.LeftOut())
	p, err := b.BuildProfile()
	if err != nil {
		t.Fatal(err)
	}
	return p, l
}

func encoded(t testing.TB, p *Profile) string {
	t.Helper()
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
