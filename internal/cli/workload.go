package cli

import (
	"context"
	"fmt"
	"io"

	"pitot/internal/plan"
	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// workloadAction is one thing that pitot workload does.
type workloadAction struct {
	name, about string
	run         func(e *Env, args []string) error
}

func workloadActions() []workloadAction {
	return []workloadAction{
		{"list", "the workloads that have a name", listWorkloads},
		{"show", "one of them: its lengths, and where the numbers come from", showWorkload},
	}
}

// workloadVerb shows what can be asked of a target.
func workloadVerb(_ context.Context, e *Env) (int, error) {
	if len(e.Args) == 0 {
		return Usage, say.Errorf("what of the workloads?").WithHint("pitot workload list, or pitot workload show chat")
	}
	var names []string
	for _, a := range workloadActions() {
		if a.name == e.Args[0] {
			if err := a.run(e, e.Args[1:]); err != nil {
				return Usage, err
			}
			return Done, nil
		}
		names = append(names, a.name)
	}
	return Usage, say.Errorf("unknown action %q", e.Args[0]).WithHint(say.Known(e.Args[0], names))
}

func listWorkloads(e *Env, args []string) error {
	if len(args) > 0 {
		return say.Errorf("list takes no more: %q", args[0]).WithHint("pitot workload show " + args[0])
	}
	return report.Presets(e.Stdout, report.Style{Color: wantsColor(e.Stdout, e.Getenv)})
}

func showWorkload(e *Env, args []string) error {
	if len(args) == 0 {
		return say.Errorf("no workload named").WithHint("for example pitot workload show chat; pitot workload list has their names")
	}
	for _, name := range args {
		p, ok := workload.PresetNamed(name)
		if !ok {
			return workload.UnknownPreset(name)
		}
		if err := report.Preset(e.Stdout, p, report.Style{Color: wantsColor(e.Stdout, e.Getenv)}); err != nil {
			return err
		}
	}
	return nil
}

func workloadHelp(w io.Writer) {
	fmt.Fprint(w, "pitot workload ACTION\n\nWhat can be asked of a target with --workload NAME.\n\n")
	for _, a := range workloadActions() {
		fmt.Fprintf(w, "  %-10s %s\n", a.name, a.about)
	}
}

// workloadArguments completes an action, and names of workloads.
func workloadArguments(args []string, _ string) (found completion) {
	switch {
	case len(args) == 0:
		for _, a := range workloadActions() {
			found.words = append(found.words, plan.Choice{Name: a.name, About: a.about})
		}
	case args[0] == "show":
		for _, p := range workload.Presets() {
			found.words = append(found.words, plan.Choice{Name: p.Name, About: p.About})
		}
	}
	return found
}
