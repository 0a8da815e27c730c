package workload

import (
	"fmt"
	"maps"
	"pitot/internal/workload/arrival"
	"slices"
	"strings"
	"testing"
	"time"
)

// What changes a request, or when it comes, is used, or counted as not used.
func TestFieldsAreUsedOrTold(t *testing.T) {
	for name, c := range map[string]struct {
		content, want string
		unused        map[string]int
	}{
		"AIPerf's text at its times":     {"{\"timestamp\":0,\"text_input\":\"a\",\"output_length\":5}\n{\"timestamp\":500,\"text_input\":\"b\",\"output_length\":6}", "0 ms, 5 out, user: a\n500 ms, 6 out, user: b", nil},
		"AIPerf's messages":              {"{\"timestamp\":0,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"timestamp\":500.5,\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}", "0 ms, user: a\n500500 ms, user: b", nil},
		"messages out of order":          {"{\"timestamp\":700,\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n{\"timestamp\":200,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", "0 ms, user: a\n500 ms, user: b", nil},
		"vLLM's prompts":                 {"{\"timestamp\":0,\"prompt\":\"a\",\"output_tokens\":5}\n{\"timestamp\":500,\"prompt\":\"b\"}", "0 ms, 5 out, user: a\n500 ms, user: b", nil},
		"AIPerf's single turns":          {"{\"timestamp\":0,\"text\":\"a\"}\n{\"timestamp\":500,\"text\":\"b\"}", "0 ms, user: a\n500 ms, user: b", nil},
		"AIPerf's sessions":              {"{\"turns\":[{\"timestamp\":0,\"text\":\"a\"}]}\n{\"turns\":[{\"timestamp\":500,\"text\":\"b\"},{\"text\":\"c\",\"delay\":5}]}", "0 ms, user: a\n500 ms, user: b", nil},
		"ShareGPT with times":            {`[{"timestamp":"2025-06-01T10:00:00Z","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x"}]},{"timestamp":"2025-06-01T10:00:02Z","conversations":[{"from":"human","value":"b"},{"from":"gpt","value":"x"}]}]`, "0 ms, 2 out, user: a\n2000 ms, 2 out, user: b", nil},
		"seconds by their name":          {"{\"arrival_s\":1,\"prompt\":\"a\"}\n{\"arrival_s\":3,\"prompt\":\"b\"}", "0 ms, user: a\n2000 ms, user: b", nil},
		"some have no time":              {"{\"timestamp\":0,\"prompt\":\"a\"}\n{\"timestamp\":500,\"prompt\":\"b\"}\n{\"prompt\":\"c\"}", "0 ms, user: a\n500 ms, user: b\nlost: 1 record of the file left out, which cannot be sent: pitot workload lint says why", nil},
		"most have no time":              {"{\"timestamp\":0,\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n{\"prompt\":\"c\"}", "user: a\nuser: b\nuser: c", nil},
		"a time that is none":            {"{\"timestamp\":\"noon\",\"prompt\":\"a\"}\n{\"timestamp\":\"night\",\"prompt\":\"b\"}", "user: a\nuser: b\nlost: a field of 2 records is not used: timestamp", map[string]int{"timestamp": 2}},
		"system beside a prompt":         {`{"prompt":"a","system":"Be brief."}`, "system: Be brief., user: a", nil},
		"system_prompt beside a prompt":  {`{"prompt":"a","system_prompt":"Be brief.","output_tokens":3}`, "3 out, system: Be brief., user: a", nil},
		"system beside a question":       {`{"question":"a","system_prompt":"Be brief."}`, "system: Be brief., user: a", nil},
		"system beside a text":           {`{"text":"a","system":"Be brief."}`, "system: Be brief., user: a", nil},
		"system beside messages":         {`{"messages":[{"role":"user","content":"a"}],"system":"Be brief.","top_p":1}`, `system: Be brief., user: a, {"top_p":1}`, nil},
		"system beside a system message": {`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"system":"other"}`, "system: s, user: a", nil},
		"system beside an image":         {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"system":"s"}`, `system: s, user: a, {"messages":[{"content":"s","role":"system"},{"role":"user","content":[{"type":"text","text":"a"}]}]}`, nil},
		"an empty system prompt":         {`{"prompt":"a","system":""}`, "user: a", nil},
		"ShareGPT's system turn":         {`[{"conversations":[{"from":"system","value":"Be brief."},{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}]`, "2 out, system: Be brief., user: a", nil},
		"ShareGPT's system field":        {`[{"system":"Be brief.","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}]`, "2 out, system: Be brief., user: a", nil},
		"ShareGPT's both":                {`[{"system":"other","conversations":[{"from":"system","value":"Be brief."},{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}]`, "2 out, system: Be brief., user: a", nil},
		"ShareGPT's tools":               {`[{"tools":"[1]","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}]`, "2 out, user: a\nlost: a field of 1 record is not used: tools", map[string]int{"tools": 1}},
		"Alpaca":                         {`[{"instruction":"Odd one?","input":"Oak, Salmon","output":"Salmon"},{"instruction":"Tips?","input":"","output":"x"}]`, "user: Odd one?\n\nOak, Salmon\nuser: Tips?", nil},
		"Dolly":                          {`{"instruction":"Who?","context":"Ada wrote it.","response":"Ada","category":"qa"}`, "user: Who?\n\nAda wrote it.", nil},
		"a context beside a question":    {`{"question":"Who?","context":"Ada wrote it."}`, "user: Who?\nlost: a field of 1 record is not used: context", map[string]int{"context": 1}},
		"suffix":                         {"{\"prompt\":\"a\",\"suffix\":\"z\"}\n{\"prompt\":\"b\",\"suffix\":\"\"}", "user: a\nuser: b\nlost: a field of 1 record is not used: suffix", map[string]int{"suffix": 1}},
		"how it is drawn":                {`{"prompt":"a","temperature":0,"top_p":0.5,"stop":["x"],"id":7,"answer":"y"}`, "user: a\nlost: 3 fields of 1 record each are not used: stop, temperature, top_p", map[string]int{"temperature": 1, "top_p": 1, "stop": 1}},
		"sent along with messages":       {`{"messages":[{"role":"user","content":"a"}],"temperature":0,"tools":[]}`, `user: a, {"temperature":0,"tools":[]}`, nil},
		"images beside a prompt":         {`{"prompt":"a","images":["x.png"]}`, "user: a\nlost: a field of 1 record is not used: images", map[string]int{"images": 1}},
		"a delay":                        {"{\"timestamp\":0,\"session_id\":\"s\",\"text_input\":\"a\"}\n{\"delay\":5,\"session_id\":\"s\",\"text_input\":\"b\"}", "0 ms, user: a\nlost: 1 record of the file left out, which cannot be sent: pitot workload lint says why\nlost: a field of 1 record is not used: delay", map[string]int{"delay": 1}},
		"our own":                        {"{\"schema\":\"pitot.requests/v1\",\"holds\":\"prompts\"}\n{\"due_ns\":5000000,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"due_ns\":6000000,\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}", "0 ms, user: a\n1 ms, user: b", nil},
		"commas between lines":           {"{\"text\":\"a\"},\n{\"text\":\"b\"},\n", "user: a\nuser: b", nil},
		"commas before lines":            {"{\"text\":\"a\"}\n,{\"text\":\"b\"}\n", "user: a\nuser: b", nil},
		"fields of a trace": {"{\"timestamp\":0,\"input_length\":1,\"output_length\":2,\"priority\":0,\"lora\":\"a\",\"stop\":[\"x\"],\"tools\":[]}\n{\"timestamp\":5,\"input_length\":3,\"output_length\":4,\"priority\":1}",
			"0 ms, 1 in, 2 out\n5 ms, 3 in, 4 out\nlost: 3 fields are not used: lora (1 record), priority (2 records), stop (1 record)", map[string]int{"priority": 2, "lora": 1, "stop": 1}},
		"a delay beside a time of a trace": {"{\"timestamp\":0,\"input_length\":1,\"output_length\":2,\"delay\":500}\n{\"timestamp\":5,\"input_length\":3,\"output_length\":4}", "0 ms, 1 in, 2 out\n5 ms, 3 in, 4 out\nlost: a field of 1 record is not used: delay", map[string]int{"delay": 1}},
		"a delay without times":            {"{\"session_id\":\"s\",\"input_length\":1,\"output_length\":2,\"delay\":500}\n{\"session_id\":\"s\",\"input_length\":3,\"output_length\":4,\"delay\":500}", "1 in, 2 out\n3 in, 4 out\nlost: a field of 2 records is not used: delay", map[string]int{"delay": 2}},
		"columns of a trace": {"timestamp,prompt_tokens,completion_tokens,temperature,n,system_prompt,tools,delay\n0,10,5,0.9,3,You are a pirate,[{}],\n1,11,6,0.9,3,You are a pirate,[{}],7\n",
			"0 ms, 10 in, 5 out\n1000 ms, 11 in, 6 out\nlost: 5 fields are not used: delay (1 record), n (2 records), system_prompt (2 records), temperature (2 records), tools (2 records)", map[string]int{"delay": 1, "n": 2, "system_prompt": 2, "temperature": 2, "tools": 2}},
		"columns with separators of their own": {"timestamp|prompt_tokens|completion_tokens|model|temperature|user\n0.0|100|20|m|0.7|\n0.5|101|21|m|0.7|\n", "0 ms, 100 in, 20 out\n500 ms, 101 in, 21 out\nlost: a field of 2 records is not used: temperature", map[string]int{"temperature": 2}},
		"our own lengths":                      {"{\"schema\":\"pitot.requests/v1\",\"holds\":\"lengths\"}\n{\"input_tokens\":1,\"output_tokens\":2,\"seed\":7}", "1 in, 2 out\nlost: a field of 1 record is not used: seed", map[string]int{"seed": 1}},
		"our own prompts":                      {"{\"schema\":\"pitot.requests/v1\",\"holds\":\"prompts\"}\n{\"due_ns\":5000000,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"logit_bias\":{\"1\":2},\"delay\":5}", "0 ms, user: a\nlost: 2 fields of 1 record each are not used: delay, logit_bias", map[string]int{"logit_bias": 1, "delay": 1}},
		"how it is served":                     {`{"prompt":"a","priority":3,"adapter":"b","deadline_ms":5}`, "user: a\nlost: 3 fields of 1 record each are not used: adapter, deadline_ms, priority", map[string]int{"priority": 1, "adapter": 1, "deadline_ms": 1}},
		"how it is served with messages":       {`{"messages":[{"role":"user","content":"a"}],"priority":3,"seed":1}`, `user: a, {"priority":3,"seed":1}`, nil},
		"commas between rows of a trace":       {"{\"timestamp\":0,\"input_length\":1,\"output_length\":2},\n{\"timestamp\":5,\"input_length\":3,\"output_length\":4} ,\n", "0 ms, 1 in, 2 out\n5 ms, 3 in, 4 out", nil},
		"EvalScope's conversations":            {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"x\"},{\"role\":\"user\",\"content\":\"b\"}]\n[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"c\"}]", "user: a\nsystem: s, user: c", nil},
		"one of them":                          {"[{\"role\":\"user\",\"content\":\"a\"}]", "user: a", nil},
		"with commas":                          {"[{\"role\":\"user\",\"content\":\"a\"}],\n[{\"role\":\"user\",\"content\":\"b\"}],\n", "user: a\nuser: b", nil},
	} {
		path := named(t, "file", c.content)
		if got := asText(t, path); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
		if look, err := SummarizeRequests(path, func(b []byte) int { return len(b) }); err != nil || !maps.Equal(look.Unused, c.unused) {
			t.Errorf("%s: %v, %v", name, look, err)
		} else if told := slices.Contains(namesOf(look.Lint(Conditions{})), LintUnused); told != (len(c.unused) > 0) {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

// A system prompt stays in front of the further turns of a conversation.
func TestSystemPromptOfConversations(t *testing.T) {
	for name, content := range map[string]string{
		"turn":      `[{"conversations":[{"from":"system","value":"s"},{"from":"human","value":"a"},{"from":"gpt","value":"x"},{"from":"human","value":"b"},{"from":"gpt","value":"y"}]}]`,
		"field":     `[{"system":"s","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x"},{"from":"human","value":"b"},{"from":"gpt","value":"y"}]}]`,
		"EvalScope": "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"x\"},{\"role\":\"user\",\"content\":\"b\"}]",
	} {
		f := open(t, named(t, "file", content), FileOptions{InOrder: true})
		v, err := f.NewConversations(RecordedConfig{Turns: FixedLength(2), Recorded: true})
		if err != nil {
			t.Fatal(err)
		}
		q := requestAt(t, v, TurnItem(0, 1))
		got := ""
		for _, m := range q.Messages {
			got += m.Role + " " + m.Segments[0].Text + "; "
		}
		if want := "system s; user a; assistant x; user b; "; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The requests of a file with times come in their order, each as often as the others.
func TestInTime(t *testing.T) {
	path := named(t, "file", "{\"timestamp\":700,\"prompt\":\"c\"}\n{\"timestamp\":200,\"prompt\":\"a\"}\n{\"timestamp\":200,\"prompt\":\"b\"}\n{\"prompt\":\"d\"}\n")
	f := open(t, path, FileOptions{InTime: true, Seed: 7})
	times, err := PromptTimes(path)
	if err != nil || !slices.Equal(times, []int64{200e6, 200e6, 700e6}) {
		t.Errorf("times %v, %v", times, err)
	}
	texts := func() (s string) {
		for i := range int64(6) {
			s += requestAt(t, f, i).Messages[0].Segments[0].Text
		}
		return s
	}
	if got := texts(); got != "abcabc" {
		t.Errorf("%s", got)
	}
	f.Begin(2)
	if got := texts(); got != "cabcab" {
		t.Errorf("from the third on %s", got)
	}
	if s := f.Stats(); s.Requests != 3 || s.Skipped[string(skipNoTime)] != 1 || s.Records != 4 {
		t.Errorf("%+v", s)
	}
	if _, err := Open(named(t, "file", "{\"prompt\":\"a\"}\n"), FileOptions{InTime: true}); err == nil {
		t.Error("a file without times has them")
	}
	if _, err := PromptTimes(named(t, "file", "a\nb\n")); err == nil {
		t.Error("a text has times")
	}
	law, err := arrival.ParseLaw("trace("+path+")", ArrivalFiles())
	if err != nil || law.OwnRate() <= 0 {
		t.Errorf("the law of its times: %v, %v", law, err)
	}
}

// Rows of sessions that have a delay in place of a time follow the row before them in their
// session.
func TestRowsThatFollow(t *testing.T) {
	const trace = `{"session_id":"a","timestamp":0,"input_length":300,"output_length":4,"hash_ids":[1]}
{"session_id":"b","timestamp":100,"input_length":310,"output_length":5,"hash_ids":[3]}
{"session_id":"a","delay":200,"input_length":700,"output_length":6,"hash_ids":[1,2]}
{"session_id":"a","delay":50,"input_length":800,"output_length":7,"hash_ids":[1,2]}
{"timestamp":50,"input_length":10,"output_length":1}
{"session_id":"b","timestamp":900,"input_length":20,"output_length":2}
{"session_id":"b","delay":0,"input_length":30,"output_length":3}
{"session_id":"c","delay":9,"input_length":30,"output_length":3}
{"delay":9,"input_length":30,"output_length":3}
`
	rows, err := OpenRows(named(t, "trace.jsonl", trace))
	if err != nil {
		t.Fatal(err)
	}
	if rows.Len() != 4 || len(rows.turns) != 3 || rows.count.Rejected["a delay behind a turn that is not there"] != 1 || rows.count.Rejected["no timestamp, which others have"] != 1 {
		t.Errorf("%d rows, %d follow, %v", rows.Len(), len(rows.turns), rows.count.Rejected)
	}
	replay, err := rows.NewReplay(ReplayConfig{Nonce: 1})
	if err != nil {
		t.Fatal(err)
	}
	src, ok := replay.Source().(Sessions)
	if !ok {
		t.Fatal("no sessions")
	}
	var got []string
	for i := range int64(5) {
		for next := []Next{{Item: i}}; len(next) > 0; next = src.Follow(next[0].Item, true) {
			q := requestAt(t, src, next[0].Item)
			got = append(got, fmt.Sprintf("%d.%d/%d +%v %d %d", q.Session, q.Turn, q.Turns, next[0].After, q.Input, q.Output))
		}
	}
	want := []string{
		"0.0/3 +0s 300 4", "0.1/3 +200ms 700 6", "0.2/3 +50ms 800 7",
		"1.0/1 +0s 10 1",
		"2.0/1 +0s 310 5",
		"3.0/2 +0s 20 2", "3.1/2 +0s 30 3",
		"4.0/3 +0s 300 4", "4.1/3 +200ms 700 6", "4.2/3 +50ms 800 7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if src.Follow(0, false) != nil || replay.MeanTurns() != 7./4 || replay.Requests() != 7 {
		t.Errorf("a turn follows one that was not answered; %v turns", replay.MeanTurns())
	}
	first, second := requestAt(t, src, 0).Messages[0].Segments, requestAt(t, src, TurnItem(0, 1)).Messages[0].Segments
	if first[0].Seed != second[0].Seed || first[0].Words != 300 || second[0].Words != 512 {
		t.Errorf("block 1 is not shared: %+v, %+v", first, second)
	}
	if _, err := src.At(TurnItem(1, 1)); err == nil {
		t.Error("a turn that is not there is asked")
	}
	replay.Begin(3)
	if next := src.Follow(0, true); len(next) != 1 || next[0].After != 0*time.Second {
		t.Errorf("from the fourth row on %v follows", next)
	}
	// And back from another format.
	again := asText(t, named(t, "trace.jsonl", trace))
	for _, to := range []string{"pitot", "aiperf"} {
		var b strings.Builder
		if _, _, err := Convert(&b, named(t, "trace.jsonl", trace), to); err != nil {
			t.Fatal(err)
		}
		if got := asText(t, named(t, "again.jsonl", b.String())); got != strings.Replace(again, "\nlost: 2 records of the file left out, which cannot be sent: pitot workload lint says why", "", 1) {
			t.Errorf("by way of %s:\n%s\nwant\n%s", to, got, again)
		}
	}
	look, err := ReadTrace(named(t, "trace.jsonl", trace))
	if err != nil || look.Turns != 3 || len(look.At) != 4 || len(look.Input) != 7 || look.Unsorted != 1 {
		t.Errorf("%+v, %v", look, err)
	}
}
