package session

import (
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// Where a journal is damaged, its records are read on after the damage, and the points that it
// may be of are INVALID.

// damageOf returns a damaged stretch as run.json has it.
func damageOf(d *record.Damage) result.Damage {
	return result.Damage{ // that of probes stands before the first point
		Point: int(max(d.FirstPoint, 0)), LastPoint: int(max(d.LastPoint, 0)),
		Requests: d.Rows, Chunks: d.Chunks, Others: d.Samples + d.Marks, Exact: d.Exact,
	}
}

// isDamaged reports whether records of a point may be missing.
func (o *outline) isDamaged(point int32) bool {
	for i := range o.damage {
		if d := &o.damage[i]; point >= d.FirstPoint && point <= d.LastPoint && !d.IsNone() {
			return true
		}
	}
	return false
}
