// Package inspect reads a run as the evidence that package explain weighs: the times that
// its client recorded, what its server told of itself, and the twins of what served, where
// that is known. Of the embedded targets it takes what their owner states, MODEL@GPU and
// settings, and no more than a client or a page of metrics would see.
package inspect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/say"
	"pitot/internal/study/explain"
	"pitot/internal/study/predict"
	"pitot/internal/telemetry"
	"pitot/internal/twin/deploy"
)

// Schema is that of an explanation as JSON.
const Schema = "pitot.explain/v1"

// Explanation is what limits a run, point by point.
type Explanation struct {
	Schema     string   `json:"schema"`
	Run        string   `json:"run"`
	Deployment string   `json:"deployment,omitempty"` // whose twins were asked, "" for none
	Points     []Point  `json:"points"`
	Over       []Reign  `json:"over_load,omitempty"` // of several loads: what limits from which on
	Notes      []string `json:"notes,omitempty"`
}

// Point is one load.
type Point struct {
	Index     int                 `json:"point"`
	Load      string              `json:"load"`
	Value     float64             `json:"value"`            // of the load
	Engine    string              `json:"engine,omitempty"` // [explain.SGLang], else settings have vLLM's names
	Met       result.Met          `json:"slo_met,omitempty"`
	Wrong     string              `json:"wrong_answers,omitempty"` // where these alone break the objective: their shares
	Symptoms  []explain.Diagnosis `json:"diagnoses"`
	NoFinding string              `json:"why_none,omitempty"`
}

// Reign is a stretch of loads at which a symptom has one cause.
type Reign struct {
	Symptom explain.Symptom `json:"symptom"`
	Cause   explain.Cause   `json:"regime"`
	From    string          `json:"from"`
	To      string          `json:"to"`
}

// Options say more of a run than is in it.
type Options struct {
	Deployment string // MODEL@GPU[?settings], "" for that of an embedded target
	// Quick asks few twins about few requests of few loads: for a report that nobody
	// asked to explain.
	Quick bool
}

// How many requests the twins serve again, and of how many tokens.
const (
	mostAsked, askedTokens      = 300, 120_000
	askedQuickly, tokensQuickly = 100, 12_000
	loadsQuickly                = 2
	// mostQuickly is how many tokens of all its loads each twin may have to serve, warm-ups
	// included, for a report that nobody asked to explain: that takes about three seconds.
	mostQuickly = 150_000
)

// Run explains a run that has its records in a directory. Errors are the user's.
func Run(dir string, measured *result.Run, o Options) (*Explanation, error) {
	x := &Explanation{Schema: Schema, Run: dir, Points: []Point{}}
	d, note, err := deployment(measured, o.Deployment)
	if err != nil {
		return nil, err
	}
	if d != nil {
		x.Deployment = d.Named()
	}
	if note != "" {
		x.Notes = append(x.Notes, note)
	}
	loads := measured.ByLoad()
	if o.Quick {
		loads = telling(measured)
	}
	if len(loads) == 0 {
		return x, nil
	}
	samples := samplesOf(dir)
	left := mostQuickly
	for _, i := range loads {
		p, asked := point(dir, measured, i, samples[int32(i)], d, o, &left)
		if len(x.Points) > 0 && !asked && d != nil && o.Quick {
			break // the first tells what there is to tell quickly
		}
		x.Points = append(x.Points, p)
	}
	x.Over = reigns(x.Points)
	return x, nil
}

// telling are the points of a run that its reader asks about: the first by load that does
// not meet its objective, or is more than what is served. Of a load that is served within
// its objective nothing has to be explained.
func telling(measured *result.Run) (list []int) {
	for _, i := range measured.ByLoad() {
		p := &measured.Points[i]
		if p.Verdict == result.Invalid || p.Requests.OK == 0 {
			continue
		}
		if p.SLO != nil && p.SLO.Met == result.No || p.SLO == nil && p.Outcome == result.Unstable {
			if list = append(list, i); len(list) == loadsQuickly {
				return list
			}
		}
	}
	return list
}

