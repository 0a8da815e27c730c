package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitot/internal/say"
)

// Of two columns with one name none is chosen: an error names both.
func TestColumnsOfOneName(t *testing.T) {
	for content, want := range map[string]string{
		"timestamp,prompt_tokens,completion_tokens,prompt_tokens\n0,100,20,200\n1,101,21,202\n": `columns 2 and 4 of its header have the same name: "prompt_tokens" and "prompt_tokens"`,
		"time;Prompt Tokens;promptTokens\n0;1;1\n":                                              `columns 2 and 3 of its header have the same name: "Prompt Tokens" and "promptTokens"`,
		"prompt,prompt,suffix\na,b,c\nd,e,f\n":                                                  `columns 1 and 2 of its header have the same name: "prompt" and "prompt"`,
		"prompt,system,system\na,b,c\nd,e,f\n":                                                  `columns 2 and 3 of its header have the same name: "system" and "system"`,
		"timestamp,input_tokens,stop,stop\n0,1,a,b\n":                                           "",
		"timestamp,input_tokens,prompt_tokens\n0,1,2\n":                                         "", // the surer name holds
	} {
		for _, name := range []string{"file.csv", "file"} {
			_, err := SummarizeRequests(named(t, name, content), func(b []byte) int { return len(b) })
			if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
				t.Errorf("%q: %v, want %s", content, err, want)
			}
		}
	}
}

