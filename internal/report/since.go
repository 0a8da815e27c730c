package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitot/internal/experiment"
	"pitot/internal/say"
)

// What changed since a record, and over many of them.

// dayOf is a date as people write it, of RFC 3339.
func dayOf(when string) string {
	if t, err := time.Parse(time.RFC3339, when); err == nil {
		return t.Format("2006-01-02 15:04")
	}
	return "an unknown date"
}

// allOf is the name of a line over all configurations.
func allOf(configuration string) string {
	if configuration == "" {
		return "all together"
	}
	return configuration
}

// sinceHeadline is the answer.
func sinceHeadline(s *experiment.Since) string {
	since := " since the record of " + dayOf(s.When)
	switch {
	case len(s.Lines) == 0:
		return "nothing is compared with the record of " + dayOf(s.When) + ": no row asks the same"
	case s.Worse > 0 && s.Better > 0:
		return fmt.Sprintf("%s got worse%s, %d better", say.Plural(s.Worse, "metric"), since, s.Better)
	case s.Worse > 0:
		return say.Plural(s.Worse, "metric") + " got worse" + since
	case s.Better > 0:
		return say.Plural(s.Better, "metric") + " got better" + since + ", none worse"
	}
	return "no change is established" + since + smallestText(s)
}

// smallestText says which change of what is carried would have been seen, by the line that
// shows the smallest.
func smallestText(s *experiment.Since) string {
	var best *experiment.SinceLine
	for i := range s.Lines {
		if l := &s.Lines[i]; l.Metric == "capacity" && l.Smallest != nil && (best == nil || *l.Smallest < *best.Smallest) {
			best = l
		}
	}
	if best == nil {
		return ""
	}
	return seenText(best)
}

func seenText(l *experiment.SinceLine) string {
	of, verb := "all together", "carry"
	if l.Configuration != "" {
		of, verb = l.Configuration, "carries"
	}
	if size := sizeText(*l.Smallest, l.OfShare); size != nothing {
		return fmt.Sprintf("; a change of %s in what %s %s would most likely have been seen", size, of, verb)
	}
	return "; too few launches to show any"
}

// nothing stands where no change that is likely to come would be established.
const nothing = "nothing"

// mostSize is the largest change of a ratio that is stated as one that would be seen: ten
// times as much, or a tenth.
const mostSize = 9

// sizeText is the least change that is established, down and up; x is the ratio up, less 1.
func sizeText(x float64, share bool) string {
	switch {
	case share && x >= 1, !share && x > mostSize:
		return nothing
	case share:
		return say.RelativeChange(-x, true) + " or " + say.RelativeChange(x, true)
	}
	return say.RelativeChange(-x/(1+x), false) + " or " + say.RelativeChange(x, false)
}

// sinceSection is that of a record that is held against an earlier one.
func sinceSection(r *experiment.Record) DecisionSection {
	s := DecisionSection{ID: "since", Title: "Since the last record"}
	if r.Since == nil {
		return s
	}
	return sinceOf(r.Since, r.Contract.Confidence)
}

