package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowDocs are documents whose commands search and experiment for many seconds of a processor.
// They are run where DOCS_ALL is set, as .ci/run sets it, and with -update.
var slowDocs = []string{
	"docs/getting-started.md", "docs/guides/choose-hardware.md", "docs/guides/compare-changes.md",
	"docs/guides/find-capacity.md", "docs/guides/find-the-bottleneck.md",
	"docs/guides/model-your-traffic.md", "docs/guides/tune-engine-settings.md",
}

var update = flag.Bool("update", false, "write what the commands of docs print into docs, and the golden runs of the present version")

// The commands in docs print what docs say. A block that begins with "$ pitot"
// is run, line by line, in a directory that the blocks of a document share;
// "…" at its end stands for output that is left out. A block whose first line has a name after
// its language is a file of that directory.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("searches of hundreds of thousands of requests take minutes under the race detector")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var docs []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no documents, %v", pattern, err)
		}
		docs = append(docs, paths...)
	}
	for _, name := range slowDocs {
		if !slices.Contains(docs, filepath.Join(root, name)) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, path := range docs {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		t.Run(name, func(t *testing.T) {
			if slices.Contains(slowDocs, name) && os.Getenv("DOCS_ALL") == "" && !*update {
				t.Skip("slow: DOCS_ALL=1 runs it")
			}
			t.Parallel() // each in processes and a directory of its own
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for name, of := range map[string]string{"traces": "../workload/testdata", "recordings": "../analysis/predict/testdata"} {
				if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(of)); err != nil {
					t.Fatal(err)
				}
			}
			got := executed(t, dir, string(text))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("go test ./internal/cli -run Docs -update writes it anew\n%s", cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")))
			}
		})
	}
}

const fence = "```"

// executed returns a document with what its commands print now.
func executed(t *testing.T, dir, text string) string {
	parts := strings.Split(text, "\n"+fence)
	for i := 1; i < len(parts); i += 2 { // every other part is a block
		lines := strings.Split(parts[i], "\n")
		if _, name, ok := strings.Cut(lines[0], " "); ok { // a file that commands name, as yaml mix.yaml
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(strings.Join(lines[1:], "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if len(lines) < 2 || !strings.HasPrefix(lines[1], "$ pitot ") {
			continue
		}
		out := []string{lines[0]}
		for at := 1; at < len(lines); {
			command := lines[at]
			next := at + 1
			for next < len(lines) && !strings.HasPrefix(lines[next], "$ pitot ") {
				next++
			}
			documented := lines[at+1 : next]
			out = append(out, command)
			printed := execute(t, dir, strings.TrimPrefix(command, "$ "))
			if n := len(documented); n > 0 && documented[n-1] == "…" {
				printed = append(printed[:min(n-1, len(printed))], "…")
			}
			out = append(out, printed...)
			at = next
		}
		parts[i] = strings.Join(out, "\n")
	}
	return strings.Join(parts, "\n"+fence)
}

// run gives the lines that a command writes to standard output.
func execute(t *testing.T, dir, command string) []string {
	t.Helper()
	args, err := split(command)
	if err != nil || len(args) < 2 || args[0] != "pitot" {
		t.Fatalf("%s: %v", command, err)
	}
	var stdout, stderr bytes.Buffer
	pitot := exec.Command("pitot", args[1:]...) // as testscript.Main made it
	pitot.Dir, pitot.Stdout, pitot.Stderr = dir, &stdout, &stderr
	_ = pitot.Run() // a code other than 0 may be what is documented
	if stdout.Len() == 0 {
		t.Fatalf("%s prints nothing: %s", command, stderr.String())
	}
	var lines []string
	for line := range strings.Lines(stdout.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	return lines
}

// split takes a command line apart as a shell does, as far as docs need it.
func split(command string) (args []string, err error) {
	var arg strings.Builder
	quote, has := rune(0), false
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			arg.WriteRune(r)
		case r == '\'' || r == '"':
			quote, has = r, true
		case r == ' ':
			if has {
				args = append(args, arg.String())
				arg.Reset()
				has = false
			}
		default:
			arg.WriteRune(r)
			has = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is open")
	}
	if has {
		args = append(args, arg.String())
	}
	return args, nil
}