// named is a file of a name with that content.
func named(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asText says what a file asks, a line each, in the order of its times where it has some.
func asText(t testing.TB, path string) string {
	t.Helper()
	var b strings.Builder
	_, lost, err := Convert(&b, path, "pitot")
	if err != nil {
		return "error: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	var out []string
	for _, line := range lines {
		var q requestsRow
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		var parts []string
		if q.DueNS != nil {
			parts = append(parts, fmt.Sprint(*q.DueNS/1e6, " ms"))
		}
		if q.Input != nil {
			parts = append(parts, fmt.Sprint(*q.Input, " in"))
		}
		if q.Output != nil {
			parts = append(parts, fmt.Sprint(*q.Output, " out"))
		}
		if q.Messages != nil {
			for _, m := range *q.Messages {
				parts = append(parts, m.Role+": "+m.Content)
			}
		}
		if q.Body != nil {
			parts = append(parts, string(q.Body))
		}
		out = append(out, strings.Join(parts, ", "))
	}
	for _, l := range lost {
		out = append(out, "lost: "+l)
	}
	return strings.Join(out, "\n")
}

// Tables are read whatever stands between their cells and above their header, and whatever their
// columns are called.
func TestTables(t *testing.T) {
	const two = "0 ms, 100 in, 4 out\n750 ms, 101 in, 5 out"
	for name, c := range map[string]struct{ content, want string }{
		"usual":                     {"timestamp,input_tokens,output_tokens\n0.5,100,4\n1.25,101,5\n", two},
		"Excel":                     {"sep=;\r\ntimestamp;input_tokens;output_tokens\r\n0,5;100;4\r\n1,25;101;5\r\n", two},
		"Excel, with a mark":        {"\ufeffsep=;\r\ntimestamp;input_tokens;output_tokens\r\n0,5;100;4\r\n1,25;101;5\r\n", two},
		"sep of a tab":              {"sep=\t\ntimestamp\tinput_tokens\toutput_tokens\n0.5\t100\t4\n1.25\t101\t5\n", two},
		"sep of a bar":              {"sep=|\nTimestamp|Input Tokens|Output Tokens\n0.5|100|4\n1.25|101|5\n", two},
		"semicolons":                {"timestamp;input_tokens;output_tokens\n0.5;100;4\n1.25;101;5\n", two},
		"tabs and decimal commas":   {"timestamp\tinput_tokens\toutput_tokens\n0,5\t100\t4\n1,25\t101\t5\n", two},
		"bars":                      {"t|isl|osl\n0.5|100|4\n1.25|101|5\n", two},
		"comments":                  {"# made by hand\n#\ntimestamp,input_tokens,output_tokens\n0.5,100,4\n# a pause\n1.25,101,5\n", two},
		"a header behind a sign":    {"# timestamp,input_tokens,output_tokens\n0.5,100,4\n1.25,101,5\n", two},
		"a title":                   {"My report;;\n;;\ntimestamp;input_tokens;output_tokens\n0,5;100;4\n1,25;101;5\n", two},
		"two titles":                {"My report\nJune\ntimestamp,input_tokens,output_tokens\n0.5,100,4\n1.25,101,5\n", two},
		"blank lines":               {"\n\ntimestamp,input_tokens,output_tokens\n\n0.5,100,4\n\n1.25,101,5\n", two},
		"quoted":                    {"\"timestamp\",\"input_tokens\",\"output_tokens\"\n\"0.5\",\"100\",\"4\"\n\"1.25\",\"101\",\"5\"\n", two},
		"a comma at each end":       {"timestamp,input_tokens,output_tokens,\n0.5,100,4,\n1.25,101,5,\n", two},
		"other columns":             {"id,model,timestamp,note,input_tokens,output_tokens\na,m,0.5,\"x, y\",100,4\nb,m,1.25,\"two\nlines\",101,5\n", two},
		"a stray quote":             {"timestamp\tnote\tinput_tokens\toutput_tokens\n0.5\t5\" wide\t100\t4\n1.25\t\t101\t5\n", two},
		"camel case":                {"startTime,promptTokens,completionTokens\n0.5,100,4\n1.25,101,5\n", two},
		"dots":                      {"created_at,usage.prompt_tokens,usage.completion_tokens\n0.5,100,4\n1.25,101,5\n", two},
		"dashes and spaces":         {"Arrival-Time,Prompt Tokens,Completion Tokens\n0.5,100,4\n1.25,101,5\n", two},
		"milliseconds":              {"arrival_ms,num_prompt_tokens,num_output_tokens\n500,100,4\n1250,101,5\n", two},
		"microseconds in brackets":  {"t (us),tokens_in,tokens_out\n500000,100,4\n1250000,101,5\n", two},
		"since 1970":                {"timestamp,input_tokens,output_tokens\n1748772000.5,100,4\n1748772001.25,101,5\n", two},
		"since 1970, in ms":         {"timestamp,input_tokens,output_tokens\n1748772000500,100,4\n1748772001250,101,5\n", two},
		"dates":                     {"created_at,input,output\n2025-06-01 10:00:00.5,100,4\n2025-06-01 10:00:01.25,101,5\n", two},
		"dates with a zone":         {"time,input,output\n2025-06-01T10:00:00.5+02:00,100,4\n2025-06-01T10:00:01.25+02:00,101,5\n", two},
		"Postgres's dates":          {"time,input,output\n2025-06-01 10:00:00.5+00,100,4\n2025-06-01 10:00:01.25+00,101,5\n", two},
		"whole numbers as decimals": {"timestamp,input_tokens,output_tokens\n0.5,100.0,4.0\n1.25,101.0,5.0\n", two},
		"lengths alone":             {"input,output\n100,4\n101,5\n", "100 in, 4 out\n101 in, 5 out"},
		"times alone":               {"arrival_s\n0.5\n1.25\n", "0 ms\n750 ms"},
		"prompts":                   {"id;prompt;output_tokens\n1;Hello, you;4\n2;\"a; b\";5\n", "4 out, user: Hello, you\n5 out, user: a; b"},
		"prompts in one column":     {"Prompt\nHello\n\"a, \"\"b\"\"\nc\"\n", "user: Hello\nuser: a, \"b\"\nc"},
		"prompts with times":        {"timestamp,prompt\n1,b\n0.5,a\n", "0 ms, user: a\n500 ms, user: b"},
		"text_prompt":               {"id,text_prompt\n1,a\n2,b\n", "user: a\nuser: b"},
		"system prompts":            {"system_prompt,question\nBe brief.,a\n,b\n", "system: Be brief., user: a\nuser: b"},
		"Alpaca's":                  {"instruction,input,output\nAdd.,1 and 2,3\nSay hi.,,hi\n", "user: Add.\n\n1 and 2\nuser: Say hi."},
		"messages":                  {"id,messages\n1,\"[{\"\"role\"\":\"\"user\"\",\"\"content\"\":\"\"a\"\"}]\"\n2,\"[{\"\"role\"\":\"\"user\"\",\"\"content\"\":\"\"b\"\"}]\"\n", "user: a\nuser: b"},
		"input that is text":        {"timestamp,input,output\n2025-06-01 10:00:00,What is Go?,A language.\n2025-06-01 10:00:01,And C?,Another.\n", "0 ms, user: What is Go?\n1000 ms, user: And C?"},
		"prompts that are numbers":  {"id,prompt\n1,42\n2,43\n", "user: 42\nuser: 43"},
		"prompts that come late":    {"id,prompt\n" + strings.Repeat("1,\n", 30) + "2,a\n", "user: a\nlost: 30 records of the file left out, which cannot be sent: pitot workload lint says why"},
		"prompts that are not kept": {"timestamp,messages,prompt_tokens,completion_tokens\n0.5,{},100,4\n1.25,,101,5\n", two},
		"unused columns":            {"prompt,suffix,temperature,id\na,b,0.5,1\nc,,,2\n", "user: a\nuser: c\nlost: 2 fields of 1 record each are not used: suffix, temperature"},
	} {
		for _, file := range []string{"table.csv", "TABLE.TSV"} {
			if got := asText(t, named(t, file, c.content)); got != c.want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, file, got, c.want)
			}
		}
	}
}