// samplesOf are what a run's records have of its server and its GPUs, by points. What
// cannot be read is not known.
func samplesOf(dir string) map[int32]*telemetry.Samples {
	of := map[int32]*telemetry.Samples{}
	for x, err := range record.Samples(dir) {
		if err != nil {
			break
		}
		if x.Source == record.SourceClient || x.Source == record.SourceHost {
			continue
		}
		if of[x.Point] == nil {
			of[x.Point] = new(telemetry.Samples)
		}
		of[x.Point].Add(x.Source, telemetry.Signal(x.Name), x.T, x.Value)
	}
	return of
}

// deployment is what served, nil where that is not known, with the reason.
func deployment(measured *result.Run, spec string) (*deploy.Deployment, string, error) {
	if spec == "" {
		_, name, embedded := strings.Cut(measured.Target.Spec, ":")
		if measured.Target.Kind == "http" || !embedded {
			return nil, "what served is not known: --deployment MODEL@GPU lets twins of it say what would help", nil
		}
		spec = name
	} else if kind, name, ok := strings.Cut(spec, ":"); ok && (kind == "sim" || kind == "mock") {
		spec = name
	}
	if fixed, _, _ := strings.Cut(spec, "?"); fixed == "" || fixed == "fixed" {
		return nil, "fixed latencies have no hardware that could be short", nil
	}
	d, err := deploy.Parse(spec)
	return d, "", err
}

// usual are the symptoms of a load that has no objective, or meets it.
var usual = []explain.Symptom{{Metric: metric.TTFT, Of: "p90"}, {Metric: metric.TPOT, Of: "mean"}, {Metric: metric.Stall, Of: "p90"}}

