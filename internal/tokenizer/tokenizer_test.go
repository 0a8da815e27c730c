package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
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
			e := tok.Encoder()
			for i, text := range texts {
				if got, err := e.Append(nil, []byte(text)); err != nil || !slices.Equal(got, want.IDs[i]) {
					t.Errorf("%q:\n got %v\nwant %v", text, spelt(tok, got), spelt(tok, want.IDs[i]))
				}
			}
			if tok.Around() != want.Around {
				t.Errorf("%d ids around a text, want %d", tok.Around(), want.Around)
			}
		})
	}
}

func spelt(t *Tokenizer, ids []uint32) (list []string) {
	for _, id := range ids {
		list = append(list, t.Text(id))
	}
	return list
}
