package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/cost"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/slo"
)

const ms = int64(1e6)

// answer describes a streamed answer as a server gave it, in milliseconds.
type answer struct {
	id, due int64
	stamps  []int64 // of the events
	tokens  []int32 // in the events, nil if they do not say
	usage   int32   // completion tokens, Unset if not told
	first   int32   // tokens known to be in the first event, Unset if assumed
	hidden  int32
	finish  int64 // when the event with finish_reason came, 0 with the last token
}

func blankRow(id, due int64) record.Row {
	r := record.BlankRow()
	r.ID, r.Stream = id, true
	r.Due, r.Eligible, r.Ready, r.Sent = due*ms, due*ms, due*ms, due*ms
	return r
}

// frame is the answer as records.
func (a answer) frame() record.Frame {
	r := blankRow(a.id, a.due)
	var f record.Frame
	for i, at := range a.stamps {
		c := record.Chunk{Request: a.id, T: at * ms, Earliest: at * ms}
		if a.tokens != nil {
			c.Tokens = a.tokens[i]
		}
		f.Chunks = append(f.Chunks, c)
	}
	last := len(a.stamps) - 1
	r.FirstToken, r.FirstAnswer = a.stamps[0]*ms, a.stamps[0]*ms
	r.LastToken, r.Done = a.stamps[last]*ms, a.stamps[last]*ms
	if a.finish != 0 {
		r.LastToken, r.Done = a.finish*ms, a.finish*ms
	}
	r.CompletionTokens, r.FirstTokens, r.HiddenTokens = a.usage, a.first, a.hidden
	r.PromptTokens, r.InputPlanned = 100, 100
	r.Chunks, r.Finish, r.Status = int32(last+1), "length", 200
	f.Rows = []record.Row{r}
	return f
}

func failed(id, due, after int64, class string) record.Frame {
	r := blankRow(id, due)
	r.Done, r.Outcome, r.Error = (due+after)*ms, record.Failed, class
	return record.Frame{Rows: []record.Row{r}}
}

func cut(id, due, after int64) record.Frame {
	r := blankRow(id, due)
	r.Done, r.Outcome, r.Error = (due+after)*ms, record.Cut, record.ErrTimeout
	return record.Frame{Rows: []record.Row{r}}
}

func unsent(id, due int64) record.Frame {
	r := blankRow(id, due)
	r.Eligible, r.Ready, r.Sent, r.Outcome = record.Unset, record.Unset, record.Unset, record.Unsent
	return record.Frame{Rows: []record.Row{r}}
}

func window(seconds int64) Setup { return Setup{T0: 0, T1: seconds * 1000 * ms, Stamps: "kernel"} }

func fold(s Setup, frames ...record.Frame) *Fold {
	f := NewFold(s)
	for _, fr := range frames {
		f.Add(fr)
	}
	return f
}

func spec(t testing.TB, text string) slo.Spec {
	t.Helper()
	s, err := slo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// near asserts a published value.
func near(t *testing.T, name string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is nil, want %v", name, want)
	} else if math.Abs(*got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s = %v, want %v", name, *got, want)
	}
}

func TestDefinitions(t *testing.T) {
	a := answer{id: 0, due: 1000, stamps: []int64{1050, 1060, 1080, 1090}, usage: 4, first: 1}
	b := answer{id: 1, due: 2000, stamps: []int64{2100, 2130, 2160}, usage: 3, first: 1}
	p := fold(window(10), a.frame(), b.frame()).Point()
	m := p.Metrics
	near(t, "ttft p50", m.SummaryOf(metric.TTFT).P50, 50)
	near(t, "ttft max", m.SummaryOf(metric.TTFT).Max, 100)
	near(t, "ttft mean", m.SummaryOf(metric.TTFT).Mean, 75)
	near(t, "ttft sd", m.SummaryOf(metric.TTFT).SD, 25*math.Sqrt2)
	near(t, "e2e max", m.SummaryOf(metric.E2E).Max, 160)
	near(t, "generation max", m.SummaryOf(metric.Generation).Max, 60)
	near(t, "tpot min", m.SummaryOf(metric.TPOT).Min, 40.0/3)
	near(t, "tpot max", m.SummaryOf(metric.TPOT).Max, 30)
	near(t, "stall min", m.SummaryOf(metric.Stall).Min, 20)
	near(t, "stall max", m.SummaryOf(metric.Stall).Max, 30)
	near(t, "icl mean", m.SummaryOf(metric.ICL).Mean, (10+20+10+30+30)/5.0)
	near(t, "icl p50", m.SummaryOf(metric.ICL).P50, 20)
	near(t, "itl p50", m.SummaryOf(metric.ITL).P50, 20)
	near(t, "decode min", m.SummaryOf(metric.DecodeRate).Min, 1000.0/30)
	near(t, "prefill max", m.SummaryOf(metric.PrefillRate).Max, 2000)
	near(t, "output", m.SummaryOf(metric.OutputTokens).Mean, 3.5)
	near(t, "tokens per chunk", m.SummaryOf(metric.TokensPerChunk).Mean, 1)
	near(t, "rpm", p.Throughput.RPM, 12)
	near(t, "output rate", p.Throughput.OutputTokensPerS, .7)
	near(t, "input rate", p.Throughput.InputTokensPerS, 20)
	if m.SummaryOf(metric.ICL).N != 5 || m.SummaryOf(metric.ITL).N != 5 || m.SummaryOf(metric.ICL).Label != "" || m.SummaryOf(metric.ITL).Label != "" {
		t.Errorf("icl %+v, itl %+v", m.SummaryOf(metric.ICL), m.SummaryOf(metric.ITL))
	}
	if p.Requests.Due != 2 || p.Requests.OK != 2 || p.Requests.Finish["length"] != 2 {
		t.Errorf("requests %+v", p.Requests)
	}
	if m.SummaryOf(metric.TTFT).Withheld["p99"].IsNone() || m.SummaryOf(metric.TTFT).NoInterval["p50"].IsNone() || len(m.SummaryOf(metric.TTFT).Few) != 1 {
		t.Errorf("ttft %+v", m.SummaryOf(metric.TTFT))
	}
}

