package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitot/docs/reference"
	"pitot/internal/config"
)

// code is a span of code of skill.md.
var code = regexp.MustCompile("`([^`\n]+)`")

// skillSection returns the lines of skill.md below a heading.
func skillSection(t *testing.T, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(reference.Skill, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("skill.md has no section %s", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// skill.md begins with the front matter that agents look for.
func TestSkillFrontMatter(t *testing.T) {
	if !strings.HasPrefix(reference.Skill, "---\nname: pitot\ndescription: ") || !strings.Contains(reference.Skill, "\n---\n\n# ") {
		t.Errorf("no front matter: %.80s", reference.Skill)
	}
}

// Each path of skill.md is in run.json of a run, a search or a sweep.
func TestSkillPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	execute(t, dir, "pitot run sim:llama-3.1-8b@h100 --rate 8 --requests 3000 --input 200 --output 20 --slo chat --seed 1 --out run")
	execute(t, dir, "pitot sweep sim:llama-3.1-8b@h100?max_num_seqs=8 --loads 5,15,30,40,60 --requests 400 --input 200 --output 20 --seed 1 --out sweep")
	var runs []any
	for _, name := range []string{filepath.Join(dir, "run"), filepath.Join(dir, "sweep"), "../results/testdata/run", "../results/testdata/find"} {
		text, err := os.ReadFile(filepath.Join(name, "run.json"))
		var run any
		if err == nil {
			err = json.Unmarshal(text, &run)
		}
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	n := 0
	for line := range strings.Lines(skillSection(t, "Fields of run.json")) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, m := range code.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			n++
			if !slices.ContainsFunc(runs, func(run any) bool { return hasPath(run, strings.Split(m[1], ".")) }) {
				t.Errorf("no run has %s", m[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("%d paths", n)
	}
}

// hasPath reports whether a JSON document has a path, in some element of each list of it.
func hasPath(in any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	key, list := strings.CutSuffix(path[0], "[]")
	object, _ := in.(map[string]any)
	value, ok := object[key]
	if !ok || !list {
		return ok && hasPath(value, path[1:])
	}
	elements, _ := value.([]any)
	return slices.ContainsFunc(elements, func(e any) bool { return hasPath(e, path[1:]) })
}

// Commands of skill.md name verbs and flags that there are. TestDocs runs those in blocks.
func TestSkillCommands(t *testing.T) {
	n := 0
	for _, m := range code.FindAllStringSubmatch(reference.Skill, -1) {
		words := strings.Fields(m[1])
		if words[0] != "pitot" || words[1] == "help" || words[1] == "VERB" {
			continue
		}
		n++
		if _, err := verbNamed(words[1]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		for _, w := range words[2:] {
			flag, ok := strings.CutPrefix(w, "--")
			known := func(s config.Setting) bool { return s.Name == flag && s.AppliesTo(config.Verb(words[1])) }
			if ok && !slices.ContainsFunc(config.Settings(), known) {
				t.Errorf("%s: no flag %s", m[1], w)
			}
		}
	}
	for _, flag := range []string{"dry-run", "format", "out", "fail-if", "resume", "launch", "key-env"} { // named alone
		if !strings.Contains(reference.Skill, "`--"+flag) {
			t.Errorf("skill.md does not name --%s", flag)
		}
	}
	if n < 10 {
		t.Errorf("%d commands", n)
	}
}

// skill.md has a row for each exit code.
func TestSkillExitCodes(t *testing.T) {
	section := skillSection(t, "Exit codes")
	for _, c := range exitCodes() {
		if !strings.Contains(section, fmt.Sprintf("| %d |", c.code)) {
			t.Errorf("no row for %d", c.code)
		}
	}
}
