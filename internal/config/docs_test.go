package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/settings.md anew")

// docs/reference/settings.md is the table of settings.
func TestDocs(t *testing.T) {
	const path = "../../docs/reference/settings.md"
	want := settingsPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/reference/settings.md is not what the table says; go test ./internal/config -update writes it\n%s", d)
	}
}

// settingsPage is docs/reference/settings.md: all settings in tables, and how they depend
// on each other.
func settingsPage() string {
	var b strings.Builder
	b.WriteString(`# Settings

Every setting is a flag, a key of the same name in a YAML file (` + "`--config FILE`" + `), and a variable:
` + "`PITOT_`" + ` and its name in capitals, with _ for -. Rarely used ones have
` + "`--set KEY=VALUE`" + ` instead of a flag. The ` + "`config.yaml`" + ` of a run repeats it.

A flag overrides a variable, and a variable overrides a file. An overridden setting is
ignored if it conflicts with the stronger one.

` + "`go test ./internal/config -update`" + ` writes this page from the program's table of settings.
`)
	for _, group := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | default | verbs | |\n|---|---|---|---|\n", group.Title)
		for _, s := range Settings() {
			if s.Group != group.Title {
				continue
			}
			var verbs []string
			for _, v := range s.Verbs {
				verbs = append(verbs, string(v))
			}
			flag := strings.TrimSpace(s.Flag() + " " + s.Arg)
			if s.KeyOnly {
				flag = strings.Join(s.Args(s.Arg), " ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", flag, cell(s.DefaultDescription()), strings.Join(verbs, ", "), cell(s.HelpText()+s.relations()))
		}
	}
	return b.String()
}

// cell is text in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}

// relations describes how a setting depends on others, in parentheses.
func (s *Setting) relations() string {
	var out []string
	if s.IsRepeatable() {
		out = append(out, "repeatable")
	}
	if s.OfTarget {
		out = append(out, "in a target `?"+s.TargetKey()+"=`")
	}
	for _, r := range s.Relations() {
		out = append(out, r.How+" "+r.What)
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}
