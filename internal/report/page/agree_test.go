package page

import (
	"bytes"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"

	"pitot/internal/metrics"
	"pitot/internal/report/export"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// crowd is the records of a load of requests that ended in every way: well,
// streamed and not, with empty answers, several tokens in the first event, and
// hidden tokens; in errors before and behind the first token; cut off before and
// behind it; never sent.
func crowd(n int, rng *rand.Rand) record.Frame {
	const ms, unset = int64(1e6), int64(record.Unset)
	var f record.Frame
	for id := range int64(n) {
		r := record.BlankRow()
		r.ID, r.Due, r.Stream = id, id*10*ms, rng.IntN(8) > 0
		r.Eligible, r.Ready, r.Sent = r.Due, r.Due+rng.Int64N(ms), r.Due+ms+rng.Int64N(ms)
		r.InputPlanned, r.PromptTokens, r.OutputPlanned = 100, 101, 12
		ttft, tokens, blind := 20*ms+rng.Int64N(50*ms), 1+rng.Int32N(12), rng.IntN(4) == 0
		at := r.Sent + ttft
		r.FirstToken, r.FirstAnswer, r.CompletionTokens = at, at, 0
		chunk := func(k int32) {
			c := record.Chunk{Request: id, T: at, Earliest: at, Tokens: k}
			if r.CompletionTokens += k; blind {
				c.Tokens = 0
			}
			f.Chunks, r.LastToken, r.Chunks = append(f.Chunks, c), at, r.Chunks+1
		}
		if r.Stream {
			for range tokens {
				chunk(1 + rng.Int32N(2))
				at += rng.Int64N(3) * 5 * ms
			}
		} else {
			r.CompletionTokens, r.FirstToken, r.FirstAnswer = tokens, unset, unset
		}
		r.Done = at + ms
		switch kind := rng.IntN(20); {
		case kind < 2 && r.Stream: // ended well, but empty
			f.Chunks = f.Chunks[:len(f.Chunks)-int(r.Chunks)]
			r.FirstToken, r.FirstAnswer, r.CompletionTokens, r.Chunks = unset, unset, 0, 0
			if rng.IntN(2) == 0 {
				r.LastToken = unset // nor with a finish_reason
			}
		case kind == 2:
			r.HiddenTokens, r.CompletionTokens = 3, r.CompletionTokens+3
			if r.Stream && rng.IntN(2) == 0 {
				r.FirstAnswer = r.LastToken // hidden between visible ones, if it has several
			}
		case kind == 3:
			r.CompletionTokens = record.Unset
		case kind == 4:
			r.Outcome, r.Error = record.Failed, record.ErrReset
		case kind == 5:
			f.Chunks = f.Chunks[:len(f.Chunks)-int(r.Chunks)]
			r.Outcome, r.Error, r.FirstToken, r.FirstAnswer, r.LastToken, r.Chunks = record.Failed, record.ServerError(500), unset, unset, unset, 0
		case kind == 6:
			r.Outcome, r.Error, r.CompletionTokens = record.Cut, record.ErrTimeout, record.Unset
			r.Done += 200 * ms
		case kind == 7:
			f.Chunks = f.Chunks[:len(f.Chunks)-int(r.Chunks)]
			r.Outcome, r.Error, r.CompletionTokens, r.FirstToken, r.FirstAnswer, r.LastToken, r.Chunks = record.Cut, record.ErrTimeout, record.Unset, unset, unset, unset, 0
			r.Done += 200 * ms
		case kind == 8:
			f.Chunks = f.Chunks[:len(f.Chunks)-int(r.Chunks)]
			r.Outcome, r.CompletionTokens, r.Chunks = record.Unsent, record.Unset, 0
			r.Eligible, r.Ready, r.Sent, r.FirstToken, r.FirstAnswer, r.LastToken, r.Done = unset, unset, unset, unset, unset, unset, r.Due+10*ms
		}
		f.Rows = append(f.Rows, r)
	}
	return f
}

// saved is a run of one point with its records in a directory.
func saved(t *testing.T, f record.Frame, s metrics.Setup) (*result.Run, string) {
	t.Helper()
	dir := t.TempDir()
	if err := record.WriteParquet(dir, func(yield func(record.Frame, error) bool) { yield(f, nil) }); err != nil {
		t.Fatal(err)
	}
	fold := metrics.NewFold(s)
	fold.Add(f)
	return &result.Run{Schema: result.Schema, Points: []result.Point{fold.Point()}}, dir
}

// tableLine is what is looked at of a line of the exported table.
type tableLine struct {
	ID          int64    `parquet:"id"`
	InWindow    bool     `parquet:"in_window"`
	Outcome     string   `parquet:"outcome"`
	Stream      bool     `parquet:"stream"`
	TTFT        *float64 `parquet:"ttft_ms,optional"`
	TTFA        *float64 `parquet:"ttfa_ms,optional"`
	TPOT        *float64 `parquet:"tpot_ms,optional"`
	TPOTn1      *float64 `parquet:"tpot_n1_ms,optional"`
	E2E         *float64 `parquet:"e2e_ms,optional"`
	ServiceTTFT *float64 `parquet:"service_ttft_ms,optional"`
	ServiceE2E  *float64 `parquet:"service_e2e_ms,optional"`
}

// exported writes a run in a format and gives the bytes.
func exported(t *testing.T, run *result.Run, dir, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export")
	if err := (export.Export{Format: format, Path: path}).Write(run, dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// run.json, the charts of the page and the exported tables have the same
// samples of each latency, with the same ones that were not followed to their
// end, and so the same percentiles.
func TestResultChartsAndTablesAgree(t *testing.T) {
	for seed := range uint64(5) {
		const ms = int64(1e6)
		run, dir := saved(t, crowd(1500, rand.New(rand.NewPCG(seed, 1))), metrics.Setup{T0: 2000 * ms, T1: 13_000 * ms, Stamps: "kernel"})
		p := &run.Points[0]
		series, err := ReadSeries(dir, run)
		if err != nil || len(series) != 1 {
			t.Fatal(err)
		}
		columns := exported(t, run, dir, "parquet")
		table, err := parquet.Read[tableLine](bytes.NewReader(columns), int64(len(columns)))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(exported(t, run, dir, "csv-requests"))).ReadAll()
		if err != nil || len(rows) != len(table)+1 {
			t.Fatalf("%d rows, %d lines, %v", len(rows), len(table), err)
		}
		outcomes := map[string]int{}
		for i := range table {
			if table[i].InWindow {
				outcomes[table[i].Outcome]++
				outcomes["due"]++
			}
		}
		for outcome, n := range map[string]int{"due": p.Requests.Due, "ok": p.Requests.OK, "failed": p.Requests.Failed, "cut": p.Requests.Cut, "unsent": p.Requests.Unsent} {
			if outcomes[outcome] != n || n == 0 {
				t.Errorf("%d %s in the table, %d in the result", outcomes[outcome], outcome, n)
			}
		}
		for _, m := range []struct {
			name, column string
			s            *result.Summary
			of           func(*tableLine) *float64
			// waited: without a value it was waited for in vain.
			waited func(*tableLine) bool
		}{
			{"ttft_ms", "ttft_ms", p.Metrics.SummaryOf(metric.TTFT), func(l *tableLine) *float64 { return l.TTFT }, func(l *tableLine) bool { return l.Stream }},
			{"ttfa_ms", "ttfa_ms", p.Metrics.SummaryOf(metric.TTFA), func(l *tableLine) *float64 { return l.TTFA }, func(l *tableLine) bool { return l.Stream }},
			{"tpot_ms", "tpot_ms", p.Metrics.SummaryOf(metric.TPOT), func(l *tableLine) *float64 { return l.TPOT }, func(l *tableLine) bool { return l.Stream && l.Outcome != "ok" }},
			{"tpot_n1_ms", "tpot_n1_ms", p.Metrics.SummaryOf(metric.TPOTn1), func(l *tableLine) *float64 { return l.TPOTn1 }, func(l *tableLine) bool { return l.Stream && l.Outcome != "ok" }},
			{"e2e_ms", "e2e_ms", p.Metrics.SummaryOf(metric.E2E), func(l *tableLine) *float64 { return l.E2E }, func(l *tableLine) bool { return l.Outcome != "ok" }},
			{"service.ttft_ms", "service_ttft_ms", p.Metrics.SummaryOf(metric.ServiceTTFT), func(l *tableLine) *float64 { return l.ServiceTTFT }, func(l *tableLine) bool { return l.Stream && l.Outcome != "unsent" }},
			{"service.e2e_ms", "service_e2e_ms", p.Metrics.SummaryOf(metric.ServiceE2E), func(l *tableLine) *float64 { return l.ServiceE2E }, func(l *tableLine) bool { return l.Outcome == "cut" }},
		} {
			var values []float64
			longer, at := int64(0), slices.Index(rows[0], m.column)
			for i := range table {
				l, cell := &table[i], rows[i+1][at]
				x := m.of(l)
				if x == nil && cell != "" || x != nil && cell != strconv.FormatFloat(*x, 'f', -1, 64) {
					t.Errorf("%s of request %d: %q in CSV, %v in Parquet", m.name, l.ID, cell, x)
				}
				switch {
				case !l.InWindow:
				case x != nil:
					values = append(values, *x)
				case l.Outcome != "failed" && m.waited(l):
					longer++
				}
			}
			slices.Sort(values)
			n := int64(len(values)) + longer
			if n != m.s.N || longer != m.s.Censored || longer == 0 {
				t.Errorf("%s: %d samples in the table, %d of them longer; in the result %d and %d", m.name, n, longer, m.s.N, m.s.Censored)
			}
			chart, drawn := series[0].Spread[m.name]
			if drawn {
				if last := len(chart.Value) - 1; chart.N != n || math.Round(chart.Share[last]*float64(n)) != float64(len(values)) || chart.Value[last] != values[len(values)-1] {
					t.Errorf("%s: N %d in the chart, up to %v at %v; in the table %d, of which %d up to %v have a value", m.name, chart.N, chart.Value[last], chart.Share[last], n, len(values), values[len(values)-1])
				}
			}
			for q, want := range map[float64]*float64{.5: m.s.P50, .9: m.s.P90, .95: m.s.P95, .99: m.s.P99} {
				k := stats.Rank(n, q)
				if want == nil { // the rank falls among those that are longer
					if k <= int64(len(values)) {
						t.Errorf("p%v of %s: %v in the table, nothing in the result: %v", 100*q, m.name, values[k-1], m.s.Withheld)
					}
					continue
				}
				if values[k-1] != *want {
					t.Errorf("p%v of %s: %v in the table, %v in the result", 100*q, m.name, values[k-1], *want)
				}
				if i := slices.Index(chart.Share, float64(k)/float64(n)); drawn && (i < 0 || chart.Value[i] != *want) {
					t.Errorf("p%v of %s: rank %d of the chart is not %v", 100*q, m.name, k, *want)
				}
			}
		}
		if p.Metrics.SummaryOf(metric.E2E).Missing == 0 || p.Metrics.SummaryOf(metric.TTFT).Over["p99"] == 0 {
			t.Error("the load has no empty answers, or few that are longer")
		}
		icl := series[0].Spread["icl_ms"]
		if s := p.Metrics.SummaryOf(metric.ICL); icl.N != s.N || s.Censored == 0 || math.Round(icl.Share[len(icl.Share)-1]*float64(s.N)) != float64(s.N-s.Censored) {
			t.Errorf("icl: N %d in the chart up to %v; in the result %d, %d of them longer", icl.N, icl.Share[len(icl.Share)-1], s.N, s.Censored)
		}
	}
}