// A file whose name says that it is a table is never asked as text: what is not understood is
// refused, with the columns that were found and those that are known.
func TestTablesRefused(t *testing.T) {
	for content, want := range map[string]string{
		"arrival_s,prompt_len,completion_len\n0.0,100,4\n": "no column of its header says how many tokens prompts have: arrival_s, prompt_len, completion_len",
		"0.0,100,4\n0.5,110,4\n":                           "it has no header: its first line is \"0.0,100,4\"",
		"2025-06-01 10:00:00;100;4\n":                      "it has no header",
		"0,5\n1,25\n":                                      "it has no header",
		"when,size,reply\n0.0,100,4\n":                     "no column of its header is known: when, size, reply",
		"when\tsize\treply\n0.0\t100\t4\n":                 "no column of its header is known: when, size, reply",
		"colour;wine\nred;Merlot\n":                        "no column of its header is known: colour, wine",
		"Hello\nWhat is the time?\n":                       "no column of its header is known: Hello",
		"a title\nanother\nwhen,size\n0.0,100\n":           "no column of its header is known: a title",
		"# nothing but a comment\n":                        "it is empty",
		"":                                                 "it is empty",
		"\n\n":                                             "it is empty",
		"sep=;\n":                                          "it is empty",
		"\"timestamp,input_tokens\n1,2\n":                  "", // a quote that does not end
		"request_length,response_length\n100,4\n":          "no column of its header is known",
		"\x00\x01\x02,\x03\n\x04\n":                        "no column of its header is known",
	} {
		for _, file := range []string{"t.csv", "t.tsv"} {
			path := named(t, file, content)
			kind, err := Identify(path)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read workload "+path+": ") {
				t.Errorf("%q: %s, %v", content, kind, err)
				continue
			}
			for name, open := range map[string]func() error{
				"Open": func() error {
					f, err := Open(path, FileOptions{})
					if err == nil {
						f.Close()
					}
					return err
				},
				"OpenRows": func() error { _, err := OpenRows(path); return err },
				"Look":     func() error { _, err := SummarizeRequests(path, func(b []byte) int { return len(b) }); return err },
			} {
				if err := open(); err == nil {
					t.Errorf("%s of %q is no error", name, content)
				} else if want != "" && !strings.Contains(want, "is empty") && say.HintOf(err) == "" {
					t.Errorf("%s of %q has no hint: %v", name, content, err)
				}
			}
		}
	}
	if _, err := Identify(named(t, "t.csv", "when,size\n1,2\n")); !strings.Contains(say.HintOf(err), "input_tokens") {
		t.Errorf("the hint does not say which columns are known: %s", say.HintOf(err))
	}
}

