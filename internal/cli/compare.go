package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/analysis/inspect"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/report/page"
	"pitot/internal/say"
	"pitot/internal/session"
)

// compareVerb says whether something changed between the sides, or saves a
// baseline for that.
func compareVerb(_ context.Context, e *Env) (int, error) {
	var p config.Comparison
	args, err := config.DecodeParts(config.VerbCompare, e.Args, e.Environ, &e.Display, &p)
	if err != nil {
		return Usage, err
	}
	o, err := compareOptions(&p)
	if err != nil {
		return Usage, err
	}
	if len(args) == 0 {
		return Usage, say.Errorf("no runs given").WithHint("for example pitot compare runs/before runs/after")
	}
	if slices.ContainsFunc(args, isRecord) {
		return compareRecords(e, args, &p)
	}
	var sides []compare.Side
	for _, arg := range args {
		s, err := compare.ReadSide(arg)
		if err != nil {
			return Usage, err
		}
		sides = append(sides, s)
	}
	if p.SaveBaseline != "" {
		return saveBaseline(e, p.SaveBaseline, sides)
	}
	c, err := compare.Compare(sides, o)
	if err != nil {
		return Usage, err
	}
	m := report.BuildComparison(c)
	m.AddLimiters(changedLimiters(c, sides))
	if err := writeComparison(e, m, &p); err != nil { // first: whoever reads the answer may stop early
		return Usage, err
	}
	if err := showComparison(e, c, m, p.Format); err != nil {
		return Done, err
	}
	switch {
	case c.AnyFired():
		return Fired, nil
	case c.NotJudged(), c.ComparedNothing():
		return Invalid, nil
	case c.AnyUndecided():
		code := undecidedCode(p.Undecided)
		if code != Done {
			fmt.Fprintln(e.Stderr, "pitot: no verdict on --fail-if: "+undecidedHint)
		}
		return code, nil
	}
	return Done, nil
}

// changedLimiters says what limits other sides than the first otherwise, where something
// changed and a run of each can be looked into, or has it with it.
func changedLimiters(c *compare.Comparison, sides []compare.Side) map[string][]inspect.Change {
	of := map[string][]inspect.Change{}
	for i := range c.Verdicts {
		switch c.Verdicts[i].Word {
		case compare.Equivalent, compare.OtherInstrument:
			continue
		}
		for k := range sides {
			if a, b := sides[0].Runs, sides[k].Runs; sides[k].Name == c.Verdicts[i].B && k > 0 && len(a) > 0 && len(b) > 0 {
				if judged := c.Verdicts[i].Word; (judged == compare.NotCompared || judged == compare.Undistinguished) && (a[0].Run.Findings == nil || b[0].Run.Findings == nil) {
					continue
				}
				of[sides[k].Name] = inspect.ChangedLimits(a[0].Path, a[0].Run, b[0].Path, b[0].Run)
			}
		}
	}
	return of
}

func compareOptions(p *config.Comparison) (o compare.Options, err error) {
	if o.Within, err = compare.ParseShare(p.Equivalent); err != nil {
		return o, say.Errorf("--equivalent-within: %v", err).WithHint(say.HintOf(err))
	}
	if o.Within == 0 {
		return o, say.Errorf("--equivalent-within: no two systems are within nothing of each other").WithHint("for example 2%")
	}
	if p.Allow != "" {
		for _, word := range strings.Split(p.Allow, ",") {
			switch word = strings.TrimSpace(word); word {
			case "workloads":
				o.Workloads = true
			case "tokenizers":
				o.Tokenizers = true
			default:
				return o, say.Errorf("--allow: unknown %q", word).WithHint(say.KnownHint(word, []string{"workloads", "tokenizers"}))
			}
		}
	}
	for _, text := range p.FailIf {
		clauses, err := compare.ParseClauses(text)
		if err != nil {
			return o, say.Errorf("--fail-if: %v", err).WithHint(say.HintOf(err))
		}
		o.Clauses = append(o.Clauses, clauses...)
	}
	if p.Primary != "" {
		if o.Primary, err = compare.ParsePrimary(p.Primary); err != nil {
			return o, say.Errorf("--primary: %v", err).WithHint(say.HintOf(err))
		}
	}
	return o, nil
}

