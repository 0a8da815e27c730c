package cli

import (
	"context"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"pitot/internal/analysis/predict"
	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/report/export"
	"pitot/internal/say"
	"pitot/internal/sim/engines"
	"pitot/internal/sim/serve"
)

// Completion is called by the shells' scripts in folder completion whenever the user
// asks for it. The words come from the verbs and the table of settings, so the scripts
// never change.

//go:embed completion
var completionScripts embed.FS

// completionWords is the action that the scripts call.
const completionWords = "words"

var shells = []string{"bash", "zsh", "fish"}

func completionVerb(_ context.Context, e *Env) (int, error) {
	switch {
	case len(e.Args) == 0:
		return Usage, say.Errorf("no shell named").WithHint("for example source <(pitot completion bash)")
	case e.Args[0] == completionWords:
		return Done, completeWords(e.Stdout, e.Args[1:])
	case len(e.Args) > 1:
		return Usage, say.Errorf("more than one shell: %q and %q", e.Args[0], e.Args[1])
	case !slices.Contains(shells, e.Args[0]):
		return Usage, say.Errorf("unknown shell %q", e.Args[0]).WithHint(say.KnownHint(e.Args[0], shells))
	}
	script, err := completionScripts.ReadFile("completion/pitot." + e.Args[0])
	if err == nil {
		_, err = e.Stdout.Write(script)
	}
	return Done, err
}

func completionHelp() manual {
	return manual{
		about: "Print a shell completion script.",
		usage: "pitot completion bash|zsh|fish",
		examples: `source <(pitot completion bash)        # in ~/.bashrc
			source <(pitot completion zsh)         # in ~/.zshrc, after compinit
			pitot completion fish | source         # in ~/.config/fish/config.fish`,
	}
}

