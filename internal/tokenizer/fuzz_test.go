package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/say"
)

// Whatever a file holds, reading it ends in a tokenizer that can be used or in an error.
func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.json")
	for _, path := range paths {
		if data := few(f, path, 24); data != nil {
			f.Add(data)
		}
	}
	if data, err := os.ReadFile("testdata/plain.model"); err == nil { // some of its pieces, the last cut off
		f.Add(data[:600])
	}
	f.Add([]byte("IQ== 0\nIg== 1\nISI= 2\n"))
	f.Add([]byte(`{"config":{"pattern":"\\p{L}+|\\s","default_vocab_size":5,"default_num_special_tokens":2},"vocab":[{"rank":0,"token_bytes":"IQ=="},{"rank":1,"token_bytes":"Ig=="},{"rank":2,"token_bytes":"ISI="}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		e := tok.NewEncoder()
		ids, _ := e.Append(nil, []byte("Hello  wörld\n\n12345 它🙂<s>"))
		for _, id := range ids {
			tok.Text(id)
		}
	})
}

// few is a tokenizer.json with the first so many entries of its lists, and what of its merges
// they still have: inputs of 20 kB keep a fuzzer busy with making them smaller, a minute for
// each that it finds. nil is a file that is none.
func few(t testing.TB, path string, most int) []byte {
	var file map[string]any
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	model, ok := file["model"].(map[string]any)
	if !ok {
		return nil
	}
	vocab, ok := model["vocab"].(map[string]any)
	if !ok {
		if list, unigram := model["vocab"].([]any); unigram {
			model["vocab"] = list[:min(len(list), most)]
		}
		small, _ := json.Marshal(file)
		return small
	}
	kept := map[string]any{}
	for name, id := range vocab {
		if id, ok := id.(float64); ok && int(id) < most {
			kept[name] = id
		}
	}
	merges, _ := model["merges"].([]any)
	model["merges"] = slices.DeleteFunc(merges, func(m any) bool {
		a, b := "", ""
		switch m := m.(type) {
		case string:
			a, b, _ = strings.Cut(m, " ")
		case []any:
			a, b = m[0].(string), m[1].(string)
		}
		for _, x := range []string{a, b, a + b} {
			if kept[x] == nil {
				if vocab[x] == nil || len(kept) >= 3*most {
					return true
				}
				kept[x] = len(kept)
			}
		}
		return false
	})
	model["vocab"] = kept
	small, _ := json.Marshal(file)
	return small
}

// Any bytes can be encoded, twice the same, and what ids stand for is the text again where the
// tokenizer changes nothing.
func FuzzEncode(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.json")
	var encoders []*Encoder
	for _, name := range names {
		if strings.HasSuffix(name, "ids.json") || strings.HasSuffix(name, "texts.json") {
			continue
		}
		tok, err := Open(name)
		if err != nil {
			f.Fatal(err)
		}
		encoders = append(encoders, tok.NewEncoder())
	}
	for _, s := range []string{"", "a b  c\r\n", "\xff\xc3\x28\xe2\x82", "e\u0301\u0301\u0301 中文 12345", "<|im_start|><mask> x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, e := range encoders {
			ids, err := e.Append(nil, text)
			if again, _ := e.Append(nil, text); err != nil || !slices.Equal(ids, again) {
				t.Fatalf("%s: %v, then %v", e.t.Name(), ids, again)
			}
			if e.t.lossless && len(e.t.normalizers) == 0 && e.t.lead == "" {
				if got := strings.Join(spelt(e.t, ids), ""); got != strings.ToValidUTF8(string(repairUTF8(nil, text)), "") {
					t.Fatalf("%s: %q became %q", e.t.Name(), text, got)
				}
			}
		}
	})
}

// The scanners split as their expressions say, which are followed by backtracking here.
func TestScanners(t *testing.T) {
	parts := []string{"a", "B", "é", "É", "中", "の", "ǅ", "ʰ", "\u0301", "\u093f", "1", "½", "٣", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "'", "'s", "'LL", "'ſ", "!", "$", "/", "_", "🙂", "\u200d", "\u0378", "\u2fdc"} // the last two are not assigned
	table := classTable()
	known := knownScanners()
	known[cl100k] = scanCL100k
	for pattern, scan := range known {
		if strings.Contains(pattern, `\s++$`) { // Oniguruma's $ is at each line break, tiktoken's at the end alone
			pattern = strings.ReplaceAll(pattern, "$", `\z`)
		}
		x, err := compile(pattern, true)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			s := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "text"), ""))
			for i := 0; i < len(s); {
				begin, end := x.find(table, s, i)
				if b, e := scan.find(table, s, i); b != begin || e != end {
					t.Fatalf("%s in %q from %d: scanner %d–%d, expression %d–%d", pattern, s, i, b, e, begin, end)
				}
				i = max(end, begin)
			}
		})
	}
}

// The heap merges what looking for the lowest rank merges.
func TestMergeLong(t *testing.T) {
	tok, err := Open("testdata/llama3.json")
	if err != nil {
		t.Fatal(err)
	}
	m, e := tok.model.(*bpe), tok.NewEncoder()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOfN(rapid.SampledFrom([]byte("aabbtheingo ")), 0, 300).Draw(t, "text")
		long := slices.Clone(m.mergeLong(e, m.initialTokens(nil, s)))
		if short := m.mergeShort(e, m.initialTokens(nil, s)); !slices.Equal(short, long) {
			t.Fatalf("%q: %v and %v", s, short, long)
		}
	})
}

// Marks in runs of any length are ordered and composed as the standard says.
func TestForms(t *testing.T) {
	long := "aaa" + strings.Repeat("\u0301", 40) + "\u0323b"
	change := normalForm(3)(classTable(), nil) // NFKD
	out, _ := change([]byte(long))
	if want := "aaa\u0323" + strings.Repeat("\u0301", 40) + "b"; string(out) != want {
		t.Errorf("%q", out)
	}
}

// U+FFFD stands for each sequence that is cut short, as in Python: b.decode("utf-8", "replace").
func TestRepair(t *testing.T) {
	for in, want := range map[string]string{
		"a\xffb": "a\uFFFDb", "\xe2\x82": "\uFFFD", "\xe2\x82\x41": "\uFFFDA", "\xf0\x9f\x98": "\uFFFD", "\xed\xa0\x80": "\uFFFD\uFFFD\uFFFD",
		"\xc0\xaf": "\uFFFD\uFFFD", "\xf4\x90\x80\x80": "\uFFFD\uFFFD\uFFFD\uFFFD", "\xf0\x80\x80": "\uFFFD\uFFFD\uFFFD", "\xe0\x9f\x80": "\uFFFD\uFFFD\uFFFD", "\xc3\x28": "\uFFFD(",
	} {
		if got := string(repairUTF8(nil, []byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	texts, _ := readGolden(b)
	for _, name := range []string{"llama3.json", "llama2.json", "bert.json", "unigram.json"} {
		tok, err := Open("testdata/" + name)
		if err != nil {
			b.Fatal(err)
		}
		text := []byte(strings.Join(texts, "\n"))
		b.Run(name, func(b *testing.B) {
			e := tok.NewEncoder()
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = e.Count(text)
			}
		})
	}
}

// What is not understood is refused in one sentence that names it.
func TestRefused(t *testing.T) {
	for edit, want := range map[string]string{
		`{"model":{"type":"BPE","dropout":0.1,"vocab":{},"merges":[]}}`:                                                    "dropout",
		`{"model":{"type":"WordLevel","vocab":{}}}`:                                                                        `its model "WordLevel" is not supported`,
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`:                                                        `it merges "a" and "b"`,
		`{"pre_tokenizer":{"type":"UnicodeScripts"},"model":{"type":"BPE"}}`:                                               `its pre-tokenizer "UnicodeScripts" is not supported`,
		`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?<name>a)"},"behavior":"Isolated"},"model":{"type":"BPE"}}`: "the expression",
		`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAA"},"model":{"type":"BPE"}}`:                        "charsmap",
		`{"bos_token":"<s>"}`: "it has no model",
		`[]`:                  "not a tokenizer.json",
	} {
		_, err := Parse([]byte(edit))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", edit, err, want)
		}
	}
}

