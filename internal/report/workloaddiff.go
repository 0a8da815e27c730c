package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/profile"
)

// workloadDiff is the JSON of a comparison of workloads, version 1.
type workloadDiff struct {
	Schema string        `json:"schema"`
	A      string        `json:"a"`
	B      string        `json:"b"`
	Alike  bool          `json:"alike"`
	Rows   []profile.Row `json:"rows"`
}

// WorkloadDiff writes how near two workloads are, as text, Markdown ("md") or JSON. alike
// says whether none of the rows differs.
func WorkloadDiff(w io.Writer, format string, a, b *profile.Seen, rows []profile.Row, s Style) (alike bool, err error) {
	alike = true
	var differing []string
	for _, r := range rows {
		if r.Differ {
			alike = false
			differing = append(differing, fmt.Sprintf("%s %s against %s", r.Name, diffValue(r, r.A), diffValue(r, r.B)))
		}
	}
	answer := "alike: " + a.Name + " and " + b.Name
	if !alike {
		answer = "they differ in: " + strings.Join(differing, ", ")
	}
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return alike, e.Encode(workloadDiff{"pitot.workload-diff/v1", a.Name, b.Name, alike, rows})
	case "md":
		p := &printer{w: w, width: s.Width}
		p.line("**%s**", answer)
		p.line("")
		p.line("| | %s | %s | KS distance | p | |", a.Name, b.Name)
		p.line("|---|---:|---:|---:|---:|---|")
		for _, r := range rows {
			distance, chance := diffDistance(r)
			p.line("| %s | %s | %s | %s | %s | %s |", r.Name, diffValue(r, r.A), diffValue(r, r.B), distance, chance, diffMark(r))
		}
		return alike, p.err
	}
	p := &printer{w: w, width: s.Width}
	p.write(s, bold, "", answer)
	p.line("")
	p.line("%-31s %12s %12s  %8s  %7s", "", "A", "B", "distance", "p")
	for _, r := range rows {
		distance, chance := diffDistance(r)
		p.line("%s", strings.TrimRight(fmt.Sprintf("%-31s %12s %12s  %8s  %7s  %s", r.Name, diffValue(r, r.A), diffValue(r, r.B), distance, chance, diffMark(r)), " "))
	}
	p.line("")
	p.write(s, "", "", fmt.Sprintf("A is %s (%s of %s)", a.Name, say.Plural(len(a.Input), "request"), a.Format), fmt.Sprintf("B is %s (%s of %s)", b.Name, say.Plural(len(b.Input), "request"), b.Format))
	p.write(s, "", "", "distributions are told by their medians, and apart by Kolmogorov-Smirnov; what one of them does not say is left out")
	return alike, p.err
}

func diffMark(r profile.Row) string {
	if r.Differ {
		return "differ"
	}
	return ""
}

func diffValue(r profile.Row, x float64) string {
	switch {
	case r.Shown == "%":
		return say.Percent(x)
	case r.Name == "prompt tokens" || r.Name == "answer tokens":
		return say.Count(int64(x))
	}
	return say.Quantity(x)
}

func diffDistance(r profile.Row) (distance, chance string) {
	if r.P == 0 && r.Distance == 0 {
		return "", ""
	}
	distance = say.Decimal(r.Distance, 3)
	if r.P < 0.001 {
		return distance, "<0.001"
	}
	return distance, say.Decimal(r.P, 3)
}
