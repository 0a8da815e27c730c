package export

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/parquet"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Tables for spreadsheets and data frames. What is not known is empty in CSV
// and null in Parquet.

// column is one of a table of requests or of sessions. A value is nil where it is not
// known, else of the type of kind: string, bool, int32, int64 or float64.
type column[T any] struct {
	name string
	kind any // a value of its type
	// always says that every request has a value.
	always bool
	about  string // what it is
	of     func(c *cohort, x *T) any
}

// table is one with a row for each T.
type table[T any] struct {
	columns []column[T]
	rows    func(run *result.Run, dir string, take func(*cohort, *T) error) error
}

// ofPoint are the columns that say which load a row is of.
func ofPoint[T any]() []column[T] {
	return []column[T]{
		{"point", int32(0), true, "index of the point", func(c *cohort, _ *T) any { return int32(c.index) }},
		{"rate", 0., false, "requests per second of the load, as set", func(c *cohort, _ *T) any {
			if r := c.point.Load.Rate; r != nil {
				return *r
			}
			return nil
		}},
		{"concurrency", int64(0), false, "users of the load", func(c *cohort, _ *T) any {
			if n := c.point.Load.Concurrency; n != nil {
				return int64(*n)
			}
			return nil
		}},
	}
}

// valueOrZero returns the value that is pointed to, 0 for nil.
func valueOrZero[T any](x *T) (value T) {
	if x != nil {
		value = *x
	}
	return value
}

// countOrNull is a count, which is below 0 where it is not known.
func countOrNull(n int32) any {
	if n < 0 {
		return nil
	}
	return int64(n)
}

// valueOrNull is a value, which is nothing where it is not known.
func valueOrNull[T comparable](x T) any {
	var none T
	if x == none {
		return nil
	}
	return x
}

// requestColumns are the facts of a request, and each of its metrics: in the unit of
// its name, by the definition that run.json follows, and only where the request
// has a definite value.
func requestColumns() []column[request] {
	inSession := func(x any, q *request) any {
		if q.session < 0 {
			return nil
		}
		return x
	}
	list := append(ofPoint[request](), []column[request]{
		{"id", int64(0), true, "of the request", func(_ *cohort, q *request) any { return q.id }},
		{"class", "", false, "", func(_ *cohort, q *request) any { return valueOrNull(q.class) }},
		{"in_window", false, true, "it was due in the window", func(c *cohort, q *request) any { return q.due >= c.t0 && q.due < c.t1 && !q.lostWithWorker() }},
		{"due_s", 0., true, "seconds since the load of the point began", func(_ *cohort, q *request) any { return float64(q.due) / 1e9 }},
		{"outcome", "", true, "ok, failed, cut or unsent", func(_ *cohort, q *request) any { return q.outcome.String() }},
		{"error", "", false, "class of the error", func(_ *cohort, q *request) any { return valueOrNull(q.errorClass) }},
		{"status", int64(0), false, "HTTP status", func(_ *cohort, q *request) any { return countOrNull(q.status) }},
		{"finish", "", false, "finish_reason", func(_ *cohort, q *request) any { return valueOrNull(q.finish) }},
		{"stream", false, true, "streaming was requested; others have no TTFT, TTFA and TPOT", func(_ *cohort, q *request) any { return q.stream }},
		{"input_tokens", int64(0), false, "by the server's count", func(_ *cohort, q *request) any { return countOrNull(q.input) }},
		{"cached_tokens", int64(0), false, "", func(_ *cohort, q *request) any { return countOrNull(q.cached) }},
		{"output_tokens", int64(0), false, "by the server's count, else by the events'", func(_ *cohort, q *request) any { return countOrNull(q.measured.OutputTokens()) }},
		{"chunks", int64(0), true, "events that carried tokens", func(_ *cohort, q *request) any { return int64(q.events) }},
		{"session", int64(0), false, "session of the request, if requests follow one another", func(_ *cohort, q *request) any { return inSession(q.session, q) }},
		{"turn", int64(0), false, "in its session, from 1", func(_ *cohort, q *request) any { return inSession(int64(q.turn)+1, q) }},
		{"history_tokens", int64(0), false, "tokens of the prompt that were sent or received before in its session", func(_ *cohort, q *request) any { return inSession(countOrNull(q.history), q) }},
	}...)
	for _, d := range metrics.Definitions() {
		taken := slices.ContainsFunc(list, func(c column[request]) bool { return c.name == d.ColumnName() })
		if d.Request == nil || taken {
			continue
		}
		list = append(list, column[request]{d.ColumnName(), 0., false, d.Help, func(_ *cohort, q *request) any {
			if x, ok := d.Value(&q.measured); ok {
				return x
			}
			return nil
		}})
	}
	return list
}

