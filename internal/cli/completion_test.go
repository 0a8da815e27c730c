package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/config"
)

// What can come next is what the verbs, the table of settings and the catalogue
// have.
func TestCompletion(t *testing.T) {
	for line, want := range map[string][]string{
		"r":                            {"run", "report"},
		"help fin":                     {"find"},
		"completion ":                  {"bash", "zsh", "fish"},
		"completion bash ":             nil,
		"version ":                     nil,
		"run ":                         {"http://", "https://", "unix://", "mock:", "sim:"},
		"run mock:llama-3.1-8":         {"mock:llama-3.1-8b@"},
		"run sim:fi":                   {"sim:fixed"},
		"run mock:llama-3.1-8b@a10":    {"mock:llama-3.1-8b@a100", "mock:llama-3.1-8b@a10g"},
		"run mock:llama-3.1-8b@4xh2":   {"mock:llama-3.1-8b@4xh200"},
		"run mock:a@h100?max_num_s":    {"mock:a@h100?max_num_seqs="},
		"run mock:a@h100?x=1&profi":    {"mock:a@h100?x=1&profile="},
		"run mock:fixed ":              nil,
		"predict llama-3.1-8":          {"llama-3.1-8b@"},
		"predict x --format ":          {"text", "json"},
		"run http://h --format ":       {"text", "json", "md", "csv", "html"},
		"run http://h --format=j":      {"--format=json"},
		"run http://h --out":           {"--output", "--out"},
		"run http://h --out d --out":   {"--output"},
		"run http://h --rate ":         nil,
		"run http://h --rate 4 --no-s": {"--no-stream", "--no-scrape"},
		"run http://h --no-stream --n": {"--note", "--no-probe", "--no-scrape"},
		"run http://h --note a=b --no": {"--no-stream", "--note", "--no-probe", "--no-scrape"},
		"run --insecure mo":            {"mock:"},
		"run --arrival p":              {"piecewise(FILE)", "poisson", "profile(FILE)"},
		"sweep --over ":                {"rate", "concurrency", "agents"},
		"find http://h --slo ch":       {"chat"},
		"run --api openai-ch":          {"openai-chat"},
		"report x --export vl":         {"vllm=", "vllm-detailed="},
		"mock --faults st":             {"stall:"},
		"mock --faults 429:1%,st":      {"429:1%,stall:"},
		"run mock:fixed?tt":            {"mock:fixed?ttft="},
		"run sim:fixed?ttft=1ms&i":     {"sim:fixed?ttft=1ms&itl="},
		"report ":                      {"files"},
		"run --config ":                {"files"},
		"run --config=":                {"files"},
		"run --key-file x":             {"files"},
		"report --export vllm=":        {"files"},
		"fit llama-3.1-8b@h100 ":       {"files"},
		"compare a ":                   {"files"},
		"wibble ":                      nil,
		"run --wibble=":                nil,
		"vllm-bench --dataset-p":       {"--dataset-path"},
		"vllm-bench --dataset-path ":   {"files"},
		"vllm-bench --num-prompts ":    nil,
	} {
		found := completeLastWord(strings.Split(line, " "))
		var got []string
		for _, c := range found.words {
			got = append(got, c.Name)
		}
		if found.files {
			got = []string{"files"}
		}
		sorted := slices.Clone(want)
		slices.Sort(got)
		slices.Sort(sorted)
		if d := cmp.Diff(sorted, got); d != "" {
			t.Errorf("pitot %s: %s", line, d)
		}
	}
}

// Every flag of every verb is completed, and every choice of it is taken.
func TestCompletionIsWhole(t *testing.T) {
	for _, v := range verbs() {
		offered := completeLastWord([]string{v.name, "--"})
		for _, s := range config.Settings() {
			if !s.AppliesTo(config.Verb(v.name)) {
				continue
			}
			if s.KeyOnly {
				keys := completeLastWord([]string{v.name, "--set", ""}).words
				if !slices.ContainsFunc(keys, func(c config.Choice) bool { return c.Name == s.Name+"=" }) {
					t.Errorf("pitot %s --set: %s is not offered", v.name, s.Name)
				}
				continue
			}
			if !slices.ContainsFunc(offered.words, func(c config.Choice) bool { return c.Name == "--"+s.Name }) {
				t.Errorf("pitot %s: --%s is not offered", v.name, s.Name)
			}
			values := completeLastWord([]string{v.name, "--" + s.Name, ""})
			for _, c := range s.Choices() {
				if s.Arg != "" && !slices.ContainsFunc(values.words, func(x config.Choice) bool { return x.Name == c.Name }) {
					t.Errorf("pitot %s --%s: %s is not offered", v.name, s.Name, c.Name)
				}
			}
		}
	}
}

