package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"pitot/internal/experiment"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// What an experiment came to, in words: the answer first, then what it rests on.

// DecisionModel holds what a report shows of an experiment.
type DecisionModel struct {
	Word     string   // of the answer: "accepted", "none", "undecided"
	Headline string   // the sentence to quote
	Basis    []string // what it rests on
	Sections []DecisionSection
	Of       *experiment.Record
}

// DecisionSection is one part of the record.
type DecisionSection struct {
	ID, Title string
	Table     Table
	Brief     Table // for a terminal, in place of Table
	Lines     texts
	Commands  []string
	InFiles   bool // not for a terminal
}

// BuildDecision makes the model of a record.
func BuildDecision(r *experiment.Record) DecisionModel {
	m := DecisionModel{Word: r.Answer, Of: r}
	m.Headline = decisionHeadline(r)
	m.Basis = decisionBasis(r)
	for _, s := range []DecisionSection{configurationSection(r), hypothesisSection(r), effectSection(r), controlSection(r), limiterSection(r), sinceSection(r), trendSection(r.Trend), spreadSection(r), ladderSection(r), environmentSection(r), nextSection(r), repeatSection(r)} {
		if len(s.Table.Rows)+len(s.Lines)+len(s.Commands) > 0 {
			m.Sections = append(m.Sections, s)
		}
	}
	return m
}

// usdText is an amount with its unit.
func usdText(x float64) string { return "$" + say.Dollars(x) }

func perS(x float64) string { return say.Quantity(x) + " req/s" }

// rangeText is an interval in words.
func rangeText(v *[2]float64) string {
	if v == nil {
		return ""
	}
	return " (" + fromTo(*v) + ")"
}

