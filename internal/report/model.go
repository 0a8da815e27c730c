// Package report shows a run. It builds one Model from the result; every face
// (terminal, Markdown, JSON) renders that and computes nothing of its own.
package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// Model holds what a report shows of a run.
type Model struct {
	Title    string     // what was measured
	Facts    [][]string // of the run; the parts of a fact belong on one line
	Warnings []string   // why the run is not whole
	Overview *Overview  // of a sweep or a search, nil for others
	Repeats  *Repeats   // of a load that was measured several times, nil for others
	Points   []PointModel
	Dir      string
	Unsaved  bool   // the result could not be written there
	Page     string // path of the run's page, "" if it could not be written

	Headline   Headline
	Figures    []Figure  // of the claim
	Limited    []string  // what limits the target, as far as is known
	Decision   *Decision // from the objective to what to do, nil without one
	Why        string    // the first of what was explained of it, "" for nothing
	Conditions []Condition
	Run        *result.Run // what it is made of
}

// PointModel holds what a report shows of a point.
type PointModel struct {
	Ordinal    string   // "point 1 of 3", "" of a run that has no other
	Load       []string // how hard, how long
	Verdict    result.Verdict
	Because    []string // names of the checks that did not pass, failures first
	Headline   texts    // throughput, with what it is worth
	Outcome    string   // what the server did other than serve, "" for nothing
	Failures   *Failures
	Objective  *Objective
	Latencies  Table
	lines      []line // of Latencies
	Intervals  *Table
	Classes    *Table
	OverTime   *Table     // blocks of the window, of a load that changes or comes in bursts
	Turns      *Table     // requests by their turn, of conversations
	Histories  *Table     // and by how much of the prompt was said before
	Legend     texts      // of the marks in the tables, those that occur
	ViewsAgree bool       // counted from when they were due and from when they were sent, latencies are the same
	Remarks    texts      // what a reader must know of the numbers
	TooLow     string     // that of them which says that a number reads too low, "" for none
	Answers    []string   // of Remarks, those on questions
	Server     []labelled // what servers and GPUs report, a line each
	Cost       []labelled // what serving costs, in dollars and in energy, a line each
	Instrument []string
	NotPassed  []CheckModel
	Passed     int
}

// Objective holds the outcome of the SLO.
type Objective struct {
	Met    result.Met
	Facts  []string   // the objective and its verdict first
	Limits [][]string // each limit apart, where there are several
	Table  Table      // each limit by itself, and all jointly
}

// Table is rows of numbers under a head. The first column is names.
type Table struct {
	Head  []string
	Rows  [][]string
	Spare []int // columns that a narrow face leaves out, the most dispensable first
}

// NewTable makes a table without rows.
func NewTable(head ...string) Table { return Table{Head: head} }

// AddRow adds a row.
func (t *Table) AddRow(cells ...string) { t.Rows = append(t.Rows, cells) }

// Build makes the model of a run in a directory.
func Build(run *result.Run, dir string) Model {
	m := Model{Run: run, Dir: say.PlainLine(dir), Title: say.PlainLine(run.Target.Spec)}
	if run.Target.Model != "" { // servers of one model need not name it
		m.Title = run.Target.Model + " at " + run.Target.Spec
	}
	m.Facts = runFacts(run)
	m.Warnings = append(m.Warnings, damageLines(run)...)
	if run.Interrupted {
		m.Warnings = append(m.Warnings, "interrupted: this is what had been measured by then"+resumeCommand(run, dir))
	}
	if run.Recovered {
		m.Warnings = append(m.Warnings, "recovered: the run ended before its time; requests that were under way count as cut off")
	}
	if len(run.Points) == 0 && len(run.Damage) == 0 {
		m.Warnings = append(m.Warnings, "nothing was measured: the run ended before its load began")
	}
	m.Overview = newOverview(run)
	m.Repeats = newRepeats(run)
	for i := range run.Points {
		p := buildPoint(run, &run.Points[i])
		if n := len(run.Points); n > 1 {
			p.Ordinal = fmt.Sprintf("point %d of %d", i+1, n)
			if s := run.Points[i].Stage; s == result.StageCold || s == result.StageWarm {
				p.Ordinal += ", " + s
			}
		}
		m.Points = append(m.Points, p)
	}
	m.setConclusion(run)
	return m
}

