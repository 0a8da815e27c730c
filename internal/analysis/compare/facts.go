package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Difference is something other than the measured numbers in which sides
// differ, or the runs of one side among themselves.
type Difference struct {
	What   string     `json:"what"`
	Values [][]string `json:"values"` // of each side; more than one where its runs differ
	Mixed  bool       `json:"mixed"`  // the runs of a side differ
}

// fact is one thing known of a run.
type fact struct{ what, value string }

// listDifferences lists the facts that are not the same on all sides, in the order
// in which they matter: server, configuration, workload, machine.
func listDifferences(sides []Side, workloads bool) []Difference {
	var order []string
	values := map[string][][]string{}
	addFacts := func(i int, list []fact) {
		for _, f := range list {
			if values[f.what] == nil {
				order = append(order, f.what)
				values[f.what] = make([][]string, len(sides))
			}
			if v := &values[f.what][i]; !slices.Contains(*v, f.value) {
				*v = append(*v, f.value)
			}
		}
	}
	otherTools := slices.ContainsFunc(sides, func(s Side) bool { return len(s.Others) > 0 })
	for i, s := range sides {
		for _, r := range s.Runs {
			addFacts(i, facts(r.Run, workloads))
			if otherTools {
				addFacts(i, []fact{{"instrument", Pitot}, {"workload", workloadName(r.Run)}})
			}
		}
		for _, r := range s.Others {
			addFacts(i, otherFacts(r))
		}
	}
	rank := func(what string) int {
		return slices.IndexFunc(factGroups(), func(g string) bool { return strings.HasPrefix(what, g) })
	}
	slices.SortStableFunc(order, func(a, b string) int { return rank(a) - rank(b) })
	out := []Difference{}
	for _, what := range order {
		d := Difference{What: what}
		same := true
		first := -1 // side that tells
		for i, v := range values[what] {
			slices.Sort(v)
			d.Values = append(d.Values, append([]string{}, v...))
			d.Mixed = d.Mixed || len(v) > 1
			if len(v) == 0 && len(sides[i].Others) > 0 {
				continue // a file of another tool that does not tell
			}
			if first < 0 {
				first = i
			}
			same = same && slices.Equal(v, values[what][first])
		}
		if !same || d.Mixed {
			out = append(out, d)
		}
	}
	return append(out, servingDifferences(sides)...)
}

// factGroups are beginnings of facts' names, in the order in which they are shown.
func factGroups() []string {
	return []string{"instrument", "target", "model", "API", "server", "setting", "note", "workload", "SLO", "price", "GPUs", "stamps", "client", "pitot", ""}
}

// facts of a run: all that may explain a difference but seeds and times.
func facts(run *result.Run, workloads bool) []fact {
	out := []fact{{"target", run.Target.Spec}, {"model", run.Target.Model}, {"API", run.Target.API}}
	addAll := func(what string, values map[string]string, without ...string) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			if !slices.Contains(without, k) {
				out = append(out, fact{what + k, values[k]})
			}
		}
	}
	shown := []string{started, "model"} // what identifies a launch, or is shown already
	if run.Target.Kind != "http" {
		shown = append(shown, "engine")
	}
	addAll("server ", run.Target.Server, shown...)
	addAll("setting ", run.Target.Settings)
	addAll("note ", run.Notes, "launch")
	if workloads {
		addAll("workload ", workloadOf(run))
	}
	for _, p := range comparablePoints(run) {
		if p.SLO != nil {
			out = append(out, fact{"SLO", p.SLO.Spec})
		}
		out = append(out, fact{"setting retry", cmp.Or(p.Load.Retry, "0")})
		if c := p.Cost; c != nil && c.Price != "" {
			out = append(out, fact{"price", c.Price})
		}
		if g := p.Throughput.PerGPU; g != nil {
			out = append(out, fact{"GPUs", say.Count(g.GPUs)})
		}
	}
	e := run.Environment
	return append(out,
		fact{"stamps", e.Stamps}, fact{"client CPU", fmt.Sprintf("%s, %d cores", e.CPU, e.Cores)},
		fact{"client memory", fmt.Sprintf("%.3g GB", float64(e.MemoryBytes)/1e9)},
		fact{"client system", joinNonEmpty(e.OS+"/"+e.Arch, e.Kernel)}, fact{"client clock", e.Clocksource},
		fact{"pitot", run.Pitot.Version + " (" + run.Pitot.Commit + ")"},
	)
}