// E2E = TTFT + TPOT·(n_s − n_first), whatever the first event held.
func TestIdentity(t *testing.T) {
	for first := int32(1); first <= 3; first++ {
		a := answer{due: 7, stamps: []int64{90, 123, 200}, tokens: []int32{first, 2, 4}, usage: 6 + first, first: first}
		m := fold(window(10), a.frame()).Point().Metrics
		near(t, "e2e", m.SummaryOf(metric.E2E).Max, *m.SummaryOf(metric.TTFT).Max+*m.SummaryOf(metric.TPOT).Max*6)
		near(t, "tpot_n1", m.SummaryOf(metric.TPOTn1).Max, 110/float64(5+first))
	}
}

func TestServiceViewAndClientSide(t *testing.T) {
	fr := answer{due: 100, stamps: []int64{200, 210}, usage: 2, first: 1}.frame()
	r := &fr.Rows[0]
	r.Eligible, r.Ready, r.Sent = 110*ms, 130*ms, 135*ms
	m := fold(window(1), fr).Point().Metrics
	near(t, "ttft", m.SummaryOf(metric.TTFT).Max, 100)
	near(t, "service ttft", m.SummaryOf(metric.ServiceTTFT).Max, 65)
	near(t, "service e2e", m.SummaryOf(metric.ServiceE2E).Max, 75)
	near(t, "held", m.SummaryOf(metric.Held).Max, 10)
	near(t, "connect", m.SummaryOf(metric.Connect).Max, 20)
	near(t, "lag", m.SummaryOf(metric.Lag).Max, 5)
}

func TestNotStreaming(t *testing.T) {
	r := blankRow(0, 100)
	r.Stream, r.Done, r.CompletionTokens, r.PromptTokens = false, 400*ms, 30, 10
	s := window(1)
	s.SLO = spec(t, "p50 ttft<1s, p50 e2e<2s")
	p := fold(s, record.Frame{Rows: []record.Row{r}}).Point()
	m := p.Metrics
	near(t, "e2e", m.SummaryOf(metric.E2E).Max, 300)
	near(t, "output rate", p.Throughput.OutputTokensPerS, 30)
	for _, name := range []string{"ttft_ms", "tpot_ms", "itl_ms", "icl_ms"} {
		if m.Undefined[name].Code != result.NotStreaming {
			t.Errorf("%v: %v", name, m.Undefined[name])
		}
	}
	if m.SummaryOf(metric.TTFT) != nil || m.SummaryOf(metric.TPOT) != nil || m.SummaryOf(metric.ITL) != nil || m.SummaryOf(metric.ICL) != nil {
		t.Error("a metric of streams has values")
	}
	if p.SLO.Met != undecided || p.SLO.Limits[0].Why.Code != result.NotStreaming {
		t.Errorf("slo %+v", p.SLO)
	}
}

// Only requests due in the window are the cohort; throughput goes by stamp.
func TestWindow(t *testing.T) {
	s := Setup{T0: 1000 * ms, T1: 2000 * ms, GPUs: 2, Price: cost.Price{GPU: cost.GPU{Hour: 3.6}}, Stamps: "kernel"}
	before := answer{id: 0, due: 900, stamps: []int64{950, 1050, 1100, 1150}, usage: 8, first: Unset}.frame()
	within := answer{id: 1, due: 1000, stamps: []int64{1500, 1900, 2000, 2100}, tokens: []int32{1, 2, 1, 1}, usage: 5, first: 1}.frame()
	after := answer{id: 2, due: 2000, stamps: []int64{2050, 2100}, usage: 2, first: 1}.frame()
	p := fold(s, before, within, after).Point()
	if p.Requests.Due != 1 {
		t.Fatalf("due %d", p.Requests.Due)
	}
	near(t, "due", p.Throughput.DuePerS, 1)                                              //
	near(t, "requests", p.Throughput.RequestsPerS, 1)                                    // the first ended inside, the second not
	near(t, "output", p.Throughput.OutputTokensPerS, 8*3/4.+3)                           // spread over chunks, and as the events say
	near(t, "input", p.Throughput.InputTokensPerS, 100)                                  // only the second's first token
	near(t, "per gpu", p.Throughput.PerGPU.OutputTokensPerS, 4.5)                        //
	near(t, "cost", p.Cost.USDPerMOutput, 2*3.6/3600/9*1e6)                              //
	near(t, "drain", &p.Seconds.Drain, .1)                                               //
	near(t, "warmup", &p.Seconds.Warmup, 1)                                              //
	near(t, "tpot with a first event of one", p.Metrics.SummaryOf(metric.TPOT).Max, 150) // 600 ms for 4
}

