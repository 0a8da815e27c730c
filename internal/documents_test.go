package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// document is one Markdown file of the repository.
type document struct {
	path string // from the repository's root, with slashes
	text string
}

// readDocuments returns the documents at the root, in docs and in evidence.
func readDocuments(t *testing.T) []document {
	t.Helper()
	paths, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"../docs", "../evidence"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var documents []document
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := strings.CutPrefix(filepath.ToSlash(path), "../")
		documents = append(documents, document{name, string(text)})
	}
	return documents
}

// proseLines calls do for every line outside fenced blocks.
func (d document) proseLines(do func(number int, line string)) {
	fenced := false
	for i, line := range strings.Split(d.text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			do(i+1, line)
		}
	}
}

// anchors returns the fragments that GitHub gives the headings.
func (d document) anchors() []string {
	var anchors []string
	d.proseLines(func(_ int, line string) {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			return
		}
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading)))
	})
	return anchors
}

var linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links between documents lead to files and headings that exist.
func TestDocumentLinks(t *testing.T) {
	documents := readDocuments(t)
	for _, d := range documents {
		d.proseLines(func(number int, line string) {
			for _, match := range linkTarget.FindAllStringSubmatch(line, -1) {
				target := match[1]
				if strings.Contains(target, "://") {
					continue
				}
				path, anchor, _ := strings.Cut(target, "#")
				full := d.path
				if path != "" {
					full = filepath.ToSlash(filepath.Join(filepath.Dir(d.path), path))
				}
				if _, err := os.Stat(filepath.Join("..", full)); err != nil {
					t.Errorf("%s:%d: there is no %s", d.path, number, target)
					continue
				}
				i := slices.IndexFunc(documents, func(other document) bool { return other.path == full })
				if anchor != "" && (i < 0 || !slices.Contains(documents[i].anchors(), anchor)) {
					t.Errorf("%s:%d: %s has no heading #%s", d.path, number, full, anchor)
				}
			}
		})
	}
}

var pathInCode = regexp.MustCompile(`(?:docs|evidence)/[a-z0-9/-]+\.md`)

