package report

import (
	"fmt"

	"pitot/internal/data/result"
	"pitot/internal/say"
)

// damage says what is lost of a run's journal, a sentence for each stretch.
func damage(run *result.Run) (lines []string) {
	const most = 5
	for i := range run.Damage {
		if i == most {
			lines = append(lines, fmt.Sprintf("%d further parts of the journal are damaged, see run.json", len(run.Damage)-most))
			break
		}
		d := &run.Damage[i]
		if d.Exact && d.Requests+d.Chunks+d.Others == 0 {
			lines = append(lines, fmt.Sprintf("the journal is damaged, and nothing is lost: %s bytes that are none of its own stand in it", say.Count(d.Bytes)))
			continue
		}
		var held []string
		for _, k := range []struct {
			n    int64
			what string
		}{{d.Requests, "request"}, {d.Chunks, "chunk"}, {d.Others, "other record"}} {
			if k.n > 0 {
				held = append(held, say.Plural(int(k.n), k.what))
			}
		}
		bound := ""
		if !d.Exact {
			bound = "at most "
		}
		lines = append(lines, fmt.Sprintf("the journal is damaged: %s%s %s lost, %s", bound, say.List(held...), verb(d, len(held)), stretch(d, len(run.Points))))
	}
	if run.Unplanned > 0 {
		lines = append(lines, fmt.Sprintf("what was planned of %s is lost with the damaged part: they are in requests.parquet, and in no figure", say.Plural(run.Unplanned, "request")))
	}
	return lines
}

// damagedRecords is what the check of them found at a point.
func damagedRecords(c *result.Check) string {
	text := "no record lost"
	if number(c.Value) > 0 {
		text = say.Plural(int(*c.Value), "record") + " lost"
	}
	if c.Case == result.CaseAtMost {
		text = "at most " + text
	}
	if n := c.Detail["incomplete"]; n > 0 {
		text += fmt.Sprintf("; %s without all chunks", say.Plural(int(n), "request"))
	}
	return text
}

// verb agrees with what is lost.
func verb(d *result.Damage, kinds int) string {
	if kinds == 1 && d.Requests+d.Chunks+d.Others == 1 {
		return "is"
	}
	return "are"
}

// stretch says when it was, and in which of a run's points.
func stretch(d *result.Damage, points int) string {
	from, to := "the beginning", "the end"
	if d.FromS != nil {
		from = fmt.Sprintf("%.3f s", *d.FromS)
	}
	if d.ToS != nil {
		to = fmt.Sprintf("%.3f s", *d.ToS)
	}
	switch {
	case d.Point != d.LastPoint:
		return fmt.Sprintf("between %s of point %d and %s of point %d", from, d.Point+1, to, d.LastPoint+1)
	case points > 1:
		return fmt.Sprintf("between %s and %s of point %d", from, to, d.Point+1)
	}
	return fmt.Sprintf("between %s and %s", from, to)
}
