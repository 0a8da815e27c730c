package result

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

// Tables of the documents are those of the program.
func TestDocs(t *testing.T) {
	for _, d := range []struct{ path, section, table string }{
		{"../../../docs/reference/metrics.md", "metrics", metricsTable()},
		{"../../../docs/reference/metrics.md", "percentiles", percentilesTable()},
		{"../../../docs/reference/metrics.md", "signals", signalsTable()},
		{"../../../docs/reference/formats.md", "names", namesTable()},
	} {
		data, err := os.ReadFile(d.path)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, begun := strings.Cut(string(data), "<!-- "+d.section+" -->\n")
		has, after, ended := strings.Cut(rest, "<!-- end -->\n")
		if !begun || !ended {
			t.Fatalf("%s has no section %s", d.path, d.section)
		}
		if *update {
			has = d.table
			if err := os.WriteFile(d.path, []byte(before+"<!-- "+d.section+" -->\n"+has+"<!-- end -->\n"+after), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(d.table, has); diff != "" {
			t.Errorf("%s: %s are not the program's (go test -update writes them):\n%s", d.path, d.section, diff)
		}
	}
}

// Every check has its heading in docs/reference/checks.md, in the order of the program, with
// the limits and at least a sentence below it.
func TestChecksAreExplained(t *testing.T) {
	data, err := os.ReadFile("../../../docs/reference/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, k := range CheckKinds() {
		want = append(want, fmt.Sprintf("%s: Flagged: %s. INVALID: %s.", k.Name, orNever(k.Flagged), orNever(k.Invalid)))
	}
	for _, section := range strings.Split(string(data), "\n### ")[1:] {
		section, _, _ = strings.Cut(section, "\n## ")
		name, text, _ := strings.Cut(section, "\n\n")
		limits, text, _ := strings.Cut(text, "\n\n")
		got = append(got, name+": "+strings.Join(strings.Fields(limits), " "))
		if len(strings.Fields(text)) < 6 {
			t.Errorf("docs/reference/checks.md does not explain %s", name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/reference/checks.md (+) and the checks (-) differ:\n%s", d)
	}
}

// orNever returns "never" for a limit that a check does not have.
func orNever(limit string) string {
	if limit == "" {
		return "never"
	}
	return limit
}

func metricsTable() string {
	var b strings.Builder
	b.WriteString("| name | in run.json | of a | unit | |\n|---|---|---|---|---|\n")
	for _, m := range metric.All() {
		if m.Of == metric.Search {
			continue
		}
		limit := ""
		if m.Limit {
			limit = "; `--slo` can limit it"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s%s |\n", m.Name, m.Key, m.Of, m.Unit, m.Help, limit)
	}
	return b.String()
}

func signalsTable() string {
	var b strings.Builder
	b.WriteString("| in run.json | from the samples | how |\n|---|---|---|\n")
	for _, s := range metric.FromSignals() {
		from := "`" + string(s.From) + "`"
		if s.Per != "" {
			from += " / `" + string(s.Per) + "`"
		}
		if s.From == "" {
			from = "several"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Key, from, s.Combine)
	}
	return b.String()
}

func namesTable() string {
	var b strings.Builder
	b.WriteString("| in Pitot | vLLM | SGLang | AIPerf | GuideLLM |\n|---|---|---|---|---|\n")
	for _, m := range metric.All() {
		e := m.Elsewhere
		if e == (metric.Elsewhere{}) {
			continue
		}
		line := "| " + string(m.Name)
		for _, name := range []string{e.VLLM, e.SGLang, e.AIPerf, e.GuideLLM} {
			if name == "" {
				name = "–"
			} else {
				name = "`" + name + "`"
			}
			line += " | " + name
		}
		b.WriteString(line + " |\n")
	}
	return b.String()
}

func percentilesTable() string {
	var b strings.Builder
	b.WriteString("| percentile | key | shown from, samples | firm from |\n|---|---|---|---|\n")
	for _, p := range metric.Percentiles() {
		few, firm := p.SamplesNeeded()
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", p.Name, p.Key, say.Count(few), say.Count(firm))
	}
	return b.String()
}
