package chat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is rendered, and what is refused, is the same as with Hugging Face's transformers.
func TestConversations(t *testing.T) {
	data, err := os.ReadFile("testdata/conversations.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		var c struct {
			File, Template string
			Tokens         map[string]string
			Messages       []Message
			Text           *string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		x, err := Parse(c.Template, c.Tokens)
		if err != nil {
			t.Errorf("%s: %v", c.File, err)
			continue
		}
		text, err := x.Render(c.Messages, time.Time{})
		switch {
		case c.Text == nil:
			if err == nil || !strings.Contains(err.Error(), "it refuses the conversation") {
				t.Errorf("%s: %q, %v", c.File, text, err)
			}
		case err != nil || text != *c.Text:
			t.Errorf("%s: %v\n got %q\nwant %q", c.File, err, text, *c.Text)
		}
	}
	if n < 30 {
		t.Errorf("%d conversations", n)
	}
}

func render(source string) (string, error) {
	x, err := Parse(source, nil)
	if err != nil {
		return "", err
	}
	return x.Render([]Message{{"user", "Hi"}}, time.Date(2026, 3, 9, 5, 0, 0, 0, time.UTC))
}

// What is not followed is named, with its line; nothing is guessed.
func TestRefused(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{% include 'x' %}":                   "line 2: the tag include",
		"{{ messages | groupby('role') }}":       "the filter groupby",
		"{{ 1 if x is callable }}":               "the test callable",
		"{{ messages[0].content.encode() }}":     "a call of encode",
		"{{ messages }}":                         "a list is printed",
		"{{ missing.role }}":                     "role of missing, which is not defined",
		"{{ 1.5 }}":                              "a number with a fraction",
		"{{ 'a' + 1 }}":                          "a string + a number",
		"{{ 1 // 0 }}":                           "a division by 0",
		"{{ messages | tojson(indent=2) }}":      "tojson with a form",
		"{% for x in y recursive %}{% endfor %}": "a loop that calls itself",
		"{% if x %}":                             "the tag endif is missing",
		"{{ 'a }}":                               "a string has no end",
		"{{ (1] }}":                              `an unexpected "]"`,
		"{{ strftime_now('%j') }}":               "the form of a date",
		"{{ ? }}":                                "an unknown sign",
		"{% for 1 in x %}{% endfor %}":           `"1" where a name should be`,
		"{% if x '' %}{% endif %}":               `string "" where "%}" should be`,
		"{% set %}":                              `"%}" where a name should be`,
		"{{ x[] }}":                              "an item without a name",
		"{{ " + strings.Repeat("n", 300) + " }}": "a name of 300 letters",
		strings.Repeat("{{1}}", 1<<18):           "over 1 MiB long",
		"{{ raise_exception('a\\nb' * 1000) }}":  "it refuses the conversation: a ba ba b",
		"{# ":                                    "a comment has no end",
		"{{ raise_exception('no tools') }}":      "it refuses the conversation: no tools",
		"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}": "nested",
	} {
		_, err := render(source)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("%.100s: %v, want %s", source, err, want)
		}
	}
}

