package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/plan"
	"pitot/internal/twin/mock"
)

func overview(w io.Writer) {
	fmt.Fprint(w, `Pitot measures how an LLM endpoint serves under load, and proves that the
measurement can be trusted.

  pitot run http://localhost:8000 --rate 4        your own server
  pitot run mock:llama-3.1-8b@h100 --rate 20      the embedded target

`)
	for _, v := range verbs() {
		fmt.Fprintf(w, "  pitot %-8s %s\n", v.name, v.about)
	}
	fmt.Fprint(w, `
pitot VERB --help tells more. Every flag is also a key of the same name in
--config FILE (YAML) and a variable PITOT_NAME.

Exit codes: 0 done · 1 bug · 2 usage · 3 target unreachable or failed ·
4 measurement INVALID · 5 SLO given and not met · 130 interrupted
`)
}

func runHelp(w io.Writer) {
	fmt.Fprint(w, `pitot run TARGET (--rate R | --concurrency N) [flags]

Measures one load on one target.

TARGET  http://host:port, …/v1 or a full route; https; unix:///path/to.sock
        mock:MODEL@GPU  the embedded target behind a real socket
                        (fixed latencies; mock:fixed with --ttft and --itl)
        sim:MODEL@GPU   the same in virtual time
        by default OPENAI_BASE_URL; the key from OPENAI_API_KEY
`)
	printSettings(w, runSettings())
}

func reportHelp(w io.Writer) {
	fmt.Fprint(w, `pitot report DIR… [flags]

Shows runs again. A run whose process was killed is finished from its journal
first: nothing that was measured is lost.
`)
	printSettings(w, reportSettings())
}

func mockHelp(w io.Writer) {
	fmt.Fprint(w, `pitot mock [MODEL@GPU] [flags]

Serves chat completions and completions over HTTP, with latencies that are
known: by default 50 ms to the first token and 10 ms between tokens.
`)
	printSettings(w, mockSettings())
	fmt.Fprint(w, "\nFaults, separated by commas\n")
	for line := range strings.Lines(mock.FaultUsage()) {
		fmt.Fprint(w, "  "+line)
	}
}

func versionHelp(w io.Writer) {
	fmt.Fprint(w, "pitot version\n\nPrints the version, the commit it was built from and Go's version.\n")
}

// helpWidth is that of the help, in columns.
const helpWidth = 88

// wrapped breaks a text between words.
func wrapped(text string, width int) (lines []string) {
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

// printSettings lists flags by group. A verb whose defaults are its own
// changes what is said of them.
func printSettings(w io.Writer, names []string, changes ...func(*plan.Setting)) {
	group := ""
	for _, g := range plan.Groups() {
		for _, s := range plan.Settings() {
			if s.Group != g || !slices.Contains(names, s.Name) {
				continue
			}
			for _, change := range changes {
				change(&s)
			}
			if s.Group != group {
				group = s.Group
				fmt.Fprintf(w, "\n%s\n", group)
			}
			head := strings.TrimSpace("--" + s.Name + " " + s.Arg)
			text := s.Help
			if s.Default != "" {
				text += " (" + s.Default + ")"
			}
			for i, line := range wrapped(text, helpWidth-27) {
				if i > 0 {
					head = ""
				}
				fmt.Fprintf(w, "  %-24s %s\n", head, line)
			}
		}
	}
	fmt.Fprintf(w, "\n  %-24s %s\n", "--config FILE", "settings from a YAML file")
}