func standingOf(r *experiment.Record, name string) *experiment.Standing {
	i := slices.IndexFunc(r.Standings, func(s experiment.Standing) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Standings[i]
}

// highestCapacity is the configuration that carries most, nil where none was measured.
func highestCapacity(r *experiment.Record) (best *experiment.Standing) {
	for i := range r.Standings {
		if s := &r.Standings[i]; s.Carries != nil && (best == nil || *s.Carries > *best.Carries) {
			best = s
		}
	}
	return best
}

func contractLoad(r *experiment.Record) string {
	text := say.Exact(r.Contract.Capacity) + " req/s"
	if c := r.Contract.ForCost; c != nil {
		text = fmt.Sprintf("%s req/s, for at most %s per million tokens,", say.Exact(*c), usdText(*r.Contract.USDPerM))
	}
	return text
}

func decisionHeadline(r *experiment.Record) string {
	if s := standingOf(r, r.Accepted); s != nil && s.Carries != nil {
		verb := "Accept " + s.Name
		if s.Name == experiment.Baseline {
			verb = "Keep the baseline"
		}
		return fmt.Sprintf("%s: %s, %s wanted", verb, carriedText(s), contractLoad(r))
	}
	best := highestCapacity(r)
	switch {
	case best == nil:
		return nothingYet(r)
	case r.Answer == experiment.AnswerNone:
		return fmt.Sprintf("No configuration meets the SLO: best is %s with %s, %s wanted", best.Name, carriedText(best), contractLoad(r))
	}
	return fmt.Sprintf("Undecided: best is %s with %s, %s wanted", best.Name, carriedText(best), contractLoad(r))
}

// nothingYet says why there is nothing to decide by.
func nothingYet(r *experiment.Record) string {
	if n := len(r.Sittings); n > 0 {
		if why := r.Sittings[n-1].Why; why.Code == result.SittingFailed {
			return "Undecided: " + why.Quote
		}
	}
	if r.Launches.Done > 0 {
		return fmt.Sprintf("Undecided: %s complete, not yet one of each configuration", say.Plural(r.Launches.Done, "launch"))
	}
	return "Undecided: no launch is complete"
}

// carriedText returns the load that a configuration carries, with its interval.
func carriedText(s *experiment.Standing) string {
	return boundMark(s) + perS(*s.Carries) + rangeText(s.Interval)
}

func boundMark(s *experiment.Standing) string {
	if s.Bound == "" {
		return ""
	}
	return s.Bound + " "
}

func decisionBasis(r *experiment.Record) (list texts) {
	list.addText(r.Contract.Limits + " · " + r.Contract.Workload + ", row " + r.Contract.Row)
	if s := standingOf(r, r.Accepted); s != nil {
		var parts texts
		if s.Least != nil {
			parts.addFormat("at least %s (%s sure, corrected for all looks and configurations)", perS(*s.Least), formatConfidence(r))
		}
		if s.Carries != nil {
			parts.addFormat("%s%s more than wanted", boundMark(s), say.Percent(*s.Carries/r.Contract.Capacity-1))
		}
		if s.USDPerM != nil {
			text := usdText(*s.USDPerM) + " per million output tokens within the SLO"
			if limit := r.Contract.USDPerM; limit != nil {
				text += ", " + usdText(*limit) + " allowed"
			}
			parts.addText(text)
		}
		list.addText(strings.Join(parts, " · "))
		switch {
		case s.Change != nil:
			text := fmt.Sprintf("%s%s against the baseline%s", say.RelativeChange(*s.Change, false), byGPU(r), changeInterval(s.Change95, false))
			if s.PAdjusted != nil && *s.PAdjusted >= 1-r.Contract.Confidence {
				text += ", which is not confirmed; but the baseline may lose more"
			}
			list.addText(text)
		case len(r.Standings) > 1:
			list.addText("no other configuration is shown to carry more")
		}
	}
	if r.Open != "" {
		why := r.Open
		if best := highestCapacity(r); best != nil && best.Launches > 1 { // a bound is named
			why += " (" + formatConfidence(r) + ", corrected for all looks and configurations)"
		}
		list.addText(why)
	}
	if text := othersText(r); text != "" {
		list.addText(text)
	}
	if len(r.Launches.Before) > 0 {
		var planned []string
		for _, n := range r.Launches.Before {
			planned = append(planned, say.Count(n))
		}
		list.addFormat("launches were added after %s were looked at: all that is claimed together holds with %s, and not %s", strings.Join(planned, " and then "), formatConfidence(r), say.Percent(r.Contract.Confidence))
	}
	for _, c := range r.Controls {
		if c.Moved {
			list.addFormat("a control moved: %s of %s with %s, %s", c.Metric, c.Row, c.Configuration, say.RelativeChange(c.Change, c.OfShare))
		}
	}
	uncounted := ""
	if n := len(r.Bad); n > 0 {
		uncounted = fmt.Sprintf(", %d bad ones not counted", n)
	}
	launches, least := say.Plural(r.Launches.Blocks, "launch"), r.Launches.Blocks
	for i := range r.Standings {
		least = min(least, r.Standings[i].Launches)
	}
	if least < r.Launches.Blocks {
		launches = fmt.Sprintf("%d to %s", least, launches)
	}
	return append(list, fmt.Sprintf("%s of each of %s%s · %s", launches, say.Plural(len(r.Standings), "configuration"), uncounted, stoppedText(r)))
}

// formatConfidence is that of what is said of all looks and configurations together.
func formatConfidence(r *experiment.Record) string {
	if of := r.Contract.OfAll; of > 0 {
		return say.Percent(of)
	}
	return say.Percent(r.Contract.Confidence)
}

// byGPU marks what is said of the load that each GPU carries.
func byGPU(r *experiment.Record) string {
	if r.PerGPU {
		return " by GPU"
	}
	return ""
}

// othersText says how much more another configuration may carry.
func othersText(r *experiment.Record) string {
	if r.More == nil || len(r.Standings) < 2 {
		return ""
	}
	leads := r.Accepted
	if leads == "" {
		leads = highestCapacity(r).Name
	}
	open := func(s experiment.Standing) bool {
		return s.Name != leads && s.GivenUp == 0 && (r.Accepted == "" || s.Contract != "misses")
	}
	sure := " (" + formatConfidence(r) + ")"
	switch {
	case !slices.ContainsFunc(r.Standings, open):
		return "all others miss the SLO or were given up"
	case *r.More <= 0:
		return "no other configuration carries more" + byGPU(r) + sure
	}
	return fmt.Sprintf("another configuration may carry up to %s more%s%s", say.Percent(*r.More), byGPU(r), sure)
}

func changeInterval(v *[2]float64, share bool) string {
	if v == nil {
		return ""
	}
	return " (" + changeRange(*v, share) + ")"
}

func configurationSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "configurations", Title: "Configurations"}
	interval := say.Percent(r.Contract.Confidence) + " interval"
	s.Table.Head = []string{"", "launches", "carries", interval, "change", interval, "$ per M", "contract"}
	for i := range r.Standings {
		c := &r.Standings[i]
		row := []string{c.Name, launchesText(c), say.Optional(c.Carries), intervalCell(c.Interval), say.Unknown, say.Unknown, say.Unknown, StandingText(r, c)}
		if c.Carries != nil && c.Bound != "" {
			row[2] = map[string]string{"at least": "≥ ", "at most": "≤ "}[c.Bound] + row[2]
		}
		if c.Change != nil {
			row[4] = say.RelativeChange(*c.Change, false)
			row[5] = changeSpan(*c.Change95, false)
		}
		if c.USDPerM != nil {
			row[6] = usdText(*c.USDPerM)
		}
		s.Table.AddRow(row...)
	}
	s.Brief = s.Table.withoutColumns(func(column int) bool { return column == 5 })
	s.Lines.addText("carries: requests per second within the limits, geometric mean over launches; change: of that" + byGPU(r) + ", against the baseline, by launches of the same block; intervals are of each line alone")
	if r.PerGPU {
		for _, c := range r.Standings[1:] {
			if base := r.Standings[0].GPUs; c.GPUs != base {
				s.Lines.addFormat("%s has %s, the baseline %d", c.Name, say.Plural(c.GPUs, "GPU"), base)
			}
		}
	}
	for i := range r.Standings {
		if c := &r.Standings[i]; len(c.Unknown) > 0 {
			s.Lines.addFormat("%s: %s is not known to be applied: the server does not report it", c.Name, strings.Join(c.Unknown, ", "))
		}
	}
	var rejected Grouping // configurations by the reason
	for i := range r.Standings {
		c := &r.Standings[i]
		if c.Rejected == "" {
			continue
		}
		why := c.Rejected
		if c.GivenUp > 0 && c.GivenUp < r.Launches.Planned {
			why += fmt.Sprintf("; given up after %s", say.Plural(c.GivenUp, "launch"))
		}
		rejected.AddName(why, c.Name)
	}
	for _, why := range rejected.Keys {
		s.Lines.addText(rejected.JoinNames(why) + ": " + why)
	}
	for i := range r.NotStarted {
		s.Lines.addText(notStarted(&r.NotStarted[i])...)
	}
	return s
}