// stepSummary is the variable that names the file in which GitHub Actions
// expects Markdown for the page of a run.
const stepSummary = "GITHUB_STEP_SUMMARY"

// showComparison writes the comparison to standard output, and to GitHub's
// summary where there is one.
func showComparison(e *Env, c *compare.Comparison, m report.ComparisonModel, format string) error {
	if path := e.Getenv(stepSummary); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			err = m.WriteMarkdown(f)
			if closed := f.Close(); err == nil {
				err = closed
			}
		}
		if err != nil {
			return say.Errorf("write the summary: %v", err).WithHint("unset " + stepSummary + " to do without")
		}
	}
	switch format {
	case "json":
		return report.WriteJSON(e.Stdout, c)
	case "md":
		return m.WriteMarkdown(e.Stdout)
	case "html":
		return page.WriteComparison(e.Stdout, m, e.Command)
	}
	return m.WriteTerminal(e.Stdout, e.styleOf(e.Stdout))
}

// writeComparison writes the page of --html. --open alone has a file of its own,
// which stays: the browser may read it later.
func writeComparison(e *Env, m report.ComparisonModel, p *config.Comparison) error {
	path := p.Page
	switch {
	case path == "" && !p.ShowPage:
		return nil
	case path == "":
		f, err := os.CreateTemp("", "pitot-comparison-*.html")
		if err != nil {
			return say.Errorf("--open: %v", err).WithHint("--html FILE chooses another place")
		}
		path = f.Name()
		f.Close() // nothing was written
		fmt.Fprintf(e.Stderr, "the page is in %s\n", path)
	}
	if err := session.NotOwn(path); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.WriteComparison(&b, m, e.Command); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return say.Errorf("--html: %v", err).WithHint("choose another place")
	}
	if p.ShowPage {
		openPage(e, path)
	}
	return nil
}

func saveBaseline(e *Env, path string, sides []compare.Side) (int, error) {
	b, err := compare.NewBaseline(sides)
	if err != nil {
		return Usage, err
	}
	data, err := b.JSON()
	if err != nil {
		return Done, err
	}
	if err := session.NotOwn(path); err != nil {
		return Usage, err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return Usage, say.Errorf("--save-baseline: %v", err).WithHint("choose another place")
	}
	runs := 0
	for _, s := range sides {
		runs += len(s.Runs)
	}
	fmt.Fprintf(e.Stdout, "baseline of %s runs saved in %s, %s bytes\n", say.Count(runs), path, say.Count(len(data)))
	for _, s := range sides {
		if err := report.WriteDetectable(e.Stdout, s, e.styleOf(e.Stdout)); err != nil {
			return Done, err
		}
	}
	return Done, nil
}

func compareHelp() manual {
	return manual{
		about: "Compare runs: slower, faster, equivalent, or no detectable change.",
		usage: "pitot compare A B [C…] [flags]",
		examples: `pitot compare runs/before runs/after
			pitot compare old=runs/a1,runs/a2,runs/a3 new=runs/b1,runs/b2,runs/b3
			pitot compare baseline.json runs/after --fail-if "p99 ttft slower by 5%"       # for CI`,
		notes: `A and B are run directories, directories of runs, baselines, or results of vLLM, SGLang,
AIPerf and GuideLLM; NAME=PATH,PATH names a side. Pitot compares each side with the first.

Restarts of one server differ: measure at least three starts a side, each with --launch ID.
With one start a side, the verdict holds for these two starts only. A search (pitot find) is
compared by its capacity.

The exit code is 6 if a clause of --fail-if fired, and 4 if one is undecided. On GitHub, Pitot
appends Markdown to the file in GITHUB_STEP_SUMMARY.`,
	}
}