// Texts are no tables, though they have commas.
func TestTextIsNoTable(t *testing.T) {
	for content, want := range map[string]string{
		"What time, and where?\nTell me more, please.\n":         "user: What time, and where?\nuser: Tell me more, please.",
		"time, gentlemen, please\nwe close now, all of you\n":    "user: time, gentlemen, please\nuser: we close now, all of you",
		"Hello; input\nbye\n":                                    "user: Hello; input\nuser: bye",
		"# A heading\nand a text\n":                              "user: # A heading\nuser: and a text",
		"sep=; is what Excel writes\n":                           "user: sep=; is what Excel writes",
		"The start, the middle, the end\nof a story, long ago\n": "user: The start, the middle, the end\nuser: of a story, long ago",
		"prompt_len,completion_len\n100,4\n":                     "user: prompt_len,completion_len\nuser: 100,4",
	} {
		if got := asText(t, named(t, "prompts.txt", content)); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", content, got, want)
		}
	}
}

// The logs that gateways and tracing tools export, as traces and as prompts; see
// testdata/exports/README.md.
func TestExports(t *testing.T) {
	lengths := "0 ms, 21 in, 9 out\n1750 ms, 19 in, 30 out\n4250 ms, 40 in, 12 out"
	bare := "0 ms, 9 out, user: Name a river.\n1750 ms, 30 out, user: What is \"Go\"?\n4250 ms, 12 out, user: And another, please."
	whole := "0 ms, 9 out, system: Be brief., user: Name a river., {\"temperature\":0.2}\n1750 ms, 30 out, system: Be brief., user: What is \"Go\"?, {\"temperature\":0.2}\n4250 ms, 12 out, system: Be brief., user: And another, please., {\"temperature\":0.2}"
	for file, want := range map[string]string{
		"litellm_spend_logs.csv":              lengths,
		"litellm_spend_logs_with_prompts.csv": whole,
		"langfuse_observations.csv":           bare,
		"langfuse_generations.csv":            bare,
		"langfuse_traces.csv":                 lengths,
		"openrouter_activity.csv":             lengths,
		"portkey_logs.jsonl":                  whole,
		"helicone_requests.csv":               whole,
	} {
		path := filepath.Join("testdata", "exports", file)
		if got := asText(t, path); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
		}
		look, err := SummarizeRequests(path, func(b []byte) int { return len(b) })
		if err != nil || look.Requests() != 3 || len(look.At) != 3 || len(look.Unused) > 0 {
			t.Errorf("%s: %+v, %v", file, look, err)
		}
	}
}

