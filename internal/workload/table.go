package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/field"
)

// table describes how to read a file of rows with a header: CSV, with any separator.
type table struct {
	separator byte
	begin     int64    // of the first row, in the text
	columns   []string // as the header has them
	is        []field.Is
	above     int  // records above the header that are neither blank nor comments
	commas    bool // decimals may have a comma
	text      bool // it holds prompts
}

// separators lists the characters that may separate cells, the usual one first.
var separators = []byte{',', ';', '\t', '|'}

const (
	// mostAbove is in how many records a header is looked for.
	mostAbove = 10
	// sampledRows are looked at to tell what a column holds.
	sampledRows = 20
	// longestName is the longest name of a column, where only its contents say that a file is a
	// table.
	longestName = 64
)

// namesTable reports whether a file is to hold a table, by the end of its name.
func namesTable(path string) bool {
	path = strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		path = strings.TrimSuffix(path, packed)
	}
	return slices.Contains([]string{".csv", ".tsv", ".tab", ".psv"}, filepath.Ext(path))
}

// tableOf finds the header in how a text begins. It gives nil where there is none; where the name
// of the file says that it is a table, that is an error.
func tableOf(name string, head []byte) (*table, error) {
	named := namesTable(name)
	rest, at := head, int64(0)
	var forced byte // by the line sep=; that Excel writes and reads
	seen := 0
	var first []byte
	for seen < mostAbove && len(rest) > 0 {
		record, size := recordOf(rest, cmp.Or(forced, ','))
		next := at + int64(size)
		line := bytes.TrimSpace(record)
		switch {
		case len(line) == 0:
		case seen == 0 && len(line) == 5 && bytes.EqualFold(line[:4], []byte("sep=")):
			forced = line[4]
		case seen == 0 && bytes.EqualFold(bytes.TrimSpace(record), []byte("sep=")): // of a tab, which is gone
			forced = '\t'
		default:
			if line[0] == '#' { // a comment, or a header behind a sign
				if t := headerOf(bytes.TrimLeft(line, "# "), forced, 2); t != nil {
					return t.inferColumns(head, next, seen, named)
				}
				break
			}
			least := 1
			if seen > 0 {
				least = 2
			}
			if t := headerOf(record, forced, least); t != nil && (named || seen == 0 && t.isPlausibleHeader()) {
				return t.inferColumns(head, next, seen, named)
			}
			if first == nil {
				first = line
			}
			if seen++; !named {
				return nil, nil
			}
		}
		rest, at = rest[size:], next
	}
	if !named {
		return nil, nil
	}
	return nil, noHeader(first, forced)
}

// noHeader says of a table what is wrong with how it begins.
func noHeader(first []byte, forced byte) error {
	if first == nil {
		return say.Errorf("it is empty")
	}
	cells := cellsOf(first, separatorOf(first, forced))
	numbers := 0
	for _, c := range cells {
		if isDecimal(c, true) || isDate(c) {
			numbers++
		}
	}
	if numbers == len(cells) {
		return say.Errorf("it has no header: its first line is %.80q", first).WithHint("begin it with names of its columns, as timestamp,input_tokens,output_tokens")
	}
	return say.Errorf("no column of its header is known: %.200s", strings.Join(cells, ", ")).WithHint(field.Wanted)
}

// separatorOf is the separator that a record has most of.
func separatorOf(record []byte, forced byte) byte {
	if forced != 0 {
		return forced
	}
	best, most := separators[0], 0
	for _, s := range separators {
		if n := bytes.Count(record, []byte{s}); n > most {
			best, most = s, n
		}
	}
	return best
}

// headerOf reads a record as a header of which so many names at least are known, nil where it is
// none.
func headerOf(record []byte, forced byte, least int) (best *table) {
	record = bytes.TrimRight(record, "\r\n")
	most := 0
	list := separators
	if forced != 0 {
		list = []byte{forced}
	}
	for _, s := range list {
		t := &table{separator: s, commas: s != ','}
		known := 0
		for _, name := range cellsOf(record, s) {
			name = strings.TrimSpace(name)
			is := field.ParseName(name)
			t.columns, t.is = append(t.columns, name), append(t.is, is)
			if holdsRequests(is.Field) {
				known++
			}
		}
		if known >= least && (known > most || known == most && best != nil && len(t.columns) > len(best.columns)) {
			best, most = t, known
		}
	}
	return best
}

// holdsRequests reports whether a column of this field makes a table one of requests.
func holdsRequests(f field.Field) bool {
	switch f {
	case field.Time, field.Input, field.Output, field.InputEither, field.OutputEither, field.Usage, field.Prompt, field.Messages, field.Request:
		return true
	}
	return false
}

// isPlausibleHeader reports whether a header is one in a file whose name does not say so, and not a
// sentence of a text: it has several columns with short names, and a name that is not a common word
// alone.
func (t *table) isPlausibleHeader() bool {
	if len(t.columns) < 2 {
		return false
	}
	for _, c := range t.columns {
		if len(c) > longestName || len(strings.Fields(c)) > 4 {
			return false
		}
	}
	return true
}

