package workload

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a file is shows in how it begins.
func TestIdentify(t *testing.T) {
	for text, want := range map[string]Kind{
		"a prompt\nanother, with a comma\n": Prompts,
		"":                                  Prompts,
		"2\n7.5\n":                          Recorded,
		"42\nis the answer\n":               Prompts,
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n": Recorded,
		"timestamp;input_tokens\n1;2\n": Recorded,
		"timestamp,prompt\n1,a\n":       Prompts,
		`{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0]}`:                   Recorded,
		`[{"timestamp": 0, "input_length": 6758}]`:                                                        Recorded,
		`{"timestamp": 0, "text_input": "a", "output_length": 5}`:                                         Prompts,
		`{"prompt": "` + strings.Repeat("long ", 20_000) + `", "output_tokens": 5}`:                       Prompts,
		`{"input_length": 5, "hash_ids": [` + strings.Repeat("1,", 50_000) + `1]}`:                        Recorded,
		"[\n {\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}]}\n]":                           Prompts,
		`{"request_id": 0, "type": "text", "input_length": 61, "output_length": 2370, "duration": 14000}`: Recorded,
	} {
		if got, err := Identify(written(t, text)); got != want || err != nil {
			t.Errorf("%.60q: %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := Identify("/nowhere"); err == nil {
		t.Error("no error of a file that is not there")
	}
}

// The fast reader of objects and encoding/json agree.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2, {"b": "}\""}], "c\u0041": null, "d": -1.5e3}`))
	f.Add([]byte(`{"timestamp": "27", "hash_ids": {"sys_prompt": [8302, 1]}}  `))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]string{}
		err := eachMember(raw, func(key, value []byte) { got[string(key)] = string(value) })
		want, wantErr := parseObject(raw)
		if wantErr != nil || !utf8.Valid(raw) {
			return // what is no JSON may pass, no more is looked at than where values end; broken names are read as they are
		}
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		for key, value := range want {
			if got[key] != string(value) {
				t.Fatalf("%q: %s is %q, want %q", raw, key, got[key], value)
			}
		}
	})
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "10.0": 10, "1e3": 1000, "123456789012345": 123456789012345, "-5": -5} {
		if n, ok := wholeNumber([]byte(text)); n != want || !ok {
			t.Errorf("%s: %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "01", "1.5", "1e999", "x", `"5"`, "true", "9007199254740994", "[1]", "-"} {
		if n, ok := wholeNumber([]byte(text)); ok {
			t.Errorf("%q is %d", text, n)
		}
	}
	ids, ok := appendNumbers(nil, []byte("[0, 1,22 , -7, 18446744073709551615, 9007199254740993]"))
	if !ok || len(ids) != 6 || ids[2] != 22 || ids[3] != -7 || ids[4] != -1 || ids[5] != 9007199254740993 {
		t.Errorf("%v, %v", ids, ok)
	}
	for _, text := range []string{"[", "[1", "[1,]", "[1 2]", "[,1]", "[1]]", `["1"]`, "[01]", "{}", "[1.5]"} {
		if ids, ok := appendNumbers(nil, []byte(text)); ok {
			t.Errorf("%q: %v", text, ids)
		}
	}
}
