// Package explain says what limits a server at a load: which cause, taken away, would
// make a metric better, with the evidence, what was excluded and how, how sure that is,
// what would confirm it and which setting to try. It works on facts that were read
// elsewhere, at the client, in the server's metrics, on the twin, and never on what only an
// engine knows. A fact that is not known is not there, which is something else than 0.
// It has no clock, no file and no socket.
package explain

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/stats"
)

// Cause names a thing that can limit: something that could be more, or cost nothing.
type Cause string

// The causes. Unknown is none of them.
const (
	Unknown     Cause = "not known"
	Compute     Cause = "compute"
	Bandwidth   Cause = "memory bandwidth"
	Host        Cause = "host overhead"
	Links       Cause = "links"
	Seats       Cause = "max_num_seqs"
	KVCache     Cause = "KV cache"
	Budget      Cause = "max_num_batched_tokens"
	PrefixCache Cause = "prefix cache"
	Frontend    Cause = "API server"
	Network     Cause = "network"
	Proxy       Cause = "proxy"
	Throttling  Cause = "throttling"
	Foreign     Cause = "other clients"
	Client      Cause = "client"
	Freezes     Cause = "freezes"
	Hold        Cause = "max-in-flight"
	Steps       Cause = "decode steps"
)

// Symptom is the statistic of a metric that is too large.
type Symptom struct {
	Metric metric.Name `json:"metric"`
	Of     string      `json:"of"` // "mean", "p50", "p90", "p99"
}

// String returns the symptom as an SLO writes it: "p99 ttft".
func (s Symptom) String() string { return s.Of + " " + string(s.Metric) }

// Confidence says how sure a finding is. `go run ./bench/why` says how often each is right on
// servers whose truth is known.
type Confidence string

// The three.
const (
	Sure     Confidence = "sure"
	Likely   Confidence = "likely"
	Possible Confidence = "possible"
)

// Finding is one cause of a symptom, with what speaks for it.
type Finding struct {
	Cause      Cause      `json:"regime"`
	Claim      string     `json:"claim"`
	Confidence Confidence `json:"confidence,omitempty"` // "" of what is not known
	// Gain is the share of the symptom that would go if the cause were relieved: a rate a
	// third higher, a limit twice as high, a cost of nothing.
	Gain     float64    `json:"gain"`
	Evidence []Evidence `json:"evidence"`
	Excluded []Excluded `json:"excluded,omitempty"`
	Untested []Untested `json:"not_tested,omitempty"`
	Confirm  string     `json:"confirm"` // a command, or what to look at
	Try      *Trial     `json:"try,omitempty"`
	// Alike says of a cause beside the first that it brings as much as that within chance:
	// another schedule of the same load may name it first.
	Alike bool `json:"alike,omitempty"`
}