const Unset = record.Unset

func TestNoUsageNoTokens(t *testing.T) {
	a := answer{due: 0, stamps: []int64{10, 20, 30}, usage: Unset, first: Unset}
	p := fold(window(1), a.frame()).Point()
	if p.Throughput.OutputTokensPerS != nil || p.Throughput.Why.IsNone() {
		t.Errorf("throughput %+v", p.Throughput)
	}
	if p.Metrics.SummaryOf(metric.TPOT) != nil || p.Metrics.SummaryOf(metric.ITL) != nil || p.Metrics.Undefined["tpot_ms"].IsNone() || p.Metrics.Undefined["itl_ms"].IsNone() {
		t.Errorf("tpot %v, itl %v", p.Metrics.SummaryOf(metric.TPOT), p.Metrics.SummaryOf(metric.ITL))
	}
	near(t, "icl", p.Metrics.SummaryOf(metric.ICL).Mean, 10)
}

// 2 % instant 429, 1 % never answering, the rest 50 ms.
func TestSurvivorsOnly(t *testing.T) {
	s := window(1000)
	s.SLO = spec(t, "p99 ttft<200ms")
	f := NewFold(s)
	for i := int64(0); i < 10_000; i++ {
		switch {
		case i%50 == 0:
			f.Add(failed(i, i*10, 1, record.ErrRateLimited))
		case i%100 == 1:
			f.Add(cut(i, i*10, 600_000))
		default:
			f.Add(answer{id: i, due: i * 10, stamps: []int64{i*10 + 50, i*10 + 60}, usage: 2, first: 1}.frame())
		}
	}
	p := f.Point()
	near(t, "attained", p.SLO.Attained, .97)
	if p.SLO.Met != no || p.SLO.Limits[0].Met != no || p.SLO.Deciding == "" {
		t.Errorf("slo %+v", p.SLO)
	}
	ttft := p.Metrics.SummaryOf(metric.TTFT)
	if ttft.P99 != nil || ttft.Over["p99"] != 600_000 || ttft.Censored != 100 || ttft.N != 9800 {
		t.Errorf("ttft %+v", ttft)
	}
	near(t, "p95", ttft.P95, 50)
	near(t, "survivors", ttft.P99OK, 50)
	if ttft.Mean != nil || ttft.Max != nil || ttft.Over["max"] != 600_000 {
		t.Errorf("mean %v, max %v over %v", ttft.Mean, ttft.Max, ttft.Over)
	}
	if r := p.Requests; r.Due != 10_000 || r.OK != 9700 || r.Failed != 200 || r.Cut != 100 || r.Errors[record.ErrRateLimited] != 200 {
		t.Errorf("requests %+v", r)
	}
	if p.Outcome != "degraded" || p.Verdict == result.Invalid {
		t.Errorf("outcome %s, verdict %s", p.Outcome, p.Verdict)
	}
	near(t, "goodput", &p.Goodput.RequestsPerS, 9.7)
}

// A server that makes a token every 10 ms, however it hands them out.
func TestChunksAreNotTokens(t *testing.T) {
	every := func(n int, step int64) (at []int64) {
		for i := range n {
			at = append(at, 100+int64(i)*step)
		}
		return at
	}
	cases := map[string]struct {
		a     answer
		tpot  float64
		icl   float64
		itl   float64 // 0: withheld
		label string
	}{
		"plain":       {answer{stamps: every(41, 10), usage: 41, first: 1}, 10, 10, 10, ""},
		"stop at EOS": {answer{stamps: every(41, 10), usage: 42, first: 1, finish: 510}, 10, 10, 0, ""},
		"interval 4":  {answer{stamps: every(11, 40), usage: 41, first: 1}, 10, 40, 0, ""},
		"interval 4 told": {answer{stamps: every(11, 40), tokens: append([]int32{1}, repeat(4, 10)...), usage: 41, first: 1},
			10, 40, 10, "amortised"},
		"first chunk of 3":    {answer{stamps: every(41, 10), tokens: append([]int32{3}, repeat(1, 40)...), usage: 43, first: 3}, 10, 10, 10, ""},
		"hidden reasoning":    {answer{stamps: every(41, 10), usage: 541, first: 1, hidden: 500}, 10, 10, 10, ""},
		"two events per read": {answer{stamps: append([]int64{100}, twice(every(21, 20)[1:])...), usage: 41, first: 1}, 10, 20, 10, "amortised"},
	}
	for name, c := range cases {
		m := fold(window(10), c.a.frame()).Point().Metrics
		near(t, name+" tpot", m.SummaryOf(metric.TPOT).Max, c.tpot)
		near(t, name+" icl", m.SummaryOf(metric.ICL).P50, c.icl)
		if c.itl == 0 {
			if m.SummaryOf(metric.ITL) != nil || m.Undefined["itl_ms"].IsNone() {
				t.Errorf("%s: itl %+v", name, m.SummaryOf(metric.ITL))
			}
			continue
		}
		near(t, name+" itl", m.SummaryOf(metric.ITL).P50, c.itl)
		if m.SummaryOf(metric.ITL).Label != c.label {
			t.Errorf("%s: label %q", name, m.SummaryOf(metric.ITL).Label)
		}
		if m.SummaryOf(metric.ITL).N != 40 {
			t.Errorf("%s: %d token gaps", name, m.SummaryOf(metric.ITL).N)
		}
	}
}

