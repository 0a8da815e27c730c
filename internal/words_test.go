package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// idiom matches phrases that no native speaker says, which readers of earlier outputs stumbled over.
var idiom = regexp.MustCompile(`(?i)\b(hangs? on|stands? (beside|in|there|for)|held against|is told|tells? of|` +
	`so (many|much|few) (\w+)|of which|told|tells?|comes? due|behind (it|them|that)|whoever|nobody)\b`)

// No text of the program has such phrases. TestDocumentsArePlain has those of documents.
func TestPlainWords(t *testing.T) {
	check := func(where, text string) {
		for _, m := range idiom.FindAllStringIndex(text, -1) {
			t.Errorf("%s: %q", where, text[max(0, m[0]-40):min(len(text), m[1]+40)])
		}
	}
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case filepath.Ext(path) == ".json":
				text, err := os.ReadFile(path)
				check(path, string(text))
				return err
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch l, ok := n.(*ast.BasicLit); {
				case !ok || l.Kind != token.STRING || strings.HasPrefix(l.Value, "`json:"): // a key of files
				default:
					text, _ := strconv.Unquote(l.Value)
					check(files.Position(l.Pos()).String(), text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
