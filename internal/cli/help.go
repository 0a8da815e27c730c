package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/sim/serve"
	"pitot/internal/slo"
)

func writeOverview(w io.Writer) {
	fmt.Fprint(w, `Pitot measures how an LLM endpoint serves under load, and proves that the
measurement can be trusted.

  pitot run http://localhost:8000 --rate 4        your own server
  pitot run mock:llama-3.1-8b@h100 --rate 20      the embedded twin of an engine
  pitot find http://localhost:8000 --slo chat     the highest load that meets an SLO

`)
	for _, v := range verbs() {
		fmt.Fprintf(w, "  pitot %-10s %s\n", v.name, v.about)
	}
	fmt.Fprint(w, `
pitot VERB --help tells more. Every flag is also a key of the same name in
--config FILE (YAML) and a variable PITOT_NAME; seldom used keys are --set KEY=VALUE.

Exit codes: 0 done · 1 bug · 2 usage · 3 target unreachable or failed ·
4 measurement INVALID · 5 SLO given and not met, of find at any load, of
find --at not shown to be met there · 6 --fail-if fired ·
7 an experiment waits for a launch made by hand · 130 interrupted
`)
}

func runHelp(w io.Writer) {
	fmt.Fprint(w, `pitot run TARGET (--rate R | --concurrency N) [flags]

Measures one load on one target.

  pitot run http://localhost:8000 --rate 4 --input 1024 --output 128 --duration 1m
  pitot run http://localhost:8000 --concurrency 8 --slo "p99 ttft<200ms, p99 tpot<50ms"
  pitot run http://localhost:8000 --rate 4 --workload chat

TARGET  http://host:port, …/v1 or a full route; https; unix:///path/to.sock
        mock:MODEL@GPU  the twin, a model of vLLM on that hardware, behind a
                        real socket; mock:MODEL@GPU?max_num_seqs=64 sets it
        mock:fixed      fixed latencies: 'mock:fixed?ttft=50ms&itl=10ms'
        sim:…           either in virtual time: no socket, no waiting
        by default OPENAI_BASE_URL; the key from OPENAI_API_KEY

pitot predict --list has the names of models and accelerators, pitot predict
--help the settings behind the question mark.
`)
	printMostUsed(w, config.VerbRun)
	printSettings(w, config.VerbRun)
	printTargetSettings(w)
}

// printTargetSettings lists the settings of simulated targets.
func printTargetSettings(w io.Writer) {
	fmt.Fprint(w, "\nSettings of mock: and sim: targets, after ? and joined by &, besides the engine's\n")
	for _, s := range config.TargetSettings() {
		head := s.TargetKey()
		if s.Arg != "" {
			head += "=" + s.Arg
		}
		printSetting(w, head, s.Help, s.DefaultDescription())
	}
}

func sweepHelp(w io.Writer) {
	fmt.Fprint(w, `pitot sweep TARGET [flags]

Measures many loads of one target: the curve of latency and throughput, its knee,
saturation, the loads at which the queue grows. The loads double from one request
at a time until they are past the knee; the rest is put where the curve bends
most. Each has prompts and arrivals of its own.

  pitot sweep http://localhost:8000 --input 1024 --output 128 --slo chat
  pitot sweep http://localhost:8000 --loads 1,2,4,8 --duration 30s
  pitot sweep http://localhost:8000 --over concurrency --workload chat

pitot run --help has what TARGET can be.
`)
	printMostUsed(w, config.VerbSweep)
	printSettings(w, config.VerbSweep)
}

func findHelp(w io.Writer) {
	fmt.Fprint(w, `pitot find TARGET --slo LIMITS [flags]

Searches for the highest load at which the SLO holds: its capacity.

  pitot find http://localhost:8000 --slo "p99 ttft<500ms, p99 tpot<50ms" --budget 30m
  pitot find http://localhost:8000 --slo chat --workload chat --over concurrency
  pitot find http://localhost:8000 --slo chat --at 4

Near the limit violations come in bursts, so that one measured load says next to
nothing; the share of violations at many loads around it is fitted instead. The
answer is a load that was verified by a long measurement of its own, and the
estimate with its interval. A smaller budget gives bounds that are further apart,
each at its level, and the exit code is 0, whether or not a load was verified. Where
no load meets the SLO the answer says why, and the exit code is 5; so it is where the
load of --at was not shown to meet it.

The load of --over rate is requests per second at times of their own; that of
--over concurrency is users who wait for their answers.

pitot run --help has what TARGET can be.
`)
	printMostUsed(w, config.VerbFind)
	fmt.Fprintln(w, "\nPresets for --slo, by whose they are")
	list := slo.Presets()
	for i, of := range list {
		if slices.ContainsFunc(list[:i], func(p slo.Preset) bool { return p.Source == of.Source }) {
			continue // it stands with the first of that source
		}
		for _, line := range wrapText(of.Source, helpWidth-2) {
			fmt.Fprintln(w, "  "+line)
		}
		for _, p := range list[i:] {
			if p.Source == of.Source {
				fmt.Fprintf(w, "    %-32s %s\n", p.Name, p.Spec)
			}
		}
	}
	printSettings(w, config.VerbFind)
}

