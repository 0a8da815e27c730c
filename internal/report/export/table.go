package export

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/say"
)

// Tables for spreadsheets and data frames. What is not known is empty in CSV
// and null in Parquet.

// Line is one request. Latencies are Pitot's own, by [measure.Latency], in
// milliseconds, and only where the request has a definite value.
type Line struct {
	Point        int32    `parquet:"point"`
	Rate         *float64 `parquet:"rate,optional"`        // of the point, asked
	Concurrency  *int64   `parquet:"concurrency,optional"` // of the point
	ID           int64    `parquet:"id"`
	Class        *string  `parquet:"class,optional"`
	InWindow     bool     `parquet:"in_window"` // it is of the cohort that is measured
	DueS         float64  `parquet:"due_s"`     // seconds since the load of its point began
	Outcome      string   `parquet:"outcome"`   // ok, failed, cut or unsent
	Error        *string  `parquet:"error,optional"`
	Status       *int64   `parquet:"status,optional"`
	Finish       *string  `parquet:"finish,optional"`
	Stream       bool     `parquet:"stream"` // it was asked to stream: others have no TTFT, TTFA and TPOT
	InputTokens  *int64   `parquet:"input_tokens,optional"`
	CachedTokens *int64   `parquet:"cached_tokens,optional"`
	OutputTokens *int64   `parquet:"output_tokens,optional"`
	Chunks       int64    `parquet:"chunks"`
	HeldMS       *float64 `parquet:"held_ms,optional"`
	ConnectMS    *float64 `parquet:"connect_ms,optional"`
	LagMS        *float64 `parquet:"lag_ms,optional"`
	TTFT         *float64 `parquet:"ttft_ms,optional"`
	TTFA         *float64 `parquet:"ttfa_ms,optional"`
	TPOT         *float64 `parquet:"tpot_ms,optional"`
	TPOTn1       *float64 `parquet:"tpot_n1_ms,optional"` // (last token − first token) / (visible tokens − 1)
	E2E          *float64 `parquet:"e2e_ms,optional"`
	ServiceTTFT  *float64 `parquet:"service_ttft_ms,optional"`
	ServiceE2E   *float64 `parquet:"service_e2e_ms,optional"`
}

// latenciesOf gives the latencies of a request; the rest stays empty.
func latenciesOf(q *request) (l Line) {
	span := func(from, to int64) *float64 {
		if from < 0 || to < 0 {
			return nil
		}
		x := float64(to-from) / 1e6
		return &x
	}
	known := func(ns float64, is measure.State) *float64 {
		if is != measure.Known {
			return nil
		}
		x := ns / 1e6
		return &x
	}
	const until = 0 // only tells how long those were followed that have no value
	of := &q.latency
	l.HeldMS, l.ConnectMS, l.LagMS = span(q.due, q.eligible), span(q.eligible, q.ready), span(q.ready, q.sent)
	l.TTFT, l.ServiceTTFT = known(of.TTFT(measure.Response, until)), known(of.TTFT(measure.Service, until))
	l.TTFA, l.TPOT, l.TPOTn1 = known(of.TTFA(measure.Response, until)), known(of.TPOT(until)), known(of.TPOTn1(until))
	l.E2E, l.ServiceE2E = known(of.E2E(measure.Response, until)), known(of.E2E(measure.Service, until))
	return l
}

func lineOf(c *cohort, q *request) Line {
	l := latenciesOf(q)
	known := func(n int32) *int64 {
		if n < 0 {
			return nil
		}
		x := int64(n)
		return &x
	}
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	l.Point, l.Rate = int32(c.index), c.point.Load.Rate
	if n := c.point.Load.Concurrency; n != nil {
		l.Concurrency = known(int32(*n))
	}
	l.ID, l.Class, l.InWindow, l.DueS = q.id, text(q.class), q.due >= c.t0 && q.due < c.t1, float64(q.due)/1e9
	l.Outcome, l.Error, l.Status, l.Finish = q.outcome.String(), text(q.errorClass), known(q.status), text(q.finish)
	l.InputTokens, l.CachedTokens, l.OutputTokens = known(q.input), known(q.cached), known(q.latency.OutputTokens())
	l.Stream, l.Chunks = q.stream, int64(q.events)
	return l
}

