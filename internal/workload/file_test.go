package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func open(t testing.TB, path string, o FileOptions) *File {
	t.Helper()
	f, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// written is a file with that content.
func written(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompts")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines are the requests of a file, one line each, in an order of their own.
func lines(t testing.TB, f *File) []string {
	t.Helper()
	var all []string
	for i := range int64(f.Stats().Requests) {
		q := requestAt(t, f, i)
		var b strings.Builder
		for _, m := range q.Messages {
			fmt.Fprintf(&b, "%s: %s; ", m.Role, m.Append(nil, nil))
		}
		fmt.Fprintf(&b, "%d", q.Output)
		if q.Body != nil {
			fmt.Fprintf(&b, "; %s", q.Body)
		}
		if q.Input != Unknown || q.Session != Unknown || q.ID != i {
			t.Errorf("request %d: %+v", i, q)
		}
		all = append(all, b.String())
	}
	slices.Sort(all)
	return all
}

func TestExampleFiles(t *testing.T) {
	for _, c := range []struct {
		file, format string
		skipped      map[string]int
		want         []string
	}{
		{"sharegpt_sample.json", "sharegpt", map[string]int{string(skipOneTurn): 1}, []string{
			"user: Explain what a ring buffer is in two sentences.; 52",
			"user: Give me a short packing list for a rainy weekend in the hills.; 32",
			"user: Translate into German: The train leaves at noon from platform four.; 15",
			"user: Write a Go function that reverses a slice of ints in place.; 35",
		}},
		{"openai_batch_sample.jsonl", "openai-batch", map[string]int{string(skipNotChat): 1}, []string{
			"system: Answer briefly.; user: Name three rivers.; 32",
			`user: What is seven times eight?; 8; {"temperature":0}`,
		}},
		{"vllm_custom_sample.jsonl", "vllm-custom", map[string]int{}, []string{
			"user: List the planets in order.; 60",
			"user: What is the capital of Peru?; 10",
		}},
		{"aiperf_single_turn_sample.jsonl", "aiperf-single-turn", map[string]int{}, []string{
			`user: Explain paging in one paragraph.; 128; {"temperature":0.2}`,
			"user: Name two sorting algorithms.; 16",
			"user: What is a mutex?; 64",
		}},
	} {
		f := open(t, filepath.Join("testdata", c.file), FileOptions{Seed: 1})
		if got := lines(t, f); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.file, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		s, d := f.Stats(), f.Describe().File
		if !maps.Equal(s.Skipped, c.skipped) || s.Records != s.Requests+len(c.skipped) || d.Format != c.format {
			t.Errorf("%s: %+v, format %s", c.file, s, d.Format)
		}
	}
}

func TestFileKinds(t *testing.T) {
	for name, c := range map[string]struct {
		content, format string
		want            []string
	}{
		"text":               {"one\r\n\n  two \nthree", "text", []string{"user:   two ; -1", "user: one; -1", "user: three; -1"}},
		"text in brackets":   {"[INST] hello\n", "text", []string{"user: [INST] hello; -1"}},
		"byte order mark":    {"\ufeff{\"prompt\":\"a\"}\n", "vllm-custom", []string{"user: a; -1"}},
		"mark before array":  {"\ufeff [\n{\"prompt\":\"a\"} , \n {\"prompt\":\"b\"}]\n", "vllm-custom", []string{"user: a; -1", "user: b; -1"}},
		"whole float":        {`{"prompt":"a","output_tokens":10.0}`, "vllm-custom", []string{"user: a; 10"}},
		"null is absent":     {`{"prompt":"a","output_tokens":null}`, "vllm-custom", []string{"user: a; -1"}},
		"sharegpt, by line":  {`{"conversation":[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a b c"}]}`, "sharegpt", []string{"system: s; user: q; 4"}},
		"sharegpt, Chinese":  {`[{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"你好，世界 ok"}]}]`, "sharegpt", []string{"user: q; 8"}},
		"genai-perf":         {`{"text_input":"a"}`, "aiperf-single-turn", []string{"user: a; -1"}},
		"chat":               {`{"messages":[{"role":"user","content":"q"}],"max_tokens":5,"model":"m","stream":false,"top_p":0.5,"n":1}`, "openai-chat", []string{`user: q; 5; {"n":1,"top_p":0.5}`}},
		"chat, prefix only":  {`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}`, "openai-chat", []string{"system: s; user: q; -1"}},
		"sglang, custom":     {`{"conversations":[{"content":"q"},{"content":"a b c"}]}`, "sharegpt", []string{"user: q; 4"}},
		"guidellm":           {`{"question":"q","output_tokens_count":7}`, "guidellm", []string{"user: q; 7"}},
		"guidellm, turns":    {`{"prompt_0":"q","prompt_1":"r"}`, "guidellm", []string{"user: q; -1"}},
		"inputs.json":        {"{\n \"data\": [\n {\"payload\": [{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"max_tokens\":5}]},\n{\"payloads\":[{\"prompt\":\"p\"}]}]\n}\n", "payloads", []string{"user: p; -1", "user: q; 5"}},
		"aiperf, sessions":   {`{"session_id":"s","turns":[{"role":"system","text":"t"},{"text":"q","output_length":9},{"text":"r"}]}`, "aiperf-multi-turn", []string{"system: t; user: q; 9"}},
		"aiperf, mooncake":   {`{"timestamp":5,"session_id":"s","messages":[{"role":"user","content":"q"}],"output_length":6}`, "openai-chat", []string{"user: q; 6"}},
		"aiperf, text":       {`{"timestamp":5,"text_input":"q","output_length":6}`, "aiperf-single-turn", []string{"user: q; 6"}},
		"csv":                {"id,prompt,output_tokens\n1,\"a, \"\"b\"\"\nc\",5\r\n2,d,\n", "csv", []string{"user: a, \"b\"\nc; 5", "user: d; -1"}},
		"tsv":                {"question\toutput_tokens_count\nq\t3\n", "csv", []string{"user: q; 3"}},
		"chat with an image": {`{"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"image_url","image_url":{"url":"x"}}]}]}`, "openai-chat", []string{`user: q; -1; {"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"image_url","image_url":{"url":"x"}}]}]}`}},
		"chat with a tool":   {`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[]}],"tools":[]}`, "openai-chat", []string{`user: q; assistant: ; -1; {"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[]}],"tools":[]}`}},
	} {
		f := open(t, written(t, c.content), FileOptions{})
		if got := lines(t, f); !slices.Equal(got, c.want) || f.Describe().File.Format != c.format {
			t.Errorf("%s: %s %q, want %s %q", name, f.Describe().File.Format, got, c.format, c.want)
		}
	}
}

func TestSkipped(t *testing.T) {
	for content, want := range map[string]string{
		`{"prompt":"a"}` + "\n" + `{"prompt":" \n"}`:                                                          string(skipEmpty),
		`{"prompt":"a"}` + "\n" + `{"prompt":"b","output_tokens":0}`:                                          string(skipNoOutput),
		`{"text":"a"}` + "\n" + `{"text":"b","image":"c.png"}`:                                                string(skipMedia),
		`{"text":"a"}` + "\n" + `{"text":"b","output_length":0}`:                                              string(skipNoOutput),
		`{"messages":[{"role":"user","content":"q"}]}` + "\n" + `{"messages":[{"role":"user","content":""}]}`: string(skipEmpty),
		`[` + conversation("human", "gpt") + `,` + conversation("gpt", "system") + `]`:                        string(skipNoHuman),
		`[` + conversation("human", "gpt") + `,` + conversation("gpt", "human") + `]`:                         string(skipNoAnswer),
		`[` + conversation("human", "gpt") + `,` + conversation("human", "human") + `]`:                       string(skipNoAnswer),
		`[` + conversation("human", "gpt") + `,` + conversation("human") + `]`:                                string(skipOneTurn),
	} {
		f := open(t, written(t, content), FileOptions{})
		if s := f.Stats(); s.Records != 2 || s.Requests != 1 || !maps.Equal(s.Skipped, map[string]int{want: 1}) {
			t.Errorf("%s: %+v, want one %q", content, s, want)
		}
	}
}

// Records that cannot be read are left out and counted, with the line of the first of each
// reason; reasons are told apart up to a number.
func TestUnreadRecords(t *testing.T) {
	f := open(t, written(t, "{\"prompt\":\"a\"}\n{\"prompt\":5}\n{\"prompt\":\"b\"}\n{\"prompt\":6}\n{\"prompt\":\"c\"}\n{\"prompt\":\"\"}\n{\"prompt\":\"d\",\"output_tokens\":-1}\n{\"prompt\":\"e\"}\n"), FileOptions{})
	s := f.Stats()
	if s.Records != 8 || s.Requests != 4 || !maps.Equal(s.Skipped, map[string]int{"prompt: want a string": 2, string(skipEmpty): 1, "output_tokens: want a whole number of tokens, 0 to 16777216": 1}) ||
		s.First["prompt: want a string"] != 2 || len(s.First) != 2 {
		t.Errorf("%+v", s)
	}
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "{\"prompt\":\"a%d\"}\n{\"prompt\":\"b\"}\n{\"prompt\":\"c\"}\n%s\n", i, strings.Repeat("x", i+1)+strconv.Itoa(i))
	}
	many.WriteString("{\"prompt\":\"" + strings.Repeat("z", 300)) // cut short
	if s = open(t, written(t, many.String()), FileOptions{}).Stats(); s.Requests != 90 || len(s.Skipped) > mostReasons+1 || s.Records != 121 {
		t.Errorf("%+v", s)
	}
}

