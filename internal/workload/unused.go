package workload

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"pitot/internal/workload/field"
)

// looker looks at what the records of a file of prompts have besides the prompt: when it came, and
// what changes it and is not used.
type looker struct {
	head  *Head
	table *table // of CSV
	unit  int64  // of times in JSON, 0 where that was not looked for
	known keys
}

// changesRequest reports whether a field changes what is asked, or when.
func changesRequest(f field.Field) bool {
	switch f {
	case field.Delay, field.System, field.Context, field.InputEither, field.Suffix, field.Sampling, field.Tools, field.Media, field.Adapter, field.Scheduling:
		return true
	}
	return false
}

// recordTime gives when a record came, in nanoseconds, noTime where it does not say so, and counts
// its fields that are not used.
func (l *looker) recordTime(f *format, raw []byte, r *record, unused map[string]int) int64 {
	switch {
	case l.table != nil:
		return l.atRow(f, raw, unused)
	case f.name == "text" || len(raw) == 0 || raw[0] != '{':
		return noTime
	}
	if l.known == nil {
		l.known = keys{}
		l.unit, _, _ = timeUnit(l.head)
	}
	due, best, stamped := int64(noTime), math.MaxInt, ""
	var left []string
	instructs := false
	_ = eachMember(raw, func(key, value []byte) {
		instructs = instructs || string(key) == "instruction"
		is := l.known.fieldOf(key)
		switch {
		case blankCell(string(value)):
		case is.Field == field.Time && is.Rank < best && f.name != "openai-batch" && !r.timed:
			best, stamped = is.Rank, string(key)
			due = noTime
			if at, ok := stampIn(strings.Trim(string(value), `"`), l.unit, is.Unit); ok {
				due = at
			}
		case changesRequest(is.Field) && !slices.Contains(f.takes, is.Field):
			if _, number := wholeNumber(value); is.Field == field.InputEither && (number || f.name == "log") {
				return
			}
			left = append(left, string(key))
		}
	})
	if r.timed {
		due = r.due
	} else if best == math.MaxInt && r.stamp != "" {
		unit := int64(1e6) // AIPerf's
		if strings.Contains(r.stamp, ".") {
			unit = 1e9
		}
		if at, ok := stampIn(r.stamp, unit, 0); ok {
			due = at
		}
	} else if best != math.MaxInt && due == noTime {
		unused[stamped]++
	}
	for _, key := range left {
		if f := field.ParseName(key).Field; instructs && (f == field.InputEither || f == field.Context) {
			continue
		}
		unused[key]++
	}
	return due
}

// atRow is that of a row of a table.
func (l *looker) atRow(f *format, raw []byte, unused map[string]int) int64 {
	t := l.table
	cells, ok := t.splitCells(bytes.TrimRight(raw, "\r\n"))
	if !ok {
		return noTime
	}
	instructs := t.hasColumn("instruction")
	for i, is := range t.is {
		if changesRequest(is.Field) && !slices.Contains(f.takes, is.Field) && !blankCell(cells[i]) && !(instructs && is.Field == field.Context) {
			unused[t.columns[i]]++
		}
	}
	at := t.columnIndex(field.Time)
	if at < 0 {
		return noTime
	}
	if due, ok := t.timeAt(cells, at); ok {
		return due
	}
	if !blankCell(cells[at]) {
		unused[t.columns[at]]++
	}
	return noTime
}
