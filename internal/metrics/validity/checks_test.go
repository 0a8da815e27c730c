package validity

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitot/internal/results/result"
)

// Every check that is made is in the list of checks, and every one there is made.
func TestEveryCheckIsListed(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:check(?:Share|Count)|NewCheck)\(([^,]+),`).FindAllStringSubmatch(string(text), -1) {
			if m[1] != "name" && m[1] != "name string" {
				made = append(made, m[1])
			}
		}
	}
	text, err := os.ReadFile("../../results/result/check.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^\t(Check\w+) += "`).FindAllStringSubmatch(string(text), -1)
	if len(listed) < 30 || len(listed) != len(result.CheckKinds()) {
		t.Fatalf("%d names of %d checks", len(listed), len(result.CheckKinds()))
	}
	for _, m := range listed {
		if !slices.Contains(made, "result."+m[1]) {
			t.Errorf("%s is in the list, and nothing makes it", m[1])
		}
	}
	for _, name := range made {
		if !slices.ContainsFunc(listed, func(m []string) bool { return "result."+m[1] == name }) {
			t.Errorf("%s is in no list", name)
		}
	}
}
