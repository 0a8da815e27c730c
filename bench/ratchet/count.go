package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"pitot/internal/config"
)

// code is what was counted in Go files.
type code struct {
	tokens    int
	byDir     map[string]float64 // tokens, by the first two elements of the path
	functions int                // and methods
	words     int                // of their names
	oneWord   int                // of them, whose names have one word
	vague     int                // doc comments that match vagueComment
	longLines int
}

// vagueComment matches the beginning of a doc comment that only restates a name.
var vagueComment = regexp.MustCompile(`^// \w+ (is|are) (what|how|who)`)

// A line longer than this is counted. A tab is four columns wide.
const (
	mostColumns = 100
	tabColumns  = 4
)

// countAll counts everything below the root of the repository.
func countAll(root string) ([]figure, error) {
	c := code{byDir: map[string]float64{}}
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return c.add(filepath.ToSlash(rel), source)
		})
		if err != nil {
			return nil, err
		}
	}
	figures := []figure{{name: "tokens", value: float64(c.tokens)}}
	figures = append(figures, sortedBy("tokens ", c.byDir)...)
	figures = append(figures,
		figure{name: "words per function name", value: float64(c.words) / float64(max(1, c.functions)), higher: true},
		figure{name: "share of function names with one word", value: float64(c.oneWord) / float64(max(1, c.functions))},
		figure{name: "doc comments that say what, how or who something is", value: float64(c.vague)},
		figure{name: "lines over 100 columns", value: float64(c.longLines)},
	)
	figures = append(figures, sortedBy("flags ", flagsByVerb())...)
	words, err := documentWords(root)
	if err != nil {
		return nil, err
	}
	return append(figures, figure{name: "words of documents", value: float64(words)}), nil
}

// add counts one Go file.
func (c *code) add(path string, source []byte) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	tokens := tokensOf(source)
	c.tokens += tokens
	elements := strings.SplitN(path, "/", 3)
	c.byDir[strings.Join(elements[:2], "/")] += float64(tokens)
	ast.Inspect(parsed, func(n ast.Node) bool {
		var doc *ast.CommentGroup
		switch n := n.(type) {
		case *ast.FuncDecl:
			doc = n.Doc
			words := len(wordsOfName(n.Name.Name))
			c.functions, c.words = c.functions+1, c.words+words
			if words == 1 {
				c.oneWord++
			}
		case *ast.GenDecl:
			doc = n.Doc
		case *ast.TypeSpec:
			doc = n.Doc
		case *ast.ValueSpec:
			doc = n.Doc
		case *ast.Field:
			doc = n.Doc
		}
		if doc != nil && vagueComment.MatchString(doc.List[0].Text) {
			c.vague++
		}
		return true
	})
	for line := range strings.Lines(string(source)) {
		line = strings.TrimRight(line, "\r\n")
		if utf8.RuneCountInString(line)+(tabColumns-1)*strings.Count(line, "\t") > mostColumns {
			c.longLines++
		}
	}
	return nil
}

// tokensOf counts Go tokens, without comments and without the semicolons that the scanner inserts.
func tokensOf(source []byte) (n int) {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", files.Base(), len(source)), source, nil, 0)
	for {
		_, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok != token.SEMICOLON || text == ";" {
			n++
		}
	}
}

// wordsOfName splits a name at underscores and where a word in camel case begins. An acronym is
// one word, and digits belong to the word before them.
func wordsOfName(name string) (words []string) {
	for part := range strings.SplitSeq(name, "_") {
		letters, begin := []rune(part), 0
		for i := 1; i < len(letters); i++ {
			upper := unicode.IsUpper(letters[i])
			afterLower := !unicode.IsUpper(letters[i-1])
			beforeLower := i+1 < len(letters) && unicode.IsLower(letters[i+1])
			if upper && (afterLower || beforeLower) {
				words = append(words, string(letters[begin:i]))
				begin = i
			}
		}
		if begin < len(letters) {
			words = append(words, string(letters[begin:]))
		}
	}
	return words
}

// flagsByVerb counts the flags of each verb. The settings without one share the flag --set.
func flagsByVerb() map[string]float64 {
	flags, sets := map[string]float64{}, map[config.Verb]bool{}
	for _, s := range config.Settings() {
		for _, v := range s.Verbs {
			if !s.KeyOnly || !sets[v] {
				flags[string(v)]++
			}
			sets[v] = sets[v] || s.KeyOnly
		}
	}
	return flags
}

// documentWords counts the words of the documents for users.
func documentWords(root string) (n int, err error) {
	var paths []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return 0, err
		}
		paths = append(paths, matches...)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		n += proseWords(string(text))
	}
	return n, nil
}

// proseWords counts the words of Markdown outside code blocks.
func proseWords(text string) (n int) {
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fence = line[:3]
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
	}
	return n
}