// symptoms are those of a point: the limits that it does not meet, else the usual ones.
func symptoms(p *result.Point) (list []explain.Symptom) {
	if p.SLO != nil && p.SLO.Met == result.No {
		for _, l := range p.SLO.Limits {
			if l.Met == result.Yes || !slices.Contains([]metric.Name{metric.TTFT, metric.TPOT, metric.Stall, metric.E2E}, l.Metric) {
				continue
			}
			s := explain.Symptom{Metric: l.Metric, Of: "p90"}
			switch {
			case l.Percentile == 50, l.Percentile == 95, l.Percentile == 99:
				s.Of = fmt.Sprintf("p%.0f", l.Percentile)
			case l.Percentile > 95 || l.Percentile == 0:
				s.Of = "p99"
			}
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	return usual
}

// point explains one; left is how many tokens twins may still have to serve quickly. asked
// says whether any were.
func point(dir string, measured *result.Run, i int, samples *telemetry.Samples, d *deploy.Deployment, o Options, left *int) (_ Point, asked bool) {
	p := &measured.Points[i]
	out := pointOf(measured, i)
	r, err := predict.ReadRun(dir, int32(i))
	if err != nil {
		out.NoFinding = "the records tell nothing: " + say.Plain(err.Error())
		return out, false
	}
	n, tokens, effort := mostAsked, askedTokens, predict.Thorough
	if o.Quick {
		n, tokens, effort = askedQuickly, tokensQuickly, predict.Brief
	}
	seen := r.Seen()
	if d != nil {
		out.Engine = ""
		if d.Software == deploy.SGLang {
			out.Engine = explain.SGLang
		}
	}
	known := explain.Facts{}
	told(known, measured, p, d)
	toldByServer(known, p, samples)
	var what *predict.WhatIf
	if first := few(seen, n, tokens); d != nil && !(o.Quick && through(seen, first) > *left) {
		*left -= through(seen, first)
		held := known
		if first < measuredOf(seen) { // twins that see a part of the load are not held against the server's means of all of it: of a queue that grows they are others
			held = clientsOf(known)
		}
		what = r.First(first).WhatIf(d, held, effort)
	}
	for _, s := range symptoms(p) {
		c := explain.Case{Symptom: s, Facts: explain.Observe(s, seen), Unasked: d != nil && what == nil, Engine: out.Engine}
		var ok bool
		if c.Value, ok = explain.Measure(s, seen); !ok {
			continue
		}
		for signal, reading := range known {
			c.Facts[signal] = reading
		}
		if what != nil {
			c.Twin = what.Of(s)
		}
		out.Symptoms = append(out.Symptoms, explain.Diagnose(&c))
	}
	if len(out.Symptoms) == 0 {
		out.NoFinding = "no answer was streamed: times of tokens are not known"
	}
	return out, what != nil
}

// engineOf is what served a run, as far as it is known to call settings otherwise than vLLM.
func engineOf(run *result.Run) string {
	_, settings, _ := strings.Cut(run.Target.Spec, "?")
	if run.Target.Server["engine"] == explain.SGLang || run.Target.Kind != "http" && slices.Contains(strings.Split(settings, "&"), "engine="+explain.SGLang) {
		return explain.SGLang
	}
	return ""
}

// Name is what a cause is called of the point's server.
func (p *Point) Name(c explain.Cause) string { return explain.InWords(p.Engine, string(c)) }

// through is how many tokens of answers there are up to so many measured requests, those
// of the warm-up included: what each twin has to serve.
func through(seen []explain.Request, measured int) (tokens int) {
	for i := range seen {
		if seen[i].Measured {
			if measured--; measured < 0 {
				break
			}
		}
		tokens += seen[i].Output
	}
	return tokens
}

// few is how many measured requests have at most so many tokens of answers, at most n.
func few(seen []explain.Request, n, tokens int) (count int) {
	for i := range seen {
		if !seen[i].Measured {
			continue
		}
		if tokens -= seen[i].Output; count == n || tokens < 0 && count >= 20 {
			break
		}
		count++
	}
	return max(count, 1)
}

// measuredOf is how many requests are of the window.
func measuredOf(seen []explain.Request) (n int) {
	for i := range seen {
		if seen[i].Measured {
			n++
		}
	}
	return n
}

// clientsOf are the facts that no server told.
func clientsOf(f explain.Facts) explain.Facts {
	return maps.Collect(func(yield func(explain.Signal, explain.Reading) bool) {
		for signal, reading := range f {
			if reading.From != explain.FromServer && !yield(signal, reading) {
				return
			}
		}
	})
}

// toldByServer are the facts of its metrics within the window.
func toldByServer(f explain.Facts, p *result.Point, samples *telemetry.Samples) {
	if samples == nil {
		return
	}
	t0 := int64(p.Seconds.Warmup * 1e9)
	t1 := t0 + int64(p.Seconds.Window*1e9)
	w := samples.Window(t0, t1)
	// What twins are held against is of the whole load, which they replay.
	whole := samples.Window(0, t1+int64(p.Seconds.Drain*1e9))
	for signal := range w.Gauges {
		w.Gauges[signal] = whole.Gauges[signal]
	}
	for _, signal := range []telemetry.Signal{telemetry.QueueSum, telemetry.QueueCount, telemetry.PrefillSum, telemetry.PrefillCount, telemetry.Preemptions, telemetry.Requests} {
		if x, ok := whole.Growth(signal); ok && w.Counters != nil {
			w.Counters[signal] = x
		}
	}
	if x, ok := p.Server["foreign_share"]; ok { // of the whole load: what crosses the window's edges is in both counts
		f.Set(explain.ForeignShare, x, "share", explain.FromServer)
	}
	f.AddServer(&w)
}

// told are the facts besides the client's own times.
func told(f explain.Facts, measured *result.Run, p *result.Point, d *deploy.Deployment) {
	if n := p.Requests.Due; n > 0 {
		f.Set(explain.Unanswered, float64(n-p.Requests.OK)/float64(n), "share", explain.FromRecords)
	}
	if r := p.Retries; r != nil && p.Requests.OK > 0 {
		f.Set(explain.SentAgain, float64(r.LaterOK)/float64(p.Requests.OK), "share", explain.FromRecords)
	}
	if x, ok := p.Server["queue_ms"]; ok {
		f.Set(explain.QueueMean, x, "ms", explain.FromServer)
	}
	if x, ok := p.Server["prefix_hit_share"]; ok {
		f.Set(explain.HitShare, x, "share", explain.FromServer)
	}
	if x, ok := p.Server["planned_hit_share"]; ok {
		f.Set(explain.PlannedHits, x, "share", explain.FromRecords)
	}
	if x, ok := p.Window["cached_share"]; ok {
		f.Set(explain.CachedShare, x, "share", explain.FromRecords)
	}
	if g := p.Growth; g != nil && g.Deficit > 0 {
		f.Set(explain.Growing, g.Deficit, "share", explain.FromRecords)
	}
	number := func(name string) float64 {
		x, err := strconv.ParseFloat(measured.Target.Server[name], 64)
		if err != nil {
			return math.NaN()
		}
		return x
	}
	seats, tokens := number("max_num_seqs"), number("max_num_batched_tokens")
	if d != nil {
		seats, tokens = float64(d.DataParallel*d.Settings.MaxNumSeqs), float64(d.Settings.MaxNumBatchedTokens)
	}
	if !math.IsNaN(seats) {
		f.Set(explain.MaxSeats, seats, "", explain.FromStated)
	}
	if !math.IsNaN(tokens) {
		f.Set(explain.MaxTokens, tokens, "", explain.FromStated)
	}
}

// reigns are the stretches of loads, which are in order, at which a symptom has one
// cause. Loads at which it is not known end none.
func reigns(points []Point) (list []Reign) {
	if len(points) < 2 {
		return nil
	}
	var of []explain.Symptom
	for i := range points {
		for k := range points[i].Symptoms {
			if s := points[i].Symptoms[k].Symptom; !slices.Contains(of, s) {
				of = append(of, s)
			}
		}
	}
	for _, s := range of {
		var last *Reign
		for i := range points {
			p := &points[i]
			k := slices.IndexFunc(p.Symptoms, func(d explain.Diagnosis) bool { return d.Symptom == s })
			if k < 0 || p.Symptoms[k].Primary.Cause == explain.Unknown {
				continue
			}
			cause := p.Symptoms[k].Primary.Cause
			if last != nil && last.Cause == cause {
				last.To = p.Load
				continue
			}
			list = append(list, Reign{s, cause, p.Load, p.Load})
			last = &list[len(list)-1]
		}
	}
	return list
}

// Changed says what limits the second of two runs otherwise than the first, at the loads
// that both measured: as the runs have it with them, else as it is worked out. What is not
// known of either is no change, and runs whose records are gone tell nothing.
func Changed(dirA string, a *result.Run, dirB string, b *result.Run) (list []Change) {
	both := 0
	for _, i := range a.ByLoad() {
		k := slices.IndexFunc(b.Points, func(p result.Point) bool {
			return p.Load.Loop == a.Points[i].Load.Loop && p.Load.Value() == a.Points[i].Load.Value()
		})
		if k < 0 {
			continue
		}
		if both++; both > loadsQuickly {
			break
		}
		of := [2]Point{}
		for side, x := range []struct {
			dir string
			run *result.Run
			at  int
		}{{dirA, a, i}, {dirB, b, k}} {
			of[side] = known(x.dir, x.run, x.at)
		}
		for _, was := range of[0].Symptoms {
			for _, is := range of[1].Symptoms {
				from, to := was.Primary.Cause, is.Primary.Cause
				if was.Symptom == is.Symptom && from != to && from != explain.Unknown && to != explain.Unknown {
					list = append(list, Change{was.Symptom, of[0].Load, of[0].Name(from), of[1].Name(to)})
				}
			}
		}
	}
	return list
}

// known is what limits one load: as the run has it with it, else as it is worked out.
func known(dir string, run *result.Run, at int) Point {
	if x := Stored(dir, run); x != nil {
		for i := range x.Points {
			if x.Points[i].Index == at {
				return x.Points[i]
			}
		}
	}
	d, _, err := deployment(run, "")
	if err != nil {
		return pointOf(run, at)
	}
	left := mostQuickly
	p, _ := point(dir, run, at, samplesOf(dir)[int32(at)], d, Options{Quick: true}, &left)
	return p
}

// Change is a symptom that another cause limits than before.
type Change struct {
	Symptom  explain.Symptom
	Load     string
	From, To string // causes, as each server calls them
}