// completeWords answers a shell's script: the kind of completion, files or words,
// then a word in each line. zsh and fish give their words and get what each is
// about behind a tab. bash gives the characters that end a word for it and the line
// up to the cursor, and gets what is to stand in place of its own last word.
func completeWords(w io.Writer, args []string) error {
	if len(args) < 2 {
		return say.Errorf("completion words is for the shells' scripts").WithHint("pitot completion bash prints one")
	}
	shell, words, replaced := args[0], args[1:], ""
	if shell == "bash" {
		if len(args) != 3 {
			return say.Errorf("completion words bash takes what breaks words, and a line").WithHint("pitot completion bash prints the script that asks so")
		}
		words, replaced = bashWords(args[1], args[2])
	}
	found := completeLastWord(words)
	if found.files {
		_, err := fmt.Fprintln(w, "files")
		return err
	}
	fmt.Fprintln(w, "words")
	for _, c := range found.words {
		var err error
		switch {
		case shell == "bash" && isUnfinished(c.Name):
			_, err = fmt.Fprintln(w, strings.TrimPrefix(c.Name, replaced))
		case shell == "bash":
			_, err = fmt.Fprintln(w, strings.TrimPrefix(c.Name, replaced)+" ")
		default:
			_, err = fmt.Fprintln(w, c.Name+"\t"+c.About)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isUnfinished says that more is expected in the same word: no space follows it.
func isUnfinished(word string) bool {
	return word != "" && strings.ContainsRune(":=@/?&", rune(word[len(word)-1]))
}

// bashWords splits a line as bash does, without the name of the program.
// replaced is the part of the last word that bash keeps: up to the last of the
// characters that break words, unless a quote is open.
func bashWords(breaks, line string) (words []string, replaced string) {
	var word strings.Builder
	var quote rune
	begun, kept := false, 0
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun, kept = r, true, word.Len()
		case r == '\\':
			begun = true
		case r == ' ' || r == '\t':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun, kept = false, 0
		default:
			word.WriteRune(r)
			begun = true
			if strings.ContainsRune(breaks, r) {
				kept = word.Len()
			}
		}
	}
	words = append(words, word.String())
	return words[min(1, len(words)-1):], word.String()[:kept]
}

// completion holds the possible completions of a word.
type completion struct {
	files bool // the name of a file or directory
	words []config.Choice
}

// completeLastWord says what the last of the words can become; the others stand before it,
// the verb first.
func completeLastWord(words []string) completion {
	current := words[len(words)-1]
	found := nextWord(words[:len(words)-1], current)
	found.words = slices.DeleteFunc(found.words, func(c config.Choice) bool { return !strings.HasPrefix(c.Name, current) })
	return found
}

func nextWord(before []string, current string) (found completion) {
	if len(before) == 0 || before[0] == "help" {
		for _, v := range verbs() {
			found.words = append(found.words, config.Choice{Name: v.name, About: v.summary()})
		}
		if len(before) == 1 {
			found.words = append(found.words, config.Choice{Name: exitCodesTopic, About: "what the exit codes mean"})
		}
		if len(before) == 0 {
			found.words = append(found.words, config.Choice{Name: "help", About: "show the help of a verb"}, config.Choice{Name: "--help"}, config.Choice{Name: "--version"})
		}
		return found
	}
	v, err := verbNamed(before[0])
	if err != nil {
		return found
	}
	if v.name == "vllm-bench" {
		return nextVLLM(before[1:], current)
	}
	flags := map[string]*config.Setting{"config": nil} // a file
	var keys []config.Choice                           // of --set
	for _, s := range config.Settings() {
		switch {
		case !s.AppliesTo(config.Verb(v.name)):
		case s.KeyOnly:
			keys = append(keys, config.Choice{Name: s.Name + "=", About: s.Summary()})
		default:
			flags[s.Name] = &s
		}
	}
	var args []string
	given := map[string]bool{}
	for i := 1; i < len(before); i++ {
		name, isFlag := strings.CutPrefix(before[i], "-")
		if !isFlag {
			args = append(args, before[i])
			continue
		}
		name, _, valued := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		given[name] = true
		if name == "set" && !valued {
			if i++; i == len(before) {
				return completion{words: keys}
			}
			continue
		}
		s, known := flags[name]
		if !known || valued || s != nil && s.Arg == "" {
			continue
		}
		if i++; i == len(before) { // its value is being written
			return valuesOf(s, current, "")
		}
	}
	if name, value, ok := strings.Cut(strings.TrimLeft(current, "-"), "="); ok && strings.HasPrefix(current, "-") {
		if name == "help" {
			return helpWords(v, "--help=")
		}
		if s, known := flags[name]; known {
			return valuesOf(s, value, strings.TrimSuffix(current, value))
		}
		return found
	}
	if !strings.HasPrefix(current, "-") {
		return v.args(args, current)
	}
	return flagWords(config.Verb(v.name), given)
}

// flagWords are the flags of a verb that can still be given, in the order of the help.
func flagWords(v config.Verb, given map[string]bool) (found completion) {
	for _, s := range config.Settings() {
		if s.AppliesTo(v) && !s.KeyOnly && (!given[s.Name] || s.IsRepeatable()) {
			found.words = append(found.words, config.Choice{Name: "--" + s.Name, About: s.Summary()})
		}
	}
	if len(found.words) > 0 && !given["config"] {
		found.words = append(found.words, config.Choice{Name: "--config", About: "settings from a YAML file"})
	}
	if slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.KeyOnly && s.AppliesTo(v) }) {
		found.words = append(found.words, config.Choice{Name: "--set", About: "a rarely used key, KEY=VALUE"})
	}
	found.words = append(found.words, config.Choice{Name: "--help", About: "show the most used flags"})
	return found
}

// helpWords returns the topics and names that --help= takes.
func helpWords(v verb, before string) (found completion) {
	m := v.help()
	add := func(name, about string) {
		found.words = append(found.words, config.Choice{Name: before + name, About: about})
	}
	for _, s := range v.helpSections(&m) {
		add(s.Topic, s.Title)
		for _, i := range s.items {
			add(i.name, i.brief)
		}
	}
	add("all", "everything")
	byName := func(a, b config.Choice) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(found.words, byName)
	found.words = slices.CompactFunc(found.words, func(a, b config.Choice) bool { return byName(a, b) == 0 })
	return found
}

// valuesOf gives the values that a setting can have; nil stands for --config. before is
// the part of the word in front of the value, repeated in each completion.
func valuesOf(s *config.Setting, current, before string) (found completion) {
	if s == nil {
		return completion{files: true}
	}
	var named []config.Choice
	switch s.Name {
	case "api":
		for _, a := range api.All() {
			named = append(named, config.Choice{Name: a.Name()})
		}
	case "export":
		if strings.Contains(current, "=") {
			return completion{files: true}
		}
		for _, f := range export.Formats() {
			named = append(named, config.Choice{Name: f.Name + "=", About: f.About})
		}
	case "faults":
		list := current[:strings.LastIndex(current, ",")+1] // before the last of them
		for line := range strings.Lines(serve.FaultUsage()) {
			if name, about, ok := strings.Cut(line, ":"); ok {
				_, about, _ = strings.Cut(about, "  ")
				named = append(named, config.Choice{Name: list + name + ":", About: strings.TrimSpace(about)})
			}
		}
		named = slices.CompactFunc(named, func(a, b config.Choice) bool { return a.Name == b.Name })
	default:
		named = s.Choices()
	}
	found.files = s.Paths()
	for _, c := range named {
		found.words = append(found.words, config.Choice{Name: before + c.Name, About: c.About})
	}
	return found
}

