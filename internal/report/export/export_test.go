package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"pitot/internal/analysis/tools"
	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Of a damaged run what is whole is written, and the user's error says so.
func TestExportOfDamagedRun(t *testing.T) {
	table := func(run *result.Run, dir string) string { // but for the one that failed, whose row tells of events that the sample has not
		t.Helper()
		var b strings.Builder
		if err := writeCSVRequests(&b, run, dir); totalFailure(err) != nil {
			t.Fatal(err)
		}
		answered, _, _ := strings.Cut(b.String(), "\n0,2,,3,")
		return answered
	}
	run, dir := sampleRun(t)
	want := table(run, dir)
	chunks, requests := filepath.Join(dir, "chunks.parquet"), filepath.Join(dir, "requests.parquet")
	export := func(format, message string, written bool) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "file")
		err := Export{format, path}.Write(run, dir)
		if message == "" != (err == nil) || err != nil && (!errors.As(err, new(*say.Error)) || say.HintOf(err) == "" || !strings.Contains(err.Error(), message)) {
			t.Errorf("%s: %v, hint %q", format, err, say.HintOf(err))
		}
		if info, err := os.Stat(path); written != (err == nil) || written && info.Size() == 0 {
			t.Errorf("%s: %v", format, err)
		}
	}
	for _, damage := range []struct {
		do      func() error
		message string
	}{
		{func() error { return os.Truncate(chunks, 20) }, "does not end as a Parquet file does"},
		{func() error { return os.Remove(chunks) }, "chunks.parquet is not in the run's directory"},
	} {
		if err := damage.do(); err != nil {
			t.Fatal(err)
		}
		export("csv", "", true)
		export("csv-requests", "made from requests.parquet alone: ", true)
		export("csv-requests", damage.message, true)
		export("parquet", "made from requests.parquet alone: ", true)
		export("vllm", "records", false)
		export("openmetrics", "records", false)
		// Some metrics are told by the chunks alone.
		if got := table(run, dir); withoutColumns(t, got, emptyColumns(t, got)) != withoutColumns(t, want, emptyColumns(t, got)) {
			t.Errorf("without the chunks\n%sand with them\n%s", got, want)
		}
	}
	if err := os.Truncate(requests, 20); err != nil {
		t.Fatal(err)
	}
	export("csv", "", true)
	export("csv-requests", "the run's records are damaged: ", false)
	export("perfetto", "the run's records are damaged: ", false)
}

func TestParseExports(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"vllm":        "not NAME=PATH",
		"vllm=":       "not NAME=PATH",
		"vlm=x":       `unknown format "vlm"`,
		"csv=" + dir:  "is a directory",
		"csv=x,csv=x": "named twice",
	} {
		_, err := ParseExports(strings.Split(text, ","))
		if u := (*say.Error)(nil); !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseExports([]string{"vlm=x"}); say.HintOf(err) != "did you mean vllm?" {
		t.Errorf("hint %q", say.HintOf(err))
	}
}