// inferColumns finds out what the columns hold, from the rows behind the header.
func (t *table) inferColumns(head []byte, begin int64, above int, named bool) (*table, error) {
	t.begin, t.above = begin, above
	if len(t.columns) > 1 && t.columns[len(t.columns)-1] == "" { // a separator behind the last name
		t.columns, t.is = t.columns[:len(t.columns)-1], t.is[:len(t.is)-1]
	}
	var rows [][]string
	others := 0
	for rest := head[min(begin, int64(len(head))):]; len(rest) > 0 && len(rows) < sampledRows; {
		record, size := recordOf(rest, t.separator)
		if size == len(rest) && record == nil { // the head cut it
			break
		}
		rest = rest[size:]
		if len(bytes.TrimSpace(record)) == 0 {
			continue
		}
		if cells, ok := t.splitCells(record); ok {
			rows = append(rows, cells)
		} else {
			others++
		}
	}
	if !named && others > len(rows) { // a text
		return nil, nil
	}
	t.resolveColumns(rows)
	if err := t.checkDuplicates(); err != nil {
		return nil, err
	}
	if t.hasField(field.Unclear) && !t.hasField(field.Input) && !t.text {
		var unclear []string
		for i, is := range t.is {
			if is.Field == field.Unclear {
				unclear = append(unclear, t.columns[i])
			}
		}
		if named {
			return nil, say.Errorf("no column of its header says how many tokens prompts have: %.200s", strings.Join(t.columns, ", ")).
				WithHint(strings.Join(unclear, " and ") + " may count characters: name them input_tokens and output_tokens where they count tokens; " + field.Wanted)
		}
		return nil, nil
	}
	if !named && t.onlyTimes() && !t.startsWithTime(rows) {
		return nil, nil
	}
	return t, nil
}

// resolveColumns decides what the columns hold whose name may stand for two things, and whether
// there are prompts.
func (t *table) resolveColumns(rows [][]string) {
	var empty []int // columns of prompts that have none, as far as they are seen
	for i := range t.is {
		numbers, texts := 0, 0
		for _, row := range rows {
			if isDecimal(row[i], t.commas) {
				numbers++
			} else if !blankCell(row[i]) {
				texts++
			}
		}
		switch is := &t.is[i]; is.Field {
		case field.InputEither:
			switch {
			case texts == 0 && numbers == 0 && len(rows) > 0: // nothing is in it
				is.Field = field.None
			case texts == 0:
				is.Field = field.Input
			case t.hasColumn("instruction"):
				is.Field = field.Context
			default:
				is.Field = field.Request
			}
			is.Rank = 1000
		case field.OutputEither:
			if is.Field = field.Output; texts > 0 || numbers == 0 && len(rows) > 0 {
				is.Field = field.None // the answer
			}
			is.Rank = 1000
		case field.Prompt, field.Messages, field.Request:
			if texts == 0 && numbers == 0 && len(rows) > 0 {
				empty = append(empty, i)
			}
		}
	}
	if t.hasField(field.Input) || t.hasField(field.Output) || t.hasField(field.Usage) {
		for _, i := range empty {
			t.is[i].Field = field.None // as LiteLLM has them where prompts are not kept
		}
	}
	t.text = t.hasField(field.Prompt) || t.hasField(field.Messages) || t.hasField(field.Request)
}

// checkDuplicates is an error where two columns have the name under which a field is read: which of
// them holds is not known.
func (t *table) checkDuplicates() error {
	for f := field.Time; f < field.Unclear; f++ {
		first := t.columnIndex(f)
		used := !changesRequest(f) && f != field.End && f != field.First || f == field.System && t.text
		if first < 0 || !used {
			continue
		}
		for i := first + 1; i < len(t.is); i++ {
			if t.is[i].Field == f && field.NormalizeName(t.columns[i]) == field.NormalizeName(t.columns[first]) {
				return say.Errorf("columns %d and %d of its header have the same name: %.80q and %.80q", first+1, i+1, t.columns[first], t.columns[i]).
					WithHint("rename or remove the one that is not meant")
			}
		}
	}
	return nil
}

// blankCell reports whether a cell holds nothing.
func blankCell(cell string) bool {
	switch strings.TrimSpace(cell) {
	case "", "{}", "[]", "null", "NULL", `""`, `"{}"`, "None", "nan", "NaN":
		return true
	}
	return false
}

func (t *table) hasField(f field.Field) bool { return t.columnIndex(f) >= 0 }

// hasColumn reports whether there is a column with a name that is normally this.
func (t *table) hasColumn(normal string) bool {
	return slices.ContainsFunc(t.columns, func(name string) bool { return field.NormalizeName(name) == normal })
}

// columnIndex is which column holds a field by its surest name, -1 for none.
func (t *table) columnIndex(f field.Field) int {
	best := -1
	for i, is := range t.is {
		if is.Field == f && (best < 0 || is.Rank < t.is[best].Rank) {
			best = i
		}
	}
	return best
}

// onlyTimes reports whether nothing but times is known of the rows.
func (t *table) onlyTimes() bool {
	return !t.text && !t.hasField(field.Input) && !t.hasField(field.Output) && !t.hasField(field.Usage)
}

