package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"pitot/internal/say"
)

// golden is what the library that a file was made for makes of the texts of testdata/texts.json.
type golden struct {
	Around int        // ids that a template puts around a text
	IDs    [][]uint32 // of each text
}

func readGolden(t testing.TB) (texts []string, of map[string]golden) {
	t.Helper()
	for _, x := range []struct {
		name string
		into any
	}{{"texts.json", &texts}, {"ids.json", &of}} {
		data, err := os.ReadFile(filepath.Join("testdata", x.name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, x.into); err != nil {
			t.Fatal(x.name, err)
		}
	}
	return texts, of
}

// The ids are those of Hugging Face's library and of SentencePiece.
func TestIDs(t *testing.T) {
	texts, of := readGolden(t)
	for name, want := range of {
		t.Run(name, func(t *testing.T) {
			tok, err := Open(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			e := tok.NewEncoder()
			for i, text := range texts {
				if got, err := e.Append(nil, []byte(text)); err != nil || !slices.Equal(got, want.IDs[i]) {
					t.Errorf("%q:\n got %v\nwant %v", text, spelt(tok, got), spelt(tok, want.IDs[i]))
				}
			}
			if tok.TemplateTokens() != want.Around {
				t.Errorf("%d ids around a text, want %d", tok.TemplateTokens(), want.Around)
			}
		})
	}
}

// What is passed by as a character that does not change, changes nothing: of all characters.
func TestPassedBy(t *testing.T) {
	table := classTable()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if c := table[r]; c&(upper|number|symbol) == 0 && unicode.ToLower(r) != r {
			t.Errorf("%U has a lower case", r)
		} else if c&mark == 0 && norm.NFD.PropertiesString(string(r)).CCC() != 0 {
			t.Errorf("%U combines", r)
		}
	}
}

// What was seen before is remembered, of more pieces than are kept as well.
func TestPieces(t *testing.T) {
	p := newPieces()
	piece := func(i int) []byte { return fmt.Appendf(nil, "piece %d", i) }
	for i := range 2*mostPieces + 100 {
		p.addPiece(piece(i), []uint32{uint32(i), 7, 7}[:i%3])
		for _, k := range []int{i, i - i%mostPieces, i/2 + mostPieces/2} {
			ids, ok := p.find(piece(k))
			if kept := k <= i && k >= i-i%mostPieces; ok != kept || kept && (len(ids) != k%3 || len(ids) > 0 && ids[0] != uint32(k)) {
				t.Fatalf("piece %d of %d: %v, %v", k, i, ids, ok)
			}
		}
	}
}

func spelt(t *Tokenizer, ids []uint32) (list []string) {
	for _, id := range ids {
		list = append(list, t.Text(id))
	}
	return list
}

// A directory is told which of its files is meant.
func TestOpenDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.Contains(say.HintOf(err), "tokenizer.json, tokenizer.model") {
		t.Errorf("%v, hint: %s", err, say.HintOf(err))
	}
	file := filepath.Join(dir, "tokenizer.model")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.HasSuffix(say.HintOf(err), "--tokenizer "+file) {
		t.Errorf("%v, hint: %s", err, say.HintOf(err))
	}
}

// A prompt has what a template puts around a text, and the ids of the text between.
func TestAppendPrompt(t *testing.T) {
	tok, err := Open("testdata/bert.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.NewEncoder().Append(nil, []byte("what is that"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := tok.NewEncoder().AppendPrompt([]uint32{9}, []byte("what is that"))
	if err != nil || len(whole) != 1+tok.TemplateTokens()+len(text) || whole[0] != 9 || !slices.Equal(whole[1+len(tok.before):len(whole)-len(tok.after)], text) {
		t.Errorf("%v of %v, %v", whole, text, err)
	}
}