// Every format writes every kind of run, and replaces what was there only with
// something whole.
func TestEveryFormat(t *testing.T) {
	run, dir := sampleRun(t)
	empty := *run
	empty.Points = slices.Clone(run.Points)
	empty.Points[0].Seconds = result.Seconds{Warmup: 1.7, Window: .05} // of which nothing ended well
	for _, f := range Formats() {
		for _, r := range []*result.Run{run, &empty} {
			path := filepath.Join(t.TempDir(), "new", "file")
			if err := (Export{f.Name, path}).Write(r, dir); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Export{"vllm", path}).Write(run, t.TempDir()); !errors.Is(err, errNoRecords) {
		t.Errorf("without records: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "before" {
		t.Errorf("a failed export left %q", data)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The keys of a line are those that SGLang 0.5.23 itself wrote.
func TestSGLangHasSGLangsKeys(t *testing.T) {
	theirs, err := os.ReadFile(filepath.Join("../../analysis/tools/testdata", "sglang-0.5.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	run, dir := sampleRun(t)
	var got bytes.Buffer
	if err := writeSGLang(&got, run, dir); err != nil {
		t.Fatal(err)
	}
	if ours, want := keysOf(t, got.Bytes()), keysOf(t, nullForNaN(theirs)); !slices.Equal(ours, want) {
		t.Errorf("keys\n%v, SGLang's are\n%v", ours, want)
	}
	m := written(t, writeSGLangDetailed, run, dir)
	if !near(m["mean_ttft_ms"].(float64), 75) || !near(m["concurrency"].(float64), .21/.811) || fmt.Sprint(m["ttfts"]) != "[0.05 0.1 0]" || fmt.Sprint(m["itls"]) != "[[0.01 0.01 0.01 0.01] [0.01 0.01] []]" {
		t.Errorf("%v", m)
	}
	r, err := tools.Parse(got.Bytes())
	if err != nil || r.Tool != "sglang bench_serving" || *r.Points[0].OK != 2 || r.MeasuredBy() != "pitot 1.0 VALID" {
		t.Errorf("read back: %+v, %v", r, err)
	}
}

// A line for each request that was sent, with what AIPerf plots.
func TestAIPerfRequests(t *testing.T) {
	run, dir := sampleRun(t)
	var b bytes.Buffer
	if err := writeAIPerfRequests(&b, run, dir); err != nil {
		t.Fatal(err)
	}
	phases, failed := map[string]int{}, 0
	latency := 0.0
	for line := range strings.Lines(b.String()) {
		var l aiperfLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		phases[l.Metadata.Phase]++
		if l.Metadata.End < l.Metadata.Start || l.Metadata.Start < l.Metadata.Due {
			t.Errorf("%+v", l.Metadata)
		}
		if l.Error != nil {
			failed++
			if l.Error.Message == "" || l.Metrics["request_latency"].Value != nil {
				t.Errorf("%+v of %v", l.Error, l.Metrics)
			}
			continue
		}
		if l.Metadata.Phase == "profiling" {
			latency += l.Metrics["request_latency"].Value.(float64)
		}
	}
	if phases["profiling"] < 3 || failed == 0 || !near(latency, 210) { // as TestAIPerf has it
		t.Errorf("%v, %d failed, %v ms", phases, failed, latency)
	}
	run.Points = append(run.Points, run.Points[0])
	if err := writeAIPerfRequests(io.Discard, run, dir); err == nil {
		t.Error("two points in one file")
	}
}

func TestAIPerf(t *testing.T) {
	run, dir := sampleRun(t)
	m := written(t, writeAIPerf, run, dir)
	value := func(tag, key string) float64 { return m[tag].(map[string]any)[key].(float64) }
	// From the first sent at 1.002 s to the last token at 1.62 s.
	for _, c := range []struct {
		tag, key string
		want     float64
	}{
		{"request_count", "avg", 2}, {"error_request_count", "avg", 1}, {"benchmark_duration", "avg", .618},
		{"request_throughput", "avg", 2 / .618}, {"time_to_first_token", "avg", 75}, {"time_to_first_token", "p99", 99.5},
		{"request_latency", "sum", 210}, {"inter_token_latency", "avg", 10}, {"inter_chunk_latency", "count", 6},
		{"output_token_throughput_per_user", "avg", 100}, {"total_osl", "avg", 8}, {"time_to_second_token", "max", 10},
	} {
		if got := value(c.tag, c.key); !near(got, c.want) {
			t.Errorf("%s %s is %v, want %v", c.tag, c.key, got, c.want)
		}
	}
	theirs, err := os.ReadFile(filepath.Join("../../analysis/tools/testdata", "aiperf-0.13.json"))
	if err != nil {
		t.Fatal(err)
	}
	known := keysOf(t, nullForNaN(theirs))
	for k := range m {
		if !slices.Contains(known, k) && !slices.Contains([]string{"measured_by", "pitot_verdict", "error_request_count"}, k) {
			t.Errorf("AIPerf has no %s", k)
		}
	}
	text, _ := json.Marshal(m)
	r, err := tools.Parse(text)
	if err != nil || r.Model != "org/model" || *r.Points[0].Rate != 2 || !near(*r.Points[0].E2E.Mean, 105) {
		t.Errorf("read back: %+v, %v", r, err)
	}
	run.Points = append(run.Points, run.Points[0])
	if err := writeAIPerf(io.Discard, run, dir); err == nil {
		t.Error("two points are written as one")
	}
}

var (
	metaLine   = regexp.MustCompile(`^# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)$`)
	suffixes   = map[string][]string{"counter": {"_total"}, "histogram": {"_bucket", "_sum", "_count"}, "gauge": {""}, "info": {"_info"}, "stateset": {""}}
)

// The text is OpenMetrics 1.0: one block for each family, its names and
// suffixes, cumulative buckets that end in +Inf, an end mark.
func TestOpenMetrics(t *testing.T) {
	run, dir := sampleRun(t)
	run.Target.Model = "a\"b\\c\nd"
	var b bytes.Buffer
	if err := writeOpenMetrics(&b, run, dir); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.HasSuffix(text, "\n# EOF\n") || strings.Count(text, "# EOF") != 1 {
		t.Error("no end mark at the end")
	}
	name, kind := "", ""
	seen := map[string]bool{}
	buckets := map[string][]float64{} // labels without le: counts
	for line := range strings.Lines(strings.TrimSuffix(text, "# EOF\n")) {
		line = strings.TrimSuffix(line, "\n")
		if m := metaLine.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if seen[m[2]] {
					t.Errorf("%s comes twice", m[2])
				}
				name, kind = m[2], m[3]
				seen[name] = true
			}
			if m[2] != name || m[1] == "UNIT" && !strings.HasSuffix(name, "_"+m[3]) {
				t.Errorf("out of place: %s", line)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || !slices.Contains(suffixes[kind], strings.TrimPrefix(m[1], name)) {
			t.Errorf("no sample of %s %s: %s", kind, name, line)
			continue
		}
		x, err := strconv.ParseFloat(m[3], 64)
		if err != nil || x < 0 {
			t.Errorf("%s: %v", line, err)
		}
		if strings.HasSuffix(m[1], "_bucket") {
			series := name
			buckets[series] = append(buckets[series], x)
			if strings.Contains(m[2], `le="+Inf"`) != (len(buckets[series]) == len(limitsOf(name))+1) {
				t.Errorf("the last bucket of %s is not +Inf: %s", name, line)
			}
		}
		if strings.HasSuffix(m[1], "_count") && x != buckets[name][len(buckets[name])-1] {
			t.Errorf("%s: %v in buckets", line, buckets[name])
		}
	}
	for name, counts := range buckets {
		if !slices.IsSorted(counts) {
			t.Errorf("%s is not cumulative: %v", name, counts)
		}
	}
	for _, want := range []string{
		`pitot_requests_total{model_name="a\"b\\c\nd",point="0",load="rate 2",outcome="failed"} 1`,
		`le="0.06"} 1`, // of the TTFTs from due, 52 and 100 ms, one
		"pitot_time_to_first_token_seconds_sum{", "} 0.152\n",
		`pitot_verdict="INVALID"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func limitsOf(name string) []float64 {
	switch {
	case strings.Contains(name, "first_token"):
		return ttftBuckets
	case strings.Contains(name, "e2e"):
		return e2eBuckets
	}
	return gapBuckets
}

// A value on a limit is below it; each is counted once.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histogram{limits: []float64{1, 2, 4}}
		xs := rapid.SliceOfN(rapid.SampledFrom([]float64{0, .5, 1, 1.5, 2, 3, 4, 5}), 1, 50).Draw(t, "xs")
		for _, x := range xs {
			h.observe(x)
		}
		total := int64(0)
		for i, limit := range h.limits {
			total += h.counts[i]
			want := int64(0)
			for _, x := range xs {
				if x <= limit {
					want++
				}
			}
			if total != want {
				t.Fatalf("%d at most %v, want %d", total, limit, want)
			}
		}
		if total+h.counts[len(h.limits)] != int64(len(xs)) {
			t.Fatalf("%v of %d", h.counts, len(xs))
		}
	})
}

// Requests of one slot do not overlap, and a request lies in its slot.
func TestPerfetto(t *testing.T) {
	run, dir := sampleRun(t)
	m := written(t, writePerfetto, run, dir)
	type span struct{ from, to float64 }
	last := map[float64]span{}
	requests := 0
	for _, e := range m["traceEvents"].([]any) {
		e := e.(map[string]any)
		if e["ph"] != "X" {
			continue
		}
		s := span{e["ts"].(float64), e["ts"].(float64) + e["dur"].(float64)}
		tid := e["tid"].(float64)
		if strings.HasPrefix(e["name"].(string), "request ") {
			requests++
			if before := last[tid]; s.from < before.to {
				t.Errorf("%v begins in another's slot", e["name"])
			}
			last[tid] = s
		} else if around := last[tid]; s.from < around.from || s.to > around.to+1e-6 {
			t.Errorf("%v %v lies outside its request %v", e["name"], s, around)
		}
	}
	if requests != 4 {
		t.Errorf("%d requests, want all 4", requests)
	}
	// Whoever adds start and length in floating point sees parts that touch end
	// before the next begin.
	var tr trace
	var out bytes.Buffer
	tr.o = &object{w: &out}
	for at := int64(8_418_658_638); at < 60e9; at += 7_777_777_777 {
		tr.addRequest(&request{due: at, eligible: at, ready: at, sent: at, first: at + 1_234_567_891, last: at + 7_777_777_777, done: at + 7_777_777_777}, 1, 1, at+7_777_777_777)
	}
	var events []event
	if err := json.Unmarshal([]byte("["+out.String()+"]"), &events); err != nil {
		t.Fatal(err)
	}
	end := map[bool]float64{}
	for _, e := range events {
		whole := strings.HasPrefix(e.Name, "request ")
		if e.At <= end[whole] {
			t.Errorf("%s begins at %v, before the last ended at %v", e.Name, e.At, end[whole])
		}
		end[whole] = e.At + *e.Span
		if !whole && end[false] >= end[true] {
			t.Errorf("%s ends at %v, its request at %v", e.Name, end[false], end[true])
		}
	}
}

func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slots
		from := int64(0)
		ends := map[int]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			from += rapid.Int64Range(0, 5).Draw(t, "gap")
			to := from + rapid.Int64Range(0, 20).Draw(t, "length")
			slot, fresh := s.takeSlot(from, to)
			before, used := ends[slot]
			if fresh == used || before > from {
				t.Fatalf("slot %d from %d is busy to %d", slot, from, before)
			}
			for other, end := range ends {
				if other < slot && end <= from {
					t.Fatalf("slot %d is taken, %d is free", slot, other)
				}
			}
			ends[slot] = to
		}
	})
}

func TestTables(t *testing.T) {
	run, dir := sampleRun(t)
	var text, columns bytes.Buffer
	if err := errors.Join(writeCSVRequests(&text, run, dir), writeParquet(&columns, run, dir)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := func(row int, column string) string { return rows[row][slices.Index(rows[0], column)] }
	for _, c := range []struct {
		row          int
		column, want string
	}{
		{1, "in_window", "false"}, {2, "in_window", "true"}, {2, "ttft_ms", "52"}, {2, "service_ttft_ms", "50"}, {2, "tpot_ms", "10"}, {2, "tpot_n1_ms", "10"}, {2, "stream", "true"},
		{2, "e2e_ms", "92"}, {2, "held_ms", "0"}, {2, "connect_ms", "2"}, {2, "lag_ms", "0"}, {2, "rate", "2"}, {2, "concurrency", ""},
		{4, "outcome", "failed"}, {4, "ttft_ms", ""}, {4, "error", "http_500"}, {4, "output_tokens", ""}, {4, "input_tokens", "101"},
	} {
		if got := at(c.row, c.column); got != c.want {
			t.Errorf("row %d: %s is %q, want %q", c.row, c.column, got, c.want)
		}
	}
	type line struct {
		TTFT        *float64 `parquet:"ttft_ms,optional"`
		InWindow    bool     `parquet:"in_window"`
		Concurrency *int64   `parquet:"concurrency,optional"`
		Error       *string  `parquet:"error,optional"`
		Finish      *string  `parquet:"finish,optional"`
	}
	lines, err := parquet.Read[line](bytes.NewReader(columns.Bytes()), int64(columns.Len()))
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if l := lines[1]; l.TTFT == nil || *l.TTFT != 52 || !l.InWindow || l.Concurrency != nil || l.Error != nil || *l.Finish != "length" {
		t.Errorf("%+v", l)
	}
}

func TestCSV(t *testing.T) {
	run, _ := sampleRun(t)
	mean := 75.25
	run.Target.Model = "=1+1"
	run.Points[0].Metrics.SetSummary(metric.TTFT, &result.Summary{N: 3, Mean: &mean})
	var b bytes.Buffer
	if err := CSV(&b, run); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) {
		t.Fatalf("%v, %v", rows, err)
	}
	for column, want := range map[string]string{"model": "'=1+1", "rate": "2", "concurrency": "", "ttft_ms_n": "3", "ttft_ms_mean": "75.25", "ttft_ms_p99": "", "tpot_ms_n": "", "due": "3", "verdict": "VALID"} {
		if got := rows[1][slices.Index(rows[0], column)]; got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
}

// A trace is bounded, and says how much is left out.
func TestPerfettoIsBounded(t *testing.T) {
	run, dir := sampleRun(t)
	var b bytes.Buffer
	if err := traceOf(&b, run, dir, 3); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), `"name":"request `); n != 3 || !strings.Contains(b.String(), `"left_out":"1 requests beyond the first 3"`) {
		t.Errorf("%d requests: %s", n, b.String())
	}
}

// Each point of a file keeps the verdict that was written for it.
func TestVerdictOfEachPoint(t *testing.T) {
	verdicts := []result.Verdict{result.Invalid, result.Valid, result.ValidWithFlags, result.Valid}
	for name, write := range map[string]func(io.Writer, *result.Run, string) error{"vllm": writeVLLM, "sglang": writeSGLang} {
		var file bytes.Buffer // one object a line
		for _, v := range verdicts {
			run, dir := sampleRun(t)
			run.Points[0].Verdict = v
			if err := write(&file, run, dir); err != nil {
				t.Fatal(err)
			}
		}
		r, err := tools.Parse(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var got []result.Verdict
		for _, p := range r.Points {
			got = append(got, p.Verdict)
		}
		if d := cmp.Diff(verdicts, got); d != "" || r.MeasuredBy() != "pitot 1.0 (2 VALID, 1 VALID WITH FLAGS, 1 INVALID)" || len(r.Notes) > 0 {
			t.Errorf("%s: %q, %q: %s", name, r.MeasuredBy(), r.Notes, d)
		}
	}
	// A word that is no verdict is none. What another tool appended is not mixed in.
	ours, theirs := `{"measured_by":"pitot 1.0","pitot_verdict":"soso",`, `{`
	const rest = `"num_prompts":10,"completed":10,"failed":0,"request_throughput":4}`
	if r, err := tools.Parse([]byte(ours + rest)); err != nil || r.MeasuredBy() != "pitot 1.0" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, mixed := range []string{ours + rest + "\n" + theirs + rest, theirs + rest + "\n" + ours + rest} {
		if _, err := tools.Parse([]byte(mixed)); err == nil || !strings.Contains(err.Error(), "results that Pitot measured and results of vllm bench serve") {
			t.Errorf("%s: %v", mixed, err)
		}
	}
}

// nullForNaN makes JSON of what Python writes.
func nullForNaN(data []byte) []byte {
	return []byte(strings.NewReplacer("-Infinity", "null", "Infinity", "null", "NaN", "null").Replace(string(data)))
}

// rowsOf are those of a table in CSV, its head first.
func rowsOf(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// emptyColumns are the names of the columns of a table in CSV without any value.
func emptyColumns(t *testing.T, text string) (empty []string) {
	t.Helper()
	rows := rowsOf(t, text)
	for i, name := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(r []string) bool { return r[i] != "" }) {
			empty = append(empty, name)
		}
	}
	if len(empty) > len(rows[0])/2 {
		t.Fatalf("nothing is in most columns: %v", empty)
	}
	return empty
}

// withoutColumns is a table in CSV without some of its columns.
func withoutColumns(t *testing.T, text string, names []string) string {
	t.Helper()
	rows := rowsOf(t, text)
	var b strings.Builder
	out := csv.NewWriter(&b)
	for _, r := range rows {
		var left []string
		for i, cell := range r {
			if !slices.Contains(names, rows[0][i]) {
				left = append(left, cell)
			}
		}
		if err := out.Write(left); err != nil {
			t.Fatal(err)
		}
	}
	out.Flush()
	return b.String()
}

// A cell of CSV and a label of OpenMetrics hold no character that controls a terminal or the
// direction of text; a cell is no formula, and a number stays one.
func TestHostileCells(t *testing.T) {
	const hostile = "\x1b]0;PWN\x07\u009b31m\u202ex"
	var b strings.Builder
	out := newCSV(&b)
	if err := out.Write([]string{hostile, "=HYPERLINK(1)", "@x", "-1.5", "+2e3", "-x", "a\nb"}); err != nil {
		t.Fatal(err)
	}
	out.Flush()
	if want := "\ufffd]0;PWN\ufffd\ufffd31m\ufffdx,'=HYPERLINK(1),'@x,-1.5,+2e3,'-x,\"a\nb\"\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if got, want := labelText("model", hostile), "model=\"\ufffd]0;PWN\ufffd\ufffd31m\ufffdx\""; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