// otherFacts returns the facts from another tool's file.
func otherFacts(r *tools.Result) []fact {
	out := []fact{{"instrument", strings.TrimSpace(instrumentName(r) + " " + r.Version)}}
	if r.Model != "" {
		out = append(out, fact{"model", r.Model})
	}
	if r.Dataset != "" {
		out = append(out, fact{"workload", r.Dataset})
	}
	return out
}

// servingDifferences says where answers, caches or windows were not the same in the mean:
// then numbers differ for another reason than speed.
func servingDifferences(sides []Side) (out []Difference) {
	tokens := func(name metric.Name) func(*result.Point) (mean, n float64) {
		return func(p *result.Point) (mean, n float64) {
			if s := p.Metrics.SummaryOf(name); s != nil && s.Mean != nil {
				return *s.Mean, float64(s.N)
			}
			return 0, 0
		}
	}
	each := func(p *tools.ReportedPoint, sum *float64) (mean, n float64) {
		if sum != nil && p.OK != nil && *p.OK > 0 {
			return *sum / *p.OK, *p.OK
		}
		return 0, 0
	}
	type quantity struct {
		what    string
		matters float64 // relative
		get     func(*result.Point) (mean, n float64)
		theirs  func(*tools.ReportedPoint) (mean, n float64) // nil: not known
	}
	all := []quantity{
		{"window, mean s", 0.1, func(p *result.Point) (mean, n float64) { return p.Seconds.Window, 1 }, nil},
		{"prompts, mean tokens", 0.01, tokens(metric.InputTokens), func(p *tools.ReportedPoint) (mean, n float64) { return each(p, p.InputTokens) }},
		{"cached, mean tokens", 0.01, tokens(metric.CachedTokens), nil},
		{"answers, mean tokens", 0.01, tokens(metric.OutputTokens), func(p *tools.ReportedPoint) (mean, n float64) { return each(p, p.OutputTokens) }},
	}
	if slices.ContainsFunc(sides, func(s Side) bool { return len(s.Others) > 0 }) {
		all = append(all, quantity{"requests a load, mean", 0.01, func(p *result.Point) (mean, n float64) { return float64(p.Requests.Due), 1 }, func(p *tools.ReportedPoint) (mean, n float64) {
			if x := totalRequests(p); x != nil {
				return *x, 1
			}
			return 0, 0
		}})
	}
	for _, of := range all {
		d := Difference{What: of.what}
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, s := range sides {
			mean, n := meanOver(s, of.get, of.theirs)
			if n == 0 {
				d.Values = append(d.Values, []string{})
				continue
			}
			lo, hi = min(lo, mean), max(hi, mean)
			text := fmt.Sprintf("%.4g", mean)
			if mean >= 1e4 { // which would have an exponent
				text = fmt.Sprintf("%.0f", mean)
			}
			d.Values = append(d.Values, []string{text})
		}
		if hi-lo > of.matters*hi && hi-lo > 0.5 {
			out = append(out, d)
		}
	}
	return out
}

func meanOver(s Side, of func(*result.Point) (mean, n float64), theirs func(*tools.ReportedPoint) (mean, n float64)) (mean, n float64) {
	for _, r := range s.Runs {
		for _, p := range comparablePoints(r.Run) {
			x, k := of(&p)
			mean, n = mean+x*k, n+k
		}
	}
	for _, r := range s.Others {
		for i := range r.Points {
			if theirs != nil {
				x, k := theirs(&r.Points[i])
				mean, n = mean+x*k, n+k
			}
		}
	}
	return mean / n, n
}

