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