func repeat(x int32, n int) (out []int32) {
	for range n {
		out = append(out, x)
	}
	return out
}

func twice(at []int64) (out []int64) {
	for _, x := range at {
		out = append(out, x, x)
	}
	return out
}

// Servers count the token that ends the reasoning and send no event for it: it took
// a step, which the gap shows. No other token that is missing is taken for it.
func TestMarkerBehindReasoning(t *testing.T) {
	reasoned := func(thoughts int, a answer) record.Frame {
		f := a.frame()
		for i := range f.Chunks[:thoughts] {
			f.Chunks[i].Kind = record.Reasoning
		}
		f.Rows[0].FirstAnswer = f.Chunks[thoughts].T
		return f
	}
	stamps := []int64{100, 110, 120, 140, 150, 160} // a step of 10 ms each; the marker came at 130
	m := fold(window(1), reasoned(3, answer{stamps: stamps, usage: 7, first: record.Unset})).Point().Metrics
	near(t, "tpot", m.SummaryOf(metric.TPOT).Max, 10)
	near(t, "stall", m.SummaryOf(metric.Stall).Max, 20)
	near(t, "icl", m.SummaryOf(metric.ICL).Max, 20)
	near(t, "itl", m.SummaryOf(metric.ITL).Max, 10)
	near(t, "tokens per chunk", m.SummaryOf(metric.TokensPerChunk).Max, 1)
	if m.SummaryOf(metric.TPOT).Label != "" || m.SummaryOf(metric.ITL).Label != "" || m.SummaryOf(metric.ITL).N != 6 || m.SummaryOf(metric.ICL).N != 5 {
		t.Errorf("tpot %q, itl %q, %d token gaps, %d gaps", m.SummaryOf(metric.TPOT).Label, m.SummaryOf(metric.ITL).Label, m.SummaryOf(metric.ITL).N, m.SummaryOf(metric.ICL).N)
	}
	for name, f := range map[string]record.Frame{
		"two are missing":    reasoned(3, answer{stamps: stamps, usage: 8, first: record.Unset}),
		"the last is":        reasoned(3, answer{stamps: stamps, usage: 7, first: record.Unset, finish: 170}),
		"nothing but answer": answer{stamps: stamps, usage: 7, first: record.Unset}.frame(),
		"two choices": func() record.Frame {
			f := reasoned(3, answer{stamps: stamps, usage: 7, first: record.Unset})
			f.Rows[0].Choices = 2
			return f
		}(),
	} {
		m := fold(window(1), f).Point().Metrics
		if m.SummaryOf(metric.ITL) != nil || m.SummaryOf(metric.TPOT) == nil || m.SummaryOf(metric.TPOT).Label == "" {
			t.Errorf("%s: itl %+v, tpot %+v", name, m.SummaryOf(metric.ITL), m.SummaryOf(metric.TPOT))
		}
	}
	// Reads that the kernel merged keep what they leave open.
	f := reasoned(3, answer{stamps: stamps, usage: 7, first: record.Unset})
	f.Chunks[3].Earliest = 135 * ms
	m = fold(window(1), f).Point().Metrics
	near(t, "itl", m.SummaryOf(metric.ITL).Max, 10)
	if m.SummaryOf(metric.ITL).N != 6 {
		t.Errorf("%d token gaps", m.SummaryOf(metric.ITL).N)
	}
}

func TestHiddenBetweenVisible(t *testing.T) {
	fr := answer{stamps: []int64{10, 20, 500, 510}, usage: 100, first: 1, hidden: 60}.frame()
	fr.Rows[0].FirstAnswer = 500 * ms // reasoning was streamed before, and some was not
	m := fold(window(1), fr).Point().Metrics
	if m.SummaryOf(metric.TPOT) != nil || m.Undefined["tpot_ms"].IsNone() {
		t.Errorf("tpot %+v", m.SummaryOf(metric.TPOT))
	}
	near(t, "ttfa", m.SummaryOf(metric.TTFA).Max, 500)
}