func sinceOf(x *experiment.Since, confidence float64) DecisionSection {
	s := DecisionSection{ID: "since", Title: "Since the record of " + dayOf(x.When)}
	head := []string{"", "row", "metric", "was", "is", "change", say.Percent(confidence) + " interval", "would be seen", ""}
	s.Table.Head = head
	s.Brief.Head = append(slices.Clone(head[:7]), "")
	same := 0
	for _, l := range x.Lines {
		write := formatterOfShare(l.OfShare)
		ci := say.Unknown
		if l.Interval != nil {
			ci = changeSpan(*l.Interval, l.OfShare)
		}
		row := []string{allOf(l.Configuration), l.Row, l.Metric, write(l.Was), write(l.Now), say.RelativeChange(l.Change, l.OfShare), ci, say.Unknown, l.Verdict}
		if l.Smallest != nil {
			row[7] = sizeText(*l.Smallest, l.OfShare)
		}
		s.Table.AddRow(row...)
		row = append(slices.Clone(row[:7]), l.Verdict)
		switch l.Verdict {
		case experiment.Better, experiment.Worse:
			s.Brief.AddRow(row...)
		case experiment.Alike:
			same++
		}
	}
	s.Lines.addFormat("%d of %d differences established, by launches, corrected for their number; %d the same in every launch", x.Worse+x.Better, len(x.Lines), same)
	if x.Corrected > 0 {
		s.Lines.addText("would be seen: established in four of five such pairs of records, after the correction")
	}
	if x.Was != x.Now || x.Answers[0] != x.Answers[1] {
		s.Lines.addFormat("accepted: %s → %s", answerText(x.Answers[0], x.Was), answerText(x.Answers[1], x.Now))
	}
	if len(x.Changed) > 0 {
		s.Lines.addText("what differs around them: " + strings.Join(x.Changed, "; "))
	} else {
		s.Lines.addText("versions, settings and machines are the same, as far as they are known")
	}
	for _, l := range x.Left {
		s.Lines.addText("not compared: " + l)
	}
	return s
}

// answerText is an answer in a word or two.
func answerText(answer, accepted string) string {
	if answer == experiment.AnswerAccepted {
		return accepted
	}
	return answer
}

// BuildSince makes the model of two records alone.
func BuildSince(x *experiment.Since, confidence float64) DecisionModel {
	return DecisionModel{Word: x.Answers[1], Headline: sinceHeadline(x), Sections: []DecisionSection{sinceOf(x, confidence)}}
}

// trendSection is that of many records.
func trendSection(t *experiment.Trend) DecisionSection {
	s := DecisionSection{ID: "trend", Title: "The last records"}
	if t == nil {
		return s
	}
	s.Table.Head = []string{"begun", "record", "pitot", "accepted", "carries", "95 % interval", "what is new"}
	for _, r := range t.Records {
		s.Table.AddRow(dayOf(r.When), r.Record, r.Pitot, answerText(r.Answer, r.Accepted), say.Optional(r.Carries), intervalCell(r.Interval), strings.Join(r.Changed, "; "))
	}
	s.Brief = s.Table.withoutColumns(func(column int) bool { return column == 6 })
	for _, c := range t.Changes {
		write := formatterOfShare(c.OfShare)
		what := "nothing that is known"
		if len(c.Changed) > 0 {
			what = strings.Join(c.Changed, "; ")
		}
		s.Lines.addFormat("%s from %s on: %s of %s, %s: %s → %s, %s%s, over %d records before and %d since; new there: %s", c.Verdict, dayOf(c.When), c.Metric, c.Row, c.Configuration,
			write(c.Was), write(c.Now), say.RelativeChange(c.Change, c.OfShare), changeInterval(&c.Interval, c.OfShare), c.Records[0], c.Records[1], what)
	}
	switch {
	case t.Lines == 0:
		s.Lines.addText("points of change are looked for from four records of the same rows on")
	case len(t.Changes) == 0:
		s.Lines.addFormat("no point of change is established in %s", say.Plural(t.Lines, "line"))
	default:
		s.Lines.addFormat("the unit is the record; corrected for %s and for the records that each may change at", say.Plural(t.Lines, "line"))
	}
	return s
}

// BuildTrend makes the model of many records.
func BuildTrend(t *experiment.Trend) DecisionModel {
	m := DecisionModel{Sections: []DecisionSection{trendSection(t)}}
	switch {
	case t.Lines == 0:
		m.Headline = fmt.Sprintf("%s are too few for a trend", say.Plural(len(t.Records), "record"))
	case len(t.Changes) == 0:
		m.Headline = fmt.Sprintf("no change is established over %s", say.Plural(len(t.Records), "record"))
	default:
		m.Headline = fmt.Sprintf("%s over %s, the last on %s", say.Plural(len(t.Changes), "change"), say.Plural(len(t.Records), "record"), dayOf(t.Changes[len(t.Changes)-1].When))
	}
	return m
}