// bash splits words at colons and more, and replaces the last of the pieces: what
// its function answers is what has to stand there.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector, and has one goroutine")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, c := range []struct {
		line string
		last string // of COMP_WORDS, as bash has it
		want string // of COMPREPLY, each in brackets
	}{
		{"pitot ru", "ru", "[run ]"},
		{"pitot run ht", "ht", "[http://][https://]"},
		{"pitot run moc", "moc", "[mock:]"},
		{"pitot run mock:llama-3.1-8", "llama-3.1-8", "[llama-3.1-8b@]"},
		{"pitot run mock:llama-3.1-8b@h20", "h20", "[h200 ]"},
		{"pitot run mock:", ":", "[fixed ]"},
		{"pitot run 'mock:llama-3.1-8b@h100?max_num_s", "'mock:llama-3.1-8b@h100?max_num_s", "[mock:llama-3.1-8b@h100?max_num_seqs=]"},
		{"pitot run http://h --forma", "--forma", "[--format ]"},
		{"pitot run http://h --format=js", "js", "[json ]"},
		{"pitot run http://h --format js", "js", "[json ]"},
		{"pitot run http://h --slo ch", "ch", "[chat ]"},
		{`pitot run http://h --slo "p99 ttft<1s" --arr`, "--arr", "[--arrival ]"},
		{"pitot report testdata/he", "testdata/he", "[testdata/help.txtar]"},
	} {
		script := `source <(pitot completion bash)
complete -p pitot | grep -q -- '-F _pitot' || echo "not registered"
COMP_WORDBREAKS=$' \t\n"'"'"'@><=;|&(:'
COMP_WORDS=(pitot "$LAST") COMP_CWORD=1 COMP_LINE=$LINE COMP_POINT=${#LINE}
_pitot
for r in "${COMPREPLY[@]}"; do printf '[%s]' "$r"; done`
		cmd := exec.Command(bash, "--norc", "-c", script)
		cmd.Env = append(cmd.Environ(), "LINE="+c.line, "LAST="+c.last)
		out, err := cmd.CombinedOutput()
		got := string(out)
		if c.last == ":" { // all models, and that
			if strings.Count(got, "@]") < 10 {
				t.Errorf("%s: %s", c.line, got)
			}
			got = got[max(strings.LastIndex(got, "["), 0):]
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.line, got, c.want, err)
		}
	}
}

// The scripts of zsh and fish get each word with what it is about.
func TestCompletionWithDescriptions(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		var out bytes.Buffer
		if err := completeWords(&out, []string{shell, "find", "--slo", "cha"}); err != nil || !strings.HasPrefix(out.String(), "words\nchat\tp") {
			t.Errorf("%s: %q, %v", shell, out.String(), err)
		}
	}
}

func FuzzCompletion(f *testing.F) {
	f.Add("run mock:llama@h100?a=1&", "=:@")
	f.Add(`run "a b`, "")
	f.Add(`fit x\ y --out='`, " '")
	f.Add("vllm-bench --header a", ":")
	f.Fuzz(func(t *testing.T, line, breaks string) {
		words, replaced := bashWords(breaks, "pitot "+line)
		if len(words) == 0 || !strings.HasPrefix(words[len(words)-1], replaced) {
			t.Fatalf("%q, of which %q stays", words, replaced)
		}
		for _, c := range completeLastWord(words).words {
			if !strings.HasPrefix(c.Name, words[len(words)-1]) || strings.ContainsAny(c.Name, "\n") && !strings.ContainsAny(line, "\n") {
				t.Fatalf("%q becomes %q", fmt.Sprint(words), c.Name)
			}
		}
	})
}
