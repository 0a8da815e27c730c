package plain

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func zstandard(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

func utf16Of(s string, order binary.ByteOrder, mark bool) (out []byte) {
	units := utf16.Encode([]rune(s))
	if mark {
		units = append([]uint16{0xfeff}, units...)
	}
	for _, u := range units {
		var b [2]byte
		order.PutUint16(b[:], u)
		out = append(out, b[:]...)
	}
	return out
}

type turn struct {
	From  string `parquet:"from"`
	Value string `parquet:"value"`
}

func parquetOf(t testing.TB) []byte {
	type row struct {
		Prompt string  `parquet:"prompt"`
		Tokens *int64  `parquet:"output_tokens,optional"`
		Time   float64 `parquet:"timestamp"`
		Turns  []turn  `parquet:"conversations,list"`
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out)
	five := int64(5)
	if _, err := w.Write([]row{{"a", &five, 1.5, []turn{{"human", "q"}, {"gpt", "a"}}}, {"b\n", nil, 2, nil}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Whatever a file is packed in, its text is the same; its head is how it begins.
func TestUnpack(t *testing.T) {
	text := "{\"prompt\": \"Grüße, 世界 😀\"}\n{\"prompt\": \"b\"}\n"
	for name, b := range map[string][]byte{
		"as it is":                  []byte(text),
		"byte order mark":           []byte("\ufeff" + text),
		"gzip":                      gzipped([]byte(text)),
		"two gzips":                 append(gzipped([]byte(text[:9])), gzipped([]byte(text[9:]))...),
		"zstandard":                 zstandard([]byte(text)),
		"utf-16, little":            utf16Of(text, binary.LittleEndian, true),
		"utf-16, big":               utf16Of(text, binary.BigEndian, true),
		"utf-16 without a mark":     utf16Of(text, binary.LittleEndian, false),
		"big utf-16 without a mark": utf16Of(text, binary.BigEndian, false),
		"utf-16 in gzip":            gzipped(utf16Of(text, binary.LittleEndian, true)),
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for range 2 { // more than once
			if got, err := io.ReadAll(f.Text()); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if head, err := ReadHead(path, 5); err != nil || string(head) != text[:5] {
			t.Errorf("%s: head %q, %v", name, head, err)
		}
	}
}

func TestParquet(t *testing.T) {
	for name, b := range map[string][]byte{"parquet": parquetOf(t), "gzipped": gzipped(parquetOf(t))} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(f.Text())
		_ = f.Close()
		want := `{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}],"output_tokens":5,"prompt":"a","timestamp":1.5}
{"conversations":[],"output_tokens":null,"prompt":"b\n","timestamp":2}
`
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// What is cut or damaged is an error, never half a text without one.
func TestDamaged(t *testing.T) {
	long := []byte(strings.Repeat("a line of text\n", 20_000))
	whole := parquetOf(t)
	for name, b := range map[string][]byte{
		"half a gzip":        gzipped(long)[:200],
		"half a zstandard":   zstandard(long)[:12],
		"gzip's head":        {0x1f, 0x8b},
		"half a parquet":     whole[:len(whole)/2],
		"odd utf-16":         append(utf16Of("abc", binary.LittleEndian, true), 'x'),
		"parquet's mark":     []byte("PAR1"),
		"parquet of nothing": []byte("PAR1\x00\x00\x00\x00PAR1"),
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := Open(path); err == nil {
			_ = f.Close()
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}

// Nothing that a file may hold makes it panic.
func FuzzUnpack(f *testing.F) {
	f.Add(gzipped([]byte("a")))
	f.Add(zstandard([]byte("a")))
	f.Add(utf16Of("a😀", binary.LittleEndian, true))
	f.Add(parquetOf(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadHead(path, 1<<10); err != nil {
			return
		}
		if f, err := Open(path); err == nil {
			_ = f.Close()
		}
	})
}

// A packed file that comes to many times its size is refused where it has come to much, however it
// is packed and read; one that is only large, or only well packed, is read.
func TestUnpackedIsBounded(t *testing.T) {
	defer func(most, times int64) { mostUnpacked, mostTimes = most, times }(mostUnpacked, mostTimes)
	mostUnpacked, mostTimes = 64<<10, 10
	zeros := bytes.Repeat([]byte("0,1,1\n"), 100_000)
	large, random := make([]byte, 200_000), rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = "0123456789abcdef\n"[random.IntN(17)]
	}
	for _, c := range []struct {
		name string
		data []byte
		ok   bool
	}{
		{"gzip", gzipped(zeros), false},
		{"zstandard", zstandard(zeros), false},
		{"gzip in gzip", gzipped(gzipped(zeros)), false},
		{"zstandard in gzip", gzipped(zstandard(zeros)), false},
		{"utf-16 in gzip", gzipped(utf16Of(string(zeros), binary.LittleEndian, true)), false},
		{"parquet in gzip, with much behind", gzipped(append([]byte("PAR1"), zeros...)), false},
		{"little", gzipped(zeros[:6_000]), true},
		{"large", gzipped(large), true},
		{"large and not packed", zeros, true},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err == nil {
			f.Close()
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: opened: %v", c.name, err)
		}
		s, err := OpenStream(path)
		if err == nil {
			_, err = io.Copy(io.Discard, s)
			s.Close()
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: streamed: %v", c.name, err)
		}
		if _, err := ReadHead(path, 1000); err != nil && !strings.Contains(c.name, "parquet") {
			t.Errorf("%s: its head: %v", c.name, err)
		}
	}
}