// lines hands every request of a run to take, those outside the window too. Where the
// records are damaged it hands over what is whole, and the error is a [partly].
func lines(run *result.Run, dir string, take func(*Line) error) error {
	n, err, taken := linesOf(&gathering{everything: true}, run, dir, take)
	switch {
	case taken != nil:
		return taken
	case err == nil && n == 0:
		return errNothing
	case err == nil:
		return nil
	case n > 0:
		return partly{say.Errorf("the file holds the %d requests before the damage of the records: %v", n, err).WithHint("a copy of the run that is whole has the rest")}
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
	return partly{say.Errorf("the file is made from requests.parquet alone: %s", why).WithHint("tpot_ms takes the first event for one token there, unless its request's row tells")}
}

// linesOf does it of what can be gathered, and counts them. The first error is of the
// records, the second that of take.
func linesOf(g *gathering, run *result.Run, dir string, take func(*Line) error) (n int, damage, taken error) {
	for c, err := range g.points(run, dir) {
		if err != nil {
			return n, err, nil
		}
		for i := range c.requests {
			l := lineOf(c, &c.requests[i])
			if err := take(&l); err != nil {
				return n, nil, err
			}
			n++
		}
	}
	return n, nil, nil
}

func writeParquet(w io.Writer, run *result.Run, dir string) error {
	const group = 1 << 16 // rows that are in memory before they are written
	p := parquet.NewGenericWriter[Line](w, parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}), parquet.CreatedBy("pitot", "1", ""), parquet.MaxRowsPerRowGroup(group))
	one := make([]Line, 1)
	err := lines(run, dir, func(l *Line) error {
		one[0] = *l
		_, err := p.Write(one)
		return err
	})
	if whole(err) != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	return err
}

func writeCSVRequests(w io.Writer, run *result.Run, dir string) error {
	out := csv.NewWriter(w)
	var head []string
	for _, f := range parquet.SchemaOf(Line{}).Fields() {
		head = append(head, f.Name())
	}
	if err := out.Write(head); err != nil {
		return err
	}
	err := lines(run, dir, func(l *Line) error {
		return out.Write([]string{
			strconv.Itoa(int(l.Point)), cellOf(l.Rate), cellOf(l.Concurrency), strconv.FormatInt(l.ID, 10), cellOf(l.Class),
			strconv.FormatBool(l.InWindow), cellOf(&l.DueS), l.Outcome, cellOf(l.Error), cellOf(l.Status), cellOf(l.Finish), strconv.FormatBool(l.Stream),
			cellOf(l.InputTokens), cellOf(l.CachedTokens), cellOf(l.OutputTokens), cellOf(&l.Chunks),
			cellOf(l.HeldMS), cellOf(l.ConnectMS), cellOf(l.LagMS), cellOf(l.TTFT), cellOf(l.TTFA), cellOf(l.TPOT), cellOf(l.TPOTn1), cellOf(l.E2E),
			cellOf(l.ServiceTTFT), cellOf(l.ServiceE2E),
		})
	})
	if whole(err) != nil {
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
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return plainCell(v)
	}
	return fmt.Sprint(*x)
}

// plainCell keeps a spreadsheet from taking what a server said for a formula.
func plainCell(s string) string {
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

// CSV writes a line for each point of a run: its load and what run.json has of
// it, at full precision, under run.json's names. What is not known is empty.
func CSV(w io.Writer, run *result.Run) error {
	out := csv.NewWriter(w)
	head := []string{"model", "point", "stage", "loop", "rate", "concurrency", "max_in_flight", "window_s", "due", "ok", "failed", "cut", "unsent",
		"due_per_s", "requests_per_s", "input_tokens_per_s", "output_tokens_per_s", "goodput_requests_per_s", "goodput_output_tokens_per_s",
		"slo_attained", "slo_met", "stability", "outcome", "verdict"}
	metrics := run.Metrics().Distributions()
	figures := []string{metric.Mean}
	for _, p := range metric.Percentiles() {
		figures = append(figures, p.Key)
	}
	figures = append(figures, "max")
	for _, m := range metrics {
		head = append(head, m.Column()+"_n")
		for _, figure := range figures {
			head = append(head, m.Column()+"_"+figure)
		}
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range run.Points {
		p := &run.Points[i]
		line := []string{plainCell(run.Target.Model), strconv.Itoa(i), p.Stage, p.Load.Loop, cellOf(p.Load.Rate), cellOf(p.Load.Concurrency), cellOf(p.Load.MaxInFlight),
			cellOf(&p.Seconds.Window), cellOf(&p.Requests.Due), cellOf(&p.Requests.OK), cellOf(&p.Requests.Failed), cellOf(&p.Requests.Cut), cellOf(&p.Requests.Unsent),
			cellOf(p.Throughput.DuePerS), cellOf(p.Throughput.RequestsPerS), cellOf(p.Throughput.InputTokensPerS), cellOf(p.Throughput.OutputTokensPerS)}
		good, goodTokens, attained, met := "", "", "", ""
		if p.Goodput != nil {
			good, goodTokens = cellOf(&p.Goodput.RequestsPerS), cellOf(p.Goodput.OutputTokensPerS)
		}
		if p.SLO != nil {
			attained, met = cellOf(p.SLO.Attained), string(p.SLO.Met)
		}
		line = append(line, good, goodTokens, attained, met, string(p.Stability), string(p.Outcome), string(p.Verdict))
		for _, m := range metrics {
			s, n := p.Metrics.Of(m.Name), ""
			if s != nil {
				n = cellOf(&s.N)
			}
			line = append(line, n)
			for _, figure := range figures {
				line = append(line, cellOf(s.Value(figure)))
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func writeCSV(w io.Writer, run *result.Run, _ string) error { return CSV(w, run) }
