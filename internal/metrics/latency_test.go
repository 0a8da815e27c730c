package metrics

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/results/record"
)

// What each latency is of requests that ended in every way, in both views.
func TestLatencyOf(t *testing.T) {
	whole := answer{id: 1, due: 1000, stamps: []int64{1050, 1060, 1080, 1090}, usage: 4, first: 1}.frame()
	row := func(change func(r *record.Row)) record.Row {
		r := whole.Rows[0]
		r.Sent = 1010 * ms
		change(&r)
		return r
	}
	events := func(tokens ...int32) (e Events) {
		for i, k := range tokens {
			e.Add(whole.Chunks[i].T, k)
		}
		return e
	}
	type value struct {
		ms float64
		is State
	}
	none := value{0, Missing}
	for name, c := range map[string]struct {
		row                      record.Row
		events                   Events
		ttft, sentTTFT, ttfa     value
		tpot, tpotN1             value
		e2e, sentE2E, generation value
		output                   int32
	}{
		"ok": {row: row(func(*record.Row) {}), events: events(0, 0, 0, 0),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{50, Known}, tpot: value{40. / 3, Known}, tpotN1: value{40. / 3, Known},
			e2e: value{90, Known}, sentE2E: value{80, Known}, generation: value{40, Known}, output: 4},
		"two tokens first": {row: row(func(r *record.Row) { r.CompletionTokens = 5 }), events: events(2, 1, 1, 1),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{50, Known}, tpot: value{40. / 3, Known}, tpotN1: value{10, Known},
			e2e: value{90, Known}, sentE2E: value{80, Known}, generation: value{40, Known}, output: 5},
		"no usage": {row: row(func(r *record.Row) { r.CompletionTokens, r.FirstTokens = Unset, Unset }), events: events(1, 1, 1, 2),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{50, Known}, tpot: value{10, Known}, tpotN1: value{10, Known},
			e2e: value{90, Known}, sentE2E: value{80, Known}, generation: value{40, Known}, output: 5},
		"not counted": {row: row(func(r *record.Row) { r.CompletionTokens, r.FirstTokens = Unset, Unset }), events: events(0, 0, 0, 0),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{50, Known}, tpot: none, tpotN1: none,
			e2e: value{90, Known}, sentE2E: value{80, Known}, generation: value{40, Known}, output: Unset},
		"one token": {row: row(func(r *record.Row) { r.CompletionTokens, r.LastToken = 1, r.FirstToken }), events: events(1),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{50, Known}, tpot: none, tpotN1: none,
			e2e: value{50, Known}, sentE2E: value{40, Known}, generation: value{0, Known}, output: 1},
		"hidden between": {row: row(func(r *record.Row) { r.HiddenTokens, r.CompletionTokens, r.FirstAnswer = 3, 7, 1080*ms }), events: events(0, 0, 0, 0),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{80, Known}, tpot: none, tpotN1: none,
			e2e: value{90, Known}, sentE2E: value{80, Known}, generation: value{40, Known}, output: 7},
		"empty": {row: row(func(r *record.Row) {
			r.FirstToken, r.FirstAnswer, r.LastToken, r.CompletionTokens = Unset, Unset, Unset, 0
		}), events: Events{},
			ttft: value{90, Longer}, sentTTFT: value{80, Longer}, ttfa: value{90, Longer}, tpot: none, tpotN1: none,
			e2e: none, sentE2E: none, generation: none, output: 0},
		"not streamed": {row: row(func(r *record.Row) {
			r.Stream, r.FirstToken, r.FirstAnswer, r.LastToken = false, Unset, Unset, Unset
		}), events: Events{},
			ttft: none, sentTTFT: none, ttfa: none, tpot: none, tpotN1: none,
			e2e: value{90, Known}, sentE2E: value{80, Known}, generation: none, output: 4},
		"failed": {row: row(func(r *record.Row) { r.Outcome = record.Failed }), events: events(1, 1),
			ttft: value{0, Excluded}, sentTTFT: value{0, Excluded}, ttfa: value{0, Excluded}, tpot: value{0, Excluded}, tpotN1: value{0, Excluded},
			e2e: value{0, Excluded}, sentE2E: value{0, Excluded}, generation: value{0, Excluded}, output: 4},
		"cut behind its first token": {row: row(func(r *record.Row) { r.Outcome, r.OutputPlanned, r.CompletionTokens = record.Cut, 5, Unset }), events: events(1, 1),
			ttft: value{50, Known}, sentTTFT: value{40, Known}, ttfa: value{50, Known}, tpot: value{10, Longer}, tpotN1: value{10, Longer},
			e2e: value{90, Longer}, sentE2E: value{80, Longer}, generation: value{40, Longer}, output: 2},
		"cut without an end": {row: row(func(r *record.Row) {
			r.Outcome, r.FirstToken, r.FirstAnswer, r.Done, r.CompletionTokens = record.Cut, Unset, Unset, Unset, Unset
		}), events: Events{},
			ttft: value{200, Longer}, sentTTFT: value{190, Longer}, ttfa: value{200, Longer}, tpot: value{0, Longer}, tpotN1: value{0, Longer},
			e2e: value{200, Longer}, sentE2E: value{190, Longer}, generation: value{0, Longer}, output: Unset},
		"unsent": {row: unsent(1, 1000).Rows[0], events: Events{},
			ttft: value{200, Longer}, sentTTFT: none, ttfa: value{200, Longer}, tpot: value{0, Longer}, tpotN1: value{0, Longer},
			e2e: value{200, Longer}, sentE2E: none, generation: value{0, Longer}, output: Unset},
	} {
		t.Run(name, func(t *testing.T) {
			l := LatencyOf(&c.row, &c.events)
			const until = 1200 * ms
			same := func(name string, want value) func(ns float64, is State) {
				return func(ns float64, is State) {
					if is != want.is || ns/1e6-want.ms > 1e-9 || want.ms-ns/1e6 > 1e-9 {
						t.Errorf("%s: %v ms, state %d, want %+v", name, ns/1e6, is, want)
					}
				}
			}
			same("TTFT", c.ttft)(l.TTFT(Response, until))
			same("TTFT from sent", c.sentTTFT)(l.TTFT(Service, until))
			same("TTFA", c.ttfa)(l.TTFA(Response, until))
			same("TPOT", c.tpot)(l.TPOT(until))
			same("TPOT over n-1", c.tpotN1)(l.TPOTn1(until))
			same("E2E", c.e2e)(l.E2E(Response, until))
			same("E2E from sent", c.sentE2E)(l.E2E(Service, until))
			same("generation", c.generation)(l.Generation(until))
			if n := l.OutputTokens(); n != c.output {
				t.Errorf("%d tokens, want %d", n, c.output)
			}
		})
	}
}