// resumeCommand says how a search or a sweep in a directory goes on, "" of another run.
func resumeCommand(run *result.Run, dir string) string {
	if run.Capacity == nil && run.Curve == nil || dir == "" || isFirstLook(run) {
		return ""
	}
	verb := "find"
	if run.Curve != nil {
		verb = "sweep"
	}
	return "; to go on: " + say.ShellLine([]string{"pitot", verb, "--resume", "--out", dir})
}

// runFacts returns what the run requested, and from which target.
func runFacts(run *result.Run) [][]string {
	var w struct {
		Kind          string
		Preset        string
		Input, Output string
		Correlation   float64
		Prefix        *struct {
			Tokens int
			Share  float64
			Prompt string
			Tree   string
		}
		Cache         string
		Batch         *workload.BatchDescription
		Conversations *struct {
			SubAgents string `json:"sub_agents"`
		}
		File *struct {
			Name     string
			Requests int
			Skipped  map[string]int // reason: records
		}
		Mix *struct {
			Name    string
			Classes []struct {
				Name  string
				Share float64
			}
		}
		Sampling struct {
			Stream    bool
			Stop      any // natural, or what --body says
			MaxTokens any `json:"max_tokens"`
			N         any // answers to each request
		}
	}
	_ = json.Unmarshal(run.Workload, &w) // what is not there is not shown
	how := run.Target.API + ", not streaming"
	if w.Sampling.Stream {
		how = run.Target.API + ", streaming"
	}
	if slices.ContainsFunc(run.Target.Adaptations, func(a result.Adaptation) bool { return a.Kind == result.StreamIgnored }) {
		how = run.Target.API + ", not streaming: the server ignores stream: true"
	}
	engine := run.Target.Server["engine"]
	if v := run.Target.Server["version"]; v != "" {
		engine += " " + v
	}
	in := w.Input
	if w.Prefix != nil {
		in = w.Prefix.Prompt
	}
	asked := texts{tokenLengths(in) + " tokens in, " + tokenLengths(w.Output) + " out"}
	if w.Sampling.Stop == "natural" && run.Target.Kind == "http" { // nobody told it how many
		asked = []string{tokenLengths(in) + " tokens in"}
	}
	if w.Batch != nil {
		how, asked = run.Target.API, batchText(tokenLengths(in), w.Batch)
	}
	if w.Preset != "" {
		asked[0] = w.Preset + ": " + asked[0]
		if p, _ := workload.PresetNamed(w.Preset); p.SLO != "" && len(run.Points) > 0 && run.Points[0].SLO != nil && run.Points[0].SLO.Spec == objectiveNamed(p.SLO) {
			asked.addText("judged by its own limits")
		}
	}
	switch {
	case w.Mix != nil:
		asked = []string{w.Mix.Name}
		for _, c := range w.Mix.Classes {
			asked.addText(say.Percent(c.Share) + " " + c.Name)
		}
	case w.File != nil:
		asked = []string{say.Plural(w.File.Requests, "request") + " of " + w.File.Name}
		left := 0
		for _, n := range w.File.Skipped {
			left += n
		}
		if left > 0 {
			asked.addText(say.Plural(left, "record") + " left out")
		}
		if w.Kind == "trace" {
			asked.addText("replayed with generated words")
		}
	case w.Prefix != nil:
		who := "the same for "
		if w.Prefix.Tree != "" {
			who = "the texts of a tree for "
		}
		switch {
		case w.Prefix.Share == 0:
			who = "of its own for each request"
		case w.Prefix.Share < 1:
			who += say.Percent(w.Prefix.Share) + " of the requests, of their own for the others"
		default:
			who += "all requests"
		}
		asked.addFormat("%s of them a prefix, %s", say.Count(w.Prefix.Tokens), who)
	}
	if w.Conversations != nil {
		if law, err := workload.ParseSubAgents(w.Conversations.SubAgents); err == nil {
			asked.addText(subAgentsSay(law))
		}
	}
	switch {
	case w.Cache == "warm":
		asked.addText("cache warm: shared prefixes were sent before the load")
	case w.Cache == "both":
		asked.addText("first with nothing shared, then with shared prefixes sent before")
	case strings.HasSuffix(w.Cache, "%"):
		asked.addText(strings.TrimSuffix(w.Cache, "%") + " % of the prompts' tokens shared by all")
	}
	if w.Correlation != 0 {
		asked.addText("rank correlation of the lengths " + say.Decimal(w.Correlation, 3))
	}
	if n, ok := w.Sampling.N.(float64); ok && n > 1 {
		asked.addText(say.Count(int64(n)) + " answers to each request")
	}
	if w.Sampling.Stop == "natural" {
		ends := "answers end by themselves"
		if most, ok := w.Sampling.MaxTokens.(float64); ok {
			ends += ", at most " + say.Count(int64(most)) + " tokens"
		}
		asked.addText(ends)
	}
	asked.addFormat("seed %d", run.Seed)
	if run.Launch != "" {
		asked.addText("launch " + run.Launch)
	}
	var notes []string
	for _, k := range slices.Sorted(maps.Keys(run.Notes)) {
		notes = append(notes, k+"="+run.Notes[k])
	}
	out := [][]string{nonEmpty(how, engine), nonEmpty(asked...)}
	if w.Sampling.Stop == "natural" {
		text := "no response length was requested: E2E, tok/s and cost compare only with runs of equally long responses"
		if len(run.Points) > 0 {
			if mean := run.Points[0].Metrics.SummaryOf(metric.OutputTokens).Value(metric.Mean); mean != nil {
				text += ", " + say.Quantity(*mean) + " tokens on average"
			}
		}
		out = append(out, nonEmpty(text))
	}
	for _, a := range run.Target.Adaptations {
		out = append(out, nonEmpty(reasons.AdaptationText(a)))
	}
	if set := changedSettings(run); len(set) > 0 {
		out = append(out, nonEmpty("settings: "+strings.Join(set, ", ")))
	}
	if f := faultText(run); f != "" {
		out = append(out, nonEmpty("faults that you requested: "+f))
	}
	if len(notes) > 0 {
		out = append(out, nonEmpty(notes...))
	}
	if effect := effectText(run.CacheEffect); effect != "" && run.Verdict == result.Invalid { // else it is the answer
		out = append(out, nonEmpty(effect))
	}
	return out
}