// startsWithTime reports whether the first row has a time where the header says so.
func (t *table) startsWithTime(rows [][]string) bool {
	at := t.columnIndex(field.Time)
	if at < 0 || len(rows) == 0 {
		return false
	}
	return isDecimal(rows[0][at], t.commas) || isDate(rows[0][at])
}

// splitCells are those of a row, as many as there are columns; ok is false where it has another
// number, or its quotes are broken. Empty ones behind the last column are none.
func (t *table) splitCells(record []byte) (cells []string, ok bool) {
	cells, ok = splitCells(bytes.TrimRight(record, "\r\n"), t.separator)
	for len(cells) > len(t.columns) && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	return cells, ok && len(cells) == len(t.columns)
}

// isComment reports whether a record is a comment, and no row.
func (t *table) isComment(record []byte) bool {
	record = bytes.TrimSpace(record)
	if len(record) == 0 || record[0] != '#' {
		return false
	}
	_, row := t.splitCells(record)
	return !row
}

// rejectReason says why a record is no row.
func (t *table) rejectReason(record []byte) string {
	cells, ok := splitCells(bytes.TrimRight(record, "\r\n"), t.separator)
	if !ok {
		return "broken quotes"
	}
	return fmt.Sprintf("want %d columns as in the header, found %d", len(t.columns), len(cells))
}

// recordOf gives the record that a text begins with, its line end included in size. It is nil where
// the text ends inside it: a quoted cell may have lines of its own.
func recordOf(text []byte, separator byte) (record []byte, size int) {
	end := bytes.IndexByte(text, '\n')
	line := text
	if end >= 0 {
		line = text[:end]
	}
	if bytes.IndexByte(line, '"') < 0 {
		if end < 0 {
			return text, len(text)
		}
		return line, end + 1
	}
	begins := true // a cell
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && begins:
			for i++; ; i++ {
				k := bytes.IndexByte(text[i:], '"')
				if k < 0 {
					return nil, len(text)
				}
				if i += k; i+1 >= len(text) || text[i+1] != '"' {
					break
				}
				i++
			}
			begins = false
		case c == '\n':
			return text[:i], i + 1
		default:
			begins = c == separator || begins && c == ' '
		}
	}
	return text, len(text)
}

// splitRecords gives a [bufio.SplitFunc] of the rows of a table. Behind a quote that does not end
// each line is a row.
func (t *table) splitRecords() func(data []byte, atEOF bool) (int, []byte, error) {
	broken := false
	return func(data []byte, atEOF bool) (int, []byte, error) {
		if broken || len(data) == 0 {
			return bufio.ScanLines(data, atEOF)
		}
		record, size := recordOf(data, t.separator)
		switch {
		case record == nil && atEOF:
			broken = true
			return bufio.ScanLines(data, atEOF)
		case record == nil, size == len(data) && !atEOF && data[size-1] != '\n':
			return 0, nil, nil
		}
		return size, bytes.TrimSuffix(record, []byte("\r")), nil
	}
}

// cellsOf are the cells of a record, whatever its quotes.
func cellsOf(record []byte, separator byte) []string {
	cells, _ := splitCells(bytes.TrimRight(record, "\r\n"), separator)
	return cells
}

// splitCells splits a record. A cell that begins with a quote ends with one; in others a quote is
// one.
func splitCells(record []byte, separator byte) (cells []string, ok bool) {
	for more := true; more; {
		var cell, rest []byte
		quoted := bytes.TrimLeft(record, " ")
		if len(quoted) == 0 || quoted[0] != '"' {
			cell, record, more = bytes.Cut(record, []byte{separator})
			cells = append(cells, string(cell))
			continue
		}
		for record = quoted[1:]; ; {
			part, behind, closed := bytes.Cut(record, []byte{'"'})
			if cell = append(cell, part...); !closed {
				return append(cells, string(cell)), false
			}
			if record = behind; len(record) == 0 || record[0] != '"' {
				break
			}
			cell, record = append(cell, '"'), record[1:]
		}
		rest, record, more = bytes.Cut(record, []byte{separator})
		cells = append(cells, string(cell)+string(bytes.TrimRight(rest, " ")))
	}
	return cells, true
}

// isDecimal reports whether a cell is a number; with commas it may have one for its point.
func isDecimal(cell string, commas bool) bool {
	return isNumber(commaToPoint(strings.TrimSpace(cell), commas))
}

// commaToPoint gives a number with a point for its comma, where commas are allowed and it has one.
func commaToPoint(cell string, commas bool) string {
	if commas && strings.IndexByte(cell, '.') < 0 && strings.Count(cell, ",") == 1 {
		return strings.Replace(cell, ",", ".", 1)
	}
	return cell
}

// unquoteCell is a cell without the quotes of a JSON string, in which some exports write all texts.
func unquoteCell(cell string) string {
	cell = strings.TrimSpace(cell)
	if len(cell) > 1 && cell[0] == '"' && cell[len(cell)-1] == '"' {
		var s string
		if json.Unmarshal([]byte(cell), &s) == nil {
			return s
		}
	}
	return cell
}