func TestCensored(t *testing.T) {
	// Cut in the middle of its answer: a definite TTFT, an open end.
	fr := answer{id: 0, due: 0, stamps: []int64{50, 60, 80}, usage: Unset, first: Unset}.frame()
	r := &fr.Rows[0]
	r.Outcome, r.Error, r.Done, r.OutputPlanned = record.Cut, record.ErrTimeout, 1000*ms, 11
	only := blankRow(1, 0) // reasoning alone
	only.FirstToken, only.LastToken, only.Done, only.CompletionTokens = 40*ms, 90*ms, 95*ms, 6
	m := fold(window(10), fr, unsent(2, 100), record.Frame{Rows: []record.Row{only}}).Point().Metrics
	near(t, "ttft p50", m.SummaryOf(metric.TTFT).P50, 50)
	if m.SummaryOf(metric.TTFT).N != 3 || m.SummaryOf(metric.TTFT).Censored != 1 || m.SummaryOf(metric.TTFT).Over["max"] != 900 {
		t.Errorf("ttft %+v", m.SummaryOf(metric.TTFT))
	}
	if m.SummaryOf(metric.E2E).Censored != 2 || m.SummaryOf(metric.E2E).Over["p50"] != 900 {
		t.Errorf("e2e %+v", m.SummaryOf(metric.E2E))
	}
	if m.SummaryOf(metric.TTFA).Censored != 2 { // the unsent and the one that only reasoned; the cut one had begun to answer
		t.Errorf("ttfa %+v", m.SummaryOf(metric.TTFA))
	}
	if m.SummaryOf(metric.Stall).Over["max"] != 920 || m.SummaryOf(metric.ICL).Censored != 1 || m.SummaryOf(metric.ICL).Over["max"] != 920 {
		t.Errorf("stall %+v, icl %+v", m.SummaryOf(metric.Stall), m.SummaryOf(metric.ICL))
	}
	if m.SummaryOf(metric.TPOT).Over["max"] != 95 { // 950 ms for at most 10 more tokens
		t.Errorf("tpot %+v", m.SummaryOf(metric.TPOT))
	}
	if m.SummaryOf(metric.ServiceTTFT).N != 2 {
		t.Errorf("an unsent request has no service time: %+v", m.SummaryOf(metric.ServiceTTFT))
	}
}

func TestChoices(t *testing.T) {
	fr := answer{stamps: []int64{100, 101, 120, 121, 140, 141}, usage: 6, first: 1}.frame()
	for i := range fr.Chunks {
		fr.Chunks[i].Choice = int32(i % 2)
	}
	fr.Rows[0].Choices = 2
	m := fold(window(1), fr).Point().Metrics
	near(t, "icl min", m.SummaryOf(metric.ICL).Min, 20)
	near(t, "icl max", m.SummaryOf(metric.ICL).Max, 20)
	near(t, "tpot", m.SummaryOf(metric.TPOT).Max, 20)

	// One choice ends early, and the other one waits for 60 ms in the middle: 20 + 100 ms for
	// four tokens behind the first ones.
	fr = answer{stamps: []int64{100, 100, 120, 120, 180, 200}, usage: 6, first: Unset}.frame()
	for i, choice := range []int32{0, 1, 0, 1, 1, 1} {
		fr.Chunks[i].Choice, fr.Chunks[i].Tokens = choice, 0
	}
	fr.Rows[0].Choices = 2
	m = fold(window(1), fr).Point().Metrics
	near(t, "tpot of unequal choices", m.SummaryOf(metric.TPOT).Max, 30)
	near(t, "stall", m.SummaryOf(metric.Stall).Max, 60)
	near(t, "output tokens", m.SummaryOf(metric.OutputTokens).Max, 6)
	alone := LatencyOf(&fr.Rows[0], &Events{}) // by its row: both as long as the request
	if x, state := alone.TPOT(0); state != Known || x != 50e6 {
		t.Errorf("tpot by the row alone is %v, %v", x, state)
	}
}