// launchesText are those of a configuration: "6", or "5 of 6" where one does not count.
func launchesText(c *experiment.Standing) string {
	if c.Bad == 0 {
		return say.Count(c.Launches)
	}
	return fmt.Sprintf("%d of %d", c.Launches, c.Launches+c.Bad)
}

// notStarted says why a configuration is not among the others.
func notStarted(f *experiment.Failure) []string {
	times := map[int]string{1: "", 2: " (twice in a row)"}[f.Tries]
	if f.Tries > 2 {
		times = fmt.Sprintf(" (%d times in a row)", f.Tries)
	}
	lines := []string{f.Configuration + " is left out: " + f.Why + times}
	if f.Log != "" {
		verb := " ends with"
		if len(f.Last) == 0 {
			verb = " is empty"
		}
		lines = append(lines, "its log "+f.Log+verb)
	}
	for _, l := range f.Last {
		lines = append(lines, "  "+l)
	}
	return lines
}

// StandingText is a configuration's in a word: "accepted", "given up", or as it stands to the
// contract.
func StandingText(r *experiment.Record, c *experiment.Standing) string {
	switch {
	case c.Name == r.Accepted:
		return "accepted"
	case c.GivenUp > 0 && c.Contract == experiment.Undecided:
		return "given up"
	}
	return c.Contract
}

func hypothesisSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "hypotheses", Title: "Hypotheses"}
	for _, h := range r.Hypotheses {
		text := fmt.Sprintf("%s: %s", h.Outcome, h.Text)
		if h.Launches > 0 {
			text += fmt.Sprintf(": %s against %s", say.Quantity(h.Left), say.Quantity(h.Right))
			if h.Ratio != nil {
				text += ", " + say.Quantity(*h.Ratio) + " times" + rangeText(h.Interval)
			} else if h.Interval != nil {
				text += ", a difference of " + changeRange(*h.Interval, true)
			}
		}
		if h.Why != "" {
			text += " (" + h.Why + ")"
		}
		if h.Expected != "" {
			text += "; " + h.Expected
		}
		s.Lines.addText(text)
	}
	if len(s.Lines) > 0 {
		s.Lines.addFormat("each by itself, at %s, by launches", say.Percent(r.Contract.Confidence))
	}
	return s
}