// A damaged file is refused in one sentence that says what to do, or read: what is cut off at the
// end of an entry, or has a bit turned over, may be a file of its own.
func TestDamaged(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.*")
	files := map[string][]byte{"tiktoken": []byte("IQ== 0\nIg== 1\nISI= 2\n"), "tekken": []byte(`{"config":{"pattern":"a","default_vocab_size":3,"default_num_special_tokens":1},"vocab":[{"rank":0,"token_bytes":"IQ=="},{"rank":1,"token_bytes":"Ig=="}]}`)}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = data
	}
	refused := 0
	for name, data := range files {
		for i := range 12 {
			damaged := slices.Clone(data)
			if at := len(data) * i / 12; i%2 == 0 {
				damaged = damaged[:at]
			} else {
				damaged[at] ^= 0x55
			}
			_, err := Parse(damaged)
			if err == nil {
				continue
			}
			refused++
			if text := err.Error(); strings.Contains(text, "\n") || len(text) > 300 || say.HintOf(err) == "" {
				t.Errorf("%s, %d: %q, hint %q", name, i, text, say.HintOf(err))
			}
		}
	}
	if refused < 6*len(files) {
		t.Errorf("%d refused of %d files", refused, len(files))
	}
}

// A symbol of the user's without text, as no library writes one, is in no text.
func TestEmptySymbol(t *testing.T) {
	piece := func(text string, kind byte) string {
		body := "\x0a" + string(rune(len(text))) + text + "\x18" + string(rune(kind))
		return "\x0a" + string(rune(len(body))) + body
	}
	tok, err := Parse([]byte(piece("", spUser) + piece("a", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := tok.NewEncoder().Count([]byte("a")); n == 0 || err != nil {
		t.Error("nothing was counted")
	}
}

// hf is a tokenizer.json that has a token for each ASCII character but no merges, and other parts.
func hf(t *testing.T, parts string) (*Tokenizer, error) {
	t.Helper()
	vocab := map[string]int{}
	for c := rune(' '); c < 127; c++ {
		vocab[string(c)] = len(vocab)
	}
	model, _ := json.Marshal(map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}})
	return Parse([]byte(`{` + parts + `,"model":` + string(model) + `}`))
}

func expressed(pattern string) string {
	quoted, _ := json.Marshal(pattern)
	return `"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":` + string(quoted) + `}}`
}

// Matches are those of Hugging Face's library (tokenizers 0.23.3, Oniguruma).
func TestOniguruma(t *testing.T) {
	for _, x := range []struct{ pattern, text, want string }{
		{`\d{1,3}+`, "1234567", "1234567"},
		{`y\d{2}?`, "y1234y5", "y12 y"},
		{`[]a]`, "x]ay", "] a"},
		{`[^]a]`, "x]ay", "x y"},
		{strings.TrimPrefix(cl100k, "'(?i:[sdmt]|ll|ve|re)|"), "1234567", "1234567"},
	} {
		f, err := expressionOf(x.pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := 0; i < len(x.text); {
			begin, end := f.find(classTable(), []byte(x.text), i)
			if i = end; begin < end {
				got = append(got, x.text[begin:end])
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s in %q: %q, want %q", x.pattern, x.text, got, x.want)
		}
	}
	for _, pattern := range []string{`\d{2}?`, `a*`, `(?i:ss)`, `(?i:ß)`, `a{3,2}`} {
		if _, err := compile(pattern, false); err == nil {
			t.Errorf("%s was read", pattern)
		}
	}
	if _, err := expressionOf(cl100k, false); err != nil {
		t.Error(err)
	}
}

// A text of any length is split by what known models have, within its budget.
func TestBudgetIsEnough(t *testing.T) {
	text := []byte(strings.Repeat("ITL     9.67   13.2 'ſ  'LL\u00a0ʰ 中文 don't  \n\n", 5000))
	for pattern := range knownScanners() {
		x, err := compile(pattern, true)
		if err != nil {
			t.Fatal(err)
		}
		work := textBudget(len(text))
		at := limitFinder(x, &work)
		if err := catchGiveUp(func() {
			for i := 0; i < len(text); {
				begin, end := at.find(classTable(), text, i)
				i = max(begin, end)
			}
		}); err != nil || work.left < work.most/2 {
			t.Errorf("%s: %v, %d of %d steps are left", pattern, err, work.left, work.most)
		}
	}
}

// What takes too long, or too much room, is given up with an error; the next text is counted again.
func TestGivesUp(t *testing.T) {
	doubling := `"normalizer":{"type":"Sequence","normalizers":[` +
		strings.TrimSuffix(strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 26), ",") + `]}`
	for name, x := range map[string]struct{ parts, text string }{
		"backtracking": {expressed(`(?:a|a)*b`), strings.Repeat("a", 24)},
		"deep":         {expressed(`(?:(?:a|b)*c?)*d`), strings.Repeat("ab", 1<<20)},
		"growing":      {doubling, "a"},
		// Each match takes less than a text may; all of them together take more.
		"many matches":           {expressed(`(?:(?:a?){10}b|a)`), strings.Repeat("a", 70)},
		"many matches, replaced": {`"normalizer":{"type":"Replace","pattern":{"Regex":"(?:(?:a?){10}b|a)"},"content":"c"}`, strings.Repeat("a", 70)},
		"many pieces":            {expressed(`(?:(?:a?){10}b|a)`) + `,"added_tokens":[{"id":90,"content":"-","special":true}]`, strings.Repeat("aaaaaaaaaa-", 7)},
	} {
		tok, err := hf(t, x.parts)
		if err != nil {
			t.Fatal(name, err)
		}
		e := tok.NewEncoder()
		if n, err := e.Count([]byte(x.text)); err == nil || n != 0 {
			t.Errorf("%s: %d tokens, %v", name, n, err)
		} else if want := fmt.Sprintf("the tokenizer's split pattern needs more than %s steps for one text: refused", say.Count(textBudget(len(x.text)).most)); strings.HasPrefix(name, "many") && err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if steps := textBudget(len(x.text)).most - e.work.left; steps > textBudget(len(x.text)).most+1+len(x.text)/16 {
			t.Errorf("%s: %d steps", name, steps)
		}
		if n, err := e.Count([]byte("xyz")); n != 3 || err != nil {
			t.Errorf("%s, then another text: %d tokens, %v", name, n, err)
		}
	}
	long := strings.Repeat("a", longestToken+1)
	for name, file := range map[string]string{
		"Unigram":  `{"model":{"type":"Unigram","vocab":[["` + long + `",0]]}}`,
		"BPE":      `{"model":{"type":"BPE","vocab":{"` + long + `":0},"merges":[]}}`,
		"tiktoken": base64.StdEncoding.EncodeToString([]byte(long)) + " 0\n",
	} {
		if _, err := Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), "4,097 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