// The same as JSON: lines, an array, an array over many lines.
func TestExportsAsJSON(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"LiteLLM":   {`[{"request_id":"a","startTime":"2025-06-01T10:00:00.25Z","endTime":"2025-06-01T10:00:01Z","prompt_tokens":21,"completion_tokens":9,"messages":{},"response":{},"user":"u","metadata":{"a":[1]}},{"request_id":"b","startTime":"2025-06-01T10:00:01.25Z","prompt_tokens":22,"completion_tokens":8,"messages":{}}]`, "0 ms, 21 in, 9 out\n1000 ms, 22 in, 8 out"},
		"Langfuse":  {"[\n{\n\"id\":\"a\",\n\"startTime\":\"2025-06-01T10:00:00.25Z\",\n\"createdAt\":\"2025-06-01T10:01:00Z\",\n\"input\":[{\"role\":\"user\",\"content\":\"q\"}],\n\"output\":{\"content\":\"x\"},\n\"usageDetails\":{\"input\":5,\"output\":7}\n}\n]", "0 ms, 7 out, user: q"},
		"OpenAI":    {`{"created":1748772000,"model":"m","request":{"messages":[{"role":"user","content":"q"}],"top_p":0.5},"usage":{"prompt_tokens":5,"completion_tokens":7}}`, `0 ms, 7 out, user: q, {"top_p":0.5}`},
		"usage":     {"{\"created\":1748772000,\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n{\"created\":1748772002,\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":8}}", "0 ms, 5 in, 7 out\n2000 ms, 6 in, 8 out"},
		"names":     {"{\"arrival_s\":0.5,\"isl\":5,\"osl\":7}\n{\"arrival_s\":1,\"isl\":6,\"osl\":8}", "0 ms, 5 in, 7 out\n500 ms, 6 in, 8 out"},
		"ms":        {"{\"arrival_ms\":500,\"promptTokens\":5,\"completionTokens\":7}\n{\"arrival_ms\":1000,\"promptTokens\":6,\"completionTokens\":8}", "0 ms, 5 in, 7 out\n500 ms, 6 in, 8 out"},
		"in a text": {`{"start_time":"2025-06-01T10:00:00Z","request":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","output_tokens":3}`, "0 ms, 3 out, user: q"},
		"Responses": {`{"created_at":1748772000,"request_body":{"input":"q"},"output_tokens":3}`, "0 ms, 3 out, user: q"},
	} {
		if got := asText(t, named(t, "log.json", c.content)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// Whatever a table is, its rows are those that another reader of CSV finds, and no text is lost
// between them.
func FuzzTable(f *testing.F) {
	for _, s := range []string{"timestamp,input_tokens\n1,2\n", "prompt;output_tokens\n\"a;\"\"b\n\";5\n", "sep=|\nt|isl\n1|2", "# x\nt\tprompt\n\"", "a,b\n1,2", "prompt\n\"\n", "t,input\n\"1\"x,2\n"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, isNamed bool) {
		name := filepath.Join(dir, "t.txt")
		if isNamed {
			name = filepath.Join(dir, "t.csv")
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		kind, err := Identify(name)
		if err != nil {
			return
		}
		switch kind {
		case Prompts:
			w, err := Open(name, FileOptions{InOrder: true})
			if err != nil {
				return
			}
			defer w.Close()
			for i := range int64(w.Stats().Requests) {
				if q, err := w.At(i); err != nil || len(q.Messages) == 0 {
					t.Fatalf("request %d of %q: %+v, %v", i, text, q, err)
				}
			}
		case Recorded:
			r, err := openRows(name)
			if err != nil {
				return
			}
			defer r.file.Close()
			for i := range r.Len() {
				if err := r.readRow(i, func(*row) {}); err != nil {
					t.Fatalf("row %d of %q: %v", i, text, err)
				}
			}
		}
		for _, s := range separators {
			rest, size := text, 0
			for len(rest) > 0 {
				record, n := recordOf(rest, s)
				if n <= 0 || n > len(rest) || record != nil && len(record) > n {
					t.Fatalf("%q: a record of %d bytes", rest, n)
				}
				size += n
				rest = rest[n:]
			}
			if size != len(text) {
				t.Fatalf("%q: records have %d of %d bytes", text, size, len(text))
			}
		}
	})
}

func TestSplitCells(t *testing.T) {
	for record, want := range map[string][]string{
		`a,b`:              {"a", "b"},
		`a,,`:              {"a", "", ""},
		``:                 {""},
		`"a,""b""",c`:      {`a,"b"`, "c"},
		` "a" , b `:        {"a", " b "},
		`5" wide,6" high`:  {`5" wide`, `6" high`},
		`"a"b,c`:           {"ab", "c"},
		"\"two\nlines\",c": {"two\nlines", "c"},
	} {
		if got, ok := splitCells([]byte(record), ','); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", record, got, ok)
		}
	}
	if _, ok := splitCells([]byte(`a,"b`), ','); ok {
		t.Error("a quote that does not end is none that is broken")
	}
}
