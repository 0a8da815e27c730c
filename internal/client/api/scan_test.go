package api

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// nasty are texts at the edges of JSON's grammar, good and bad.
var nasty = []string{
	"", " ", "{}", "[]", " { } ", "[ ]", "null", "true", "false", "nul", "truex", "tru", "nullnull",
	"0", "-0", "00", "01", "-", "-1", "+1", "1.", "1.0", ".1", "1e", "1e5", "1E+5", "1e-", "1e+05", "0e0", "-0.0e-0", "1 2",
	"123456789012345678901234567890", "1e999999999",
	`""`, `"`, `"\"`, `"\\"`, `"\/"`, `"\x"`, `"\u"`, `"\u12"`, `"\u123g"`, `"\uD83D\uDE00"`, `"\ud83d"`, `"\udE00"`, `"\ud83d\n"`, `"\ud83d\ud83d\ude00"`,
	"\"\x00\"", "\"\t\"", "\"\n\"", "\"\x7f\"", "\"\xff\xfe\"", "\"\u2028é\U0001F600\"",
	`{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1,"a":2}`, `{,}`, `{"":0}`, `{1:2}`,
	`[1,]`, `[,1]`, `[1 2]`, `[1,[2,{"x":[]}],{}]`, `[}`, `{]`, `[[[]`, `[]]`, `{"a":[{"b":{"c":[1,2,{"d":null}]}}]}`,
	"[1]\x00", "\x00", "\ufeff{}", "[1]//", "{\"a\":\r\n\t 1}\n",
	strings.Repeat("[", 500) + strings.Repeat("]", 500),
	strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400),
	strings.Repeat("[{\"k\":", 300) + "[]" + strings.Repeat("}]", 300),
	strings.Repeat("[", 500),
}

// valid says whether the scanner takes text as one value.
func valid(text []byte) bool {
	s := scanner{b: text}
	return s.skipValue() && s.atEnd()
}

func checkScanner(t *testing.T, text []byte) {
	t.Helper()
	if got, want := valid(text), json.Valid(text); got != want {
		t.Fatalf("scanner says %v of %.200q, encoding/json %v", got, text, want)
	}
	var o openaiDecoder
	var d Delta
	d.Clear()
	if err := o.Whole(text, &d); err == nil && !json.Valid(text) {
		t.Fatalf("decoder takes %.200q, which is not JSON", text)
	} else if err != nil && !errors.Is(err, errJSON) {
		t.Fatalf("decoder: %v", err)
	}
	s := scanner{b: text}
	raw, ok := s.rawString()
	var want string
	if !ok || !s.atEnd() || json.Unmarshal(text, &want) != nil {
		return
	}
	if got := unquote(raw); got != want {
		t.Fatalf("unquote(%q) = %q, want %q", raw, got, want)
	}
	// Bytes that are not UTF-8 count as they are; encoding/json makes three of each.
	if json.Valid(text) && strings.ToValidUTF8(string(text), "") == string(text) && textLen(raw) != len(want) {
		t.Fatalf("textLen(%q) = %d, want %d of %q", raw, textLen(raw), len(want), want)
	}
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range nasty {
		checkScanner(t, []byte(text))
	}
}

// Every text that is one edit away from an event is judged as encoding/json does.
func TestScannerOnDamagedEvents(t *testing.T) {
	for _, c := range deltas {
		text := []byte(c.data)
		for i := range text {
			checkScanner(t, text[:i])
			for _, b := range []byte("\"\\{],0\x00") {
				damaged := []byte(string(text))
				damaged[i] = b
				checkScanner(t, damaged)
			}
		}
	}
}

func TestScannerBoundsNesting(t *testing.T) {
	for _, n := range []int{maxNesting, maxNesting + 1, 1 << 20} {
		text := []byte(strings.Repeat("[", n-1) + "[1]" + strings.Repeat("]", n-1))
		if got, want := valid(text), n <= maxNesting; got != want {
			t.Errorf("%d deep: %v, want %v", n, got, want)
		}
	}
}

func TestScannerCount(t *testing.T) {
	for text, want := range map[string]int32{
		"0": 0, "12": 12, "null": -1, "-0": 0, "2147483647": 1<<31 - 1,
		"1.28e2": 128, "1e2": 100, "1E+3": 1000, "70e-1": 7, "4.0": 4,
		"-3": Impossible, "7.9": Impossible, "1e-3": Impossible, "99999999999999999999999": Impossible,
		`"1"`: 1, `"x"`: -1, "{}": -1, "[1]": -1, "true": -1,
		"2147483648": Impossible, "1e18": Impossible, "1e999": Impossible, "-1e999": Impossible,
	} {
		n := int32(-1)
		s := scanner{b: []byte(text)}
		if !s.countNumber(&n) || n != want {
			t.Errorf("count(%s) = %d, want %d", text, n, want)
		}
	}
	for _, text := range []string{"nil", "-", "1.", ""} {
		n := int32(-1)
		if s := (scanner{b: []byte(text)}); s.countNumber(&n) {
			t.Errorf("count(%s) is taken as %d", text, n)
		}
	}
}

// Fields are seen as encoding/json sees them, the last of two equal keys too.
func TestScannerFields(t *testing.T) {
	const text = ` {"a": "x\ny", "b":[1, 2,3], "c":{"d":4}, "a":"z", "n":null} `
	got := map[string]string{}
	s := scanner{b: []byte(text)}
	ok := s.eachKey(func(key []byte) bool {
		s.skipSpace()
		from := s.i
		if !s.skipValue() {
			return false
		}
		got[string(key)] = text[from:s.i]
		return true
	})
	var want map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &want); err != nil || !ok || !s.atEnd() || len(got) != len(want) {
		t.Fatal(err, ok, got)
	}
	for k, v := range want {
		if got[k] != string(v) {
			t.Errorf("%s = %s, want %s", k, got[k], v)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range nasty {
		f.Add([]byte(text))
	}
	for _, c := range deltas {
		f.Add([]byte(c.data))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < maxNesting { // where the two limits can differ by one
			checkScanner(t, text)
		}
	})
}

func BenchmarkScannerSkip(b *testing.B) {
	text := []byte(typicalEvent)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if !valid(text) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkDecoder(b *testing.B) {
	text := []byte(typicalEvent)
	var o openaiDecoder
	var d Delta
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		d.Clear()
		if o.handlePlain(nil, text, &d) || o.readEvent(text, &d) != nil || len(d.Parts) != 1 {
			b.Fatal(d)
		}
	}
}

// As many bytes stand for themselves in a string as do one by one.
func TestPlainLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	longer := 0 // than the eight that are looked at together
	for range 500_000 {
		b := make([]byte, rng.IntN(20))
		want := len(b)
		for i := range b {
			if b[i] = byte(rng.Uint32()); rng.Uint32()%3 > 0 {
				b[i] = "aZ !#[]\x7f\"\\\x1f\x00 \x80\xff~"[rng.Uint32()%16]
			}
			if c := b[i]; c < 0x20 || c == '"' || c == '\\' {
				want = min(want, i)
			}
		}
		if got := plainLength(b); got != want {
			t.Fatalf("%q: %d, not %d", b, got, want)
		}
		if want > 8 {
			longer++
		}
	}
	if longer < 10_000 {
		t.Errorf("%d were longer than a word", longer)
	}
}
