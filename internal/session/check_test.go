package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// What this machine alone can tell is told without a target.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	killed := filepath.Join(dir, "killed")
	if err := os.Mkdir(killed, 0o755); err != nil {
		t.Fatal(err)
	}
	stopped := filepath.Join(dir, "stopped")
	if err := os.Mkdir(stopped, 0o755); err != nil {
		t.Fatal(err)
	}
	sought := planned(t, "http://x", "--rate", "1")
	write("killed/config.yaml", string(sought.YAML(config.VerbFind)))
	write("killed/"+rundir.Journal, "")
	write("stopped/config.yaml", string(sought.YAML(config.VerbFind)))
	if err := Save(stopped, &result.Run{Schema: result.Schema, Interrupted: true}); err != nil {
		t.Fatal(err)
	}
	empty, odd, good := write("empty", ""), write("odd.jsonl", `{"a":1}`), write("good.txt", "a prompt")
	for _, c := range []struct {
		args      []string
		msg, hint string
	}{
		{[]string{"http://x"}, "", ""},
		{[]string{"http://x", "--workload", good, "--out", filepath.Join(dir, "new"), "--key-file", good}, "", ""},
		{[]string{"http://x", "--out", dir}, "is not empty", "--out"},
		{[]string{"http://x", "--out", killed}, "is not empty", "pitot find --resume --out " + killed},
		{[]string{"http://x", "--out", stopped}, "is not empty", "pitot find --resume --out " + stopped},
		{[]string{"http://x", "--out", good}, "read --out", "--out"},
		{[]string{"ftp://x"}, "unknown scheme", "http://localhost:8000"},
		{[]string{"mock:wibble@wobble"}, "unknown", ""},
		{[]string{"sim:wibble@wobble"}, "unknown", ""},
		{[]string{"mock:fixed?faults=429:2"}, "rate 2 is not in 0..1", "write 2%"},
		{[]string{"http://x", "--key-file", empty}, "is empty", "the API key alone"},
		{[]string{"http://x", "--key-file", dir}, "is a directory", "the API key alone"},
		{[]string{"http://x", "--key-file", filepath.Join(dir, "god.txt")}, "no such file", "did you mean " + good},
		{[]string{"http://x", "--key-file", "sk-very-secret-key-0123"}, "there is no such file", "--key-env"},
		{[]string{"http://x", "--workload", filepath.Join(dir, "god.txt")}, "god.txt: no such file or directory", "did you mean " + good},
		{[]string{"http://x", "--workload", "/nowhere/x"}, "read --workload /nowhere/x: no such file or directory", "ShareGPT JSON"},
		{[]string{"http://x", "--workload", dir}, "the directory has no .json files", ""},
		{[]string{"http://x", "--workload", empty}, "empty: no request", "ShareGPT JSON"},
		{[]string{"http://x", "--workload", odd}, "odd.jsonl:1: want an object with one of the keys", "ShareGPT JSON"},
	} {
		err := Check(planned(t, append(c.args, "--rate", "1")...))
		if c.msg == "" {
			if err != nil {
				t.Errorf("%q: %v", c.args, err)
			}
			continue
		}
		var u *say.Error
		switch {
		case !errors.As(err, &u) || !strings.Contains(u.Msg, c.msg) || !strings.Contains(u.Hint, c.hint):
			t.Errorf("%q: %v; %s", c.args, err, say.HintOf(err))
		case strings.Contains(u.Msg+u.Hint, "very-secret") || strings.Contains(u.Msg, "\n"):
			t.Errorf("%q: %v", c.args, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a directory was made")
	}
}
