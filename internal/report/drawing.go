package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload"
)

// Drawing holds what is known of the requests of a workload, for plots.
type Drawing struct {
	Name, About string
	Facts       []string // sentences
	Parts       []DrawnPart
	SameAs      []string // settings that ask for the same, none where nothing does
}

// DrawnPart is a class of a workload's requests, or all of them. Values of a distribution
// are in order; where they are drawn there are a few thousand.
type DrawnPart struct {
	Name, What       string // "" for all of them
	Prompts, Answers []float64
	Pairs            [][2]float64 // the prompt and the answer of some requests
	Times            []float64    // seconds at which requests come
	Gaps             []float64    // between them, milliseconds
}

const (
	drawnValues = 4096
	drawnPairs  = 2000
)

// spreadOf are quantiles of lengths, each for as many requests as the others.
func spreadOf(l workload.Lengths, more int) (values []float64) {
	for i := range drawnValues {
		values = append(values, float64(more+l.Quantile((float64(i)+.5)/drawnValues)))
	}
	return values
}

// pairsOf are the lengths of requests as they would be asked.
func pairsOf(c workload.RandomConfig) (pairs [][2]float64) {
	r, err := workload.NewRandom(c)
	if err != nil {
		return nil
	}
	for i := range int64(drawnPairs) {
		q, err := r.At(i)
		if err != nil {
			return nil
		}
		pairs = append(pairs, [2]float64{float64(q.Input), float64(q.Output)})
	}
	return pairs
}

// DrawPreset is a workload that has a name.
func DrawPreset(p workload.Preset) Drawing {
	in, out := presetLengths(p)
	d := Drawing{Name: p.Name, About: p.About, Facts: presetFacts(p), SameAs: presetSettings(p)}
	d.Parts = []DrawnPart{{
		Prompts: spreadOf(in, p.Prefix), Answers: spreadOf(out, 0),
		Pairs: pairsOf(workload.RandomConfig{Input: in, Output: out, Prefix: p.Prefix, PrefixShare: p.PrefixShare, Correlation: p.Correlation}),
	}}
	return d
}

// DrawMix is one of several classes of requests.
func DrawMix(name, about string, classes []MixedClass) Drawing {
	d := Drawing{Name: name, About: about, Facts: []string{"classes of requests: " + say.Count(len(classes))}}
	for _, c := range classes {
		part := DrawnPart{Name: c.Name, What: c.What}
		if !c.Input.IsZero() {
			part.Prompts, part.Answers = spreadOf(c.Input, c.Prefix), spreadOf(c.Output, 0)
			part.Pairs = pairsOf(workload.RandomConfig{Input: c.Input, Output: c.Output, Prefix: c.Prefix, PrefixShare: 1})
		}
		d.Parts = append(d.Parts, part)
	}
	return d
}

// DrawFile is a trace or a file of prompts.
func DrawFile(name string, t *workload.Trace) Drawing {
	d := Drawing{Name: name, About: say.Plural(t.Requests(), "request") + " of " + t.Format}
	var part DrawnPart
	values := func(column []int32) (known []float64) {
		for _, x := range column {
			if x >= 0 {
				known = append(known, float64(x))
			}
		}
		slices.Sort(known)
		return known
	}
	part.Prompts, part.Answers = values(t.Input), values(t.Output)
	step := max(1, (len(t.Input)+drawnPairs-1)/drawnPairs)
	for i := 0; i < min(len(t.Input), len(t.Output)); i += step {
		if t.Input[i] >= 0 && t.Output[i] >= 0 {
			part.Pairs = append(part.Pairs, [2]float64{float64(t.Input[i]), float64(t.Output[i])})
		}
	}
	for i, at := range t.At {
		part.Times = append(part.Times, float64(at-t.At[0])/1e9)
		if i > 0 {
			part.Gaps = append(part.Gaps, float64(at-t.At[i-1])/1e6)
		}
	}
	slices.Sort(part.Gaps)
	if t.Counted {
		d.Facts = append(d.Facts, "prompt tokens as counted here: a server's tokenizer may differ")
	}
	if r := t.LengthCorrelation(); !math.IsNaN(r) {
		d.Facts = append(d.Facts, "rank correlation of prompts and answers "+say.Decimal(r, 2))
	}
	if n := len(part.Times); n > 1 && part.Times[n-1] > 0 {
		d.Facts = append(d.Facts, fmt.Sprintf("%s requests/s over %s", say.Quantity(float64(n-1)/part.Times[n-1]), say.Seconds(part.Times[n-1])))
	}
	if left := t.Records - t.Requests(); left > 0 {
		d.Facts = append(d.Facts, say.Plural(left, "row")+" left out: pitot workload lint says why")
	}
	d.Parts = []DrawnPart{part}
	return d
}

