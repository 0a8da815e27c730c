package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A setting of one name that means different things to verbs is read as the verb that wrote it.
func TestRecordedByEachVerb(t *testing.T) {
	for _, c := range []struct {
		verb Verb
		args []string
	}{
		{VerbFind, []string{"sim:llama-3.1-8b@h100", "--slo", "p95 ttft<200ms", "--at", "155"}},
		{VerbRun, []string{"sim:llama-3.1-8b@h100", "--rate", "2", "--check-answers", "5%"}},
	} {
		p, _, err := Decode(c.verb, c.args, nil)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, p.YAML(c.verb), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadRecorded(path)
		if err != nil {
			t.Errorf("%s: %v", c.verb, err)
			continue
		}
		if yaml := string(got.YAML(c.verb)); !strings.Contains(yaml, "\n"+c.args[len(c.args)-2][2:]+": "+c.args[len(c.args)-1]+"\n") {
			t.Errorf("%s: read as\n%s", c.verb, yaml)
		}
	}
}