// batchText says what the requests are of which nothing is generated.
func batchText(in string, b *workload.BatchDescription) []string {
	texts := say.Plural(b.Texts, "text") + " a request"
	if in != "" {
		texts += ", " + in + " tokens each"
	}
	if b.Query != "" {
		texts += ", with a query of " + tokenLengths(b.Query) + " tokens"
	}
	return []string{texts, "nothing is generated: no TTFT, TPOT or ITL"}
}

// changedSettings are the settings of an embedded target that are not as usual. What its
// engine reports is shown already, and faults have a line of their own.
func changedSettings(run *result.Run) (list []string) {
	alreadyShown := []string{"faults", "ttft", "itl", "jitter", "slots", "tokens-per-chunk", "speed"}
	for _, k := range slices.Sorted(maps.Keys(run.Target.Settings)) {
		if !slices.Contains(alreadyShown, k) {
			list = append(list, k+" "+run.Target.Settings[k])
		}
	}
	return list
}

// faultText are those that an embedded target was asked to make, "" for none.
func faultText(run *result.Run) string {
	list := strings.Split(run.Target.Settings["faults"], ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return strings.Join(list, ", ")
}

// tokenLengths writes a distribution of lengths: 1,024 or uniform(1,9); of quantiles the
// middle and the ends, for they are many.
func tokenLengths(lengths string) string {
	if n, err := strconv.Atoi(lengths); err == nil {
		return say.Count(n)
	}
	list, behind, _ := strings.Cut(lengths, ")")
	if l, err := workload.ParseLengths(list + ")"); err == nil && strings.HasPrefix(list, "quantiles(") {
		return fmt.Sprintf("%s to %s (median %s)%s", say.Count(l.Quantile(0)), say.Count(l.Quantile(1)), say.Count(l.Quantile(.5)), behind)
	}
	return lengths
}

// nonEmpty leaves out what is empty.
func nonEmpty(parts ...string) []string {
	var out []string
	for _, s := range parts {
		if s = say.PlainLine(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func buildPoint(run *result.Run, p *result.Point) PointModel {
	m := PointModel{Load: loadText(p), Verdict: p.Verdict}
	m.setHeadline(p)
	m.addFailures(p)
	m.Objective = buildObjective(p)
	m.addBacklog(p)
	m.overTime(p)
	m.addAnswers(run, p)
	m.addRetries(p)
	m.rateLimits(p)
	m.addSessions(p)
	m.addStopRule(p)
	m.addLatencyTables(p)
	m.ViewsAgree = viewsAgree(&p.Metrics)
	m.addOtherMetrics(run, p)
	m.addInstrument(run, p)
	for _, status := range []result.Status{result.Fail, result.Flag} {
		for i := range p.Checks {
			if c := &p.Checks[i]; c.Status == status {
				m.NotPassed = append(m.NotPassed, BuildCheck(c))
				m.Because = append(m.Because, c.Name)
			}
		}
	}
	m.Passed = len(p.Checks) - len(m.NotPassed)
	return m
}

// furtherTables are those behind the latencies.
func (m *PointModel) furtherTables() []*Table {
	all := []*Table{m.Intervals, m.Classes, m.OverTime, m.Turns, m.Histories}
	return slices.DeleteFunc(all, func(t *Table) bool { return t == nil })
}

// ChecksPassed says how many checks there is nothing to say about.
func (m *PointModel) ChecksPassed() string {
	switch {
	case len(m.NotPassed) == 0:
		return say.Plural(m.Passed, "check") + " passed"
	case m.Passed == 0:
		return "no check passed"
	}
	return "the other " + say.Plural(m.Passed, "check") + " passed"
}

func loadText(p *result.Point) []string {
	l := p.Load
	s := ""
	switch {
	case l.Rate != nil:
		s = say.Decimal(*l.Rate, 6) + " req/s"
		if l.Turns != nil {
			s = fmt.Sprintf("%s conversations/s of %s turns on average", say.Decimal(*l.Rate, 6), say.Decimal(*l.Turns, 2))
		}
		s += " " + l.Arrival
	case l.Concurrency != nil:
		s = say.Plural(*l.Concurrency, "user")
		if l.Turns != nil {
			s += fmt.Sprintf(", each in one conversation after another of %s turns on average", say.Decimal(*l.Turns, 2))
		}
	}
	if l.ThinkMS != nil {
		s += ", thinking " + say.Seconds(*l.ThinkMS/1e3)
	}
	if l.MaxInFlight != nil {
		s += fmt.Sprintf(", at most %s in flight", say.Plural(*l.MaxInFlight, "request"))
	}
	if l.RespectLimits {
		if p.RateLimits != nil {
			s += ", sent within the server's rate limits"
		} else {
			s += ", --respect-limits: the server reported no limits"
		}
	}
	if l.Retry != "" {
		s += ", retries " + l.Retry
	}
	span := say.Seconds(p.Seconds.Window)
	if p.Seconds.Warmup > 0 {
		span += " after " + say.Seconds(p.Seconds.Warmup) + " of warm-up"
	}
	return nonEmpty(s, span)
}

// lateSeconds returns the seconds of the window that were given up because the load settled only in
// it.
func lateSeconds(p *result.Point) float64 {
	for _, c := range p.Checks {
		if planned, known := c.Detail["planned"]; c.Name == result.CheckWarmup && c.Limit != nil && known {
			return max(0, *c.Limit-planned)
		}
	}
	return 0
}

func (m *PointModel) setHeadline(p *result.Point) {
	r, t := p.Requests, p.Throughput
	m.Headline.addFormat("%s of %s answered", say.Count(r.OK), say.Plural(r.Due, "request"))
	m.Headline.addQuantity(t.RequestsPerS, "req/s")
	if x := metric.All().Find(metric.InputsRate); p.Window[x.FieldName()] > 0 {
		m.Headline.addFormat("%s %s", say.Quantity(p.Window[x.FieldName()]), string(x.Unit))
	}
	m.Headline.addQuantity(t.OutputTokensPerS, "output tok/s")
	m.Headline.addQuantity(t.InputTokensPerS, "input tok/s")
	if g := t.PerGPU; g != nil && g.GPUs > 1 {
		m.Headline.addQuantity(g.OutputTokensPerS, "output tok/s per GPU")
	}
	if b := stabilityText(p); b != "" {
		m.Headline.addText(b)
	}
	if n := r.LostWithWorker; n > 0 {
		m.Remarks.addText(say.Plural(n, "request") + " more were planned for a worker that was lost. They were never sent and count in no share")
	}
	switch {
	case t.Why.IsNone():
	case t.RequestsPerS == nil:
		m.Remarks.addText("no rates: " + ReasonText(t.Why))
	default:
		m.Remarks.addText("tok/s: " + ReasonText(t.Why))
	}
}

// addOtherMetrics shows the metrics that have no figure of their own here: those of the window
// next to its others; those of the server have sentences of their own.
func (m *PointModel) addOtherMetrics(run *result.Run, p *result.Point) {
	for _, x := range run.FurtherMetrics() {
		v, _, _ := p.MetricValue(x)
		if v == nil || x.Of == metric.Server || x.Show == metric.Data || x.Name == metric.InputsRate || *v == 0 && x.Name == metric.CachedShare { // a check says where there should be some, or none
			continue
		}
		text := x.Label + " " + formatterFor(x.Unit)(*v)
		if x.Unit != metric.Share && x.Unit != metric.Count {
			text += " " + string(x.Unit)
		}
		m.Headline.addText(text)
	}
	m.addServer(run, p)
	m.addCost(p)
}

func (m *PointModel) addInstrument(run *result.Run, p *result.Point) {
	stamps := map[string]string{
		"kernel": "chunk times are the kernel's receive stamps", "user": "chunk times were taken in user space",
		"virtual": "virtual time: no socket, no machine has a part in this",
	}[run.Environment.Stamps]
	lag := ""
	if l := p.Metrics.SummaryOf(metric.Lag); l != nil && l.P50 != nil && run.Environment.Stamps != "virtual" {
		lag = "send lag p50 " + say.Quantity(*l.P50) + " ms"
		if l.P99 != nil {
			lag += ", p99 " + say.Quantity(*l.P99) + " ms"
		}
	}
	m.Instrument = nonEmpty(stamps, lag, carriedBy(p.Workers))
}

// carriedBy says who carried a load out together, and how far their clocks are known to be
// apart; "" where one process did. No latency rests on that: each is of one worker's clock.
func carriedBy(workers []result.Worker) string {
	if len(workers) == 0 {
		return ""
	}
	hosts, bound := map[string]bool{}, 0.
	for _, w := range workers {
		hosts[w.Host], bound = true, max(bound, w.AheadBound)
	}
	where := workers[0].Host
	if len(hosts) > 1 {
		where = say.Plural(len(hosts), "host")
	}
	text := fmt.Sprintf("sent by %s on %s", say.Plural(len(workers), "worker"), where)
	if bound > 0 {
		text += fmt.Sprintf(", clocks known within %s ms", say.Quantity(bound))
	}
	for _, w := range workers {
		if w.Lost != nil {
			text += fmt.Sprintf("; worker %d was lost %s after the load began: %s", w.Rank, say.Seconds(w.Lost.At), w.Lost.Why)
		}
	}
	return text
}
