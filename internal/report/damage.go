package report

import (
	"fmt"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// damageLines says what a run's journal lost, a sentence for each damaged stretch.
func damageLines(run *result.Run) (lines texts) {
	const most = 5
	for i := range run.Damage {
		if i == most {
			lines.addFormat("%d further parts of the journal are damaged, see run.json", len(run.Damage)-most)
			break
		}
		lines.addText("the journal is damaged: " + lostRecords(&run.Damage[i]))
	}
	if run.Unplanned > 0 {
		lines.addFormat("what was planned of %s is lost with the damaged part: they are in requests.parquet, and in no figure", say.Plural(run.Unplanned, "request"))
	}
	return lines
}

// lostRecords says what a damaged stretch held, and of which points.
func lostRecords(d *result.Damage) string {
	at := fmt.Sprintf("point %d", d.Point+1)
	if d.LastPoint > d.Point {
		at = fmt.Sprintf("points %d to %d", d.Point+1, d.LastPoint+1)
	}
	switch lost := d.Requests + d.Chunks + d.Others; {
	case !d.Exact:
		return "an unknown number of records of " + at + " is lost"
	case lost == 0:
		return "it holds bytes that are not its own, and no record is lost"
	case lost == 1:
		return "1 record of " + at + " is lost"
	}
	return fmt.Sprintf("%s requests, %s chunks and %s other records of %s are lost", say.Count(d.Requests), say.Count(d.Chunks), say.Count(d.Others), at)
}