// Messages, help texts and comments name documents that exist.
func TestCodeNamesDocuments(t *testing.T) {
	for _, dir := range []string{"../internal", "../bench", "../cmd", "../scripts"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && entry.Name() == "testdata" {
				return errorOrSkip(err)
			}
			if !slices.Contains([]string{".go", ".json", ".py", ".sh", ".yaml"}, filepath.Ext(path)) {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, name := range pathInCode.FindAllString(string(text), -1) {
				if _, err := os.Stat(filepath.Join("..", name)); err != nil && !strings.Contains(string(text), "/"+name) {
					t.Errorf("%s names %s, which does not exist", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// errorOrSkip returns the error, or the request to skip a directory.
func errorOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// wordBudgets has the most words of each document for users, fenced blocks included. A document
// over its budget is cut or split.
var wordBudgets = map[string]int{
	"README.md":                               1100,
	"docs/README.md":                          300,
	"docs/getting-started.md":                 1100,
	"docs/trust.md":                           1400,
	"docs/concepts/how-pitot-measures.md":     800,
	"docs/concepts/open-and-closed-loop.md":   900,
	"docs/concepts/statistics.md":             1200,
	"docs/concepts/the-twin.md":               1000,
	"docs/guides/check-answers.md":            800,
	"docs/guides/choose-an-slo.md":            800,
	"docs/guides/choose-hardware.md":          1300,
	"docs/guides/compare-changes.md":          1500,
	"docs/guides/conversations-and-agents.md": 1000,
	"docs/guides/cost-and-energy.md":          700,
	"docs/guides/find-capacity.md":            1400,
	"docs/guides/find-the-bottleneck.md":      1300,
	"docs/guides/gate-a-pull-request.md":      700,
	"docs/guides/hosted-apis.md":              900,
	"docs/guides/install.md":                  350,
	"docs/guides/measure-a-load.md":           1000,
	"docs/guides/migrate.md":                  700,
	"docs/guides/model-your-traffic.md":       1800,
	"docs/guides/read-a-report.md":            800,
	"docs/guides/scale-out.md":                1000,
	"docs/guides/server-metrics.md":           700,
	"docs/guides/test-your-gateway.md":        800,
	"docs/guides/tune-engine-settings.md":     1500,
	"docs/reference/apis.md":                  1500,
	"docs/reference/arrivals.md":              700,
	"docs/reference/checks.md":                1700,
	"docs/reference/exit-codes.md":            400,
	"docs/reference/failures.md":              700,
	"docs/reference/files.md":                 3000,
	"docs/reference/formats.md":               1600,
	"docs/reference/glossary.md":              800,
	"docs/reference/metrics.md":               2000,
	"docs/reference/settings.md":              4200,
	"docs/reference/skill.md":                 900,
	"docs/reference/tokenizers.md":            800,
	"docs/reference/twin-settings.md":         900,
}

// Budgets of all documents for users, and of the lab notebook.
const (
	wordsOfUsers    = 38200
	wordsOfEvidence = 15000
)

// wordCount returns how many words have a letter or a digit.
func (d document) wordCount() (n int) {
	for word := range strings.FieldsSeq(d.text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// Documents keep their budgets, and every document for users has one.
func TestDocumentsKeepTheirBudgets(t *testing.T) {
	users, evidence := 0, 0
	for _, d := range readDocuments(t) {
		n := d.wordCount()
		switch budget, ok := wordBudgets[d.path]; {
		case strings.HasPrefix(d.path, "evidence/"):
			evidence += n
		case ok:
			users += n
			if n > budget {
				t.Errorf("%s has %d words, its budget is %d", d.path, n, budget)
			}
		case strings.HasPrefix(d.path, "docs/"):
			t.Errorf("%s has no budget of words", d.path)
		}
	}
	if users > wordsOfUsers {
		t.Errorf("documents for users have %d words, their budget is %d", users, wordsOfUsers)
	}
	if evidence > wordsOfEvidence {
		t.Errorf("evidence has %d words, its budget is %d", evidence, wordsOfEvidence)
	}
}

// A document shows no more than 12 lines of console output in one block, and its prose has
// no line over 100 columns but for links that are long themselves.
func TestDocumentsHaveShortLines(t *testing.T) {
	for _, d := range readDocuments(t) {
		if slices.Contains([]string{"ARCHITECTURE.md", "CONTRIBUTING.md"}, d.path) {
			continue // for those who work on Pitot
		}
		for i, block := range strings.Split(d.text, "\n```") {
			_, body, _ := strings.Cut(block, "\n")
			if i%2 == 0 || !strings.HasPrefix(body, "$ pitot ") {
				continue
			}
			output := 0
			for line := range strings.Lines(body) {
				if !strings.HasPrefix(line, "$ ") {
					output++
				}
			}
			if command, _, _ := strings.Cut(body, "\n"); output > 12 {
				t.Errorf("%s: %d lines of output below %s", d.path, output, command)
			}
		}
		d.proseLines(func(number int, line string) {
			isCode, isTable := strings.HasPrefix(line, "    "), strings.HasPrefix(line, "|")
			isLink := !strings.Contains(strings.TrimSpace(line), " ") || strings.Contains(line, "](")
			if !isCode && !isTable && !isLink && len([]rune(line)) > 100 {
				t.Errorf("%s:%d has %d columns", d.path, number, len([]rune(line)))
			}
		})
	}
}

// A guide names no benchmark: method belongs in evidence.
func TestGuidesNameNoBenchmark(t *testing.T) {
	for _, d := range readDocuments(t) {
		if strings.HasPrefix(d.path, "docs/guides/") && strings.Contains(d.text, "go run ./bench") {
			t.Errorf("%s names a benchmark", d.path)
		}
	}
}

// generatedDocuments are made of texts of the program.
var generatedDocuments = []string{"docs/reference/settings.md", "docs/reference/metrics.md", "docs/reference/files.md"}

// unusualWords are those that English does not use so.
var unusualWords = regexp.MustCompile(`(?i)\b(hangs? on|stands? (beside|in|there|for)|held against|is told|tells? of|so (many|much) (as|of)|c(omes?|ame) due|behind (it|them|that)|whoever|nobody|at the most)\b`)

// longestSentence is the most words of a sentence.
const longestSentence = 30

// Documents for users have plain words and short sentences.
func TestDocumentsArePlain(t *testing.T) {
	for _, d := range readDocuments(t) {
		isForUsers := d.path == "README.md" || strings.HasPrefix(d.path, "docs/")
		if !isForUsers || slices.Contains(generatedDocuments, d.path) {
			continue
		}
		var paragraph []string
		endParagraph := func(number int) {
			for _, sentence := range sentencesOf(strings.Join(paragraph, " ")) {
				if n := len(strings.Fields(sentence)); n > longestSentence {
					t.Errorf("%s, before line %d: %d words in %q", d.path, number, n, sentence)
				}
			}
			paragraph = nil
		}
		d.proseLines(func(number int, line string) {
			if word := unusualWords.FindString(line); word != "" {
				t.Errorf("%s:%d: %q is not plain English here", d.path, number, word)
			}
			trimmed := strings.TrimSpace(line)
			if trimmed == "" || strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#") {
				endParagraph(number)
			}
			if !strings.HasPrefix(trimmed, "|") && !strings.HasPrefix(trimmed, "#") {
				paragraph = append(paragraph, trimmed)
			}
		})
		endParagraph(0)
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?:;]\s`)

// sentencesOf splits a paragraph at its full stops, colons and semicolons.
func sentencesOf(paragraph string) []string { return sentenceEnd.Split(paragraph, -1) }