// workloadOf returns the workload of a run, as far as it makes another question. It leaves out how
// the run was rendered for the server's tokenizer.
func workloadOf(run *result.Run) map[string]string {
	var w map[string]any
	if json.Unmarshal(run.Workload, &w) != nil {
		return map[string]string{"kind": "unknown"}
	}
	out := map[string]string{}
	addText := func(key string, v any) {
		text, ok := v.(string)
		if !ok {
			data, _ := json.Marshal(v) // came from JSON
			text = string(data)
		}
		out[key] = text
	}
	for key, v := range w {
		switch inner, _ := v.(map[string]any); key {
		case "vocabulary", "calibration":
		case "file":
			for _, k := range []string{"sha256", "output_estimated"} {
				if x, ok := inner[k]; ok {
					addText("file "+k, x)
				}
			}
		case "mix":
			list, _ := inner["classes"].([]any)
			for _, x := range list {
				class, _ := x.(map[string]any)
				name := fmt.Sprint(class["name"])
				for k, v := range class {
					if asked, ok := v.(map[string]any); ok {
						delete(asked, "vocabulary")
						delete(asked, "calibration")
						if file, ok := asked["file"].(map[string]any); ok {
							delete(file, "name")
						}
					}
					if k != "name" && k != "slo" { // what is good is no part of what is asked
						addText("class "+name+" "+k, v)
					}
				}
			}
		case "sampling", "prefix":
			for k, x := range inner {
				if k != "stream_options" { // what the server reports with an answer, not what is asked for
					addText(key+" "+k, x)
				}
			}
		default:
			addText(key, v)
		}
	}
	return out
}

// workloadKey is a workload as one string, equal where workloads are.
func workloadKey(run *result.Run) string {
	data, _ := json.Marshal(workloadOf(run)) // strings, in the order of their keys
	return string(data)
}

// workloadName names a workload among others.
func workloadName(run *result.Run) string {
	w := workloadOf(run)
	if sum := w["file sha256"]; sum != "" {
		return "file " + sum[:min(8, len(sum))]
	}
	var classes []string
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if name, ok := strings.CutPrefix(k, "class "); ok && strings.HasSuffix(name, " share") {
			classes = append(classes, strings.TrimSuffix(name, " share")+" "+w[k])
		}
	}
	if len(classes) > 0 {
		return "classes " + strings.Join(classes, ", ")
	}
	s := w["input"] + " tokens in, " + w["output"] + " out"
	if n := w["prefix tokens"]; n != "" {
		s += ", prefix " + n + " × " + w["prefix share"]
	}
	return s
}

// workloadDifference says in what two workloads differ.
func workloadDifference(a, b *result.Run) string {
	x, y := workloadOf(a), workloadOf(b)
	all := maps.Clone(x)
	maps.Copy(all, y)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if x[k] != y[k] {
			out = append(out, fmt.Sprintf("%s %s and %s", k, cmp.Or(x[k], "none"), cmp.Or(y[k], "none")))
		}
	}
	return strings.Join(out, ", ")
}

// tokenizerMismatch says why tokens of two sides may not be the same: their models
// have other names, or their servers counted the same words otherwise. "" if
// neither is known.
func tokenizerMismatch(sides ...Side) string {
	const hint = "tokens may not be the same (--allow tokenizers)"
	var models []string
	first, unlike := 0., "" // tokens a word
	for _, s := range sides {
		for _, r := range s.Runs {
			models = append(models, r.Run.Target.Model)
			switch x := perWord(r.Run); {
			case first == 0:
				first = x
			case x > 0 && math.Abs(first-x) > 0.01*first:
				unlike = fmt.Sprintf("%.3g and %.3g tokens a word: %s", first, x, hint)
			}
		}
		for _, r := range s.Others {
			if r.Model != "" { // not all tell it
				models = append(models, r.Model)
			}
		}
	}
	for _, m := range models {
		if m != models[0] {
			return fmt.Sprintf("%s and %s: %s", models[0], m, hint)
		}
	}
	return unlike
}

func perWord(run *result.Run) float64 {
	var w struct {
		Calibration struct {
			PerWord float64 `json:"tokens_per_word"`
		} `json:"calibration"`
	}
	_ = json.Unmarshal(run.Workload, &w) // not there: 0
	return w.Calibration.PerWord
}