// effectInterval writes the interval of an effect: one that reaches over more than a factor
// of ten to either side, as of two launches with much noise, says nothing.
func effectInterval(v [2]float64, share bool) string {
	if !share && (v[0] < 0.1-1 || v[1] > 10-1) {
		return "not known"
	}
	return changeSpan(v, share)
}

func effectSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "effects", Title: "What each knob does"}
	head := []string{"", "row", "metric", "baseline", "with it", "change", say.Percent(r.Contract.Confidence) + " interval", ""}
	s.Table.Head, s.Brief.Head = head, head
	open, same := 0, 0
	for _, e := range r.Effects {
		write := formatterOfShare(e.OfShare)
		ci := say.Unknown
		if e.Interval != nil {
			ci = effectInterval(*e.Interval, e.OfShare)
		}
		row := []string{e.Configuration, e.Row, e.Metric, write(e.Baseline), write(e.Value), say.RelativeChange(e.Change, e.OfShare), ci, e.Verdict}
		s.Table.AddRow(row...)
		switch e.Verdict {
		case experiment.NotDiscerned:
			open++
		case experiment.Alike:
			same++
		default:
			s.Brief.AddRow(row...)
		}
	}
	if len(r.Effects) == 0 {
		return DecisionSection{}
	}
	s.Lines.addFormat("%s of %d effects established, corrected for their number and for the looks; %d show no change, %d are the same in every launch", say.Count(len(s.Brief.Rows)), len(r.Effects), open, same)
	return s
}

// controlSection are the rows that a knob must not move.
func controlSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "controls", Title: "Controls"}
	moved := 0
	for _, c := range r.Controls {
		if c.Moved {
			moved++
			s.Lines.addFormat("moved: %s of %s with %s, %s: the machine changed, or the knob does more than the plan says", c.Metric, c.Row, c.Configuration, say.RelativeChange(c.Change, c.OfShare))
		}
	}
	judged := func(c experiment.ControlRecord) bool { return c.PAdjusted != nil }
	if n := len(r.Controls); n > 0 && !slices.ContainsFunc(r.Controls, judged) {
		s.Lines.addFormat("%d metrics that the plan says a knob does not move are measured; how launches differ is not known yet", n)
	} else if n > 0 {
		s.Lines.addFormat("%d of %d metrics of rows that the plan says a knob does not move have moved, by its first launch, corrected for their number", moved, n)
	}
	return s
}

func limiterSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "limits", Title: "What limits it"}
	if l := r.Limiter; l != nil {
		s.Lines.addText(l.Configuration + ": " + l.Sentence)
		if l.Try != "" {
			s.Lines.addText("try " + l.Try)
		}
		s.Lines.addText("in full: pitot explain " + say.ShellLine([]string{l.Run}))
	}
	if d := r.Distance; d != nil {
		s.Lines.addFormat("%s at %s, %s requests at once in an engine: p50 tpot is %s times its floor, at which weights and contexts are read once a step (%s of %s ms); computing takes %s of the peak", d.Configuration, perS(d.Load), say.Quantity(d.Running), say.Quantity(d.TPOT/d.Floor), say.Quantity(d.TPOT), say.Quantity(d.Floor), say.Percent(d.Computing))
	}
	return s
}

// environmentSection is where and with what it was measured.
func environmentSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "environment", Title: "Environment"}
	s.Lines.addText("target: " + r.Target)
	if len(r.Server) > 0 {
		var facts []string
		for _, key := range slices.Sorted(maps.Keys(r.Server)) {
			facts = append(facts, key+" "+r.Server[key])
		}
		s.Lines.addText("server: " + strings.Join(facts, " · "))
	}
	s.Lines.addText("pitot " + r.Pitot.Version)
	if m := r.Machine; m != nil {
		s.Lines.addFormat("client: %s, %s, %s", m.CPU, say.Plural(m.Cores, "core"), m.Kernel)
	}
	for _, x := range r.Sittings {
		ended := "killed"
		if x.Ended != "" {
			ended = dayOf(x.Ended) + ", " + ReasonText(x.Why)
		}
		s.Lines.addFormat("measured with pitot %s: %s to %s", x.Pitot, dayOf(x.Began), ended)
	}
	s.InFiles = true
	return s
}

func spreadSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "launches", Title: "Launches and time"}
	if r.Spread != nil {
		s.Lines.addFormat("launches of one configuration differ by %s in what they carry (coefficient of variation, within a block)", say.Percent(*r.Spread))
	}
	s.Lines.addText(badLines(r)...)
	if d := r.Drift; d != nil && (d.Slower || d.Interval[0] > 0) {
		pace, then := "faster", ""
		if d.Slower {
			pace, then = "slower", "; what is sure to be carried is said of the last one, and nothing of later ones"
		}
		s.Lines.addFormat("the machine gets %s from launch to launch: %s%s%s", pace, say.SignedChange(d.PerBlock, false), changeInterval(&d.Interval, false), then)
	}
	kind := ""
	if r.Spent.Virtual {
		kind = " of virtual time"
	}
	text := fmt.Sprintf("%s in %s, %s%s", say.Plural(r.Spent.Requests, "request"), say.Plural(r.Spent.Runs, "run"), say.Seconds(r.Spent.Seconds), kind)
	if r.Spent.Starting > 0 {
		text += " with " + say.Seconds(r.Spent.Starting) + " of starts and stops"
	}
	if r.Spent.USD > 0 {
		of := " at the price of the GPUs"
		if r.Spent.Virtual {
			of = " on real GPUs"
		}
		text += ", " + usdText(r.Spent.USD) + of
	}
	s.Lines.addText(text)
	s.Lines.addText(r.Void...)
	return s
}

// badLines name the launches that do not count.
func badLines(r *experiment.Record) (list []string) {
	all := 0
	for _, c := range r.Standings {
		all += c.Launches + c.Bad
		if c.Uneven {
			list = append(list, c.Name+": most of its launches carry much less than its others; all count, and nothing is said of it that bad launches would explain")
		}
	}
	if len(r.Bad) == 0 {
		return list
	}
	var names texts
	less := 0.0
	for _, b := range r.Bad {
		names.addFormat("%s %d (%s)", b.Configuration, b.Launch, say.SignedChange(-b.Less, false))
		less += b.Less / float64(len(r.Bad))
	}
	verb := map[bool]string{true: "is not", false: "are not"}[len(r.Bad) == 1]
	return append(list, fmt.Sprintf("%d of %s %s counted: %s less than configuration and block make one expect: %s; expect as many bad ones, and start those again", len(r.Bad), say.Plural(all, "launch"), verb, say.Percent(less), strings.Join(names, ", ")))
}

func ladderSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "curves", Title: "What was measured around the limits"}
	s.Table.Head = []string{"", "load", "launches", "within", "requests", "violate", "the limit"}
	for _, c := range r.Standings {
		for _, l := range c.Ladder {
			s.Table.AddRow(c.Name, perS(l.Load), say.Count(l.Launches), say.Count(l.Within), say.Count(l.Requests), say.Percent(l.Violated), l.Limit)
		}
	}
	s.Brief = Table{Head: s.Table.Head}
	return s
}

func nextSection(r *experiment.Record) DecisionSection {
	return DecisionSection{ID: "next", Title: "What next", Lines: r.Next}
}

func repeatSection(r *experiment.Record) DecisionSection {
	return DecisionSection{ID: "again", Title: "To do it again", Commands: r.Repeat}
}

// answerColor is that of an answer.
func answerColor(word string) string {
	return bold + ";" + map[string]string{experiment.AnswerAccepted: green, experiment.AnswerNone: red, experiment.AnswerUndecided: yellow}[word]
}

// WriteTerminal writes it for a terminal: the whole is in the files.
func (m DecisionModel) WriteTerminal(w io.Writer, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(answerColor(m.Word), m.Headline)
	if !s.Full && m.Of != nil { // nil of a comparison of records
		m.writeBrief(p)
		return p.err
	}
	for _, b := range m.Basis {
		p.writeText(b)
	}
	for _, part := range m.Sections {
		table := part.Table
		if len(part.Brief.Head) > 0 {
			table = part.Brief
		}
		if len(part.Commands) > 0 || len(table.Rows)+len(part.Lines) == 0 || part.InFiles {
			continue // in the files
		}
		p.line("")
		p.writePainted(bold, part.Title)
		if len(table.Rows) > 0 {
			p.writeTable(table)
		}
		for _, l := range part.Lines {
			p.writeWrapped(l)
		}
	}
	return p.err
}