// eachRequest hands every request of a run to take, those outside the window too. Where the
// records are damaged it hands over what is whole, and the error is a [partly].
func eachRequest(run *result.Run, dir string, take func(*cohort, *request) error) error {
	n, err, taken := linesOf(&gathering{everything: true}, run, dir, take)
	var aside *asideError
	switch {
	case taken != nil:
		return taken
	case errors.As(err, &aside): // the records are whole, the table is not
		return err
	case err == nil && n == 0:
		return errNothing
	case err == nil:
		return nil
	case n > 0:
		return partly{say.Errorf("the file holds the %s before the damage of the records: %v", say.Plural(n, "request"), err).WithHint("a copy of the run that is whole has the rest")}
	}
	n, without, taken := linesOf(&gathering{everything: true, rowsAlone: true}, run, dir, take)
	switch {
	case taken != nil:
		return taken
	case without != nil || n == 0:
		return err
	}
	why := err.Error()
	if errors.Is(err, errNoRecords) {
		why = "chunks.parquet is not in the run's directory"
	}
	return partly{say.Errorf("the file is made from requests.parquet alone: %s", why).WithHint("tpot_ms takes the first event for one token there, unless its request's row has the count; stall_ms and the other columns from chunks are empty")}
}

// linesOf does it of what can be gathered, and counts them. The first error is of the
// records, the second that of take.
func linesOf(g *gathering, run *result.Run, dir string, take func(*cohort, *request) error) (n int, damage, taken error) {
	for c, err := range g.readPoints(run, dir) {
		if err != nil {
			return n, err, nil
		}
		for q := range c.inOrderSent {
			if err := take(c, q); err != nil {
				return n, nil, err
			}
			n++
		}
	}
	return n, nil, nil
}

// parquetColumns are columns in Parquet, in their order.
func parquetColumns[T any](list []column[T]) []parquet.Column {
	var out []parquet.Column
	for _, c := range list {
		kind := parquet.Text
		switch c.kind.(type) {
		case bool:
			kind = parquet.Bool
		case int32:
			kind = parquet.Int
		case int64:
			kind = parquet.Long
		case float64:
			kind = parquet.Double
		}
		out = append(out, parquet.Column{Name: c.name, Kind: kind, Optional: !c.always})
	}
	return out
}

func writeParquet(w io.Writer, run *result.Run, dir string) error {
	return table[request]{requestColumns(), eachRequest}.parquet(w, run, dir)
}

func writeCSVRequests(w io.Writer, run *result.Run, dir string) error {
	return table[request]{requestColumns(), eachRequest}.csv(w, run, dir)
}

func (t table[T]) parquet(w io.Writer, run *result.Run, dir string) error {
	const group, page = 1 << 16, 1 << 18 // rows that are in memory before they are written, bytes of a column
	list := t.columns
	p, err := parquet.NewWriter(w, "requests", "pitot version 1", parquetColumns(list), page)
	if err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	rows := 0
	err = t.rows(run, dir, func(c *cohort, one *T) error {
		for i := range list {
			to := p.Column(i)
			switch x := list[i].of(c, one).(type) {
			case bool:
				to.Bool(x)
			case int32:
				to.Int(x)
			case int64:
				to.Long(x)
			case float64:
				to.Double(x)
			case string:
				to.Text([]byte(strings.ToValidUTF8(x, "\uFFFD")))
			default:
				to.Null()
			}
		}
		if rows++; rows%group == 0 {
			return p.Flush()
		}
		return nil
	})
	if totalFailure(err) != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	return err
}

func (t table[T]) csv(w io.Writer, run *result.Run, dir string) error {
	out := newCSV(w)
	list := t.columns
	cells := make([]string, len(list))
	for i := range list {
		cells[i] = list[i].name
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	err := t.rows(run, dir, func(c *cohort, one *T) error {
		for i := range list {
			switch x := list[i].of(c, one).(type) {
			case nil:
				cells[i] = ""
			case bool:
				cells[i] = strconv.FormatBool(x)
			case int32:
				cells[i] = strconv.Itoa(int(x))
			case int64:
				cells[i] = strconv.FormatInt(x, 10)
			case float64:
				cells[i] = cellOf(&x)
			case string:
				cells[i] = x
			}
		}
		return out.Write(cells)
	})
	if totalFailure(err) != nil {
		return err
	}
	out.Flush()
	if lost := out.Error(); lost != nil {
		return lost
	}
	return err
}

// cellOf writes a value that may not be known.
func cellOf[T float64 | int64 | int | string](x *T) string {
	if x == nil {
		return ""
	}
	switch v := any(*x).(type) {
	case float64:
		return say.Exact(v)
	case string:
		return v
	}
	return fmt.Sprint(*x)
}

// csvWriter writes CSV. Every cell goes through it, so no spreadsheet takes what a server wrote
// for a formula, and no terminal for a command.
type csvWriter struct{ *csv.Writer }

func newCSV(w io.Writer) csvWriter { return csvWriter{csv.NewWriter(w)} }

// Write writes a line.
func (w csvWriter) Write(cells []string) error {
	plain := make([]string, len(cells))
	for i, s := range cells {
		plain[i] = withoutControls(s)
		if _, err := strconv.ParseFloat(s, 64); err != nil && s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
			plain[i] = "'" + plain[i]
		}
	}
	return w.Writer.Write(plain)
}