// Evidence is a number and where it was read.
type Evidence struct {
	Signal Signal  `json:"signal"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	From   string  `json:"from"`
}

// LowerBy is the unit of evidence that is the share by which a change lowers the symptom.
const LowerBy = "share lower"

// Excluded is a cause that is ruled out: a test that would have shown it bounds its share.
type Excluded struct {
	Cause    Cause      `json:"regime"`
	AtMost   float64    `json:"at_most"`  // share of the symptom
	Evidence []Evidence `json:"evidence"` // what was tested
}

// Untested is a cause that is neither found nor ruled out.
type Untested struct {
	Cause  Cause    `json:"regime"`
	Lacks  []Signal `json:"lacks,omitempty"`   // what a test of it needs and is not known
	AtMost float64  `json:"at_most,omitempty"` // else the share that tests leave to it
}

// Part is a part of the mean time that a symptom is of.
type Part struct {
	Name  PartName `json:"part"`
	MS    float64  `json:"ms"`
	Share float64  `json:"share"`
}

// PartName says where the time is spent.
type PartName string

// The parts. Outside is between the client and the engine.
const (
	HeldPart    PartName = "held by the client"
	LagPart     PartName = "send lag"
	ConnectPart PartName = "connection"
	NetworkPart PartName = "network"
	OutsidePart PartName = "API server and proxies"
	QueuePart   PartName = "queue"
	PrefillPart PartName = "prefill"
	DecodePart  PartName = "decode"
)

// latencyParts are those of the mean time to the first token, or from there to the last; nil where
// the engine does not tell of the same requests.
func latencyParts(of metric.Name, f Facts) (list []Part) {
	sum := 0.0
	add := func(name PartName, ms float64) {
		sum += max(ms, 0)
		list = append(list, Part{Name: name, MS: max(ms, 0)})
	}
	switch {
	case !ownTimes(f):
		return nil
	case of == metric.TTFT && f.hasAll(QueueMean, PrefillMean, TTFTMean):
		add(HeldPart, f.Get(HeldMean))
		add(LagPart, f.Get(LagMean))
		add(ConnectPart, f.Get(ConnectMean))
		add(NetworkPart, min(f.Get(RoundTrip), timeOutsideEngine(f)))
		add(OutsidePart, timeOutsideEngine(f)-f.Get(RoundTrip))
		add(QueuePart, f.Get(QueueMean))
		add(PrefillPart, f.Get(PrefillMean))
	case of == metric.TPOT && f.hasAll(DecodeMean, AnswerMean):
		add(OutsidePart, f.Get(AnswerMean)-f.Get(DecodeMean))
		add(DecodePart, f.Get(DecodeMean))
	}
	for i := range list {
		list[i].Share = list[i].MS / max(sum, 1e-9)
	}
	return list
}

// Trial is a setting to change, and by what share the twin expects the symptom to fall.
type Trial struct {
	Knob string  `json:"knob"`
	From string  `json:"from,omitempty"`
	To   string  `json:"to,omitempty"`
	Gain float64 `json:"expected_gain"` // 0: the twin was not asked
	// ChangesAnswers says that it makes another model of it, whose answers have to be
	// judged again.
	ChangesAnswers bool `json:"changes_answers,omitempty"`
}

// Relieves reports whether a setting relieves a cause. Weights of fewer bits are read and
// multiplied faster, leave more memory to the KV cache, and take less power; they are launched,
// sent and waited for as before.
func (t *Trial) Relieves(c Cause) bool {
	return t.Knob != "quantization" || slices.Contains([]Cause{Bandwidth, Compute, KVCache, Throttling}, c)
}

// Twin holds what twins of the server do with the requests that were measured. Each twin is as good
// a guess as the others.
type Twin struct {
	Name    string            // "llama-3.1-8b@h100"
	Value   float64           // ms, of the symptom: the median of them; 0 where they were asked for another tail
	Off     float64           // how far the best of them is from what was measured, the mean of |ln(twin ÷ measured)|
	Slower  float64           // factor on the steps of the stated deployment that makes twins as slow as the server
	AtTwice float64           // factor on the symptom at twice the load, the median of the twins; 0 where they were not asked
	Reliefs map[Cause]Relief  // of the causes that it models
	Trials  map[Cause][]Trial // the best first
}

// Relief holds the effect of taking a cause away.
type Relief struct {
	Gain  float64 // share of the symptom that goes, the median of the twins
	Among float64 // share of the twins in which it is among the causes: at least half of the most that any brings, and at least [Least]
	// Chances are the gains of the nearest twin on requests drawn again, the same ones for
	// every cause; nil where they are not known.
	Chances []float64
}

// Least is the gain from which on something is a cause.
const Least = 0.05

// wellSeen is the gain from which on a cause that was measured goes before those that are
// reckoned, where no twin was asked.
const wellSeen = 0.2

// Case holds what to diagnose.
type Case struct {
	Symptom Symptom
	Value   float64 // ms, as measured
	Facts   Facts
	Twin    *Twin // nil where the server's model or accelerator is not known, or no twin was asked
	Unasked bool  // twins could be asked, and were not: it takes longer
	Queued  bool  // requests waited for others to end, or came faster than they were served
	// Longer is the command that measures the load for longer, "" where none is known; Less
	// are those of what was not measured yet, half the load and one request at a time, each
	// with what it is.
	Longer string
	Less   []string
	Names  Names // of the server's engine
}

// Diagnosis holds what limits one symptom: the finding to act on, and others that matter as well.
type Diagnosis struct {
	Symptom Symptom   `json:"symptom"`
	Value   float64   `json:"value_ms,omitempty"`          // 0 where the run's report withholds it
	AtTwice float64   `json:"at_twice_the_load,omitempty"` // factor on it that twins expect of twice the load; 0 where it is not known
	Parts   []Part    `json:"parts,omitempty"`
	Primary Finding   `json:"primary"`
	Also    []Finding `json:"also,omitempty"`
}

// little is the share by which twice the load may lengthen what the load does not limit.
const little = 1.0 / 3

// IsLightLoad says that the load does not limit the symptom: it is made of the work of a
// request's own steps, and twice the load would hardly lengthen it.
func (d *Diagnosis) IsLightLoad() bool {
	return d.AtTwice > 0 && d.AtTwice < 1+little && (d.Primary.Cause == Unknown || slices.Contains(work, d.Primary.Cause))
}

// work are the causes that a request's own way through the server has, with others beside
// it or not. Other than a limit that a setting lifts they always share what it takes.
var work = []Cause{Frontend, Host, Links, Compute, Bandwidth}

// Alike are the primary cause and those that bring as much within chance, in the order in
// which causes are asked, which does not hang on chance; nil where it is not known.
func (d *Diagnosis) Alike() (list []Cause) {
	for _, c := range causes {
		if c == d.Primary.Cause || slices.ContainsFunc(d.Also, func(f Finding) bool { return f.Alike && f.Cause == c }) {
			list = append(list, c)
		}
	}
	return list
}

// candidate is a cause with all that is known for and against it.
type candidate struct {
	cause    Cause
	gain     float64
	among    float64 // of twins; 1 of what was measured
	measured bool
	chances  []float64
	evidence []Evidence
	behind   bool      // a larger part of the symptom goes before
	out      *Excluded // it is ruled out
	open     *Untested // it could not be
}

// isSeparate says that one cause brings more than another by more than so many standard errors
// of the difference, as requests drawn again tell it. Where they tell nothing it is so.
func (x *candidate) isSeparate(o *candidate, errors float64) bool {
	if len(x.chances) == 0 || len(x.chances) != len(o.chances) {
		return true
	}
	n, sum, squares := float64(len(x.chances)), 0.0, 0.0
	for i := range x.chances {
		d := x.chances[i] - o.chances[i]
		sum += d
		squares += d * d
	}
	return x.gain-o.gain > errors*math.Sqrt(max(squares-sum*sum/n, 0)/(n-1))
}

// Diagnose weighs the causes of a case.
func Diagnose(c *Case) Diagnosis {
	d := Diagnosis{Symptom: c.Symptom, Value: c.Value, Parts: latencyParts(c.Symptom.Metric, c.Facts)}
	// Behind a queue twice the load says nothing of less: on the plateau of a full batch it changes
	// no step, and of requests that all came too early the wait is nearly the same.
	if c.Twin != nil && c.Twin.Off <= farOff && !c.Queued {
		d.AtTwice = c.Twin.AtTwice
	}
	all := candidates(c)
	var excluded []Excluded
	var untested []Untested
	var open []candidate
	most, misled := 0.0, false // what is left brings; the twins were led by what it is not
	for _, x := range all {
		switch {
		case x.out != nil:
			excluded = append(excluded, *x.out)
			misled = misled || c.Twin != nil && c.Twin.Reliefs[x.cause].Gain >= Least
		case x.gain >= Least:
			open = append(open, x)
			most = max(most, x.gain)
		case x.open != nil:
			untested = append(untested, *x.open)
		}
	}
	for i := range open {
		if x := &open[i]; misled && x.gain >= most/2 {
			x.among = max(x.among, 0.75)
		}
	}
	// What is reckoned of the server from means of the client's times has the client's own
	// delays in it: what was seen goes before.
	seen := func(x *candidate) int {
		if x.behind {
			return -1
		}
		if c.Twin == nil && x.measured && x.gain >= wellSeen {
			return 1
		}
		return 0
	}
	stats.SortStable(open, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(seen(&b), seen(&a)), cmp.Compare(b.rankWeight(), a.rankWeight()))
	})
	limitFirst(open)
	sure, why := Possible, doubtText(c, open)
	if why == "" {
		sure = confidenceInFirst(c, open)
		if c.Unasked && sure == Possible && !open[0].measured { // a guess beside twins that would know
			why = "what the client saw fits several causes, and no twin was simulated"
		}
	}
	if why != "" {
		d.Primary = notKnown(c, why, open)
		d.Primary.Excluded, d.Primary.Untested, d.Also = excluded, untested, c.heldBeside(nil, nil)
		return d
	}
	d.Primary = c.finding(&open[0], sure)
	d.Primary.Excluded, d.Primary.Untested = excluded, untested
	for i := range open[1:] {
		if x := &open[1+i]; x.gain >= open[0].gain/2 && x.among >= 0.5 {
			f := c.finding(x, Possible)
			f.Alike = !x.behind && slices.Contains(work, x.cause) && slices.Contains(work, open[0].cause) && !open[0].isSeparate(x, toldApart)
			d.Also = append(d.Also, f)
		}
	}
	d.Also = append(d.Also, c.heldBeside(open[:1], d.Also)...)
	return d
}

// heldBeside is the finding that the GPU's clock was held down, where it was, and neither what
// is claimed nor what stands beside it says so: whatever else limits, the GPU is slower
// than it could be.
func (c *Case) heldBeside(claimed []candidate, also []Finding) []Finding {
	if !isClockHeld(c.Facts) || len(claimed) > 0 && claimed[0].cause == Throttling || slices.ContainsFunc(also, func(f Finding) bool { return f.Cause == Throttling }) {
		return nil
	}
	x := candidate{cause: Throttling, evidence: c.Facts.evidenceOf([]Signal{ClockShare})}
	if c.Facts.hasAll(ClockShare) {
		x.gain = slowClockShare(c.Facts)
	}
	return []Finding{c.finding(&x, Possible)}
}

// limitFirst puts a limit that a setting lifts before the host's costs, where both are
// causes: the host is relieved of all it costs, which no server can be, and a limit only
// doubled.
func limitFirst(open []candidate) {
	if len(open) == 0 || open[0].cause != Host {
		return
	}
	for i := range open {
		if x := open[i]; slices.Contains(limits, x.cause) && x.gain >= nearly*open[0].gain && x.among >= agree {
			copy(open[1:i+1], open[:i])
			open[0] = x
			return
		}
	}
}

// limits are the causes that a setting lifts.
var limits = []Cause{Seats, KVCache, Budget, PrefixCache}

// nearly is the share of the host's gain from which on a limit is put before it: half
// would be as true, and is more often taken for it by chance.
const nearly = 0.6

// rankWeight orders causes: by what they bring, and by how many twins agree.
func (x *candidate) rankWeight() float64 { return x.gain * (0.25 + 0.75*x.among) }

// candidates are all causes of which anything is known.
func candidates(c *Case) (list []candidate) {
	facts := maps.Clone(c.Facts)
	if facts == nil {
		facts = Facts{}
	}
	if c.Twin != nil && c.Twin.Value > 0 && c.Twin.Off < farOff {
		facts.Set(OnTwins, c.Twin.Value, "ms", FromTwins)
	}
	for _, cause := range causes {
		if cause == Hold && !facts.hasAll(MostInFlight) { // there is nothing that could
			continue
		}
		x := candidate{cause: cause, gain: -1}
		if c.Twin != nil {
			if r, ok := c.Twin.Reliefs[cause]; ok {
				// Of the twins' time, which has nothing in it of what the client waits before it
				// sends.
				x.gain, x.among, x.chances = r.Gain*max(1-facts.Get(HeldShare)-facts.Get(LagShare), 0), r.Among, r.Chances
				x.evidence = append(x.evidence, Evidence{Signal(wordings()[cause].Relief), r.Gain, LowerBy, FromTwins})
			}
		}
		bound, tested, missing := math.Inf(1), (*rule)(nil), []Signal(nil)
		for i := range rules {
			r := &rules[i]
			if r.cause != cause || !slices.Contains(r.of, c.Symptom.Metric) {
				continue
			}
			if lacks := facts.missingSignals(r.needs); len(lacks) > 0 {
				if (r.kind == atMost || r.kind == exact) && (missing == nil || len(lacks) < len(missing)) {
					missing = lacks
				}
				continue
			}
			share := r.share(facts, c.Symptom.newFigure(c.Value))
			switch {
			case r.kind == second:
				x.behind = x.behind || share > 0
				continue
			case r.kind == estimate && x.gain >= 0:
				x.evidence = append(x.evidence, facts.evidenceOf(r.needs)...)
			case r.kind != atMost && (r.kind != estimate || c.Twin == nil):
				x.gain, x.among, x.measured = max(share, x.gain, 0), 1, r.kind != estimate
				x.evidence = append(x.evidence, facts.evidenceOf(r.needs)...)
			}
			if (r.kind == atMost || r.kind == exact) && share < bound {
				bound, tested = max(share, 0), r
			}
		}
		switch {
		case tested != nil && bound <= Least:
			x.out = &Excluded{cause, bound, c.uniqueEvidence(facts.evidenceOf(tested.needs))}
		case tested != nil && tested.kind != exact:
			if !slices.Contains(limits, cause) { // a queue is longer than its mean tells
				x.gain = min(x.gain, bound)
			}
			x.open = &Untested{Cause: cause, AtMost: min(bound, unbounded)}
		case missing != nil && !c.wasTried(cause):
			x.open = &Untested{Cause: cause, Lacks: missing}
		}
		if x.gain >= 0 || x.out != nil || x.open != nil {
			list = append(list, x)
		}
	}
	return list
}

// finding puts a candidate into words.
func (c *Case) finding(x *candidate, sure Confidence) Finding {
	w := wordingFor(c.Names, x.cause, c.Symptom.Metric, c.Facts)
	if x.cause == Throttling {
		x.evidence = append(x.evidence, c.Facts.evidenceOf([]Signal{ByPower, ByHeat, PowerLimit})...)
	}
	f := Finding{Cause: x.cause, Claim: w.Name + ": " + w.Claim, Confidence: sure, Gain: x.gain, Evidence: c.uniqueEvidence(x.evidence), Confirm: w.Confirm}
	if c.Twin != nil {
		for i, t := range c.Twin.Trials[x.cause] {
			if t.Gain < Least {
				break
			}
			if t.Relieves(x.cause) {
				f.Try = &t
				break
			}
			if i == 0 && f.Confidence == Sure {
				f.Confidence = Likely // what helps most helps against something else
			}
		}
	}
	if f.Try == nil && w.Knob != "" && !c.wasTried(x.cause) {
		f.Try = &Trial{Knob: w.Knob, To: w.To, ChangesAnswers: w.Knob == "quantization"}
	}
	return f
}

// wasTried says that twins were relieved of a cause: a setting that would bring anything is
// among what they tried, and of others, as of a GPU that does not compute in 8 bits, or of
// half as many GPUs than the model fits on, nothing follows.
func (c *Case) wasTried(cause Cause) bool {
	if c.Twin == nil {
		return false
	}
	_, asked := c.Twin.Reliefs[cause]
	return asked
}

// uniqueEvidence leaves out what stands there already: several rules may rest on one fact.
func (c *Case) uniqueEvidence(list []Evidence) (out []Evidence) {
	for _, e := range list {
		e.Signal = Signal(InWords(c.Names, string(e.Signal)))
		if !slices.ContainsFunc(out, func(o Evidence) bool { return o.Signal == e.Signal }) {
			out = append(out, e)
		}
	}
	return out
}

// UnknownBecause begins the claim of a finding that names no cause.
const UnknownBecause = "not known, because "

// notKnown says why, and what would tell.
func notKnown(c *Case, why string, open []candidate) Finding {
	why = InWords(c.Names, why)
	f := Finding{Cause: Unknown, Claim: UnknownBecause + why, Confirm: mostTellingTest(c, open)}
	for i := range open[:min(len(open), 2)] {
		f.Evidence = append(f.Evidence, c.uniqueEvidence(open[i].evidence)...)
	}
	return f
}

// mostTellingTest is the measurement that would tell most.
func mostTellingTest(c *Case, open []candidate) string {
	switch {
	case sentAgain(c):
		return "why first attempts failed, in the server's log; the same load without --retry has the latency of the others"
	case c.Twin != nil && c.Twin.Off <= farOff && len(open) == 0:
		return "nothing: it is as it has to be; a smaller model, fewer bits or another GPU would change it"
	case c.Twin == nil && c.Unasked:
		return "pitot explain with this run, which asks twins of the deployment and may take minutes"
	case c.Twin == nil && !c.Facts.hasAll(Running):
		return "say what serves with --deployment MODEL@GPU, or measure where the server's /metrics can be reached"
	case c.Twin == nil:
		return "say what serves with --deployment MODEL@GPU"
	case !c.Facts.hasAll(Running) && c.Facts.metricsRead():
		const why = "measure this load for longer: the server's metrics were read too few times while it lasted"
		if c.Longer == "" {
			return why
		}
		return why + "; " + c.Longer
	case !c.Facts.hasAll(Running):
		return "measure where the server's /metrics can be reached"
	}
	if len(c.Less) == 0 {
		return "say in --deployment all that the server was started with: twins know of nothing else"
	}
	return "measure " + strings.Join(c.Less, ", and ")
}