// A template that would never end, or fill the memory, is given up.
func TestGivesUp(t *testing.T) {
	const many = "{% for i in range(999) %}"
	const long, end = "{% set s = 'x' * 900000 %}{% set t = s ~ '' %}{% for i in range(99) %}", "{% endfor %}"
	for _, source := range []string{
		"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x.replace('a', ns.x) %}{% endfor %}",
		"{% set ns = namespace(x=['ab']) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
		"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		// Long texts and lists cost as much as it takes to go over them.
		"{% set s = 'x' * 4000000 %}{% for i in range(20) %}{{ s[0] }}{{ s[-1] }}{{ s | last }}{% endfor %}",
		long + "{{ s[9:] }}" + end, long + "{{ s[::-1] | length }}" + end, long + "{% for c in s %}{% endfor %}" + end,
		long + "{{ s | length }}" + end, long + "{{ s == t }}" + end, long + "{{ s < t }}" + end, long + "{{ 'y' in s }}" + end,
		long + "{{ s.find('y') }}" + end, long + "{{ s.split('y') | length }}" + end, long + "{{ s.split('x') | length }}" + end,
		long + "{{ (s | upper) is none }}" + end, long + "{{ s.strip('x') }}" + end, long + "{{ s.startswith(t) }}" + end,
		long + "{{ s | int }}" + end, long + "{{ (s | tojson) is none }}" + end, long + "{{ {'x': 1}[s] is none }}" + end,
		long + "{{ s.replace('y', '') is none }}" + end, long + "{{ ('{}' ~ s).format('') is none }}" + end,
		long + "{% set b %}{{ s }}{% endset %}" + end, long + "{{ [s, s] | join is none }}" + end,
		strings.Repeat("{% set x = range(131000) %}", 2),
		"{% set x = range(9999) %}{% for i in range(99) %}{% set y = x + x %}{% endfor %}",
		"{% set x = range(9999) %}{% for i in range(99) %}{{ x | reverse | length }}{% endfor %}",
		"{% set x = range(9999) %}{% for i in range(99) %}{% set y = x[1:] %}{% endfor %}",
		"{% set x = range(9999) %}{% for i in range(99) %}{{ x | map(attribute='y') | length }}{% endfor %}",
		"{% set x = range(9999) %}{% for i in range(99) %}{{ x | selectattr('y') | length }}{% endfor %}",
		many + "{% set x = [" + strings.Repeat("1,", 999) + "] %}" + end,
		many + strings.Repeat("a{# #}", 999) + end, many + "{{ namespace(" + strings.Repeat("1,", 999) + ") is none }}" + end,
		many + "{{ 0" + strings.Repeat(" or 0", 999) + " }}" + end, many + "{{ 1" + strings.Repeat(" if 1", 999) + " }}" + end,
		many + "{{ ''" + strings.Repeat("[:]", 999) + " }}" + end, many + "{{ 1" + strings.Repeat("<=1", 999) + " }}" + end,
		"{% for i in range(99999) %}{{ strftime_now('%Y%Y%Y%Y%Y%Y%Y%Y%Y') }}{% endfor %}",
		"{{ 'ab' * 999999999 }}", "{{ 'a' * (2147483647 * 2147483647) }}", "{{ range(2147483647) | list }}",
	} {
		if _, err := render(source); err == nil || !strings.Contains(err.Error(), "too ") && !strings.Contains(err.Error(), "deep") {
			t.Errorf("%.200s: %v", source, err)
		}
	}
	if text, err := render("{{ 'aé🙂'[2] ~ 'aé🙂'[-2] ~ 'aé🙂'[1:] ~ ('aé🙂' | first) ~ ('aé🙂' | last) ~ 'aé'[2] ~ 'aé'[-3] ~ 'a,b,c'.split(',', 1)[1] }}"); err != nil || text != "🙂éé🙂a🙂b,c" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := render("{{ 'abc'[2147483647 * 2147483647:] }}{{ 'abc'[::2147483647 * 2147483647 * 2] }}{{ 'abc'[::-1] }}"); err != nil || text != "acba" {
		t.Errorf("%q, %v", text, err)
	}
}

// The date is that of the time that is given.
func TestDate(t *testing.T) {
	if text, err := render("{{ strftime_now('%d %b %Y, %B %y %H:%M') }}"); err != nil || text != "09 Mar 2026, March 26 05:00" {
		t.Errorf("%q, %v", text, err)
	}
}

// Where a template lies, and which special tokens it has.
func TestBeside(t *testing.T) {
	const both = `{"bos_token":{"content":"<b>"},"eos_token":"<e>","pad_token":null,"chat_template":%s}`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":            {nil, ""},
		"without a template": {map[string]string{"tokenizer_config.json": `{"bos_token":"<b>"}`}, ""},
		"in the config":      {map[string]string{"tokenizer_config.json": strings.Replace(both, "%s", `"{{ bos_token + eos_token }}{{ pad_token }}"`, 1)}, "<b><e>"},
		"several":            {map[string]string{"tokenizer_config.json": strings.Replace(both, "%s", `[{"name":"tool_use","template":"no"},{"name":"default","template":"yes"}]`, 1)}, "yes"},
		"a file goes before": {map[string]string{"tokenizer_config.json": strings.Replace(both, "%s", `"no"`, 1), "chat_template.jinja": "{{ eos_token }}\n"}, "<e>"},
		"damaged":            {map[string]string{"tokenizer_config.json": `{"bos`}, "error"},
		"not followed":       {map[string]string{"chat_template.jinja": "{% include 'x' %}"}, "error"},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x, err := Beside(filepath.Join(dir, "tokenizer.json"))
		got := ""
		if x != nil {
			got, _ = x.Render(nil, time.Time{})
		}
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Whatever a template is, it ends in a text or in one sentence, and twice in the same.
func FuzzTemplate(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.jinja")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`{%- set x = [1, 'a\n\u00e9', {"k": none}][-1:0:-1] -%}{{ x[0].k is not none or x | length ~ "b"[0] }}`)
	f.Fuzz(func(t *testing.T, source string) {
		x, err := Parse(source, map[string]string{"bos_token": "<s>"})
		if err != nil {
			if strings.Contains(source, "\n") || !strings.Contains(err.Error(), "\n") {
				return
			}
			t.Fatal(err)
		}
		messages := []Message{{"system", " Be brief. "}, {"user", "Hi\n"}, {"assistant", "<think>\n\n</think>Yes"}, {"user", ""}}
		text, err := x.Render(messages, time.Time{})
		if again, _ := x.Render(messages, time.Time{}); err == nil && again != text {
			t.Fatalf("%q, then %q", text, again)
		}
	})
}