func reportHelp(w io.Writer) {
	fmt.Fprint(w, `pitot report DIR… [flags]

Shows runs again. A run whose process was killed is finished from its journal
first: nothing that was measured is lost. The run's page, report.html, is written
again; --open shows it in a browser. In place of a directory, a result file of
vLLM, SGLang, AIPerf or GuideLLM is shown as what that tool says.
`)
	printSettings(w, config.VerbReport)
	exportHelp(w)
}

func mockHelp(w io.Writer) {
	fmt.Fprint(w, `pitot mock [MODEL@GPU[?settings]] [flags]

Serves vLLM's routes over HTTP: chat completions, completions, OpenAI's
Responses, Anthropic's Messages, models, tokenize, metrics, health. With
MODEL@GPU the answers come when vLLM on that hardware would give them, as the
twin has it. Alone, latencies are fixed: by default 50 ms to the first token and
10 ms between tokens.

Words mean nothing, but response_format and structured_outputs are kept to, and
with temperature 0 or a seed the same prompt has the same answer. What is modelled
and what is not: docs/guides/test-your-gateway.md

pitot predict --list has the names of models and accelerators, pitot predict
--help the settings behind the question mark, such as ?max_num_seqs=64; flags of
vLLM do the same: --max-num-seqs 64, --no-enable-prefix-caching.
`)
	printSettings(w, config.VerbMock)
	fmt.Fprint(w, "\nFaults, separated by commas\n")
	for line := range strings.Lines(serve.FaultUsage()) {
		fmt.Fprint(w, "  "+line)
	}
}

// helpWidth is that of the help, in columns.
const helpWidth = 88

// wrapText breaks a text between words.
func wrapText(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// printSetting writes one setting, with its value where none is given.
func printSetting(w io.Writer, head, text, usual string) {
	if usual != "" {
		text += " (" + usual + ")"
	}
	for i, line := range wrapText(text, helpWidth-27) {
		if i > 0 {
			head = ""
		}
		fmt.Fprintf(w, "  %-24s %s\n", head, line)
	}
}

// printMostUsed lists the flags of a verb that most users need, a line each.
func printMostUsed(w io.Writer, v config.Verb) {
	fmt.Fprint(w, "\nUsed most, of the flags below\n")
	for _, s := range config.Settings() {
		if s.Brief == "" || s.KeyOnly || !s.AppliesTo(v) {
			continue
		}
		fmt.Fprintf(w, "  %-24s %s\n", strings.TrimSpace("--"+s.Name+" "+s.Arg), s.Brief)
	}
}

// printSettings lists the flags of a verb by group.
func printSettings(w io.Writer, v config.Verb) {
	for _, group := range config.Groups() {
		title := "\n" + group + "\n"
		for _, s := range config.Settings() {
			if s.Group != group || s.KeyOnly || !s.AppliesTo(v) {
				continue
			}
			fmt.Fprint(w, title)
			title = ""
			head := strings.TrimSpace("--" + s.Name + " " + s.Arg)
			text := s.Help
			if s.Name == "api" {
				text += ". One of " + strings.Join(api.Names(), ", ")
			}
			printSetting(w, head, text, s.DefaultDescription())
		}
	}
	fmt.Fprintf(w, "\n  %-24s %s\n", "--config FILE", "settings from a YAML file")
	title := fmt.Sprintf("  %-24s %s\n\n%s\n", "--set KEY=VALUE", "a seldom used setting, of those below", "Keys of --config, without a flag of their own: --set KEY=VALUE")
	for _, s := range config.Settings() {
		if !s.KeyOnly || !s.AppliesTo(v) {
			continue
		}
		fmt.Fprint(w, title)
		title = ""
		printSetting(w, strings.TrimSuffix(s.Name+"="+s.Arg, "="), s.Help, s.DefaultDescription())
	}
}