// withoutControls replaces the characters of a text that control a terminal or the direction
// of text, apart from line breaks and tabs.
func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// CSV writes a line for each point of a run: its load and what run.json has of
// it, at full precision, under run.json's names. What is not known is empty.
func CSV(w io.Writer, run *result.Run) error {
	out := newCSV(w)
	head := []string{"model", "point", "stage", "loop", "rate", "concurrency", "max_in_flight", "window_s", "due", "ok", "failed", "cut", "unsent",
		"due_per_s", "requests_per_s", "input_tokens_per_s", "output_tokens_per_s", "goodput_requests_per_s", "goodput_output_tokens_per_s",
		"slo_attained", "slo_met", "stability", "outcome", "verdict"}
	metrics := run.Metrics().WithPercentiles()
	figures := []string{metric.Mean}
	for _, p := range metric.Percentiles() {
		figures = append(figures, p.Key)
	}
	figures = append(figures, "max")
	for _, m := range metrics {
		head = append(head, m.ColumnName()+"_n")
		for _, figure := range figures {
			head = append(head, m.ColumnName()+"_"+figure)
		}
	}
	further := run.FurtherMetrics()
	for _, m := range further {
		head = append(head, m.ColumnName())
	}
	mixed := ofClasses(run)
	if mixed {
		head = append(head, "class")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range run.Points {
		p := &run.Points[i]
		line := func(
			r *result.Requests, rates []*float64, attained *float64, met result.Met, judged []string, of *result.Metrics,
		) []string {
			cells := []string{
				run.Target.Model, strconv.Itoa(i), p.Stage, p.Load.Loop,
				cellOf(p.Load.Rate), cellOf(p.Load.Concurrency), cellOf(p.Load.MaxInFlight), cellOf(&p.Seconds.Window),
			}
			for _, n := range []int{r.Due, r.OK, r.Failed, r.Cut, r.Unsent} {
				cells = append(cells, strconv.Itoa(n))
			}
			for _, x := range rates {
				cells = append(cells, cellOf(x))
			}
			cells = append(append(cells, cellOf(attained), string(met)), judged...)
			for _, m := range metrics {
				s, n := of.SummaryOf(m.Name), ""
				if s != nil {
					n = cellOf(&s.N)
				}
				cells = append(cells, n)
				for _, figure := range figures {
					cells = append(cells, cellOf(s.Value(figure)))
				}
			}
			return cells
		}
		t, slo := &p.Throughput, valueOrZero(p.SLO)
		rates := []*float64{t.DuePerS, t.RequestsPerS, t.InputTokensPerS, t.OutputTokensPerS, nil, nil}
		if g := p.Goodput; g != nil {
			rates[4], rates[5] = &g.RequestsPerS, g.OutputTokensPerS
		}
		judged := []string{string(p.Stability), string(p.Outcome), string(p.Verdict)}
		cells := line(&p.Requests, rates, slo.Attained, slo.Met, judged, &p.Metrics)
		for _, m := range further {
			x, _, _ := p.MetricValue(m)
			cells = append(cells, cellOf(x))
		}
		if !mixed {
			if err := out.Write(cells); err != nil {
				return err
			}
			continue
		}
		if err := out.Write(append(cells, "")); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
			c := p.Classes[name]
			slo := valueOrZero(c.SLO)
			cells := line(&c.Requests, make([]*float64, len(rates)), slo.Attained, slo.Met, make([]string, len(judged)), &c.Metrics)
			if err := out.Write(append(append(cells, make([]string, len(further))...), name)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// ofClasses says that a run's requests are of classes that it was told of: then each has a
// row of its own behind that of its point.
func ofClasses(run *result.Run) bool {
	var w struct{ Kind string }
	return json.Unmarshal(run.Workload, &w) == nil && w.Kind == "mix"
}

func writeCSV(w io.Writer, run *result.Run, _ string) error { return CSV(w, run) }
