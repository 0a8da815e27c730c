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

// settingsPage is docs/reference/settings.md: all settings in tables, and how they stand to
// each other.
func settingsPage() string {
	var b strings.Builder
	b.WriteString(`# Settings

Every setting is a flag, or, if it is seldom used, ` + "`--set KEY=VALUE`" + `. It is also a key of the same
name in a YAML file (` + "`--config FILE`" + `; the ` + "`config.yaml`" + ` of a run repeats it) and a variable:
` + "`PITOT_`" + ` and its name in capitals, with _ for -. A flag overrides a variable, and a variable a file.

Written from the program's table of settings by ` + "`go test ./internal/config -update`" + `.
`)
	for _, group := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | default | verbs | |\n|---|---|---|---|\n", group)
		for _, s := range Settings() {
			if s.Group != group {
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
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", flag, cell(s.DefaultDescription()), strings.Join(verbs, ", "), cell(s.Help+s.relations()))
		}
	}
	return b.String()
}

// cell is text in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}

// relations says how a setting stands to others, and to the kinds of target.
func (s *Setting) relations() string {
	var out []string
	if s.IsRepeatable() {
		out = append(out, "may be given more than once")
	}
	switch s.Targets {
	case EmbeddedTargets:
		out = append(out, "of mock: and sim: targets `?"+s.TargetKey()+"=`")
	case MockTargets:
		out = append(out, "of mock: targets `?"+s.TargetKey()+"=`")
	case SocketTargets:
		out = append(out, "not for sim:")
	}
	if s.Alternative != nil {
		out = append(out, "or --"+s.Alternative.To)
	}
	for _, c := range s.Clashes {
		not := "not with --" + asFlag(c.With)
		if s.Unless != "" {
			not += " but for --" + asFlag(s.Unless)
		}
		out = append(out, not)
	}
	for _, n := range s.Needs {
		out = append(out, "only with "+joinFlags(n.AnyOf))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}
