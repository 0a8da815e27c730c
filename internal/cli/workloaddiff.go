package cli

import (
	"slices"
	"strings"

	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/workload/profile"
)

// errDiffer ends pitot workload diff where the workloads are not alike.
var errDiffer = say.Errorf("the workloads differ")

// diffWorkloads says how near two workloads are.
func diffWorkloads(e *Env, args []string) error {
	format := "text"
	var names []string
	for len(args) > 0 {
		name, value, valued := strings.Cut(args[0], "=")
		args = args[1:]
		if !strings.HasPrefix(name, "--") {
			names = append(names, name)
			continue
		}
		if !valued && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if name != "--format" {
			return say.Errorf("unknown flag %s", name).WithHint(say.Known(name, []string{"--format"}))
		}
		if format = value; !slices.Contains([]string{"text", "json", "md"}, format) {
			return say.Errorf("unknown format %q", format).WithHint(say.Known(format, []string{"text", "json", "md"}))
		}
	}
	if len(names) != 2 {
		return say.Errorf("%s named, want two", say.Plural(len(names), "workload")).WithHint("for example pitot workload diff trace.jsonl profile.yaml")
	}
	a, b, err := profile.LookBoth(names[0], names[1])
	if err != nil {
		return err
	}
	rows := profile.Diff(a, b)
	if len(rows) == 0 {
		return say.Errorf("%s and %s say nothing of the same", names[0], names[1])
	}
	alike, err := report.WorkloadDiff(e.Stdout, format, a, b, rows, styleOf(e.Stdout, e.Getenv))
	if err == nil && !alike {
		return errDiffer
	}
	return err
}
