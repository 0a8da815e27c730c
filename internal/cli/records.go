package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"pitot/internal/config"
	"pitot/internal/experiment"
	"pitot/internal/report"
	"pitot/internal/say"
)

// isRecord says that an argument is an experiment's record, or its directory.
func isRecord(arg string) bool {
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return experiment.IsBegun(arg) || fileExists(filepath.Join(arg, experiment.RecordJSON))
	}
	return filepath.Base(arg) == experiment.RecordJSON && fileExists(arg)
}

// readRecords reads records, the oldest first.
func readRecords(args []string) (dirs []string, records []*experiment.Record, err error) {
	type one struct {
		dir string
		r   *experiment.Record
	}
	var all []one
	for _, arg := range args {
		r, err := experiment.ReadRecord(arg)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, one{arg, r})
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(a.r.BeginTime(), b.r.BeginTime()) })
	for _, x := range all {
		dirs, records = append(dirs, x.dir), append(records, x.r)
	}
	return dirs, records, nil
}

// compareEarlier holds a record against earlier ones: what changed since the newest of them, and
// the trend over all.
func compareEarlier(r *experiment.Record, dir string, earlier []string) error {
	if len(earlier) == 0 {
		return nil
	}
	dirs, records, err := readRecords(earlier)
	if err != nil {
		return err
	}
	last := len(dirs) - 1
	r.Since = experiment.CompareRecords(dirs[last], records[last], r)
	if last > 0 {
		r.Trend = experiment.TrendOf(append(dirs, dir), append(records, r))
	}
	return nil
}

// compareRecords says what changed from one experiment to another.
func compareRecords(e *Env, args []string, p *config.Comparison) (int, error) {
	var records []*experiment.Record
	for _, arg := range args {
		if !isRecord(arg) {
			return Usage, say.Errorf("%s is no experiment, and another side is one", arg).WithHint("two experiments are compared with each other")
		}
		r, err := experiment.ReadRecord(arg)
		if err != nil {
			return Usage, err
		}
		records = append(records, r)
	}
	switch {
	case len(records) != 2:
		return Usage, say.Errorf("%d experiments are compared, want 2", len(records)).WithHint("pitot experiment trend takes many")
	case len(p.FailIf) > 0 || p.SaveBaseline != "":
		return Usage, say.Errorf("--fail-if and --save-baseline are not of experiments").WithHint("pitot experiment run PLAN --against DIR ends with exit code 6 where something got worse")
	}
	s := experiment.CompareRecords(args[0], records[0], records[1])
	return Done, showModel(e, p.Format, s, report.BuildSince(s, records[1].Contract.Confidence))
}

// showModel writes what was found of records.
func showModel(e *Env, format string, of any, m report.DecisionModel) error {
	switch format {
	case "json":
		return report.WriteJSON(e.Stdout, of)
	case "md":
		return m.WriteMarkdown(e.Stdout)
	case "html":
		return say.Errorf("--format html is not of records").WithHint("decision.html of pitot experiment run PLAN --against DIR has it as a section")
	}
	return m.WriteTerminal(e.Stdout, e.styleOf(e.Stdout))
}

// trendExperiment shows what many records say.
func trendExperiment(_ context.Context, e *Env, o *config.Experimenting, args []string) (int, error) {
	var found []string
	for _, arg := range args {
		if isRecord(arg) {
			found = append(found, arg)
			continue
		}
		below, err := filepath.Glob(filepath.Join(arg, "*", experiment.RecordJSON))
		if err != nil || len(below) == 0 {
			return Usage, say.Errorf("%s holds no record of an experiment", arg).WithHint("name directories of experiments, their " + experiment.RecordJSON + ", or a directory that holds them")
		}
		for _, path := range below {
			found = append(found, filepath.Dir(path))
		}
	}
	if len(found) < 2 {
		return Usage, say.Errorf("a trend takes several records, and %d is named", len(found)).WithHint("for example pitot experiment trend nightly")
	}
	dirs, records, err := readRecords(found)
	if err != nil {
		return Usage, err
	}
	t := experiment.TrendOf(dirs, records)
	if err := showModel(e, o.Format, t, report.BuildTrend(t)); err != nil {
		return Usage, err
	}
	return Done, nil
}
