package experiment

import (
	"slices"
	"strings"
)

// The rows of the matrix. Each tells one cost from the others: A overheads, B what prompts
// cost, C what decoding costs, D prompts in the way of answers, E the prefix cache beside
// its cold twin, F what is really asked.

// contractRow is the one that the contract is judged by.
const contractRow = "F"

// Kinds are those of traffic that a contract can be about.
func Kinds() []string { return []string{"chat", "rag", "batch", "mixed"} }

// preset is a row of the matrix.
type preset struct {
	name, question string
	settings       []Setting
	twin           string // the row that is always measured beside it
}

func presets() []preset {
	row := func(name, question, workload, users, requests string) preset {
		return preset{name: name, question: question, settings: []Setting{
			{Name: "workload", Values: []string{workload}}, {Name: "concurrency", Values: []string{users}}, {Name: "requests", Values: []string{requests}}}}
	}
	e := row("E", "what does the prefix cache save?", "matrix-e", "16", "64")
	e.settings = append(e.settings, Setting{Name: "cache", Values: []string{"warm"}})
	e.twin = "E-cold"
	return []preset{
		row("A", "what is there besides the model? a short prompt, a short answer", "matrix-a", "1", "20"),
		row("B", "what does a prompt cost? a long prompt, a short answer", "matrix-b", "1", "20"),
		row("C", "what does a token cost? a short prompt, a long answer", "matrix-c", "1", "8"),
		row("D", "what do prompts do to the answers of others?", "matrix-d", "8", "24"),
		row("D-full", "what is served at most? the same with many users", "matrix-d", "64", "128"),
		e,
		row("E-cold", "the same lengths with nothing in common", "matrix-e-cold", "16", "64"),
		{name: contractRow, question: "does it hold the contract, and how much does it carry?"},
	}
}

// workloadOf is the workload that stands for a kind of traffic until its own is known.
func workloadOf(kind string) string {
	return map[string]string{"chat": "chat", "rag": "rag", "batch": "batch", "mixed": "api-many-clients"}[kind]
}

// presetSettings are those of a row of the matrix, none of other rows.
func presetSettings(name, kind string) []Setting {
	if name == contractRow {
		return []Setting{{Name: "workload", Values: []string{workloadOf(kind)}}, {Name: "requests", Values: []string{"500"}}}
	}
	for _, p := range presets() {
		if p.name == name {
			return p.settings
		}
	}
	return nil
}

// fillPresets gives presets their questions, a warm prefix its cold twin at the same load,
// and a plan without rows the contract's.
func (r *reader) fillPresets() {
	p := r.plan
	if len(p.Rows) == 0 {
		p.Rows = []*Row{{Name: p.Contract.Row}}
	}
	for _, known := range presets() {
		row := p.Row(known.name)
		if row == nil {
			continue
		}
		if row.Question == "" {
			row.Question = known.question
		}
		if known.twin != "" && p.Row(known.twin) == nil {
			at := slices.Index(p.Rows, row)
			p.Rows = slices.Insert(p.Rows, at+1, &Row{Name: known.twin, line: row.line, Settings: slices.DeleteFunc(slices.Clone(row.Settings), func(s Setting) bool {
				return slices.Contains([]string{"workload", "cache"}, s.Name) || strings.HasPrefix(s.Name, "prefix")
			})})
		}
	}
}