func TestObjective(t *testing.T) {
	run := func(text string, n int) *result.SLO {
		s := window(100)
		s.SLO = spec(t, text)
		f := NewFold(s)
		for i := range int64(n) {
			gap := int64(10)
			if i%50 == 0 { // 2 %
				gap = 100
			}
			f.Add(answer{id: i, due: i, stamps: []int64{i + 50, i + 50 + gap}, usage: 2, first: 1}.frame())
		}
		return f.Point().SLO
	}
	for text, want := range map[string]result.Met{
		"p99 ttft<200ms":                 yes,
		"p99 ttft<50ms":                  no, // at the limit is over
		"p99 tpot<50ms":                  no,
		"p95 tpot<50ms":                  yes,
		"p99 ttft<200ms, p99 tpot<50ms":  no,
		"ttft<200ms, tpot<50ms @98%":     yes,
		"ttft<200ms, tpot<50ms @99%":     no,
		"p95 icl<50ms":                   yes,
		"p99 icl<50ms":                   no,
		"p99 itl<50ms":                   no,
		"errors<1%":                      yes,
		"p99.9 ttft<200ms":               yes,
		"p99.95 ttft<200ms":              undecided,
		"p99.95 ttft<200ms, errors<0.1%": undecided,
	} {
		if got := run(text, 1000); got.Met != want || want != yes && got.Why.IsNone() && got.Deciding == "" {
			t.Errorf("%v: %v (%v), want %v", text, got.Met, got.Why, want)
		}
	}
	if got := run("ttft<200ms, tpot<50ms @98%", 1000); *got.Attained != .98 || *got.Limits[0].Attained != 1 {
		t.Errorf("attained %v of %+v", *got.Attained, got.Limits)
	}
	if got := run("p99 ttft<200ms", 60); got.Met != undecided || got.Limits[0].Value != nil {
		t.Errorf("60 requests: %+v", got)
	}
	if got := run("p99 tpot<50ms", 60); got.Met != no { // two over of at most one
		t.Errorf("60 requests, two over: %+v", got)
	}
}

func TestAttains(t *testing.T) {
	for _, c := range []struct {
		due, good int64
		p         float64
		want      result.Met
	}{
		{1000, 990, .99, yes}, {1000, 989, .99, no}, {100, 99, .99, yes}, {100, 98, .99, no},
		{99, 99, .99, undecided}, {99, 98, .99, undecided}, {50, 48, .99, no}, {50, 0, .99, no},
		{0, 0, .99, undecided}, {0, 0, 1, undecided}, {10, 10, 1, yes}, {10, 9, 1, no}, {1000, 999, .999, yes},
	} {
		if got := JudgeAtLeast(c.due, c.good, c.p); got != c.want {
			t.Errorf("Attains(%d, %d, %g) = %s, want %s", c.due, c.good, c.p, got, c.want)
		}
	}
	for _, c := range []struct {
		due, bad int64
		want     result.Met
	}{{1000, 9, yes}, {1000, 10, no}, {100, 0, yes}, {100, 1, no}, {99, 0, undecided}, {50, 1, no}} {
		if got := JudgeBelow(c.due, c.bad, .01); got != c.want {
			t.Errorf("Below(%d, %d) = %s, want %s", c.due, c.bad, got, c.want)
		}
	}
}