// The turns of AIPerf's inputs.json and of SGLang's agentic traces follow their first.
func TestLaterTurns(t *testing.T) {
	for content, want := range map[string]string{
		`{"data":[{"session_id":"s","payloads":[{"messages":[{"role":"user","content":"a"}],"max_tokens":7},{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"A"},{"role":"user","content":"b"}],"max_tokens":9}]}]}`: "a 7|b 9 A",
		`{"conversations":[[{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"prompt_tokens":4},{"messages":[{"role":"tool","content":"b"},{"role":"user","content":"c"}],"output_tokens":3}]]}`:                   "s a -1|b\n\nc 3 ",
	} {
		f := open(t, written(t, content), FileOptions{InOrder: true})
		r, err := f.read(0)
		if err != nil || f.Stats().Later != 1 {
			t.Fatalf("%+v, %v", f.Stats(), err)
		}
		got := ""
		for _, m := range r.messages {
			got += m.Segments[0].Text + " "
		}
		got += strconv.Itoa(r.output)
		for _, l := range r.later {
			got += fmt.Sprintf("|%s %d %s", l.text, l.output, l.answer)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}

func conversation(from ...string) string {
	var turns []string
	for _, f := range from {
		turns = append(turns, `{"from":"`+f+`","value":"x"}`)
	}
	return `{"conversations":[` + strings.Join(turns, ",") + `]}`
}

func TestOpenErrors(t *testing.T) {
	for content, want := range map[string]string{
		"":                                               ": no request in 0 records",
		"\n \n":                                          ": no request in 0 records",
		`{"prompt":""}`:                                  ": no request in 1 records; 1 skipped: empty prompt",
		"{\"prompt\":\"a\"}\n\n{\"prompt\":5}":           ":3: prompt: want a string",
		"{\"prompt\":\"a\"}\n{\"prompt\":":               ":2: want a JSON object: unexpected end",
		"{\"prompt\":\"a\"}\nplain":                      ":2: want a JSON object: invalid character 'p'",
		"{\"prompt\":\"a\"}\n[1]":                        ":2: want a JSON object",
		`{"prompt":"a","output_tokens":1.5}`:             ":1: output_tokens: want a whole number of tokens",
		`{"prompt":"a","output_tokens":"5"}`:             ":1: output_tokens: want a whole number of tokens",
		`{"prompt":"a"}` + "\n" + `{"text":"b"}`:         ":2: want the key prompt with a string",
		`{"turn":[],"session_id":1}`:                     `:1: want an object with one of the keys custom_id, body, payload, payloads, turns, messages, conversations, conversation, prompt, prompt_0, question, instruction, input_text, text, text_input; found "session_id, turn"`,
		`{}`:                                             `:1: want an object with one of the keys`,
		"[\n{\"prompt\":\"a\"},\n{\"prompt\":!}\n]":      ":3: want a JSON array of objects: invalid character '!'",
		"[\n{\"prompt\":\"a\"},\n{\"prompt\":1}\n]":      ":3: prompt: want a string",
		"[\n{\"prompt\":\"a\"},\n":                       ":2: want a JSON array of objects: the file ends inside it",
		"[\n{\"prompt\":\"a\"}":                          ":2: want a JSON array of objects: the file ends inside it",
		"[\n{\"prompt\":\"a\"}]\n[":                      ":3: want nothing after the JSON array",
		`["a","b"]`:                                      ":1: want a JSON object",
		`[]`:                                             ": no request in 0 records",
		"one\n\xff\xfe":                                  ":2: want UTF-8 text, one prompt a line",
		`{"messages":[]}`:                                ":1: messages: want an array of one or more objects",
		`{"messages":["a"]}`:                             ":1: messages: want an array of one or more objects",
		`{"messages":[{"content":"a"}]}`:                 ":1: message 1: want the key role",
		`{"messages":[{"role":"user","content":5}]}`:     ":1: message 1: content: want a string or an array of parts",
		`{"custom_id":"1","body":{}}`:                    ":1: want the key url",
		`{"custom_id":"1","url":"/v1/chat/completions"}`: ":1: body: want a chat request",
		`{"custom_id":"1","url":"/v1/chat/completions","body":{}}`: ":1: body: messages: want",
		`{"custom_id":"1","url":"/v1/embeddings","body":{}}`:       ": no request in 1 records; 1 skipped: no chat request",
		`[{"conversations":5}]`:                                    ":1: want a conversation: an object",
		`[{"conversations":[]},` + "\n" + `{"id":1}]`:              ":2: want the key conversations",
		"prompt,output_tokens\na,5\nb\n":                           ":3: want 2 columns as in the header, found 1",
		"prompt,output_tokens\na,x\n":                              ":2: output_tokens: want a whole number",
		`{"turns":[]}`:                                             ":1: turns: want an array",
		`{"data": [{"payload": []}]}`:                              ": no request in 1 records; 1 skipped: empty prompt",
		`{"text":"a","extra":5}`:                                   ":1: extra: want a JSON object",
	} {
		path := written(t, content)
		f, err := Open(path, FileOptions{})
		if err == nil || f != nil || !strings.HasPrefix(err.Error(), "read workload "+path+want) {
			t.Errorf("Open of %q: %v, want read workload FILE%s", content, err, want)
		}
	}
	if _, err := Open(t.TempDir(), FileOptions{}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("Open of a directory: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), FileOptions{}); err == nil || !strings.Contains(err.Error(), "open workload") {
		t.Errorf("Open of no file: %v", err)
	}
}

// A file whose name ends like that of JSON is no text of prompts, whatever is in it.
func TestBrokenJSONIsNoText(t *testing.T) {
	for name, fine := range map[string]bool{"prompts.jsonl": false, "prompts.JSON": false, "prompts.ndjson": false, "prompts.txt": true, "prompts": true} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("not json {\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, FileOptions{})
		if fine && err == nil {
			f.Close()
		}
		if fine != (err == nil) || !fine && !strings.HasSuffix(err.Error(), ":1: want a JSON object, by the file's name") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileOrder(t *testing.T) {
	var content strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&content, "prompt %d\n", i)
	}
	path := written(t, content.String())
	order := func(seed uint64) (texts []string) {
		f := open(t, path, FileOptions{Seed: seed})
		for i := range int64(2500) {
			texts = append(texts, requestAt(t, f, i).Messages[0].Segments[0].Text)
		}
		return texts
	}
	a := order(1)
	if !slices.Equal(a, order(1)) || slices.Equal(a, order(2)) {
		t.Error("the order is not one of the seed")
	}
	if !slices.Equal(a[:1000], a[1000:2000]) || !slices.Equal(a[:500], a[2000:]) {
		t.Error("the order does not begin again after 1,000 prompts")
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(a[:1000]))); len(distinct) != 1000 {
		t.Errorf("%d of 1,000 prompts are asked", len(distinct))
	}
	f := open(t, path, FileOptions{})
	if _, err := f.At(-1); err == nil {
		t.Error("request -1 is no error")
	}
	requestAt(t, f, math.MaxInt64)
}

func TestFileOutput(t *testing.T) {
	path := written(t, `{"prompt":"a","output_tokens":7}`)
	if q := requestAt(t, open(t, path, FileOptions{Output: FixedLength(3), Exact: true}), 0); q.Output != 7 || !q.Exact {
		t.Errorf("recorded output: %+v", q)
	}
	path = written(t, "a\n")
	if q := requestAt(t, open(t, path, FileOptions{Output: FixedLength(3)}), 0); q.Output != 3 || q.Exact {
		t.Errorf("output by option: %+v", q)
	}
	if q := requestAt(t, open(t, path, FileOptions{Exact: true}), 0); q.Output != Unknown || q.Exact {
		t.Errorf("output left to the server: %+v", q)
	}
}

func TestFileChanges(t *testing.T) {
	path := written(t, "one\ntwo\n")
	f := open(t, path, FileOptions{})
	if err := os.WriteFile(path, []byte("ONE\nTWO\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.At(0); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("At of a changed file: %v", err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.At(0); err == nil {
		t.Error("At of a truncated file is no error")
	}
}

func TestFileDescribe(t *testing.T) {
	f := open(t, filepath.Join("testdata", "sharegpt_sample.json"), FileOptions{Output: FixedLength(9)})
	got, err := json.Marshal(f.Describe())
	const want = `{"kind":"file","output":"9","file":{"name":"testdata/sharegpt_sample.json","sha256":"1c207c6bfe26eeb549f54d58cb1a17795e14c13a7236dcb9691b741a99ebada7",` +
		`"format":"sharegpt","records":5,"requests":4,"skipped":{"fewer than two turns":1},"output_estimated":true}}`
	if err != nil || string(got) != want {
		t.Errorf("description %s, %v, want %s", got, err, want)
	}
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("word ", 100_000)
	f := open(t, written(t, "short\n"+long+"\nshort"), FileOptions{})
	total := 0
	for i := range int64(3) {
		total += len(requestAt(t, f, i).Messages[0].Segments[0].Text)
	}
	if total != len(long)+10 {
		t.Errorf("three prompts have %d bytes, want %d", total, len(long)+10)
	}
}

// Whatever is in a file, it opens or it does not; what opens can be asked.
func FuzzOpen(f *testing.F) {
	examples, err := filepath.Glob("testdata/*sample.json*")
	if err != nil || len(examples) != 5 {
		f.Fatal(examples, err)
	}
	for _, path := range examples {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	for _, s := range []string{"", `{"conversations":[[{"messages":[{"role":"user","content":"a"}],"prompt_tokens":5},{"messages":[{"role":"tool","content":"b"}]}]]}`,
		`{"data":[{"payloads":[{"messages":[{"role":"user","content":"a"}]},{"messages":[{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}]}]}`,
		"a\nb\n\xff\nc", "one\n\ntwo", "[INST] a", "[", "[{}", "[]x", "\ufeff[]", `{"messages":[{"role":"tool","content":[]}]}`,
		`{"prompt":null}`, `{"text":"a","extra":null}`, "null", "[null]", `[{"conversations":null}]`, `{"custom_id":1,"body":[]}`} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "prompts")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := Open(path, FileOptions{Seed: 1})
		if err != nil {
			return
		}
		defer w.Close()
		s := w.Stats()
		for i := range int64(s.Requests) {
			q, err := w.At(i)
			if err != nil {
				t.Fatalf("request %d of %q: %v", i, content, err)
			}
			if len(q.Messages) == 0 || q.Output == 0 || q.Output < Unknown || q.Body != nil && !json.Valid(q.Body) {
				t.Fatalf("request %d of %q: %+v", i, content, q)
			}
		}
		for _, n := range s.Skipped {
			s.Records -= n
		}
		if s.Records != s.Requests {
			t.Fatalf("%q: records do not add up: %+v", content, w.Stats())
		}
	})
}

// Each parser by itself, free of what detection keeps from it.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{`{}`, `null`, `{"messages":[null]}`, `{"messages":[{"role":"user","content":"a"}],"max_tokens":1e2}`, conversation("human", "gpt"),
		`{"url":"/chat/completions","body":null}`, `{"text":"a","extra":{"model":1}}`, `{"prompt":"\ud800"}`, "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, format := range append(objectFormats(), format{name: "text", parse: parseText}, agenticTrace()) {
			before := bytes.Clone(raw)
			r, err := format.parse(raw)
			if err == nil && len(r.messages) == 0 {
				t.Errorf("%s: %q gives neither messages nor a reason", format.name, raw)
			}
			if !bytes.Equal(raw, before) {
				t.Errorf("%s changes its input", format.name)
			}
		}
	})
}

func BenchmarkFileAt(b *testing.B) {
	f := open(b, written(b, strings.Repeat(`{"messages":[{"role":"user","content":"`+strings.Repeat("word ", 800)+`"}],"max_tokens":9}`+"\n", 100)), FileOptions{})
	b.ReportAllocs()
	var i int64
	for b.Loop() {
		_, _ = f.At(i)
		i++
	}
}

func BenchmarkOpen(b *testing.B) {
	content := strings.Repeat(`{"prompt":"`+strings.Repeat("word ", 200)+`","output_tokens":10}`+"\n", 10_000)
	path := written(b, content)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		f, err := Open(path, FileOptions{})
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