// Arguments of the verbs.

func noArguments([]string, string) completion { return completion{} }

func pathArguments([]string, string) completion { return completion{files: true} }

func shellArgument(args []string, _ string) (found completion) {
	for _, s := range shells {
		if len(args) == 0 {
			found.words = append(found.words, config.Choice{Name: s})
		}
	}
	return found
}

// targetArgument is a URL, or an embedded target.
func targetArgument(args []string, current string) (found completion) {
	if len(args) > 0 {
		return found
	}
	for _, prefix := range []string{"mock:", "sim:"} {
		if name, ok := strings.CutPrefix(current, prefix); ok {
			found.words = completeDeployments(name, prefix)
			if at := strings.LastIndexAny(name, "?&"); at >= 0 {
				for _, s := range config.TargetSettings() {
					if !strings.Contains(name[:at], s.TargetKey()+"=") {
						found.words = append(found.words, config.Choice{Name: prefix + name[:at+1] + s.TargetKey() + "=", About: s.Summary()})
					}
				}
				return found
			}
			for _, k := range engines.All() {
				if k.Latencies != nil {
					found.words = append(found.words, config.Choice{Name: prefix + k.Name, About: k.Title})
				}
			}
			return found
		}
	}
	found.words = []config.Choice{
		{Name: "http://", About: "a server"}, {Name: "https://", About: "a server"}, {Name: "unix://", About: "a socket"},
		{Name: "mock:", About: "the twin, behind a socket"}, {Name: "sim:", About: "the twin, in virtual time"},
	}
	return found
}

// deploymentArgument is MODEL@GPU.
func deploymentArgument(args []string, current string) completion {
	if len(args) > 0 {
		return completion{}
	}
	return completion{words: completeDeployments(current, "")}
}

// fitArguments are a deployment and runs of it.
func fitArguments(args []string, current string) completion {
	if len(args) == 0 {
		return deploymentArgument(args, current)
	}
	return completion{files: true}
}

// completeDeployments completes MODEL@GPU?settings, with prefix in front of each word.
func completeDeployments(current, prefix string) (words []config.Choice) {
	known := predict.AllKnown()
	model, rest, chosen := strings.Cut(current, "@")
	if !chosen {
		for _, m := range known.Models {
			words = append(words, config.Choice{Name: prefix + m.Name + "@", About: m.Repository})
		}
		return words
	}
	if at := strings.LastIndexAny(rest, "?&"); at >= 0 {
		for _, name := range append(known.Settings, "profile") {
			if !strings.Contains(rest[:at], name+"=") {
				words = append(words, config.Choice{Name: prefix + model + "@" + rest[:at+1] + name + "="})
			}
		}
		return words
	}
	count := "" // as in 4xh100
	if n, _, ok := strings.Cut(rest, "x"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		count = n + "x"
	}
	for _, a := range known.Accelerators {
		words = append(words, config.Choice{Name: prefix + model + "@" + count + a.Name, About: fmt.Sprintf("%g GiB", a.MemoryGiB)})
	}
	return words
}

// nextVLLM completes the flags of vllm bench serve.
func nextVLLM(before []string, current string) (found completion) {
	if len(before) > 0 {
		last := strings.TrimPrefix(before[len(before)-1], "--")
		if f, known := vllmFlagNamed(strings.ReplaceAll(last, "_", "-")); known && f.arity == one && !strings.HasPrefix(current, "-") {
			found.files = strings.HasSuffix(f.name, "-path") || strings.HasSuffix(f.name, "-dir") || strings.HasSuffix(f.name, "-filename")
			return found
		}
	}
	for _, f := range vllmFlags() {
		if f.fate != refused {
			found.words = append(found.words, config.Choice{Name: "--" + f.name, About: f.why})
		}
	}
	return found
}