// effectsNamed is the number of effects that are named by default.
const effectsNamed = 3

// briefFacts are the facts that a decision rests on.
func (m DecisionModel) briefFacts() (facts []labelled) {
	label := "Basis"
	for _, b := range m.Basis {
		facts = append(facts, labelled{Label: label, Value: []string{b}})
		label = ""
	}
	label = "Effects"
	for _, e := range m.Of.Effects {
		if e.Verdict == experiment.NotDiscerned || e.Verdict == experiment.Alike {
			continue
		}
		if len(facts) >= len(m.Basis)+effectsNamed {
			break
		}
		facts = append(facts, labelled{Label: label, Value: []string{
			fmt.Sprintf("%s, row %s: %s %s (%s)", e.Configuration, e.Row, MetricLabel(e.Metric), say.RelativeChange(e.Change, e.OfShare), e.Verdict),
		}})
		label = ""
	}
	if l := m.Of.Limiter; l != nil {
		facts = append(facts, labelled{
			Label: "Bottleneck", Value: []string{l.Configuration + ": " + l.Sentence},
		})
	}
	return facts
}

// sectionByID returns a section of the record, empty if there is none.
func (m DecisionModel) sectionByID(id string) DecisionSection {
	if i := slices.IndexFunc(m.Sections, func(s DecisionSection) bool { return s.ID == id }); i >= 0 {
		return m.Sections[i]
	}
	return DecisionSection{}
}

// writeBrief writes the decision on one screen.
func (m DecisionModel) writeBrief(p *printer) {
	p.writeFacts(m.briefFacts())
	configurations := m.sectionByID("configurations")
	if table, left := configurations.Brief.firstRows(mostRows); len(table.Rows) > 0 {
		p.line("")
		p.writeTable(table)
		legend := []string{"carries: req/s within the SLO"}
		if left > 0 {
			legend = append(legend, fmt.Sprintf("%d more: --full", left))
		}
		p.writePainted(dim, legend...)
	}
	var notes []note
	for _, id := range []string{"since", "trend", "hypotheses", "controls", configurations.ID, "launches"} {
		part := m.sectionByID(id)
		for i, l := range part.Lines {
			switch {
			case i == 0 && id == configurations.ID: // it explains columns
				continue
			case i == 0 && id == "since":
				l = part.Title + ": " + l
			}
			notes = append(notes, note{Text: l})
		}
	}
	p.writeNotes(notes, false, "")
	var next []labelled
	for i, l := range m.Of.Next {
		label := ""
		if i == 0 {
			label = "Next"
		}
		next = append(next, labelled{Label: label, Value: []string{l}})
	}
	p.writeFacts(next[:min(len(next), mostNotes)])
}

// WriteMarkdown writes the record.
func (m DecisionModel) WriteMarkdown(w io.Writer) error {
	p := &markdown{w: w}
	p.line("# " + escapeMarkdown(say.Sentence(m.Headline)))
	p.line("")
	for _, b := range m.Basis {
		p.writeItem(escapeMarkdown(b))
	}
	for _, part := range m.Sections {
		p.line("")
		p.line("## " + escapeMarkdown(part.Title))
		p.line("")
		if len(part.Table.Rows) > 0 {
			p.writeTable(part.Table)
			p.line("")
		}
		for _, l := range part.Lines {
			p.writeItem(escapeMarkdown(l))
		}
		if len(part.Commands) > 0 {
			p.line("```")
			for _, c := range part.Commands {
				p.line(inCode(c))
			}
			p.line("```")
		}
	}
	return p.err
}

// stoppedText is why an experiment is over, or what ended its last sitting.
func stoppedText(r *experiment.Record) string {
	text := ReasonText(r.Stopped)
	if r.Stopped.Code != result.ExperimentNotOver || len(r.Sittings) == 0 {
		return text
	}
	switch why := r.Sittings[len(r.Sittings)-1].Why; {
	case why.IsNone(), why.Code == result.SittingDone:
	case why.Code == result.SittingFailed && r.Launches.Done == 0: // the answer says why
		text += "; it failed"
	default:
		text += "; " + ReasonText(why)
	}
	return text
}