func TestClasses(t *testing.T) {
	build := func(lengths []int32, class func(int) string) result.Point {
		f := NewFold(window(10))
		for i, n := range lengths {
			fr := answer{id: int64(i), due: int64(i), stamps: []int64{int64(i) + int64(n), int64(i) + int64(n) + 10}, usage: 2, first: 1}.frame()
			fr.Rows[0].InputPlanned, fr.Rows[0].PromptTokens = n, n
			if class != nil {
				fr.Rows[0].Class = class(i)
			}
			f.Add(fr)
		}
		return f.Point()
	}
	if p := build([]int32{256, 257, 255}, nil); p.Classes != nil {
		t.Errorf("lengths beside a border of buckets: %v", p.Classes)
	}
	p := build([]int32{100, 200, 301, 900, 1500}, nil)
	for name, want := range map[string]int{"input ≤256": 2, "input 257–1024": 2, "input 1025–4096": 1} {
		c, ok := p.Classes[name]
		if !ok || c.Requests.Due != want || c.Metrics.SummaryOf(metric.ICL).N != int64(want) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := find(t, p.Checks, "mix"); c.Status != result.Flag {
		t.Errorf("mix %+v", c)
	}
	if p := build([]int32{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144}, nil); len(p.Classes) != maxClasses {
		t.Errorf("%d classes", len(p.Classes))
	}
	p = build(make([]int32, 70), func(i int) string { return fmt.Sprint("c", i%14) })
	if len(p.Classes) != maxNamed || p.Classes["other"].Requests.Due != 15 || p.Classes["c0"].Requests.Due != 5 {
		t.Errorf("%d classes, other %d", len(p.Classes), p.Classes["other"].Requests.Due)
	}
}

func TestEmpty(t *testing.T) {
	for _, s := range []Setup{{}, window(1), {T0: 5, T1: 1}} {
		s.SLO = spec(t, "p99 ttft<1s, ttft<1s @99%, errors<1%, p50 icl<1s")
		p := NewFold(s).Point()
		if p.Requests.Due != 0 || p.SLO.Met != undecided || p.Outcome != "ok" {
			t.Errorf("%+v", p)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
	}
}

// Events that share the first stamp are one arrival: what they brought was
// there at the beginning of the time that TPOT divides.
func TestFirstArrivalOfSeveralEvents(t *testing.T) {
	a := answer{id: 1, stamps: []int64{40, 40, 40, 60, 80}, usage: 5, first: record.Unset}
	p := fold(window(1), a.frame()).Point()
	near(t, "tpot", p.Metrics.SummaryOf(metric.TPOT).Mean, 20)
	if p.Metrics.SummaryOf(metric.TPOT).Label != "" {
		t.Errorf("each event is one token, yet %q", p.Metrics.SummaryOf(metric.TPOT).Label)
	}
	a.tokens, a.usage = []int32{2, 1, 1, 2, 2}, 8
	near(t, "tpot with tokens told", fold(window(1), a.frame()).Point().Metrics.SummaryOf(metric.TPOT).Mean, 10)
}

// A user who stops a run has not shown that the server misses its objective.
func TestInterruptedIsUndecided(t *testing.T) {
	s := window(100)
	s.SLO = spec(t, "p90 ttft<200ms")
	var frames []record.Frame
	for i := range int64(100) {
		if i < 70 {
			frames = append(frames, answer{id: i, due: i, stamps: []int64{i + 50, i + 60}, usage: 2, first: 1}.frame())
			continue
		}
		f := cut(i, i, 10)
		f.Rows[0].Error = record.ErrInterrupted
		frames = append(frames, f)
	}
	p := fold(s, frames...).Point()
	if p.SLO.Met != undecided || p.SLO.Why.IsNone() {
		t.Errorf("met %v (%v)", p.SLO.Met, p.SLO.Why)
	}
	// What is missed without the interrupted ones is missed.
	for i := range 20 {
		frames[i].Rows[0].FirstToken = frames[i].Rows[0].Due + 300*ms
		frames[i].Rows[0].LastToken = frames[i].Rows[0].Due + 310*ms
	}
	if p := fold(s, frames...).Point(); p.SLO.Met != no {
		t.Errorf("20 of 70 too slow: met %q", p.SLO.Met)
	}
}

// mixed is n streams of 41 events, one each 10 ms, with as many tokens by
// usage; the last `cut` of them are cut after three events, and of the first
// `odd` the server counted a token more than there were events.
func mixed(n, odd, cut int64) (out []record.Frame) {
	for i := range n {
		a := answer{id: i, due: i, usage: 41, first: 1}
		for k := range int64(41) {
			a.stamps = append(a.stamps, i+50+10*k)
		}
		if i < odd {
			a.usage++
		}
		if i < n-cut {
			out = append(out, a.frame())
			continue
		}
		a.stamps, a.usage = a.stamps[:3], Unset
		fr := a.frame()
		fr.Rows[0].Outcome, fr.Rows[0].Error, fr.Rows[0].Done = record.Cut, record.ErrTimeout, (i+1000)*ms
		out = append(out, fr)
	}
	return out
}

// Token gaps are those of the streams whose tokens are known, as long as these
// are half of all.
func TestTokenGapsArePooled(t *testing.T) {
	for name, c := range map[string]struct {
		n, odd, cut       int64
		streams, excluded int64 // 0: withheld
		samples, censored int64
		status            result.Status
		output            float64 // tokens in all
		lower             bool
	}{
		"all known":                   {100, 0, 0, 100, 0, 4000, 0, result.Pass, 4100, false},
		"cut beside one each":         {100, 0, 10, 100, 0, 90*40 + 10*3, 10, result.Pass, 90*41 + 10*3, false},
		"one unknown of a hundred":    {100, 1, 0, 99, 1, 99 * 40, 0, result.Pass, 4101, false},
		"two unknown":                 {100, 2, 0, 98, 2, 98 * 40, 0, result.Flag, 4102, false},
		"cut beside another count":    {100, 1, 1, 98, 2, 98 * 40, 0, result.Flag, 99*41 + 1, true},
		"half unknown":                {100, 50, 0, 50, 50, 50 * 40, 0, result.Flag, 4150, false},
		"more than half unknown":      {100, 51, 0, 0, 0, 0, 0, "", 4151, false},
		"cut alone, nothing to go by": {10, 0, 10, 0, 0, 0, 0, "", 0, true},
	} {
		p := fold(window(10), mixed(c.n, c.odd, c.cut)...).Point()
		near(t, name+": output", p.Throughput.OutputTokensPerS, c.output/10)
		if p.Throughput.Why.IsNone() == c.lower {
			t.Errorf("%v: why %v", name, p.Throughput.Why)
		}
		itl := p.Metrics.SummaryOf(metric.ITL)
		if c.streams == 0 {
			if itl != nil || p.Metrics.Undefined["itl_ms"].IsNone() {
				t.Errorf("%v: %+v (%v)", name, itl, p.Metrics.Undefined["itl_ms"])
			}
			continue
		}
		if itl == nil {
			t.Errorf("%v: withheld: %v", name, p.Metrics.Undefined["itl_ms"])
			continue
		}
		if itl.Streams != c.streams || itl.Excluded != c.excluded || itl.N != c.samples || itl.Censored != c.censored || itl.Label != "" {
			t.Errorf("%s: %+v", name, itl)
		}
		near(t, name+": p50", itl.P50, 10)
		if got := find(t, p.Checks, "token gaps"); got.Status != c.status {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is left out of the token gaps may lie on either side of a limit.
func TestLimitOnPooledTokenGaps(t *testing.T) {
	for text, want := range map[string]result.Met{
		"p90 itl<50ms": yes,       // even if the 5 % left out were all above
		"p99 itl<50ms": undecided, // not if they are
		"p99 itl<10ms": no,        // even if they were all below
	} {
		s := window(10)
		s.SLO = spec(t, text)
		p := fold(s, mixed(100, 5, 0)...).Point()
		if p.SLO.Met != want || want == undecided && p.SLO.Why.IsNone() {
			t.Errorf("%v: %v (%v)", text, p.SLO.Met, p.SLO.Why)
		}
	}
}

// The load that was offered is what came due, not what was asked for.
func TestOfferedLoad(t *testing.T) {
	rate := 20.
	s := Setup{T0: 1000 * ms, T1: 3000 * ms, Load: result.Load{Loop: "open", Rate: &rate}}
	p := fold(s, unsent(0, 999), unsent(1, 1000), cut(2, 1500, 10), failed(3, 2999, 5, record.ServerError(500)), unsent(4, 3000)).Point()
	near(t, "due", p.Throughput.DuePerS, 1.5)
	near(t, "served", p.Throughput.RequestsPerS, 0)
}

// Users who all ask at once can fill a count of requests in no time: there is
// no rate then, and it is said.
func TestWindowTooShortForRates(t *testing.T) {
	s := Setup{T1: 1, Stamps: "kernel", SLO: spec(t, "p50 ttft<200ms")}
	var frames []record.Frame
	for i := range int64(3) {
		frames = append(frames, failed(i, 0, 50, record.ServerError(500)))
	}
	p := fold(s, frames...).Point()
	if x := p.Throughput; x.DuePerS != nil || x.RequestsPerS != nil || x.RPM != nil || x.InputTokensPerS != nil || x.OutputTokensPerS != nil || x.Why.IsNone() {
		t.Errorf("%+v", x)
	}
	if p.Goodput != nil {
		t.Errorf("goodput %+v", p.Goodput)
	}
	if c := find(t, p.Checks, "window"); c.Status != result.Flag {
		t.Errorf("%+v", c)
	}
	if p.Requests.Due != 3 || p.Requests.Failed != 3 {
		t.Errorf("%+v", p.Requests)
	}
}

// Too few requests for a joint claim is the reason, not how many were within.
func TestUndecidedJointSaysWhy(t *testing.T) {
	s := window(10)
	s.SLO = spec(t, "ttft<200ms, tpot<50ms @99%")
	p := fold(s, plain(20)...).Point()
	if p.SLO.Met != undecided || p.SLO.Why != tooFew(20, 100) {
		t.Errorf("%v: %v", p.SLO.Met, p.SLO.Why)
	}
}

// A server that leaves its answers open after the end mark is waited for; no
// latency of a stream may count that.
func TestLateEndOfExchangeIsNoLatency(t *testing.T) {
	build := func(wait int64) result.Point {
		frames := plain(200)
		for i := range frames {
			frames[i].Rows[0].Done += wait * ms
		}
		s := window(10)
		s.SLO = spec(t, "p90 e2e<100ms")
		return fold(s, frames...).Point()
	}
	prompt, late := build(0), build(1000)
	if d := cmp.Diff(prompt.Metrics, late.Metrics); d != "" {
		t.Error(d)
	}
	if prompt.SLO.Met != yes || late.SLO.Met != yes || *prompt.Throughput.OutputTokensPerS != *late.Throughput.OutputTokensPerS {
		t.Errorf("%+v, %+v", late.SLO, late.Throughput)
	}
}

// What is surely below a percentile that falls among cut requests: an outlier of those that
// ended says nothing of the others.
func TestLowerBoundOfPercentile(t *testing.T) {
	var frames []record.Frame
	for id := range int64(200) {
		r := blankRow(id, id*10)
		first := id*10 + 50
		r.FirstToken, r.FirstAnswer, r.CompletionTokens, r.Chunks = first*ms, first*ms, 11, 11
		tpot := int64(10)
		if id == 0 {
			tpot = 500
		}
		last := first + 10*tpot
		if id%4 == 3 { // after 100 of its 1,000 ms, at most
			last = first + 100
			r.Outcome, r.Error, r.OutputPlanned, r.CompletionTokens = record.Cut, record.ErrTimeout, 101, record.Unset
		}
		r.LastToken, r.Done = last*ms, last*ms
		frames = append(frames, record.Frame{Rows: []record.Row{r}, Chunks: []record.Chunk{
			{Request: id, T: first * ms, Earliest: first * ms, Tokens: 1}, {Request: id, T: last * ms, Earliest: last * ms, Tokens: 10},
		}})
	}
	m := fold(window(10), frames...).Point().Metrics
	for _, name := range []metric.Name{metric.TPOT, metric.Stall} {
		s := m.SummaryOf(name)
		if s == nil || s.Censored != 50 || s.Over["p90"] == 0 || s.Over["p90"] > 100 || s.Over["p90"] < 1 {
			t.Errorf("%s %+v", name, s)
		}
	}
}