// presetFacts returns the facts about a preset besides its lengths.
func presetFacts(p workload.Preset) (facts texts) {
	facts.addText("hardest on "+p.Stresses, "from "+p.Source)
	switch {
	case p.Prefix > 0 && p.PrefixShare > 0:
		facts.addFormat("%s tokens in front of every prompt, the same for %s of the requests; --input follows them", say.Count(p.Prefix), say.Percent(p.PrefixShare))
	case p.Prefix > 0:
		facts.addFormat("%s tokens in front of every prompt, of its own; --input follows them", say.Count(p.Prefix))
	}
	if p.SLO != "" {
		facts.addText("judged by --slo " + p.SLO + " where no other is given: " + objectiveNamed(p.SLO))
		if tighter := objectiveNamed(p.SLO + "-interactive"); tighter != "" {
			facts.addText("or by --slo " + p.SLO + "-interactive: " + tighter)
		}
	}
	if a := p.Arrivals; a.Law != "" {
		facts.addFormat("in the data %s requests/s came, their counts in 1, 10 and 60 s with dispersion %s, %s and %s: --arrival '%s' is near that at this rate",
			say.Decimal(a.Rate, 2), say.Decimal(a.Dispersion[0], 2), say.Decimal(a.Dispersion[1], 1), say.Decimal(a.Dispersion[2], 1), a.Law)
	}
	if p.Correlation != 0 {
		facts.addText("rank correlation of prompts and answers " + say.Decimal(p.Correlation, 2))
	}
	return facts
}

// presetSettings are those that ask for the same.
func presetSettings(p workload.Preset) []string {
	list := texts{"--input '" + p.Input + "'", "--output '" + p.Output + "'"}
	if p.Prefix > 0 {
		list.addFormat("--prefix %d --prefix-share %s", p.Prefix, say.Exact(p.PrefixShare))
	}
	if p.Correlation != 0 {
		list.addText("--set correlation=" + say.Exact(p.Correlation))
	}
	return list
}

// QuantileTable is the table of what a drawing's distributions come to.
func (d *Drawing) QuantileTable() Table {
	t := NewTable("", "mean", "p1", "p10", "p50", "p90", "p99", "max")
	add := func(name string, values []float64, written func(float64) string) {
		if len(values) == 0 {
			return
		}
		row := []string{strings.TrimPrefix(name, ": "), written(meanOf(values))}
		for _, p := range []float64{.01, .1, .5, .9, .99, 1} {
			row = append(row, written(valueAt(values, p)))
		}
		t.AddRow(row...)
	}
	whole := func(x float64) string { return say.Count(int64(math.Round(x))) }
	for _, p := range d.Parts {
		name := ""
		if p.Name != "" {
			name = p.Name + ": "
		}
		add(name+"prompt tokens", p.Prompts, whole)
		add(name+"answer tokens", p.Answers, whole)
		add(name+"gaps between arrivals, ms", p.Gaps, say.Quantity)
	}
	return t
}

func meanOf(values []float64) (mean float64) {
	for _, x := range values {
		mean += x / float64(len(values))
	}
	return mean
}

// valueAt is the value behind a share of some, in order.
func valueAt(values []float64, share float64) float64 {
	return values[min(int(share*float64(len(values))), len(values)-1)]
}