// E2E = TTFT + TPOT·(n_s − n_first), in both views.
func TestLatencyIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, f := range crowd(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), 30) {
			var e Events
			for _, c := range f.Chunks {
				e.Add(c.T, c.Tokens)
			}
			l := LatencyOf(&f.Rows[0], &e)
			tpot, is := l.TPOT(0)
			if is != Known {
				continue
			}
			for _, v := range []View{Response, Service} {
				ttft, _ := l.TTFT(v, 0)
				e2e, is := l.E2E(v, 0)
				if sum := ttft + tpot*float64(l.visible-l.nFirst()); is != Known || sum-e2e > 1 || e2e-sum > 1 {
					t.Fatalf("E2E %v, its parts %v", e2e, sum)
				}
			}
		}
	})
}

// The gaps of single requests are those that are pooled.
func TestGapsAreThoseOfTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stamps []Stamp
		var s Stream
		at := int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			at += rapid.SampledFrom([]int64{0, 0, 1, 7, 5e9, -3}).Draw(t, "gap")
			choice := rapid.Int32Range(0, 2).Draw(t, "choice")
			stamps = append(stamps, Stamp{T: at, Choice: choice})
			s.addChunk(&record.Chunk{T: at, Earliest: at, Choice: choice})
		}
		s.closeLanes()
		var got, want []int64
		s.eachGap(&record.Row{Outcome: record.OK}, func(ns int64, _ State) { got = append(got, ns) })
		last := map[int32]int64{}
		for _, e := range stamps {
			if was, ok := last[e.Choice]; ok && e.T != was {
				want = append(want, max(0, e.T-was))
			}
			last[e.Choice] = e.T
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%v, pooled %v", got, want)
		}
	})
}

// Gaps take time in proportion to the events, however many choices there are:
// 200,000 of them would else take a quarter of an hour.
func TestGapsOfManyChoices(t *testing.T) {
	const choices = 200_000
	var s Stream
	for i := range 2 * choices {
		e := Stamp{T: int64(i), Choice: int32(i % choices)}
		s.addChunk(&record.Chunk{T: e.T, Earliest: e.T, Choice: e.Choice})
	}
	s.closeLanes()
	n := 0
	s.eachGap(&record.Row{Outcome: record.OK}, func(ns int64, _ State) {
		if n++; ns != choices {
			t.Fatalf("a gap of %d", ns)
		}
	})
	if n != choices || len(s.near) != choices || len(s.lanes) != choices {
		t.Errorf("%d gaps, %d pooled from %d lanes", n, len(s.near), len(s.lanes))
	}
}
